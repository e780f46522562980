"""Making room: all that waits is listed anew with one task more, by deadline.

Each task in turn takes the processors on which it ends first, behind what runs and what was listed
before it: at the run times that tasks want, then at the fastest, then those first that have to
start first. If all are in time these are the new reservations; else the old ones stay.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.kernels.ends import ends_by
from downclock.planners.cluster.kernels.board import Cluster, row_of
from downclock.planners.cluster.kernels.queues import all_waiting, wait
from downclock.planners.cluster.kernels.reserve import (
    book,
    is_wide,
    ready_s,
    set_attention,
    take_off,
    wanted_s,
)
from downclock.units import Floats, Ints

ANEW = 4096
"""Tasks that wait, up to which all are listed anew to make room for one more."""


@inner
def _pools_of(c: Cluster, i: int) -> Ints:
    """Mark kinds on which task ``i`` can run, and those that their tasks may take instead (k,)."""
    kinds = c.kinds.shape[1]
    pools = np.zeros(kinds, np.int64)
    for k in range(kinds):
        if c.curves.rows.short_s[row_of(c, i, k)] < np.inf:
            pools[k] = 1
    for _ in range(kinds):
        for kind in range(kinds):
            if np.any(c.mates[kind] * pools > 0):
                pools = np.maximum(pools, c.mates[kind])
    return pools


@inner
def _openings_s(c: Cluster, pools: Ints, now_s: float) -> Floats:
    """Return when the processors of each group are free of what runs, ascending (groups, most)."""
    most = 0
    for g in range(c.groups.up.size):
        most = max(most, c.groups.up[g])
    opens = np.full((c.groups.up.size, max(most, 1)), np.inf)
    for g in range(c.groups.up.size):
        j, up = c.groups.server[g], c.groups.up[g]
        if pools[c.groups.kind[g]] == 0 or c.servers.works[j] == 0:
            continue
        opens[g, :up] = ready_s(c, j, now_s)
        m, a = 0, c.groups.head[g]
        while a >= 0:
            if c.items.runs[a] == 1:
                for _ in range(c.items.count[a]):
                    if m < up:
                        opens[g, m] = c.items.end_s[a]
                        m += 1
            a = c.items.after[a]
        opens[g].sort()
    return opens


@inner
def _length_s(c: Cluster, i: int, k: int, start_s: float, hurry: bool) -> float:
    """Return the run time of task ``i`` in a list."""
    row = row_of(c, i, k)
    length = -1.0 if hurry else wanted_s(c, row, c.tasks.deadline_s[i] - start_s)
    return c.curves.rows.short_s[row] if length < 0.0 else length


@inner
def _in_time(c: Cluster, i: int, start_s: float, length_s: float) -> bool:
    return ends_by(start_s, length_s, c.tasks.deadline_s[i]) <= c.tasks.deadline_s[i]


@inner
def _soonest_of(c: Cluster, i: int, k: int, opens: Floats, hurry: bool) -> tuple[int, float, float]:
    """Return (group, start, length) of kind ``k`` where task ``i`` ends first; -1: none in time."""
    best, start_s, length_s, gang = -1, np.inf, np.inf, c.tasks.gang[i]
    for at in range(c.pools.first[k], c.pools.end[k]):
        g = c.pool_groups[at]
        if c.groups.up[g] >= gang and opens[g, gang - 1] < start_s:
            best, start_s = g, opens[g, gang - 1]
    if best < 0:
        return -1, 0.0, -1.0
    start_s = max(start_s, c.tasks.arrival_s[i])
    length_s = _length_s(c, i, k, start_s, hurry)
    return (best if _in_time(c, i, start_s, length_s) else -1), start_s, length_s


@inner
def _take(opens: Floats, g: int, count: int, up: int, end_s: float) -> None:
    """Let the first ``count`` processors of a group be free at ``end_s`` only."""
    opens[g, :count] = end_s
    opens[g, :up].sort()


@inner
def _wide_of(c: Cluster, i: int, k: int, opens: Floats, hurry: bool) -> tuple[Ints, float, float]:
    """Return (groups, start, length) of whole servers for task ``i``; no groups: none in time."""
    first, count = c.pools.first[k], c.pools.end[k] - c.pools.first[k]
    empty = np.empty(count)
    for at in range(count):
        g = c.pool_groups[first + at]
        up = c.groups.up[g]
        empty[at] = opens[g, up - 1] if up > 0 else np.inf
    need, start, m = c.tasks.gang[i], c.tasks.arrival_s[i], 0
    order = np.argsort(empty, kind="mergesort")
    while m < count and need > 0 and empty[order[m]] < np.inf:
        start = max(start, empty[order[m]])
        need -= c.groups.up[c.pool_groups[first + order[m]]]
        m += 1
    length = _length_s(c, i, k, start, hurry)
    if need > 0 or not length < np.inf or not _in_time(c, i, start, length):
        m = 0
    return c.pool_groups[first + order[:m]], start, length


@inner
def _place_of(c: Cluster, i: int, opens: Floats, hurry: bool) -> tuple[Ints, float, float]:
    """Return (groups, start, length) where task ``i`` ends first; no groups: none in time."""
    best, start_s, length_s, least = np.empty(0, np.int64), 0.0, -1.0, np.inf
    for k in range(c.kinds.shape[1]):
        if not c.curves.rows.short_s[row_of(c, i, k)] < np.inf:
            continue
        if is_wide(c, i, k):
            groups, start, length = _wide_of(c, i, k, opens, hurry)
        else:
            g, start, length = _soonest_of(c, i, k, opens, hurry)
            groups = np.full(1 if g >= 0 else 0, g)
        if groups.size > 0 and start + length < least:
            best, start_s, length_s, least = groups, start, length, start + length
    return best, start_s, length_s


@inner
def _listed(c: Cluster, tasks: Ints, opens: Floats, hurry: bool) -> tuple[Ints, Floats]:
    """Return pieces (task, group, count) and (start, length) of all; none: one is too late."""
    most = 0
    for i in tasks:
        most += min(c.tasks.gang[i], c.groups.up.size)
    where, when, m = np.empty((most, 3), np.int64), np.empty((most, 2)), 0
    for i in tasks:
        groups, start, length = _place_of(c, i, opens, hurry)
        if groups.size == 0:
            return where[:0], when[:0]
        left = c.tasks.gang[i]
        for g in groups:
            count = min(left, c.groups.up[g])
            where[m, 0], where[m, 1], where[m, 2] = i, g, count
            when[m, 0], when[m, 1] = start, length
            _take(opens, g, count, c.groups.up[g], start + length)
            left -= count
            m += 1
    return where[:m], when[:m]


@inner
def _reserve_listed(c: Cluster, where: Ints, when: Floats) -> None:
    """Give tasks, which have none, the reservations of a list."""
    for a in range(where.shape[0]):
        i, start, length = where[a, 0], when[a, 0], when[a, 1]
        c.tasks.start_s[i], c.tasks.length_s[i], c.tasks.bound[i] = start, length, 0
        book(c, i, where[a, 1], where[a, 2], start, start + length)
        wait(c, i)
        set_attention(c, c.groups.server[where[a, 1]])


@inner
def _by_deadline(c: Cluster, tasks: Ints) -> Ints:
    return tasks[np.argsort(c.tasks.deadline_s[tasks], kind="mergesort")]


@inner
def _by_latest_start(c: Cluster, tasks: Ints) -> Ints:
    """Return tasks by when they have to start at the latest, at their fastest."""
    start_s = c.tasks.deadline_s[tasks]
    for a in range(tasks.size):
        kind = max(c.kinds[tasks[a], 0], 0)
        start_s[a] -= c.curves.rows.short_s[row_of(c, tasks[a], kind)]
    return tasks[np.argsort(start_s, kind="mergesort")]


@inner
def make_room(c: Cluster, new: int, now_s: float) -> bool:
    """Reserve for task ``new`` and all that wait anew; False: not all can be in time."""
    return make_room_for(c, np.array([new]), now_s)


@inner
def make_room_for(c: Cluster, new: Ints, now_s: float) -> bool:
    """Reserve for tasks ``new`` and all that wait anew; False: not all can be in time."""
    if c.tally.queued[0] > ANEW:
        return False
    pools = _pools_of(c, new[0])
    for a in range(1, new.size):
        pools = np.maximum(pools, _pools_of(c, new[a]))
    waiting = all_waiting(c, pools)
    tasks = np.append(waiting, new)
    opens = _openings_s(c, pools, now_s)
    for way in range(3):
        order = _by_deadline(c, tasks) if way < 2 else _by_latest_start(c, tasks)
        where, when = _listed(c, order, opens.copy(), way > 0)
        if where.shape[0] > 0:
            for i in waiting:
                take_off(c, i)
            _reserve_listed(c, where, when)
            return True
    return False
