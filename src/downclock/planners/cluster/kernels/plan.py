"""A plan: which tasks each processor does next, how long, and when each server ends.

Tasks are appended to processors where they cost least. What has not started may be taken back.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from downclock.kernels.compiling import inner
from downclock.kernels.least_tree import first_at_most, new_trees, set_key
from downclock.planners.cluster.kernels.curves import (
    Curves,
    at_slope_s,
    energy_j,
    fill_s,
    want_s,
)
from downclock.power.kernels.models import LADDER

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

PLACED, NO_TIME, NO_ROOM = 0, 1, 2
"""How an attempt to place a task ends, as in the list policies."""

WINDOW, SAMPLE = 4096, 1024
"""Awake processors looked at for one task: all, or in a larger cluster so many, in turns."""

IDLE_NOW_S = 600.0
"""A processor that idles now is preferred as if its gap were this much smaller."""

TIGHT = 0.003
"""Weight of the gap between a task's end and its server's, against idle power."""

LEAST_WASTE = 0.005
"""Part of a server's added time that idles, at least: more tasks will come to fill it."""

CERTAIN = 0.5
"""Above this part, run times are chosen as if nothing more came."""

SOONER = 0.01
"""Weight of waiting for a processor, against that of the gap, among places that are else equal.
Where plans may change the sooner wins: planned tasks keep room to make way for those in a hurry.
Where they may not, the later: processors that are free soon are kept for those in a hurry."""

LINGER_S = 86400.0
"""A server that idles for nothing stays awake so long to save a wake; others sleep at once."""

RECENT = 256
"""Arrivals remembered to foresee the load."""


class Plan(NamedTuple):
    """State of the plan (p processors, s servers, k kinds, n tasks)."""

    kind: Ints  # (p,)
    server: Ints  # (p,)
    first: Ints  # (s + 1,)
    wake_s: Floats  # (s,)
    wake_j: Floats  # (s,)
    up_w: Floats  # (s,) power of an awake server where nothing runs, above that of sleep
    busy: Floats  # (1, tree over p) when what runs ends or should have; infinite: nothing runs
    ready_s: Floats  # (p,) when it is, was or will be free of what has started
    end_s: Floats  # (p,) end of all it is to do
    head: Ints  # (p,) first task that has not started; -1: none
    tail: Ints  # (p,)
    after: Ints  # (n,) next task on the same processor; -1: none
    place: Ints  # (n,) processor of a planned task that has not started; -1: none
    length_s: Floats  # (n,) planned run time
    awake: Ints  # (s,)
    since_s: Floats  # (s,) when it began to wake
    last_s: Floats  # (s,) planned end of its last task
    up: Ints  # (s,) awake servers, the first ``tally[0]``
    seat: Ints  # (s,) place in ``up``; -1: asleep
    asleep: Floats  # (k, tree over s) how long a sleeping server with the kind takes to wake
    ending: Floats  # (1, tree over s) when awake servers are to fall asleep
    tally: Ints  # (9,) servers up, placed, spans, arrivals, turn, since replan, processors up,
    # 1 where it is known that nothing more comes, tasks to place anew at each event on top
    recent: Floats  # (2, RECENT) when tasks came and how long they run
    lean: Floats  # (1,) weight of waiting for a processor: above 0, the sooner is better
    waste: Floats  # (1,) part of what a server is kept awake longer that will idle
    sleep_w: Floats  # (s,) power of a sleeping server, billed until its last task
    linger_s: Floats  # (s,) how long a server stays awake after its last task
    begun_s: Floats  # (p,) when what runs began
    real_s: Floats  # (p,) when it really ends: only what happens then may look
    ratio: Floats  # (n,) real / planned run time of each task: only `begin` may look, to set real_s


class Trace(NamedTuple):
    """The tasks: when they come and must be done (n,), and the kinds they prefer."""

    arrival_s: Floats
    deadline_s: Floats
    kinds: Ints  # (n, k) best first; -1: no more
    status: Ints  # (n,) written: PLACED, NO_TIME, NO_ROOM
    earliest_s: Floats  # (n,) written where it is not placed


class Written(NamedTuple):
    """What a run decides: placements (m,) and (server, on, off) rows."""

    task: Ints
    processor: Ints
    start_s: Floats
    length_s: Floats
    span: Floats


