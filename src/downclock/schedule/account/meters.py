"""Meters: how much a constant watt adds up to between two times - joules, money or CO2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from downclock.errors import InvalidInput
from downclock.problem.price import Curve
from downclock.problem.problem import Problem
from downclock.units import J_PER_KWH, Floats, Ints

PER_JOULE = {"price": 1.0 / J_PER_KWH, "carbon": 1.0 / J_PER_KWH / 1000.0}
"""What a joule costs where a kWh costs 1, and its kilograms of CO2 where a kWh has a gram."""


@dataclass(frozen=True, slots=True, eq=False)
class Meter:
    """What a joule costs, per zone and time; a zone without a curve costs nothing.

    Attributes:
        what: name of the quantity, for complaints.
        zones: zone names.
        curves: a curve per zone, or None; the whole is None where a joule counts as itself.
        per_joule: factor from (curve value x joules) to the meter's unit.
    """

    what: str
    zones: tuple[str, ...]
    curves: tuple[Curve | None, ...] | None
    per_joule: float = 1.0

    def over(self, zone: Ints, start_s: Floats, end_s: Floats) -> Floats:
        """What one watt adds up to over each [start, end] in each zone."""
        if self.curves is None:
            return end_s - start_s
        return self._read(zone, lambda curve, rows: curve.integral(start_s[rows], end_s[rows]))

    def at(self, zone: Ints, time_s: Floats) -> Floats:
        """What one joule counts at each instant."""
        if self.curves is None:
            return np.ones(time_s.size)
        return self._read(zone, lambda curve, rows: curve.at(time_s[rows]))

    def clipped(self) -> Meter:
        """The same meter, never below 0."""
        if self.curves is None:
            return self
        curves = tuple(None if curve is None else curve.clipped() for curve in self.curves)
        return Meter(self.what, self.zones, curves, self.per_joule)

    @property
    def may_earn(self) -> bool:
        """Tell whether any curve is negative somewhere."""
        return any(c is not None and bool(np.any(c.value < 0.0)) for c in self.curves or ())

    def _read(self, zone: Ints, read: Callable[[Curve, Ints], Floats]) -> Floats:
        values = np.zeros(zone.size)
        for z, curve in enumerate(self.curves or ()):
            rows = np.flatnonzero(zone == z)
            if curve is None or rows.size == 0:
                continue
            try:
                values[rows] = read(curve, rows) * self.per_joule
            except InvalidInput as error:
                item = f"{self.what} curve of zone '{self.zones[z]}'"
                raise InvalidInput(error.rule, item=item, source=error.source) from None
        return values

    def require(self, zone: Ints, start_s: Floats, end_s: Floats) -> None:
        """Refuse curves that do not cover all of these times, with the whole span needed."""

        def covers(curve: Curve, rows: Ints) -> Floats:
            curve.require(float(start_s[rows].min()), float(end_s[rows].max()))
            return np.zeros(rows.size)

        self._read(zone, covers)


def zone_meter(problem: Problem, what: Literal["price", "carbon"]) -> Meter | None:
    """Money, or kilograms of CO2, by the actual curves of the zones; None where none has one."""
    zones = problem.platform.zones
    curves = tuple(getattr(problem.prices.of(zone), what) for zone in zones)
    if all(curve is None for curve in curves):
        return None
    return Meter(what, zones, curves, PER_JOULE[what])
