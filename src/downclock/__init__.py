"""Downclock: plan jobs so that they finish on time on the fewest joules, and prove how close.

    import downclock as dc

    problem = dc.load_problem("cluster.toml", "jobs.csv")
    schedule = dc.plan(problem)
    dc.require_valid(problem, schedule)
    print(dc.account(problem, schedule))

The package, from the ground up; a folder imports only from those above it:

- ``errors``, ``memo``, ``units``, ``quantities``, ``files``, ``tabular``: deliberate errors,
  answers kept with what they are of, the one tolerance, quantities as text, files.
- ``kernels``: loops that several folders share; folders keep their own in a ``kernels`` of theirs.
- ``power``: how fast and how hungry: operating points, profiles, energy-time frontiers, fit.
- ``problem``: what is asked: tasks, graph, platform, prices; ``files``: their formats.
- ``workloads``: where problems come from: the papers' generators, readers of foreign formats.
- ``schedule``: an answer and its two judges, ``verify`` and ``account``.
- ``engine``: the scheduler without a clock: facts in, decisions out, the book, worlds.
- ``planners``: how to decide and how good could it be; a room for each family: ``lists``,
  ``cluster``, ``chip``, ``slots``, ``mapping``.
- ``simulate``: worlds that are drawn: real run times, failures.
- ``study``: runs and their comparison: a plan beside baselines and bound, many policies.
- ``report``: what people see, never plans; ``plot``: figures of it.
- ``papers``: the papers' experiments and their verdicts.
- ``cli``: one verb a command.

Every public name is here too, imported when it is first used.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from downclock import plot as plot
    from downclock.errors import DownclockError as DownclockError
    from downclock.errors import InvalidInput as InvalidInput
    from downclock.errors import InvalidSchedule as InvalidSchedule
    from downclock.errors import MissingExtra as MissingExtra
    from downclock.planners.catalog import CATALOG as CATALOG
    from downclock.planners.catalog import policy as policy
    from downclock.planners.catalog import register as register
    from downclock.planners.per_task import per_task_bound_j as per_task_bound_j
    from downclock.power.fit import fit as fit
    from downclock.power.frontier import Frontier as Frontier
    from downclock.power.library import Library as Library
    from downclock.power.library_file import built_in_library as built_in_library
    from downclock.power.library_file import read_library as read_library
    from downclock.power.library_file import write_library as write_library
    from downclock.power.measurements import Measurements as Measurements
    from downclock.power.measurements import read_measurements as read_measurements
    from downclock.power.points import ClockRange as ClockRange
    from downclock.power.points import ClockTable as ClockTable
    from downclock.power.points import VoltageLaw as VoltageLaw
    from downclock.power.profiles import CpuProfiles as CpuProfiles
    from downclock.power.profiles import GpuProfiles as GpuProfiles
    from downclock.power.profiles import MeasuredProfiles as MeasuredProfiles
    from downclock.problem.files.files import load_problem as load_problem
    from downclock.problem.files.files import read_cluster as read_cluster
    from downclock.problem.files.files import read_prices as read_prices
    from downclock.problem.files.files import read_problem as read_problem
    from downclock.problem.files.files import read_tasks as read_tasks
    from downclock.problem.files.files import write_problem as write_problem
    from downclock.problem.files.files import write_tasks as write_tasks
    from downclock.problem.graph import Edges as Edges
    from downclock.problem.platform import Kind as Kind
    from downclock.problem.platform import Platform as Platform
    from downclock.problem.platform import ServerSpec as ServerSpec
    from downclock.problem.price import Curve as Curve
    from downclock.problem.price import Prices as Prices
    from downclock.problem.price import ZonePrices as ZonePrices
    from downclock.problem.problem import Problem as Problem
    from downclock.problem.spread import Spread as Spread
    from downclock.problem.tasks import Tasks as Tasks
    from downclock.report.explain import Explanation as Explanation
    from downclock.report.explain import explain as explain
    from downclock.report.page import write_report as write_report
    from downclock.report.show import show as show
    from downclock.schedule.account.account import account as account
    from downclock.schedule.account.bill import Bill as Bill
    from downclock.schedule.files import read_schedule as read_schedule
    from downclock.schedule.files import write_schedule as write_schedule
    from downclock.schedule.schedule import Outcomes as Outcomes
    from downclock.schedule.schedule import PowerSpans as PowerSpans
    from downclock.schedule.schedule import Schedule as Schedule
    from downclock.schedule.schedule import Segments as Segments
    from downclock.schedule.verify.verdict import Verdict as Verdict
    from downclock.schedule.verify.verdict import Violation as Violation
    from downclock.schedule.verify.verify import require_valid as require_valid
    from downclock.schedule.verify.verify import verify as verify
    from downclock.simulate.chances import Chances as Chances
    from downclock.simulate.simulate import Run as Run
    from downclock.study.compare import Comparison as Comparison
    from downclock.study.compare import compare as compare
    from downclock.study.decide import plan as plan
    from downclock.study.decide import simulate as simulate
    from downclock.study.summary import Summary as Summary
    from downclock.study.summary import judge as judge
    from downclock.study.summary import summarise as summarise
    from downclock.workloads.generate import generate as generate

    __version__: str

_HOMES = {
    "errors": "DownclockError InvalidInput InvalidSchedule MissingExtra",
    "planners.per_task": "per_task_bound_j",
    "planners.catalog": "CATALOG policy register",
    "power.fit": "fit",
    "power.frontier": "Frontier",
    "power.library": "Library",
    "power.library_file": "built_in_library read_library write_library",
    "power.measurements": "Measurements read_measurements",
    "power.points": "ClockRange ClockTable VoltageLaw",
    "power.profiles": "CpuProfiles GpuProfiles MeasuredProfiles",
    "problem.files.files": "load_problem read_cluster read_prices read_problem read_tasks"
    " write_problem write_tasks",
    "problem.graph": "Edges",
    "problem.platform": "Kind Platform ServerSpec",
    "problem.price": "Curve Prices ZonePrices",
    "problem.problem": "Problem",
    "problem.spread": "Spread",
    "problem.tasks": "Tasks",
    "report.explain": "Explanation explain",
    "report.page": "write_report",
    "report.show": "show",
    "schedule.account.account": "account",
    "schedule.account.bill": "Bill",
    "schedule.files": "read_schedule write_schedule",
    "schedule.schedule": "Outcomes PowerSpans Schedule Segments",
    "schedule.verify.verdict": "Verdict Violation",
    "schedule.verify.verify": "require_valid verify",
    "simulate.chances": "Chances",
    "simulate.simulate": "Run",
    "study.compare": "Comparison compare",
    "study.decide": "plan simulate",
    "study.summary": "Summary judge summarise",
    "workloads.generate": "generate",
}
_HOME = {name: f"downclock.{home}" for home, names in _HOMES.items() for name in names.split()}
_HOME["plot"] = __name__  # a module of its own


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import downclock`` is quick."""
    if name == "__version__":
        from importlib.metadata import version

        return version("downclock")
    if name not in _HOME:
        raise AttributeError(f"module 'downclock' has no attribute {name!r}")
    home = _HOME[name]
    if home == __name__:
        return importlib.import_module(f"{home}.{name}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


class _Package(ModuleType):
    """The package: its function `simulate` goes before the folder of that name."""

    @property
    def simulate(self) -> Any:
        return __getattr__("simulate")

    @simulate.setter
    def simulate(self, folder: ModuleType) -> None:
        """Importing the folder would put it here; it is found without."""


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    """Every public name, for completion in notebooks."""
    return sorted({*globals(), *_HOME, "__version__"})