def new_plan(
    kind: Ints,
    first: Ints,
    kinds: int,
    wake_s: Floats,
    wake_j: Floats,
    up_w: Floats,
    sleep_w: Floats,
    on: Ints,
    n: int,
    late: bool,
) -> Plan:
    """Make the plan at time 0; servers with ``on`` are awake; ``late``: plans may change."""
    servers, processors = first.size - 1, kind.size
    server = np.repeat(np.arange(servers), np.diff(first))
    asleep = np.full((kinds, servers), np.inf)
    for k in range(kinds):
        has = np.unique(server[kind == k])
        asleep[k, has] = wake_s[has]
    asleep[:, on == 1] = np.inf
    linger_s = np.where((up_w <= 0.0) & (wake_j > 0.0), LINGER_S, 0.0)
    up = np.concatenate([np.flatnonzero(on == 1), np.zeros(int((on == 0).sum()), np.int64)])
    seat = np.full(servers, -1)
    seat[on == 1] = np.arange(int(on.sum()))
    count = np.zeros(9, np.int64)
    count[0], count[6] = on.sum(), int(np.diff(first)[on == 1].sum())
    return Plan(
        kind, server, first, wake_s, wake_j, up_w,
        new_trees(np.full((1, processors), np.inf)),
        np.zeros(processors), np.zeros(processors),
        np.full(processors, -1), np.full(processors, -1),
        np.full(n, -1), np.full(n, -1), np.zeros(n),
        on.copy(), np.zeros(servers), np.zeros(servers), up, seat,
        new_trees(asleep),
        new_trees(np.where(on == 1, linger_s, np.inf)[None, :]),
        count, np.zeros((2, RECENT)), np.full(1, SOONER if late else -SOONER),
        np.full(1, LEAST_WASTE),
        sleep_w, linger_s, np.zeros(processors), np.zeros(processors), np.ones(n),
    )  # fmt: skip


@inner
def first_of(trees: Floats) -> int:
    """Return the leaf of the least key of the first tree."""
    return first_at_most(trees, 0, trees[0, 1])


@inner
def wake(plan: Plan, j: int, now_s: float) -> None:
    """Begin to wake server ``j``."""
    plan.awake[j], plan.since_s[j] = 1, now_s
    plan.seat[j] = plan.tally[0]
    plan.up[plan.tally[0]] = j
    plan.tally[0] += 1
    plan.tally[6] += plan.first[j + 1] - plan.first[j]
    ready = now_s + plan.wake_s[j]
    plan.last_s[j] = ready
    set_key(plan.ending, 0, j, ready + plan.linger_s[j])
    for p in range(plan.first[j], plan.first[j + 1]):
        plan.ready_s[p] = plan.end_s[p] = ready
        set_key(plan.asleep, plan.kind[p], j, np.inf)


@inner
def sleep(plan: Plan, out: Written, j: int, at_s: float) -> None:
    """Put server ``j`` to sleep; it has nothing to do."""
    plan.awake[j] = 0
    m = plan.tally[2]
    out.span[m, 0], out.span[m, 1], out.span[m, 2] = j, plan.since_s[j], at_s
    plan.tally[2] += 1
    plan.tally[0] -= 1
    plan.tally[6] -= plan.first[j + 1] - plan.first[j]
    moved = plan.up[plan.tally[0]]
    plan.up[plan.seat[j]] = moved
    plan.seat[moved] = plan.seat[j]
    plan.seat[j] = -1
    set_key(plan.ending, 0, j, np.inf)
    for p in range(plan.first[j], plan.first[j + 1]):
        set_key(plan.asleep, plan.kind[p], j, plan.wake_s[j])


@inner
def set_last(plan: Plan, j: int) -> None:
    """Find the planned end of server ``j`` anew."""
    last = plan.since_s[j] + plan.wake_s[j]
    for q in range(plan.first[j], plan.first[j + 1]):
        last = max(last, plan.end_s[q])
    plan.last_s[j] = last
    set_key(plan.ending, 0, j, last + plan.linger_s[j])


@inner
def append(plan: Plan, p: int, i: int, length_s: float, now_s: float) -> None:
    """Put task ``i`` at the end of what processor ``p`` is to do; `begin` starts it."""
    j = plan.server[p]
    start = max(now_s, plan.end_s[p])
    plan.length_s[i], plan.after[i], plan.place[i] = length_s, -1, p
    if plan.head[p] < 0:
        plan.head[p] = i
    else:
        plan.after[plan.tail[p]] = i
    plan.tail[p] = i
    plan.end_s[p] = start + length_s
    if plan.end_s[p] > plan.last_s[j]:
        plan.last_s[j] = plan.end_s[p]
        set_key(plan.ending, 0, j, plan.last_s[j] + plan.linger_s[j])


