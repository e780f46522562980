"""What happens to a plan: tasks come, end sooner or later than planned, servers fall asleep.

A task that ends early frees its processor at once. One that is overdue is believed to take a
little longer, again and again; what is planned after it is moved or hurried.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from downclock.kernels.compiling import compiled, inner
from downclock.kernels.least_tree import set_key
from downclock.planners.cluster.kernels.curves import Curves, want_s
from downclock.planners.cluster.kernels.plan import (
    WINDOW,
    Plan,
    Trace,
    Written,
    append,
    begin,
    can_shift,
    first_of,
    reject,
    remember,
    set_last,
    settle,
    sleep,
)
from downclock.planners.cluster.kernels.replan import again, clear, guess, take_back

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

LONGER = 0.1
"""A task that is overdue is believed to take this part of its run time so far longer."""

CROWD = 1024
"""Planned tasks up to which all are hurried to make room for one more."""


@inner
def _retime(plan: Plan, p: int, ready_s: float) -> None:
    """Let processor ``p`` be free at ``ready_s``; what is planned there moves with it."""
    end, i = ready_s, plan.head[p]
    while i >= 0:
        end += plan.length_s[i]
        i = plan.after[i]
    plan.ready_s[p], plan.end_s[p] = ready_s, end
    set_last(plan, plan.server[p])


@inner
def _relax(plan: Plan, trace: Trace, curves: Curves, p: int, now_s: float) -> None:
    """Give the planned tasks of processor ``p`` the time that their deadlines leave.

    Each gets what its own and all later deadlines allow, those at their fastest; a task that
    cannot be on time runs at its fastest.
    """
    count, i = 0, plan.head[p]
    while i >= 0:
        count += 1
        i = plan.after[i]
    chain, latest = np.empty(count, np.int64), np.empty(count)
    base, i = plan.kind[p] * trace.arrival_s.size, plan.head[p]
    for a in range(count):
        chain[a] = i
        i = plan.after[i]
    limit = np.inf
    for a in range(count - 1, -1, -1):
        latest[a] = min(limit, trace.deadline_s[chain[a]])
        limit = latest[a] - curves.short_s[base + chain[a]]
    at = max(now_s, plan.ready_s[p])
    for a in range(count):
        length = want_s(curves, base + chain[a], latest[a] - at)
        plan.length_s[chain[a]] = length if length > 0.0 else curves.short_s[base + chain[a]]
        at += plan.length_s[chain[a]]
    plan.end_s[p] = at
    set_last(plan, plan.server[p])


@inner
def _soonest(plan: Plan, trace: Trace, curves: Curves, i: int, now_s: float) -> tuple[int, float]:
    """Return (awake processor where task ``i`` could end first, its shortest run time there)."""
    best, least, length = -1, np.inf, -1.0
    for a in range(plan.tally[0]):
        j = plan.up[a]
        for p in range(plan.first[j], plan.first[j + 1]):
            short = curves.short_s[plan.kind[p] * trace.arrival_s.size + i]
            end = max(now_s, plan.end_s[p]) + short
            if end < least:
                best, least, length = p, end, short
    return best, length


@inner
def _planned(plan: Plan) -> int:
    """Return how many tasks are planned and have not started."""
    count = 0
    for a in range(plan.tally[0]):
        j = plan.up[a]
        for p in range(plan.first[j], plan.first[j + 1]):
            i = plan.head[p]
            while i >= 0:
                count += 1
                i = plan.after[i]
    return count


@inner
def _spread(plan: Plan, trace: Trace, curves: Curves, tasks: Ints, new: int, now_s: float) -> bool:
    """Place tasks by deadline at their fastest where they end first; False: one is late.

    A task other than ``new`` that cannot be on time any more is no reason to give up.
    """
    key = np.empty(tasks.size)
    for a in range(tasks.size):
        key[a] = trace.deadline_s[tasks[a]]
    for a in np.argsort(key, kind="mergesort"):  # stable
        i = tasks[a]
        p, length = _soonest(plan, trace, curves, i, now_s)
        if p < 0:
            return False
        late = max(now_s, plan.end_s[p]) + length > trace.deadline_s[i]
        if late and (i == new or now_s + length <= trace.deadline_s[i]):
            return False
        append(plan, p, i, length, now_s)
    return True


@inner
def hurry(plan: Plan, trace: Trace, curves: Curves, new: int, now_s: float) -> bool:
    """Make room for task ``new`` by hurrying and moving what has not started; False: none.

    What is to start now does so when the plan is improved, at the end of the moment.
    """
    count = _planned(plan)
    if plan.tally[6] > WINDOW or count > CROWD:
        return False
    tasks, where, length_s = (
        np.empty(count + 1, np.int64),
        np.empty(count, np.int64),
        np.empty(count),
    )
    clear(plan, tasks, where, length_s)
    tasks[count] = new
    good = _spread(plan, trace, curves, tasks, new, now_s)
    if not good:
        again_tasks, places, lengths = (
            np.empty(count + 1, np.int64),
            np.empty(count + 1, np.int64),
            np.empty(count + 1),
        )
        clear(plan, again_tasks, places, lengths)
        for a in range(count):
            append(plan, where[a], tasks[a], length_s[a], now_s)
        return False
    for a in range(plan.tally[0]):
        j = plan.up[a]
        for p in range(plan.first[j], plan.first[j + 1]):
            if plan.head[p] >= 0:
                _relax(plan, trace, curves, p, now_s)
    return True


@inner
def _overdue(
    plan: Plan,
    trace: Trace,
    curves: Curves,
    out: Written,
    p: int,
    late: bool,
    left: int,
    now_s: float,
) -> None:
    """Believe that what runs on processor ``p`` takes longer, and see to what comes after.

    No server wakes for that where the room to write its span is needed for those awake and for
    the ``left`` tasks to come.
    """
    _retime(plan, p, now_s + LONGER * (now_s - plan.begun_s[p]))
    set_key(plan.busy, 0, p, min(plan.ready_s[p], plan.real_s[p]))
    if can_shift(plan, trace, p, plan.ready_s[p]):
        return
    if not late:
        _relax(plan, trace, curves, p, now_s)
        return
    count, i = 0, plan.head[p]
    while i >= 0:
        count += 1
        i = plan.after[i]
    moved = np.empty(count, np.int64)
    for a in range(count):
        moved[count - 1 - a] = take_back(plan, p)
    for a in range(count):
        i = moved[a]
        room = plan.tally[2] + plan.tally[0] + left < out.span.shape[0]
        if room and settle(plan, trace, curves, out, i, True, now_s):
            continue
        if not hurry(plan, trace, curves, i, now_s):
            short = curves.short_s[plan.kind[p] * trace.arrival_s.size + i]
            append(plan, p, i, short, now_s)


@inner
def _ends(
    plan: Plan, trace: Trace, curves: Curves, late: bool, out: Written, left: int, now_s: float
) -> None:
    """Take note of what ends or is overdue at ``now_s``; ``left`` tasks are still to come."""
    while plan.busy[0, 1] <= now_s:
        p = first_of(plan.busy)
        if plan.real_s[p] > now_s:
            _overdue(plan, trace, curves, out, p, late, left, now_s)
            continue
        if plan.ready_s[p] != now_s:
            _retime(plan, p, now_s)
        set_key(plan.busy, 0, p, np.inf)
        begin(plan, trace, curves, out, p, now_s)


@inner
def _moment(
    plan: Plan,
    trace: Trace,
    curves: Curves,
    late: bool,
    out: Written,
    arrived: Ints,
    at: int,
    now_s: float,
) -> int:
    """Do everything that happens at ``now_s``; return the next arrival to come."""
    _ends(plan, trace, curves, late, out, arrived.size - at, now_s)
    fresh = 0
    while at + fresh < arrived.size and trace.arrival_s[arrived[at + fresh]] <= now_s:
        fresh += 1
    if fresh > 0:
        guess(plan, fresh, late)
    while at < arrived.size and trace.arrival_s[arrived[at]] <= now_s:
        i = arrived[at]
        at += 1
        if now_s > 0.0:
            remember(plan, trace, curves, i, now_s)
        if settle(plan, trace, curves, out, i, late, now_s):
            continue
        if not late or not hurry(plan, trace, curves, i, now_s):
            reject(plan, trace, curves, i, now_s)
    if late:
        again(plan, trace, curves, out, now_s)
    while plan.ending[0, 1] <= now_s:
        j = first_of(plan.ending)
        sleep(plan, out, j, plan.last_s[j] + plan.linger_s[j])
    return at


@compiled
def run_plan(
    plan: Plan,
    trace: Trace,
    curves: Curves,
    late: bool,
    out: Written,
    arrived: Ints,
    until_s: float,
) -> None:
    """Decide on ``arrived`` and on all that happens by itself before ``until_s``.

    What happens at ``until_s`` itself waits for the next run: it comes after the arrivals then.
    """
    at = 0
    while True:
        now = np.inf if at >= arrived.size else trace.arrival_s[arrived[at]]
        own = min(plan.busy[0, 1], plan.ending[0, 1])
        if own < now and own >= until_s:
            return
        now = min(now, own)
        if now == np.inf:
            return
        at = _moment(plan, trace, curves, late, out, arrived, at, now)
