"""A bound that also counts idling and wakes no schedule of independent tasks can avoid."""

from __future__ import annotations

import numpy as np

from downclock.planners.per_task import per_task_bound_j
from downclock.problem.platform import Platform
from downclock.problem.problem import Problem
from downclock.units import Bools, Floats


def energy_bound_j(problem: Problem, done: Bools) -> float | None:
    """`cluster_bound_j` where every task that can meet its deadline is done (n,)."""
    if not np.array_equal(done, np.isfinite(per_task_bound_j(problem))):
        return None
    return problem.once("cluster bound", lambda: cluster_bound_j(problem))


def cluster_bound_j(problem: Problem) -> float:
    """Least energy of any valid schedule that runs every task that can meet its deadline.

    Idling: a server on which b processors run pays for its host and for the others that idle;
    shared by b, that is a price of each second a task runs. It falls with b, and b is at most
    the size of the server and the number of tasks whose windows overlap.

    Wakes: a task that may not be interrupted runs in all of (deadline - shortest, arrival +
    shortest), so at a moment that lies in many such intervals as many processors work. Servers
    are taken largest and cheapest first; those awake at the start wake for nothing.

    Cost: n log n.
    """
    per_task = per_task_bound_j(problem)
    runs = np.isfinite(per_task)
    with_idling = np.maximum(per_task, _with_idling_j(problem))[runs]
    processors = max(busiest(problem), int(np.any(per_task[runs] > 0.0)))
    return float(with_idling.sum()) + _wakes_j(problem, processors)


def _with_idling_j(problem: Problem) -> Floats:
    """Least energy of each task and of its share of what idles beside it (n,)."""
    tasks = problem.tasks
    window_s = tasks.deadline_s - tasks.arrival_s
    price_w = _share_w(problem, _together(problem))
    best = np.full(len(tasks), np.inf)
    for k in np.unique(problem.platform.kind):
        hull = problem.frontier(k).mixed()
        free, hurried = hull.cheapest(price_w[:, k]), hull.within(window_s)
        in_time = free.time_s <= window_s  # else the price of time makes it no slower
        time_s = np.where(in_time, free.time_s, hurried.time_s)
        energy_j = np.where(in_time, free.energy_j, hurried.energy_j)
        ends = np.isfinite(energy_j)
        best[ends] = np.minimum(best, energy_j + price_w[:, k] * time_s)[ends]
    best[tasks.scale == 0.0] = 0.0
    return np.asarray(best * tasks.processors)


def _together(problem: Problem) -> Floats:
    """Most processors that can work while a task does: those of all windows that overlap (n,)."""
    tasks = problem.tasks
    begins, ends = np.argsort(tasks.arrival_s), np.argsort(tasks.deadline_s)
    begun = np.append(0, np.cumsum(tasks.processors[begins]))
    ended = np.append(0, np.cumsum(tasks.processors[ends]))
    before_end = np.searchsorted(tasks.arrival_s[begins], tasks.deadline_s, side="left")
    by_arrival = np.searchsorted(tasks.deadline_s[ends], tasks.arrival_s, side="right")
    return np.asarray(begun[before_end] - ended[by_arrival], dtype=np.float64)


def _share_w(problem: Problem, together: Floats) -> Floats:
    """Least power beside each running processor of a kind, of its server's host and idlers."""
    idle_w = np.array([kind.idle_w for kind in problem.platform.kinds])
    least = np.full((together.size, idle_w.size), np.inf)
    for host_w, count in _servers(problem.platform):
        has = count > 0.0
        busy = np.minimum(count.sum(), np.maximum(together, 1.0))
        share = np.maximum(host_w + count @ idle_w - busy * idle_w[has].max(), 0.0) / busy
        least[:, has] = np.minimum(least[:, has], share[:, None])
    return np.where(np.isfinite(least), least, 0.0)


def _servers(platform: Platform) -> list[tuple[float, Floats]]:
    """Host power and processors of each kind of the servers that differ in these."""
    kinds, servers = len(platform.kinds), platform.server_count
    cell = platform.server * kinds + platform.kind
    counts = np.bincount(cell, minlength=servers * kinds).reshape(servers, kinds)
    rows = np.column_stack([platform.host_w, counts])
    other = np.any(rows[1:] != rows[:-1], axis=1)  # equal servers mostly follow each other
    differ = np.unique(rows[np.append(True, other)], axis=0)
    return [(float(row[0]), row[1:]) for row in differ]


def busiest(problem: Problem) -> int:
    """Most processors that must work at one moment, whatever the schedule."""
    tasks = problem.tasks
    shortest, whole = np.full(len(tasks), np.inf), np.ones(len(tasks), dtype=np.bool_)
    for k in np.unique(problem.platform.kind):
        mine_s = problem.frontier(k).t_min_s
        shortest = np.minimum(shortest, mine_s)
        whole &= np.isinf(mine_s) | (problem.platform.kinds[k].interrupt == "none")
    fits = whole & np.isfinite(shortest) & (tasks.arrival_s + shortest <= tasks.deadline_s)
    first = tasks.deadline_s[fits] - shortest[fits]
    last = tasks.arrival_s[fits] + shortest[fits]
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
