"""Slots, orders and machines of task graphs: windows, list schedules, colouring by ancestry."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.units import Array

LAST = 1 << 62
"""A slot after all others."""


class Neighbours(NamedTuple):
    """Neighbours of tasks, ragged, and their ancestors (see `ancestor_bits`)."""

    pred_at: Array
    pred: Array
    succ_at: Array
    succ: Array
    bits: Array


class Lengths(NamedTuple):
    """How long a task is: as its ``work`` takes, but ``least`` to ``most`` slots (n,) each.

    ``done`` (slots + 1,) is the work done by each slot.
    """

    work: Array
    least: Array
    most: Array
    done: Array


@compiled
def ancestor_bits(order: Array, pred_at: Array, pred: Array) -> Array:
    """Return (n, words): bit j of row i is set where task j must end before task i starts."""
    n = order.size
    bits = np.zeros((n, (n + 63) // 64), np.uint64)
    one = np.uint64(1)
    for k in range(n):
        i = order[k]
        for e in range(pred_at[i], pred_at[i + 1]):
            j = pred[e]
            for w in range(bits.shape[1]):
                bits[i, w] |= bits[j, w]
            bits[i, j // 64] |= one << np.uint64(j % 64)
    return bits


@inner
def is_ancestor(bits: Array, earlier: int, task: int) -> bool:
    """Tell whether ``earlier`` must end before ``task`` starts."""
    return (bits[task, earlier // 64] >> np.uint64(earlier % 64)) & np.uint64(1) != 0


@compiled
def slot_windows(
    before: Array, after: Array, length: Array, release: Array, due: Array
) -> tuple[Array, Array, bool]:
    """Return (earliest first slot, latest last slot, whether every task fits).

    Edges must be listed by a topological order of ``before``; ``length`` is the least number of
    slots of each task, ``due`` its last allowed slot.
    """
    early, late = release.copy(), due.copy()
    for e in range(before.size):
        early[after[e]] = max(early[after[e]], early[before[e]] + length[before[e]])
    for e in range(before.size - 1, -1, -1):
        late[before[e]] = min(late[before[e]], late[after[e]] - length[after[e]])
    for i in range(length.size):
        if early[i] + length[i] - 1 > late[i]:
            return early, late, False
    return early, late, True


@inner
def _machine_for(
    bits: Array, task: int, at: int, free_at: Array, last_task: Array
) -> tuple[int, int]:
    """Return (machine, when): one that ancestry frees at no cost, else the one idle longest.

    Where none is free in time it is the one that is free first.
    """
    kin, idle, soon = -1, -1, 0
    for c in range(free_at.size):
        if free_at[c] <= at:
            own = last_task[c] >= 0 and is_ancestor(bits, last_task[c], task)
            if own and (kin < 0 or free_at[c] > free_at[kin]):
                kin = c
            if idle < 0 or free_at[c] < free_at[idle]:
                idle = c
        if free_at[c] < free_at[soon]:
            soon = c
    if kin >= 0:
        return kin, at
    if idle >= 0:
        return idle, at
    return soon, free_at[soon]


@compiled
def coloured(first: Array, last: Array, by_first: Array, bits: Array, machines: int) -> Array:
    """Return a machine per task; -1 where more than ``machines`` run at once."""
    free_at, last_task = np.zeros(machines, np.int64), np.full(machines, -1, np.int64)
    machine = np.full(first.size, -1, np.int64)
    for k in range(by_first.size):
        i = by_first[k]
        c, when = _machine_for(bits, i, first[i], free_at, last_task)
        if when > first[i]:
            continue
        machine[i], free_at[c], last_task[c] = c, last[i] + 1, i
    return machine


@inner
def _slots_for(slots: Lengths, task: int, at: int) -> int:
    """Return how many slots a task takes that starts in slot ``at``."""
    done, length = slots.done, slots.least[task]
    most = min(slots.most[task], done.size - at)
    while length < most and done[at + length] - done[at] < slots.work[task]:
        length += 1
    return length


@inner
def _next_task(ready: Array, size: int, key: Array, may_start: Array, soonest: int) -> int:
    """Return the place of the ready task of least key among those that can start first.

    All that can start by the slot ``soonest`` are such.
    """
    pick, when = 0, max(may_start[ready[0]], soonest)
    for k in range(1, size):
        at = max(may_start[ready[k]], soonest)
        if at < when or (at == when and key[ready[k]] < key[ready[pick]]):
            pick, when = k, at
    return pick


@compiled
def listed(
    key: Array, slots: Lengths, eager: bool, release: Array, graph: Neighbours, machines: int
) -> tuple[Array, Array, Array, int]:
    """Return (first slot, length, machine, end) of a list schedule.

    The task of least key whose predecessors have their slots is next, and starts when these and a
    machine allow; where ``eager``, only those that can start first are looked at, so that no
    machine waits for a task while another could run. No slot is looked at twice: later tasks never
    move earlier ones.
    """
    n = key.size
    first, machine, length = np.zeros(n, np.int64), np.zeros(n, np.int64), slots.least.copy()
    free_at, last_task = np.zeros(machines, np.int64), np.full(machines, -1, np.int64)
    may_start, waiting = release.copy(), np.empty(n, np.int64)
    ready, size = np.empty(n, np.int64), 0
    for i in range(n):
        waiting[i] = graph.pred_at[i + 1] - graph.pred_at[i]
        if waiting[i] == 0:
            ready[size] = i
            size += 1
    end = 0
    while size > 0:
        soonest = free_at.min() if eager else LAST
        pick = _next_task(ready, size, key, may_start, soonest)
        i = ready[pick]
        size -= 1
        ready[pick] = ready[size]
        c, at = _machine_for(graph.bits, i, may_start[i], free_at, last_task)
        first[i], machine[i] = at, c
        length[i] = _slots_for(slots, i, at)
        free_at[c], last_task[c] = at + length[i], i
        end = max(end, free_at[c])
        for e in range(graph.succ_at[i], graph.succ_at[i + 1]):
            j = graph.succ[e]
            may_start[j] = max(may_start[j], free_at[c])
            waiting[j] -= 1
            if waiting[j] == 0:
                ready[size] = j
                size += 1
    return first, length, machine, end


@compiled
def machine_edges(machine: Array, by_first: Array, bits: Array, machines: int) -> Array:
    """Return rows (before, after) of neighbours on a machine that the graph does not order."""
    last_task = np.full(machines, -1, np.int64)
    rows = np.empty((machine.size, 2), np.int64)
    count = 0
    for k in range(by_first.size):
        i = by_first[k]
        j = last_task[machine[i]]
        if j >= 0 and not is_ancestor(bits, j, i):
            rows[count, 0], rows[count, 1] = j, i
            count += 1
        last_task[machine[i]] = i
    return rows[:count]


@compiled
def window_labels(
    early: Array, late: Array, length: Array, first: Array, last: Array, reach: int, stride: int
) -> tuple[Array, Array]:
    """Return labels of both variables of every task around its interval, or all (reach < 0).

    An interval outside its window is moved to the nearest end of it.
    """
    n = length.size
    at = np.zeros(2 * n + 1, np.int64)
    total = 0
    for i in range(n):
        total += 2 * (late[i] - early[i] - length[i] + 2)
    lab = np.empty(total, np.int64)
    size = 0
    for v in range(2 * n):
        i = v // 2
        low = early[i] if v % 2 == 0 else early[i] + length[i] - 1
        high = late[i] - length[i] + 1 if v % 2 == 0 else late[i]
        here = first[i] if v % 2 == 0 else last[i]
        here = min(max(here, low), high)
        step = 1 if reach < 0 else stride
        start = low if reach < 0 else here - reach * stride
        stop = high if reach < 0 else here + reach * stride
        for x in range(start, stop + 1, step):
            if low <= x <= high:
                lab[size] = x
                size += 1
        at[v + 1] = size
    return at, lab[:size].copy()
