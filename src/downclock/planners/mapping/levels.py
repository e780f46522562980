"""Levels: the clocks of each kind as a list, with every task's time and power at them.

Continuous clocks are sampled; the fastest point is always among the levels. They are those of the
library, so they do not change with the tasks that come.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.engine.tasks import grown
from downclock.engine.view import View
from downclock.planners.objections import not_independent
from downclock.power.library import Library
from downclock.problem.platform import Kind
from downclock.problem.problem import Problem
from downclock.units import Floats, Ints

CORE_STEPS, MEMORY_STEPS = 8, 4
"""Samples along continuous clocks."""


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Clocks of one kind, slowest first.

    Attributes:
        points: operating points (l, 3).
        unit_s, power_w: of a unit of work of every application (a, l); infinite and NaN where
            one cannot run.
        speed: least speed-up over all applications relative to the last level (l,), never
            falling: a task takes at most top time / speed.
    """

    points: Floats
    unit_s: Floats
    power_w: Floats
    speed: Floats


@dataclass(slots=True, eq=False)
class TaskLevels:
    """Time and power of the tasks told so far at every level of a kind (n, l)."""

    levels: Levels
    time_s: Floats
    power_w: Floats


def objection_to_levels(problem: Problem) -> str | None:
    """Say why a policy of levels cannot plan a problem, or None."""
    platform, objection = problem.platform, not_independent(problem)
    if objection is not None:
        return objection
    if np.any((platform.wake_s > 0.0) & ~platform.initially_on):
        return (
            "servers take time to wake, but this policy needs all of them on from the start"
            ' (initially = "on")'
        )
    for kind in platform.kinds:
        if _levels(problem.library, kind).points.shape[0] == 0:
            return f"its tasks have no clock of kind '{kind.name}' in common, which levels need"
    return None


def levels_of(view: View, kind: int) -> Levels:
    """Levels of one kind, computed once."""
    spec = view.platform.kinds[kind]
    return view.once(("levels", kind), lambda: _levels(view.library, spec))


def task_levels(view: View) -> list[TaskLevels]:
    """Levels of every kind with the tasks told so far."""
    every = [levels_of(view, k) for k in range(len(view.platform.kinds))]
    made = [TaskLevels(each, each.unit_s[:0], each.power_w[:0]) for each in every]
    learn(made, view, np.arange(len(view.tasks)))
    return made


def learn(levels: list[TaskLevels], view: View, tasks: Ints) -> None:
    """Add tasks on every kind."""
    application, scale = view.tasks.application[tasks], view.tasks.scale[tasks]
    size = int(tasks.max(initial=-1)) + 1
    for each in levels:
        each.time_s, each.power_w = grown(each.time_s, size), grown(each.power_w, size)
        each.time_s[tasks] = each.levels.unit_s[application] * scale[:, None]
        each.power_w[tasks] = each.levels.power_w[application]


def _levels(library: Library, kind: Kind) -> Levels:
    every, table = np.arange(len(library)), kind.clocks.grid(CORE_STEPS, MEMORY_STEPS)
    columns = [library.at(every, kind.name, np.tile(point, (every.size, 1))) for point in table]
    time_s = np.stack([time for time, _ in columns], axis=1)
    power_w = np.stack([power for _, power in columns], axis=1)
    # A level some application was never measured at cannot be promised to all of them.
    runs = np.isfinite(time_s).any(axis=1)
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
