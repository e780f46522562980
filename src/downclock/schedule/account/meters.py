"""Meters: how much a constant watt adds up to between two times - joules, money or CO2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from downclock.errors import InvalidInput
from downclock.problem.price import Curve, ZonePrices
from downclock.problem.problem import Problem
from downclock.units import J_PER_KWH, Floats, Ints

G_PER_KG = 1000.0


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


def energy_meter(problem: Problem) -> Meter:
    """Joules."""
    return Meter("energy", problem.platform.zones, None)


def price_meter(problem: Problem) -> Meter | None:
    """Money at the actual prices; None where no zone has one."""
    return _zone_meter(problem, "price", lambda zone: zone.price, 1.0 / J_PER_KWH)


def carbon_meter(problem: Problem) -> Meter | None:
    """Kilograms of CO2 at the actual intensity; None where no zone has one."""
    return _zone_meter(problem, "carbon", lambda zone: zone.carbon, 1.0 / J_PER_KWH / G_PER_KG)


def _zone_meter(
    problem: Problem, what: str, pick: Callable[[ZonePrices], Curve | None], per_joule: float
) -> Meter | None:
    zones = problem.platform.zones
    curves = tuple(pick(problem.prices.of(zone)) for zone in zones)
    if all(curve is None for curve in curves):
        return None
    return Meter(what, zones, curves, per_joule)
