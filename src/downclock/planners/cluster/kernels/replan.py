"""Planning again: what has not started is taken back and placed anew where that costs less.

The worth of time added to a server depends on what is still to come: while arrivals keep the
processors busy, later tasks will fill the gaps; once they stay away, every gap idles.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.kernels.refusals import NO_ROOM, NO_TIME, NO_WAKE
from downclock.planners.cluster.kernels.awake import set_last, wake
from downclock.planners.cluster.kernels.board import RECENT, Cluster, is_idle, row_of
from downclock.planners.cluster.kernels.curves import energy_j, want_s
from downclock.planners.cluster.kernels.flat import ALL, begin, cheapest_end, dearer_j, put_in_order
from downclock.planners.cluster.kernels.processors import (
    append,
    changed,
    soonest_s,
    take_back,
    unqueue,
)
from downclock.units import Floats, Ints

ATTEMPTS, MORE = 8, 30.0
"""Tasks placed anew at each event, and how many times more when nothing more comes: there search
pays most, so effort is spent in the same way."""

LEAST_IDLE = 0.005
"""Part of a server's added time that idles, at least: more tasks will come to fill it."""

POWER = 3.0
"""How steeply the idle share rises with the part of the processors that arrivals do not need."""

FEW = 16
"""Arrivals up to which there is no rate to go by."""

EVERY, GATE = 8, 0.1
"""The whole plan is made anew after so many events, where at least this part will idle."""

SQUARE, FULL = 128.0, 1024.0
"""On more awake processors the plan is made anew more seldom, with their square, and fewer tasks
are placed anew, so that an event costs about the same on a cluster of any size."""

WINDOW = 4096
"""Awake processors up to which a plan is improved; near them less and less of it."""

AT_ONCE = 1_000_000
"""Places looked at in one planning anew, at most: with more tasks in all queues it is left out, as
then there is work for every gap."""

BACKLOG = 4.0
"""With so many times as many tasks queued as there are processors, nothing idles for long."""

URGENT = 0.2
"""Tasks that can wait for less than this part of their run time are placed first."""

CROWD = 1024
"""Planned tasks up to which all are hurried to make room for one more."""


@inner
def queued_tasks(c: Cluster) -> tuple[Ints, Ints, Floats]:
    """Return every planned task, its processor and run time, server by server."""
    count = c.tally.queued[0]
    tasks, where = np.empty(count, np.int64), np.empty(count, np.int64)
    length_s, m = np.empty(count), 0
    for a in range(c.tally.awake[0]):
        j = c.awake_servers[a]
        for p in range(c.servers.first[j], c.servers.end[j]):
            i = c.processors.head[p]
            while i >= 0:
                tasks[m], where[m], length_s[m] = i, p, c.tasks.length_s[i]
                m += 1
                i = c.tasks.after[i]
    return tasks[:m], where[:m], length_s[:m]


@inner
def clear(c: Cluster, tasks: Ints) -> None:
    """Take tasks back; all that wait on the processors concerned are among them."""
    for i in tasks:
        p = unqueue(c, i)
        if c.processors.head[p] < 0:
            changed(c, p)


@inner
def put_back(c: Cluster, tasks: Ints, where: Ints, length_s: Floats, now_s: float) -> None:
    """Plan tasks as they were."""
    for a in range(tasks.size):
        append(c, where[a], tasks[a], length_s[a], now_s)


@inner
def _in_turn(c: Cluster, tasks: Ints, where: Ints, now_s: float) -> Ints:
    """Return the order of placing tasks: urgent ones by slack, then the longest first."""
    m = tasks.size
    patient, key = np.zeros(m), np.empty(m)
    for a in range(m):
        free = c.curves.rows.free_s[row_of(c, tasks[a], c.processors.kind[where[a]])]
        key[a] = c.tasks.deadline_s[tasks[a]] - now_s - free
        if key[a] >= URGENT * free:
            patient[a], key[a] = 1.0, -free
    order = np.argsort(key, kind="mergesort")  # stable, so the second sort keeps the first
    return order[np.argsort(patient[order], kind="mergesort")]


@inner
def _unfilled_j(c: Cluster, i: int, p: int) -> float:
    """Return how much less idle power task ``i`` replaces there than where it costs least."""
    idle_w, free_s = c.curves.kinds.idle_w, c.curves.rows.free_s
    k, least = c.processors.kind[p], max(c.kinds[i, 0], 0)
    less = idle_w[least] * free_s[row_of(c, i, least)] - idle_w[k] * free_s[row_of(c, i, k)]
    return c.tally.idle_share[0] * less


