"""What happens at one moment where gangs have come.

The same facts as in `moment`, on reservations instead of queues: ends free processors, which
waiting tasks fill; what is due starts; what has lost its place gets another.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.kernels.ends import overdue_until_s
from downclock.kernels.least_tree import set_key
from downclock.planners.cluster.kernels.awake import (
    break_down,
    count_working,
    return_asleep,
    set_asleep,
    sleep,
    stays,
    wake,
)
from downclock.planners.cluster.kernels.board import Cluster, first_of
from downclock.planners.cluster.kernels.hand_over import hand_over
from downclock.planners.cluster.kernels.holes import fill, running_on, settle_new
from downclock.planners.cluster.kernels.moment import (
    AGAIN,
    CHANGED,
    CUT,
    FREED,
    GONE,
    RETURNED,
    SERVER_GONE,
)
from downclock.planners.cluster.kernels.opening import due, goes_on, is_free
from downclock.planners.cluster.kernels.outlook import foresee
from downclock.planners.cluster.kernels.replan import remember
from downclock.planners.cluster.kernels.reserve import (
    book,
    profile,
    release,
    reserve_at,
    set_attention,
    take_off,
)
from downclock.planners.cluster.kernels.status import NEW
from downclock.planners.cluster.kernels.workflows import (
    arrive,
    change_deadline,
    delay,
    drop,
    finish,
    reserve_again,
    wait_on,
)
from downclock.units import Ints


@inner
def _homeless_of(c: Cluster, j: int) -> Ints:
    """Take back all reservations on server ``j``; return their tasks."""
    found = np.empty(0, np.int64)
    for g in range(c.servers.group_first[j], c.servers.group_end[j]):
        a = c.groups.head[g]
        while a >= 0:
            if c.items.runs[a] == 0:
                found = np.append(found, np.array([c.items.task[a]]))
            a = c.items.after[a]
    for a in range(found.size):
        take_off(c, found[a])
    return found


@inner
def _is_crowded(c: Cluster, g: int, now_s: float) -> bool:
    """Tell whether more processors of a group are promised than it has."""
    _, used = profile(c, g, -1, now_s)
    return used.max() > c.groups.up[g]


@inner
def _overdue(c: Cluster, i: int, now_s: float) -> None:
    """Believe that task ``i`` takes longer, and see to what was to follow it."""
    end = overdue_until_s(c.tasks.start_s[i], now_s)
    set_key(c.busy, 0, c.tasks.place[i], end)
    a, servers = c.tasks.booked[i], np.empty(0, np.int64)
    while a >= 0:
        c.items.end_s[a] = end
        g = c.items.group[a]
        j = c.groups.server[g]
        c.servers.last_s[j] = max(c.servers.last_s[j], end)
        set_attention(c, j)
        if _is_crowded(c, g, now_s):
            servers = np.append(servers, np.array([j]))
        a = c.items.more[a]
    for b in range(servers.size):
        reserve_again(c, _homeless_of(c, servers[b]), now_s)
    delay(c, i, now_s)


@inner
def _lose_processor(c: Cluster, p: int, now_s: float) -> Ints:
    """A processor is down; return tasks without a place."""
    j = c.processors.server[p]
    c.processors.up[p] = 0
    _resize(c, j)
    _unpromise(c, j, now_s)
    if c.servers.awake[j] == 0:
        set_asleep(c, j)
    taken = _homeless_of(c, j)
    set_attention(c, j)
    return taken


@inner
def _resize(c: Cluster, j: int) -> None:
    """Count the processors of server ``j`` that work."""
    for g in range(c.servers.group_first[j], c.servers.group_end[j]):
        c.groups.up[g] = 0
        for lane in range(c.groups.first[g], c.groups.end[g]):
            c.groups.up[g] += c.processors.up[c.lanes[lane]]


@inner
def _unpromise(c: Cluster, j: int, now_s: float) -> None:
    """Take back what was to begin on server ``j`` once it is awake; it is told to need a place."""
    for p in range(c.servers.first[j], c.servers.end[j]):
        i, works = c.processors.running[p], c.servers.works[j] == 1 and c.processors.up[p] == 1
        if i >= 0 and c.processors.begun_s[p] > now_s and not works:
            release(c, i)


@inner
def _machine(c: Cluster, what: int, at: int, now_s: float) -> Ints:
    """Take note of a processor or server that is down or back; return tasks without a place."""
    taken = np.empty(0, np.int64)
    if what == GONE:
        taken = _lose_processor(c, at, now_s)
    elif what == RETURNED:
        j = c.processors.server[at]
        c.processors.up[at] = 1
        _resize(c, j)
        if c.servers.awake[j] == 0:
            set_asleep(c, j)
        set_attention(c, j)
    elif what == SERVER_GONE:
        break_down(c, at)
        _unpromise(c, at, now_s)
        taken = _homeless_of(c, at)
        set_attention(c, at)
    else:
        return_asleep(c, at, now_s)
    count_working(c)
    return taken


@inner
def _free(c: Cluster, i: int, touched: Ints) -> Ints:
    """Task ``i`` has ended; return the servers that it leaves, with those ``touched``."""
    a = c.tasks.booked[i]
    while a >= 0:
        j = c.groups.server[c.items.group[a]]
        if not np.any(touched == j):
            touched = np.append(touched, np.array([j]))
        a = c.items.more[a]
    release(c, i)
    return touched


@inner
def _follow_one(
    c: Cluster, what: int, i: int, now_s: float, touched: Ints, ready: Ints
) -> tuple[Ints, Ints]:
    """Follow what was told of a task; return the servers that it leaves, and what may start."""
    if what == CHANGED and c.tasks.rank[i] < 0:
        return touched, ready
    if c.tasks.place[i] >= 0:
        touched = _free(c, i, touched)
    elif c.tasks.booked[i] >= 0:
        take_off(c, i)
    if what == FREED:
        ready = finish(c, i, now_s, ready)
    elif what == CUT:
        drop(c, i)
    return touched, ready


@inner
def _follow(c: Cluster, told: Ints, now_s: float) -> tuple[Ints, Ints]:
    """Follow what was told; return servers with processors that are free now, and ready tasks."""
    homeless, touched = np.empty(0, np.int64), np.empty(0, np.int64)
    ready = np.empty(0, np.int64)
    for a in range(told.shape[0]):
        what, i, at = told[a, 0], told[a, 1], told[a, 2]
        if what in (FREED, CUT, AGAIN, CHANGED):
            waited = c.tasks.rank[i] >= 0
            touched, ready = _follow_one(c, what, i, now_s, touched, ready)
            if what == AGAIN or (what == CHANGED and waited):
                homeless = np.append(homeless, np.array([i]))
        else:
            homeless = np.concatenate((homeless, _machine(c, what, at, now_s)))
    while c.busy[0, 1] <= now_s:
        _overdue(c, c.processors.running[first_of(c.busy)], now_s)
    for a in range(told.shape[0]):
        if told[a, 0] == CHANGED:
            change_deadline(c, told[a, 1], now_s)
    reserve_again(c, homeless, now_s)
    return touched, ready


@inner
def _rest(c: Cluster, j: int, now_s: float) -> None:
    """An awake server has nothing to run: it goes on, waits for what it has reserved, or sleeps."""
    if hand_over(c, j, now_s) or goes_on(c, j, now_s):
        return
    first = np.inf
    for g in range(c.servers.group_first[j], c.servers.group_end[j]):
        a = c.groups.head[g]
        while a >= 0:
            first = min(first, c.items.start_s[a])
            a = c.items.after[a]
    idling = c.servers.awake_w[j] * (first - now_s)
    if first - c.servers.wake_s[j] <= now_s or idling <= c.servers.wake_j[j]:
        c.servers.last_s[j] = first
    elif not stays(c, j, now_s):
        sleep(c, j, now_s)
    set_attention(c, j)


@inner
def _first_due(c: Cluster, j: int, now_s: float) -> int:
    """Return the task of server ``j`` whose start, or wake, is due; -1: none."""
    early = 0.0 if c.servers.awake[j] == 1 else c.servers.wake_s[j]
    best, least = -1, np.inf
    for g in range(c.servers.group_first[j], c.servers.group_end[j]):
        a = c.groups.head[g]
        while a >= 0:
            start = c.items.start_s[a]
            if c.items.runs[a] == 0 and start - early <= now_s and start < least:
                best, least = c.items.task[a], start
            a = c.items.after[a]
    return best


@inner
def _attend(c: Cluster, now_s: float) -> None:
    """See to every server that needs it: tasks that are due; servers that have nothing to do."""
    while c.attend[0, 1] <= now_s:
        j = first_of(c.attend)
        i = _first_due(c, j, now_s)
        if i < 0:
            _rest(c, j, now_s)
        elif c.servers.awake[j] == 0 and c.items.more[c.tasks.booked[i]] >= 0:
            wake(c, j, now_s)
            c.servers.last_s[j] = c.tasks.start_s[i] + c.tasks.length_s[i]
            set_attention(c, j)
        elif c.tasks.waits[i] > 0:
            wait_on(c, i, now_s)
        elif not is_free(c, i):
            take_off(c, i)
            reserve_again(c, np.array([i]), now_s)
        else:
            due(c, i, now_s)


@inner
def _idle_now(c: Cluster, j: int, now_s: float) -> None:
    """A server on which nothing runs any more need not stay awake until its planned end."""
    if c.servers.awake[j] == 1 and running_on(c, j) == 0 and c.servers.last_s[j] > now_s:
        c.servers.last_s[j] = now_s
        set_attention(c, j)


@inner
def shared_moment(c: Cluster, told: Ints, arrived: Ints, now_s: float) -> None:
    """Do everything that happens at ``now_s`` where tasks have reservations."""
    foresee(c, now_s)
    touched, ready = _follow(c, told, now_s)
    for i in arrived:
        c.tasks.status[i] = NEW
    for i in arrived:
        if now_s > 0.0:
            remember(c, i, now_s)
        arrive(c, i, now_s)
    for j in touched:
        fill(c, j, now_s)
    for i in np.concatenate((ready, arrived)):
        if c.tasks.rank[i] >= 0:
            settle_new(c, i, now_s)
    for j in touched:
        _idle_now(c, j, now_s)
    _attend(c, now_s)


@compiled
def share(c: Cluster, now_s: float) -> None:
    """Begin to keep reservations: queues, and what runs, become reservations as planned."""
    c.tally.shared[0], c.tally.settled[0], c.tally.mean_s[0] = 1, 0, 0.0
    group = np.empty(c.processors.kind.size, np.int64)
    for g in range(c.groups.server.size):
        for lane in range(c.groups.first[g], c.groups.end[g]):
            group[c.lanes[lane]] = g
    c.tally.queued[0] = 0
    for p in range(c.processors.kind.size):
        i = c.processors.running[p]
        if i >= 0:
            book(c, i, group[p], 1, c.processors.begun_s[p], c.processors.ready_s[p])
            c.items.runs[c.tasks.booked[i]], c.tasks.place[i] = 1, p
            c.tasks.start_s[i] = c.processors.begun_s[p]
            c.groups.used[group[p]] += 1
        at, i = max(now_s, c.processors.ready_s[p]), c.processors.head[p]
        while i >= 0:
            after, at = c.tasks.after[i], max(at, c.tasks.start_s[i])
            c.tasks.place[i] = -1
            reserve_at(c, i, group[p], at, c.tasks.length_s[i], 1)
            at += c.tasks.length_s[i]
            i = after
        c.processors.head[p] = c.processors.tail[p] = -1
    for j in range(c.servers.zone.size):
        _resize(c, j)
        set_attention(c, j)
