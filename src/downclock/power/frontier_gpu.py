"""Frontiers of the GPU model on continuous clocks, by the exact kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.power.frontier_convex import ConvexCurves
from downclock.power.kernels.gpu_clock import Profiles, at_rows, cheapest_rows
from downclock.power.points import ClockRange
from downclock.power.profiles import GpuProfiles
from downclock.power.settings import ROUNDING, Settings
from downclock.units import Floats, Ints


def gpu_box(clocks: ClockRange) -> Floats:
    """Return the clocks as the kernels of ``power.kernels.gpu_clock`` take them."""
    law = clocks.law
    bounds = (clocks.core_min, clocks.core_max, clocks.memory_min, clocks.memory_max)
    return np.array([*bounds, clocks.volt_min, law.a0, law.a1, law.a2])


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GpuCurves(ConvexCurves):
    """Energy-time curves of the three-variable GPU model (mei2021 Eq. 1-4) on a clock range.

    The curve is convex on all of [t_min_s, t_max_s] (proof in ``power.kernels.gpu_clock``).
    """

    profiles: GpuProfiles
    box: Floats

    @classmethod
    def of(cls, profiles: GpuProfiles, used: Ints, clocks: ClockRange) -> GpuCurves:
        """Make the curves of the rows ``used``."""
        profiles = profiles if used.size == len(profiles) else profiles.take(used)
        every = np.arange(len(profiles))
        fast = profiles.at(every, _fastest(profiles, clocks))
        low = [clocks.core_min, clocks.memory_min, float(clocks.volt(clocks.core_min))]
        slow = profiles.at(every, np.tile(low, (every.size, 1)))
        box = gpu_box(clocks)
        best = cheapest_rows(_columns(profiles), box, every, np.zeros(every.size))
        return cls(
            profiles=profiles,
            box=box,
            t_min_s=fast[0],
            t_max_s=slow[0],
            e_min_time_j=fast[0] * fast[1],
            e_max_time_j=slow[0] * slow[1],
            optimum=Settings(*best),
        )

    def at(self, rows: Ints, time_s: Floats, slack_s: Floats) -> Settings:
        """Least energy in exactly ``time_s``."""
        return Settings(*at_rows(_columns(self.profiles), self.box, rows, time_s, slack_s))

    def cheapest(self, rows: Ints, time_price_w: Floats) -> Settings:
        """Least energy + price × time."""
        return Settings(*cheapest_rows(_columns(self.profiles), self.box, rows, time_price_w))

    def at_core(
        self,
        rows: Ints,
        scale: Floats,
        setting: tuple[float, float],
        limit_s: Floats,
        how: str,
    ) -> Settings:
        """The best memory clock at a (core, volt) setting; see `Frontier.at_core`."""
        p, (core, volt), lowest, highest = self.profiles, setting, self.box[2], self.box[3]
        head_w = p.p0_w[rows] + p.c_w[rows] * volt * volt * core
        fixed_s = p.t0_s[rows] + p.d_s[rows] * p.delta[rows] / core
        moved_s = p.d_s[rows] * (1.0 - p.delta[rows])
        with np.errstate(divide="ignore", invalid="ignore"):
            room_s = limit_s / scale - fixed_s
            free = np.sqrt(head_w * moved_s / (p.gamma_w[rows] * fixed_s))
            needed = np.where(room_s > 0.0, moved_s / room_s, np.inf)
        wanted = {"exactly": needed, "free": free, "within": np.fmax(free, needed)}[how]
        memory = np.clip(np.where(moved_s > 0.0, wanted, lowest), lowest, highest)
        time_s = (fixed_s + moved_s / memory) * scale
        over_s = np.abs(time_s - limit_s) if how == "exactly" else time_s - limit_s
        energy_j = time_s * (head_w + p.gamma_w[rows] * memory)
        energy_j = np.where(over_s <= ROUNDING * limit_s, energy_j, np.inf)
        same = np.ones(rows.size)
        points = np.column_stack([core * same, memory, volt * same])
        return Settings(np.minimum(time_s, limit_s), energy_j, points)


def _columns(g: GpuProfiles) -> Profiles:
    return Profiles(g.p0_w, g.gamma_w, g.c_w, g.d_s, g.delta, g.t0_s)


def _fastest(profiles: GpuProfiles, clocks: ClockRange) -> Floats:
    """Return the points of least power at the shortest time: a clock that does nothing is low."""
    core_works = profiles.d_s * profiles.delta > 0.0
    memory_works = profiles.d_s * (1.0 - profiles.delta) > 0.0
    core = np.where(core_works, clocks.core_max, clocks.core_min)
    memory = np.where(memory_works, clocks.memory_max, clocks.memory_min)
    return np.column_stack([core, memory, clocks.volt(core)])
