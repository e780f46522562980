"""What a list policy does when the world is not as promised: ends, overruns, failures, repairs.

A processor that is free sooner takes up what waits there, then a task that was refused a place and
still can be on time, then one that waits elsewhere. What is overdue is believed to take a little
longer. What has lost its place gets another one; accepted is accepted.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.kernels.ends import ends_by, overdue_until_s
from downclock.planners.lists.kernels.board import (
    Lists,
    add,
    advance,
    believe_end,
    drop,
    put_out,
    settle,
    tell,
    waits,
    wake,
)
from downclock.planners.lists.kernels.gangs import seat, soonest_gang, start_gangs
from downclock.planners.lists.kernels.place import place, place_or_refuse, release_and_sleep
from downclock.planners.lists.kernels.retime import (
    catch_up,
    promise_anew,
    put_away,
    retime,
    revoke,
    set_free,
    shifts,
    shorten,
    take_off,
)
from downclock.planners.lists.kernels.take_up import take_gang, take_hopeful, take_waiting
from downclock.units import Ints

FREED, OVER, GONE, RETURNED, CUT, MOVED, SERVER_GONE, SERVER_BACK, CHANGED, STOPPED = range(10)
"""What a moment is told: (task, processor) is done there; does not end as believed; a processor is
down; is back; a task is no longer wanted; was lost; a server is down; is back; a task has another
deadline; (task, processor) ended there without being done."""


@inner
def _is_running(c: Lists, p: int, i: int) -> None:
    """Catch up with processor ``p``, where task ``i`` was at work up to now."""
    while c.nodes.place[c.tasks.node[i]] == p:
        head = c.nodes.task[c.processors.head[p]]
        if c.tasks.processors[head] > 1:
            return
        advance(c, p, c.tasks.start_s[head])


@inner
def _go_on(c: Lists, p: int, believed: bool, now_s: float) -> None:
    """Let what is next on processor ``p`` begin now, or as believed; find something if idle."""
    if not believed and c.processors.up[p] == 1 and c.servers.works[c.processors.server[p]] == 1:
        retime(c, p, now_s, now_s)
        if c.hopes[0] > 0:
            take_hopeful(c, p, now_s)
        if c.processors.head[p] < 0 and c.gangs[0] + c.hopes[0] > 0:
            take_gang(c, p, now_s)
        if c.processors.head[p] < 0:
            take_waiting(c, p, now_s)
    advance(c, p, now_s)


@inner
def _begins_later(c: Lists, p: int, i: int, at_s: float) -> bool:
    """Let what was believed to run on ``p``, where task ``i`` still is at work, begin at ``at_s``.

    False: nothing else was believed to run.
    """
    r = c.processors.running[p]
    if r < 0 or r == i or c.tasks.end_s[r] <= at_s:
        return False
    end_s = ends_by(at_s, c.tasks.length_s[r], c.tasks.deadline_s[r])
    c.tasks.start_s[r] = at_s
    believe_end(c, r, end_s)
    for n in range(c.tasks.node[r], c.tasks.node[r] + c.tasks.processors[r]):
        q = c.nodes.lane[n]
        if c.processors.running[q] == r:
            c.processors.ready_s[q] = end_s
            retime(c, q, end_s, at_s)
    return True


@inner
def _freed(c: Lists, p: int, i: int, done: bool, now_s: float) -> None:
    """Task ``i`` does not run any more on processor ``p``, and wherever else it did."""
    _is_running(c, p, i)
    believed, first = c.processors.ready_s[p] == now_s, c.tasks.node[i]
    believe_end(c, i, now_s if done else np.inf)
    for n in range(first, first + c.tasks.processors[i]):
        q = c.nodes.lane[n]
        if not _begins_later(c, q, i, now_s):
            c.processors.running[q], c.processors.ready_s[q] = -1, now_s
    for n in range(first, first + c.tasks.processors[i]):
        q = c.nodes.lane[n]
        if c.processors.running[q] < 0:
            _go_on(c, q, believed, now_s)


@inner
def _overdue(c: Lists, p: int, i: int, now_s: float) -> None:
    """Believe that what runs takes longer; what cannot wait so long hurries or goes elsewhere."""
    _is_running(c, p, i)
    first, end = c.tasks.node[i], c.tasks.node[i] + c.tasks.processors[i]
    if c.tasks.start_s[i] >= now_s:  # it began sooner than believed
        c.tasks.start_s[i] = now_s - c.tasks.length_s[i]
    until_s = overdue_until_s(c.tasks.start_s[i], now_s)
    believe_end(c, i, until_s)
    for n in range(first, end):
        q = c.nodes.lane[n]
        if not _begins_later(c, q, i, until_s):
            c.processors.running[q], c.processors.ready_s[q] = i, until_s
    for n in range(first, end):
        _put_off(c, c.nodes.lane[n], now_s)
    if c.gangs[0] > 0:  # what waits for gangs that were put off
        for q in range(c.processors.kind.size):
            if c.processors.gangs[q] > 0:
                _rescue(c, q, now_s)


@inner
def _put_off(c: Lists, p: int, now_s: float) -> None:
    """Let what waits on processor ``p`` begin later, as what runs takes longer."""
    hurries = not shifts(c, p, c.processors.ready_s[p], False)
    if hurries:
        shorten(c, p)
    retime(c, p, c.processors.ready_s[p], now_s)
    if hurries:
        promise_anew(c, p, -1)
    _rescue(c, p, now_s)


@inner
def _rescue(c: Lists, p: int, now_s: float) -> None:
    """Place what waits on processor ``p`` and would be late elsewhere."""
    count, n = 0, c.processors.head[p]
    while n >= 0:
        i = c.nodes.task[n]
        n = c.nodes.after[n]
        start_s = c.tasks.start_s[i]
        if start_s > now_s and start_s + c.tasks.length_s[i] > c.tasks.deadline_s[i]:
            c.late[count] = i
            count += 1
    for a in range(count):
        put_away(c, c.late[a], now_s)
    if count > 0:
        retime(c, p, c.processors.ready_s[p], now_s)
        tell(c, p)
    for a in range(count):
        if not again(c, c.late[a], now_s):
            add(c.lost, c.late[a])


@inner
def again(c: Lists, i: int, now_s: float) -> bool:
    """Place an accepted task anew; where it cannot be on time, where it ends first.

    False: nothing works that could run it.
    """
    if place(c, i, now_s):
        return True
    if c.tasks.processors[i] > 1:
        return _gang_again(c, i, now_s)
    best, least, start = -1, np.inf, 0.0
    leaf = c.trees.shape[1] // 2
    for p in range(c.processors.kind.size):
        j, k = c.processors.server[p], c.processors.kind[p]
        if c.processors.up[p] == 0 or c.servers.works[j] == 0:
            continue
        free = c.trees[k, leaf + p] if c.servers.awake[j] == 1 else now_s + c.servers.wake_s[j]
        end = max(now_s, free) + c.curves.shortest_s[i, k]
        if end < least:
            best, least, start = p, end, max(now_s, free)
    if best < 0:
        return False
    if c.servers.awake[c.processors.server[best]] == 0:
        wake(c, c.processors.server[best], now_s)
    length = c.curves.shortest_s[i, c.processors.kind[best]]
    settle(c, i, best, start, length, now_s)
    return True


@inner
def _gang_again(c: Lists, i: int, now_s: float) -> bool:
    """Place gang ``i`` where it ends first, though late."""
    best, least_s = -1, np.inf
    for rank in range(c.curves.kinds.shape[1]):
        k = c.curves.kinds[i, rank]
        if k >= 0:
            end_s = soonest_gang(c, k, i, now_s)[1] + c.curves.shortest_s[i, k]
            if end_s < least_s:
                best, least_s = k, end_s
    if best < 0:
        return False
    where, start_s = soonest_gang(c, best, i, now_s)
    seat(c, i, best, where, start_s, c.curves.shortest_s[i, best], now_s)
    return True


@inner
def _evict(c: Lists, p: int, told: Ints, now_s: float) -> None:
    """Take all that waits off processor ``p``, which is down; it is placed anew in this moment.

    What has started is told to be lost; where it is not it has not started, whatever we believed.
    """
    catch_up(c, p, now_s)
    i = c.processors.running[p]
    if i >= 0 and c.tasks.end_s[i] > now_s and not np.any(told[:, 1] == i):
        _freed(c, p, i, False, now_s)
        revoke(c, i)
        add(c.lost, i)
    c.processors.running[p] = -1
    while c.processors.head[p] >= 0:
        i = c.nodes.task[c.processors.head[p]]
        put_away(c, i, now_s)
        add(c.lost, i)


@inner
def _machine(c: Lists, what: int, at: int, told: Ints, now_s: float) -> None:
    """Take note of a processor or a server that is down or back."""
    if what == GONE:
        c.processors.up[at] = 0
        _evict(c, at, told, now_s)
        set_free(c, at, np.inf, now_s)
    elif what == RETURNED:
        j, ready = c.processors.server[at], now_s
        if c.servers.awake[j] == 1:
            ready = max(now_s, c.servers.on_since_s[j] + c.servers.wake_s[j])
        c.processors.up[at], c.processors.ready_s[at] = 1, ready
        set_free(c, at, ready, now_s)
    elif what == SERVER_GONE:
        c.servers.works[at] = 0
        for p in range(c.servers.first[at], c.servers.end[at]):
            _evict(c, p, told, now_s)
        put_out(c, at, np.inf)
    else:
        c.servers.works[at] = 1
        put_out(c, at, c.servers.wake_s[at])


@inner
def _leave(c: Lists, i: int, p: int, now_s: float) -> None:
    """Task ``i`` is no longer wanted, wherever it is."""
    if drop(c.hopes, i):
        return
    if waits(c, i) and (c.tasks.start_s[i] > now_s or c.tasks.processors[i] > 1):
        take_off(c, i, now_s)
    elif p >= 0:
        _freed(c, p, i, False, now_s)


@inner
def _follow(c: Lists, told: Ints, now_s: float) -> None:
    """Take note of what happened; what has lost its place is listed in ``lost``."""
    for a in range(told.shape[0]):
        what, i, at = told[a, 0], told[a, 1], told[a, 2]
        if what in (FREED, STOPPED):
            _freed(c, at, i, what == FREED, now_s)
        elif what == OVER:
            _overdue(c, at, i, now_s)
        elif what == CUT:
            if not drop(c.lost, i):
                _leave(c, i, at, now_s)
        elif what in (MOVED, CHANGED):
            moves = waits(c, i) and (what == MOVED or c.tasks.start_s[i] > now_s)
            if moves:
                _leave(c, i, -1, now_s)
                revoke(c, i)
            if moves or what == MOVED:
                drop(c.lost, i)  # once is enough
                add(c.lost, i)
        else:
            _machine(c, what, at, told, now_s)


@inner
def _place_listed(c: Lists, listed: Ints, late: bool, now_s: float) -> None:
    """Place what is on a list, though ``late`` if need be; what finds no place stays on it."""
    kept = 0
    for a in range(1, listed[0] + 1):
        i = listed[a]
        if not (again(c, i, now_s) if late else place(c, i, now_s)):
            kept += 1
            listed[kept] = i
    listed[0] = kept


@compiled
def moment(c: Lists, told: Ints, arrived: Ints, now_s: float) -> None:
    """Do everything that happens at one moment.

    ``told`` has rows (what, task, processor or server); ``hopes`` the tasks that were refused a
    place and may still get one, and ``lost`` those to place anew, both with their number first.
    Cost: log p a fact, p where a processor is left idle.
    """
    _follow(c, told, now_s)
    _place_listed(c, c.lost, True, now_s)
    for a in range(told.shape[0]):
        if told[a, 0] in (RETURNED, SERVER_BACK):  # a machine is back
            _place_listed(c, c.hopes, False, now_s)
            break
    start_gangs(c, now_s)
    release_and_sleep(c, now_s)
    for a in range(arrived.size):
        place_or_refuse(c, arrived[a], now_s)
    start_gangs(c, now_s)
