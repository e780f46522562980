"""Acceptance, apart from slowing down: a task is taken if it and all others can be in time.

A new task gets a reservation that starts as late as its best run time allows, on a server that
sleeps where there is one; slack is spent later, where it saves most (`holes`). Where there is no
room, what waits is listed anew by deadline: at the run times that tasks want, then at the fastest.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.kernels.least_tree import LARGEST
from downclock.planners.cluster.kernels.board import Cluster, row_of
from downclock.planners.cluster.kernels.curves import hurried_s
from downclock.planners.cluster.kernels.hurry import calm
from downclock.planners.cluster.kernels.prices import cheap_start_s, run_value, wished_s
from downclock.planners.cluster.kernels.queues import wait
from downclock.planners.cluster.kernels.relist import make_room
from downclock.planners.cluster.kernels.reserve import (
    NEVER,
    beside,
    book,
    free_until_s,
    group_of,
    is_express,
    is_wide,
    lane_w,
    latest_start_s,
    natural_s,
    ready_s,
    reserve_at,
    set_attention,
    sleeping_servers,
    soonest_start_s,
    wanted_s,
)
from downclock.units import Floats, Ints

PATIENCE, BUSY = 20.0, 1.25
"""So many times its run time a task waits at most, however late its deadline is, on a cluster that
sleeps; not at all where the part that is awake, so many times, is the whole."""

NEAR, WIDE = 64, 1024
"""Servers, sleeping and awake, looked at for a reservation before all are; and for a gang of
several."""

WIDE_TRIES, SAMPLED = 32, 2048
"""Starts that are tried for a gang of several servers where the best are taken; and groups that are
looked at to find them."""


@inner
def _patience(c: Cluster, k: int) -> float:
    """Return how many times its run time a task may wait on kind ``k``: less as room is scarce."""
    awake = c.pools.awake[k] / max(c.pools.up[k], 1)
    return PATIENCE * calm(c, k) * max(0.0, 1.0 - BUSY * awake) ** 2


@inner
def _late_on(c: Cluster, i: int, g: int, now_s: float, most_s: float) -> tuple[float, float, float]:
    """Return (start, length, value) of the latest reservation in a group at the best run time.

    At most ``most_s`` long. Where prices count, of the latest that is cheap: what a watt costs
    then, or may cost.
    """
    k = c.groups.kind[g]
    begin = max(ready_s(c, c.groups.server[g], now_s), c.tasks.arrival_s[i])
    length = min(natural_s(c, i, k, begin), most_s)
    if length < 0.0:
        return NEVER, -1.0, np.inf
    if c.tally.priced[0] == 0:  # what would run alone hurries, so it can wait longer for company
        j = c.groups.server[g]
        alone_w = c.tally.idle_share[0] * beside(c, j, c.tasks.gang[i]) * lane_w(c, j)
        length = min(length, hurried_s(c.curves, row_of(c, i, k), alone_w))
    latest = max(begin, min(c.tasks.deadline_s[i] - length, begin + _patience(c, k) * length))
    most = 0.0
    if c.tally.priced[0] == 1:
        latest, most = cheap_start_s(c, i, g, begin, c.tasks.deadline_s[i], length, latest)
    start = latest_start_s(c, g, i, length, begin, latest)
    value = max(run_value(c, g, start, length), most) if start >= 0.0 else np.inf
    return start, length, value


@inner
def _reserve_cheaply(c: Cluster, i: int, k: int, now_s: float, many: int) -> bool:
    """Reserve on kind ``k`` where and when a run is cheapest, on one of ``many`` groups."""
    best, start_s, length_s, least = -1, 0.0, -1.0, np.inf
    first, count = c.pools.first[k], c.pools.end[k] - c.pools.first[k]
    zone, most_s = -1, np.inf
    for a in range(min(many, count)):
        at = (c.pools.hint[k] + a) % count
        g = c.pool_groups[first + at]
        if c.servers.zone[c.groups.server[g]] != zone:
            zone = c.servers.zone[c.groups.server[g]]
            most_s = wished_s(c, i, g, max(now_s, c.tasks.arrival_s[i]))
        if c.servers.works[c.groups.server[g]] == 0 or c.groups.up[g] < c.tasks.gang[i]:
            continue
        start, length, value = _late_on(c, i, g, now_s, most_s)
        if value < least * (1.0 - 1e-12):
            best, start_s, length_s, least = at, start, length, value
    if best < 0:
        return False
    c.pools.hint[k] = best
    reserve_at(c, i, c.pool_groups[first + best], start_s, length_s, 0)
    return True


@inner
def _servers_with(c: Cluster, k: int, many: int) -> Ints:
    """Return servers with kind ``k``: sleeping ones, then those awake, up to ``many`` of each.

    The first is where the last reservation was made, so that few servers have reservations.
    """
    asleep = sleeping_servers(c, k, c.pools.hint[k], many)
    count = c.tally.awake[0]
    awake = np.empty(min(many, count), np.int64)
    for a in range(awake.size):
        awake[a] = c.awake_servers[(c.pools.hint[k] + a) % count]
    return np.concatenate((asleep, awake))


@inner
def _reserve_late(c: Cluster, i: int, k: int, now_s: float, many: int) -> bool:
    """Reserve on kind ``k`` as late as can be, on one of ``many`` servers.

    Where prices count, at the cheapest site and hour.
    """
    if c.tally.priced[0] == 1:
        return _reserve_cheaply(c, i, k, now_s, many)
    for j in _servers_with(c, k, many):
        g = group_of(c, j, k)
        if g < 0 or c.groups.up[g] < c.tasks.gang[i] or c.servers.works[j] == 0:
            continue
        if is_express(c, g, c.curves.rows.free_s[row_of(c, i, k)]):
            continue
        start, length, _ = _late_on(c, i, g, now_s, np.inf)
        if start >= 0.0:
            c.pools.hint[k] = j
            reserve_at(c, i, g, start, length, 0)
            return True
    return False


@inner
def soonest_place(
    c: Cluster, i: int, kind: int, now_s: float, hurry: bool, late: bool
) -> tuple[int, float, float]:
    """Return (group, start, length) where task ``i`` ends first, in time unless ``late``; -1: none.

    On one kind, or all (-1). At its fastest (``hurry``), or at the run time that it wants.
    """
    best, least, start_s, length_s = -1, np.inf, 0.0, -1.0
    first, end = 0, c.pool_groups.size
    if kind >= 0:
        first, end = c.pools.first[kind], c.pools.end[kind]
    for g in c.pool_groups[first:end]:
        j, row = c.groups.server[g], row_of(c, i, c.groups.kind[g])
        short = c.curves.rows.short_s[row]
        if not short < np.inf or c.servers.works[j] == 0 or c.groups.up[g] < c.tasks.gang[i]:
            continue
        begin = max(ready_s(c, j, now_s), c.tasks.arrival_s[i])
        if begin + short >= least or (not late and begin + short > c.tasks.deadline_s[i]):
            continue
        length = short if hurry else wanted_s(c, row, c.tasks.deadline_s[i] - begin)
        length = short if length < 0.0 else length
        latest = np.inf if late else c.tasks.deadline_s[i] - length
        start = soonest_start_s(c, g, i, length, begin, max(latest, begin))
        if start >= 0.0 and start + length < least:
            best, least, start_s, length_s = g, start + length, start, length
    return best, start_s, length_s


@inner
def _reserve_soon(c: Cluster, i: int, kind: int, now_s: float, hurry: bool) -> bool:
    """Reserve where task ``i`` ends first, in time; False: nowhere."""
    g, start, length = soonest_place(c, i, kind, now_s, hurry, False)
    if g >= 0:
        reserve_at(c, i, g, start, length, 0)
    return g >= 0


@inner
def _empty_by_s(c: Cluster, g: int) -> float:
    """Return when all that a group runs or has reserved is over."""
    last, a = 0.0, c.groups.head[g]
    while a >= 0:
        last = max(last, c.items.end_s[a])
        a = c.items.after[a]
    return last


@inner
def _needed(c: Cluster, chosen: Ints, spare: int) -> int:
    """Keep of chosen groups, in place, those without which too few processors are left; count."""
    kept = 0
    for g in chosen:
        if c.groups.up[g] <= spare:
            spare -= c.groups.up[g]
        else:
            chosen[kept] = g
            kept += 1
    return kept


@inner
def whole_servers(
    c: Cluster, i: int, k: int, start_s: float, length_s: float, now_s: float, servers: Ints
) -> Ints:
    """Return the groups of ``servers`` that a gang takes, as far as free; none: too few."""
    need, groups = c.tasks.gang[i], c.groups
    chosen, m = np.empty(need, np.int64), 0
    end = start_s + length_s
    for j in servers:
        if need <= 0:
            break
        g = group_of(c, j, k)
        if g < 0 or groups.up[g] == 0 or c.servers.works[j] == 0:
            continue
        if ready_s(c, j, now_s) > start_s:
            continue
        if free_until_s(c, g, i, groups.up[g], start_s, end) >= end:
            chosen[m] = g
            m += 1
            need -= groups.up[g]
    return chosen[:0] if need > 0 else chosen[: _needed(c, chosen[:m], -need)]


@inner
def reserve_whole(c: Cluster, i: int, chosen: Ints, start_s: float, length_s: float) -> None:
    """Reserve groups as a whole for a gang, but for what it leaves of the last."""
    c.tasks.start_s[i], c.tasks.length_s[i], c.tasks.bound[i] = start_s, length_s, 0
    left = c.tasks.gang[i]
    for g in chosen:
        book(c, i, g, min(left, c.groups.up[g]), start_s, start_s + length_s)
        left -= c.groups.up[g]
        set_attention(c, c.groups.server[g])
    wait(c, i)


@inner
def reserve_wide(c: Cluster, i: int, k: int, start_s: float, length_s: float, now_s: float) -> bool:
    """Reserve whole servers of kind ``k`` for a gang that no server holds; False: too few."""
    servers = _servers_with(c, k, max(WIDE, 4 * c.tasks.gang[i]))
    chosen = whole_servers(c, i, k, start_s, length_s, now_s, servers)
    if chosen.size > 0:
        reserve_whole(c, i, chosen, start_s, length_s)
    return chosen.size > 0


@inner
def _widest_s(c: Cluster, i: int, k: int, now_s: float) -> float:
    """Return when all processors of kind ``k`` are awake for a wide gang, at the latest."""
    begin = max(now_s, c.tasks.arrival_s[i], c.pools.awake_s[k])
    return max(begin, now_s + c.pools.wake_s[k]) if c.asleep[k, 1] <= LARGEST else begin


@inner
def _empty_times_s(c: Cluster, k: int, from_s: float, late: bool) -> Floats:
    """Return times from ``from_s`` on at which groups of kind ``k`` are empty: a few, in order.

    Of a large kind only a sample is looked at, unless the last time must be that of all (``late``).
    """
    first, count = c.pools.first[k], c.pools.end[k] - c.pools.first[k]
    step = 1 if late else max(1, (count + SAMPLED - 1) // SAMPLED)
    ends = np.empty((count + step - 1) // step)
    for a in range(ends.size):
        ends[a] = max(from_s, _empty_by_s(c, c.pool_groups[first + a * step]))
    ends = np.sort(ends)
    few = np.empty(min(ends.size, WIDE_TRIES))
    for a in range(few.size):
        few[a] = ends[(ends.size - 1) * a // max(few.size - 1, 1)]
    return few


@inner
def _reserve_wide_on(c: Cluster, i: int, k: int, now_s: float, late: bool) -> bool:
    """Reserve whole servers of kind ``k``: as late as the best run time allows, else sooner.

    Where an accepted gang cannot be on time (``late``), as soon as can be.
    """
    row, begin = row_of(c, i, k), _widest_s(c, i, k, now_s)
    length, short = natural_s(c, i, k, begin), c.curves.rows.short_s[row]
    if length >= 0.0:
        start = max(begin, min(c.tasks.deadline_s[i] - length, begin + _patience(c, k) * length))
        if c.tally.priced[0] == 1:
            g, deadline = c.pool_groups[c.pools.first[k]], c.tasks.deadline_s[i]
            start = cheap_start_s(c, i, g, begin, deadline, length, start)[0]
        if reserve_wide(c, i, k, start, length, now_s):
            return True
        if reserve_wide(c, i, k, begin, length, now_s):
            return True
    if not short < np.inf:
        return False
    for start in _empty_times_s(c, k, max(now_s, c.tasks.arrival_s[i]), late):
        if not late and start + short > c.tasks.deadline_s[i]:
            return False
        length = natural_s(c, i, k, start)
        natural = length > short and reserve_wide(c, i, k, start, length, now_s)
        if natural or reserve_wide(c, i, k, start, short, now_s):
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
            continue
        if _reserve_late(c, i, k, now_s, many):
            return True
        if c.kinds.shape[1] > 1 and _reserve_soon(c, i, k, now_s, False):
            return True
    return False


@inner
def reserve(c: Cluster, i: int, now_s: float) -> bool:
    """Reserve processors for task ``i`` beside all that has some; False: there are none in time."""
    if _reserve_on_kinds(c, i, now_s, NEAR):
        return True
    if c.servers.zone.size > NEAR and _reserve_on_kinds(c, i, now_s, c.servers.zone.size):
        return True
    return _reserve_soon(c, i, -1, now_s, False) or _reserve_soon(c, i, -1, now_s, True)


@inner
def reserve_anyhow(c: Cluster, i: int, now_s: float) -> bool:
    """Reserve for an accepted task, too late if need be; False: nothing works that could run it."""
    if reserve(c, i, now_s) or make_room(c, i, now_s):
        return True
    g, start, length = soonest_place(c, i, -1, now_s, True, True)
    if g >= 0:
        reserve_at(c, i, g, start, length, 0)
        return True
    for k in range(c.kinds.shape[1]):
        if is_wide(c, i, k) and _reserve_wide_on(c, i, k, now_s, True):
            return True
    return False
