"""What a list policy does when the world is not as promised: ends, overruns, failures, repairs.

A processor that is free sooner takes up what waits there, then a task that was refused a place and
still can be on time, then one that waits elsewhere. What is overdue is believed to take a little
longer. What has lost its place gets another one; accepted is accepted.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.chains import unlink
from downclock.kernels.compiling import compiled, inner
from downclock.kernels.ends import ends_by, overdue_until_s
from downclock.kernels.least_tree import set_key
from downclock.planners.lists.kernels.board import (
    PLACES,
    REVOKES,
    STARTS,
    Lists,
    add,
    advance,
    believe_end,
    drop,
    enqueue,
    fitting_length,
    put_out,
    settle,
    tell,
    waits,
    wake,
    write,
)
from downclock.planners.lists.kernels.gangs import seat, soonest_gang, start_gangs
from downclock.planners.lists.kernels.place import place, place_or_refuse, release_and_sleep
from downclock.units import Ints

LOOK = 1024
"""Processors looked at for a task that could start on a free one."""

FREED, OVER, GONE, RETURNED, CUT, MOVED, SERVER_GONE, SERVER_BACK, CHANGED, STOPPED = range(10)
"""What a moment is told: (task, processor) is done there; does not end as believed; a processor is
down; is back; a task is no longer wanted; was lost; a server is down; is back; a task has another
deadline; (task, processor) ended there without being done."""


@inner
def _set_free(c: Lists, p: int, at_s: float, now_s: float) -> None:
    """Say at ``now_s`` that processor ``p`` is free of all it is to do at ``at_s``."""
    j, trees = c.processors.server[p], c.trees
    if c.servers.awake[j] == 0:
        return
    leaf = trees.shape[1] // 2
    set_key(trees, c.processors.kind[p], p, at_s if c.processors.up[p] == 1 else np.inf)
    end = max(c.servers.on_since_s[j], min(c.servers.end_s[j], now_s))
    if c.servers.on_since_s[j] >= 0.0:  # it wakes first, whatever becomes of its processors
        end = max(end, c.servers.on_since_s[j] + c.servers.wake_s[j])
    for q in range(c.servers.first[j], c.servers.end[j]):
        free = trees[c.processors.kind[q], leaf + q]
        end = max(end, free if free < np.inf else 0.0)
        if c.processors.running[q] >= 0:
            end = max(end, c.processors.ready_s[q])
    c.servers.end_s[j] = end
    set_key(trees, trees.shape[0] - 1, j, end + c.servers.patience_s[j])


@inner
def _note(c: Lists, p: int) -> None:
    """Put processor ``p`` on the list of those to look at, once."""
    if c.processors.listed[p] == 0:
        c.processors.listed[p] = 1
        add(c.listed, p)


@inner
def _together_s(c: Lists, i: int, now_s: float) -> float:
    """Return when all processors of gang ``i`` are done with what is before it."""
    at_s = now_s
    for n in range(c.tasks.node[i], c.tasks.node[i] + c.tasks.processors[i]):
        ahead = c.nodes.before[n]
        free_s = c.processors.ready_s[c.nodes.lane[n]]
        at_s = max(at_s, free_s if ahead < 0 else c.tasks.end_s[c.nodes.task[ahead]])
    return at_s


@inner
def _walk(c: Lists, p: int, at_s: float, now_s: float) -> None:
    """Retime what waits on processor ``p`` alone; others of gangs that move are listed."""
    n = c.processors.head[p]
    while n >= 0:
        i = c.nodes.task[n]
        gang = c.tasks.processors[i] > 1
        begin_s = _together_s(c, i, now_s) if gang else at_s
        moved = begin_s != c.tasks.start_s[i]
        c.tasks.start_s[i] = begin_s
        at_s = ends_by(begin_s, c.tasks.length_s[i], c.tasks.deadline_s[i])
        moved = moved or at_s != c.tasks.end_s[i]
        believe_end(c, i, at_s)
        if gang and moved:
            set_key(c.due, STARTS, i, begin_s)
            for m in range(c.tasks.node[i], c.tasks.node[i] + c.tasks.processors[i]):
                _note(c, c.nodes.lane[m])
        n = c.nodes.after[n]
    _set_free(c, p, at_s, now_s)


@inner
def _retime(c: Lists, p: int, at_s: float, now_s: float) -> None:
    """Let what waits on processor ``p`` follow one after the other from ``at_s`` on.

    And all that waits for gangs which move by it. What waits on a processor is in the order of its
    starts, so this ends.
    """
    c.listed[0] = 0
    c.processors.listed[p] = 1
    _walk(c, p, at_s, now_s)
    c.processors.listed[p] = 0
    while c.listed[0] > 0:
        q = c.listed[c.listed[0]]
        c.listed[0] -= 1
        c.processors.listed[q] = 0
        _catch_up(c, q, now_s)
        _walk(c, q, max(now_s, c.processors.ready_s[q]), now_s)


@inner
def _catch_up(c: Lists, p: int, now_s: float) -> None:
    """Let what should have started on processor ``p`` before now run."""
    advance(c, p, np.nextafter(now_s, -np.inf))


@inner
def _revoke(c: Lists, i: int) -> None:
    """Take back what was promised of task ``i``, in this moment too."""
    c.tasks.told[i] = 0
    row = c.tasks.row[i]
    if row < c.counts[PLACES] and c.placed.task[row] == i:
        c.placed.processor[row] = -1
    row = c.tasks.cut[i]
    if row >= c.counts[REVOKES] or c.revoked[row] != i:
        row = c.counts[REVOKES]
        c.counts[REVOKES] += 1
        c.tasks.cut[i], c.revoked[row] = row, i


@inner
def _shifts(c: Lists, p: int, at_s: float, short: bool) -> bool:
    """Tell whether what waits on processor ``p`` is on time from ``at_s``, if need be shortened.

    Gangs are not to be put off.
    """
    k, n = c.processors.kind[p], c.processors.head[p]
    while n >= 0:
        i = c.nodes.task[n]
        if c.tasks.processors[i] > 1:
            return at_s <= c.tasks.start_s[i]
        at_s += c.curves.shortest_s[i, k] if short else c.tasks.length_s[i]
        if at_s > c.tasks.deadline_s[i]:
            return False
        n = c.nodes.after[n]
    return True


@inner
def _shorten(c: Lists, p: int) -> None:
    """Run all that waits on processor ``p`` before any gang as fast as can be."""
    k, n = c.processors.kind[p], c.processors.head[p]
    while n >= 0 and c.tasks.processors[c.nodes.task[n]] == 1:
        c.tasks.length_s[c.nodes.task[n]] = c.curves.shortest_s[c.nodes.task[n], k]
        n = c.nodes.after[n]


@inner
def _promise_anew(c: Lists, p: int, new: int) -> None:
    """Promise all that waits on ``p`` before any gang anew, in order; ``new`` was not yet."""
    n = c.processors.head[p]
    while n >= 0 and c.tasks.processors[c.nodes.task[n]] == 1:
        i = c.nodes.task[n]
        if i != new:
            _revoke(c, i)
        write(c, i, p, c.tasks.start_s[i], c.tasks.length_s[i])
        n = c.nodes.after[n]


@inner
def _take_off(c: Lists, i: int, now_s: float) -> None:
    """Take task ``i`` off the processors that it waits on; what is behind it follows."""
    first, end = c.tasks.node[i], c.tasks.node[i] + c.tasks.processors[i]
    for n in range(first, end):
        _catch_up(c, c.nodes.lane[n], now_s)
        unlink(c.processors, c.nodes, n)
    if end > first + 1:
        set_key(c.due, STARTS, i, np.inf)
        drop(c.gangs, i)
    for n in range(first, end):
        p = c.nodes.lane[n]
        if end > first + 1:
            c.processors.gangs[p] -= 1
        _retime(c, p, max(now_s, c.processors.ready_s[p]), now_s)
        tell(c, p)
    believe_end(c, i, np.inf)


@inner
def _put_away(c: Lists, i: int, now_s: float) -> None:
    """Take back task ``i``, which waits; what is behind it on a processor of its own stays."""
    if c.tasks.processors[i] > 1:
        _take_off(c, i, now_s)
    else:
        unlink(c.processors, c.nodes, c.tasks.node[i])
    _revoke(c, i)


@inner
def _take_hopeful(c: Lists, p: int, now_s: float) -> bool:
    """Start a task on the free processor ``p`` that had no place: of those in time, by deadline.

    What waits there must still be on time, if need be at its fastest.
    """
    k, best = c.processors.kind[p], -1
    for a in range(1, c.hopes[0] + 1):
        i = c.hopes[a]
        end = now_s + c.curves.shortest_s[i, k]
        sooner = best < 0 or c.tasks.deadline_s[i] < c.tasks.deadline_s[c.hopes[best]]
        if not sooner or end == np.inf or end > c.tasks.deadline_s[i]:
            continue
        if c.tasks.processors[i] == 1 and _shifts(c, p, end, True):
            best = a
    if best < 0:
        return False
    i = c.hopes[best]
    drop(c.hopes, i)
    length = c.curves.shortest_s[i, k]
    if not _shifts(c, p, now_s + length, False):
        _shorten(c, p)
    enqueue(c, p, c.tasks.node[i], -1, now_s, length)
    _retime(c, p, now_s, now_s)
    _promise_anew(c, p, i)
    return True


@inner
def _take_waiting(c: Lists, p: int, now_s: float) -> None:
    """Start a task on the idle processor ``p`` that is next elsewhere: the earliest deadline."""
    best, k = -1, c.processors.kind[p]
    for a in range(min(c.processors.kind.size, LOOK)):
        q = (p + a) % c.processors.kind.size
        n = c.processors.head[q]
        if n < 0 or c.processors.kind[q] != k:
            continue
        i = c.nodes.task[n]
        if c.tasks.start_s[i] <= now_s or c.tasks.processors[i] > 1:
            continue
        if best < 0 or c.tasks.deadline_s[i] < c.tasks.deadline_s[best]:
            best = i
    if best < 0 or now_s + c.tasks.length_s[best] > c.tasks.deadline_s[best]:
        return
    length_s = c.tasks.length_s[best]
    _take_off(c, best, now_s)
    _revoke(c, best)
    enqueue(c, p, c.tasks.node[best], -1, now_s, length_s)
    _retime(c, p, now_s, now_s)
    write(c, best, p, now_s, length_s)


@inner
def _idle(c: Lists, p: int, k: int, now_s: float) -> bool:
    """Tell whether processor ``p`` has nothing to do."""
    free_s = c.trees[c.processors.kind[p], c.trees.shape[1] // 2 + p]
    return c.processors.kind[p] == k and free_s <= now_s and c.processors.head[p] < 0


@inner
def _next_gang(c: Lists, listed: Ints, k: int, most: int, now_s: float) -> int:
    """Return the gang on a list that could start now on ``most`` processors; or -1.

    Of those on time that would start later, or never, the one with the earliest deadline.
    """
    best = -1
    for a in range(1, listed[0] + 1):
        i = listed[a]
        if not 1 < c.tasks.processors[i] <= most or c.tasks.start_s[i] <= now_s:
            continue
        end_s = now_s + c.curves.shortest_s[i, k]
        if end_s == np.inf or end_s > c.tasks.deadline_s[i]:
            continue
        if best < 0 or c.tasks.deadline_s[i] < c.tasks.deadline_s[best]:
            best = i
    return best


@inner
def _take_gang(c: Lists, p: int, now_s: float) -> None:
    """Start a gang on the server of the idle processor ``p`` that had no place, or a later one."""
    j, k, most = c.processors.server[p], c.processors.kind[p], 0
    for q in range(c.servers.first[j], c.servers.end[j]):
        most += 1 if _idle(c, q, k, now_s) else 0
    i = _next_gang(c, c.hopes, k, most, now_s)
    if i < 0:
        i = _next_gang(c, c.gangs, k, most, now_s)
    if i < 0:
        return
    length_s = fitting_length(c, k, i, c.tasks.deadline_s[i] - now_s, 0.0)
    if length_s < 0.0:
        return
    if waits(c, i):
        _take_off(c, i, now_s)
    drop(c.hopes, i)
    seat(c, i, k, j, now_s, length_s, now_s)


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
        _retime(c, p, now_s, now_s)
        if c.hopes[0] > 0:
            _take_hopeful(c, p, now_s)
        if c.processors.head[p] < 0 and c.gangs[0] + c.hopes[0] > 0:
            _take_gang(c, p, now_s)
        if c.processors.head[p] < 0:
            _take_waiting(c, p, now_s)
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
            _retime(c, q, end_s, at_s)
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
    hurries = not _shifts(c, p, c.processors.ready_s[p], False)
    if hurries:
        _shorten(c, p)
    _retime(c, p, c.processors.ready_s[p], now_s)
    if hurries:
        _promise_anew(c, p, -1)
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
        _put_away(c, c.late[a], now_s)
    if count > 0:
        _retime(c, p, c.processors.ready_s[p], now_s)
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
    _catch_up(c, p, now_s)
    i = c.processors.running[p]
    if i >= 0 and c.tasks.end_s[i] > now_s and not np.any(told[:, 1] == i):
        _freed(c, p, i, False, now_s)
        _revoke(c, i)
        add(c.lost, i)
    c.processors.running[p] = -1
    while c.processors.head[p] >= 0:
        i = c.nodes.task[c.processors.head[p]]
        _put_away(c, i, now_s)
        add(c.lost, i)


@inner
def _machine(c: Lists, what: int, at: int, told: Ints, now_s: float) -> None:
    """Take note of a processor or a server that is down or back."""
    if what == GONE:
        c.processors.up[at] = 0
        _evict(c, at, told, now_s)
        _set_free(c, at, np.inf, now_s)
    elif what == RETURNED:
        j, ready = c.processors.server[at], now_s
        if c.servers.awake[j] == 1:
            ready = max(now_s, c.servers.on_since_s[j] + c.servers.wake_s[j])
        c.processors.up[at], c.processors.ready_s[at] = 1, ready
        _set_free(c, at, ready, now_s)
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
        _take_off(c, i, now_s)
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
                _revoke(c, i)
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
