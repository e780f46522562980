"""Lengths: how long each task should run, and the clock that gives that.

A length rule answers, for some tasks on a kind, the run time they want, whether their deadline is
what limits it, and afterwards the operating point of the run time they got.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from downclock.engine.view import View
from downclock.power.points import Clocks
from downclock.units import Bools, Floats, Ints


class Lengths(Protocol):
    """A rule for run times of tasks (m,)."""

    def wanted(self, view: View, kind: int, tasks: Ints) -> Floats:
        """Run time of each task; NaN or infinite where it cannot meet its deadline."""

    def binds(self, view: View, kind: int, tasks: Ints) -> Bools:
        """Whether the deadline makes each task run faster than it would: deadline-prior."""

    def points(self, view: View, kind: int, tasks: Ints, length_s: Floats) -> Floats:
        """Operating points (m, 3) of tasks at the run times they got."""


def window_s(view: View, tasks: Ints) -> Floats:
    """Time between arrival and deadline of tasks (m,)."""
    return np.asarray(view.tasks.deadline_s[tasks] - view.tasks.arrival_s[tasks])


@dataclass(frozen=True, slots=True)
class LeastEnergy:
    """The least-energy run time within arrival and deadline (mei2021 Algorithm 1)."""

    def wanted(self, view: View, kind: int, tasks: Ints) -> Floats:
        """The free optimum, or the whole window for deadline-prior tasks."""
        return view.frontier(kind, tasks).within(window_s(view, tasks)).time_s

    def binds(self, view: View, kind: int, tasks: Ints) -> Bools:
        """The free optimum ends too late."""
        return np.asarray(view.frontier(kind, tasks).t_opt_s > window_s(view, tasks))

    def points(self, view: View, kind: int, tasks: Ints, length_s: Floats) -> Floats:
        """The cheapest point of that run time."""
        return view.frontier(kind, tasks).within(length_s).points


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

    def wanted(self, view: View, kind: int, tasks: Ints) -> Floats:
        """Run time at the clock, or the shorter one the deadline needs."""
        time = self._time(view, kind, tasks)
        rows = np.flatnonzero(self.binds(view, kind, tasks))
        if rows.size:
            room_s = window_s(view, tasks[rows])
            time[rows] = view.frontier(kind, tasks[rows]).within(room_s).time_s
        return time

    def binds(self, view: View, kind: int, tasks: Ints) -> Bools:
        """The clock is too slow for the deadline, or the task was never measured at it."""
        return np.asarray(~(self._time(view, kind, tasks) <= window_s(view, tasks)))

    def points(self, view: View, kind: int, tasks: Ints, length_s: Floats) -> Floats:
        """The clock itself where the task runs at it, else the cheapest of that run time."""
        points = np.tile(self.point(view.platform.kinds[kind].clocks), (tasks.size, 1))
        other = np.flatnonzero(self._time(view, kind, tasks) != length_s)
        if other.size:
            frontier = view.frontier(kind, tasks[other])
            points[other] = frontier.within(length_s[other]).points
        return points

    def _time(self, view: View, kind: int, tasks: Ints) -> Floats:
        """Run time of tasks at the clock; NaN where one has no profile or point."""
        point = self.point(view.platform.kinds[kind].clocks)
        return view.at(tasks, kind, np.tile(point, (tasks.size, 1)))[0]
