"""What a stage of a graph costs between two slots, and what tasks beside a barrier cost.

An arc (a, b) of a stage says that it runs in the slots a..b-1. All arcs of a stage are a table
(begins, ends) over a window: first and last a, first and last b.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.units import Array

WORTHS = 40
"""Values that are tried as the worth of work in an arc."""

TIRED, SHORTER = 5, 0.7
"""After so many steps without gain in an arc steps become that much shorter."""


class Steps(NamedTuple):
    """Amount of work and cost of a unit of it by slot and step; all steps by cost, and ranks."""

    amount: Array
    cost: Array
    order: Array
    rank: Array


class StageTasks(NamedTuple):
    """Equal tasks of a stage: row of the table, least slots before and after, own window, how many.

    The window is the first and the last slot that they may use wherever the stage lies.
    """

    row: Array
    head: Array
    tail: Array
    release: Array
    due: Array
    many: Array


class Multipliers(NamedTuple):
    """Multipliers (slots,) that a task beside pays before, in and after an arc.

    ``after`` holds for ``least`` slots at least, then ``beyond``.
    """

    before: Array
    inside: Array
    after: Array
    beyond: Array
    least: int


class Room(NamedTuple):
    """Machines of a stage; how many of them others may rent, and what these pay (slots,)."""

    machines: int
    rented: int
    paid: Array


class Climb(NamedTuple):
    """Multipliers of machines in some arcs (k, slots), how far steps go, and towards what (k,)."""

    multiplier: Array
    scale: Array
    target: Array


@inner
def _trimmed(
    steps: Steps, a: int, b: int, need: float, taken: float, total: float, last: int
) -> tuple[float, float, int]:
    """Give back the dearest steps in slots a..b-1 that are not needed; ``last`` is needed."""
    wide = steps.cost.shape[1]
    while True:
        slot, j = steps.order[last] // wide, steps.order[last] % wide
        amount = steps.amount[slot, j] if a <= slot < b else 0.0
        if amount > 0.0 and taken - amount < need:
            return taken, total, last
        taken -= amount
        total -= amount * steps.cost[slot, j] if amount > 0.0 else 0.0
        last -= 1


@inner
def _arcs_from(steps: Steps, need: float, a: int, low_b: int, value: Array) -> None:
    """Fill the costs of arcs that begin in slot ``a``; the threshold of cost only falls."""
    wide = steps.cost.shape[1]
    taken, total, last, enough = 0.0, 0.0, steps.order.size - 1, False
    for b in range(a + 1, low_b + value.size):
        for j in range(wide):
            amount = steps.amount[b - 1, j]
            if amount > 0.0 and (not enough or steps.rank[b - 1, j] <= last):
                taken += amount
                total += amount * steps.cost[b - 1, j]
        enough = enough or taken >= need
        if enough:
            taken, total, last = _trimmed(steps, a, b, need, taken, total, last)
            if b >= low_b:
                o = steps.order[last]
                value[b - low_b] = total - (taken - need) * steps.cost[o // wide, o % wide]


@compiled
def fluid_arcs(
    steps: Steps, need: float, least: int, refund: Array, window: tuple[int, int, int, int]
) -> Array:
    """Return the cost of a stage as a fluid in every arc of a window, less a refund.

    ``refund`` (slots + 1,) is the running sum of what each slot gives back. Arcs of fewer than
    ``least`` slots are infinite.
    """
    low_a, high_a, low_b, high_b = window
    value = np.full((high_a - low_a + 1, high_b - low_b + 1), np.inf)
    for a in range(low_a, high_a + 1):
        row = value[a - low_a]
        _arcs_from(steps, need * (1.0 - 1e-12), a, low_b, row)
        for k in range(row.size):
            b = low_b + k
            row[k] = np.inf if b - a < least else row[k] - (refund[b] - refund[a])
    return value


@inner
def _tolls(paid: Multipliers, a: int, b: int, early: int, late: int, toll: Array) -> None:
    """Fill the running sum (slots + 1,) of what holding a machine costs from ``early`` on."""
    toll[early] = 0.0
    for t in range(early, late + 1):
        if t < a:
            each = paid.before[t]
        elif t < b:
            each = paid.inside[t]
        elif t < b + paid.least:
            each = paid.after[t]
        else:
            each = paid.beyond[t]
        toll[t + 1] = toll[t] + each


@compiled
def cheapest(table: Array, toll: Array, low: int, high: int, late: int) -> tuple[float, int, int]:
    """Return (cost, first, last) of the cheapest interval that starts in low..high.

    ``table`` (slots, lengths) is that of one task, which ends by slot ``late``.
    """
    best, first, last = np.inf, -1, -1
    for s in range(low, high + 1):
        for e in range(s, late + 1):
            held = toll[e + 1] - toll[s]
            if held >= best:  # what is longer is dearer
                break
            cost = table[s, e - s] + held
            if cost < best:
                best, first, last = cost, s, e
    return best, first, last


@compiled
def beside_costs(
    table: Array, early: int, late: int, paid: Multipliers, rule: tuple[bool, bool],
    alive: Array, low_a: int, low_b: int,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the least cost of a task beside a stage for each of its arcs, and the interval.

    Shapes (begins, ends) and (begins, ends, 2); only arcs that are ``alive``. The ``rule`` says
    whether the task starts in the arc or later, and whether it starts before its end.
    """
    cost, chosen = np.zeros(alive.shape), np.zeros((*alive.shape, 2), np.int64)
    toll = np.zeros(late + 2)
    for i in range(alive.shape[0]):
        for k in range(alive.shape[1]):
            if not alive[i, k]:
                continue
            a, b = low_a + i, low_b + k
            _tolls(paid, a, b, early, late, toll)
            low = max(early, a) if rule[0] else early
            high = min(late, b - 1) if rule[1] else late
            cost[i, k], chosen[i, k, 0], chosen[i, k, 1] = cheapest(table, toll, low, high, late)
    return cost, chosen


