"""Frontiers of the CPU core model on continuous clocks, in closed form."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from downclock.power.points import CORE, MEMORY, ClockRange
from downclock.power.profiles import CpuProfiles
from downclock.power.settings import ROUNDING, MixedSettings, Settings
from downclock.units import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class CpuCurves:
    """Energy-time curves of ``power = static + c1 core^alpha``, ``time = work / core``.

    ``E(t) = static t + c1 work^alpha t^(1 - alpha)`` is convex in t for alpha >= 1, so one clock
    is best for a given time (gerards: constant speed) and a limit that binds is met exactly.
    """

    profiles: CpuProfiles
    clocks: ClockRange
    optimum: Settings

    @classmethod
    def of(cls, profiles: CpuProfiles, used: Ints, clocks: ClockRange) -> CpuCurves:
        """Make the curves of the rows ``used``."""
        if used.size < len(profiles):
            columns = (getattr(profiles, spec.name)[used] for spec in fields(profiles))
            profiles = CpuProfiles(*columns)
        every = np.arange(len(profiles))
        core = _cheapest_core(profiles, every, np.zeros(every.size), clocks)
        return cls(profiles, clocks, _settings(profiles, every, core, clocks))

    @property
    def t_min_s(self) -> Floats:
        """Shortest time."""
        return self.profiles.time_s / self.clocks.core_max

    @property
    def t_max_s(self) -> Floats:
        """Longest time."""
        return self.profiles.time_s / self.clocks.core_min

    @property
    def e_min_time_j(self) -> Floats:
        """Energy at the shortest time."""
        return self._everywhere(self.clocks.core_max).energy_j

    @property
    def e_max_time_j(self) -> Floats:
        """Energy at the longest time."""
        return self._everywhere(self.clocks.core_min).energy_j

    def _everywhere(self, core: float) -> Settings:
        every = np.arange(len(self.profiles))
        return _settings(self.profiles, every, np.full(every.size, core), self.clocks)

    def at(self, rows: Ints, time_s: Floats, slack_s: Floats) -> Settings:
        """Energy in exactly ``time_s``."""
        work = self.profiles.time_s[rows]
        shortest, longest = work / self.clocks.core_max, work / self.clocks.core_min
        good = np.flatnonzero((time_s >= shortest - slack_s) & (time_s <= longest + slack_s))
        asked = np.clip(time_s[good], shortest[good], longest[good])
        core = np.clip(work[good] / asked, self.clocks.core_min, self.clocks.core_max)
        answer = Settings.none(rows.size)
        unit = _settings(self.profiles, rows[good], core, self.clocks)
        answer.put(good, unit, np.ones(good.size))
        return answer

    def within(self, rows: Ints, limit_s: Floats) -> Settings:
        """Least energy in at most ``limit_s``: the optimum, or exactly the limit."""
        answer = self.optimum.take(rows)
        tight = np.flatnonzero(limit_s < answer.time_s)
        rounding = ROUNDING * self.t_min_s[rows[tight]]
        answer.put(tight, self.at(rows[tight], limit_s[tight], rounding), np.ones(tight.size))
        return answer

    def cheapest(self, rows: Ints, time_price_w: Floats) -> Settings:
        """Least energy + price × time."""
        core = _cheapest_core(self.profiles, rows, time_price_w, self.clocks)
        return _settings(self.profiles, rows, core, self.clocks)

    def mixed_at(self, rows: Ints, time_s: Floats, slack_s: Floats) -> MixedSettings:
        """One point: the curve is convex."""
        return MixedSettings.of(self.at(rows, time_s, slack_s))

    def mixed_within(self, rows: Ints, limit_s: Floats) -> MixedSettings:
        """One point: the curve is convex."""
        return MixedSettings.of(self.within(rows, limit_s))

    def ladder(self) -> tuple[Ints, Floats, Floats]:
        """Nothing is enumerated here."""
        return np.zeros(len(self.profiles) + 1, dtype=np.int64), np.empty(0), np.empty(0)


def _cheapest_core(
    profiles: CpuProfiles, rows: Ints, price_w: Floats, clocks: ClockRange
) -> Floats:
    """Return the critical clock ((static + price) / (c1 (alpha - 1)))^(1/alpha), in range.

    Where power does not grow faster than the clock, it is one of the ends.
    """
    constant_w = profiles.static_w[rows] + price_w
    growth_w = profiles.c1_w[rows] * (profiles.alpha[rows] - 1.0)
    curved = growth_w > 0.0
    ends = np.where(constant_w >= 0.0, clocks.core_max, clocks.core_min)
    ratio = np.maximum(constant_w, 0.0) / np.where(curved, growth_w, np.inf)
    critical = ratio ** (1.0 / profiles.alpha[rows])
    return np.where(curved, np.clip(critical, clocks.core_min, clocks.core_max), ends)


def _settings(profiles: CpuProfiles, rows: Ints, core: Floats, clocks: ClockRange) -> Settings:
    points = np.empty((rows.size, 3))
    points[:, CORE], points[:, MEMORY] = core, clocks.default[MEMORY]
    points[:, 2] = clocks.volt(core)
    time, power = profiles.at(rows, points)
    return Settings(time, power * time, points)