@inner
def _worth(c: Cluster) -> float:
    """Return the energy above the tasks' best that the plan has in what has not started."""
    total = 0.0
    for a in range(c.tally.awake[0]):
        j = c.awake_servers[a]
        total += c.tally.idle_share[0] * c.servers.awake_w[j] * c.servers.last_s[j]
        for p in range(c.servers.first[j], c.servers.end[j]):
            i = c.processors.head[p]
            while i >= 0:
                row = row_of(c, i, c.processors.kind[p])
                total += dearer_j(c, i, c.processors.kind[p]) + _unfilled_j(c, i, p)
                if c.tasks.length_s[i] < c.curves.rows.free_s[row]:
                    total += (
                        energy_j(c.curves, row, c.tasks.length_s[i]) - c.curves.rows.free_j[row]
                    )
                i = c.tasks.after[i]
    return total


@inner
def _place_again(c: Cluster, i: int, now_s: float) -> bool:
    """Place a task in a plan that is made anew; nothing starts in between."""
    p, length = cheapest_end(c, i, now_s)
    if p < 0:
        return False
    append(c, p, i, length, now_s)
    return True


@inner
def replan(c: Cluster, now_s: float) -> None:
    """Place what has not started anew, urgent tasks first, then the longest; keep the better."""
    before = _worth(c)
    tasks, where, length_s = queued_tasks(c)
    clear(c, tasks)
    good = True
    for a in _in_turn(c, tasks, where, now_s):
        if not _place_again(c, tasks[a], now_s):
            good = False
            break
    if good and _worth(c) < before:
        c.tally.unstarted[0] = 1
        return
    clear(c, queued_tasks(c)[0])
    put_back(c, tasks, where, length_s, now_s)


@inner
def _improve_flat(c: Cluster, now_s: float) -> None:
    """Take tasks that end a server's plan back and place them anew, in turns over servers."""
    tally = c.tally
    awake = max(tally.processors[0], 1)
    effort = min(1.0, FULL / awake) ** 2 * min(1.0, (WINDOW - awake) / (WINDOW - ALL))
    more = MORE * tally.idle_share[0] if tally.closed[0] == 0 else 0.0  # a batch was packed well
    for _ in range(int(np.ceil(effort * (ATTEMPTS + c.rules.effort) * (1.0 + more)))):
        if tally.awake[0] == 0:
            return
        tally.turn[0] += 1
        j = c.awake_servers[tally.turn[0] % tally.awake[0]]
        p, end = -1, -1.0
        for q in range(c.servers.first[j], c.servers.end[j]):
            if c.processors.head[q] >= 0 and c.processors.end_s[q] > end:
                p, end = q, c.processors.end_s[q]
        if p < 0 or c.servers.end[j] - c.servers.first[j] == 1:
            continue
        i = take_back(c, p)
        q, length = cheapest_end(c, i, now_s)
        if q < 0:
            q = p
            room = c.tasks.deadline_s[i] - c.processors.end_s[p]
            length = want_s(c.curves, row_of(c, i, c.processors.kind[p]), room)
            length = c.tasks.length_s[i] if length < 0.0 else length
        put_in_order(c, q, i, length, now_s)
        if is_idle(c, q):
            begin(c, q, now_s)


@inner
def improve_plan(c: Cluster, now_s: float) -> None:
    """Improve the plan, as far as its size allows."""
    if c.tally.processors[0] > WINDOW:
        c.tally.idle_share[0] = LEAST_IDLE
        return
    _foresee(c, now_s)
    if c.tally.settled[0] == 1:
        return
    _improve_flat(c, now_s)
    c.tally.since_replan[0] += 1
    wait = max(EVERY, (c.tally.processors[0] / SQUARE) ** 2)
    small = c.tally.queued[0] * c.tally.processors[0] <= AT_ONCE
    if c.tally.idle_share[0] > GATE and c.tally.since_replan[0] >= wait and small:
        c.tally.since_replan[0] = 0
        replan(c, now_s)


@inner
def start_idle(c: Cluster, now_s: float) -> None:
    """Start what is planned on processors where nothing runs, if there may be any."""
    if c.tally.unstarted[0] == 0:
        return
    c.tally.unstarted[0] = 0
    for a in range(c.tally.awake[0]):
        j = c.awake_servers[a]
        for p in range(c.servers.first[j], c.servers.end[j]):
            if c.processors.head[p] >= 0 and is_idle(c, p):
                begin(c, p, now_s)


