"""Prices on reservations: starts in cheap hours, and what another hour or site costs more.

Energy that is lost is compared in joules, so a joule at another time counts by its value there,
against the mean of all times.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.cluster.kernels.board import Cluster, row_of
from downclock.planners.cluster.kernels.curves import Curves, about_over_j, energy_j, wanted_j
from downclock.planners.cluster.kernels.tariff import (
    Tariff,
    cheapest_span,
    last_start_s,
    over,
    piece_of,
)
from downclock.power.kernels.models import LADDER

WAIT = 0.012
"""Part by which a run may cost more than at its cheapest time where it waits on for a better hole:
so that there are tasks to choose from, as where prices do not change. Never more than a hole may
save: where no idle processors are shared that is little."""


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
def _mean_rate(c: Cluster) -> float:
    """Return what a joule is worth on the mean of all times and sites."""
    edge_s, past = c.tariff.edge_s, c.tariff.past
    total = 0.0
    for z in range(past.shape[0]):
        total += past[z, past.shape[1] - 1]
    return total / past.shape[0] / (edge_s[edge_s.size - 1] - edge_s[0])


@inner
def worth(c: Cluster, j: int, from_s: float, to_s: float) -> float:
    """Return what a joule of server ``j`` is worth between two times, against the mean."""
    if c.tally.priced[0] == 0 or not from_s < to_s < np.inf:
        return 1.0
    return over(c.tariff, c.servers.zone[j], from_s, to_s) / (to_s - from_s) / _mean_rate(c)


@inner
def wished_s(c: Cluster, i: int, g: int, from_s: float) -> float:
    """Return the run time of task ``i`` at its cheapest time on a group; infinite: any."""
    zone, row = c.servers.zone[c.groups.server[g]], row_of(c, i, c.groups.kind[g])
    to_s, edge_s = c.tasks.deadline_s[i], c.tariff.edge_s
    if to_s == np.inf:
        to_s = max(from_s, edge_s[edge_s.size - 1])
    length = wish(c.curves, c.tariff, row, zone, from_s, to_s)[2]
    return length if length > 0.0 else np.inf


@inner
def _surcharge_j(c: Cluster, i: int, g: int, start_s: float, length_s: float, mean: float) -> float:
    """Return what the time and site of a run add to its energy on a processor, in mean joules."""
    row = row_of(c, i, c.groups.kind[g])
    if length_s <= 0.0 or not c.curves.rows.free_s[row] < np.inf:
        return 0.0
    rate = run_value(c, g, start_s, length_s) / length_s
    return (wanted_j(c.curves, row) + about_over_j(c.curves, row, length_s)) * (rate / mean - 1.0)


@inner
def dearer_j(c: Cluster, i: int, g: int, start_s: float, length_s: float) -> float:
    """Return what a run costs more, by its time and site, than the one that is reserved.

    In joules of a processor at the mean value; below 0 where it is cheaper.
    """
    a, mean = c.tasks.booked[i], _mean_rate(c)
    if a < 0:
        return 0.0
    kept = _surcharge_j(c, i, c.items.group[a], c.tasks.start_s[i], c.tasks.length_s[i], mean)
    return _surcharge_j(c, i, g, start_s, length_s, mean) - kept


@inner
def _hole_saves_j(c: Cluster, j: int, length_s: float) -> float:
    """Return what a run in a hole may save a processor: see `price_choice.spread_j`."""
    size = c.servers.end[j] - c.servers.first[j]
    idle_j = c.servers.awake_w[j] * length_s * (size - 1) / (2.0 * (size + 1))
    return (idle_j + c.servers.wake_j[j]) / size


@inner
def cheap_start_s(
    c: Cluster, i: int, g: int, from_s: float, to_s: float, length_s: float, late_s: float
) -> tuple[float, float]:
    """Return (start of task ``i`` on a group, what a watt may cost) in a window that holds it.

    From its cheapest start on it waits as long as that costs little, at most until ``late_s``.
    """
    j, row = c.groups.server[g], row_of(c, i, c.groups.kind[g])
    zone = c.servers.zone[j]
    if to_s == np.inf:
        to_s = max(from_s + length_s, c.tariff.edge_s[c.tariff.edge_s.size - 1])
    least, start = cheapest_span(c.tariff, zone, from_s, to_s, length_s)
    most = least * (1.0 + min(WAIT, _hole_saves_j(c, j, length_s) / wanted_j(c.curves, row)))
    return last_start_s(c.tariff, zone, start, min(late_s, to_s - length_s), length_s, most), most


@inner
def run_value(c: Cluster, g: int, start_s: float, length_s: float) -> float:
    """Return the value of a watt over a run on a group."""
    zone = c.servers.zone[c.groups.server[g]]
    return over(c.tariff, zone, start_s, start_s + length_s)
