"""What a watt costs over time: constant rates between steps, and the cheapest span of a length.

With rates that are never negative the cheapest span of a given length begins or ends at a step of
the rates or at an end of its window, as its cost is linear in its start in between.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.units import Floats, Ints


class Tariff(NamedTuple):
    """Value of a joule, per zone (z) and piece (m) between edges; all zones share the pieces."""

    edge_s: Floats  # (m + 1,)
    rate: Floats  # (z, m) value of a joule
    past: Floats  # (z, m + 1) value of a watt from the first edge on
    near: Ints  # (slots,) piece at the beginning of each of many equal parts of all the time


def new_tariff(edge_s: Floats, rate: Floats) -> Tariff:
    """Make a tariff from rates (z, m) between edges (m + 1,)."""
    past = np.zeros((rate.shape[0], edge_s.size))
    np.cumsum(rate * np.diff(edge_s), axis=1, out=past[:, 1:])
    parts = np.linspace(edge_s[0], edge_s[-1], 4 * edge_s.size + 1)[:-1]
    near = np.clip(np.searchsorted(edge_s, parts, side="right") - 1, 0, edge_s.size - 2)
    return Tariff(edge_s, np.ascontiguousarray(rate), past, near.astype(np.int64))


@inner
def piece_of(tariff: Tariff, time_s: float) -> int:
    """Return the piece that holds a time; the first and last reach beyond the edges."""
    edge_s, near = tariff.edge_s, tariff.near
    last = edge_s.size - 2
    slot = int((time_s - edge_s[0]) / (edge_s[last + 1] - edge_s[0]) * near.size)
    m = near[min(max(slot, 0), near.size - 1)]
    while m > 0 and edge_s[m] > time_s:
        m -= 1
    while m < last and edge_s[m + 1] <= time_s:
        m += 1
    return m


@inner
def spent(tariff: Tariff, z: int, time_s: float) -> float:
    """Return what a watt has cost from the first edge to a time."""
    m = piece_of(tariff, time_s)
    return tariff.past[z, m] + (time_s - tariff.edge_s[m]) * tariff.rate[z, m]


@inner
def over(tariff: Tariff, z: int, start_s: float, end_s: float) -> float:
    """Return what a watt costs between two times."""
    return spent(tariff, z, end_s) - spent(tariff, z, start_s)


@inner
def rate_at(tariff: Tariff, z: int, time_s: float) -> float:
    """Return what a joule costs at a time."""
    return tariff.rate[z, piece_of(tariff, time_s)]


@inner
def cheapest_span(
    tariff: Tariff, z: int, from_s: float, to_s: float, length_s: float
) -> tuple[float, float]:
    """Return (cost of a watt, start) of the cheapest span of a length in a window that holds it."""
    edge_s, past = tariff.edge_s, tariff.past
    latest = max(from_s, to_s - length_s)
    best, least = from_s, over(tariff, z, from_s, from_s + length_s)
    cost = over(tariff, z, latest, latest + length_s)
    if cost < least:
        best, least = latest, cost
    for m in range(piece_of(tariff, from_s), edge_s.size):
        edge = edge_s[m]
        if edge >= to_s:
            break
        if from_s < edge < latest:
            cost = spent(tariff, z, edge + length_s) - past[z, m]
            if cost < least:
                best, least = edge, cost
        if from_s < edge - length_s < latest:
            cost = past[z, m] - spent(tariff, z, edge - length_s)
            if cost < least:
                best, least = edge - length_s, cost
    return least, best


@inner
def last_start_s(
    tariff: Tariff, z: int, from_s: float, to_s: float, length_s: float, most: float
) -> float:
    """Return until when a run that may start at ``from_s`` may wait and cost ``most`` a watt."""
    start, cost, edge_s = from_s, over(tariff, z, from_s, from_s + length_s), tariff.edge_s
    head, tail, last = piece_of(tariff, start), piece_of(tariff, start + length_s), edge_s.size - 2
    while start < to_s:
        to_head = edge_s[head + 1] - start if head < last else np.inf
        to_tail = edge_s[tail + 1] - start - length_s if tail < last else np.inf
        step = max(0.0, min(to_s - start, to_head, to_tail))
        rise = tariff.rate[z, tail] - tariff.rate[z, head]
        if cost + rise * step > most:
            return start + max(0.0, most - cost) / rise if rise > 0.0 else start
        start, cost = start + step, cost + rise * step
        # Pieces are counted: a step may be too short to move so late a time.
        head += to_head <= step
        tail += to_tail <= step
    return start


@compiled
def cheapest_spans(
    tariff: Tariff, z: int, from_s: Floats, to_s: Floats, length_s: Floats
) -> Floats:
    """Return the cost of a watt over the cheapest span of each window (n,)."""
    cost = np.empty(from_s.size)
    for i in range(from_s.size):
        cost[i] = cheapest_span(tariff, z, from_s[i], to_s[i], length_s[i])[0]
    return cost


@inner
def _relaxed(
    tariff: Tariff, z: int, from_s: float, to_s: float, speed: Floats, power_w: Floats, worth: float
) -> tuple[float, float]:
    """Return (dual value, work done) where a unit of work is worth ``worth``."""
    value, work = worth, 0.0
    for m in range(piece_of(tariff, from_s), tariff.edge_s.size - 1):
        begin = max(from_s, tariff.edge_s[m])
        end = to_s if m == tariff.edge_s.size - 2 else min(to_s, tariff.edge_s[m + 1])
        if begin >= to_s:
            break
        least, pace = 0.0, 0.0
        for v in range(speed.size):
            gain = tariff.rate[z, m] * power_w[v] - worth * speed[v]
            if gain < least:
                least, pace = gain, speed[v]
        value += (end - begin) * least
        work += (end - begin) * pace
    return value, work


@compiled
def relaxed_bounds(
    tariff: Tariff,
    z: int,
    from_s: Floats,
    to_s: Floats,
    first: Ints,
    speed: Floats,
    power_w: Floats,
) -> Floats:
    """Return the least cost of a unit of work where clocks may change and runs may pause (n,).

    A run is a mix of corners (speed, power); row i has those from ``first[i]`` to ``first[i + 1]``.
    Any worth of a unit of work gives a lower bound (Lagrangian duality); the best is bisected.
    """
    bound = np.zeros(from_s.size)
    for i in range(from_s.size):
        a, b = first[i], first[i + 1]
        low, high = 0.0, 0.0
        for m in range(tariff.edge_s.size - 1):
            for v in range(a, b):
                high = max(high, 4.0 * tariff.rate[z, m] * power_w[v] / speed[v])
        for _ in range(60):
            worth = 0.5 * (low + high)
            value, work = _relaxed(tariff, z, from_s[i], to_s[i], speed[a:b], power_w[a:b], worth)
            bound[i] = max(bound[i], value)
            if work >= 1.0:
                high = worth
            else:
                low = worth
    return bound