@inner
def relax(c: Cluster, p: int, now_s: float) -> None:
    """Give the planned tasks of processor ``p`` the time that their deadlines leave.

    Each gets what its own and all later deadlines allow, those at their fastest; a task that
    cannot be on time runs at its fastest.
    """
    k, count = c.processors.kind[p], 0
    i = c.processors.head[p]
    while i >= 0:
        count += 1
        i = c.tasks.after[i]
    latest, i, limit = np.empty(count), c.processors.tail[p], np.inf
    for a in range(count - 1, -1, -1):
        latest[a] = min(limit, c.tasks.deadline_s[i])
        limit = latest[a] - c.curves.rows.short_s[row_of(c, i, k)]
        i = c.tasks.before[i]
    at, i = max(now_s, c.processors.ready_s[p]), c.processors.head[p]
    for a in range(count):
        row = row_of(c, i, k)
        length = want_s(c.curves, row, latest[a] - at)
        c.tasks.start_s[i] = at
        c.tasks.length_s[i] = length if length > 0.0 else c.curves.rows.short_s[row]
        at += c.tasks.length_s[i]
        i = c.tasks.after[i]
    c.processors.end_s[p] = at
    set_last(c, c.processors.server[p])


@inner
def _soonest(c: Cluster, free_s: Floats, i: int) -> tuple[int, float]:
    """Return (processor where task ``i`` would end first, when); -1: no processor can run it."""
    best, least = -1, np.inf
    for p in range(free_s.size):
        end = free_s[p] + c.curves.rows.short_s[row_of(c, i, c.processors.kind[p])]
        if end < least:
            best, least = p, end
    return best, least


@inner
def _fastest_s(c: Cluster, i: int) -> float:
    """Return the shortest run time of task ``i`` on any kind."""
    least = np.inf
    for k in range(c.kinds.shape[1]):
        least = min(least, c.curves.rows.short_s[row_of(c, i, k)])
    return least


@inner
def _spread(c: Cluster, tasks: Ints, new: int, asleep: bool, now_s: float) -> tuple[Ints, Ints]:
    """Return (tasks by deadline, processors where they end first); none: one is late.

    All at their fastest, on servers that are awake, or on those ``asleep``, too. A task other than
    ``new`` that cannot be on time on any processor is no reason to give up.
    """
    free_s = np.full(c.processors.kind.size, np.inf)
    for p in range(free_s.size):
        if asleep or c.servers.awake[c.processors.server[p]] == 1:
            free_s[p] = soonest_s(c, p, now_s)
    order = tasks[np.argsort(c.tasks.deadline_s[tasks], kind="mergesort")]  # stable
    where = np.empty(order.size, np.int64)
    for a in range(order.size):
        i = order[a]
        p, end = _soonest(c, free_s, i)
        hopeless = now_s + _fastest_s(c, i) > c.tasks.deadline_s[i]
        if p < 0 or (end > c.tasks.deadline_s[i] and (i == new or not hopeless)):
            return order[:0], where[:0]
        where[a], free_s[p] = p, end
    return order, where


@inner
def compress_for(c: Cluster, new: int, now_s: float) -> bool:
    """Make room for task ``new`` by hurrying and moving what has not started; False: none.

    What is to start now does so when the plan is improved, at the end of the moment.
    """
    if c.tally.processors[0] > WINDOW or c.tally.queued[0] > CROWD:
        return False
    tasks = queued_tasks(c)[0]
    together = np.append(tasks, np.array([new]))
    order, where = _spread(c, together, new, False, now_s)
    if order.size == 0:
        order, where = _spread(c, together, new, True, now_s)
    if order.size == 0:
        return False
    clear(c, tasks)
    c.tally.settled[0] = 0
    for a in range(order.size):
        _put_hurried(c, order[a], where[a], now_s)
    for p in range(c.processors.kind.size):
        if c.processors.head[p] >= 0:
            relax(c, p, now_s)
    c.tally.unstarted[0] = 1
    return True


@inner
def _put_hurried(c: Cluster, i: int, p: int, now_s: float) -> None:
    """Plan task ``i`` at its fastest behind what is planned on processor ``p``."""
    length = c.curves.rows.short_s[row_of(c, i, c.processors.kind[p])]
    if c.servers.awake[c.processors.server[p]] == 0:
        wake(c, c.processors.server[p], now_s)
    append(c, p, i, length, now_s)


@inner
def estimate_idle_share(c: Cluster, just_arrived: int, now_s: float) -> None:
    """Set the part of an extension that will idle, as tasks come: few against a server's size.

    Only while too few have come to know a rate well; without late binding nothing is foreseen
    afterwards.
    """
    tally, size = c.tally, c.processors.kind.size / c.servers.zone.size
    if tally.arrivals[0] >= FEW:
        if not c.rules.late:
            tally.idle_share[0] = LEAST_IDLE
        return
    tasks = just_arrived + tally.queued[0]
    for p in range(c.processors.kind.size):
        if not is_idle(c, p):
            tasks += 1
        if tasks >= size:
            break
    tally.idle_share[0] = max(LEAST_IDLE, 1.0 - (tasks - 1) / size)
    if c.rules.late:
        tally.idle_share[0] = max(tally.idle_share[0], _unneeded(c, just_arrived, now_s))


