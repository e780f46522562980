"""Run times and energies of applications on each kind of processor, as the search looks them up."""

from __future__ import annotations

import numpy as np

from downclock.planners.cluster.known.kernels.model import CURVE, ENTRY, Records, records
from downclock.power.frontier import Frontier, frontier
from downclock.power.kernels.ladder import lower_hull
from downclock.problem.platform import Kind
from downclock.problem.problem import Problem
from downclock.units import Bools, Floats, Ints

SAMPLES, ENTRIES = 193, 4_000_000
"""Run times that stand for a continuous curve; fewer where there would be more entries in all."""


def curves_of(problem: Problem, task: Ints) -> tuple[Records, Records, Ints, Floats]:
    """Curves of the applications in use on each kind, their entries, and each job's (n, kinds).

    And the least power of each curve.
    """
    used, place = np.unique(problem.tasks.application[task], return_inverse=True)
    kinds, capped = problem.platform.kinds, problem.platform.limits.has_cap
    samples = int(np.clip(ENTRIES // max(1, used.size * len(kinds)), 24, SAMPLES))
    curve = np.full((task.size, len(kinds)), -1)
    found: list[tuple[Floats, Floats, Floats, bool, bool]] = []
    least_w: list[float] = []
    for k, kind in enumerate(kinds):
        unit = frontier(problem.library, kind.name, kind.clocks, used, np.ones(used.size))
        row, power_w = np.full(used.size, -1), _least_w(unit)
        for i, entries in _entries(unit, kind, samples, capped).items():
            row[i] = len(found)
            found.append(entries)
            least_w.append(float(power_w[i]))
        curve[:, k] = row[place.reshape(-1)]
    end = np.cumsum([each[0].size for each in found], dtype=np.int64)
    smooth, sampled = [each[3] for each in found], [each[4] for each in found]
    time_s, energy_j, clock_s = (
        np.concatenate([np.empty(0), *(each[c] for each in found)]) for c in range(3)
    )
    return (
        records(
            CURVE, end.size, first=np.append(0, end)[:-1], end=end, smooth=smooth, sampled=sampled
        ),
        records(ENTRY, time_s.size, time_s=time_s, energy_j=energy_j, clock_s=clock_s),
        curve,
        np.array(least_w),
    )


def _least_w(unit: Frontier) -> Floats:
    """Least power of each row at any clock (n,); NaN where it cannot run."""
    with np.errstate(invalid="ignore"):
        least_w = unit.e_max_time_j / unit.t_max_s
    offset, rung_s, rung_j = unit.ladder()
    rows = np.flatnonzero(np.diff(offset))
    if rows.size:
        least_w[rows] = np.minimum.reduceat(rung_j / rung_s, offset[rows])
    return least_w


def _entries(
    unit: Frontier, kind: Kind, samples: int, capped: bool
) -> dict[int, tuple[Floats, Floats, Floats, bool, bool]]:
    """Times, energies and clocks × time of each application of a kind, and whether it is smooth.

    Clocks slower than the cheapest, with the idling they replace, are wanted where power is capped.
    """
    offset, rung_s, rung_j = unit.ladder()
    mixes = kind.clock == "free"
    kept = lower_hull(offset, rung_s, rung_j) if mixes else np.ones(rung_s.size, np.bool_)
    longest_s = unit.t_max_s if capped else unit.cheapest(-kind.idle_w).time_s
    found = {}
    for i in np.flatnonzero(np.isfinite(unit.t_min_s)):
        mine = np.arange(offset[i], offset[i + 1])
        if mine.size:
            mine = mine[kept[mine]]
            useful = _falling(rung_j[mine] - kind.idle_w * rung_s[mine])
            useful |= capped & _falling(rung_j[mine] / rung_s[mine])
            time_s, joules = rung_s[mine][useful], rung_j[mine][useful]
        else:
            ratio = max(1.0, longest_s[i] / unit.t_min_s[i])
            time_s = unit.t_min_s[i] * ratio ** np.linspace(0.0, 1.0, samples)
            time_s = time_s if ratio > 1.0 + 1e-9 else time_s[:1]
            joules = unit.at(time_s, np.full(time_s.size, i)).energy_j
        core = unit.at(time_s, np.full(time_s.size, i)).points[:, 0]
        sampled = not mine.size
        found[int(i)] = (time_s, joules, core * time_s, sampled or mixes, sampled)
    return found


def _falling(values: Floats) -> Bools:
    """Mark values below all before them."""
    least = np.minimum.accumulate(values)
    return np.append(True, values[1:] < least[:-1])