@inner
def _last_cost(
    plan: Plan, curves: Curves, j: int, k: int, row: int, others_s: float, t: float
) -> float:
    """Return energy of a server's last task, less idle power it replaces, plus waking time."""
    if t <= 0.0:
        return np.inf
    return energy_j(curves, row, t) - curves.idle_w[k] * t + plan.up_w[j] * max(others_s, t)


@inner
def _last_length(plan: Plan, trace: Trace, curves: Curves, p: int, i: int, start_s: float) -> float:
    """Return how long the last task of processor ``p`` should run, with nothing more to come.

    Up to the end of the server's other processors it replaces idling; after that it alone keeps
    the server awake.
    """
    j, k = plan.server[p], plan.kind[p]
    row, room = k * trace.arrival_s.size + i, trace.deadline_s[i] - start_s
    others = 0.0
    for q in range(plan.first[j], plan.first[j + 1]):
        if q != p:
            others = max(others, plan.end_s[q] - start_s)
    length = plan.length_s[i]
    inside = fill_s(curves, row, min(room, others))
    beyond = length
    if curves.model[row] != LADDER:
        alone_w = max(0.0, plan.up_w[j] - curves.idle_w[k])
        beyond = max(at_slope_s(curves, row, -alone_w), others, curves.short_s[row])
        beyond = min(beyond, room, curves.long_s[row])
    least = _last_cost(plan, curves, j, k, row, others, length)
    for t in (inside, beyond):
        cost = _last_cost(plan, curves, j, k, row, others, t)
        if cost < least:
            length, least = t, cost
    plan.end_s[p] = start_s + length
    plan.last_s[j] = start_s + max(others, length)
    set_key(plan.ending, 0, j, plan.last_s[j] + plan.linger_s[j])
    return length


@inner
def can_shift(plan: Plan, trace: Trace, p: int, start_s: float) -> bool:
    """Tell whether the planned tasks of processor ``p`` meet their deadlines from ``start_s``."""
    at, i = start_s, plan.head[p]
    while i >= 0:
        at += plan.length_s[i]
        if at > trace.deadline_s[i]:
            return False
        i = plan.after[i]
    return True


@inner
def _slower(plan: Plan, trace: Trace, curves: Curves, p: int, i: int, start_s: float) -> float:
    """Return how long task ``i`` should run where it begins sooner than planned.

    A task that was hurried may slow down if that saves more than keeping its server awake costs
    and the tasks after it still meet their deadlines.
    """
    j, k, length = plan.server[p], plan.kind[p], plan.length_s[i]
    row = k * trace.arrival_s.size + i
    if length >= curves.free_s[row]:
        return length
    t = want_s(curves, row, trace.deadline_s[i] - start_s)
    if t <= length * (1.0 + 1e-9) or not can_shift(plan, trace, p, start_s + t):
        return length
    end = plan.end_s[p] + t - length
    awake = plan.waste[0] * (plan.up_w[j] - curves.idle_w[k]) * max(0.0, end - plan.last_s[j])
    if energy_j(curves, row, length) - energy_j(curves, row, t) <= awake:
        return length
    plan.end_s[p] = end
    set_last(plan, j)
    return t


@inner
def begin(plan: Plan, trace: Trace, curves: Curves, out: Written, p: int, now_s: float) -> None:
    """Start the next task of processor ``p``, which is free."""
    i = plan.head[p]
    if i < 0:
        return
    start = max(now_s, plan.ready_s[p])
    plan.head[p] = plan.after[i]
    plan.place[i] = -1
    length = _slower(plan, trace, curves, p, i, start)
    plan.length_s[i] = length
    if plan.head[p] < 0 and plan.waste[0] > CERTAIN:
        length = _last_length(plan, trace, curves, p, i, start)
    m = plan.tally[1]
    out.task[m], out.processor[m], out.start_s[m], out.length_s[m] = i, p, start, length
    plan.tally[1] += 1
    plan.begun_s[p], plan.ready_s[p] = start, start + length
    plan.real_s[p] = start + length * plan.ratio[i]
    set_key(plan.busy, 0, p, min(plan.ready_s[p], plan.real_s[p]))
    if plan.head[p] < 0 and plan.end_s[p] != plan.ready_s[p]:  # no server sleeps before its task
        plan.end_s[p] = plan.ready_s[p]
        set_last(plan, plan.server[p])


