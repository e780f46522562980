"""Planning again: what has not started is taken back and placed anew where that costs less.

The worth of time added to a server depends on what is still to come: while arrivals keep the
processors busy, later tasks will fill the gaps; once they stay away, every gap idles.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from downclock.kernels.compiling import compiled
from downclock.kernels.least_tree import set_key
from downclock.kernels.pack_curves import Curves, energy_j, want_s
from downclock.kernels.pack_plan import (
    LEAST_WASTE,
    RECENT,
    WINDOW,
    Plan,
    Trace,
    Written,
    append,
    begin,
    best_place,
    first_of,
    reject,
    remember,
    settle,
    sleep,
)

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

ATTEMPTS, MORE = 8, 30.0
"""Tasks placed anew at each event, and how many times more when nothing more comes."""

POWER = 3.0
"""How steeply the wasted part rises with the part of the processors that arrivals do not need."""

EVERY, GATE = 8, 0.1
"""The whole plan is made anew after so many events, where at least this part is wasted."""

SQUARE, FULL = 128.0, 1024.0
"""On more awake processors the plan is made anew more seldom, with their square, and fewer tasks
are placed anew, so that an event costs about the same on a cluster of any size."""

URGENT = 0.2
"""Tasks that can wait for less than this part of their run time are placed first."""


@compiled
def _take_back(plan: Plan, p: int) -> int:
    """Remove the last planned task of processor ``p`` that has not started, and return it."""
    j, i = plan.server[p], plan.tail[p]
    plan.end_s[p] -= plan.length_s[i]
    before, at = -1, plan.head[p]
    end = plan.ready_s[p]
    while at != i:
        before, end = at, end + plan.length_s[at]
        at = plan.after[at]
    plan.end_s[p] = end
    plan.place[i] = -1
    plan.tail[p] = before
    if before < 0:
        plan.head[p] = -1
    else:
        plan.after[before] = -1
    last = plan.since_s[j] + plan.wake_s[j]
    for q in range(plan.first[j], plan.first[j + 1]):
        last = max(last, plan.end_s[q])
    plan.last_s[j] = last
    set_key(plan.ending, 0, j, last)
    return i


@compiled
def _improve(plan: Plan, trace: Trace, curves: Curves, out: Written, now_s: float) -> None:
    """Take some planned tasks back and place them anew, in turns over the awake servers."""
    effort = min(1.0, FULL / max(plan.tally[6], 1))
    for _ in range(int(np.ceil(effort * ATTEMPTS * (1.0 + MORE * plan.waste[0])))):
        if plan.tally[0] == 0:
            return
        plan.tally[4] += 1
        j = plan.up[plan.tally[4] % plan.tally[0]]
        p, end = -1, -1.0
        for q in range(plan.first[j], plan.first[j + 1]):
            if plan.head[q] >= 0 and plan.end_s[q] > end:
                p, end = q, plan.end_s[q]
        if p < 0 or plan.first[j + 1] - plan.first[j] == 1:
            continue
        k = plan.kind[p]
        i = _take_back(plan, p)
        q, _, length = best_place(plan, trace, curves, i, k, now_s)
        if q < 0:
            q = p
            length = want_s(
                curves, k * trace.arrival_s.size + i, trace.deadline_s[i] - plan.end_s[p]
            )
        append(plan, out, q, i, length, now_s)
        if plan.busy[0, plan.busy.shape[1] // 2 + q] == np.inf:
            begin(plan, trace, curves, out, q, now_s)


@compiled
def _worth_j(plan: Plan, curves: Curves) -> float:
    """Return the energy above the tasks' best that the plan has in what has not started."""
    total, n = 0.0, plan.place.size
    for a in range(plan.tally[0]):
        j = plan.up[a]
        total += plan.waste[0] * plan.up_w[j] * plan.last_s[j]
        for p in range(plan.first[j], plan.first[j + 1]):
            i = plan.head[p]
            while i >= 0:
                row = plan.kind[p] * n + i
                if plan.length_s[i] < curves.free_s[row]:
                    total += energy_j(curves, row, plan.length_s[i]) - curves.free_j[row]
                i = plan.after[i]
    return total


@compiled
def _clear(plan: Plan, tasks: Ints, where: Ints, length_s: Floats) -> int:
    """Take back all that has not started, server by server; return how many."""
    m = 0
    for a in range(plan.tally[0]):
        j = plan.up[a]
        for p in range(plan.first[j], plan.first[j + 1]):
            first = m
            i = plan.head[p]
            while i >= 0:
                tasks[m], where[m], length_s[m] = i, p, plan.length_s[i]
                m += 1
                i = plan.after[i]
            for _ in range(m - first):
                _take_back(plan, p)
    return m


