"""Levels: the clocks of each kind as a list, with every task's time and power at them.

Continuous clocks are sampled; the fastest point is always among the levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.engine.policy import View
from downclock.problem.problem import Problem
from downclock.units import Floats

CORE_STEPS, MEMORY_STEPS = 8, 4
"""Samples along continuous clocks."""


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Clocks of one kind, slowest first.

    Attributes:
        points: operating points (l, 3).
        time_s, power_w: of whole tasks (n, l); infinite and NaN where one cannot run.
        speed: least speed-up over all tasks relative to the last level (l,), never falling: a
            task takes at most top time / speed.
    """

    points: Floats
    time_s: Floats
    power_w: Floats
    speed: Floats

    @property
    def top_s(self) -> Floats:
        """Time of each task at the fastest level (n,)."""
        return np.asarray(self.time_s[:, -1])


def objection_to_levels(problem: Problem) -> str | None:
    """Say why a policy of levels cannot plan a problem, or None."""
    platform = problem.platform
    if len(problem.edges):
        return "the tasks form a graph; this policy plans independent tasks"
    if platform.slot_s is not None:
        return "the platform is slotted; this policy plans in continuous time"
    if np.any(np.bincount(platform.chip) > 1):
        return "processors share a clock; this policy sets each clock by itself"
    if np.any((platform.wake_s > 0.0) & ~platform.initially_on):
        return (
            "servers take time to wake, but this policy needs all of them on from the start"
            ' (initially = "on")'
        )
    for k, kind in enumerate(platform.kinds):
        if levels_of(View(problem), k).points.shape[0] == 0:
            return f"its tasks have no clock of kind '{kind.name}' in common, which levels need"
    return None


def levels_of(view: View, kind: int) -> Levels:
    """Levels of one kind, computed once a problem."""
    return view.once(("levels", kind), lambda: _levels(view.problem, kind))


def _levels(problem: Problem, kind: int) -> Levels:
    n = len(problem.tasks)
    table = problem.platform.kinds[kind].clocks.grid(CORE_STEPS, MEMORY_STEPS)
    columns = [
        problem.at(np.arange(n), np.full(n, kind), np.tile(point, (n, 1))) for point in table
    ]
    time_s = np.stack([time for time, _ in columns], axis=1)
    power_w = np.stack([power for _, power in columns], axis=1)
    # A level some task was never measured at cannot be promised to all of them.
    runs = np.isfinite(time_s).any(axis=1) & (problem.tasks.scale > 0.0)
    whole = np.flatnonzero(np.isfinite(time_s[runs]).all(axis=0)) if runs.any() else np.arange(1)
    mean_s = np.array([np.mean(time_s[runs, k]) if runs.any() else 0.0 for k in whole])
    order = whole[np.argsort(-mean_s, kind="stable")]
    time_s, power_w, table = time_s[:, order], power_w[:, order], table[order]
    with np.errstate(invalid="ignore"):
        ratio = time_s[runs, -1:] / time_s[runs]
    speed = ratio.min(axis=0) if runs.any() and order.size else np.ones(order.size)
    speed = np.minimum.accumulate(speed[::-1])[::-1]
    time_s = np.where(np.isfinite(time_s), time_s, np.inf)
    return Levels(table, time_s, power_w, np.asarray(speed, dtype=np.float64))
