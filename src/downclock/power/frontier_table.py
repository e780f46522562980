"""Frontiers on enumerated clocks: every profile model on a clock table, and measured tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from downclock.power.frontier_convex import Ends
from downclock.power.kernels.ladder import best_so_far, cheapest_near, last_at_most, lower_hull
from downclock.power.points import Clocks, ClockTable
from downclock.power.profiles import MeasuredProfiles, Profiles
from downclock.power.settings import ROUNDING, MixedSettings, Settings
from downclock.units import Bools, Floats, Ints

CHUNK = 1 << 16
"""Entries evaluated at once: scratch arrays stay in the cache, whatever the library's size."""


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """Ragged rows of (time, energy, point), sorted by time, one entry per distinct time.

    Attributes:
        offset: row ``i`` owns entries ``offset[i]:offset[i + 1]``.
        time_s, energy_j: per entry, energy the least at exactly that time.
        source: row of the point table, per entry.
    """

    offset: Ints
    time_s: Floats
    energy_j: Floats
    source: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableCurves(Ends):
    """Energy-time curves with one point per allowed clock.

    Attributes:
        points: the point table that ``source`` of the ladders refers to (p, 3).
        steps: all reachable times.
        best: per entry of ``steps``, the entry of least energy among it and the faster ones.
        hull: the entries on the lower convex hull.
        hull_slope: energy per time from the corner before; -inf at a row's first corner.

    The optimum is the fastest of equals.
    """

    points: Floats
    steps: Ladder
    best: NDArray[np.int32]
    hull: Ladder
    hull_slope: Floats

    @classmethod
    def of(cls, profiles: Profiles, used: Ints, clocks: Clocks) -> TableCurves:
        """Make the curves of the rows ``used``; a measured row has its allowed measurements."""
        points, steps = _all_steps(profiles, used, clocks)
        best = best_so_far(steps.offset, steps.energy_j)
        hull = _select(steps, lower_hull(steps.offset, steps.time_s, steps.energy_j))
        some = np.diff(steps.offset) > 0
        first, last = (
            np.where(some, entry, -1) for entry in (steps.offset[:-1], steps.offset[1:] - 1)
        )
        fast, slow = (_pick(steps, points, entry) for entry in (first, last))
        return cls(
            points=points,
            steps=steps,
            best=best,
            hull=hull,
            hull_slope=_slopes(hull),
            t_min_s=np.where(fast.feasible, fast.time_s, np.inf),
            t_max_s=np.where(slow.feasible, slow.time_s, np.inf),
            e_min_time_j=fast.energy_j,
            e_max_time_j=slow.energy_j,
            optimum=_pick(steps, points, _through(best, last)),
        )

    def at(self, rows: Ints, time_s: Floats, slack_s: Floats) -> Settings:
        """Least energy of the clocks with that time."""
        steps = self.steps
        entry = cheapest_near(steps.offset, steps.time_s, steps.energy_j, rows, time_s, slack_s)
        return _pick(steps, self.points, entry)

    def within(self, rows: Ints, limit_s: Floats) -> Settings:
        """Least energy of the clocks that are fast enough."""
        limit = limit_s * (1.0 + ROUNDING)
        entry = last_at_most(self.steps.offset, self.steps.time_s, rows, limit)
        return _pick(self.steps, self.points, _through(self.best, entry))

    def cheapest(self, rows: Ints, time_price_w: Floats) -> Settings:
        """Least energy + price × time: the last corner worth slowing down to."""
        worth = np.nextafter(-time_price_w, -np.inf)
        entry = last_at_most(self.hull.offset, self.hull_slope, rows, worth)
        return _pick(self.hull, self.points, entry)

    def mixed_at(self, rows: Ints, time_s: Floats, slack_s: Floats) -> MixedSettings:
        """Two neighbouring corners of the hull, mixed to last ``time_s``."""
        shortest, longest = self.t_min_s[rows], self.t_max_s[rows]
        good = (time_s >= shortest - slack_s) & (time_s <= longest + slack_s)
        asked = np.where(good, np.clip(time_s, shortest, longest), -np.inf)
        first = last_at_most(self.hull.offset, self.hull.time_s, rows, asked)
        second = np.where(first >= 0, first + 1, -1)
        last = self.hull.offset[rows + 1] - 1
        return self._blend(first, np.minimum(second, last), asked)

    def _blend(self, first: Ints, second: Ints, asked: Floats) -> MixedSettings:
        """Mix two corners so that the work lasts ``asked``."""
        fast = _pick(self.hull, self.points, first)
        slow = _pick(self.hull, self.points, np.where(first >= 0, second, -1))
        span = slow.time_s - fast.time_s
        share = np.ones(first.size)
        np.divide(slow.time_s - asked, span, out=share, where=span > 0.0)
        share[first < 0] = np.nan
        alone = ~(share < 1.0)
        energy = np.where(alone, fast.energy_j, np.inf)
        some = ~alone
        energy[some] = (share * fast.energy_j)[some] + ((1.0 - share) * slow.energy_j)[some]
        time = np.where(alone, fast.time_s, asked)
        second_points = np.where(alone[:, None], fast.points, slow.points)
        return MixedSettings(time, energy, fast.points, second_points, share)

    def mixed_within(self, rows: Ints, limit_s: Floats) -> MixedSettings:
        """The optimum, or exactly the limit: the hull falls up to the optimum."""
        free = self.optimum.time_s[rows]
        asked = np.where(limit_s < free, limit_s, free)
        return self.mixed_at(rows, asked, ROUNDING * free)

    def ladder(self) -> tuple[Ints, Floats, Floats]:
        """Every reachable time with its least energy."""
        return self.steps.offset, self.steps.time_s, self.steps.energy_j


