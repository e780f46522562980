"""Annealing for the least weighted makespan of a task graph on equal cores.

Two kernels. `anneal_queue` changes the order in which a greedy list schedule takes ready tasks.
`anneal_starts` then moves start times: the weighted makespan is no regular objective, so
delaying tasks that nobody waits for, to run beside others, pays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from downclock.kernels.compiling import compiled
from downclock.planners.chip.kernels.lists import greedy_into

Array = np.ndarray[Any, np.dtype[Any]]


@compiled
def _random(state: Array) -> float:
    """Return the next number in (0, 1) of a small generator (Park and Miller 1988)."""
    state[0] = state[0] * 48271 % 2147483647
    return state[0] / 2147483647.0


@compiled
def anneal_queue(
    work: Array,
    task_at: Array,
    pred_at: Array,
    succ_at: Array,
    succ: Array,
    weight: Array,
    rounds: int,
    hot: float,
    cold: float,
    seed: int,
) -> tuple[Array, Array, float]:
    """Anneal the queue of a greedy list schedule; return (starts, queue, weighted makespan).

    ``weight[m]`` is the cost of a cycle with m active cores; ``hot`` and ``cold`` are the first
    and last temperature. A move takes one task of the queue to a place nearby.
    """
    n, cores = work.size, weight.size - 1
    state = np.array([seed % 2147483646 + 1])
    queue = task_at.copy()
    rank = np.empty(n, np.int64)
    for k in range(n):
        rank[queue[k]] = k
    start, core, omega = np.zeros(n), np.empty(n, np.int64), np.zeros(cores + 1)
    missing, heap, stack = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n + 1, np.int64)
    busy_until, running = np.zeros(cores), np.empty(cores, np.int64)
    cost = np.inf
    best, best_start, best_queue = np.inf, start.copy(), queue.copy()
    a, b = 0, 0
    for r in range(rounds):
        if r > 0:
            a = int(_random(state) * n)
            reach = 1 + int(_random(state) ** 2 * n)
            b = a + reach if _random(state) < 0.5 else a - reach
            b = min(max(b, 0), n - 1)
            _carry(queue, rank, a, b)
        greedy_into(
            work, rank, pred_at, succ_at, succ, queue, start, core, omega,
            missing, heap, stack, busy_until, running,
        )  # fmt: skip
        value = 0.0
        for m in range(1, cores + 1):
            value += omega[m] * weight[m]
        heat = hot * (cold / hot) ** (r / rounds)
        if value <= cost or _random(state) < np.exp((cost - value) / heat):
            cost = value
            if value < best - 1e-12:
                best = value
                best_start[:] = start
                best_queue[:] = queue
        else:
            _carry(queue, rank, b, a)
    return best_start, best_queue, best


@compiled
def _carry(queue: Array, rank: Array, a: int, b: int) -> None:
    """Take the task at place ``a`` of the queue to place ``b``."""
    task = queue[a]
    step = 1 if b > a else -1
    for k in range(a, b, step):
        queue[k] = queue[k + step]
        rank[queue[k]] = k
    queue[b] = task
    rank[task] = b


@compiled
def _difference(begin: int, to: int, length: int) -> tuple[int, int, int, int]:
    """Cycles that a task leaves and enters when it moves, as two ranges."""
    if to > begin:
        return begin, min(begin + length, to), max(begin + length, to), to + length
    return max(begin, to + length), begin + length, to, min(begin, to + length)


@compiled
def _shift_cost(active: Array, weight: Array, begin: int, to: int, length: int) -> float:
    """Change in weighted makespan if a task moves; prohibitive where it would lack a core."""
    change = 0.0
    leave_a, leave_b, enter_a, enter_b = _difference(begin, to, length)
    for t in range(enter_a, enter_b):
        m = active[t]
        change += weight[m + 1] - weight[m]
    for t in range(leave_a, leave_b):
        m = active[t]
        change += weight[m - 1] - weight[m]
    return change


@compiled
def _shift(active: Array, begin: int, to: int, length: int) -> None:
    leave_a, leave_b, enter_a, enter_b = _difference(begin, to, length)
    for t in range(leave_a, leave_b):
        active[t] -= 1
    for t in range(enter_a, enter_b):
        active[t] += 1


@compiled
def _window(
    i: int, start: Array, length: Array, pred_at: Array, pred: Array, succ_at: Array,
    succ: Array, horizon: int,
) -> tuple[int, int]:  # fmt: skip
    """Return the first and last start of a task that its neighbours allow."""
    low, high = 0, horizon
    for e in range(pred_at[i], pred_at[i + 1]):
        j = pred[e]
        low = max(low, start[j] + length[j])
    for e in range(succ_at[i], succ_at[i + 1]):
        high = min(high, start[succ[e]])
    return low, high - length[i]


@compiled
def anneal_starts(
    length: Array,
    start: Array,
    pred_at: Array,
    pred: Array,
    succ_at: Array,
    succ: Array,
    weight: Array,
    horizon: int,
    rounds: int,
    hot: float,
    cold: float,
    seed: int,
) -> tuple[Array, Array, float]:
    """Anneal integer start times; return (last starts, best starts, best weighted makespan).

    ``length`` and ``start`` are whole numbers; ``weight`` (cores + 2,) ends with the prohibitive
    cost of one core too many. A move takes one task anywhere between its neighbours in the
    graph, or pushes it and all that stand in its way a little.
    """
    n = length.size
    state = np.array([seed % 2147483646 + 1])
    start = start.copy()
    active = np.zeros(horizon + 1, np.int64)
    for i in range(n):
        for t in range(start[i], start[i] + length[i]):
            active[t] += 1
    cost = 0.0
    for t in range(horizon):
        cost += weight[active[t]]
    best, best_start = cost, start.copy()
    moved, came = np.empty(n, np.int64), np.full(n, -1, np.int64)
    todo = np.empty(n, np.int64)
    heat = hot
    for r in range(rounds):
        if r % 256 == 0:
            heat = hot * (cold / hot) ** (r / rounds)
        i = int(_random(state) * n)
        low, high = _window(i, start, length, pred_at, pred, succ_at, succ, horizon)
        if high > low and _random(state) < 0.8:
            to = low + int(_random(state) * (high - low + 1))
            change = _shift_cost(active, weight, start[i], to, length[i])
            if change <= 0.0 or _random(state) < np.exp(-change / heat):
                _shift(active, start[i], to, length[i])
                start[i] = to
                cost += change
        else:
            by = 1 + int(_random(state) ** 3 * 12)
            if _random(state) < 0.5:
                count = _push(i, by, start, length, succ_at, succ, moved, came, todo, horizon)
            else:
                count = _push(i, -by, start, length, pred_at, pred, moved, came, todo, horizon)
            worst = -heat * np.log(_random(state))
            cost += _settle(active, weight, start, came, moved, length, count, worst)
        if cost < best - 1e-9:
            best = cost
            best_start[:] = start
    return start, best_start, best


@compiled
def _push_cost(
    active: Array, weight: Array, start: Array, came: Array, moved: Array, length: Array,
    count: int,
) -> float:  # fmt: skip
    """Apply the moves and return the change in weighted makespan."""
    top = weight.size - 1
    change = 0.0
    for k in range(count):
        j = moved[k]
        leave_a, leave_b, enter_a, enter_b = _difference(came[j], start[j], length[j])
        for t in range(leave_a, leave_b):
            m = active[t]
            change += weight[min(m - 1, top)] - weight[min(m, top)]
            active[t] = m - 1
        for t in range(enter_a, enter_b):
            m = active[t]
            change += weight[min(m + 1, top)] - weight[min(m, top)]
            active[t] = m + 1
    return change


@compiled
def _settle(
    active: Array, weight: Array, start: Array, came: Array, moved: Array, length: Array,
    count: int, worst: float,
) -> float:  # fmt: skip
    """Keep the pushed starts if they cost at most ``worst``, else undo; return the change.

    A negative ``count`` says that the push failed. ``came`` is all -1 again afterwards.
    """
    change = np.inf
    if count > 0:
        change = _push_cost(active, weight, start, came, moved, length, count)
    if change > worst:
        change = 0.0
        for k in range(abs(count)):
            j = moved[k]
            if count > 0:
                _shift(active, start[j], came[j], length[j])
            start[j] = came[j]
    for k in range(abs(count)):
        came[moved[k]] = -1
    return change


@compiled
def _push(
    i: int, by: int, start: Array, length: Array, at: Array, after: Array,
    moved: Array, came: Array, todo: Array, horizon: int,
) -> int:  # fmt: skip
    """Move task ``i`` by ``by`` and whoever stands in its way just as far as needed.

    ``at, after`` are successors where ``by`` is positive, predecessors where it is negative.
    Returns how many tasks moved, negative where one would leave [0, horizon]; ``moved`` lists
    them, ``came[j]`` (-1 for the rest) is where task j came from.
    """
    n = start.size
    moved[0], came[i] = i, start[i]
    start[i] += by
    if start[i] < 0 or start[i] + length[i] > horizon:
        return -1
    count, head, size = 1, 0, 1
    todo[0] = i
    while size > 0:
        j = todo[head]
        head = (head + 1) % n
        size -= 1
        for e in range(at[j], at[j + 1]):
            k = after[e]
            to = (
                max(start[k], start[j] + length[j])
                if by > 0
                else (min(start[k], start[j] - length[k]))
            )
            if to == start[k]:
                continue
            if came[k] < 0:
                came[k] = start[k]
                moved[count] = k
                count += 1
            start[k] = to
            if to < 0 or to + length[k] > horizon or size == n:
                return -count
            todo[(head + size) % n] = k
            size += 1
    return count