@compiled
def _replan(plan: Plan, trace: Trace, curves: Curves, out: Written, now_s: float) -> None:
    """Place all that has not started anew, urgent tasks first, then the longest; keep the better.

    Nothing starts in between: only processors that are busy get tasks at their end.
    """
    n = trace.arrival_s.size
    before = _worth_j(plan, curves)
    tasks, where, length_s = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    m = _clear(plan, tasks, where, length_s)
    key = np.empty(m)
    for a in range(m):
        row = plan.kind[where[a]] * n + tasks[a]
        slack = trace.deadline_s[tasks[a]] - now_s - curves.free_s[row]
        key[a] = slack - 1e12 if slack < URGENT * curves.free_s[row] else -curves.free_s[row]
    good = True
    for a in np.argsort(key):
        p, _, length = best_place(plan, trace, curves, tasks[a], plan.kind[where[a]], now_s)
        if p < 0:
            good = False
            break
        append(plan, out, p, tasks[a], length, now_s)
    if good and _worth_j(plan, curves) < before:
        return
    again, places, lengths = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    _clear(plan, again, places, lengths)
    for a in range(m):
        append(plan, out, where[a], tasks[a], length_s[a], now_s)


@compiled
def _start_idle(plan: Plan, trace: Trace, curves: Curves, out: Written, now_s: float) -> None:
    """Start what is planned on processors where nothing runs."""
    for a in range(plan.tally[0]):
        j = plan.up[a]
        for p in range(plan.first[j], plan.first[j + 1]):
            if plan.head[p] >= 0 and plan.busy[0, plan.busy.shape[1] // 2 + p] == np.inf:
                begin(plan, trace, curves, out, p, now_s)


@compiled
def _foresee(plan: Plan, now_s: float) -> None:
    """Set the part of an extension that will idle: all where nothing more comes.

    Processors that arrivals keep busy, by the last `RECENT` or, where fewer have come lately
    than chance explains (two standard deviations), by the last 16 or 64.
    """
    seen = min(plan.tally[3], RECENT)
    if seen < 16:
        plan.waste[0] = LEAST_WASTE
        return
    rate, count = np.inf, 16
    while count <= RECENT:
        some = min(seen, count)
        since = plan.recent[0, (plan.tally[3] - some) % RECENT] if plan.tally[3] > some else 0.0
        doubt = 1.0 if count == RECENT else 1.0 + 2.0 / np.sqrt(some)
        rate = min(rate, doubt * some / max(now_s - since, 1e-9))
        count *= 4
    work = 0.0
    for m in range(seen):
        work += plan.recent[1, m] / seen
    excess = max(0.0, 1.0 - rate * work / max(plan.tally[6], 1))
    plan.waste[0] = max(LEAST_WASTE, excess**POWER)


@compiled
def _again(plan: Plan, trace: Trace, curves: Curves, out: Written, now_s: float) -> None:
    """Improve the plan, as far as its size allows."""
    if plan.tally[6] > WINDOW:
        plan.waste[0] = LEAST_WASTE
        return
    _foresee(plan, now_s)
    _improve(plan, trace, curves, out, now_s)
    plan.tally[5] += 1
    wait = max(EVERY, (plan.tally[6] / SQUARE) ** 2)
    if plan.waste[0] > GATE and plan.tally[5] >= wait:
        plan.tally[5] = 0
        _replan(plan, trace, curves, out, now_s)
        _start_idle(plan, trace, curves, out, now_s)


@compiled
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
    while plan.busy[0, 1] <= now_s:
        p = first_of(plan.busy)
        set_key(plan.busy, 0, p, np.inf)
        begin(plan, trace, curves, out, p, now_s)
    while at < arrived.size and trace.arrival_s[arrived[at]] <= now_s:
        i = arrived[at]
        at += 1
        if now_s > 0.0:
            remember(plan, trace, curves, i, now_s)
        if not settle(plan, trace, curves, out, i, late, now_s):
            reject(plan, trace, curves, i, now_s)
    if late:
        _again(plan, trace, curves, out, now_s)
    while plan.ending[0, 1] <= now_s:
        j = first_of(plan.ending)
        sleep(plan, out, j, plan.last_s[j])
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