def _all_steps(profiles: Profiles, used: Ints, clocks: Clocks) -> tuple[Floats, Ladder]:
    """Return the point table and the ladder of the rows, evaluated a chunk of rows at a time."""
    if isinstance(profiles, MeasuredProfiles):
        core, memory = profiles.core, profiles.memory
        points = np.column_stack([core, memory, clocks.volt(core)])
        allowed = clocks.allows(points)
        width = int(np.diff(profiles.offset)[used].max(initial=0))
    else:
        assert isinstance(clocks, ClockTable)
        points, width = clocks.points, len(clocks.points)
    rows = max(1, CHUNK // max(1, width))
    ladders = []
    for start in range(0, used.size, rows):
        part = used[start : start + rows]
        if isinstance(profiles, MeasuredProfiles):
            ladders.append(_steps(*_measured(profiles, part, allowed, width)))
        else:
            shape = (part.size, len(points))
            time, power = profiles.at(np.repeat(part, len(points)), np.tile(points, (part.size, 1)))
            source = np.broadcast_to(np.arange(len(points)), shape)
            ladders.append(_steps(time.reshape(shape), (time * power).reshape(shape), source))
    return points, _concatenate(ladders)


def _measured(
    profiles: MeasuredProfiles, rows: Ints, allowed: Bools, width: int
) -> tuple[Floats, Floats, Ints]:
    """Return time, energy and entry of every measurement, padded to (rows, width) with inf."""
    entry = profiles.offset[rows][:, None] + np.arange(width)
    real = entry < profiles.offset[rows + 1][:, None]
    entry = np.where(real, entry, 0)
    real &= allowed[entry]
    time = np.where(real, profiles.time_s[entry], np.inf)
    return time, np.where(real, time * profiles.power_w[entry], np.inf), entry


def _steps(time: Floats, energy: Floats, source: Ints) -> Ladder:
    """Sort each row by time and keep the least energy of equal times."""
    order = np.argsort(time, axis=1)
    sorted_time = np.take_along_axis(time, order, axis=1)
    again = (sorted_time[:, 1:] == sorted_time[:, :-1]) & np.isfinite(sorted_time[:, 1:])
    tied = np.flatnonzero(np.any(again, axis=1))
    order[tied] = np.lexsort((energy[tied], time[tied]), axis=-1)
    keep = np.isfinite(sorted_time)
    keep[:, 1:] &= ~again
    offset = np.concatenate([[0], np.cumsum(keep.sum(axis=1))])
    energy = np.take_along_axis(energy, order, axis=1)
    source = np.take_along_axis(source, order, axis=1)
    return Ladder(offset, sorted_time[keep], energy[keep], source[keep].astype(np.int32))


def _concatenate(ladders: list[Ladder]) -> Ladder:
    if len(ladders) == 1:
        return ladders[0]
    sizes = np.concatenate([np.diff(part.offset) for part in ladders])
    columns = (
        [getattr(each, name) for each in ladders] for name in ("time_s", "energy_j", "source")
    )
    return Ladder(np.concatenate([[0], np.cumsum(sizes)]), *map(np.concatenate, columns))


def _select(ladder: Ladder, keep: Bools) -> Ladder:
    """Return the kept entries."""
    kept = np.concatenate([[0], np.cumsum(keep)])
    columns = (ladder.time_s[keep], ladder.energy_j[keep], ladder.source[keep])
    return Ladder(kept[ladder.offset], *columns)


def _slopes(hull: Ladder) -> Floats:
    """Return the energy per time from the entry before; -inf at a row's first entry."""
    slope = np.full(hull.time_s.size, -np.inf)
    inner = np.ones(hull.time_s.size, dtype=np.bool_)
    inner[hull.offset[:-1][np.diff(hull.offset) > 0]] = False
    later = np.flatnonzero(inner)
    rise = hull.energy_j[later] - hull.energy_j[later - 1]
    slope[later] = rise / (hull.time_s[later] - hull.time_s[later - 1])
    return slope


def _through(best: NDArray[np.int32], entry: Ints) -> Ints:
    """Return the best so far of each entry; -1 stays -1."""
    found = entry >= 0
    entry[found] = best[entry[found]]
    return entry


def _pick(ladder: Ladder, points: Floats, entry: Ints) -> Settings:
    """Return the settings of entries; none where the entry is -1."""
    if ladder.time_s.size and np.all(entry >= 0):
        return Settings(ladder.time_s[entry], ladder.energy_j[entry], points[ladder.source[entry]])
    answer = Settings.none(entry.size)
    found = np.flatnonzero(entry >= 0)
    entry = entry[found]
    answer.time_s[found], answer.energy_j[found] = ladder.time_s[entry], ladder.energy_j[entry]
    answer.points[found] = points[ladder.source[entry]]
    return answer
