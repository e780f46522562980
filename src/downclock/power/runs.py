"""One application's measurements, a row for each setting it was run at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from downclock.errors import InvalidInput
from downclock.power.measurements import Measurements
from downclock.power.points import CORE, MEMORY, ClockTable, PowerLimits
from downclock.units import Bools, Floats, Ints

RISES = 0.05
"""Time x clock may be this much above what it is at a higher clock: measurements vary."""

HOLDS_FOR = 0.9
"""The model's range of clocks is the one in which it can hold for this part of applications."""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """One application's measurements, medians of repeated ones; ``repeated`` says of how many."""

    name: str
    source: str
    points: Floats
    time_s: Floats
    power_w: Floats
    repeated: int

    def refusal(self, rule: str) -> InvalidInput:
        """Return the error for this application."""
        return InvalidInput(rule, item=f"application '{self.name}'", source=self.source)

    def take(self, rows: Bools) -> Runs:
        """Return these rows."""
        columns = {name: getattr(self, name)[rows] for name in ("points", "time_s", "power_w")}
        return replace(self, **columns)

    def at(self, clocks: ClockTable) -> Runs:
        """Return the same measurements with the voltages of other clocks' law."""
        volt = clocks.volt(self.points[:, CORE])
        return replace(self, points=np.column_stack([self.points[:, :2], volt]))

    @property
    def least_core(self) -> float:
        """The lowest core clock whose time the model can have beside those at higher clocks.

        Time that waits for the core goes with 1 / clock, other time does not change, so time x
        clock never falls as the clock rises. Where it does, something else slows down with the
        clock.
        """
        least = 0.0
        for memory in np.unique(self.points[:, MEMORY]):
            rows = np.flatnonzero(self.points[:, MEMORY] == memory)
            rows = rows[np.argsort(-self.points[rows, CORE])]
            cycles = self.time_s[rows] * self.points[rows, CORE]
            holds = cycles <= (1.0 + RISES) * np.minimum.accumulate(cycles)
            if not holds.all():
                least = max(least, float(self.points[rows[holds][-1], CORE]))
        return least


def runs_of(measurements: Measurements, table: ClockTable | PowerLimits) -> Iterator[Runs]:
    """Yield the applications in order of appearance; of repeated settings the median counts."""
    setting = _ratios(measurements, table)
    order: dict[str, list[int]] = {}
    for row, name in enumerate(measurements.application):
        order.setdefault(name, []).append(row)
    for name, listed in order.items():
        rows = np.array(listed)
        distinct, place, count = np.unique(
            setting[rows], axis=0, return_inverse=True, return_counts=True
        )
        points = np.column_stack([distinct, table.volt(distinct[:, CORE])])
        time_s = _medians(measurements.time_s[rows], place, count)
        power_w = _medians(measurements.power_w[rows], place, count)
        source, repeated = measurements.source_of(rows), int(np.sum(count > 1))
        yield Runs(name, source, points, time_s, power_w, repeated)


def _medians(values: Floats, place: Ints, count: Ints) -> Floats:
    """Medians (m,) of values (n,) by their place, each of which has so many (m,).

    A run that others disturbed moves them little.
    """
    ordered = values[np.lexsort((values, place))]
    first = np.cumsum(count) - count
    middle: Floats = 0.5 * (ordered[first + (count - 1) // 2] + ordered[first + count // 2])
    return middle


def _ratios(measurements: Measurements, table: ClockTable | PowerLimits) -> Floats:
    """Return (core, memory) of each measurement; a memory clock nobody recorded counts as 1."""
    if isinstance(table, PowerLimits):
        limit = measurements.power_limit_w / table.default_limit_w
        return np.column_stack([limit, np.ones(len(measurements))])
    core = measurements.core_mhz / table.default_core_mhz
    memory = measurements.memory_mhz / table.default_memory_mhz
    return np.column_stack([core, np.nan_to_num(memory, nan=1.0)])
