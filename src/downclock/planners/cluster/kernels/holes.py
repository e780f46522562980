"""Spending slack: waiting tasks fill what servers that are awake leave free.

All awake time of a server's processors is to be used up to its planned end. What is lost: the
energy by which a task's run time differs from its best, time in which processors idle, and wakes.
A task whose start is due takes the best hole, waits for processors that will be free, or opens a
server (`opening`).
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.kernels.least_tree import LARGEST
from downclock.planners.cluster.kernels.board import Cluster, row_of
from downclock.planners.cluster.kernels.curves import about_over_j, fill_s, hurried_s, wanted_j
from downclock.planners.cluster.kernels.prices import dearer_j, worth
from downclock.planners.cluster.kernels.queues import candidates
from downclock.planners.cluster.kernels.reserve import (
    beside,
    book,
    free_ends_s,
    free_until_s,
    is_express,
    lane_w,
    launch,
    leaves_at_most,
    ready_s,
    soonest_start_s,
    take_off,
    wanted_s,
)
from downclock.units import Floats, Ints

SHORT, WASTE = 0.1, 0.036
"""What a task leaves of a hole: below this part of a usual run time it will idle; above, this part
of it."""

EXTEND = 0.385
"""Part that will idle of the time by which other processors are kept awake longer."""

GOOD, PATIENT = 0.4, 0.337
"""A hole is filled where less than this part of the price of its time is lost: by a task that is
due, and by one that can wait for a better one."""

URGENT, CHOICE, SOON = 1.128, 18.8, 0.2
"""What it is worth, against the price of time, that a task which is due finds a hole while few
wait; how many wait where it is worth half; and the part of usual run times within which a task
counts as due by half. Tasks that are due open servers, which take in tasks that could have waited:
with holes for those in a hurry more wait, and what fills a hole is chosen from more."""

MEETS = 0.3
"""How many tasks a task meets for each one that comes while it waits."""

SEEN, OFFERED, MANY = 512, 256, 400
"""Waiting tasks looked at for one hole, and for each end of a server that opens; where more than so
many wait, fewer."""

LOOK = 256
"""Groups with free processors, or where some will be, that are looked at for one task."""


@inner
def _over_j(c: Cluster, i: int, k: int, length_s: float) -> float:
    """Return about what a run on one processor costs above the least, on the cheapest kind."""
    row, best = row_of(c, i, k), max(c.kinds[i, 0], 0)
    over = about_over_j(c.curves, row, length_s)
    if k != best:
        over += wanted_j(c.curves, row) - wanted_j(c.curves, row_of(c, i, best))
    return over


@inner
def _idle_s(c: Cluster, rest_s: float) -> float:
    """Return how much of what is left of a hole will idle."""
    short = SHORT * c.tally.mean_s[0]
    return rest_s if rest_s < short else max(short, WASTE * rest_s)


@inner
def _kept_s(c: Cluster, i: int, k: int) -> float:
    """Return the run time that task ``i`` has reserved on kind ``k``; -1: none there."""
    a = c.tasks.booked[i]
    return c.tasks.length_s[i] if a >= 0 and c.groups.kind[c.items.group[a]] == k else -1.0


@inner
def _idles_s(c: Cluster, j: int, gang: int, hole_s: float, length_s: float) -> float:
    """Return what idles for each processor of a gang in a hole of server ``j``, or beside it."""
    if length_s <= hole_s:
        return _idle_s(c, hole_s - length_s)
    return EXTEND * beside(c, j, gang) * (length_s - max(hole_s, 0.0))


@inner
def fit(
    c: Cluster, i: int, g: int, start_s: float, until_s: float, blocked_s: float
) -> tuple[float, float]:
    """Return (energy lost, run time) of task ``i`` in a group whose server ends at ``until_s``.

    It must end by ``blocked_s``, when its processors are reserved. Infinite: it does not fit. On a
    server without a planned end any run time will do.
    """
    j, k, gang = c.groups.server[g], c.groups.kind[g], c.tasks.gang[i]
    row, curves = row_of(c, i, k), c.curves
    room = min(c.tasks.deadline_s[i], blocked_s) - start_s
    short, hole = curves.rows.short_s[row], min(until_s, blocked_s) - start_s
    if room < short * (1.0 - 1e-12) or not short < np.inf:
        return np.inf, -1.0
    length, price = wanted_s(c, row, room), lane_w(c, j) * worth(c, j, start_s, until_s)
    if length <= 0.0:
        return np.inf, -1.0
    lost = _over_j(c, i, k, length)
    if c.servers.base[j] == 0:
        lost += price * _idles_s(c, j, gang, hole, length)
        if hole < length and c.tally.priced[0] == 0:  # it would keep the server awake
            alone = c.tally.idle_share[0] * beside(c, j, gang)
            hurried = hurried_s(curves, row, EXTEND * alone * price)
            other = _over_j(c, i, k, hurried) + price * _idles_s(c, j, gang, hole, hurried)
            if hole < hurried < length and other < lost:
                lost, length = other, hurried
        filling = fill_s(curves, row, min(hole, room))
        idle = price * _idle_s(c, hole - filling)
        if filling > 0.0 and filling != length and idle < lost:
            other = _over_j(c, i, k, filling) + idle
            if other < lost:
                lost, length = other, filling
    if is_express(c, g, length):
        lost += c.pools.express[k] * price * length
    if c.tally.priced[0] == 1:
        lost += dearer_j(c, i, g, start_s, length)
        kept = _kept_s(c, i, k)
        if 0.0 < kept <= min(hole, length):
            other = _over_j(c, i, k, kept) + price * _idle_s(c, hole - kept)
            other += dearer_j(c, i, g, start_s, kept)
            if other < lost:
                lost, length = other, kept
    return gang * (lost + c.groups.dearer_w[g] * length), length


@inner
def _alone_j(c: Cluster, i: int, j: int, now_s: float) -> float:
    """Return what a task that does not fill a hole of server ``j`` may cost more later.

    Where one server is awake and few tasks wait, it will keep a server awake almost alone, unless
    others come while it waits.
    """
    size, gang = c.servers.end[j] - c.servers.first[j], c.tasks.gang[i]
    few = 1.0 - c.tally.queued[0] / size
    own = c.curves.rows.free_s[row_of(c, i, max(c.kinds[i, 0], 0))]
    if not own < np.inf or gang >= size:
        return 0.0
    waits_s = max(0.0, c.tasks.start_s[i] - now_s)
    meets = MEETS * c.tally.coming[0] * waits_s / max(c.tally.mean_s[0], 1e-9)
    few = min(1.0, max(0.0, few + 1.0 - c.tally.awake[0])) * np.exp(-meets)
    return few * lane_w(c, j) * (size - gang) * own


@inner
def reluctance(c: Cluster, i: int, j: int, lost_j: float, length_s: float, now_s: float) -> float:
    """Return what speaks against task ``i`` in a hole of server ``j``: the least is the best.

    ``lost_j`` counts against the price of its time. Infinite: it should wait for a better hole.
    """
    price = lane_w(c, j) * c.tasks.gang[i] * length_s + 1e-9
    soon_s = SOON * c.tally.mean_s[0] + 1e-9
    near = 1.0 / (1.0 + max(0.0, c.tasks.start_s[i] - now_s) / soon_s)
    most = PATIENT + near * (GOOD - PATIENT)
    if lost_j - _alone_j(c, i, j, now_s) >= most * price:
        return np.inf
    few = CHOICE / (CHOICE + c.tally.queued[0])
    return lost_j / price - near * URGENT * few


@inner
def _has_place_in(c: Cluster, i: int, g: int) -> bool:
    a = c.tasks.booked[i]
    while a >= 0:
        if c.items.group[a] == g:
            return True
        a = c.items.more[a]
    return False


@inner
def looked_at(c: Cluster, most: int) -> int:
    """Return how many waiting tasks to look at: fewer of many, as near ones fit as well."""
    return min(most, max(most // 8, most * MANY // max(c.tally.queued[0], 1)))


@inner
def _best_for(c: Cluster, g: int, start_s: float, free: int, now_s: float) -> tuple[int, float]:
    """Return (waiting task that fills the holes of a group best, its run time); -1: none does."""
    j = c.groups.server[g]
    until = c.servers.last_s[j]
    ends = free_ends_s(c, g, start_s, free)
    best, least, length_s = -1, np.inf, -1.0
    for i in candidates(c, c.groups.kind[g], free, until - start_s, looked_at(c, SEEN)):
        gang = c.tasks.gang[i]
        blocked = ends[gang]
        if blocked < np.inf and _has_place_in(c, i, g):
            blocked = free_until_s(c, g, i, gang, start_s, np.inf)
        lost, length = fit(c, i, g, start_s, until, blocked)
        if lost < np.inf:
            score = reluctance(c, i, j, lost, length, now_s)
            if score < least:
                best, least, length_s = i, score, length
    return best, length_s


@inner
def move_to(c: Cluster, i: int, g: int, start_s: float, length_s: float) -> None:
    """Let task ``i`` run in another place than it has reserved, from now or a wake on."""
    take_off(c, i)
    book(c, i, g, c.tasks.gang[i], start_s, start_s + length_s)
    launch(c, i, start_s, length_s)


@inner
def fill(c: Cluster, j: int, now_s: float) -> None:
    """Start waiting tasks on what server ``j``, which is awake, has free."""
    if c.servers.awake[j] == 0 or c.servers.works[j] == 0:
        return
    if c.servers.base[j] == 1 and c.tally.bases[0] > c.tally.most_bases[0]:
        c.servers.base[j] = 0  # its planned end is that of its last run
        c.tally.bases[0] -= 1
    start = ready_s(c, j, now_s)
    for g in range(c.servers.group_first[j], c.servers.group_end[j]):
        while c.groups.up[g] > c.groups.used[g] and c.tally.queued[0] > 0:
            i, length = _best_for(c, g, start, c.groups.up[g] - c.groups.used[g], now_s)
            if i < 0:
                break
            move_to(c, i, g, start, length)


@inner
def running_on(c: Cluster, j: int) -> int:
    """Return how many processors of server ``j`` run something."""
    used = 0
    for g in range(c.servers.group_first[j], c.servers.group_end[j]):
        used += c.groups.used[g]
    return used


@inner
def _groups_at_most(c: Cluster, trees: Floats, k: int, limit: float) -> Ints:
    """Return groups of kind ``k`` whose key in a tree is at most ``limit``: `LOOK`, in turns."""
    count = c.groups.server.size
    begin, limit = c.tally.turn[0] % count, min(limit, LARGEST)
    found = leaves_at_most(trees, k, limit, begin, count, LOOK)
    if found.size == LOOK:
        c.tally.turn[0] = found[LOOK - 1] + 1
    return found


@inner
def _hole_in(
    c: Cluster, i: int, g: int, now_s: float, wait: bool, least_j: float
) -> tuple[float, float, float]:
    """Return (start, run time, energy lost) of task ``i`` in a group, if less than ``least_j``."""
    j, k = c.groups.server[g], c.groups.kind[g]
    start, gang = max(ready_s(c, j, now_s), c.tasks.arrival_s[i]), c.tasks.gang[i]
    free = c.groups.up[g] - c.groups.used[g] >= gang
    guess = start if free else max(start, c.freeing[k, c.freeing.shape[1] // 2 + g])
    if c.groups.up[g] < gang or fit(c, i, g, guess, c.servers.last_s[j], np.inf)[0] >= least_j:
        return start, -1.0, np.inf
    if wait:
        short = c.curves.rows.short_s[row_of(c, i, k)]
        start = soonest_start_s(c, g, i, short, start, c.tasks.deadline_s[i] - short)
    if start < 0.0:
        return start, -1.0, np.inf
    blocked = free_until_s(c, g, i, gang, start, np.inf)
    lost, length = fit(c, i, g, start, c.servers.last_s[j], blocked)
    return start, length, lost


@inner
def find_hole(c: Cluster, i: int, now_s: float, wait: bool) -> tuple[int, float, float, float]:
    """Return (group, start, run time, energy lost) of the best place on what is awake; -1: none.

    Now, or (``wait``) when processors will be free.
    """
    best, start_s, length_s, least = -1, now_s, -1.0, np.inf
    for k in range(c.kinds.shape[1]):
        short = c.curves.rows.short_s[row_of(c, i, k)]
        if not short < np.inf:
            continue
        groups = _groups_at_most(c, c.holes, k, -float(c.tasks.gang[i]))
        if wait:
            later = _groups_at_most(c, c.freeing, k, c.tasks.deadline_s[i] - short)
            groups = np.concatenate((groups, later))
        for g in groups:
            start, length, lost = _hole_in(c, i, g, now_s, wait, least)
            if lost < least:
                best, start_s, length_s, least = g, start, length, lost
    return best, start_s, length_s, least


@inner
def settle_new(c: Cluster, i: int, now_s: float) -> None:
    """Start a task that has just come where it fills a hole well."""
    if c.tasks.waits[i] > 0:
        return
    g, start, length, lost = find_hole(c, i, now_s, False)
    if g < 0:
        return
    j = c.groups.server[g]
    if reluctance(c, i, j, lost, length, now_s) < np.inf:
        move_to(c, i, g, start, length)
