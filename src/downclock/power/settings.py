"""What a frontier answers: a time, an energy and the operating points that give them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.units import Bools, Floats, Ints

ROUNDING = 1e-12
"""Relative difference of two times that is only rounding: a limit is kept up to this."""


@dataclass(frozen=True, slots=True, eq=False)
class _Answers:
    """How long all the work of each row takes, and on which energy.

    Attributes:
        time_s: run time (n,); NaN where infeasible.
        energy_j: run energy (n,); infinite where infeasible.
    """

    time_s: Floats
    energy_j: Floats

    def __len__(self) -> int:
        return self.time_s.size

    @property
    def power_w(self) -> Floats:
        """Mean power; NaN where infeasible or without work."""
        power = np.full(self.time_s.size, np.nan)
        np.divide(self.energy_j, self.time_s, out=power, where=self.feasible & (self.time_s > 0.0))
        return power

    @property
    def feasible(self) -> Bools:
        """Which rows have an answer."""
        return np.isfinite(self.energy_j)


@dataclass(frozen=True, slots=True, eq=False)
class Settings(_Answers):
    """One operating point per row.

    Attributes:
        points: core, memory, volt (n, 3); NaN where infeasible.
    """

    points: Floats

    @classmethod
    def none(cls, n: int) -> Settings:
        """Return n rows without an answer."""
        return cls(np.full(n, np.nan), np.full(n, np.inf), np.full((n, 3), np.nan))

    def take(self, rows: Ints) -> Settings:
        """Return these rows."""
        return Settings(self.time_s[rows], self.energy_j[rows], self.points[rows])

    def put(self, rows: Ints | slice, unit: Settings, scale: Floats) -> None:
        """Fill rows with answers per unit of work, times ``scale``."""
        feasible = unit.feasible
        energy_j = np.where(feasible, unit.energy_j, 1.0) * scale
        self.time_s[rows], self.points[rows] = unit.time_s * scale, unit.points
        self.energy_j[rows] = np.where(feasible, energy_j, np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class MixedSettings(_Answers):
    """Two operating points per row and how the work is divided between them.

    Attributes:
        first, second: core, memory, volt (n, 3); equal where one point does it all.
        share: fraction of the work done at ``first`` (n,).
    """

    first: Floats
    second: Floats
    share: Floats

    @classmethod
    def none(cls, n: int) -> MixedSettings:
        """Return n rows without an answer."""
        return cls.of(Settings.none(n))

    @classmethod
    def of(cls, one: Settings) -> MixedSettings:
        """Return settings that do all the work at one point."""
        share = np.where(one.feasible, 1.0, np.nan)
        return cls(one.time_s, one.energy_j, one.points, one.points.copy(), share)

    def put(self, rows: Ints | slice, unit: MixedSettings, scale: Floats) -> None:
        """Fill rows with answers per unit of work, times ``scale``."""
        whole = Settings(self.time_s, self.energy_j, self.first)
        whole.put(rows, Settings(unit.time_s, unit.energy_j, unit.first), scale)
        self.second[rows], self.share[rows] = unit.second, unit.share
