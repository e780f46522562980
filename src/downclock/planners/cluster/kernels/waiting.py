"""Where and when a task costs least at prices: its run, time its server is awake longer, wakes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.cluster.kernels.blocks import added, put_at, remove
from downclock.planners.cluster.kernels.board import Cluster, row_of, soonest_s
from downclock.planners.cluster.kernels.curves import Curves, energy_j, want_s
from downclock.planners.cluster.kernels.tariff import Tariff, cheapest_span, over, piece_of
from downclock.power.kernels.models import LADDER
from downclock.units import Floats

WINDOW = 4096
"""Processors looked at for one task: all, or in a larger cluster so many, in turns."""

TIGHT = 0.003
"""Weight of the gap between a task's end and its server's, against idle power."""


@inner
def wish(
    curves: Curves, tariff: Tariff, row: int, z: int, from_s: float, to_s: float
) -> tuple[float, float, float]:
    """Return (value, start, length) of the cheapest run between two times; length -1: none.

    Lengths of the row's list, each over its cheapest span; on continuous clocks also runs that
    just fill the time between two steps.
    """
    room = (to_s - from_s) * (1.0 + 1e-12)
    share_w = curves.kinds.price_w[row % curves.box.shape[0]]
    best, start, length = np.inf, from_s, -1.0
    for a in range(curves.rows.try_first[row], curves.rows.try_end[row]):
        t = curves.tries.time_s[a]
        if t > room:
            break
        watt, at = cheapest_span(tariff, z, from_s, to_s, t)
        value = (curves.tries.energy_j[a] / t + share_w) * watt
        if value < best:
            best, start, length = value, at, t
    if curves.rows.model[row] != LADDER and curves.rows.short_s[row] <= room:
        return _filling(curves, tariff, row, z, from_s, to_s, (best, start, length))
    return best, start, length


@inner
def _filling(
    curves: Curves,
    tariff: Tariff,
    row: int,
    z: int,
    from_s: float,
    to_s: float,
    found: tuple[float, float, float],
) -> tuple[float, float, float]:
    """Return the better of a run and those from one step (or end of the window) to another."""
    edge, (best, start, length) = tariff.edge_s, found
    share_w = curves.kinds.price_w[row % curves.box.shape[0]]
    short, long = curves.rows.short_s[row], curves.tries.time_s[curves.rows.try_end[row] - 1]
    begin, first = from_s, piece_of(tariff, from_s) + 1
    for a in range(first - 1, edge.size):
        if a >= first:
            begin = edge[a]
        if begin + short > to_s:
            break
        spot = curves.rows.try_first[row]
        for b in range(a + 1, edge.size + 1):
            end = to_s if b == edge.size or edge[b] > to_s else edge[b]
            t = end - begin
            if t > long:
                break
            if t >= short:
                while curves.tries.time_s[spot] < t:
                    spot += 1
                watt = over(tariff, z, begin, end)
                if (
                    curves.tries.energy_j[spot] / curves.tries.time_s[spot] + share_w
                ) * watt < best:
                    value = (energy_j(curves, row, t) / t + share_w) * watt
                    if value < best:
                        best, start, length = value, begin, t
            if end == to_s:
                break
    return best, start, length


@inner
def value_of(
    c: Cluster, idle_share: float, bar: float, j: int, k: int, start_s: float, length_s: float,
    joules: float,
) -> float:  # fmt: skip
    """Return what a run on server ``j`` adds; infinite where it cannot be below ``bar``.

    Time its server is awake longer counts by the part ``idle_share`` that will idle; at 1 it is
    what the plan costs more.
    """
    z, end = c.servers.zone[j], start_s + length_s
    watt = over(c.tariff, z, start_s, end)
    idle_w = c.curves.kinds.idle_w[k]
    share_w = (1.0 - idle_share) * c.curves.kinds.price_w[k] - idle_share * idle_w
    value = (joules / length_s + share_w) * watt
    if value >= bar:
        return np.inf
    longer, wakes, until = added(c, j, start_s, end)
    value += idle_share * c.servers.awake_w[j] * longer + wakes
    return value + TIGHT * idle_w * watt / length_s * (until - end)


@inner
def _free(c: Cluster, j: int, k: int, start_s: float, end_s: float, now_s: float) -> int:
    """Return a processor of server ``j`` that has nothing to do between two times; -1: none."""
    for p in range(c.servers.first[j], c.servers.end[j]):
        if c.processors.kind[p] != k or soonest_s(c, p, now_s) > start_s:
            continue
        at = c.processors.head[p]
        while at >= 0 and c.tasks.start_s[at] + c.tasks.length_s[at] <= start_s:
            at = c.tasks.after[at]
        if at < 0 or c.tasks.start_s[at] >= end_s:
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


class Found(NamedTuple):
    """A place: processor (-1: none), what it adds, start and length."""

    p: int
    value: float
    start_s: float
    length_s: float


@inner
def _beside(c: Cluster, idle_share: float, j: int, now_s: float, ask: _Ask, found: Found) -> Found:
    """Return the better of a place and those at the wished time or at the ends of a block."""
    t, k, curves = ask.length_s, ask.kind, c.curves
    for b in range(-1, c.servers.blocks[j]):
        for way in range(3):
            s, length, joules = ask.start_s, t, ask.joules
            if b < 0 and way > 0:
                break
            if b >= 0 and way == 0:
                s = c.from_s[j, b]
            elif b >= 0 and way == 1:
                s = c.to_s[j, b] - t
            elif b >= 0:
                length = c.to_s[j, b] - s
                if curves.rows.model[ask.row] == LADDER or not 0.9 * t < length < 1.1 * t:
                    continue
                if length < curves.rows.short_s[ask.row] or length > curves.rows.long_s[ask.row]:
                    continue
                joules = energy_j(curves, ask.row, length)
            if s < now_s or s + length > ask.to_s * (1.0 + 1e-12):
                continue
            value = value_of(c, idle_share, found.value, j, k, s, length, joules)
            if value < found.value:
                p = _free(c, j, k, s, s + length, now_s)
                if p >= 0:
                    found = Found(p, value, s, length)
    return found


@inner
def _behind(c: Cluster, idle_share: float, p: int, now_s: float, ask: _Ask, found: Found) -> Found:
    """Return the better of a place and those in the gaps of processor ``p``, as near as can be."""
    curves = c.curves
    low, at = soonest_s(c, p, now_s), c.processors.head[p]
    short = curves.rows.short_s[ask.row] * (1.0 - 1e-12)
    while low + short <= ask.to_s:
        high = ask.to_s if at < 0 else min(ask.to_s, c.tasks.start_s[at])
        t, joules = ask.length_s, ask.joules
        if high - low >= short and high > low:
            if high - low < t:
                t = want_s(curves, ask.row, high - low)
                joules = energy_j(curves, ask.row, t) if t > 0.0 else np.inf
            s = min(max(ask.start_s, low), high - t)
            if t > 0.0 and (s != ask.start_s or t != ask.length_s):
                j = c.processors.server[p]
                value = value_of(c, idle_share, found.value, j, ask.kind, s, t, joules)
                if value < found.value:
                    found = Found(p, value, s, t)
        if at < 0:
            break
        low = max(low, c.tasks.start_s[at] + c.tasks.length_s[at])
        at = c.tasks.after[at]
    return found


@inner
def _on_server(
    c: Cluster, idle_share: float, i: int, j: int, now_s: float, wished: Floats, found: Found
) -> Found:
    """Return the better of a place and the best on server ``j``; wishes (kinds, 3)."""
    last, idle = -1, -1
    for p in range(c.servers.first[j], c.servers.end[j]):
        k = c.processors.kind[p]
        if wished[k, 1] <= 0.0 or c.processors.up[p] == 0:
            continue
        to_s = c.tasks.deadline_s[i]
        ask = _Ask(row_of(c, i, k), k, to_s, wished[k, 0], wished[k, 1], wished[k, 2])
        if k != last:
            found = _beside(c, idle_share, j, now_s, ask, found)
            last = k
        if c.processors.head[p] < 0 and c.processors.ready_s[p] <= now_s:
            if idle == k:
                continue
            idle = k
        found = _behind(c, idle_share, p, now_s, ask, found)
    return found


@inner
def _wished(c: Cluster, i: int, now_s: float) -> Floats:
    """Return start, length and energy of the cheapest run in every zone on every kind."""
    zones, kinds = c.tariff.rate.shape[0], c.kinds.shape[1]
    wished = np.zeros((zones, kinds, 3))
    from_s = max(now_s, c.tasks.arrival_s[i])
    for k in range(kinds):
        row = row_of(c, i, k)
        for z in range(zones):
            if c.curves.rows.short_s[row] < np.inf:
                _, wished[z, k, 0], wished[z, k, 1] = wish(
                    c.curves, c.tariff, row, z, from_s, c.tasks.deadline_s[i]
                )
                if wished[z, k, 1] > 0.0:
                    wished[z, k, 2] = energy_j(c.curves, row, wished[z, k, 1])
    return wished


@inner
def best_place(c: Cluster, idle_share: float, i: int, now_s: float, bar: float) -> Found:
    """Return the cheapest place below ``bar``, on servers in use and one of each new class."""
    servers = c.servers.zone.size
    fresh, wished = np.zeros(servers, np.int64), _wished(c, i, now_s)
    found = Found(-1, bar, 0.0, -1.0)
    seen, turn = 0, c.tally.look[0]
    for a in range(servers):
        j = (turn + a) % servers if c.processors.kind.size > WINDOW else a
        if c.servers.works[j] == 0:
            continue
        if c.servers.blocks[j] == 0:
            if fresh[c.servers.server_class[j]] == 1:
                continue
            fresh[c.servers.server_class[j]] = 1
        elif seen > WINDOW:
            continue
        seen += c.servers.end[j] - c.servers.first[j]
        found = _on_server(c, idle_share, i, j, now_s, wished[c.servers.zone[j]], found)
    c.tally.look[0] = (turn + 1) % servers
    return found


@inner
def place_waiting(c: Cluster, i: int, now_s: float) -> bool:
    """Plan task ``i`` where and when it costs least; False: it fits nowhere."""
    found = best_place(c, c.tally.idle_share[0], i, now_s, np.inf)
    if found.p < 0:
        return False
    put_at(c, found.p, i, found.start_s, found.length_s, now_s)
    return True


@inner
def place_anew(c: Cluster, i: int, now_s: float) -> None:
    """Take a planned task back and put it where it costs least, if that is less than now."""
    s, t = c.tasks.start_s[i], c.tasks.length_s[i]
    p = remove(c, i, now_s)
    j, k = c.processors.server[p], c.processors.kind[p]
    value = value_of(c, 1.0, np.inf, j, k, s, t, energy_j(c.curves, row_of(c, i, k), t))
    found = best_place(c, 1.0, i, now_s, value - 1e-9 * abs(value))
    if found.p >= 0:
        p, s, t = found.p, found.start_s, found.length_s
    put_at(c, p, i, s, t, now_s)


@inner
def length_at_start(c: Cluster, p: int, i: int, now_s: float) -> float:
    """Return how long a task that starts now should run, all else as planned: thirds narrowed."""
    row, t = row_of(c, i, c.processors.kind[p]), c.tasks.length_s[i]
    if c.curves.rows.model[row] == LADDER:
        return t
    after = c.tasks.after[i]
    room = c.tasks.deadline_s[i] - now_s
    if after >= 0:
        room = min(room, c.tasks.start_s[after] - now_s)
    remove(c, i, now_s)
    best = _narrowed(c, p, row, t, room, now_s)
    put_at(c, p, i, now_s, best, now_s)
    return best


@inner
def _narrowed(c: Cluster, p: int, row: int, t: float, room: float, now_s: float) -> float:
    """Return the cheapest run time near ``t`` from now on, within ``room``."""
    j, k, curves = c.processors.server[p], c.processors.kind[p], c.curves
    best, least = t, value_of(c, 1.0, np.inf, j, k, now_s, t, energy_j(curves, row, t))
    low, high = (
        max(curves.rows.short_s[row], 0.85 * t),
        min(room, curves.rows.long_s[row], 1.25 * t),
    )
    for _ in range(24):
        if high <= low * (1.0 + 1e-6):
            break
        a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
        at_a = value_of(c, 1.0, np.inf, j, k, now_s, a, energy_j(curves, row, a))
        at_b = value_of(c, 1.0, np.inf, j, k, now_s, b, energy_j(curves, row, b))
        if at_a < least:
            best, least = a, at_a
        if at_b < least:
            best, least = b, at_b
        if at_a < at_b:
            high = b
        else:
            low = a
    return best
