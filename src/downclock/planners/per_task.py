"""Lower bounds on the energy of any valid schedule of independent tasks."""

from __future__ import annotations

import numpy as np

from downclock.problem.problem import Problem
from downclock.units import Bools, Floats


def per_task_bound_j(problem: Problem) -> Floats:
    """Least run energy of each task between its arrival and its deadline (n,).

    Idle, shared, host, sleep and wake energy are never negative, so the sum over the tasks that
    run is a lower bound of any schedule that runs them. Clocks may change while a task runs
    unless its kind locks them. Infinite where no kind can meet the deadline; a gang counts once
    per processor. Cost: linear in the tasks, once a problem.
    """
    return problem.once("per-task bound", lambda: _per_task_bound_j(problem))


def energy_bound_j(problem: Problem, done: Bools) -> float:
    """What the tasks that are done (n,) need at least, each by itself."""
    return float(per_task_bound_j(problem)[done].sum())


def _per_task_bound_j(problem: Problem) -> Floats:
    tasks = problem.tasks
    window_s = tasks.deadline_s - tasks.arrival_s
    best = np.full(len(tasks), np.inf)
    for k, kind in enumerate(problem.platform.kinds):
        if not np.any(problem.platform.kind == k):
            continue
        frontier = problem.frontier(k)
        one = frontier if kind.clock == "locked" else frontier.mixed()
        best = np.minimum(best, one.within(window_s).energy_j)
    best[tasks.scale == 0.0] = 0.0
    best *= tasks.processors
    best.setflags(write=False)
    return best
