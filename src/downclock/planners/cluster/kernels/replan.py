"""Planning again: what has not started is taken back and placed anew where that costs less.

The worth of time added to a server depends on what is still to come: while arrivals keep the
processors busy, later tasks will fill the gaps; once they stay away, every gap idles.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from downclock.kernels.compiling import inner
from downclock.planners.cluster.kernels.curves import Curves, energy_j, want_s
from downclock.planners.cluster.kernels.plan import (
    LEAST_WASTE,
    RECENT,
    WINDOW,
    Plan,
    Trace,
    Written,
    append,
    begin,
    best_place,
    set_last,
)

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

ATTEMPTS, MORE = 8, 30.0
"""Tasks placed anew at each event, and how many times more when nothing more comes: there search
pays most, so effort is spent in the same way."""

POWER = 3.0
"""How steeply the wasted part rises with the part of the processors that arrivals do not need."""

FEW = 16
"""Arrivals up to which there is no rate to go by."""

EVERY, GATE = 8, 0.1
"""The whole plan is made anew after so many events, where at least this part is wasted."""

SQUARE, FULL = 128.0, 1024.0
"""On more awake processors the plan is made anew more seldom, with their square, and fewer tasks
are placed anew, so that an event costs about the same on a cluster of any size."""

URGENT = 0.2
"""Tasks that can wait for less than this part of their run time are placed first."""


@inner
def take_back(plan: Plan, p: int) -> int:
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
    set_last(plan, j)
    return i


@inner
def _improve(plan: Plan, trace: Trace, curves: Curves, out: Written, now_s: float) -> None:
    """Take some planned tasks back and place them anew, in turns over the awake servers."""
    effort = min(1.0, FULL / max(plan.tally[6], 1))
    more = MORE * plan.waste[0] if plan.tally[7] == 0 else 0.0  # a batch was packed with care
    for _ in range(int(np.ceil(effort * (ATTEMPTS + plan.tally[8]) * (1.0 + more)))):
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
        i = take_back(plan, p)
        q, _, length = best_place(plan, trace, curves, i, k, now_s)
        if q < 0:
            q = p
            length = want_s(
                curves, k * trace.arrival_s.size + i, trace.deadline_s[i] - plan.end_s[p]
            )
            length = plan.length_s[i] if length < 0.0 else length
        append(plan, q, i, length, now_s)
        if plan.busy[0, plan.busy.shape[1] // 2 + q] == np.inf:
            begin(plan, trace, curves, out, q, now_s)


@inner
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


@inner
def clear(plan: Plan, tasks: Ints, where: Ints, length_s: Floats) -> int:
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
                take_back(plan, p)
    return m


@inner
def _in_turn(
    plan: Plan, trace: Trace, curves: Curves, tasks: Ints, where: Ints, now_s: float
) -> Ints:
    """Return the order of placing tasks: urgent ones by slack, then the longest first."""
    m = tasks.size
    calm, key = np.zeros(m), np.empty(m)
    for a in range(m):
        free = curves.free_s[plan.kind[where[a]] * trace.arrival_s.size + tasks[a]]
        key[a] = trace.deadline_s[tasks[a]] - now_s - free
        if key[a] >= URGENT * free:
            calm[a], key[a] = 1.0, -free
    order = np.argsort(key, kind="mergesort")  # stable, so the second sort keeps the first
    return order[np.argsort(calm[order], kind="mergesort")]


@inner
def _replan(plan: Plan, trace: Trace, curves: Curves, now_s: float) -> None:
    """Place all that has not started anew, urgent tasks first, then the longest; keep the better.

    Nothing starts in between: only processors that are busy get tasks at their end.
    """
    n = trace.arrival_s.size
    before = _worth_j(plan, curves)
    tasks, where, length_s = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    m = clear(plan, tasks, where, length_s)
    good = True
    for a in _in_turn(plan, trace, curves, tasks[:m], where, now_s):
        p, _, length = best_place(plan, trace, curves, tasks[a], plan.kind[where[a]], now_s)
        if p < 0:
            good = False
            break
        append(plan, p, tasks[a], length, now_s)
    if good and _worth_j(plan, curves) < before:
        return
    again, places, lengths = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    clear(plan, again, places, lengths)
    for a in range(m):
        append(plan, where[a], tasks[a], length_s[a], now_s)


@inner
def _start_idle(plan: Plan, trace: Trace, curves: Curves, out: Written, now_s: float) -> None:
    """Start what is planned on processors where nothing runs."""
    for a in range(plan.tally[0]):
        j = plan.up[a]
        for p in range(plan.first[j], plan.first[j + 1]):
            if plan.head[p] >= 0 and plan.busy[0, plan.busy.shape[1] // 2 + p] == np.inf:
                begin(plan, trace, curves, out, p, now_s)


@inner
def guess(plan: Plan, fresh: int, late: bool) -> None:
    """Set the part of an extension that will idle where few have come: tasks against a server.

    ``fresh`` tasks come now. Without late binding nothing is foreseen afterwards.
    """
    if plan.tally[3] >= FEW:
        if not late:
            plan.waste[0] = LEAST_WASTE
        return
    tasks, size = fresh, plan.kind.size / plan.up_w.size
    for p in range(plan.kind.size):
        if plan.busy[0, plan.busy.shape[1] // 2 + p] < np.inf:
            tasks += 1
        i = plan.head[p]
        while i >= 0 and tasks < size:
            tasks += 1
            i = plan.after[i]
        if tasks >= size:
            break
    plan.waste[0] = max(LEAST_WASTE, max(0.0, 1.0 - tasks / size) ** POWER)


@inner
def _foresee(plan: Plan, now_s: float) -> None:
    """Set the part of an extension that will idle: all where nothing more comes.

    Processors that arrivals keep busy, by the last `RECENT` or, where fewer have come lately
    than chance explains (two standard deviations), by the last 16 or 64.
    """
    seen = min(plan.tally[3], RECENT)
    if plan.tally[7] == 1:
        plan.waste[0] = 1.0
        return
    if seen < FEW:
        return  # as guessed
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


@inner
def again(plan: Plan, trace: Trace, curves: Curves, out: Written, now_s: float) -> None:
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
        _replan(plan, trace, curves, now_s)
    _start_idle(plan, trace, curves, out, now_s)
