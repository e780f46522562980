"""Lengths: how long each task should run, and the clock that gives that.

A length rule answers, for every task on a kind, the run time it wants, whether its deadline is
what limits it, and afterwards the operating point of the run time it got.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from downclock.engine.policy import View
from downclock.power.points import Clocks
from downclock.units import Bools, Floats, Ints


class Lengths(Protocol):
    """A rule for run times."""

    def wanted(self, view: View, kind: int) -> Floats:
        """Run time of each task (n,); NaN or infinite where it cannot meet its deadline."""
        ...

    def binds(self, view: View, kind: int) -> Bools:
        """Whether the deadline makes each task run faster than it would (n,): deadline-prior."""
        ...

    def points(self, view: View, kind: int, tasks: Ints, length_s: Floats) -> Floats:
        """Operating points (m, 3) of ``tasks`` at the run times they got."""
        ...


@dataclass(frozen=True, slots=True)
class LeastEnergy:
    """The least-energy run time within arrival and deadline (mei2021 Algorithm 1)."""

    def wanted(self, view: View, kind: int) -> Floats:
        """The free optimum, or the whole window for deadline-prior tasks."""
        return view.frontier(kind).within(view.window_s).time_s

    def binds(self, view: View, kind: int) -> Bools:
        """The free optimum ends too late."""
        return np.asarray(view.frontier(kind).t_opt_s > view.window_s)

    def points(self, view: View, kind: int, tasks: Ints, length_s: Floats) -> Floats:
        """The cheapest point of that run time."""
        return view.frontier(kind).within(length_s, tasks).points


@dataclass(frozen=True, slots=True)
class OneClock:
    """One clock for all: the kind's default (None) or a cap (core, memory).

    A task that cannot meet its deadline at it runs at the cheapest clock that can.
    """

    core: float | None = None
    memory: float | None = None

    def point(self, clocks: Clocks) -> Floats:
        """The clock on a kind: the default, or the one nearest to the cap."""
        if self.core is None or self.memory is None:
            return clocks.default
        return clocks.nearest(self.core, self.memory)

    def wanted(self, view: View, kind: int) -> Floats:
        """Run time at the clock, or the shorter one the deadline needs."""
        time = self._time(view, kind).copy()
        rows = np.flatnonzero(self.binds(view, kind))
        if rows.size:
            time[rows] = view.frontier(kind).within(view.window_s[rows], rows).time_s
        return time

    def binds(self, view: View, kind: int) -> Bools:
        """The clock is too slow for the deadline, or the task was never measured at it."""
        return np.asarray(~(self._time(view, kind) <= view.window_s))

    def points(self, view: View, kind: int, tasks: Ints, length_s: Floats) -> Floats:
        """The clock itself where the task runs at it, else the cheapest of that run time."""
        points = np.tile(self.point(view.problem.platform.kinds[kind].clocks), (tasks.size, 1))
        other = np.flatnonzero(self._time(view, kind)[tasks] != length_s)
        if other.size:
            rows = tasks[other]
            points[other] = view.frontier(kind).within(length_s[other], rows).points
        return points

    def _time(self, view: View, kind: int) -> Floats:
        """Run time of every task at the clock; NaN where it has no profile or point."""
        return view.once((self, kind), lambda: self._compute(view, kind))

    def _compute(self, view: View, kind: int) -> Floats:
        n = len(view.problem.tasks)
        point = self.point(view.problem.platform.kinds[kind].clocks)
        time, _ = view.problem.at(np.arange(n), np.full(n, kind), np.tile(point, (n, 1)))
        return time
