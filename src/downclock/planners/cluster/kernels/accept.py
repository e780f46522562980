"""Acceptance, apart from slowing down: a task is taken if it and all others can be in time.

A new task gets a reservation that starts as late as its best run time allows, on a server that
sleeps where there is one; slack is spent later, where it saves most (`holes`). Where there is no
room, what waits is listed anew by deadline: at the run times that tasks want, then at the fastest.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.cluster.kernels.board import Cluster, row_of
from downclock.planners.cluster.kernels.reserve import (
    NEVER,
    book,
    free_until_s,
    is_wide,
    latest_start_s,
    natural_s,
    ready_s,
    reserve_at,
    set_attention,
    soonest_start_s,
    take_off,
    wait,
    wanted_s,
)
from downclock.units import Floats, Ints

PATIENCE = 8.0
"""So many times its run time a task waits at most, however late its deadline is."""

NEAR = 64
"""Servers looked at for a reservation before all are."""

ANEW = 2048
"""Tasks that wait, up to which all are listed anew to make room for one more."""


@inner
def _late_on(c: Cluster, i: int, g: int, now_s: float) -> tuple[float, float]:
    """Return (start, length) of the latest reservation in a group at the best run time."""
    k = c.groups.kind[g]
    begin = max(ready_s(c, c.groups.server[g], now_s), c.tasks.arrival_s[i])
    length = natural_s(c, i, k, begin)
    if length < 0.0:
        return NEVER, -1.0
    latest = max(begin, min(c.tasks.deadline_s[i] - length, begin + PATIENCE * length))
    return latest_start_s(c, g, i, length, begin, latest), length


@inner
def _reserve_late(c: Cluster, i: int, k: int, now_s: float, many: int) -> bool:
    """Reserve on kind ``k`` as late as can be, on one of ``many`` servers; sleeping ones first."""
    servers, hint = c.servers.zone.size, c.tally.hint[0]
    for awake in range(2):
        for a in range(min(many, servers)):
            j = (hint + a) % servers
            if c.servers.works[j] == 0 or c.servers.awake[j] != awake:
                continue
            for g in range(c.servers.group_first[j], c.servers.group_end[j]):
                if c.groups.kind[g] != k or c.groups.up[g] < c.tasks.gang[i]:
                    continue
                start, length = _late_on(c, i, g, now_s)
                if start >= 0.0:
                    c.tally.hint[0] = j
                    reserve_at(c, i, g, start, length, 0)
                    return True
    return False


@inner
def soonest_place(
    c: Cluster, i: int, now_s: float, hurry: bool, late: bool
) -> tuple[int, float, float]:
    """Return (group, start, length) where task ``i`` ends first, in time unless ``late``; -1: none.

    At its fastest (``hurry``), or at the run time that it wants.
    """
    best, least, start_s, length_s = -1, np.inf, 0.0, -1.0
    for g in range(c.groups.server.size):
        j, k = c.groups.server[g], c.groups.kind[g]
        if c.servers.works[j] == 0 or c.groups.up[g] < c.tasks.gang[i]:
            continue
        row, begin = row_of(c, i, k), max(ready_s(c, j, now_s), c.tasks.arrival_s[i])
        short = c.curves.rows.short_s[row]
        if not short < np.inf or (not late and begin + short > c.tasks.deadline_s[i]):
            continue
        length = short if hurry else wanted_s(c, row, c.tasks.deadline_s[i] - begin)
        length = short if length < 0.0 else length
        latest = np.inf if late else c.tasks.deadline_s[i] - length
        start = soonest_start_s(c, g, i, length, begin, max(latest, begin))
        if start >= 0.0 and start + length < least:
            best, least, start_s, length_s = g, start + length, start, length
    return best, start_s, length_s


@inner
def _empty_by_s(c: Cluster, g: int) -> float:
    """Return when all that a group runs or has reserved is over."""
    last, a = 0.0, c.groups.head[g]
    while a >= 0:
        last = max(last, c.items.end_s[a])
        a = c.items.after[a]
    return last


@inner
def reserve_wide(c: Cluster, i: int, k: int, start_s: float, length_s: float, now_s: float) -> bool:
    """Reserve whole servers of kind ``k`` for a gang that no server holds; False: too few."""
    need, groups = c.tasks.gang[i], c.groups
    chosen, m = np.empty(groups.server.size, np.int64), 0
    for awake in range(2):
        for g in range(groups.server.size):
            j = groups.server[g]
            if groups.kind[g] != k or groups.up[g] == 0 or c.servers.works[j] == 0 or need <= 0:
                continue
            if c.servers.awake[j] != 1 - awake or ready_s(c, j, now_s) > start_s:
                continue
            end = start_s + length_s
            if free_until_s(c, g, i, groups.up[g], start_s, end) >= end:
                chosen[m] = g
                m += 1
                need -= groups.up[g]
    if need > 0:
        return False
    c.tasks.start_s[i], c.tasks.length_s[i], c.tasks.bound[i] = start_s, length_s, 0
    left = c.tasks.gang[i]
    for b in range(m):
        book(c, i, chosen[b], min(left, groups.up[chosen[b]]), start_s, start_s + length_s)
        left -= groups.up[chosen[b]]
        set_attention(c, groups.server[chosen[b]])
    wait(c, i)
    return True


@inner
def _widest_s(c: Cluster, i: int, k: int, now_s: float) -> float:
    """Return when enough processors of kind ``k`` could have woken for a wide gang."""
    begin = max(now_s, c.tasks.arrival_s[i])
    for j in range(c.servers.zone.size):
        if c.servers.works[j] == 1:
            begin = max(begin, ready_s(c, j, now_s))
    return begin


@inner
def _reserve_wide_on(c: Cluster, i: int, k: int, now_s: float, late: bool) -> bool:
    """Reserve whole servers of kind ``k``: as late as the best run time allows, else sooner.

    Where an accepted gang cannot be on time (``late``), as soon as can be.
    """
    row, begin = row_of(c, i, k), _widest_s(c, i, k, now_s)
    length, short = natural_s(c, i, k, begin), c.curves.rows.short_s[row]
    if length >= 0.0:
        start = max(begin, min(c.tasks.deadline_s[i] - length, begin + PATIENCE * length))
        if reserve_wide(c, i, k, start, length, now_s):
            return True
        if reserve_wide(c, i, k, begin, length, now_s):
            return True
    if not short < np.inf:
        return False
    ends = np.empty(c.groups.server.size + 1)
    for g in range(c.groups.server.size):
        ends[g] = _empty_by_s(c, g)
    ends[c.groups.server.size] = begin
    for start in np.sort(ends):
        if not late and start + short > c.tasks.deadline_s[i]:
            return False
        if start >= begin and reserve_wide(c, i, k, start, short, now_s):
            return True
    return False


@inner
def _reserve_on_kinds(c: Cluster, i: int, now_s: float, many: int) -> bool:
    for rank in range(c.kinds.shape[1]):
        k = c.kinds[i, rank]
        if k < 0:
            break
        if is_wide(c, i, k):
            if _reserve_wide_on(c, i, k, now_s, False):
                return True
        elif _reserve_late(c, i, k, now_s, many):
            return True
    return False


@inner
def reserve(c: Cluster, i: int, now_s: float) -> bool:
    """Reserve processors for task ``i`` beside all that has some; False: there are none in time."""
    if _reserve_on_kinds(c, i, now_s, NEAR):
        return True
    if c.servers.zone.size > NEAR and _reserve_on_kinds(c, i, now_s, c.servers.zone.size):
        return True
    for hurry in (False, True):
        g, start, length = soonest_place(c, i, now_s, hurry, False)
        if g >= 0:
            reserve_at(c, i, g, start, length, 0)
            return True
    return False


@inner
def _list_all(c: Cluster, tasks: Ints, now_s: float, hurry: bool) -> bool:
    """Reserve for tasks by deadline, each where it ends first; False: one cannot be in time."""
    for a in np.argsort(c.tasks.deadline_s[tasks], kind="mergesort"):
        i = tasks[a]
        g, start, length = soonest_place(c, i, now_s, hurry, False)
        if g >= 0:
            reserve_at(c, i, g, start, length, 0)
            continue
        found = False
        for rank in range(c.kinds.shape[1]):
            k = c.kinds[i, rank]
            if k >= 0 and is_wide(c, i, k):
                found = found or _reserve_wide_on(c, i, k, now_s, False)
        if not found:
            return False
    return True


@inner
def _written_down(c: Cluster, tasks: Ints) -> tuple[Ints, Floats]:
    """Return the reservations of tasks: (task, group, count, bound) and (start, length)."""
    m = 0
    for i in tasks:
        a = c.tasks.booked[i]
        while a >= 0:
            m += 1
            a = c.items.more[a]
    where, when, m = np.empty((m, 4), np.int64), np.empty((m, 2)), 0
    for i in tasks:
        a = c.tasks.booked[i]
        while a >= 0:
            where[m, 0], where[m, 1] = i, c.items.group[a]
            where[m, 2], where[m, 3] = c.items.count[a], c.tasks.bound[i]
            when[m, 0], when[m, 1] = c.tasks.start_s[i], c.tasks.length_s[i]
            m += 1
            a = c.items.more[a]
    return where, when


@inner
def _put_back(c: Cluster, where: Ints, when: Floats) -> None:
    """Reserve as was written down."""
    for a in range(where.shape[0]):
        i, start = where[a, 0], when[a, 0]
        c.tasks.start_s[i], c.tasks.length_s[i], c.tasks.bound[i] = start, when[a, 1], where[a, 3]
        book(c, i, where[a, 1], where[a, 2], start, start + when[a, 1])
        wait(c, i)
        set_attention(c, c.groups.server[where[a, 1]])


@inner
def make_room(c: Cluster, new: int, now_s: float) -> bool:
    """Reserve for task ``new`` and all that wait anew; False: not all can be in time."""
    count = c.tally.queued[0]
    if count > ANEW:
        return False
    tasks = np.empty(count + 1, np.int64)
    tasks[:count], tasks[count] = c.waiting[:count], new
    where, when = _written_down(c, tasks[:count])
    for hurry in (False, True):
        for i in tasks[:count]:
            take_off(c, i)
        if _list_all(c, tasks, now_s, hurry):
            return True
        for i in tasks:
            if c.tasks.rank[i] >= 0:
                take_off(c, i)
        _put_back(c, where, when)
    return False


@inner
def reserve_anyhow(c: Cluster, i: int, now_s: float) -> bool:
    """Reserve for an accepted task, too late if need be; False: nothing works that could run it."""
    if reserve(c, i, now_s) or make_room(c, i, now_s):
        return True
    g, start, length = soonest_place(c, i, now_s, True, True)
    if g >= 0:
        reserve_at(c, i, g, start, length, 0)
        return True
    for k in range(c.kinds.shape[1]):
        if is_wide(c, i, k) and _reserve_wide_on(c, i, k, now_s, True):
            return True
    return False
