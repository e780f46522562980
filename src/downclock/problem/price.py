"""Electricity prices and carbon intensity: curves over time, per zone, forecast and actual."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from downclock.errors import InvalidInput
from downclock.problem.calendar import DAY_S
from downclock.quantities import MOST, refuse_rows
from downclock.units import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A piecewise constant signal: ``value[i]`` holds on [start_s[i], start_s[i+1]).

    The last value holds until ``end_s``. Outside [start_s[0], end_s] the curve is not known, and
    asking for it is an error; a constant is one value from 0 to infinity. ``source`` is the file it
    came from, for complaints.
    """

    start_s: Floats
    value: Floats
    end_s: float
    source: str | None = None

    def __post_init__(self) -> None:
        start = np.ascontiguousarray(self.start_s, dtype=np.float64)
        value = np.ascontiguousarray(self.value, dtype=np.float64)
        object.__setattr__(self, "start_s", start)
        object.__setattr__(self, "value", value)
        if start.size == 0 or start.size != value.size:
            raise InvalidInput("needs one value per start, at least one", item="curve")
        for field, column, most in (("start_s", start, MOST["s"]), ("value", value, MOST["kwh"])):
            rule = f"must be between {-most:g} and {most:g}"
            refuse_rows(~(np.abs(column) <= most), rule, field=field, values=column)
        back = np.diff(start, prepend=-np.inf) <= 0.0
        refuse_rows(
            back,
            lambda row: f"must be after the one before ({start[row - 1]})",
            field="start_s",
            values=start,
        )
        if not self.end_s > start[-1]:
            raise InvalidInput("must be after the last start", field="end_s", value=self.end_s)
        if MOST["s"] < self.end_s < np.inf:
            rule = f"must be at most {MOST['s']:g}, or infinite"
            raise InvalidInput(rule, field="end_s", value=self.end_s)

    @classmethod
    def constant(cls, value: float) -> Curve:
        """Make a curve that never changes."""
        return cls(np.array([0.0]), np.array([value]), np.inf)

    def covers(self, start_s: float, end_s: float) -> bool:
        """Tell whether the curve is known on all of [start_s, end_s]."""
        return bool(self.start_s[0] <= start_s and end_s <= self.end_s)

    def at(self, time_s: Floats | float) -> Floats:
        """Value at each time."""
        time = np.asarray(time_s, dtype=np.float64)
        if time.size:
            self.require(float(time.min()), float(time.max()))
        return np.asarray(self.value[np.searchsorted(self.start_s, time, side="right") - 1])

    def integral(self, start_s: Floats, end_s: Floats) -> Floats:
        """Integral of the value over each [start, end]: no split at steps is needed."""
        start, end = np.asarray(start_s, dtype=np.float64), np.asarray(end_s, dtype=np.float64)
        if start.size:
            self.require(float(start.min()), float(end.max()))
        return self._cumulative(end) - self._cumulative(start)

    def require(self, start_s: float, end_s: float) -> None:
        """Refuse to answer for a time the curve does not cover."""
        if not self.covers(min(start_s, end_s), max(start_s, end_s)):
            rule = (
                f"is known from {self.start_s[0]:g} s to {self.end_s:g} s,"
                f" but {start_s:g} s to {end_s:g} s is needed"
            )
            raise InvalidInput(rule, item="curve", source=self.source)

    def clipped(self) -> Curve:
        """The same curve with negative values raised to 0."""
        return Curve(self.start_s, np.maximum(self.value, 0.0), self.end_s, self.source)

    def around(self, start_s: float, end_s: float) -> Curve:
        """The curve on all of [start_s, end_s]: as it is where it is known, repeated elsewhere.

        Its last whole weeks come again after its end, its first before its start; whole days where
        it is shorter than a week, all of it where it is shorter than a day.
        """
        if self.covers(start_s, end_s):
            return self
        if np.isinf(self.end_s):
            begins_s = np.append(start_s, self.start_s[1:])
            return Curve(begins_s, self.value, self.end_s, self.source)
        first_s, last_s = float(self.start_s[0]), self.end_s
        length_s = last_s - first_s
        unit_s = next((unit for unit in (7.0 * DAY_S, DAY_S) if unit <= length_s), length_s)
        period_s = unit_s * (length_s // unit_s)
        shifts = np.arange((start_s - last_s) // period_s, (end_s - first_s) // period_s + 1.0)
        steps = np.unique(np.append(self.start_s, last_s) + period_s * shifts[:, None])
        steps = np.append(start_s, steps[(start_s < steps) & (steps < end_s)])
        early = np.ceil(np.maximum(first_s - steps, 0.0) / period_s)
        late = np.where(steps < last_s, 0.0, (steps - last_s) // period_s + 1.0)
        return Curve(steps, self.at(steps + period_s * (early - late)), end_s, self.source)

    def _cumulative(self, time: Floats) -> Floats:
        past = np.concatenate([[0.0], np.cumsum(np.diff(self.start_s) * self.value[:-1])])
        step = np.maximum(np.searchsorted(self.start_s, time, side="right") - 1, 0)
        return np.asarray(past[step] + (time - self.start_s[step]) * self.value[step])


@dataclass(frozen=True, slots=True)
class ZonePrices:
    """What electricity costs in one zone: money per kWh and grams of CO2 per kWh.

    Policies see the forecast, bills the actual curve. A missing forecast is the actual curve.
    """

    price: Curve | None = None
    carbon: Curve | None = None
    price_forecast: Curve | None = None
    carbon_forecast: Curve | None = None

    def __post_init__(self) -> None:
        for field in ("carbon", "carbon_forecast"):
            curve = getattr(self, field)
            if curve is not None and np.any(curve.value < 0.0):
                row, rule = int(curve.value.argmin()), "must not be negative: no kWh takes CO2 back"
                value, source = float(curve.value[row]), curve.source
                raise InvalidInput(rule, field=field, value=value, row=row, source=source)

    @property
    def expected_price(self) -> Curve | None:
        """The price policies may look at."""
        return self.price_forecast if self.price_forecast is not None else self.price

    @property
    def expected_carbon(self) -> Curve | None:
        """The carbon intensity policies may look at."""
        return self.carbon_forecast if self.carbon_forecast is not None else self.carbon


CURVES = tuple(spec.name for spec in fields(ZonePrices))
"""Names of a zone's curves."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of every zone, by zone name; a zone that is not listed has none."""

    zones: tuple[tuple[str, ZonePrices], ...] = ()
    currency: str = "EUR"

    def of(self, zone: str) -> ZonePrices:
        """Prices of one zone."""
        return dict(self.zones).get(zone, ZonePrices())
