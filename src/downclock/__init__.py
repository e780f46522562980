"""Downclock: plan jobs so that they finish on time on the fewest joules, and prove how close.

    import downclock as dc

    problem = dc.load_problem("cluster.toml", "jobs.csv")
    schedule = dc.plan(problem)
    dc.require_valid(problem, schedule)
    print(dc.account(problem, schedule))

The package, from the ground up; a folder imports only from those above it:

- ``errors``, ``memo``, ``units``, ``quantities``: deliberate errors, answers kept with what they
  are of, the one tolerance, quantities as text; ``files``, ``document``, ``tabular``: what files
  hold, as documents and tables; ``columns``: tables in memory.
- ``kernels``: loops that several folders share; folders keep their own in a ``kernels`` of theirs.
- ``power``: how fast and how hungry: operating points, profiles, energy-time frontiers, fit.
- ``problem``: what is asked: tasks, graph, platform, prices; ``files``: their formats.
- ``workloads``: where problems come from: the papers' generators, readers of foreign formats.
- ``schedule``: an answer and its two judges, ``verify`` and ``account``.
- ``engine``: the scheduler without a clock: facts in, decisions out, the book, worlds.
- ``planners``: how to decide and how good could it be; a room for each family: ``lists``,
  ``cluster``, ``chip``, ``slots``, ``mapping``.
- ``simulate``: worlds that are drawn: real run times, failures.
- ``study``: runs and their comparison: a plan beside baselines and bound, many policies, a trace
  as it ran and otherwise; ``sweep``: many runs on many machines.
- ``adapters``: the outside: GPUs and CPUs of this machine, for Slurm's jobs too (``devices``), a
  Slurm cluster as a world (``slurm``), plans as commands to read first (``export``).
- ``report``: what people see, never plans; ``plot``: figures of it.
- ``papers``: the papers' experiments and their verdicts.
- ``cli``: one verb a command.

Every public name is here too, imported when it is first used.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

_HOME: dict[str, str] = {}
"""The module of each public name; the stub beside this file lists them."""

with open(f"{__file__}i", encoding="utf-8") as _stub:
    for _words in map(str.split, _stub):
        if _words[:1] == ["from"]:  # from MODULE import NAME as NAME
            _HOME[_words[3]] = _words[1]


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
