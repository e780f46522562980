"""Profiles: run time and power of an application at an operating point.

Profiles are columnar, one class per hardware model; a row is one application on one processor
kind, for one unit of work. ``at(rows, points)`` answers for many (row, point) pairs at once.
Power is gross: while a task runs it replaces the processor's idle power.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Self, TypeAlias

import numpy as np

from downclock.columns import taken
from downclock.errors import InvalidInput
from downclock.power.points import CORE, MEMORY, VOLT, Clocks
from downclock.quantities import count, refuse_rows, require_quantity
from downclock.units import TOLERANCE, Floats, Ints, as_column

MOST_ALPHA = 10.0
"""Cores draw the second or third power of their clock."""


class _Curves:
    """What profiles that know every clock have in common: float columns of one length."""

    __slots__ = ()
    model: ClassVar[str]

    def __len__(self) -> int:
        return int(getattr(self, fields(self)[0].name).size)  # type: ignore[arg-type]

    def take(self, rows: Ints) -> Self:
        """Return these rows."""
        return taken(self, rows)

    def at(self, rows: Ints, points: Floats) -> tuple[Floats, Floats]:
        """Return (time_s, power_w) of ``rows`` at ``points`` (n, 3)."""
        raise NotImplementedError

    def shortest_s(self, clocks: Clocks) -> Floats:
        """Least time of every row, at the highest clocks (n,); voltage does not matter."""
        highest = np.tile([*clocks.high, 1.0], (len(self), 1))
        return self.at(np.arange(len(self)), highest)[0]

    def describe(self, row: int) -> tuple[str, float, float]:
        """The model, and (time_s, power_w) at the default clocks."""
        time, power = self.at(np.array([row]), np.ones((1, 3)))
        return self.model, float(time[0]), float(power[0])


@dataclass(frozen=True, slots=True, eq=False)
class GpuProfiles(_Curves):
    """The three-variable GPU model (mei2021 Eq. 1-2), per unit of work.

    ``time = D (delta / core + (1 - delta) / memory) + t0`` and
    ``power = p0 + gamma memory + c volt² core``; each field has shape (n,).
    """

    model: ClassVar[str] = "gpu"
    p0_w: Floats
    gamma_w: Floats
    c_w: Floats
    d_s: Floats
    delta: Floats
    t0_s: Floats

    def __post_init__(self) -> None:
        _as_columns(self)
        refuse_rows(self.delta > 1.0, "must be at most 1", field="delta", values=self.delta)
        if np.any(self.d_s + self.t0_s <= 0.0):
            row = int(np.argmax(self.d_s + self.t0_s <= 0.0))
            raise InvalidInput("d_s + t0_s must be positive", row=row)

    def at(self, rows: Ints, points: Floats) -> tuple[Floats, Floats]:
        """Return (time_s, power_w) of ``rows`` at ``points`` (n, 3)."""
        core, memory, volt = points[:, CORE], points[:, MEMORY], points[:, VOLT]
        delta = self.delta[rows]
        time = self.d_s[rows] * (delta / core + (1.0 - delta) / memory) + self.t0_s[rows]
        power = self.p0_w[rows] + self.gamma_w[rows] * memory + self.c_w[rows] * volt**2 * core
        return time, power


@dataclass(frozen=True, slots=True, eq=False)
class CpuProfiles(_Curves):
    """A core whose speed is its clock (gerards, gerhards), per unit of work.

    ``time = time_s / core`` and ``power = static_w + c1_w core^alpha``; each field has shape (n,).
    What chip and host add while awake belongs to the platform.
    """

    model: ClassVar[str] = "cpu"
    time_s: Floats
    c1_w: Floats
    alpha: Floats
    static_w: Floats

    def __post_init__(self) -> None:
        _as_columns(self)
        odd = (self.alpha < 1.0) | (self.alpha > MOST_ALPHA)
        rule = f"must be at least 1 and at most {MOST_ALPHA:g}"
        refuse_rows(odd, rule, field="alpha", values=self.alpha)
        require_quantity("time_s", self.time_s, positive=True)

    def at(self, rows: Ints, points: Floats) -> tuple[Floats, Floats]:
        """Return (time_s, power_w) of ``rows`` at ``points`` (n, 3)."""
        core = points[:, CORE]
        power = self.static_w[rows] + self.c1_w[rows] * core ** self.alpha[rows]
        return self.time_s[rows] / core, power


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredProfiles:
    """Measured tables: time and power at the clocks somebody ran, per unit of work.

    Ragged: row ``i`` owns entries ``offset[i]:offset[i+1]`` of the other fields, each of shape
    (entries,). ``core`` and ``memory`` are ratios to the default clock of the kind.
    """

    offset: Ints
    core: Floats
    memory: Floats
    time_s: Floats
    power_w: Floats

    def __post_init__(self) -> None:
        offset = as_column(self.offset, np.int64)
        object.__setattr__(self, "offset", offset)
        for name in ("core", "memory", "time_s", "power_w"):
            column = as_column(getattr(self, name), np.float64)
            object.__setattr__(self, name, column)
            try:
                require_quantity(name, column, positive=True)
            except InvalidInput as error:
                row = int(np.searchsorted(offset, error.row or 0, side="right")) - 1
                raise InvalidInput(error.rule, field=name, value=error.value, row=row) from None
        if np.any(np.diff(offset) < 1):
            row = int(np.argmax(np.diff(offset) < 1))
            raise InvalidInput("has no measured point", item="table", row=row)

    def __len__(self) -> int:
        return self.offset.size - 1

    def at(self, rows: Ints, points: Floats) -> tuple[Floats, Floats]:
        """Return (time_s, power_w) of ``rows`` at ``points``; NaN where nothing was measured."""
        entry = self.entry(rows, points)
        found = entry >= 0
        time, power = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
        time[found], power[found] = self.time_s[entry[found]], self.power_w[entry[found]]
        return time, power

    def shortest_s(self, clocks: Clocks) -> Floats:
        """Least time of every row, at its fastest measured point (n,)."""
        return np.minimum.reduceat(self.time_s, self.offset[:-1])

    def describe(self, row: int) -> tuple[str, float, float]:
        """The model, and (time_s, power_w) at the fastest measured point."""
        first, last = self.offset[row], self.offset[row + 1]
        fastest = first + int(np.argmin(self.time_s[first:last]))
        model = f"table of {count(int(last - first), 'point')}"
        return model, float(self.time_s[fastest]), float(self.power_w[fastest])

    def entry(self, rows: Ints, points: Floats) -> Ints:
        """Return the entry of each (row, point), or -1. Cost: entries per row."""
        rows = np.asarray(rows, dtype=np.int64)
        found = np.full(rows.size, -1, dtype=np.int64)
        length = np.diff(self.offset)[rows]
        for k in range(int(length.max(initial=0))):
            entry = np.where(k < length, self.offset[rows] + k, self.offset[rows])
            hit = (np.abs(self.core[entry] - points[:, CORE]) <= TOLERANCE) & (
                np.abs(self.memory[entry] - points[:, MEMORY]) <= TOLERANCE
            )
            found[hit & (k < length)] = entry[hit & (k < length)]
        return found


Curved: TypeAlias = GpuProfiles | CpuProfiles
"""Profiles that know every clock."""

Profiles: TypeAlias = Curved | MeasuredProfiles


def _as_columns(profiles: GpuProfiles | CpuProfiles) -> None:
    """Make every field a float column and refuse what is negative or not finite."""
    for spec in fields(profiles):
        column = as_column(np.atleast_1d(getattr(profiles, spec.name)), np.float64)
        object.__setattr__(profiles, spec.name, column)
        require_quantity(spec.name, column)
        if column.size != len(profiles):
            rule = f"has {column.size} rows, the first column {len(profiles)}"
            raise InvalidInput(rule, field=spec.name)