@inner
def in_window(plan: Plan) -> int:
    """Return how many awake servers are looked at for one task."""
    if plan.tally[6] <= WINDOW:
        return plan.tally[0]
    return max(1, plan.tally[0] * SAMPLE // plan.tally[6])


@inner
def best_place(
    plan: Plan, trace: Trace, curves: Curves, i: int, k: int, now_s: float
) -> tuple[int, float, float]:
    """Return (processor, cost, length) of the cheapest place on awake servers; -1: none.

    The cost: energy above the task's best; waking time added to the server, as far as it will
    idle; and a little for the gap to the server's end, so that the tightest fit wins.
    """
    row, deadline = k * trace.arrival_s.size + i, trace.deadline_s[i]
    short, free, free_j = curves.short_s[row], curves.free_s[row], curves.free_j[row]
    waste, idle_w = plan.waste[0], curves.idle_w[k]
    gap_w, lean = TIGHT * idle_w, plan.lean[0]
    kind, end_s, first, last_s, up_w = plan.kind, plan.end_s, plan.first, plan.last_s, plan.up_w
    best, least, length = -1, np.inf, -1.0
    servers, looked = plan.tally[0], in_window(plan)
    turn = plan.tally[4] if looked < servers else 0
    for a in range(looked):
        j = plan.up[(turn + a) % servers]
        for p in range(first[j], first[j + 1]):
            start = max(now_s, end_s[p])
            room = deadline - start
            if kind[p] != k or room < short:
                continue
            t = free if room >= free else want_s(curves, row, room)
            gap = last_s[j] - start - t
            cost = gap_w * gap if gap >= 0.0 else -waste * (up_w[j] - idle_w) * gap
            cost += gap_w * (lean * (start - now_s) if start == end_s[p] else -IDLE_NOW_S)
            if cost < least and t < free:
                cost += energy_j(curves, row, t) - free_j
            if cost < least and t > 0.0:
                best, least, length = p, cost, t
    plan.tally[4] += looked
    return best, least, length


@inner
def _fresh_j(
    plan: Plan, trace: Trace, curves: Curves, i: int, k: int, now_s: float
) -> tuple[int, float, float]:
    """Return (server, cost, length) of waking a server for task ``i``; -1: none is left."""
    row = k * trace.arrival_s.size + i
    room = trace.deadline_s[i] - now_s
    j = first_at_most(plan.asleep, k, room - curves.free_s[row])
    if j < 0:
        j = first_at_most(plan.asleep, k, room - curves.short_s[row])
    if j < 0:
        return -1, np.inf, -1.0
    length = want_s(curves, row, room - plan.wake_s[j])
    if length < 0.0:
        return -1, np.inf, -1.0
    cost = energy_j(curves, row, length) - curves.free_j[row] + plan.wake_j[j]
    cost += plan.sleep_w[j] * max(0.0, now_s - plan.last_s[j])
    cost += plan.waste[0] * max(0.0, plan.up_w[j] - curves.idle_w[k]) * length
    return j, cost, length


@inner
def _best_ahead(
    plan: Plan, trace: Trace, curves: Curves, i: int, k: int, now_s: float
) -> tuple[int, float, float]:
    """Return (processor, cost, length) of the cheapest place ahead of planned tasks; -1: none."""
    row, deadline = k * trace.arrival_s.size + i, trace.deadline_s[i]
    best, least, length = -1, np.inf, -1.0
    for a in range(in_window(plan)):
        j = plan.up[a]
        for p in range(plan.first[j], plan.first[j + 1]):
            start = max(now_s, plan.ready_s[p])
            if plan.kind[p] != k or plan.head[p] < 0 or deadline - start < curves.short_s[row]:
                continue
            t = want_s(curves, row, deadline - start)
            added = max(0.0, plan.end_s[p] + t - plan.last_s[j])
            cost = plan.waste[0] * (plan.up_w[j] - curves.idle_w[k]) * added
            if t < 0.0 or cost >= least:
                continue
            if t < curves.free_s[row]:
                cost += energy_j(curves, row, t) - curves.free_j[row]
            if cost < least and can_shift(plan, trace, p, start + t):
                best, least, length = p, cost, t
    return best, least, length


@inner
def _put_ahead(plan: Plan, p: int, i: int, length_s: float) -> None:
    """Make task ``i`` the next one of processor ``p``, ahead of what is planned there."""
    j = plan.server[p]
    plan.length_s[i], plan.after[i], plan.place[i] = length_s, plan.head[p], p
    plan.head[p] = i
    plan.end_s[p] += length_s
    if plan.end_s[p] > plan.last_s[j]:
        plan.last_s[j] = plan.end_s[p]
        set_key(plan.ending, 0, j, plan.last_s[j] + plan.linger_s[j])


@inner
def _first_of(plan: Plan, j: int, k: int) -> int:
    for p in range(plan.first[j], plan.first[j + 1]):
        if plan.kind[p] == k:
            return p
    return -1


@inner
def _cheapest(
    plan: Plan, trace: Trace, curves: Curves, i: int, late: bool, now_s: float
) -> tuple[int, float, int, bool]:
    """Return (processor, length, server to wake or -1, whether ahead of what is planned there).

    Over all kinds; processor -1: nowhere in time.
    """
    best, least, length, fresh, ahead = -1, np.inf, -1.0, -1, False
    n = trace.arrival_s.size
    base = curves.free_j[max(trace.kinds[i, 0], 0) * n + i]
    for rank in range(trace.kinds.shape[1]):
        k = trace.kinds[i, rank]
        if k < 0:
            break
        more = curves.free_j[k * n + i] - base
        p, cost, t = best_place(plan, trace, curves, i, k, now_s)
        if p >= 0 and cost + more < least:
            best, least, length, fresh, ahead = p, cost + more, t, -1, False
        j, cost, t = _fresh_j(plan, trace, curves, i, k, now_s)
        if j >= 0 and cost + more < least:
            best, least, length, fresh, ahead = _first_of(plan, j, k), cost + more, t, j, False
        if late and (best < 0 or fresh >= 0):
            p, cost, t = _best_ahead(plan, trace, curves, i, k, now_s)
            if p >= 0 and cost + more < least:
                best, least, length, fresh, ahead = p, cost + more, t, -1, True
    return best, length, fresh, ahead


@inner
def settle(
    plan: Plan, trace: Trace, curves: Curves, out: Written, i: int, late: bool, now_s: float
) -> bool:
    """Place task ``i`` where it costs least; False: nowhere in time."""
    p, length, fresh, ahead = _cheapest(plan, trace, curves, i, late, now_s)
    if p < 0:
        return False
    if fresh >= 0:
        wake(plan, fresh, now_s)
    if ahead:
        _put_ahead(plan, p, i, length)
    else:
        append(plan, p, i, length, now_s)
    if plan.busy[0, plan.busy.shape[1] // 2 + p] == np.inf:
        begin(plan, trace, curves, out, p, now_s)
    return True


@inner
def reject(plan: Plan, trace: Trace, curves: Curves, i: int, now_s: float) -> None:
    """Say why task ``i`` cannot run: no clock is fast enough, or every processor is taken."""
    n = trace.arrival_s.size
    trace.status[i], trace.earliest_s[i] = NO_TIME, np.inf
    for rank in range(trace.kinds.shape[1]):
        k = trace.kinds[i, rank]
        if k < 0:
            break
        short = curves.short_s[k * n + i]
        if trace.arrival_s[i] + short <= trace.deadline_s[i]:
            trace.status[i] = NO_ROOM
        soonest = np.inf
        for p in range(plan.kind.size):
            j = plan.server[p]
            if plan.kind[p] == k:
                free = plan.end_s[p] if plan.awake[j] == 1 else now_s + plan.wake_s[j]
                soonest = min(soonest, max(now_s, free))
        trace.earliest_s[i] = min(trace.earliest_s[i], soonest + short)


@inner
def remember(plan: Plan, trace: Trace, curves: Curves, i: int, now_s: float) -> None:
    """Note an arrival after time 0, to foresee the load."""
    slot = plan.tally[3] % RECENT
    plan.recent[0, slot] = now_s
    plan.recent[1, slot] = curves.free_s[max(trace.kinds[i, 0], 0) * trace.arrival_s.size + i]
    plan.tally[3] += 1
