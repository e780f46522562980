"""Order and paths of a graph given as edge arrays."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled
from downclock.units import Floats, Ints


@compiled
def _sweep(n: int, before: Ints, after: Ints, first: Ints, out: Ints) -> tuple[Ints, int]:
    """Kahn's algorithm over edges sorted by ``before``; ``first[t]:first[t+1]`` are t's edges."""
    waiting = np.zeros(n, dtype=np.int64)
    for edge in range(after.size):
        waiting[after[edge]] += 1
    placed = 0
    for task in range(n):
        if waiting[task] == 0:
            out[placed] = task
            placed += 1
    head = 0
    while head < placed:
        task = out[head]
        head += 1
        for edge in range(first[task], first[task + 1]):
            waiting[after[edge]] -= 1
            if waiting[after[edge]] == 0:
                out[placed] = after[edge]
                placed += 1
    return out, placed


def topological_order(n: int, before: Ints, after: Ints) -> tuple[Ints, int]:
    """Return (order, placed): ``placed < n`` where a cycle keeps the rest out."""
    by_before = np.argsort(before, kind="stable")
    first = np.searchsorted(before[by_before], np.arange(n + 1)).astype(np.int64)
    out = np.empty(n, dtype=np.int64)
    return _sweep(n, before[by_before], after[by_before], first, out)


@compiled
def longest_from(weight: Floats, order: Ints, at: Ints, after: Ints) -> Floats:
    """Return the longest path that starts at each task and follows ``after``, itself included.

    With successors and a topological order these are bottom levels; with predecessors and the
    reversed order, top levels plus the task itself.
    """
    level = np.zeros(weight.size, np.float64)
    for k in range(order.size - 1, -1, -1):
        i = order[k]
        best = 0.0
        for e in range(at[i], at[i + 1]):
            best = max(best, level[after[e]])
        level[i] = best + weight[i]
    return level
