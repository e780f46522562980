"""The value of a plan under an objective: money, CO2, energy or a sum, beside its lower bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners.result import PROVEN
from downclock.problem.objective import ENERGY, Objective, parse_objective
from downclock.quantities import energy, money, prefixed
from downclock.schedule.account.bill import Bill
from downclock.units import J_PER_KWH


@dataclass(frozen=True, slots=True)
class ObjectiveValue:
    """The value of a plan under an objective.

    Attributes:
        objective: what was to be least.
        amount: of the bill, negative prices counted as 0, in the objective's own unit.
        bound: no valid schedule of the tasks it runs has a lesser value; NaN: none is known.
        currency: of money.
    """

    objective: Objective
    amount: float
    bound: float
    currency: str

    @classmethod
    def of(cls, bill: Bill, objective: Objective, bound: float) -> ObjectiveValue:
        """Value a bill; raises `InvalidInput` where it lacks what the objective weighs."""
        amount = objective.value(bill.total_j, bill.money_clipped, bill.carbon_kg)
        return cls(objective, amount, bound, bill.currency)

    @property
    def gap(self) -> float:
        """Value above the lower bound, as a fraction of it; infinite without a bound."""
        if not self.bound > 0.0:
            return 0.0 if self.amount == self.bound else np.inf
        gap = self.amount / self.bound - 1.0
        return 0.0 if abs(gap) < PROVEN else gap

    def words(self, amount: float) -> str:
        """An amount of the objective as people write it."""
        if np.isnan(amount):
            return "not known"
        if self.objective == ENERGY:
            return energy(J_PER_KWH * amount)
        if self.objective == Objective(cost=1.0):
            return money(amount, self.currency)
        if self.objective == Objective(carbon=1.0):
            return prefixed(1000.0 * amount, "g")
        return f"{amount:.5g}"

    def record(self) -> dict[str, object]:
        """Flat values; money in the currency, kilograms and kilowatt hours, weighted."""
        return {
            "objective": str(self.objective),
            "objective_unit": self.objective.unit(self.currency) or "weighted sum",
            "objective_value": self.amount,
            "objective_bound": self.bound,
            "objective_gap": self.gap,
        }


def objective_or_none(text: str | None) -> Objective | None:
    """The objective of a text, None where there is none."""
    return None if text is None else parse_objective(text)
