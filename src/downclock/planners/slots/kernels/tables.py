"""What a task costs in every interval of slots, and at which levels it runs there.

Work is counted in whole units: at level ``k`` a slot does ``units[k]`` of them at ``power[k]``.
A table row holds, for a first slot ``s`` and a length, the least cost of doing a number of units
in those slots; infinite where they are too few. Levels do not include "off".
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.units import Array


@inner
def _sink(heap: Array, size: int, value: float) -> None:
    """Replace the greatest value of a max-heap."""
    k = 0
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= value:
            break
        heap[k] = heap[child]
        k = child
    heap[k] = value


@inner
def _rise(heap: Array, size: int, value: float) -> None:
    """Add a value to a max-heap of ``size`` values."""
    k = size
    while k > 0 and heap[(k - 1) // 2] < value:
        heap[k] = heap[(k - 1) // 2]
        k = (k - 1) // 2
    heap[k] = value


@compiled
def step_tables(price: Array, step: Array, works: Array, longest: int) -> Array:
    """Return (works, slots, longest): sums of the cheapest unit steps of each interval.

    Only for equally spaced levels of convex power: ``step[k]`` is what the (k+1)-th unit of a
    slot adds, rising.
    """
    slots = price.size
    table = np.full((works.size, slots, longest), np.inf)
    heap = np.empty(max(1, works.max()))
    for w in range(works.size):
        need = works[w]
        for s in range(slots):
            size, total = 0, 0.0
            for length in range(1, min(longest, slots - s) + 1):
                rate = price[s + length - 1]
                for k in range(step.size):
                    value = rate * step[k]
                    if size < need:
                        _rise(heap, size, value)
                        size += 1
                        total += value
                    elif value < heap[0]:
                        total += value - heap[0]
                        _sink(heap, size, value)
                    else:
                        break
                if size == need:
                    table[w, s, length - 1] = max(total, 0.0)
    return table


@compiled
def any_tables(
    price: Array, units: Array, power: Array, works: Array, longest: int, pause: bool
) -> Array:
    """Return (works, slots, longest) for any levels and power: a knapsack over units.

    Without ``pause`` every slot of the interval runs at some level.
    """
    slots, top = price.size, works.max()
    table = np.full((works.size, slots, longest), np.inf)
    done, after = np.empty(top + 1), np.empty(top + 1)
    for s in range(slots):
        done[:] = np.inf
        done[0] = 0.0
        for length in range(1, min(longest, slots - s) + 1):
            rate = price[s + length - 1]
            for u in range(top + 1):
                after[u] = done[u] if pause else np.inf
            for u in range(top + 1):
                if done[u] == np.inf:
                    continue
                for k in range(units.size):
                    v = min(u + units[k], top)
                    after[v] = min(after[v], done[u] + rate * power[k])
            done, after = after, done
            for w in range(works.size):
                best = np.inf
                for u in range(works[w], top + 1):
                    best = min(best, done[u])
                table[w, s, length - 1] = best
    return table


@compiled
def interval_levels(price: Array, units: Array, power: Array, need: int, pause: bool) -> Array:
    """Return the cheapest level of each slot of one interval, -1 for off.

    What is not needed at the end is given back.
    """
    slots = price.size
    cost = np.full((slots + 1, need + 1), np.inf)
    choice = np.full((slots + 1, need + 1), -1, np.int64)
    origin = np.zeros((slots + 1, need + 1), np.int64)
    cost[0, 0] = 0.0
    for t in range(slots):
        for u in range(need + 1):
            if cost[t, u] == np.inf:
                continue
            if pause and cost[t, u] < cost[t + 1, u]:
                cost[t + 1, u], choice[t + 1, u], origin[t + 1, u] = cost[t, u], -1, u
            for k in range(units.size):
                v = min(u + units[k], need)
                value = cost[t, u] + price[t] * power[k]
                if value < cost[t + 1, v]:
                    cost[t + 1, v], choice[t + 1, v], origin[t + 1, v] = value, k, u
    level = np.full(slots, -1, np.int64)
    u = need
    for t in range(slots, 0, -1):
        level[t - 1] = choice[t, u]
        u = origin[t, u]
    _give_back(level, units, need)
    return level


@inner
def _give_back(level: Array, units: Array, need: int) -> None:
    """Drop last slots that are not needed, then lower the last one to what is needed."""
    done = 0
    for t in range(level.size):
        if level[t] >= 0:
            done += units[level[t]]
    for t in range(level.size - 1, -1, -1):
        if level[t] < 0:
            continue
        own = units[level[t]]
        if done - own >= need:
            level[t] = -1
            done -= own
            continue
        for k in range(level[t]):
            if done - own + units[k] >= need:
                level[t] = k
                break
        return


@compiled
def cheapest_held(table: Array, toll: Array) -> tuple[Array, Array]:
    """Return the least cost of each work, machine included, from and up to each slot.

    Both are (works, slots): over all intervals that start in a slot or later, and over all that
    end in it or sooner. ``toll`` (slots + 1,) is the running sum of what holding a machine costs in
    each slot.
    """
    works, slots, longest = table.shape
    start, end = np.full((works, slots), np.inf), np.full((works, slots), np.inf)
    for w in range(works):
        for s in range(slots):
            for length in range(1, min(longest, slots - s) + 1):
                held = toll[s + length] - toll[s]
                if held > start[w, s]:  # what is longer is dearer
                    break
                cost = table[w, s, length - 1] + held
                start[w, s] = min(start[w, s], cost)
                end[w, s + length - 1] = min(end[w, s + length - 1], cost)
        for s in range(1, slots):
            end[w, s] = min(end[w, s], end[w, s - 1])
            start[w, slots - 1 - s] = min(start[w, slots - 1 - s], start[w, slots - s])
    return start, end
