"""Paths of a graph: redundant edges, longest paths, who precedes whom."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled
from downclock.units import Array


@compiled
def needed_edges(order: Array, succ_at: Array, succ: Array) -> tuple[Array, Array]:
    """Mark the edges that no longer path implies (transitive reduction), and who reaches whom.

    ``succ`` must list each task's successors in this order. Returns a mask of the edges
    and the reachable tasks as bits (n, n / 64 rounded up); cost m n / 64.
    """
    n = order.size
    reach = np.zeros((n, (n + 63) // 64), np.uint64)
    needed = np.zeros(succ.size, np.bool_)
    one = np.uint64(1)
    for k in range(n - 1, -1, -1):
        i = order[k]
        for e in range(succ_at[i], succ_at[i + 1]):
            j = succ[e]
            bit = one << np.uint64(j & 63)
            if reach[i, j >> 6] & bit:
                continue
            needed[e] = True
            reach[i, j >> 6] |= bit
            for word in range(reach.shape[1]):
                reach[i, word] |= reach[j, word]
    return needed, reach


@compiled
def relatives(reach: Array, work: Array) -> tuple[Array, Array]:
    """Return how many tasks precede or follow each task, and their work, both (n,)."""
    n = work.size
    count, weight = np.zeros(n, np.int64), np.zeros(n, np.float64)
    one = np.uint64(1)
    for i in range(n):
        for word in range(reach.shape[1]):
            bits = reach[i, word]
            j = 64 * word
            while bits:
                if bits & one:
                    count[i] += 1
                    count[j] += 1
                    weight[i] += work[j]
                    weight[j] += work[i]
                bits >>= one
                j += 1
    return count, weight


@compiled
def longest_before(
    weight: Array, order: Array, pred_at: Array, pred: Array, at_least: Array
) -> Array:
    """Return the longest path that ends before each task, or what is known to be longer.

    It is not the path with the task less the task: rounding would lose what is short beside it.
    """
    level = np.zeros(weight.size, np.float64)
    for k in range(order.size):
        i = order[k]
        best = at_least[i]
        for e in range(pred_at[i], pred_at[i + 1]):
            best = max(best, level[pred[e]] + weight[pred[e]])
        level[i] = best
    return level


@compiled
def keep_order(start: Array, work: Array, task: Array, is_end: Array) -> bool:
    """Push starts right by a solver's rounding until the events (k,) follow each other.

    An event is the start or the end of a task. Says whether all fell into place.
    """
    for _ in range(100):
        now, pushed = 0.0, False
        for k in range(task.size):
            i = task[k]
            length = work[i] if is_end[k] else 0.0
            if start[i] + length < now * (1.0 - 1e-14):
                start[i] = now - length
                pushed = True
            now = max(now, start[i] + length)
        if not pushed:
            return True
    return False
