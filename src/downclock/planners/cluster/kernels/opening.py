"""Opening servers: which one a task that is due wakes, until when, and what fills it.

Its end is chosen so that other waiting tasks fill the server: what a wake and idling cost is shared
by all of them.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.cluster.kernels.awake import wake
from downclock.planners.cluster.kernels.board import Cluster, row_of
from downclock.planners.cluster.kernels.holes import (
    LOOK,
    OFFERED,
    fill,
    find_hole,
    fit,
    looked_at,
    move_to,
    reluctance,
)
from downclock.planners.cluster.kernels.prices import worth
from downclock.planners.cluster.kernels.queues import candidates, most_urgent, usual_lengths
from downclock.planners.cluster.kernels.reserve import (
    free_until_s,
    group_of,
    is_wide,
    lane_w,
    launch,
    natural_s,
    ready_s,
    reserve_at,
    sleeping_servers,
    take_off,
    wanted_s,
)
from downclock.units import Ints

RISK = 0.375
"""By how much more than a hole a server that opens must be worth, for each processor that others
are to fill: they may not come."""

GO_ON = 0.217
"""A server that has ended goes on if that loses less than this part of a wake."""

TRIES, CLASSES = 12, 8
"""Ends of a server that are tried when it opens; and classes of servers, at most, of which one is
looked at where a task opens one."""


@inner
def _usual_s(c: Cluster, i: int, k: int, length_s: float) -> float:
    """Return the run time that task ``i`` wants, or ``length_s`` where it wants none in time."""
    free = c.curves.rows.free_s[row_of(c, i, k)]
    return free if free < np.inf else length_s


@inner
def _filled(
    c: Cluster, g: int, i: int, start_s: float, until_s: float, now_s: float
) -> tuple[float, float]:
    """Return (energy lost, processor time wanted) if a server opens with task ``i`` until then."""
    j, k, free = c.groups.server[g], c.groups.kind[g], c.groups.up[g] - c.tasks.gang[i]
    blocked = free_until_s(c, g, i, c.tasks.gang[i], start_s, np.inf)
    lost, length = fit(c, i, g, start_s, until_s, blocked)
    if lost == np.inf:
        return np.inf, 1.0
    used = c.tasks.gang[i] * _usual_s(c, i, k, length)
    price = lane_w(c, j) * worth(c, j, start_s, until_s)
    if free == 0:
        return lost, used
    others = candidates(c, c.groups.kind[g], free, until_s - start_s, looked_at(c, OFFERED))
    score, loss, time_s = np.full(others.size, np.inf), np.empty(others.size), np.empty(others.size)
    for b in range(others.size):
        other = others[b]
        if other == i:
            continue
        loss[b], time_s[b] = fit(c, other, g, start_s, until_s, np.inf)
        if loss[b] < np.inf:
            score[b] = reluctance(c, other, j, loss[b], time_s[b], now_s)
    for b in np.argsort(score, kind="mergesort"):
        if score[b] == np.inf or free == 0:
            break
        gang = c.tasks.gang[others[b]]
        if gang <= free:
            free -= gang
            lost, used = lost + loss[b], used + gang * _usual_s(c, others[b], k, time_s[b])
    return lost + price * free * (until_s - start_s), used


@inner
def choose_end(
    c: Cluster, g: int, i: int, start_s: float, extra_j: float, now_s: float
) -> tuple[float, float]:
    """Return (end, energy lost by task ``i``) of a server that opens for it at the best end."""
    k, gang = c.groups.kind[g], c.tasks.gang[i]
    own = natural_s(c, i, k, start_s)
    best, least, share = start_s + own, np.inf, np.inf
    if own <= 0.0:
        return best, np.inf
    lengths = usual_lengths(c, k, c.groups.up[g], TRIES)
    short = c.curves.rows.short_s[row_of(c, i, k)]
    for a in range(-4, lengths.size):
        until = start_s + (own if a == -2 else 2.0 * own)
        if a < -2:  # alone on a server it had better hurry
            until = start_s + (short if a == -4 else 0.5 * (short + own))
        if a >= 0:
            length = lengths[a]
            until = start_s + (length if length >= 0.5 * own else own + length)
        lost, used = _filled(c, g, i, start_s, until, now_s)
        if (lost + extra_j) / used < least:
            least, best = (lost + extra_j) / used, until
            share = least * gang * own
    return best, share


@inner
def open_for(c: Cluster, i: int, g: int, until_s: float, now_s: float) -> None:
    """Wake the server of a group for task ``i``, and fill it up to its planned end, if any."""
    j = c.groups.server[g]
    if c.servers.awake[j] == 0:
        wake(c, j, now_s)
    start = ready_s(c, j, now_s)
    blocked = free_until_s(c, g, i, c.tasks.gang[i], start, np.inf)
    if c.servers.base[j] == 0 and c.tally.bases[0] + 1.0 <= c.tally.most_bases[0]:
        c.servers.base[j] = 1
        c.tally.bases[0] += 1
    _, length = fit(c, i, g, start, until_s, blocked)
    if c.servers.base[j] == 0:
        c.servers.last_s[j] = until_s
    move_to(c, i, g, start, length)
    fill(c, j, now_s)


@inner
def _reslowed_wide(c: Cluster, i: int, start_s: float) -> float:
    """Return the run time of a gang on the servers that it has reserved, with all their slack."""
    a, room = c.tasks.booked[i], c.tasks.deadline_s[i] - start_s
    k = c.groups.kind[c.items.group[a]]
    while a >= 0:
        until = free_until_s(c, c.items.group[a], i, c.items.count[a], start_s, start_s + room)
        room, a = min(room, until - start_s), c.items.more[a]
    length = wanted_s(c, row_of(c, i, k), room)
    return length if length > 0.0 else c.tasks.length_s[i]


@inner
def start_wide(c: Cluster, i: int, now_s: float) -> None:
    """Start a gang on the servers that it has reserved, once all are awake."""
    start, a = max(now_s, c.tasks.start_s[i]), c.tasks.booked[i]
    while a >= 0:
        j = c.groups.server[c.items.group[a]]
        if c.servers.awake[j] == 0:
            wake(c, j, now_s)
        start = max(start, ready_s(c, j, now_s))
        a = c.items.more[a]
    launch(c, i, start, _reslowed_wide(c, i, start))
    a = c.tasks.booked[i]
    while a >= 0:
        fill(c, c.groups.server[c.items.group[a]], now_s)
        a = c.items.more[a]


@inner
def is_free(c: Cluster, i: int) -> bool:
    """Tell whether the processors that task ``i`` has reserved run nothing."""
    a = c.tasks.booked[i]
    while a >= 0:
        g = c.items.group[a]
        if c.groups.up[g] - c.groups.used[g] < c.items.count[a]:
            return False
        a = c.items.more[a]
    return True


@inner
def _go(c: Cluster, i: int, g: int, start_s: float, length_s: float, now_s: float) -> None:
    """Start task ``i`` in a group now, or have it wait for processors there."""
    j = c.groups.server[g]
    if start_s <= ready_s(c, j, now_s) and c.groups.up[g] - c.groups.used[g] >= c.tasks.gang[i]:
        move_to(c, i, g, start_s, length_s)
    else:
        take_off(c, i)
        reserve_at(c, i, g, start_s, length_s, 1)


@inner
def _reslowed(c: Cluster, i: int, g: int, start_s: float) -> float:
    """Return the run time of task ``i`` that starts as reserved, with the slack that there is."""
    j, gang = c.groups.server[g], c.tasks.gang[i]
    blocked = free_until_s(c, g, i, gang, start_s, np.inf)
    lost, length = fit(c, i, g, start_s, c.servers.last_s[j], blocked)
    return length if lost < np.inf else c.tasks.length_s[i]


@inner
def _open_j(c: Cluster, j: int, now_s: float) -> float:
    """Return what it costs to open server ``j``: a wake, and sleep that was not billed so far."""
    return c.servers.wake_j[j] + c.servers.sleep_w[j] * max(0.0, now_s - c.servers.last_s[j])


@inner
def _is_reserved(c: Cluster, g: int, i: int) -> bool:
    """Tell whether tasks other than ``i`` have something in a group."""
    a = c.groups.head[g]
    return a >= 0 and (c.items.task[a] != i or c.items.after[a] >= 0)


@inner
def _to_open(c: Cluster, i: int, g: int, k: int, now_s: float) -> Ints:
    """Return groups of kind ``k`` on sleeping servers that task ``i`` may open: one of each class.

    Nothing is reserved on them: what others have reserved on a server that opens could not be
    filled. Where there is none like that of ``g``, which the task has reserved, ``g`` is the last.
    """
    found, m, home = np.full(CLASSES, g), 0, c.groups.server[g]
    classes = min(CLASSES, c.pools.classes[k])
    for j in sleeping_servers(c, k, home, LOOK):
        mine, a = group_of(c, j, k), 0
        if c.groups.up[mine] < c.tasks.gang[i] or _is_reserved(c, mine, i):
            continue
        like = c.servers.server_class[j]
        while a < m and c.servers.server_class[c.groups.server[found[a]]] != like:
            a += 1
        if a == m and m < classes:
            found[m] = mine
            m += 1
        elif a < m and _open_j(c, j, now_s) < _open_j(c, c.groups.server[found[a]], now_s):
            found[a] = mine
        if m == classes and c.servers.sleep_w[j] == 0.0:
            break
    if k == c.groups.kind[g] and m < classes:
        found[m] = g
        m += 1
    return found[:m]


@inner
def _opening(c: Cluster, i: int, g: int, now_s: float) -> tuple[int, float, float]:
    """Return (group, end, energy lost by task ``i``) of the sleeping server to open for it."""
    best, end, least = g, now_s, np.inf
    if c.servers.awake[c.groups.server[g]] == 1:
        return best, end, least
    for k in range(c.kinds.shape[1]):
        if not c.curves.rows.short_s[row_of(c, i, k)] < np.inf or is_wide(c, i, k):
            continue
        for other in _to_open(c, i, g, k, now_s):
            j = c.groups.server[other]
            start, extra = ready_s(c, j, now_s), _open_j(c, j, now_s)
            until, share = choose_end(c, other, i, start, extra, now_s)
            share *= 1.0 + RISK * (c.groups.up[other] - c.tasks.gang[i])
            if share < least:
                best, end, least = other, until, share
    return best, end, least


@inner
def due(c: Cluster, i: int, now_s: float) -> None:
    """See to a task whose reserved start has come, or the time to wake its server."""
    g = c.items.group[c.tasks.booked[i]]
    j = c.groups.server[g]
    if is_wide(c, i, c.groups.kind[g]):
        start_wide(c, i, now_s)
        return
    start = ready_s(c, j, now_s)
    if c.tasks.bound[i] == 1 and c.servers.awake[j] == 1:
        move_to(c, i, g, start, _reslowed(c, i, g, start))
        return
    other, at, length, lost = find_hole(c, i, now_s, True)
    fresh, until, share = _opening(c, i, g, now_s)
    if share < lost:
        open_for(c, i, fresh, until, now_s)
    elif other >= 0:
        _go(c, i, other, at, length, now_s)
    else:
        if c.servers.awake[j] == 0:  # too late for its deadline: it runs all the same
            wake(c, j, now_s)
        move_to(c, i, g, start, _reslowed(c, i, g, start))


@inner
def goes_on(c: Cluster, j: int, now_s: float) -> bool:
    """Let an idle server that would sleep go on with waiting tasks where that saves a wake."""
    for g in range(c.servers.group_first[j], c.servers.group_end[j]):
        i = most_urgent(c, c.groups.kind[g], c.groups.up[g]) if c.groups.up[g] > 0 else -1
        if i < 0:
            continue
        until, share = choose_end(c, g, i, now_s, 0.0, now_s)
        blocked = free_until_s(c, g, i, c.tasks.gang[i], now_s, np.inf)
        lost, _ = fit(c, i, g, now_s, until, blocked)
        if lost < np.inf and share * c.groups.up[g] < GO_ON * c.servers.wake_j[j] * c.tasks.gang[i]:
            open_for(c, i, g, until, now_s)
            return True
    return False
