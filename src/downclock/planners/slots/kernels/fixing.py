"""Which intervals a plan below some cost may use.

With a multiplier per slot for machines and one per slot and edge, tasks choose separately: what
all of them choose at best is a bound. An interval that is not a task's best adds what it is
dearer; it also keeps descendants from starting early and ancestors from ending late, which adds
what their own best intervals in what is left are dearer.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.planners.slots.kernels.cut import interval_cost
from downclock.units import Array


@compiled
def priced_intervals(
    table: Array, row: Array, lab_at: Array, lab: Array, start: Array, end: Array
) -> Array:
    """Return (n, slots, slots): table plus terms of first and last slot (n, slots).

    Infinite but for the labels of both, and where the first or last slot is not used: such an
    interval costs as much without it.
    """
    n, slots = start.shape
    value = np.full((n, slots, slots), np.inf)
    for i in range(n):
        for a in range(lab_at[2 * i], lab_at[2 * i + 1]):
            s = lab[a]
            for b in range(lab_at[2 * i + 1], lab_at[2 * i + 2]):
                e = lab[b]
                cost = interval_cost(table, row[i], s, e)
                same = cost * (1.0 + 1e-12) + 1e-300
                if cost == np.inf or interval_cost(table, row[i], s, e - 1) <= same:
                    continue
                if s + 1 < slots and interval_cost(table, row[i], s + 1, e) <= same:
                    continue
                value[i, s, e] = cost + start[i, s] + end[i, e]
    return value


@inner
def bests(value: Array, by_first: Array, by_last: Array) -> float:
    """Fill the least value of each task from each first slot on, and up to each last slot.

    ``value`` (n, slots, slots) is by task, first and last slot. Return the sum of the least.
    """
    n, slots, _ = value.shape
    total = 0.0
    for i in range(n):
        by_first[i, :], by_last[i, :] = np.inf, np.inf
        for s in range(slots):
            for e in range(s, slots):
                by_first[i, s] = min(by_first[i, s], value[i, s, e])
                by_last[i, e] = min(by_last[i, e], value[i, s, e])
        for s in range(slots - 2, -1, -1):
            by_first[i, s] = min(by_first[i, s], by_first[i, s + 1])
        for e in range(1, slots):
            by_last[i, e] = min(by_last[i, e], by_last[i, e - 1])
        total += by_first[i, 0]
    return total


@inner
def _forced(far: Array, by_first: Array, by_last: Array, i: int, low: Array, high: Array) -> None:
    """Fill what relatives of task i lose at least if it starts (low) or ends (high) in a slot."""
    n, slots = by_first.shape
    low[:], high[:] = 0.0, 0.0
    for j in range(n):
        best = by_first[j, 0]
        if far[i, j] >= 0:
            for e in range(slots):
                start = e + 1 + far[i, j]
                high[e] += by_first[j, start] - best if start < slots else np.inf
        if far[j, i] >= 0:
            for s in range(slots):
                end = s - 1 - far[j, i]
                low[s] += by_last[j, end] - best if end >= 0 else np.inf


@compiled
def fix_intervals(value: Array, far: Array, promised: float, upper: float) -> float:
    """Set ``value`` of intervals that no plan below ``upper`` uses to infinity; return the bound.

    ``promised`` is what the multipliers promise for all machines. Repeated until little changes, as
    fewer intervals make a better bound; infinite where no plan is left.
    """
    n, slots, _ = value.shape
    by_first, by_last = np.empty((n, slots)), np.empty((n, slots))
    low, high = np.empty(slots), np.empty(slots)
    bound = bests(value, by_first, by_last) - promised
    for _ in range(20):
        kept, dropped = 0, 0
        for i in range(n):
            _forced(far, by_first, by_last, i, low, high)
            room = upper - bound + by_first[i, 0]
            for s in range(slots):
                for e in range(s, slots):
                    if value[i, s, e] == np.inf:
                        continue
                    if value[i, s, e] + low[s] + high[e] > room:
                        value[i, s, e] = np.inf
                        dropped += 1
                    else:
                        kept += 1
        bound = max(bound, bests(value, by_first, by_last) - promised)
        if bound == np.inf or 50 * dropped <= kept:
            break
    return bound
