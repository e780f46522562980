"""Where and when a task costs least: run, time its server is awake longer, and wakes, at prices."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from downclock.kernels.compiling import inner
from downclock.planners.cluster.kernels.curves import Curves, energy_j, want_s
from downclock.planners.cluster.kernels.price_plan import (
    LOOK,
    Asked,
    Fleet,
    Plan,
    added,
    rows_of,
    soonest_s,
)
from downclock.planners.cluster.kernels.price_spans import Tariff, cheapest_span, over, piece_of
from downclock.power.kernels.models import LADDER

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

WINDOW = 4096
"""Processors looked at for one task: all, or in a larger cluster so many, in turns."""

TIGHT = 0.003
"""Weight of the gap between a task's end and its server's, against idle power."""


@inner
def wish(
    asked: Asked, curves: Curves, tariff: Tariff, i: int, row: int, z: int, from_s: float
) -> tuple[float, float, float]:
    """Return (value, start, length) of the cheapest run from ``from_s`` on; length -1: none.

    Lengths of the row's list, each over its cheapest span; on continuous clocks also runs that
    just fill the time between two steps.
    """
    to = asked.deadline_s[i]
    room = (to - from_s) * (1.0 + 1e-12)
    share_w = curves.price_w[row // rows_of(curves)]
    best, start, length = np.inf, from_s, -1.0
    for a in range(asked.first[row], asked.first[row + 1]):
        t = asked.try_s[a]
        if t > room:
            break
        watt, at = cheapest_span(tariff, z, from_s, to, t)
        value = (asked.try_j[a] / t + share_w) * watt
        if value < best:
            best, start, length = value, at, t
    if curves.model[row] != LADDER and curves.short_s[row] <= room:
        best, start, length = _filling(
            asked, curves, tariff, i, row, z, from_s, best, start, length
        )
    return best, start, length


@inner
def _filling(
    asked: Asked,
    curves: Curves,
    tariff: Tariff,
    i: int,
    row: int,
    z: int,
    from_s: float,
    best: float,
    start: float,
    length: float,
) -> tuple[float, float, float]:
    """Return the better of a run and those from one step (or end of the window) to another."""
    edge, to = tariff.edge_s, asked.deadline_s[i]
    share_w = curves.price_w[row // rows_of(curves)]
    short, long = curves.short_s[row], asked.try_s[asked.first[row + 1] - 1]
    begin, first = from_s, piece_of(tariff, from_s) + 1
    for a in range(first - 1, edge.size):
        if a >= first:
            begin = edge[a]
        if begin + short > to:
            break
        spot = asked.first[row]
        for b in range(a + 1, edge.size + 1):
            end = to if b == edge.size or edge[b] > to else edge[b]
            t = end - begin
            if t > long:
                break
            if t >= short:
                while asked.try_s[spot] < t:
                    spot += 1
                watt = over(tariff, z, begin, end)
                if (asked.try_j[spot] / asked.try_s[spot] + share_w) * watt < best:
                    value = (energy_j(curves, row, t) / t + share_w) * watt
                    if value < best:
                        best, start, length = value, begin, t
            if end == to:
                break
    return best, start, length


@inner
def value_of(
    fleet: Fleet, curves: Curves, tariff: Tariff, plan: Plan, waste: float, bar: float, j: int,
    k: int, start_s: float, length_s: float, joules: float,
) -> float:  # fmt: skip
    """Return what a run on server ``j`` adds; infinite where it cannot be below ``bar``.

    Time its server is awake longer counts by the part ``waste`` that will idle; at 1 it is what
    the plan costs more.
    """
    z, end = fleet.zone[j], start_s + length_s
    watt = over(tariff, z, start_s, end)
    idle_w = curves.idle_w[k]
    value = (joules / length_s + (1.0 - waste) * curves.price_w[k] - waste * idle_w) * watt
    if value >= bar:
        return np.inf
    longer, wakes, until = added(fleet, tariff, plan, j, start_s, end)
    value += waste * fleet.up_w[j] * longer + wakes
    return value + TIGHT * idle_w * watt / length_s * (until - end)


@inner
def _free(
    fleet: Fleet, plan: Plan, j: int, k: int, start_s: float, end_s: float, now_s: float
) -> int:
    """Return a processor of server ``j`` that has nothing to do between two times; -1: none."""
    for p in range(fleet.first[j], fleet.first[j + 1]):
        if fleet.kind[p] != k or soonest_s(fleet, plan, p, now_s) > start_s:
            continue
        at = plan.head[p]
        while at >= 0 and plan.start_s[at] + plan.length_s[at] <= start_s:
            at = plan.after[at]
        if at < 0 or plan.start_s[at] >= end_s:
            return p
    return -1


class _Ask(NamedTuple):
    """What is wished of one kind in one zone: row, latest end, start, length and energy."""

    row: int
    kind: int
    to_s: float
    start_s: float
    length_s: float
    joules: float


class _Found(NamedTuple):
    """A place: processor (-1: none), what it adds, start and length."""

    p: int
    value: float
    start_s: float
    length_s: float


@inner
def _beside(
    fleet: Fleet, curves: Curves, tariff: Tariff, plan: Plan, waste: float, j: int, now_s: float,
    ask: _Ask, found: _Found,
) -> _Found:  # fmt: skip
    """Return the better of a place and those at the wished time or at the ends of a block."""
    t, k = ask.length_s, ask.kind
    for b in range(-1, plan.blocks[j]):
        for way in range(3):
            s, length, joules = ask.start_s, t, ask.joules
            if b < 0 and way > 0:
                break
            if b >= 0 and way == 0:
                s = plan.from_s[j, b]
            elif b >= 0 and way == 1:
                s = plan.to_s[j, b] - t
            elif b >= 0:
                length = plan.to_s[j, b] - s
                if curves.model[ask.row] == LADDER or not 0.9 * t < length < 1.1 * t:
                    continue
                if length < curves.short_s[ask.row] or length > curves.long_s[ask.row]:
                    continue
                joules = energy_j(curves, ask.row, length)
            if s < now_s or s + length > ask.to_s * (1.0 + 1e-12):
                continue
            value = value_of(
                fleet, curves, tariff, plan, waste, found.value, j, k, s, length, joules
            )
            if value < found.value:
                p = _free(fleet, plan, j, k, s, s + length, now_s)
                if p >= 0:
                    found = _Found(p, value, s, length)
    return found


@inner
def _behind(
    fleet: Fleet, curves: Curves, tariff: Tariff, plan: Plan, waste: float, p: int, now_s: float,
    ask: _Ask, found: _Found,
) -> _Found:  # fmt: skip
    """Return the better of a place and those in the gaps of processor ``p``, as near as can be."""
    low, at = soonest_s(fleet, plan, p, now_s), plan.head[p]
    short = curves.short_s[ask.row] * (1.0 - 1e-12)
    while low + short <= ask.to_s:
        high = ask.to_s if at < 0 else min(ask.to_s, plan.start_s[at])
        t, joules = ask.length_s, ask.joules
        if high - low >= short and high > low:
            if high - low < t:
                t = want_s(curves, ask.row, high - low)
                joules = energy_j(curves, ask.row, t) if t > 0.0 else np.inf
            s = min(max(ask.start_s, low), high - t)
            if t > 0.0 and (s != ask.start_s or t != ask.length_s):
                value = value_of(
                    fleet, curves, tariff, plan, waste, found.value, fleet.server[p],
                    ask.kind, s, t, joules,
                )  # fmt: skip
                if value < found.value:
                    found = _Found(p, value, s, t)
        if at < 0:
            break
        low = max(low, plan.start_s[at] + plan.length_s[at])
        at = plan.after[at]
    return found


@inner
def _on_server(
    fleet: Fleet, asked: Asked, curves: Curves, tariff: Tariff, plan: Plan, waste: float, i: int,
    j: int, now_s: float, wished: Floats, found: _Found,
) -> _Found:  # fmt: skip
    """Return the better of a place and the best on server ``j``; wishes (kinds, 3)."""
    last, idle = -1, -1
    for p in range(fleet.first[j], fleet.first[j + 1]):
        k = fleet.kind[p]
        if wished[k, 1] <= 0.0:
            continue
        row = k * rows_of(curves) + i
        ask = _Ask(row, k, asked.deadline_s[i], wished[k, 0], wished[k, 1], wished[k, 2])
        if k != last:
            found = _beside(fleet, curves, tariff, plan, waste, j, now_s, ask, found)
            last = k
        if plan.head[p] < 0 and plan.ready_s[p] <= now_s:
            if idle == k:
                continue
            idle = k
        found = _behind(fleet, curves, tariff, plan, waste, p, now_s, ask, found)
    return found


@inner
def best_place(
    fleet: Fleet, asked: Asked, curves: Curves, tariff: Tariff, plan: Plan, waste: float, i: int,
    now_s: float, bar: float,
) -> _Found:  # fmt: skip
    """Return the cheapest place below ``bar``, over all servers in use and one of each new like."""
    zones, kinds, servers = tariff.rate.shape[0], curves.box.shape[0], fleet.zone.size
    fresh, wished = np.zeros(servers, np.int64), np.zeros((zones, kinds, 3))
    for k in range(kinds):
        row = k * rows_of(curves) + i
        for z in range(zones):
            if curves.short_s[row] < np.inf:
                _, wished[z, k, 0], wished[z, k, 1] = wish(
                    asked, curves, tariff, i, row, z, max(now_s, asked.arrival_s[i])
                )
                if wished[z, k, 1] > 0.0:
                    wished[z, k, 2] = energy_j(curves, row, wished[z, k, 1])
    found = _Found(-1, bar, 0.0, -1.0)
    seen, turn = 0, plan.tally[LOOK]
    for a in range(servers):
        j = (turn + a) % servers if fleet.kind.size > WINDOW else a
        if plan.blocks[j] == 0:
            if fresh[fleet.like[j]] == 1:
                continue
            fresh[fleet.like[j]] = 1
        elif seen > WINDOW:
            continue
        seen += fleet.first[j + 1] - fleet.first[j]
        found = _on_server(
            fleet, asked, curves, tariff, plan, waste, i, j, now_s, wished[fleet.zone[j]], found
        )
    plan.tally[LOOK] = (turn + 1) % servers
    return found
