"""A bound for graphs with barriers: every task of a stage precedes every task of the next.

The capacity prices cannot see that machines idle at a barrier. Between two barrier times a
stage's work is one liquid on at most as many machines as it has tasks; the best barrier times are
found by dynamic programming over slots.
"""

from __future__ import annotations

import numpy as np

from downclock.planners.slots.bounds import SAFE
from downclock.planners.slots.model import SlotGraphIndex
from downclock.units import Floats, Ints

LARGEST = 20_000_000
"""Table entries that are still worth computing."""


def stages(index: SlotGraphIndex) -> list[Ints]:
    """Split the tasks at the barriers, in order; one stage where there is none."""
    n = len(index.graph)
    count = np.bitwise_count(index.bits).sum(axis=1).astype(np.int64)
    by_count = np.lexsort((np.arange(n), count))
    reached = np.zeros(index.bits.shape[1], dtype=np.uint64)
    common = np.zeros((n + 1, index.bits.shape[1]), dtype=np.uint64)
    common[n] = ~np.uint64(0)
    for k in range(n - 1, -1, -1):
        common[k] = common[k + 1] & index.bits[by_count[k]]
    found: list[Ints] = []
    begin = 0
    for k in range(n):
        task = by_count[k]
        reached[task // 64] |= np.uint64(1) << np.uint64(task % 64)
        if np.all((common[k + 1] & reached) == reached):
            found.append(by_count[begin : k + 1])
            begin = k + 1
    return found


def stage_bound(index: SlotGraphIndex) -> float:
    """Least cost over all barrier times of liquid stages; 0 where there are no barriers."""
    graph, parts = index.graph, stages(index)
    if len(parts) < 2 or len(parts) * graph.slots**2 > LARGEST:
        return 0.0
    from downclock.planners.slots.kernels.tables import step_tables

    step = graph.unit_steps()
    best = np.full(graph.slots + 1, np.inf)
    best[0] = 0.0
    known: dict[tuple[int, int, int], Floats] = {}
    for tasks in parts:
        need, wide = int(graph.work[tasks].sum()), min(graph.machines, tasks.size)
        least = int(index.length[tasks].max())
        key = (need, wide, least)
        if key not in known:
            table = step_tables(graph.price, step, np.array([need]), graph.slots, wide)[0]
            table[:, : least - 1] = np.inf
            known[key] = table
        best = _after(best, known[key])
    return float(best.min() * (1.0 - SAFE))


def _after(best: Floats, table: Floats) -> Floats:
    """Least cost of being done before each slot, the next stage included (slots + 1,)."""
    slots = table.shape[0]
    after = np.full(slots + 1, np.inf)
    for begin in range(slots):
        if np.isfinite(best[begin]):
            reach = slots - begin
            ends = best[begin] + table[begin, :reach]
            np.minimum(after[begin + 1 :], ends, out=after[begin + 1 :])
    return after
