"""A plan in the future: when each task starts, where and how long, and which servers wake when.

Every processor has a list of tasks with their starts; gaps are allowed. A server is awake in blocks
of time that hold its tasks; two blocks are one where idling through costs less than another wake.
Nothing is promised before it starts, so all of it may be planned anew.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from downclock.kernels.compiling import inner
from downclock.planners.cluster.kernels.curves import Curves
from downclock.planners.cluster.kernels.price_spans import Tariff, over, rate_at

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

BLOCKS = 24
"""Most blocks a server keeps; further ones count as one with the last."""

PLACED, SPANS, TURN, LOOK, SINCE = range(5)
"""Entries of ``tally``."""


class Fleet(NamedTuple):
    """The platform (p processors, s servers, k kinds)."""

    kind: Ints  # (p,)
    server: Ints  # (p,)
    first: Ints  # (s + 1,)
    zone: Ints  # (s,)
    like: Ints  # (s,) servers of one number are alike
    wake_s: Floats  # (s,)
    wake_j: Floats  # (s,)
    up_w: Floats  # (s,) power of an awake server where nothing runs, above that of sleep


class Plan(NamedTuple):
    """State of the plan (n tasks)."""

    ready_s: Floats  # (p,) when it is, was or will be free of what has started
    head: Ints  # (p,) first task that has not started; -1: none
    after: Ints  # (n,) next task on the same processor; -1: none
    place: Ints  # (n,) processor of a planned task; -1: none
    start_s: Floats  # (n,) planned start
    length_s: Floats  # (n,) planned run time
    awake: Ints  # (s,)
    since_s: Floats  # (s,) when it began to wake
    blocks: Ints  # (s,) how many
    from_s: Floats  # (s, BLOCKS) when they begin
    to_s: Floats  # (s, BLOCKS) when they end
    next_s: Floats  # (s,) when something is to be done about the server
    tally: Ints  # (5,) starts and spans written, whose turn it is (2), arrivals since a replan
    tight_s: Floats  # (1,) until when tasks are not held back


class Written(NamedTuple):
    """What a run decides: placements (m,) and (server, on, off) rows."""

    task: Ints
    processor: Ints
    start_s: Floats
    length_s: Floats
    span: Floats


class Asked(NamedTuple):
    """The tasks: arrival, deadline (n,) and lengths to try per row."""

    arrival_s: Floats
    deadline_s: Floats
    status: Ints  # (n,) written: 0 placed, NO_ROOM
    first: Ints  # (r + 1,) first length of each row
    try_s: Floats  # (entries,) lengths, ascending per row
    try_j: Floats  # (entries,) their energies


def new_plan(fleet: Fleet, on: Ints, n: int) -> Plan:
    """Make an empty plan; servers with ``on`` are awake at time 0."""
    s, p = fleet.zone.size, fleet.kind.size
    blocks = np.zeros((2, s, BLOCKS))
    return Plan(
        np.zeros(p), np.full(p, -1), np.full(n, -1), np.full(n, -1), np.zeros(n), np.zeros(n),
        on.copy(), np.zeros(s), on.copy(), blocks[0], blocks[1],
        np.where(on == 1, 0.0, np.inf), np.zeros(5, np.int64), np.full(1, -1.0),
    )  # fmt: skip


@inner
def wake_value(fleet: Fleet, tariff: Tariff, j: int, ready_s: float) -> float:
    """Return what it costs to have server ``j`` awake from ``ready_s`` on."""
    return fleet.wake_j[j] * rate_at(tariff, fleet.zone[j], max(0.0, ready_s - fleet.wake_s[j]))


@inner
def stays_up(fleet: Fleet, tariff: Tariff, j: int, end_s: float, next_s: float) -> bool:
    """Tell whether idling from one block to the next beats sleeping."""
    if next_s - end_s <= fleet.wake_s[j]:
        return True
    idling = fleet.up_w[j] * over(tariff, fleet.zone[j], end_s, next_s)
    return idling <= wake_value(fleet, tariff, j, next_s)


@inner
def _intervals(fleet: Fleet, plan: Plan, j: int, now_s: float, begin: Floats, end: Floats) -> int:
    """Write when server ``j`` runs something, by start; return how many."""
    count = 0
    if plan.awake[j] == 1:
        begin[0] = end[0] = now_s
        count = 1
    for p in range(fleet.first[j], fleet.first[j + 1]):
        if count > 0 and plan.awake[j] == 1:
            end[0] = max(end[0], plan.ready_s[p])
        i = plan.head[p]
        while i >= 0 and count < begin.size:
            s, e = plan.start_s[i], plan.start_s[i] + plan.length_s[i]
            at = count
            while at > 0 and begin[at - 1] > s:
                begin[at], end[at] = begin[at - 1], end[at - 1]
                at -= 1
            begin[at], end[at] = s, e
            count += 1
            i = plan.after[i]
    return count


@inner
def update(fleet: Fleet, tariff: Tariff, plan: Plan, j: int, now_s: float) -> None:
    """Find the blocks of server ``j`` and when it needs attention."""
    size = 1
    for p in range(fleet.first[j], fleet.first[j + 1]):
        i = plan.head[p]
        while i >= 0:
            size += 1
            i = plan.after[i]
    begin, end = np.empty(size), np.empty(size)
    count = _intervals(fleet, plan, j, now_s, begin, end)
    b = -1
    for a in range(count):
        joins = b >= 0 and (
            begin[a] <= plan.to_s[j, b]
            or b == BLOCKS - 1
            or stays_up(fleet, tariff, j, plan.to_s[j, b], begin[a])
        )
        if joins:
            plan.to_s[j, b] = max(plan.to_s[j, b], end[a])
        else:
            b += 1
            plan.from_s[j, b], plan.to_s[j, b] = begin[a], end[a]
    plan.blocks[j] = b + 1
    attend(fleet, tariff, plan, j, now_s)


@inner
def attend(fleet: Fleet, tariff: Tariff, plan: Plan, j: int, now_s: float) -> None:
    """Note when server ``j`` has to wake, start a task, or may sleep: now, if that is cheaper."""
    first, last = np.inf, -np.inf
    for p in range(fleet.first[j], fleet.first[j + 1]):
        last = max(last, plan.ready_s[p])
        if plan.head[p] >= 0:
            first = min(first, plan.start_s[plan.head[p]])
    if plan.awake[j] == 0:
        plan.next_s[j] = first - fleet.wake_s[j]
    elif last > now_s:
        plan.next_s[j] = min(first, last)
    elif first < np.inf and stays_up(fleet, tariff, j, now_s, first):
        plan.next_s[j] = first
    else:
        plan.next_s[j] = now_s


@inner
def added(
    fleet: Fleet, tariff: Tariff, plan: Plan, j: int, start_s: float, end_s: float
) -> tuple[float, float, float]:
    """Return what a task from ``start_s`` to ``end_s`` adds to server ``j``.

    (cost of a watt over the time it is awake longer, value of wakes added less those saved, end of
    the block it falls into).
    """
    z, low, high, inside, wakes, hits = fleet.zone[j], start_s, end_s, 0.0, 0.0, 0
    left, right, opens = -1.0, np.inf, start_s
    for b in range(plan.blocks[j]):
        begin, end = plan.from_s[j, b], plan.to_s[j, b]
        if end < start_s:
            left = end
        elif begin > end_s:
            right = begin
            break
        else:
            low, high, hits = min(low, begin), max(high, end), hits + 1
            inside += over(tariff, z, begin, end)
            if hits > 1:
                wakes -= wake_value(fleet, tariff, j, begin)
            else:
                opens = begin
    longer = over(tariff, z, low, high) - inside
    if hits == 0 or low < opens:
        if hits > 0:
            wakes -= wake_value(fleet, tariff, j, opens)
        if left >= 0.0 and stays_up(fleet, tariff, j, left, low):
            longer += over(tariff, z, left, low)
        else:
            wakes += wake_value(fleet, tariff, j, low)
    if right < np.inf and longer > 0.0 and stays_up(fleet, tariff, j, high, right):
        longer += over(tariff, z, high, right)
        wakes -= wake_value(fleet, tariff, j, right)
    return longer, wakes, high


@inner
def link(fleet: Fleet, tariff: Tariff, plan: Plan, i: int, p: int, now_s: float) -> None:
    """Put task ``i`` (start and length are set) into the list of processor ``p``."""
    before, at = -1, plan.head[p]
    while at >= 0 and plan.start_s[at] < plan.start_s[i]:
        before, at = at, plan.after[at]
    plan.after[i], plan.place[i] = at, p
    if before < 0:
        plan.head[p] = i
    else:
        plan.after[before] = i
    update(fleet, tariff, plan, fleet.server[p], now_s)


@inner
def unlink(fleet: Fleet, tariff: Tariff, plan: Plan, i: int, now_s: float) -> int:
    """Take a planned task back; return the processor it was on."""
    p = plan.place[i]
    before, at = -1, plan.head[p]
    while at != i:
        before, at = at, plan.after[at]
    if before < 0:
        plan.head[p] = plan.after[i]
    else:
        plan.after[before] = plan.after[i]
    plan.place[i] = -1
    update(fleet, tariff, plan, fleet.server[p], now_s)
    return p


@inner
def sleep(plan: Plan, out: Written, j: int, at_s: float) -> None:
    """Put server ``j`` to sleep; nothing runs on it."""
    m = plan.tally[SPANS]
    out.span[m, 0], out.span[m, 1], out.span[m, 2] = j, plan.since_s[j], at_s
    plan.tally[SPANS] += 1
    plan.awake[j] = 0


@inner
def soonest_s(fleet: Fleet, plan: Plan, p: int, now_s: float) -> float:
    """Return when processor ``p`` could start something at the earliest."""
    j = fleet.server[p]
    ready = plan.ready_s[p] if plan.awake[j] == 1 else now_s + fleet.wake_s[j]
    return max(now_s, ready)


@inner
def rows_of(curves: Curves) -> int:
    """Return the number of tasks: a row is kind × tasks + task."""
    return curves.model.size // curves.box.shape[0]
