"""Hulls of curves below which no clock and no mix of clocks is: what bounds stand on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners.cluster.known.kernels.model import Question
from downclock.power.kernels.ladder import lower_hull
from downclock.units import Floats, Ints

CORNERS = 24
"""Corners of the hull of continuous clocks; fewer bound a little less."""

FEW = 12
"""Corners of the hull of enumerated clocks where a program has them for every moment."""


@dataclass(frozen=True, slots=True, eq=False)
class Hulls:
    """Corners of each curve's hull (ragged): run time and energy of a unit of work."""

    first: Ints
    time_s: Floats
    energy_j: Floats

    def corners(self, curve: Ints) -> tuple[Ints, Ints]:
        """All corners of some curves (m,): place of the curve among them, and the corner."""
        size = np.diff(self.first)[curve]
        place = np.repeat(np.arange(curve.size), size)
        return place, np.arange(place.size) + (self.first[curve] - (np.cumsum(size) - size))[place]


def hulls(question: Question, *, locked: bool = False, few: bool = False) -> Hulls:
    """Corners such that no clock, and no mix of clocks, is below the lines between them.

    ``locked``: all enumerated clocks are corners where they cannot change on the way, as there is
    nothing between them. ``few``: at most `FEW` stand for enumerated clocks.
    """
    times, energies = [np.empty(0)], [np.empty(0)]
    for curve in question.curves:
        mine = question.entries[curve.first : curve.end]
        time_s, energy_j = mine.time_s.copy(), mine.energy_j.copy()
        if curve.sampled and time_s.size > 3:
            time_s, energy_j = _below(time_s, energy_j)
        elif not (curve.smooth or locked):
            kept = lower_hull(np.array([0, time_s.size]), time_s, energy_j)
            time_s, energy_j = time_s[kept], energy_j[kept]
        if few and not curve.sampled:
            time_s, energy_j = _fewer(time_s, energy_j)
        times.append(time_s)
        energies.append(energy_j)
    first = np.cumsum([0] + [each.size for each in times[1:]])
    return Hulls(first, np.concatenate(times), np.concatenate(energies))


def _below(time_s: Floats, energy_j: Floats) -> tuple[Floats, Floats]:
    """Corners below a convex curve given by points of it.

    A chord drawn on beyond its ends stays below the curve: between two points those of both
    neighbouring chords meet in a corner.
    """
    pick = np.unique(np.linspace(0, time_s.size - 1, CORNERS + 2).astype(int))
    x, y = time_s[pick], energy_j[pick]
    slope = np.diff(y) / np.diff(x)
    left, right = slope[:-2], slope[2:]
    bends = right - left > 1e-9 * np.abs(left)
    at = (y[2:-1] - y[1:-2] + left * x[1:-2] - right * x[2:-1]) / np.where(bends, left - right, 1.0)
    at = np.where(bends, np.clip(at, x[1:-2], x[2:-1]), x[1:-2])
    corner = np.minimum(y[1:-2] + left * (at - x[1:-2]), np.interp(at, x, y))
    first = y[1] - slope[1] * (x[1] - x[0])
    last = y[-2] + slope[-2] * (x[-1] - x[-2])
    return np.concatenate([x[:1], at, x[-1:]]), np.concatenate([[first], corner, [last]])


def _fewer(time_s: Floats, energy_j: Floats) -> tuple[Floats, Floats]:
    """Corners below a convex chain of lines: some are left out, and their neighbours drawn on.

    Each time the one whose neighbours meet nearest to it.
    """
    while time_s.size > FEW:
        slope = np.diff(energy_j) / np.diff(time_s)
        left, right, x, y = slope[:-2], slope[2:], time_s[1:-2], energy_j[1:-2]
        bends = right > left
        run_s = np.diff(time_s)[1:-1]
        on = run_s * (right - slope[1:-1]) / np.where(bends, right - left, 1.0)
        on = np.where(bends, np.clip(on, 0.0, run_s), 0.0)
        corner = np.minimum(y + left * on, energy_j[2:-1] + right * (on - run_s))
        least = int(np.argmin(y + slope[1:-1] * on - corner))
        kept = np.delete(np.arange(time_s.size), least + 2)
        time_s, energy_j = time_s[kept], energy_j[kept]
        time_s[least + 1], energy_j[least + 1] = x[least] + on[least], corner[least]
    return time_s, energy_j
