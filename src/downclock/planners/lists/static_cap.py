"""What operators do today: one clock cap for every job, the best one chosen in hindsight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from downclock.engine.play import plan
from downclock.engine.view import View
from downclock.planners.lists.lengths import OneClock, window_s
from downclock.planners.lists.policy import ListPolicy
from downclock.planners.portfolio import lost_and_cost
from downclock.power.points import Clocks
from downclock.problem.problem import Problem
from downclock.schedule.schedule import Schedule
from downclock.units import Floats

_STEPS = 9
"""Caps tried along each clock of a continuous kind, twice."""

_PLANNED, _LITTLE = 8, 5000
"""Caps that are planned and billed, those with the least run energy; more where tasks are few, up
to so many tasks in all: on servers that cost much while awake a faster one may be best."""

_MANY = 100_000
"""Of more tasks only the cap of the least run energy is planned, beside the default clock."""


@dataclass(frozen=True, slots=True)
class StaticCap:
    """Run every job at one clock; a job that needs a faster one to be on time gets it.

    The cap is the one whose plan loses the fewest jobs and then needs the least energy. It is
    chosen with the whole trace in view, so it flatters this baseline: a tuner, no policy.
    """

    name: str
    base: ListPolicy

    def objection(self, problem: Problem) -> str | None:
        """As the list policy underneath."""
        return self.base.objection(problem)

    def tuned(self, problem: Problem) -> ListPolicy:
        """The list policy with the best cap; found once a problem."""
        cap = problem.once(("static cap", self.base), lambda: best_cap(problem, self.base))
        return replace(self.base, name=self.name, lengths=cap)


def best_cap(
    problem: Problem, base: ListPolicy, cost: Callable[[Problem, Schedule], Any] = lost_and_cost
) -> OneClock:
    """Return the cap whose plan has the least ``cost``.

    Caps are ranked by run energy, on a coarse grid and a fine one around its best where clocks
    are continuous; the first few, and the default clock, are planned and billed. Cost: tasks
    times caps.
    """
    kinds, clocks = problem.platform.kinds, [kind.clocks for kind in problem.platform.kinds]
    view = View(problem)
    every = view.tasks.add(problem.tasks, np.arange(len(problem.tasks)))
    room_s = window_s(view, every)
    needed_j = [view.frontier(k, every).within(room_s).energy_j for k in range(len(kinds))]
    # Every enumerated (core, memory) ratio, and a grid over every range (c, 2).
    rows = [each.points[:, :2] if each.listed else _grid(each.low, each.high) for each in clocks]
    ranked = _ranked(problem, np.unique(np.concatenate(rows), axis=0), needed_j)
    fine = _fine(clocks, ranked[0])
    if fine is not None:
        ranked = np.concatenate([_ranked(problem, fine, needed_j)[:1], ranked])
    count = max(len(problem.tasks), 1)
    planned = max(_PLANNED, _LITTLE // count) if count <= _MANY else 1
    caps = [OneClock(float(core), float(memory)) for core, memory in ranked[:planned]]
    return min(
        [*caps, OneClock()],
        key=lambda cap: cost(problem, plan(problem, replace(base, lengths=cap))),
    )


def _ranked(problem: Problem, caps: Floats, needed_j: list[Floats]) -> Floats:
    """Sort caps (c, 2) by the run energy they need."""
    totals = [_run_energy(problem, OneClock(core, memory), needed_j) for core, memory in caps]
    return np.asarray(caps[np.argsort(totals, kind="stable")])


def _fine(clocks: list[Clocks], best: Floats) -> Floats | None:
    """A grid one coarse step around the best cap, or None where no clock is continuous."""
    ranges = [each for each in clocks if not each.listed]
    if not ranges:
        return None
    low = np.min([each.low for each in ranges], axis=0)
    high = np.max([each.high for each in ranges], axis=0)
    step = (high - low) / (_STEPS - 1)
    caps = _grid(np.maximum(best - step, low), np.minimum(best + step, high))
    return np.concatenate([best[None, :], caps])


def _grid(low: Floats, high: Floats) -> Floats:
    axes = np.linspace(low, high, _STEPS)
    grid = np.meshgrid(np.unique(axes[:, 0]), np.unique(axes[:, 1]), indexing="ij")
    return np.stack(grid, -1).reshape(-1, 2)


def _run_energy(problem: Problem, cap: OneClock, needed_j: list[Floats]) -> float:
    """Sum over tasks of the cheapest kind's energy at the cap, or at the clock they need."""
    tasks, library = problem.tasks, problem.library
    room_s, best = tasks.deadline_s - tasks.arrival_s, np.full(len(tasks), np.inf)
    every = np.arange(len(library))  # once an application, however many tasks it has
    for k, kind in enumerate(problem.platform.kinds):
        unit_s, power_w = library.at(
            every, kind.name, np.tile(cap.point(kind.clocks), (every.size, 1))
        )
        time_s = unit_s[tasks.application] * tasks.scale
        energy_j = np.where(time_s <= room_s, time_s * power_w[tasks.application], needed_j[k])
        best = np.fmin(best, energy_j * tasks.processors)
    return float(best[np.isfinite(best)].sum())
