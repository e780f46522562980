"""Lengths from a grid of voltages, as in the public code of mei2021: a named reading, not advice.

The code tries voltages in steps of 0.05, runs the core as fast as each allows (Theorem 1) and
takes the best memory clock for it. A task whose deadline binds gets the memory clock that just
meets it, as the paper says; with ``slack`` the best voltage that is in time as it is, which is what
the published numbers need.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.engine.view import View
from downclock.errors import InvalidInput
from downclock.planners.lists.lengths import LeastEnergy, window_s
from downclock.power.frontier import MemoryRule
from downclock.units import Floats, Ints

FINEST = 1e-3
"""Least step: all voltages between the least and the greatest are tried one by one."""


@dataclass(frozen=True, slots=True)
class VoltageGrid(LeastEnergy):
    """The least-energy run time over voltages ``step`` apart (mei2021's public code: 0.05).

    Kinds without continuous GPU clocks, and tasks for which no voltage of the grid is fast
    enough, use the exact optimum; so does the question whose deadline binds.
    """

    step: float = 0.05
    slack: bool = False

    def __post_init__(self) -> None:
        if not FINEST <= self.step < np.inf:
            raise InvalidInput(f"must be at least {FINEST:g}", field="grid", value=self.step)

    def wanted(self, view: View, kind: int, tasks: Ints) -> Floats:
        """Run time of the best point within the window."""
        room_s = window_s(view, tasks)
        time, _ = self._best(view, kind, tasks, room_s, exactly=False)
        rest = np.flatnonzero(~np.isfinite(time))
        if rest.size:
            time[rest] = view.frontier(kind, tasks[rest]).within(room_s[rest]).time_s
        return time

    def points(self, view: View, kind: int, tasks: Ints, length_s: Floats) -> Floats:
        """The best point of the grid with exactly that run time."""
        _, points = self._best(view, kind, tasks, length_s, exactly=True)
        rest = np.flatnonzero(~np.isfinite(points[:, 0]))
        if rest.size:
            points[rest] = view.frontier(kind, tasks[rest]).within(length_s[rest]).points
        return points

    def _best(
        self, view: View, kind: int, tasks: Ints, limit_s: Floats, *, exactly: bool
    ) -> tuple[Floats, Floats]:
        """Time and point of least energy per task; NaN where the grid has none."""
        frontier = view.frontier(kind, tasks)
        every, best = np.arange(tasks.size), np.full(tasks.size, np.inf)
        time, points = np.full(tasks.size, np.nan), np.full((tasks.size, 3), np.nan)
        how: MemoryRule = "exactly" if exactly else "free" if self.slack else "within"
        for setting in view.platform.kinds[kind].clocks.voltages(self.step):
            found = frontier.at_core(setting, limit_s, every, how)
            better = found.energy_j < best
            best[better], time[better] = found.energy_j[better], found.time_s[better]
            points[better] = found.points[better]
        return time, points
