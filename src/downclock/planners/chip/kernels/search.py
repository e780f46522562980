"""Annealing for the least weighted makespan of a task graph on equal cores.

Two kernels. `anneal_queue` changes the order in which a greedy list schedule takes ready tasks.
`anneal_starts` then moves start times: the weighted makespan is no regular objective, so
delaying tasks that nobody waits for, to run beside others, pays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.planners.chip.kernels.lists import Graph, greedy_into, greedy_room
from downclock.units import Array


class Cooling(NamedTuple):
    """How to anneal: so many moves, from the first to the last temperature."""

    rounds: int
    hot: float
    cold: float
    seed: int


class Pushed(NamedTuple):
    """Tasks that a push has moved."""

    moved: Array  # (n,) which, as far as there are
    came: Array  # (n,) where each came from, -1 for the rest
    todo: Array  # (n,) those whose neighbours are still to be looked at


@inner
def _random(state: Array) -> float:
    """Return the next number in (0, 1) of a small generator (Park and Miller 1988)."""
    state[0] = state[0] * 48271 % 2147483647
    return state[0] / 2147483647.0


@compiled
def anneal_queue(
    graph: Graph, task_at: Array, weight: Array, cooling: Cooling
) -> tuple[Array, Array, float]:
    """Anneal the queue of a greedy list schedule; return (starts, queue, weighted makespan).

    ``weight[m]`` is the cost of a cycle with m active cores. A move takes one task of the queue to
    a place nearby.
    """
    n, cores = graph.work.size, weight.size - 1
    state = np.array([cooling.seed % 2147483646 + 1])
    queue = task_at.copy()
    ready, placed = greedy_room(queue, cores)
    rank, omega = ready.rank, placed.omega
    cost = np.inf
    best, best_start, best_queue = np.inf, placed.start.copy(), queue.copy()
    a, b = 0, 0
    for r in range(cooling.rounds):
        if r > 0:
            a = int(_random(state) * n)
            reach = 1 + int(_random(state) ** 2 * n)
            b = a + reach if _random(state) < 0.5 else a - reach
            b = min(max(b, 0), n - 1)
            _carry(queue, rank, a, b)
        greedy_into(graph, queue, ready, placed)
        value = 0.0
        for m in range(1, cores + 1):
            value += omega[m] * weight[m]
        heat = cooling.hot * (cooling.cold / cooling.hot) ** (r / cooling.rounds)
        if value <= cost or _random(state) < np.exp((cost - value) / heat):
            cost = value
            if value < best - 1e-12:
                best = value
                best_start[:] = placed.start
                best_queue[:] = queue
        else:
            _carry(queue, rank, b, a)
    return best_start, best_queue, best


@inner
def _carry(queue: Array, rank: Array, a: int, b: int) -> None:
    """Take the task at place ``a`` of the queue to place ``b``."""
    task = queue[a]
    step = 1 if b > a else -1
    for k in range(a, b, step):
        queue[k] = queue[k + step]
        rank[queue[k]] = k
    queue[b] = task
    rank[task] = b


@inner
def _difference(begin: int, to: int, length: int) -> tuple[int, int, int, int]:
    """Cycles that a task leaves and enters when it moves, as two ranges."""
    if to > begin:
        return begin, min(begin + length, to), max(begin + length, to), to + length
    return max(begin, to + length), begin + length, to, min(begin, to + length)


@inner
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


@inner
def _shift(active: Array, begin: int, to: int, length: int) -> None:
    leave_a, leave_b, enter_a, enter_b = _difference(begin, to, length)
    for t in range(leave_a, leave_b):
        active[t] -= 1
    for t in range(enter_a, enter_b):
        active[t] += 1


@inner
def _window(i: int, start: Array, graph: Graph, horizon: int) -> tuple[int, int]:
    """Return the first and last start of a task that its neighbours allow."""
    low, high = 0, horizon
    for e in range(graph.pred_at[i], graph.pred_at[i + 1]):
        j = graph.pred[e]
        low = max(low, start[j] + graph.work[j])
    for e in range(graph.succ_at[i], graph.succ_at[i + 1]):
        high = min(high, start[graph.succ[e]])
    return low, high - graph.work[i]


@compiled
def anneal_starts(
    graph: Graph, start: Array, weight: Array, horizon: int, cooling: Cooling
) -> tuple[Array, Array, float]:
    """Anneal integer start times; return (last starts, best starts, best weighted makespan).

    Work and ``start`` are whole numbers; ``weight`` (cores + 2,) ends with the prohibitive
    cost of one core too many. A move takes one task anywhere between its neighbours in the
    graph, or pushes it and all that stand in its way a little.
    """
    length, n = graph.work, graph.work.size
    state = np.array([cooling.seed % 2147483646 + 1])
    start = start.copy()
    active = np.zeros(horizon + 1, np.int64)
    for i in range(n):
        for t in range(start[i], start[i] + length[i]):
            active[t] += 1
    cost = 0.0
    for t in range(horizon):
        cost += weight[active[t]]
    best, best_start = cost, start.copy()
    pushed = Pushed(np.empty(n, np.int64), np.full(n, -1, np.int64), np.empty(n, np.int64))
    heat = cooling.hot
    for r in range(cooling.rounds):
        if r % 256 == 0:
            heat = cooling.hot * (cooling.cold / cooling.hot) ** (r / cooling.rounds)
        i = int(_random(state) * n)
        low, high = _window(i, start, graph, horizon)
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
                count = _push(i, by, start, length, graph.succ_at, graph.succ, pushed, horizon)
            else:
                count = _push(i, -by, start, length, graph.pred_at, graph.pred, pushed, horizon)
            worst = -heat * np.log(_random(state))
            cost += _settle(active, weight, start, pushed, length, count, worst)
        if cost < best - 1e-9:
            best = cost
            best_start[:] = start
    return start, best_start, best


@inner
def _push_cost(
    active: Array, weight: Array, start: Array, pushed: Pushed, length: Array, count: int
) -> float:
    """Apply the moves and return the change in weighted makespan."""
    top = weight.size - 1
    change = 0.0
    for k in range(count):
        j = pushed.moved[k]
        leave_a, leave_b, enter_a, enter_b = _difference(pushed.came[j], start[j], length[j])
        for t in range(leave_a, leave_b):
            m = active[t]
            change += weight[min(m - 1, top)] - weight[min(m, top)]
            active[t] = m - 1
        for t in range(enter_a, enter_b):
            m = active[t]
            change += weight[min(m + 1, top)] - weight[min(m, top)]
            active[t] = m + 1
    return change


@inner
def _settle(
    active: Array, weight: Array, start: Array, pushed: Pushed, length: Array, count: int,
    worst: float,
) -> float:  # fmt: skip
    """Keep the pushed starts if they cost at most ``worst``, else undo; return the change.

    A negative ``count`` says that the push failed. ``came`` is all -1 again afterwards.
    """
    moved, came, change = pushed.moved, pushed.came, np.inf
    if count > 0:
        change = _push_cost(active, weight, start, pushed, length, count)
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


@inner
def _push(
    i: int, by: int, start: Array, length: Array, at: Array, after: Array, pushed: Pushed,
    horizon: int,
) -> int:  # fmt: skip
    """Move task ``i`` by ``by`` and whoever stands in its way just as far as needed.

    ``at, after`` are successors where ``by`` is positive, predecessors where it is negative.
    Returns how many tasks moved, negative where one would leave [0, horizon].
    """
    n, (moved, came, todo) = start.size, pushed
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
            to = max(start[k], start[j] + length[j])
            if by < 0:
                to = min(start[k], start[j] - length[k])
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
