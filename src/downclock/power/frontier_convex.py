"""Energy-time curves per unit of work: their ends, and what convex ones have in common.

On continuous clocks the energy is convex in the time. So a limit shorter than the optimum is met
exactly, and changing clocks while running saves nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from downclock.power.settings import ROUNDING, MixedSettings, Settings
from downclock.units import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Ends:
    """Ends and optimum of energy-time curves, per unit of work; arrays have shape (m,).

    Attributes:
        t_min_s, t_max_s: shortest and longest time; infinite where no clock is allowed.
        e_min_time_j, e_max_time_j: least energy at these times.
        optimum: least energy whatever the time.
    """

    t_min_s: Floats
    t_max_s: Floats
    e_min_time_j: Floats
    e_max_time_j: Floats
    optimum: Settings


class ConvexCurves(Ends, ABC):
    """Convex energy-time curves."""

    __slots__ = ()

    @abstractmethod
    def at(self, rows: Ints, time_s: Floats, slack_s: Floats) -> Settings:
        """Least energy in a time that differs from ``time_s`` by at most ``slack_s``."""

    def within(self, rows: Ints, limit_s: Floats) -> Settings:
        """Least energy in at most ``limit_s``: the optimum, or exactly the limit."""
        answer = self.optimum.take(rows)
        tight = np.flatnonzero(limit_s < answer.time_s)
        rounding = ROUNDING * self.t_min_s[rows[tight]]
        answer.put(tight, self.at(rows[tight], limit_s[tight], rounding), np.ones(tight.size))
        return answer

    def mixed_at(self, rows: Ints, time_s: Floats, slack_s: Floats) -> MixedSettings:
        """One point: the curve is convex."""
        return MixedSettings.of(self.at(rows, time_s, slack_s))

    def mixed_within(self, rows: Ints, limit_s: Floats) -> MixedSettings:
        """One point: the curve is convex."""
        return MixedSettings.of(self.within(rows, limit_s))

    def ladder(self) -> tuple[Ints, Floats, Floats]:
        """Nothing is enumerated here."""
        return np.zeros(self.t_min_s.size + 1, dtype=np.int64), np.empty(0), np.empty(0)