@inner
def _arc_at(
    table: Array, tasks: StageTasks, room: Room, multiplier: Array, a: int, b: int, held: Array
) -> float:
    """Return the separable bound of an arc at multipliers of machines; fill what tasks hold."""
    total, promised, toll = 0.0, 0.0, np.zeros(multiplier.size + 1)
    held[a:b] = 0.0
    for t in range(a, b):
        more = max(room.paid[t] - multiplier[t], 0.0)
        promised += room.machines * multiplier[t] + room.rented * more
        toll[t + 1] = toll[t] + multiplier[t]
    for g in range(tasks.row.size):
        low = max(a + tasks.head[g], tasks.release[g])
        high = min(b - 1 - tasks.tail[g], tasks.due[g])
        best, first, last = cheapest(table[tasks.row[g]], toll, low, high, high)
        total += tasks.many[g] * best
        if first >= 0:
            held[first : last + 1] += tasks.many[g]
    return total - promised


@compiled
def worth_multipliers(
    table: Array, tasks: StageTasks, room: Room, cost: Array, width: Array, arcs: Array
) -> Array:
    """Return multipliers of machines (k, slots) in some arcs (k, 2), from a worth of fluid work.

    See `Fluid.machine_multipliers`; the best of some values is taken.
    """
    found = np.zeros((len(arcs), room.paid.size))
    each, held = np.zeros(room.paid.size), np.zeros(room.paid.size)
    for k in range(len(arcs)):
        a, b = arcs[k]
        best, dearest = -np.inf, cost[a:b].max()
        for part in range(WORTHS):
            for t in range(a, b):
                gain = 2.0 * dearest * part / WORTHS - cost[t]
                each[t] = (np.maximum(gain, 0.0) * width).sum()
            value = _arc_at(table, tasks, room, each, a, b, held)
            if value > best:
                best = value
                found[k, a:b] = each[a:b]
    return found


@compiled
def _moved(
    room: Room, multiplier: Array, held: Array, a: int, b: int, reach: float, spare: Array
) -> bool:
    """Move multipliers of an arc towards a value; tell whether there is a way. Count what is spare.

    ``reach`` is how much is to be gained.
    """
    steep = 0.0
    for t in range(a, b):
        rented = room.rented if room.paid[t] > multiplier[t] else 0
        spare[t] += rented
        held[t] += rented - room.machines
        if multiplier[t] <= 0.0:
            held[t] = max(held[t], 0.0)
        steep += held[t] * held[t]
    if steep == 0.0:
        return False
    for t in range(a, b):
        multiplier[t] = max(multiplier[t] + reach / steep * held[t], 0.0)
    return True


@compiled
def climb_arcs(
    table: Array, tasks: StageTasks, room: Room, arcs: Array, climb: Climb, steps: int
) -> tuple[Array, Array]:
    """Move the multipliers of some arcs (k, 2) by subgradients towards their targets.

    Return the separable bound of each arc (k,) and the machines that its tasks leave to others on
    average (k, slots). ``climb`` is changed.
    """
    slots = room.paid.size
    value, spare = np.full(len(arcs), -np.inf), np.zeros((len(arcs), slots))
    held = np.zeros(slots)
    for k in range(len(arcs)):
        a, b = arcs[k]
        now, failed, count = climb.multiplier[k].copy(), 0, 0
        while count <= steps:
            each = _arc_at(table, tasks, room, now, a, b, held)
            failed += 1
            if each > value[k]:
                value[k], failed = each, 0
                climb.multiplier[k, a:b] = now[a:b]
            elif failed == TIRED:
                climb.scale[k], failed = SHORTER * climb.scale[k], 0
            count += 1
            reach = climb.scale[k] * (climb.target[k] - each)
            if value[k] >= climb.target[k] or not _moved(room, now, held, a, b, reach, spare[k]):
                break
        spare[k, a:b] /= count
    return value, spare
