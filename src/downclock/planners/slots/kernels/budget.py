"""The greedy mapper of gerhards section 4: one budget per slot, one task after another."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.units import Array


@inner
def _next_task(ready: Array, done: Array, earliest: Array, before: Array, after: Array) -> int:
    """Return the task of least earliest start whose predecessors are all mapped; -1 at the end."""
    ready[:] = True
    for e in range(before.size):
        if not done[before[e]]:
            ready[after[e]] = False
    pick = -1
    for i in range(done.size):
        if not done[i] and ready[i] and (pick < 0 or earliest[i] < earliest[pick]):
            pick = i
    return pick


@inner
def _run_task(
    start: int, need: int, price: Array, units: Array, power: Array, budget: Array, level: Array
) -> int:
    """Fill ``level`` from slot ``start`` on at the highest level the budget allows.

    The last slot runs at the least level that is enough. Return the slot after it, or -1 where
    the slots run out.
    """
    t = start
    while need > 0:
        if t == price.size:
            return -1
        chosen = -1
        for k in range(units.size):
            if power[k] * price[t] > budget[t] + 1e-12:
                break
            chosen = k
            if units[k] >= need:
                break
        level[t] = chosen
        if chosen >= 0:
            need -= units[chosen]
            budget[t] -= power[chosen] * price[t]
        t += 1
    return t


@compiled
def map_by_budget(
    budget_per_slot: float, start: Array, before: Array, after: Array, work: Array,
    price: Array, units: Array, power: Array,
) -> tuple[float, Array, Array]:  # fmt: skip
    """Return (cost, first slots, last slots); infinite cost where a task ends too late.

    ``start`` are the first slots of the given schedule S; edges hold its order on every machine
    as well as the graph's.
    """
    n = start.size
    budget = np.full(price.size, budget_per_slot)
    earliest, last = start.copy(), np.full(n, -1, np.int64)
    done, ready = np.zeros(n, np.bool_), np.empty(n, np.bool_)
    level = np.full(price.size, -1, np.int64)
    cost = 0.0
    for _ in range(n):
        i = _next_task(ready, done, earliest, before, after)
        at = 0
        for e in range(before.size):
            if after[e] == i:
                at = max(at, last[before[e]] + 1)
        end = _run_task(at, work[i], price, units, power, budget, level)
        if end < 0:
            return np.inf, earliest, last
        for t in range(at, end):
            if level[t] >= 0:
                cost += power[level[t]] * price[t]
        earliest[i], last[i], done[i] = at, end - 1, True
        for e in range(before.size):
            if before[e] == i:
                earliest[after[e]] = max(earliest[after[e]], end)
    return cost, earliest, last
