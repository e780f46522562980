"""Frontiers of the GPU model on continuous clocks, by the exact kernels."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from downclock.power.points import ClockRange
from downclock.power.profiles import GpuProfiles
from downclock.power.settings import ROUNDING, MixedSettings, Settings
from downclock.units import Floats, Ints


def gpu_box(clocks: ClockRange) -> Floats:
    """Return the clocks as the kernels of ``kernels.gpu_clock`` take them."""
    law = clocks.law
    bounds = (clocks.core_min, clocks.core_max, clocks.memory_min, clocks.memory_max)
    return np.array([*bounds, clocks.volt_min, law.a0, law.a1, law.a2])


@dataclass(frozen=True, slots=True, eq=False)
class GpuCurves:
    """Energy-time curves of the three-variable GPU model (mei2021 Eq. 1-4) on a clock range.

    The curve is convex on all of [t_min_s, t_max_s] (proof in ``kernels.gpu_clock``). So a limit
    shorter than the optimum is met exactly, and changing clocks while running saves nothing.
    """

    profiles: GpuProfiles
    box: Floats
    t_min_s: Floats
    t_max_s: Floats
    e_min_time_j: Floats
    e_max_time_j: Floats
    optimum: Settings

    @classmethod
    def of(cls, profiles: GpuProfiles, used: Ints, clocks: ClockRange) -> GpuCurves:
        """Make the curves of the rows ``used``."""
        from downclock.kernels.gpu_clock import cheapest_rows

        if used.size < len(profiles):
            columns = (getattr(profiles, spec.name)[used] for spec in fields(profiles))
            profiles = GpuProfiles(*columns)
        every = np.arange(len(profiles))
        fast = profiles.at(every, _fastest(profiles, clocks))
        slow = profiles.at(every, _slowest(profiles, clocks))
        box = gpu_box(clocks)
        best = cheapest_rows(*_columns(profiles), box, every, np.zeros(every.size))
        return cls(
            profiles, box, fast[0], slow[0], fast[0] * fast[1], slow[0] * slow[1], Settings(*best)
        )

    def at(self, rows: Ints, time_s: Floats, slack_s: Floats) -> Settings:
        """Least energy in exactly ``time_s``."""
        from downclock.kernels.gpu_clock import at_rows

        return Settings(*at_rows(*_columns(self.profiles), self.box, rows, time_s, slack_s))

    def within(self, rows: Ints, limit_s: Floats) -> Settings:
        """Least energy in at most ``limit_s``: the optimum, or exactly the limit."""
        answer = self.optimum.take(rows)
        tight = np.flatnonzero(limit_s < answer.time_s)
        rounding = ROUNDING * self.t_min_s[rows[tight]]
        answer.put(tight, self.at(rows[tight], limit_s[tight], rounding), np.ones(tight.size))
        return answer

    def cheapest(self, rows: Ints, time_price_w: Floats) -> Settings:
        """Least energy + price × time."""
        from downclock.kernels.gpu_clock import cheapest_rows

        return Settings(*cheapest_rows(*_columns(self.profiles), self.box, rows, time_price_w))

    def mixed_at(self, rows: Ints, time_s: Floats, slack_s: Floats) -> MixedSettings:
        """One point: the curve is convex."""
        return MixedSettings.of(self.at(rows, time_s, slack_s))

    def mixed_within(self, rows: Ints, limit_s: Floats) -> MixedSettings:
        """One point: the curve is convex."""
        return MixedSettings.of(self.within(rows, limit_s))

    def ladder(self) -> tuple[Ints, Floats, Floats]:
        """Nothing is enumerated here."""
        return np.zeros(self.t_min_s.size + 1, dtype=np.int64), np.empty(0), np.empty(0)


def _columns(profiles: GpuProfiles) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
    return (
        profiles.p0_w,
        profiles.gamma_w,
        profiles.c_w,
        profiles.d_s,
        profiles.delta,
        profiles.t0_s,
    )


def _fastest(profiles: GpuProfiles, clocks: ClockRange) -> Floats:
    """Return the points of least power at the shortest time: a clock that does nothing is low."""
    core_works = profiles.d_s * profiles.delta > 0.0
    memory_works = profiles.d_s * (1.0 - profiles.delta) > 0.0
    core = np.where(core_works, clocks.core_max, clocks.core_min)
    memory = np.where(memory_works, clocks.memory_max, clocks.memory_min)
    return np.column_stack([core, memory, clocks.volt(core)])


def _slowest(profiles: GpuProfiles, clocks: ClockRange) -> Floats:
    low = [clocks.core_min, clocks.memory_min, float(clocks.volt(clocks.core_min))]
    return np.tile(low, (len(profiles), 1))
