"""The view: what a policy may look at. What is known now, and nothing else.

Tasks that were told, forecasts, the platform and its applications. No actual price, no later
arrival, no real run time of what has not ended.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from downclock.columns import joined
from downclock.engine.tasks import TaskTable
from downclock.power.frontier import Frontier
from downclock.power.library import Library
from downclock.problem.graph import Edges
from downclock.problem.platform import Platform
from downclock.problem.price import Prices
from downclock.problem.problem import Problem
from downclock.quantities import instant
from downclock.units import Floats, Ints

T = TypeVar("T")


class View:
    """What is known of a problem at one moment; ``edges`` are among the ``tasks`` told."""

    __slots__ = ("_known", "_once", "_site", "edges", "tasks")

    def __init__(self, problem: Problem) -> None:
        self._site = replace(problem, edges=Edges(), prices=foreseen(problem.prices))
        self._once = problem.once
        self._known: tuple[int, Problem] | None = None
        self.edges = Edges()
        self.tasks = TaskTable()

    def over(self, tasks: TaskTable) -> View:
        """The same site with other tasks; what is computed once is shared."""
        other = View.__new__(View)
        other._site, other._once, other._known = self._site, self._once, None
        other.edges, other.tasks = self.edges, tasks
        return other

    def apart(self) -> View:
        """The same site before anything was told."""
        other = self.over(TaskTable())
        other.edges = Edges()
        return other

    @property
    def platform(self) -> Platform:
        """The processors."""
        return self._site.platform

    def when(self, at_s: float) -> str:
        """A moment as people write it: by the calendar of the site, or in seconds."""
        return instant(at_s, self._site.epoch)

    @property
    def library(self) -> Library:
        """The applications."""
        return self._site.library

    @property
    def prices(self) -> Prices:
        """Prices and carbon as foreseen."""
        return self._site.prices

    def learn(self, edges: Edges) -> None:
        """Add edges among tasks that were told."""
        if len(edges):
            self.edges = joined([self.edges, edges])
            self._known = None

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Compute something that depends on platform, library and forecasts alone, once."""
        return self._once(("view", key), compute)

    def frontier(self, kind: int, rows: Ints, stretch: float = 1.0) -> Frontier:
        """Energy-time frontier of some tasks on a kind, their work multiplied by ``stretch``."""
        spec, application = self.platform.kinds[kind], self.tasks.application[rows]
        return spec.frontier(self.library, application, self.tasks.scale[rows] * stretch)

    def at(self, rows: Ints, kind: int, points: Floats) -> tuple[Floats, Floats]:
        """Return (time_s, power_w) of whole tasks on a kind at points (m, 3); NaN: cannot run."""
        name = self.platform.kinds[kind].name
        time_s, power_w = self._site.library.at(self.tasks.application[rows], name, points)
        return time_s * self.tasks.scale[rows], power_w

    def problem(self) -> Problem:
        """All that was told, as a problem whose prices are the foreseen ones."""
        n = len(self.tasks)
        if self._known is None or self._known[0] != n:
            known = replace(self._site, tasks=self.tasks.as_tasks(), edges=self.edges)
            self._known = n, known
        return self._known[1]

    def amend(self, task: int, deadline_s: float) -> None:
        """Take note of another deadline."""
        self.tasks.deadline_s[task] = deadline_s
        self._known = None

    def applications(self, kind: int) -> Frontier:
        """A unit of work of every application of the library on a kind."""
        every = np.arange(len(self.library))
        return self.platform.kinds[kind].frontier(self.library, every, np.ones(every.size))


def foreseen(prices: Prices) -> Prices:
    """What is expected of prices, in place of the truth."""
    zones = tuple(
        (name, replace(zone, price=zone.expected_price, carbon=zone.expected_carbon))
        for name, zone in prices.zones
    )
    return replace(prices, zones=zones)