@inner
def _foresee(c: Cluster, now_s: float) -> None:
    """Set the part of an extension that will idle: all where nothing more comes."""
    tally = c.tally
    if tally.queued[0] >= BACKLOG * c.processors.kind.size:
        tally.idle_share[0] = LEAST_IDLE
    elif tally.closed[0] == 1:
        tally.idle_share[0] = 1.0
    elif tally.arrivals[0] < FEW:  # as estimated, or more as time goes by
        tally.idle_share[0] = max(tally.idle_share[0], _unneeded(c, 0, now_s))
    else:
        tally.idle_share[0] = max(LEAST_IDLE, _unneeded(c, 0, now_s))


@inner
def needed(c: Cluster, just_arrived: int, now_s: float) -> float:
    """Return how many processors arrivals keep busy; infinite where there is nothing to go by."""
    seen, work = min(c.tally.arrivals[0], RECENT), 0.0
    for m in range(seen):
        work += c.arrival_history[1, m] / seen
    if seen == 0:
        work = c.tally.mean_s[0]
    return _rate(c, seen, just_arrived, now_s) * work if work > 0.0 else np.inf


@inner
def _unneeded(c: Cluster, just_arrived: int, now_s: float) -> float:
    """Return the part of the awake processors that arrivals do not keep busy, to a power."""
    busy = needed(c, just_arrived, now_s)
    return max(0.0, 1.0 - busy / max(c.tally.processors[0], 1)) ** POWER


@inner
def _rate(c: Cluster, seen: int, just_arrived: int, now_s: float) -> float:
    """Return how many tasks come in a second, by the last ``seen``, and those of this moment.

    By the last 16 or 64 where fewer have come lately than chance explains: two standard
    deviations; before `FEW` have come, three tasks more.
    """
    history, arrivals = c.arrival_history, c.tally.arrivals[0]
    if seen < FEW:
        few = seen + just_arrived
        return (few + 2.0 * np.sqrt(few) + 3.0) / max(now_s, 1e-9)
    if history[0, (arrivals - FEW) % RECENT] == history[0, (arrivals - 1) % RECENT]:
        return _burst_rate(c, seen, now_s)
    rate, count = np.inf, 16
    while count <= RECENT:
        some = min(seen, count)
        since = 0.0
        if arrivals > some:
            since = history[0, (arrivals - some) % RECENT]
        doubt = 1.0 if count == RECENT else 1.0 + 2.0 / np.sqrt(some)
        rate = min(rate, doubt * some / max(now_s - since, 1e-9))
        count *= 4
    return rate


@inner
def _burst_rate(c: Cluster, seen: int, now_s: float) -> float:
    """Return how many tasks come in a second where many come at one moment.

    As often as so far; less and less likely, once the usual time between moments has passed.
    """
    history, arrivals, moments = c.arrival_history, c.tally.arrivals[0], 1
    newest = oldest = history[0, (arrivals - 1) % RECENT]
    for m in range(2, seen + 1):
        at = history[0, (arrivals - m) % RECENT]
        if at < oldest:
            oldest, moments = at, moments + 1
    usual = (newest - oldest) / (moments - 1) if moments > 1 else newest
    return seen / moments / usual * np.exp(min(0.0, 1.0 - (now_s - newest) / usual))


@inner
def remember(c: Cluster, i: int, now_s: float) -> None:
    """Note an arrival after time 0, to foresee the load."""
    slot = c.tally.arrivals[0] % RECENT
    c.arrival_history[0, slot] = now_s
    length = c.curves.rows.free_s[row_of(c, i, max(c.kinds[i, 0], 0))]
    c.arrival_history[1, slot] = c.tasks.gang[i] * length if length < np.inf else 0.0
    c.tally.arrivals[0] += 1


@inner
def refuse(c: Cluster, i: int, now_s: float) -> None:
    """Say why task ``i`` cannot run, and when it could end at the earliest."""
    row, least, fastest, why = c.tally.refusals[0], np.inf, np.inf, NO_TIME
    for p in range(c.processors.kind.size):
        short = c.curves.rows.short_s[row_of(c, i, c.processors.kind[p])]
        wake_s = c.servers.wake_s[c.processors.server[p]]
        if now_s + wake_s + short <= c.tasks.deadline_s[i]:
            why = NO_ROOM
        elif now_s + short <= c.tasks.deadline_s[i] and why == NO_TIME:
            why = NO_WAKE
        free = soonest_s(c, p, now_s)
        if c.servers.awake[c.processors.server[p]] == 1 and c.processors.head[p] >= 0:
            free = max(free, c.processors.end_s[p])
        least, fastest = min(least, free + short), min(fastest, now_s + short)
    least = fastest if why == NO_TIME else least
    c.refusals.task[row], c.refusals.why[row], c.refusals.earliest_s[row] = i, why, least
    c.tally.refusals[0] += 1
