"""Run a plan: arrivals in, starts and sleeps out; what has not started is planned anew."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from downclock.kernels.compiling import compiled, inner
from downclock.planners.cluster.kernels.curves import Curves, energy_j
from downclock.planners.cluster.kernels.price_place import best_place, value_of
from downclock.planners.cluster.kernels.price_plan import (
    PLACED,
    SINCE,
    SPANS,
    TURN,
    Asked,
    Fleet,
    Plan,
    Written,
    attend,
    link,
    rows_of,
    sleep,
    soonest_s,
    stays_up,
    unlink,
    update,
    wake_value,
)
from downclock.planners.cluster.kernels.price_spans import Tariff, over
from downclock.power.kernels.models import LADDER

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

URGENT = 0.2
"""Tasks that can wait for less than this part of their run time are placed first."""

PER_ARRIVAL, EVERY = 2, 4
"""Tasks placed anew for each arrival; all are when one has come for so many that are held back."""

NO_ROOM = 2
"""Status of a task that cannot run, as in the other policies."""


@inner
def _put(
    fleet: Fleet, tariff: Tariff, plan: Plan, i: int, p: int, s: float, t: float, now_s: float
) -> None:
    plan.start_s[i], plan.length_s[i] = s, t
    link(fleet, tariff, plan, i, p, now_s)


@inner
def _insert(
    fleet: Fleet, asked: Asked, curves: Curves, tariff: Tariff, plan: Plan, waste: float, i: int,
    now_s: float,
) -> bool:  # fmt: skip
    """Plan a task where it costs least; False: it fits nowhere."""
    found = best_place(fleet, asked, curves, tariff, plan, waste, i, now_s, np.inf)
    if found.p < 0:
        return False
    _put(fleet, tariff, plan, i, found.p, found.start_s, found.length_s, now_s)
    return True


@inner
def _anew(
    fleet: Fleet, asked: Asked, curves: Curves, tariff: Tariff, plan: Plan, waste: float, i: int,
    now_s: float,
) -> None:  # fmt: skip
    """Take a planned task back and put it where it costs least, if that is less than now."""
    s, t = plan.start_s[i], plan.length_s[i]
    p = unlink(fleet, tariff, plan, i, now_s)
    row = fleet.kind[p] * rows_of(curves) + i
    joules = energy_j(curves, row, t)
    j, k = fleet.server[p], fleet.kind[p]
    value = value_of(fleet, curves, tariff, plan, waste, np.inf, j, k, s, t, joules)
    bar = value - 1e-9 * abs(value)
    found = best_place(fleet, asked, curves, tariff, plan, waste, i, now_s, bar)
    if found.p >= 0:
        p, s, t = found.p, found.start_s, found.length_s
    _put(fleet, tariff, plan, i, p, s, t, now_s)


@inner
def _edge_task(fleet: Fleet, plan: Plan, j: int, late: bool, now_s: float) -> int:
    """Return the planned task that ends last on server ``j``, or starts first; -1: none."""
    best, key = -1, -np.inf
    for p in range(fleet.first[j], fleet.first[j + 1]):
        i = plan.head[p]
        while i >= 0:
            mine = plan.start_s[i] + plan.length_s[i] if late else -plan.start_s[i]
            if mine > key and plan.start_s[i] > now_s:
                best, key = i, mine
            i = plan.after[i]
    return best


@inner
def _improve(
    fleet: Fleet, asked: Asked, curves: Curves, tariff: Tariff, plan: Plan, attempts: int,
    now_s: float,
) -> None:  # fmt: skip
    """Place tasks anew that begin or end a server's plan, by what they really add, in turns."""
    turns = 2 * fleet.zone.size
    for _ in range(turns):
        if attempts <= 0:
            return
        turn = plan.tally[TURN]
        plan.tally[TURN] = (turn + 1) % turns
        i = _edge_task(fleet, plan, turn // 2, turn % 2 == 0, now_s)
        if i >= 0:
            attempts -= 1
            _anew(fleet, asked, curves, tariff, plan, 1.0, i, now_s)


@inner
def _worth(
    fleet: Fleet, asked: Asked, curves: Curves, tariff: Tariff, plan: Plan, now_s: float
) -> float:
    """Return the value of all that is planned, and of waking time."""
    total, n = 0.0, rows_of(curves)
    for j in range(fleet.zone.size):
        z = fleet.zone[j]
        for b in range(plan.blocks[j]):
            begin = max(now_s, plan.from_s[j, b])
            total += fleet.up_w[j] * over(tariff, z, begin, plan.to_s[j, b])
            if plan.awake[j] == 0 or b > 0:
                total += wake_value(fleet, tariff, j, begin)
        for p in range(fleet.first[j], fleet.first[j + 1]):
            i, k = plan.head[p], fleet.kind[p]
            while i >= 0:
                t = plan.length_s[i]
                power = energy_j(curves, k * n + i, t) / t - curves.idle_w[k]
                total += power * over(tariff, z, plan.start_s[i], plan.start_s[i] + t)
                i = plan.after[i]
    return total


@inner
def _replan(
    fleet: Fleet, asked: Asked, curves: Curves, tariff: Tariff, plan: Plan, waste: float,
    now_s: float,
) -> None:  # fmt: skip
    """Plan all that has not started anew, urgent tasks first, then the longest; keep the better."""
    n = rows_of(curves)
    before = _worth(fleet, asked, curves, tariff, plan, now_s)
    where, s, t = plan.place.copy(), plan.start_s.copy(), plan.length_s.copy()
    held = _clear(fleet, tariff, plan, -1, now_s)
    key, urgent = np.empty(held.size), np.zeros(held.size, np.int64)
    for a in range(held.size):
        i = held[a]
        free = curves.free_s[fleet.kind[where[i]] * n + i]
        key[a] = asked.deadline_s[i] - now_s - free
        if key[a] < URGENT * free:
            urgent[a] = 1
        else:
            key[a] = -free
    good, order = True, np.argsort(key, kind="mergesort")
    for turn in range(2 * held.size):
        a = order[turn % held.size]
        if (urgent[a] == 1) == (turn < held.size):
            good = good and _insert(fleet, asked, curves, tariff, plan, waste, held[a], now_s)
    if good and _worth(fleet, asked, curves, tariff, plan, now_s) < before:
        return
    _clear(fleet, tariff, plan, -1, now_s)
    for a in range(held.size):
        i = held[a]
        _put(fleet, tariff, plan, i, where[i], s[i], t[i], now_s)


@inner
def _clear(fleet: Fleet, tariff: Tariff, plan: Plan, i: int, now_s: float) -> Ints:
    """Take everything back that is planned; return it with task ``i``."""
    n = plan.place.size
    held, count = np.empty(n + 1, np.int64), 0
    for task in range(n):
        if plan.place[task] >= 0:
            held[count] = task
            count += 1
    for a in range(count):
        unlink(fleet, tariff, plan, held[a], now_s)
    if i >= 0:
        held[count] = i
        count += 1
    return held[:count]


@inner
def _compact(
    fleet: Fleet, asked: Asked, curves: Curves, tariff: Tariff, plan: Plan, i: int, now_s: float
) -> bool:
    """Plan task ``i`` by starting all that is planned as soon as can be, earliest deadline first.

    False: even so it fits nowhere, and the plan is as before.
    """
    n = rows_of(curves)
    where, s, t = plan.place.copy(), plan.start_s.copy(), plan.length_s.copy()
    held = _clear(fleet, tariff, plan, i, now_s)
    free = np.empty(fleet.kind.size)
    for p in range(free.size):
        free[p] = soonest_s(fleet, plan, p, now_s)
    good = True
    for a in np.argsort(asked.deadline_s[held], kind="mergesort"):
        task, best, least = held[a], -1, np.inf
        for p in range(free.size):
            end = free[p] + curves.short_s[fleet.kind[p] * n + task]
            if end < least:
                best, least = p, end
        if best < 0 or least > asked.deadline_s[task]:
            good = False
            break
        length = curves.short_s[fleet.kind[best] * n + task]
        _put(fleet, tariff, plan, task, best, free[best], length, now_s)
        free[best] = least
    if good:
        plan.tight_s[0] = max(plan.tight_s[0], asked.deadline_s[i])
        return True
    _clear(fleet, tariff, plan, -1, now_s)
    for a in range(held.size):
        task = held[a]
        if where[task] >= 0:
            _put(fleet, tariff, plan, task, where[task], s[task], t[task], now_s)
    return False


@inner
def _settle_length(
    fleet: Fleet, asked: Asked, curves: Curves, tariff: Tariff, plan: Plan, p: int, i: int,
    now_s: float,
) -> float:  # fmt: skip
    """Return how long a task that starts now should run, all else as planned: thirds narrowed."""
    row = fleet.kind[p] * rows_of(curves) + i
    t = plan.length_s[i]
    if curves.model[row] == LADDER:
        return t
    after = plan.after[i]
    room = asked.deadline_s[i] - now_s
    if after >= 0:
        room = min(room, plan.start_s[after] - now_s)
    unlink(fleet, tariff, plan, i, now_s)
    j, k = fleet.server[p], fleet.kind[p]
    best, least = (
        t,
        value_of(
            fleet, curves, tariff, plan, 1.0, np.inf, j, k, now_s, t, energy_j(curves, row, t)
        ),
    )
    low, high = max(curves.short_s[row], 0.85 * t), min(room, curves.long_s[row], 1.25 * t)
    for _ in range(24):
        if high <= low * (1.0 + 1e-6):
            break
        a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
        at_a = value_of(
            fleet, curves, tariff, plan, 1.0, np.inf, j, k, now_s, a, energy_j(curves, row, a)
        )
        at_b = value_of(
            fleet, curves, tariff, plan, 1.0, np.inf, j, k, now_s, b, energy_j(curves, row, b)
        )
        if at_a < least:
            best, least = a, at_a
        if at_b < least:
            best, least = b, at_b
        if at_a < at_b:
            high = b
        else:
            low = a
    plan.length_s[i] = best
    link(fleet, tariff, plan, i, p, now_s)
    return best


@inner
def _begin(
    fleet: Fleet, asked: Asked, curves: Curves, tariff: Tariff, plan: Plan, out: Written, p: int,
    now_s: float,
) -> None:  # fmt: skip
    """Start the next task of processor ``p``."""
    i = plan.head[p]
    length = _settle_length(fleet, asked, curves, tariff, plan, p, i, now_s)
    m = plan.tally[PLACED]
    out.task[m], out.processor[m], out.start_s[m], out.length_s[m] = i, p, now_s, length
    plan.tally[PLACED] += 1
    plan.head[p], plan.place[i] = plan.after[i], -1
    plan.ready_s[p] = now_s + length


@inner
def _attend_to(
    fleet: Fleet, asked: Asked, curves: Curves, tariff: Tariff, plan: Plan, out: Written, j: int,
    now_s: float,
) -> None:  # fmt: skip
    """Wake a server whose time has come, start what is due, let it sleep where that is cheaper."""
    if plan.awake[j] == 0:
        plan.awake[j], plan.since_s[j] = 1, now_s
        for p in range(fleet.first[j], fleet.first[j + 1]):
            plan.ready_s[p] = now_s + fleet.wake_s[j]
    running, first = 0.0, np.inf
    for p in range(fleet.first[j], fleet.first[j + 1]):
        if plan.head[p] >= 0 and plan.start_s[plan.head[p]] <= now_s:
            _begin(fleet, asked, curves, tariff, plan, out, p, now_s)
        running = max(running, plan.ready_s[p])
        if plan.head[p] >= 0:
            first = min(first, plan.start_s[plan.head[p]])
    if running <= now_s and (first == np.inf or not stays_up(fleet, tariff, j, now_s, first)):
        sleep(plan, out, j, now_s)
        update(fleet, tariff, plan, j, now_s)
    attend(fleet, tariff, plan, j, now_s)


@inner
def _waste(fleet: Fleet, plan: Plan, crowd: float, fresh: int, now_s: float) -> float:
    """Return the part of a server's added time that will idle: less, the more tasks there are.

    Tasks that wait or run, and the ``fresh`` ones that come now, against a server's processors.
    """
    tasks = (plan.place >= 0).sum() + (plan.ready_s > now_s).sum() + fresh
    return min(1.0, crowd * fleet.kind.size / fleet.zone.size / max(tasks, 1))


@inner
def _moment(
    fleet: Fleet, asked: Asked, curves: Curves, tariff: Tariff, plan: Plan, out: Written,
    crowd: float, arrived: Ints, at: int, now_s: float,
) -> int:  # fmt: skip
    """Do everything that happens at ``now_s``; return the next arrival to come."""
    first = at
    while at < arrived.size and asked.arrival_s[arrived[at]] <= now_s:
        at += 1
    waste = _waste(fleet, plan, crowd, at - first, now_s)
    for a in range(first, at):
        i = arrived[a]
        if not _insert(fleet, asked, curves, tariff, plan, waste, i, now_s) and not _compact(
            fleet, asked, curves, tariff, plan, i, now_s
        ):
            asked.status[i] = NO_ROOM
    plan.tally[SINCE] += at - first
    if at > first and plan.tight_s[0] <= now_s:
        if EVERY * plan.tally[SINCE] >= (plan.place >= 0).sum():
            plan.tally[SINCE] = 0
            _replan(fleet, asked, curves, tariff, plan, waste, now_s)
        _improve(fleet, asked, curves, tariff, plan, PER_ARRIVAL * (at - first), now_s)
    for j in range(fleet.zone.size):
        if plan.next_s[j] <= now_s:
            _attend_to(fleet, asked, curves, tariff, plan, out, j, now_s)
    return at


@compiled
def run_priced(
    fleet: Fleet, asked: Asked, curves: Curves, tariff: Tariff, plan: Plan, out: Written,
    crowd: float, arrived: Ints, until_s: float,
) -> int:  # fmt: skip
    """Decide on ``arrived`` and on all that happens by itself before ``until_s``.

    What happens at ``until_s`` itself waits for the next run: it comes after the arrivals then.
    Returns -1; or, where the spans have no room for one more of each server, how many of
    ``arrived`` are decided on: go on with the rest and more room.
    """
    at = 0
    while True:
        now = np.inf if at >= arrived.size else asked.arrival_s[arrived[at]]
        own = plan.next_s.min()
        if own < now and own >= until_s:
            return -1
        now = min(now, own)
        if now == np.inf:
            return -1
        if plan.tally[SPANS] + fleet.zone.size > out.span.shape[0]:
            return at
        at = _moment(fleet, asked, curves, tariff, plan, out, crowd, arrived, at, now)


@compiled
def energies(curves: Curves, rows: Ints, time_s: Floats) -> Floats:
    """Return the energy of rows at run times they can reach (m,)."""
    found = np.empty(rows.size)
    for a in range(rows.size):
        found[a] = energy_j(curves, rows[a], time_s[a])
    return found
