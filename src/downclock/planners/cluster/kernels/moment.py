"""What happens to a plan at one moment.

Tasks come and end, sooner or later than planned; machines fail and are back; servers fall asleep. A
task that ends early frees its processor at once. One that is overdue is believed to take a little
longer, again and again; what is planned after it is moved or hurried.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.kernels.ends import overdue_until_s
from downclock.kernels.least_tree import set_key
from downclock.kernels.refusals import NOWHERE
from downclock.planners.cluster.kernels.awake import (
    break_down,
    count_working,
    lingers_s,
    return_asleep,
    set_asleep,
    sleep,
    stays,
    wake,
)
from downclock.planners.cluster.kernels.board import Cluster, first_of, row_of
from downclock.planners.cluster.kernels.flat import begin, place_flat
from downclock.planners.cluster.kernels.hurry import hasten, note_no_room
from downclock.planners.cluster.kernels.processors import (
    append,
    can_shift,
    changed,
    retime,
    soonest_s,
    unqueue,
)
from downclock.planners.cluster.kernels.replan import (
    clear,
    compress_for,
    estimate_idle_share,
    improve_plan,
    queued_tasks,
    refuse,
    relax,
    remember,
    start_idle,
)
from downclock.units import Floats, Ints

FREED, GONE, RETURNED, CUT, AGAIN, SERVER_GONE, SERVER_BACK, CHANGED = range(8)
"""What a moment is told, rows (what, task, processor or server): a task is done there; a processor
is down; is back; a task is no longer wanted; needs another place; a server is down; is back; a task
has another deadline."""


@inner
def _woken_s(c: Cluster, p: int, now_s: float) -> float:
    """When processor ``p`` of an awake server can start something: now, or when it is awake."""
    j = c.processors.server[p]
    return max(now_s, c.servers.since_s[j] + c.servers.wake_s[j])


@inner
def _unpromise(c: Cluster, p: int, now_s: float) -> None:
    """Forget what was to begin on processor ``p`` once it is awake; it is told to need a place."""
    if c.processors.running[p] >= 0 and c.processors.begun_s[p] > now_s:
        c.processors.running[p] = -1
        set_key(c.busy, 0, p, np.inf)


@inner
def _freed(c: Cluster, p: int, now_s: float) -> None:
    """Processor ``p`` has nothing to run any more."""
    j = c.processors.server[p]
    set_key(c.busy, 0, p, np.inf)
    c.processors.running[p] = -1
    if c.servers.works[j] == 0 or c.servers.awake[j] == 0:
        return
    if c.processors.ready_s[p] != now_s:
        c.tally.settled[0] = 0
        retime(c, p, _woken_s(c, p, now_s))
    begin(c, p, now_s)


@inner
def _give_place(c: Cluster, i: int, p: int, now_s: float) -> None:
    """Place an accepted task anew; where it cannot be on time it runs at its fastest.

    On processor ``p`` then, or where it can end first.
    """
    if place_flat(c, i, now_s) or compress_for(c, i, now_s):
        return
    best, least = -1, np.inf
    for q in range(c.processors.kind.size):
        short = c.curves.rows.short_s[row_of(c, i, c.processors.kind[q])]
        end = max(soonest_s(c, q, now_s), c.processors.end_s[q]) + short
        if end < least or (q == p and end <= least):
            best, least = q, end
    if best < 0:
        refuse(c, i, now_s)
        c.refusals.why[c.tally.refusals[0] - 1] = NOWHERE
        return
    j = c.processors.server[best]
    if c.servers.awake[j] == 0:
        wake(c, j, now_s)
    append(c, best, i, c.curves.rows.short_s[row_of(c, i, c.processors.kind[best])], now_s)
    c.tally.unstarted[0] = 1
    changed(c, best)


@inner
def _take_all(c: Cluster, p: int, now_s: float) -> Ints:
    """Take back all that waits on processor ``p``; return it in order."""
    count = 0
    i = c.processors.head[p]
    while i >= 0:
        count += 1
        i = c.tasks.after[i]
    taken = np.empty(count, np.int64)
    for a in range(count):
        taken[a] = c.processors.head[p]
        unqueue(c, c.processors.head[p])
    c.processors.end_s[p] = c.processors.ready_s[p]
    return taken


@inner
def _overdue(c: Cluster, p: int, now_s: float) -> None:
    """Believe that what runs on processor ``p`` takes longer, and see to what comes after."""
    c.tally.settled[0] = 0
    ready = overdue_until_s(c.processors.begun_s[p], now_s)
    c.processors.ready_s[p] = ready
    set_key(c.busy, 0, p, ready)
    retime(c, p, ready)
    if can_shift(c, p, ready, c.tally.queued[0]):
        return
    if not c.rules.late:
        relax(c, p, now_s)
        return
    taken = _take_all(c, p, now_s)
    changed(c, p)
    for i in taken:
        _give_place(c, i, p, now_s)


@inner
def _machine(c: Cluster, what: int, at: int, now_s: float) -> Ints:
    """Take note of a processor or server that is down or back; return tasks without a place."""
    c.tally.settled[0] = 0
    taken = np.empty(0, np.int64)
    if what == GONE:
        c.processors.up[at] = 0
        _unpromise(c, at, now_s)
        taken = _take_all(c, at, now_s)
        if c.servers.awake[c.processors.server[at]] == 1:
            c.processors.ready_s[at] = c.processors.end_s[at] = now_s
        else:
            set_asleep(c, c.processors.server[at])
        changed(c, at)
    elif what == RETURNED:
        c.processors.up[at] = 1
        if c.servers.awake[c.processors.server[at]] == 1:
            c.processors.ready_s[at] = c.processors.end_s[at] = _woken_s(c, at, now_s)
            changed(c, at)
        else:
            set_asleep(c, c.processors.server[at])
    elif what == SERVER_GONE:
        break_down(c, at)
        for p in range(c.servers.first[at], c.servers.end[at]):
            _unpromise(c, p, now_s)
            taken = np.concatenate((taken, _take_all(c, p, now_s)))
            c.processors.ready_s[p] = c.processors.end_s[p] = now_s
        set_key(c.attend, 0, at, np.inf)
    else:
        return_asleep(c, at, now_s)
    count_working(c)
    return taken


@inner
def _leave(c: Cluster, i: int, p: int, now_s: float) -> None:
    """Task ``i`` is no longer wanted."""
    c.tally.settled[0] = 0
    if c.tasks.place[i] >= 0:
        q = unqueue(c, i)
        retime(c, q, c.processors.ready_s[q])
    elif p >= 0:
        _freed(c, p, now_s)


@inner
def _follow(c: Cluster, told: Ints, now_s: float) -> None:
    """Follow what was told: ends first, then machines; what has lost its place gets another."""
    homeless = np.empty(0, np.int64)
    for a in range(told.shape[0]):
        what, i, at = told[a, 0], told[a, 1], told[a, 2]
        if what == FREED:
            _freed(c, at, now_s)
        elif what == CUT:
            _leave(c, i, at, now_s)
        elif what in (AGAIN, CHANGED):
            waited = c.tasks.place[i] >= 0
            if waited:
                _leave(c, i, -1, now_s)
            if waited or what == AGAIN:
                homeless = np.append(homeless, np.array([i]))
        else:
            homeless = np.concatenate((homeless, _machine(c, what, at, now_s)))
    while c.busy[0, 1] <= now_s:
        _overdue(c, first_of(c.busy), now_s)
    for a in range(homeless.size):
        _give_place(c, homeless[a], -1, now_s)


@inner
def _attend(c: Cluster, now_s: float) -> None:
    """Let servers sleep that have had nothing to do for long enough."""
    while c.attend[0, 1] <= now_s:
        j, at_s = first_of(c.attend), c.attend[0, 1]
        if stays(c, j, at_s):
            set_key(c.attend, 0, j, c.servers.last_s[j] + lingers_s(c, j))
        else:
            sleep(c, j, at_s)


@inner
def queued_moment(c: Cluster, told: Ints, arrived: Ints, now_s: float) -> None:
    """Do everything that happens at ``now_s`` where tasks wait in queues of processors."""
    _follow(c, told, now_s)
    if arrived.size > 0:
        c.tally.settled[0] = 0
        estimate_idle_share(c, arrived.size, now_s)
    for i in arrived:
        if now_s > 0.0:
            remember(c, i, now_s)
        hasten(c, i, now_s)
        if place_flat(c, i, now_s):
            continue
        note_no_room(c, i, now_s)
        if not c.rules.late or not compress_for(c, i, now_s):
            refuse(c, i, now_s)
    if c.rules.late:
        improve_plan(c, now_s)
    start_idle(c, now_s)
    _attend(c, now_s)


@compiled
def follow(c: Cluster, told: Ints, now_s: float) -> None:
    """Follow what was told at ``now_s``, as the first part of a moment."""
    _follow(c, told, now_s)


@compiled
def load(
    c: Cluster,
    tasks: Ints,
    processor: Ints,
    length_s: Floats,
    new: Ints,
    closed: bool,
    now_s: float,
) -> None:
    """Plan rows (m,), by processor and in running order, in place of all that waits.

    ``new`` have come now; ``closed``: nothing more comes.
    """
    if now_s > 0.0:
        for i in new:
            remember(c, i, now_s)
    clear(c, queued_tasks(c)[0])
    for a in range(tasks.size):
        j = c.processors.server[processor[a]]
        if c.servers.awake[j] == 0:
            wake(c, j, now_s)
        append(c, processor[a], tasks[a], length_s[a], now_s)
    c.tally.settled[0] = c.tally.unstarted[0] = 1
    c.tally.mean_s[0] = length_s.mean()
    if closed:
        c.tally.closed[0] = 1
        c.tally.idle_share[0] = 1.0
    start_idle(c, now_s)
