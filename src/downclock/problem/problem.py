"""A problem: tasks, their graph, applications, platform and prices. Frozen; everything reads it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

import numpy as np

from downclock.columns import html_table
from downclock.errors import InvalidInput, require_type
from downclock.kernels.compiling import expect
from downclock.memo import Memo
from downclock.power.frontier import Frontier
from downclock.power.library import Library
from downclock.problem.graph import Edges
from downclock.problem.platform import Platform
from downclock.problem.price import Prices
from downclock.problem.tasks import Tasks
from downclock.quantities import MOST, count
from downclock.units import Bools, Floats, Ints, slack

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Problem:
    """What is asked. Times are seconds after ``epoch`` (None: no calendar is attached).

    ``assumptions`` say in sentences what was assumed of jobs that told little of themselves.
    """

    tasks: Tasks
    library: Library
    platform: Platform
    edges: Edges = field(default_factory=Edges)
    prices: Prices = field(default_factory=Prices)
    epoch: datetime | None = None
    name: str = "problem"
    assumptions: tuple[str, ...] = ()
    _memo: Memo = field(default_factory=Memo, init=False)

    def __post_init__(self) -> None:
        for field_, wanted in (("tasks", Tasks), ("library", Library), ("platform", Platform)):
            require_type(
                getattr(self, field_), wanted, f"a {wanted.__name__}", field=field_, item="problem"
            )
        n = len(self.tasks)
        expect(n)
        bad = (self.tasks.application < 0) | (self.tasks.application >= len(self.library))
        if np.any(bad):
            raise self._task_error(int(np.argmax(bad)), "names no application of the library")
        self._check_laws()
        try:
            self.edges.order(n)
        except InvalidInput as error:
            if error.field is None and error.row is not None:
                raise self._task_error(error.row, error.rule) from None
            raise

    def _check_laws(self) -> None:
        """Refuse another voltage law than the one the applications' power was fitted with."""
        for kind in self.platform.kinds:
            fitted = self.library.basis_of(kind.name).law
            if fitted in (None, kind.clocks.law) or not self.library.needs_voltage(kind.name):
                continue
            rule = (
                "is not the voltage law that the library's power was fitted with: dc.Kind.of takes"
                " clocks and law from the library"
            )
            raise InvalidInput(rule, item=f"kind '{kind.name}'", field="law", value=kind.clocks.law)

    def runnable(self) -> Bools:
        """Which task can run on which kind of the platform: (tasks, kinds)."""
        table = np.zeros((len(self.tasks), len(self.platform.kinds)), dtype=bool)
        for k, kind in enumerate(self.platform.kinds):
            if kind.name in self.library.kinds:
                column = self.library.kinds.index(kind.name)
                table[:, k] = self.library.group[self.tasks.application, column] >= 0
        return table

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Compute something that depends on the problem alone, the first time it is asked."""
        return self._memo.once(key, compute)

    def frontier(self, kind: int) -> Frontier:
        """Energy-time frontier of every task on one kind; a row per task. Computed once."""
        spec, tasks = self.platform.kinds[kind], self.tasks
        return self.once(
            ("frontier", int(kind)),
            lambda: spec.frontier(self.library, tasks.application, tasks.scale),
        )

    def at(self, task: Ints, kind: Ints, points: Floats) -> tuple[Floats, Floats]:
        """Return (time_s, power_w) of whole tasks at points; NaN where one cannot run there."""
        time, power = np.full(len(task), np.nan), np.full(len(task), np.nan)
        for k, spec in enumerate(self.platform.kinds):
            mine = np.flatnonzero(kind == k)
            rows = task[mine]
            t, p = self.library.at(self.tasks.application[rows], spec.name, points[mine])
            time[mine], power[mine] = t * self.tasks.scale[rows], p
        return time, power

    def __repr__(self) -> str:
        platform = self.platform
        kinds = ", ".join(kind.name for kind in platform.kinds)
        edges = f", {count(len(self.edges), 'edge')}" if len(self.edges) else ""
        servers = count(platform.server_count, "server")
        processors = count(platform.processor_count, "processor")
        tasks = count(len(self.tasks), "task")
        return f"Problem '{self.name}': {tasks}{edges} on {servers} with {processors} ({kinds})"

    def _repr_html_(self) -> str:
        tasks = self.tasks
        last = np.max(tasks.deadline_s[np.isfinite(tasks.deadline_s)], initial=-np.inf)
        rows = {
            "tasks": f"{len(tasks)} of {len(self.library)} applications, {len(self.edges)} edges",
            "arrivals": f"{tasks.arrival_s.min():g} s to {tasks.arrival_s.max():g} s",
            "last deadline": f"{last:g} s" if np.isfinite(last) else "none",
            "servers": f"{self.platform.server_count}",
            "processors": f"{self.platform.processor_count}",
            "zones with prices": ", ".join(name for name, _ in self.prices.zones) or "none",
        }
        return html_table(rows.items(), caption=f"Problem {self.name}")

    def _task_error(self, row: int, rule: str) -> InvalidInput:
        return InvalidInput(rule, item=f"task '{self.tasks.name[row]}'", row=row)


def refuse_unresolved(problem: Problem) -> None:
    """Refuse a task whose shortest run time is less than what tells two of its times apart.

    Such a task would end when it starts, and no judge could tell whether it ran. So would others
    after one that takes for ever.
    """
    tasks = problem.tasks
    unit_s = np.full(len(problem.library), np.inf)
    for kind in problem.platform.kinds:
        np.minimum(unit_s, problem.library.shortest_s(kind.name, kind.clocks), out=unit_s)
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        time_s = unit_s[tasks.application] * tasks.scale
    endless = np.isfinite(unit_s[tasks.application]) & (time_s > MOST["s"])
    rule = f"makes a run time of more than {MOST['s']:g} s even at the highest clocks"
    tasks.refuse(endless, rule, "scale")

    def said(row: int) -> str:
        least_s, arrival_s = slack(tasks.arrival_s[row]), tasks.arrival_s[row]
        hint = "; count times from an epoch nearby" if least_s > slack(0.0) else ""
        return (
            f"makes a run time of {time_s[row]:.3g} s, which cannot be told from none at"
            f" arrival_s={arrival_s:g} (at least {least_s:.3g} s){hint}"
        )

    tasks.refuse((tasks.scale > 0.0) & (time_s < slack(tasks.arrival_s)), said, "scale")
