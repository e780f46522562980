"""Run times of a job on a kind: the energy of one, and the best of those that fit."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.cluster.known.kernels.model import Records

ROUNDING = 1e-12
"""Relative difference of two run times that is nothing."""


@inner
def _entry(entries: Records, curve: Records, unit_s: float) -> int:
    """Return the last entry of at most a time per unit of work; the first where none is."""
    low, high = curve.first, curve.end - 1
    limit = unit_s * (1.0 + ROUNDING)
    while low < high:
        middle = (low + high + 1) // 2
        if entries[middle].time_s <= limit:
            low = middle
        else:
            high = middle - 1
    return low


@inner
def run_j(
    entries: Records, curve: Records, scale: float, length_s: float, w_per_clock: float
) -> float:
    """Return the energy of a run time, with what a chip adds for its clock."""
    place = _entry(entries, curve, length_s / scale)
    low = high = entries[place]
    part = 0.0
    if curve.smooth and place + 1 < curve.end:
        high = entries[place + 1]
        part = max(0.0, (length_s / scale - low.time_s) / (high.time_s - low.time_s))
    joules = low.energy_j + part * (high.energy_j - low.energy_j)
    clock_s = low.clock_s + part * (high.clock_s - low.clock_s)
    return (joules + w_per_clock * clock_s) * scale


@inner
def peak_w(entries: Records, curve: Records, unit_s: float, w_per_clock: float) -> float:
    """Return the most that a run time per unit of work draws: where clocks mix, at the faster."""
    entry = entries[_entry(entries, curve, unit_s)]
    return (entry.energy_j + w_per_clock * entry.clock_s) / entry.time_s


@inner
def best_length_s(
    entries: Records, curve: Records, scale: float, room_s: float, price_w: float
) -> float:
    """Return the run time of at most ``room_s`` of least energy + price × time; -1: none fits."""
    room, shortest_s = room_s / scale, entries[curve.first].time_s
    if shortest_s > room * (1.0 + ROUNDING):
        return -1.0
    if curve.smooth:
        slow_s = entries[_worth_slowing(entries, curve, price_w)].time_s * scale
        return min(slow_s, max(room_s, shortest_s * scale))
    best, least = curve.first, np.inf
    for place in range(curve.first, _entry(entries, curve, room) + 1):
        cost = entries[place].energy_j + price_w * entries[place].time_s
        if cost < least:
            best, least = place, cost
    return entries[best].time_s * scale


@inner
def slower_s(entries: Records, curve: Records, scale: float, room_s: float, part: float) -> float:
    """Return a run time of at most ``room_s``, from the fastest (0) to the slowest (1); -1: none.

    Slow clocks draw the least, whatever energy they take in the end.
    """
    room = room_s / scale
    if entries[curve.first].time_s > room * (1.0 + ROUNDING):
        return -1.0
    last = _entry(entries, curve, room)
    return entries[curve.first + int(part * (last - curve.first) + 0.5)].time_s * scale


@inner
def _worth_slowing(entries: Records, curve: Records, price_w: float) -> int:
    """Return the last entry of a convex curve up to which each step saves its time's price."""
    low, high = curve.first, curve.end - 1
    while low < high:
        middle = (low + high) // 2
        step_s = entries[middle + 1].time_s - entries[middle].time_s
        step_j = entries[middle + 1].energy_j - entries[middle].energy_j
        if step_j + price_w * step_s < 0.0:
            low = middle + 1
        else:
            high = middle
    return low
