"""Tasks that follow others: a workflow is accepted whole, and its reservations keep its order.

A task starts when all before it have really ended; its reservation is for when they are planned to.
One that ends early lets those after it be pulled forward; one that takes longer moves them. What
cannot stay in its window gets another, with all that follows it.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.kernels.refusals import NO_TIME, NOWHERE
from downclock.planners.cluster.kernels.accept import reserve, reserve_anyhow, soonest_place
from downclock.planners.cluster.kernels.awake import wake
from downclock.planners.cluster.kernels.board import Cluster, row_of
from downclock.planners.cluster.kernels.holes import fill, find_hole
from downclock.planners.cluster.kernels.hurry import hasten, note_no_room
from downclock.planners.cluster.kernels.opening import choose_end
from downclock.planners.cluster.kernels.queues import wait, wait_no_more
from downclock.planners.cluster.kernels.relist import make_room, make_room_for
from downclock.planners.cluster.kernels.replan import refuse
from downclock.planners.cluster.kernels.reserve import ready_s, reserve_at, set_attention, take_off
from downclock.planners.cluster.kernels.status import DONE, GONE, NEW, OPEN
from downclock.planners.cluster.kernels.windows import (
    in_order,
    is_milestone,
    joined,
    open_before,
    opens_s,
    planned_end_s,
    share_time,
    waits_before,
    waits_behind,
    want_within,
)
from downclock.units import Ints

USUAL = 0.02
"""Weight of the latest arrival in the usual run time."""

STRETCHED = 1.01
"""A list of a workflow is stretched to its deadline where that gives this much more time."""


@inner
def say_no(c: Cluster, i: int, now_s: float) -> None:
    """Say why task ``i`` cannot run, and when all its processors could have done it."""
    refuse(c, i, now_s)
    g, start, length = soonest_place(c, i, -1, now_s, True, True)
    row = c.tally.refusals[0] - 1
    if g >= 0 and c.refusals.why[row] != NO_TIME:
        c.refusals.earliest_s[row] = start + length


@inner
def _let_all_off(c: Cluster, tasks: Ints) -> None:
    """Take back the reservations of tasks that have one."""
    for i in tasks:
        if c.tasks.booked[i] >= 0:
            take_off(c, i)


@inner
def _reserve_each(c: Cluster, order: Ints, now_s: float) -> int:
    """Reserve for tasks inside their windows; return the first without a place, or -1."""
    for i in order:
        if not is_milestone(c, i) and not reserve(c, i, now_s):
            return i
    return -1


@inner
def _list(c: Cluster, order: Ints, now_s: float, hurry: bool) -> int:
    """Reserve for tasks of a workflow where each ends first, those first that have to.

    Windows end with the reservations. Return the first task that has no place in time, or -1.
    """
    for i in order[np.argsort(c.tasks.latest_s[order], kind="mergesort")]:
        c.tasks.arrival_s[i] = opens_s(c, i, now_s)
        c.tasks.deadline_s[i] = max(c.tasks.arrival_s[i], c.tasks.latest_s[i])
        if is_milestone(c, i):
            c.tasks.deadline_s[i] = c.tasks.arrival_s[i]
            continue
        want_within(c, i, c.tasks.latest_s[i] - c.tasks.arrival_s[i])
        g, start, length = soonest_place(c, i, -1, now_s, hurry, False)
        if g >= 0:
            reserve_at(c, i, g, start, length, 0)
        elif not reserve(c, i, now_s):
            return i
        c.tasks.deadline_s[i] = c.tasks.start_s[i] + c.tasks.length_s[i]
    return -1


@inner
def _stretch(c: Cluster, order: Ints, now_s: float) -> None:
    """Spread a list of a workflow over the time until its deadlines, if there is room for that."""
    longer = np.inf
    for i in order:
        spent = c.tasks.deadline_s[i] - now_s
        if spent > 0.0 and c.tasks.latest_s[i] < np.inf:
            longer = min(longer, (c.tasks.latest_s[i] - now_s) / spent)
    if not STRETCHED < longer < np.inf:
        return
    _let_all_off(c, order)
    for i in order:
        end = now_s + longer * (c.tasks.deadline_s[i] - now_s)
        c.tasks.deadline_s[i] = min(end, c.tasks.latest_s[i])
    for i in order:
        begin, e = now_s, c.tasks.follows[i]
        while e >= 0:
            if c.tasks.status[c.edges.before[e]] != DONE:
                begin = max(begin, _window_end_s(c, c.edges.before[e]))
            e = c.edges.more_before[e]
        c.tasks.arrival_s[i] = begin
        want_within(c, i, c.tasks.deadline_s[i] - begin)
    if _reserve_each(c, order, now_s) >= 0:
        _let_all_off(c, order)
        _list(c, order, now_s, False)


@inner
def _window_end_s(c: Cluster, i: int) -> float:
    """Return the end of a window, or of what has a place."""
    return planned_end_s(c, i) if c.tasks.booked[i] >= 0 else c.tasks.deadline_s[i]


@inner
def _tighten(c: Cluster, tasks: Ints, now_s: float, turn: int) -> None:
    """Let what waits take no longer than it has reserved; in later turns be sooner, and hurry."""
    for i in tasks:
        if is_milestone(c, i):
            c.tasks.arrival_s[i] = c.tasks.deadline_s[i] = opens_s(c, i, now_s)
            continue
        if c.tasks.booked[i] < 0:
            continue
        end = c.tasks.start_s[i] + c.tasks.length_s[i]
        if turn > 0:
            c.tasks.arrival_s[i] = opens_s(c, i, now_s)
            g, start, length = soonest_place(c, i, -1, now_s, turn > 1, False)
            if g >= 0 and start + length < end:
                take_off(c, i)
                reserve_at(c, i, g, start, length, 0)
                end = start + length
        c.tasks.deadline_s[i] = min(c.tasks.deadline_s[i], end)


@inner
def _accept(c: Cluster, order: Ints, now_s: float) -> tuple[int, int]:
    """Reserve for a workflow; return (task without a place, why it has none), or (-1, 0)."""
    late = share_time(c, order, now_s)
    for turn in range(3):
        if late < 0:
            break
        _tighten(c, waits_before(c, order), now_s, turn)
        late = share_time(c, order, now_s)
    if late >= 0:
        return late, NO_TIME
    blamed = _reserve_each(c, order, now_s)
    for hurry in (False, True):
        if blamed < 0:
            return -1, 0
        _let_all_off(c, order)
        blamed = _list(c, order, now_s, hurry)
        if blamed < 0 and not hurry:
            _stretch(c, order, now_s)
    if blamed < 0:
        return -1, 0
    note_no_room(c, blamed, now_s)
    _let_all_off(c, order)
    share_time(c, order, now_s)
    work, m = np.empty(order.size, np.int64), 0
    for i in order:
        if not is_milestone(c, i):
            work[m] = i
            m += 1
    if m > 0 and make_room_for(c, work[:m], now_s):
        return -1, 0
    return blamed, 0


@inner
def _refuse_all(c: Cluster, order: Ints, blamed: int, why: int, now_s: float) -> None:
    """Refuse a workflow for the sake of one of its tasks, the last first: all say the same."""
    first = c.tally.refusals[0]
    c.tasks.deadline_s[blamed] = c.tasks.latest_s[blamed]
    say_no(c, blamed, now_s)
    earliest = c.refusals.earliest_s[first]
    if why == NO_TIME:
        earliest = c.tasks.arrival_s[blamed] + c.curves.rows.short_s[row_of(c, blamed, 0)]
        for k in range(c.kinds.shape[1]):
            short = c.curves.rows.short_s[row_of(c, blamed, k)]
            earliest = min(earliest, c.tasks.arrival_s[blamed] + short)
    else:
        why = c.refusals.why[first]
    for a in range(order.size):
        i, row = order[order.size - 1 - a], first + a
        c.tasks.status[i], c.tasks.blames[i] = GONE, blamed
        c.refusals.task[row], c.refusals.why[row] = i, why
        c.refusals.earliest_s[row] = earliest
    c.tally.refusals[0] = first + order.size


@inner
def _get_used_to(c: Cluster, i: int, now_s: float) -> None:
    """Count the run time of a task that has come in the usual one, and have it hurry."""
    free = c.curves.rows.free_s[row_of(c, i, max(c.kinds[i, 0], 0))]
    if free < np.inf:
        mean = c.tally.mean_s[0]
        c.tally.mean_s[0] = free if mean == 0.0 else mean + USUAL * (free - mean)
    hasten(c, i, now_s)


@inner
def _stands_alone(c: Cluster, i: int) -> bool:
    """Tell whether no task before or after ``i`` is known."""
    e = c.tasks.leads[i]
    while e >= 0:
        if c.tasks.status[c.edges.after[e]] == NEW:
            return False
        e = c.edges.more_after[e]
    return c.tasks.follows[i] < 0


@inner
def _arrive_together(c: Cluster, i: int, now_s: float) -> None:
    """Reserve for all tasks that edges join with ``i`` and that have just come, or refuse all."""
    order = joined(c, i, NEW)
    for task in order:
        e = c.tasks.follows[task]
        while e >= 0:
            if c.tasks.status[c.edges.before[e]] == GONE:
                c.tasks.status[task] = GONE
            e = c.edges.more_before[e]
        c.tasks.waits[task] = open_before(c, task)
        if c.tasks.status[task] == NEW and c.tasks.waits[task] == 0 and is_milestone(c, task):
            c.tasks.status[task] = DONE
    order = order[c.tasks.status[order] == NEW]
    if order.size == 0:
        return
    for task in order:
        if not is_milestone(c, task):
            _get_used_to(c, task, now_s)
    blamed, why = _accept(c, order, now_s)
    if blamed >= 0:
        _refuse_all(c, order, blamed, why, now_s)
    else:
        c.tasks.status[order] = OPEN


@inner
def arrive(c: Cluster, i: int, now_s: float) -> None:
    """Reserve for a task that has just come, with those that came with it; or refuse it."""
    if c.tasks.status[i] != NEW:
        return
    if not _stands_alone(c, i):
        _arrive_together(c, i, now_s)
        return
    _get_used_to(c, i, now_s)
    c.tasks.status[i] = OPEN
    if not reserve(c, i, now_s):
        note_no_room(c, i, now_s)
        if not make_room(c, i, now_s):
            c.tasks.status[i] = GONE
            say_no(c, i, now_s)


@inner
def _without_place(c: Cluster, order: Ints) -> int:
    """Return how many tasks with work have no place."""
    count = 0
    for i in order:
        count += c.tasks.booked[i] < 0 and not is_milestone(c, i)
    return count


@inner
def _place_open(c: Cluster, order: Ints, now_s: float) -> None:
    """Give accepted tasks, each after those before it, new windows and places, late if need be."""
    _let_all_off(c, order)
    share_time(c, order, now_s)
    for i in order:
        begin = opens_s(c, i, now_s)
        c.tasks.arrival_s[i] = max(c.tasks.arrival_s[i], begin)
        if is_milestone(c, i):
            c.tasks.deadline_s[i] = c.tasks.arrival_s[i]
        elif begin < np.inf:  # else one before it has no place
            _place_late(c, i, now_s)


@inner
def _place_late(c: Cluster, i: int, now_s: float) -> None:
    """Reserve for an accepted task, outside of its window if need be; or say that nothing works."""
    c.tasks.deadline_s[i] = min(c.tasks.deadline_s[i], c.tasks.latest_s[i])
    if not reserve_anyhow(c, i, now_s):
        say_no(c, i, now_s)
        c.refusals.why[c.tally.refusals[0] - 1] = NOWHERE
        return
    end = min(c.tasks.start_s[i] + c.tasks.length_s[i], c.tasks.latest_s[i])
    c.tasks.deadline_s[i] = max(c.tasks.deadline_s[i], end)


@inner
def _place_again(c: Cluster, i: int, now_s: float) -> None:
    """Give an accepted task another place; if it cannot be in time, what follows it, too."""
    order = waits_behind(c, i)
    if order.size == 1 and c.tasks.follows[i] < 0:
        c.tasks.latest_s[i] = c.tasks.deadline_s[i]
        _place_late(c, i, now_s)
    elif _without_place(c, order[1:]) > 0 or not (reserve(c, i, now_s) or make_room(c, i, now_s)):
        _place_open(c, order, now_s)


@inner
def reserve_again(c: Cluster, tasks: Ints, now_s: float) -> None:
    """Give accepted tasks another place, the first deadline first."""
    for a in np.argsort(c.tasks.deadline_s[tasks], kind="mergesort"):
        i = tasks[a]
        lost = c.tasks.booked[i] < 0 and c.tasks.status[i] == OPEN
        if lost and opens_s(c, i, now_s) < np.inf:  # else one before it has no place
            _place_again(c, i, now_s)


@inner
def change_deadline(c: Cluster, i: int, now_s: float) -> None:
    """Give a task with another deadline and what is joined with it new places, where it waits."""
    if c.tasks.status[i] != OPEN or c.tasks.place[i] >= 0:
        return
    order = joined(c, i, OPEN)
    if order.size > 1 or c.tasks.follows[i] >= 0:
        _place_open(c, in_order(c, order[c.tasks.place[order] < 0]), now_s)


@inner
def delay(c: Cluster, i: int, now_s: float) -> None:
    """Task ``i`` takes longer than planned: what follows it and cannot wait for it is moved."""
    if c.tasks.leads[i] < 0:
        return
    for after in waits_behind(c, i)[1:]:
        begin = opens_s(c, after, now_s)
        if is_milestone(c, after):
            c.tasks.arrival_s[after] = c.tasks.deadline_s[after] = begin
        elif begin > c.tasks.arrival_s[after]:
            c.tasks.arrival_s[after] = begin
            if c.tasks.booked[after] >= 0 and c.tasks.start_s[after] < begin:
                take_off(c, after)
                reserve_again(c, np.array([after]), now_s)


@inner
def wait_on(c: Cluster, i: int, now_s: float) -> None:
    """See to a task whose start has come, or the time to wake for it, before others have ended."""
    begin = max(opens_s(c, i, now_s), np.nextafter(now_s, np.inf))  # it has to wait, or it would go
    c.tasks.arrival_s[i] = max(c.tasks.arrival_s[i], begin)
    g = c.items.group[c.tasks.booked[i]]
    j = c.groups.server[g]
    if c.tasks.start_s[i] < begin or c.servers.awake[j] == 1:
        take_off(c, i)
        reserve_again(c, np.array([i]), now_s)
        return
    start = max(ready_s(c, j, now_s), begin)
    other, at, length, lost = find_hole(c, i, now_s, True)
    until, share = choose_end(c, g, i, start, c.servers.wake_j[j], now_s)
    if other >= 0 and lost <= share:
        take_off(c, i)
        reserve_at(c, i, other, at, length, 1)
        return
    wake(c, j, now_s)
    end = c.tasks.start_s[i] + c.tasks.length_s[i]
    c.servers.last_s[j] = max(end, until) if share < np.inf else end
    c.tasks.bound[i] = 1
    set_attention(c, j)
    fill(c, j, now_s)


@inner
def finish(c: Cluster, i: int, now_s: float, ready: Ints) -> Ints:
    """Task ``i`` is done; return tasks that may start now, with those that are ``ready``."""
    done, m, at = np.array([i]), 1, 0
    while at < m:
        c.tasks.status[done[at]] = DONE
        e = c.tasks.leads[done[at]]
        at += 1
        while e >= 0:
            after = c.edges.after[e]
            e = c.edges.more_after[e]
            if c.tasks.status[after] != OPEN:
                continue
            c.tasks.waits[after] -= 1
            if c.tasks.waits[after] > 0:
                continue
            if is_milestone(c, after):
                done, m = np.append(done, np.array([after])), m + 1
            else:
                _make_ready(c, after, now_s)
                ready = np.append(ready, np.array([after]))
    return ready


@inner
def _make_ready(c: Cluster, i: int, now_s: float) -> None:
    """All before task ``i`` is done: it may start, and has the time that they have left."""
    c.tasks.arrival_s[i] = now_s
    want_within(c, i, c.tasks.deadline_s[i] - now_s)
    if c.tasks.rank[i] >= 0:
        wait_no_more(c, i)
        wait(c, i)


@inner
def drop(c: Cluster, i: int) -> None:
    """Task ``i`` will not be done: neither will what follows it."""
    if c.tasks.status[i] == OPEN:
        for after in waits_behind(c, i):
            c.tasks.status[after] = GONE
            if c.tasks.booked[after] >= 0:
                take_off(c, after)
    c.tasks.status[i] = GONE
