"""A bound that also counts wakes no schedule of independent tasks can avoid."""

from __future__ import annotations

import numpy as np

from downclock.exact.bounds import per_task_bound_j
from downclock.problem.problem import Problem
from downclock.units import Floats


def cluster_bound_j(problem: Problem) -> float:
    """Least energy of any valid schedule that runs every task that can meet its deadline.

    The per-task bound, plus the wakes of as many servers as must be awake at one moment: even at
    its fastest a task runs in all of (deadline - shortest, arrival + shortest), so at a moment
    that lies in many such intervals as many processors work. Servers are taken largest and
    cheapest first; those awake at the start wake for nothing. Cost: n log n.
    """
    per_task = per_task_bound_j(problem)
    runs = np.isfinite(per_task)
    return float(per_task[runs].sum()) + _wakes_j(problem, busiest(problem))


def busiest(problem: Problem) -> int:
    """Most processors that must work at one moment, whatever the schedule."""
    tasks = problem.tasks
    shortest = np.full(len(tasks), np.inf)
    for k in range(len(problem.platform.kinds)):
        shortest = np.minimum(shortest, problem.frontier(k).t_min_s)
    fits = np.isfinite(shortest) & (tasks.arrival_s + shortest <= tasks.deadline_s)
    first, last = (tasks.deadline_s - shortest)[fits], (tasks.arrival_s + shortest)[fits]
    must, count = first < last, tasks.processors[fits]
    at = np.concatenate([last[must], first[must]])
    step = np.concatenate([-count[must], count[must]])
    rank = np.lexsort((step, at))
    return int(np.cumsum(step[rank]).max(initial=0))


def _wakes_j(problem: Problem, processors: int) -> float:
    """Least wake energy of servers with so many processors in all."""
    platform = problem.platform
    sizes = np.diff(platform.first_processor)
    wake_j: Floats = np.where(platform.initially_on, 0.0, platform.wake_j)
    awake = int(sizes[platform.initially_on].sum())
    asleep = ~platform.initially_on
    largest = int(sizes[asleep].max(initial=1))
    needed = max(0, -(-(processors - awake) // largest))
    return float(np.sort(wake_j[asleep])[:needed].sum())
