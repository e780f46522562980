"""What to minimise: money, carbon, energy, or a weighted sum of them.

Written as ``cost``, ``carbon``, ``energy`` or a sum such as ``0.7cost+0.3carbon``. Weights
multiply the bill's own units: the currency, kilograms of CO2 and kilowatt hours; so
``cost+0.1carbon`` puts a price of 0.1 on a kilogram.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from downclock.errors import InvalidInput
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.quantities import MOST_RATIO
from downclock.units import J_PER_KWH, Floats

_TERM = re.compile(r"(?P<weight>\d*\.?\d+(?:e-?\d+)?)?\*?(?P<what>cost|carbon|energy)")


HOW_TO_PRICE = "and there is none (--prices FILE, or [prices] in the cluster, has prices and CO2)"
"""What a complaint about a lack of prices ends with."""


@dataclass(frozen=True, slots=True)
class Objective:
    """Weights of money (currency), carbon (kg) and energy (kWh); none negative."""

    cost: float = 0.0
    carbon: float = 0.0
    energy: float = 0.0

    def __str__(self) -> str:
        named = (("cost", self.cost), ("carbon", self.carbon), ("energy", self.energy))
        return "+".join(
            name if weight == 1.0 else np.format_float_positional(weight, trim="-") + name
            for name, weight in named
            if weight
        )

    def unit(self, currency: str) -> str:
        """Unit of the value; empty for a weighted sum."""
        units = {"cost": currency, "carbon": "kg CO2", "energy": "kWh"}
        return units.get(str(self), "")

    @property
    def mixed(self) -> bool:
        """It adds up several units, or weighs one."""
        return not self.unit("money")

    def value(self, energy_j: float, money: float | None, carbon_kg: float | None) -> float:
        """Value of a bill; raises where it lacks what the objective weighs."""
        for weight, amount, what in (
            (self.cost, money, "a price"),
            (self.carbon, carbon_kg, "a carbon intensity"),
        ):
            if weight and amount is None:
                raise InvalidInput(f"needs {what}, {HOW_TO_PRICE}", item=f"objective '{self}'")
        known = self.cost * (money or 0.0) + self.carbon * (carbon_kg or 0.0)
        return known + self.energy * energy_j / J_PER_KWH

    def require(self, prices: Prices) -> None:
        """Refuse prices that lack what the objective weighs in every zone."""
        zones = [zone for _, zone in prices.zones]
        unpriced = all(zone.expected_price is None for zone in zones)
        unknown = all(zone.expected_carbon is None for zone in zones)
        self.value(0.0, None if unpriced else 0.0, None if unknown else 0.0)

    def foreseen(self, prices: Prices) -> bool:
        """Tell whether plans see what bills use: no forecast of what it weighs stands between."""
        return not any(
            (self.cost and zone.price_forecast is not None)
            or (self.carbon and zone.carbon_forecast is not None)
            for _, zone in prices.zones
        )

    def per_kwh(
        self, zone: ZonePrices, edges_s: Floats, *, actual: bool = False, name: str = ""
    ) -> Floats:
        """Mean value of a kWh in each span between ``edges_s`` (k + 1,), negative prices as 0.

        Uses what policies may know: the forecast where there is one, unless ``actual``. The
        zone's ``name`` is for complaints.
        """
        price = zone.price if actual else zone.expected_price
        carbon = zone.carbon if actual else zone.expected_carbon
        total = np.full(edges_s.size - 1, self.energy)
        for weight, curve, what, unit in (
            (self.cost, price, "price", 1.0),
            (self.carbon, carbon, "carbon intensity", 1e-3),
        ):
            if weight:
                named = f"{what} of zone '{name}'" if name else what
                mean = _mean(curve, edges_s, f"objective '{self}'", named)
                total += weight * unit * mean
        return total


ENERGY = Objective(energy=1.0)
"""Valued in joules; every other objective in its own unit."""


def _mean(curve: Curve | None, edges_s: Floats, item: str, what: str) -> Floats:
    if curve is None:
        raise InvalidInput(f"needs the {what}, {HOW_TO_PRICE}", item=item)
    if not curve.covers(float(edges_s[0]), float(edges_s[-1])):
        where = "" if curve.source is None else f" in {curve.source}"
        rule = (
            f"needs the {what} from {edges_s[0]:g} s to the last deadline at {edges_s[-1]:g} s, and"
            f" it is known{where} from {curve.start_s[0]:g} s to {curve.end_s:g} s"
        )
        raise InvalidInput(rule, item=item)
    return curve.clipped().integral(edges_s[:-1], edges_s[1:]) / np.diff(edges_s)


def parse_objective(text: str) -> Objective:
    """Read an objective; see the module's text.

    Raises:
        InvalidInput: an unknown term, a term twice, or nothing to minimise.
    """
    weights: dict[str, float] = {}
    for part in text.replace(" ", "").split("+"):
        match = _TERM.fullmatch(part)
        if match is None:
            rule = f"has the term '{part}'; terms are cost, carbon or energy with a weight before"
            raise InvalidInput(rule, field="objective", value=text)
        if match["what"] in weights:
            raise InvalidInput(f"names {match['what']} twice", field="objective", value=text)
        weights[match["what"]] = float(match["weight"] or 1.0)
        if weights[match["what"]] > MOST_RATIO:
            raise InvalidInput(f"has a weight above {MOST_RATIO:g}", field="objective", value=text)
    if not any(weights.values()):
        raise InvalidInput("has no weight above 0", field="objective", value=text)
    return Objective(**weights)
