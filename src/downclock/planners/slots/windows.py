"""Windows that count machines too: all that must run before a task needs room before it."""

from __future__ import annotations

import numpy as np

from downclock.planners.slots.model import SlotGraphIndex
from downclock.units import Bools, Ints

MANY = 2000
"""Tasks above which machines are not counted: it takes a row of all others for each."""


def capacity_windows(index: SlotGraphIndex) -> tuple[Ints, Ints]:
    """Earliest first and latest last slot of each task (n,) in any valid plan.

    Besides the longest path: ancestors that cannot start before slot t need, at the highest level,
    so many slots that the machines are not done with them before a later one; likewise descendants.
    Where nothing fits, and for many tasks, the windows of the paths alone.
    """
    graph, n = index.graph, len(index.graph)
    if n > MANY:
        early, late, _ = index.windows(index.before, index.after)
        return early, late
    # Whether task j must end before task i starts (n, n).
    bits = np.unpackbits(index.bits.view(np.uint8), axis=1, bitorder="little", count=n)
    ancestor = bits.astype(bool)
    release, due = graph.release, graph.due
    early = _earliest(index.order, ancestor, index.length, release, graph.machines)
    backwards = np.ascontiguousarray(index.order[::-1])
    last = int(due.max(initial=0))
    tail = _earliest(backwards, ancestor.T, index.length, last - due, graph.machines)
    late = last - tail
    if n and np.any(early + index.length - 1 > late):
        early, late, _ = index.windows(index.before, index.after)
    return early, late


def _earliest(order: Ints, ancestor: Bools, length: Ints, release: Ints, machines: int) -> Ints:
    early = release.copy()
    for i in order:
        mine = np.flatnonzero(ancestor[i])
        if not mine.size:
            continue
        start = early[mine]
        by_start = np.argsort(-start, kind="stable")
        room = -(-np.cumsum(length[mine][by_start]) // machines)
        early[i] = max(early[i], (start + length[mine]).max(), (start[by_start] + room).max())
    return early
