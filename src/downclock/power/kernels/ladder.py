"""Searches in ragged tables: row ``r`` owns entries ``offset[r]:offset[r + 1]``, sorted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from downclock.kernels.compiling import compiled
from downclock.units import Bools, Floats, Ints


@compiled
def last_at_most(offset: Ints, values: Floats, rows: Ints, bound: Floats) -> Ints:
    """Return the last entry of each row with a value of at most ``bound``, or -1."""
    found = np.full(rows.size, -1, dtype=np.int64)
    for i in range(rows.size):
        low, high = offset[rows[i]], offset[rows[i] + 1]
        while low < high:
            middle = (low + high) // 2
            if values[middle] <= bound[i]:
                found[i], low = middle, middle + 1
            else:
                high = middle
    return found


@compiled
def cheapest_near(
    offset: Ints, time: Floats, energy: Floats, rows: Ints, asked: Floats, slack: Floats
) -> Ints:
    """Return the entry of least energy with a time within ``slack`` of ``asked``, or -1."""
    found = np.full(rows.size, -1, dtype=np.int64)
    for i in range(rows.size):
        low, end = offset[rows[i]], offset[rows[i] + 1]
        high = end
        while low < high:
            middle = (low + high) // 2
            if time[middle] < asked[i] - slack[i]:
                low = middle + 1
            else:
                high = middle
        while low < end and time[low] <= asked[i] + slack[i]:
            if found[i] < 0 or energy[low] < energy[found[i]]:
                found[i] = low
            low += 1
    return found


@compiled
def lower_hull(offset: Ints, time: Floats, energy: Floats) -> Bools:
    """Mark the entries on the lower convex hull of each row's (time, energy)."""
    kept = np.zeros(time.size, dtype=np.bool_)
    stack = np.empty(time.size, dtype=np.int64)
    for row in range(offset.size - 1):
        size = 0
        for k in range(offset[row], offset[row + 1]):
            while size >= 2:
                i, j = stack[size - 2], stack[size - 1]
                before = (energy[j] - energy[i]) * (time[k] - time[j])
                after = (energy[k] - energy[j]) * (time[j] - time[i])
                if before < after:
                    break
                size -= 1
            stack[size] = k
            size += 1
        for s in range(size):
            kept[stack[s]] = True
    return kept


@compiled
def best_so_far(offset: Ints, energy: Floats) -> NDArray[np.int32]:
    """Return, per entry, the first entry of least energy among it and those before it."""
    best = np.empty(energy.size, dtype=np.int32)
    for row in range(offset.size - 1):
        least = offset[row]
        for k in range(offset[row], offset[row + 1]):
            if energy[k] < energy[least]:
                least = k
            best[k] = least
    return best
