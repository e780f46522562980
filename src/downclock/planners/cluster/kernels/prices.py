"""Prices on reservations: starts in cheap hours, and what another hour or site costs more.

Energy that is lost is compared in joules, so a joule at another time counts by its value there,
against the mean of all times.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.cluster.kernels.board import Cluster, row_of
from downclock.planners.cluster.kernels.curves import Curves
from downclock.planners.cluster.kernels.tariff import cheapest_span, over


@inner
def _mean_rate(c: Cluster) -> float:
    """Return what a joule is worth on the mean of all times and sites."""
    edge_s, past = c.tariff.edge_s, c.tariff.past
    total = 0.0
    for z in range(past.shape[0]):
        total += past[z, past.shape[1] - 1]
    return total / past.shape[0] / (edge_s[edge_s.size - 1] - edge_s[0])


@inner
def _run_w(curves: Curves, row: int) -> float:
    """Return about what a processor draws while a row runs, with what it carries besides."""
    if not curves.rows.free_s[row] < np.inf:
        return 0.0
    power = curves.rows.free_j[row] / curves.rows.free_s[row]
    return power + curves.kinds.price_w[row % curves.box.shape[0]]


@inner
def dearer_j(c: Cluster, i: int, g: int, start_s: float, length_s: float) -> float:
    """Return what a run costs more, by its time and site, than the one that is reserved.

    In joules of a processor at the mean value; below 0 where it is cheaper.
    """
    a = c.tasks.booked[i]
    if a < 0 or length_s <= 0.0:
        return 0.0
    kept, length = c.tasks.start_s[i], c.tasks.length_s[i]
    here, there = c.groups.server[g], c.groups.server[c.items.group[a]]
    rate = over(c.tariff, c.servers.zone[here], start_s, start_s + length_s) / length_s
    before = over(c.tariff, c.servers.zone[there], kept, kept + length) / length
    joules = _run_w(c.curves, row_of(c, i, c.groups.kind[g])) * length_s
    return joules * (rate - before) / _mean_rate(c)


@inner
def cheapest_start_s(c: Cluster, g: int, from_s: float, to_s: float, length_s: float) -> float:
    """Return when a run on a group is cheapest in a window that holds it."""
    zone = c.servers.zone[c.groups.server[g]]
    if to_s == np.inf:
        to_s = max(from_s + length_s, c.tariff.edge_s[c.tariff.edge_s.size - 1])
    return cheapest_span(c.tariff, zone, from_s, to_s, length_s)[1]


@inner
def run_value(c: Cluster, g: int, start_s: float, length_s: float) -> float:
    """Return the value of a watt over a run on a group."""
    zone = c.servers.zone[c.groups.server[g]]
    return over(c.tariff, zone, start_s, start_s + length_s)
