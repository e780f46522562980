"""Frontiers of the CPU core model on continuous clocks, in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.power.frontier_convex import ConvexCurves
from downclock.power.points import CORE, MEMORY, VOLT, ClockRange
from downclock.power.profiles import CpuProfiles
from downclock.power.settings import Settings
from downclock.units import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CpuCurves(ConvexCurves):
    """Energy-time curves of ``power = static + c1 core^alpha``, ``time = work / core``.

    ``E(t) = static t + c1 work^alpha t^(1 - alpha)`` is convex in t for alpha >= 1, so one clock
    is best for a given time (gerards: constant speed).
    """

    profiles: CpuProfiles
    clocks: ClockRange

    @classmethod
    def of(cls, profiles: CpuProfiles, used: Ints, clocks: ClockRange) -> CpuCurves:
        """Make the curves of the rows ``used``."""
        profiles = profiles if used.size == len(profiles) else profiles.take(used)
        every = np.arange(len(profiles))
        best = _cheapest_core(profiles, every, np.zeros(every.size), clocks)
        fast = _settings(profiles, every, np.full(every.size, clocks.core_max), clocks)
        slow = _settings(profiles, every, np.full(every.size, clocks.core_min), clocks)
        return cls(
            profiles=profiles,
            clocks=clocks,
            t_min_s=fast.time_s,
            t_max_s=slow.time_s,
            e_min_time_j=fast.energy_j,
            e_max_time_j=slow.energy_j,
            optimum=_settings(profiles, every, best, clocks),
        )

    def at(self, rows: Ints, time_s: Floats, slack_s: Floats) -> Settings:
        """Energy in exactly ``time_s``."""
        work, shortest, longest = self.profiles.time_s[rows], self.t_min_s[rows], self.t_max_s[rows]
        good = np.flatnonzero((time_s >= shortest - slack_s) & (time_s <= longest + slack_s))
        asked = np.clip(time_s[good], shortest[good], longest[good])
        core = np.clip(work[good] / asked, self.clocks.core_min, self.clocks.core_max)
        answer = Settings.none(rows.size)
        unit = _settings(self.profiles, rows[good], core, self.clocks)
        answer.put(good, unit, np.ones(good.size))
        return answer

    def cheapest(self, rows: Ints, time_price_w: Floats) -> Settings:
        """Least energy + price × time."""
        core = _cheapest_core(self.profiles, rows, time_price_w, self.clocks)
        return _settings(self.profiles, rows, core, self.clocks)


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
    points[:, VOLT] = clocks.volt(core)
    time, power = profiles.at(rows, points)
    return Settings(time, power * time, points)
