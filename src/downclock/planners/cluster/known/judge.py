"""What schedules are worth as plans see it, and which is the better."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from downclock.problem.objective import ENERGY, Objective
from downclock.problem.price import Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE, Schedule
from downclock.units import Bools


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A schedule and its value: joules for energy, else in the objective's unit."""

    schedule: Schedule
    value: float

    @property
    def done(self) -> Bools:
        """Tasks that are done."""
        return np.asarray(self.schedule.outcomes.status == DONE)

    @property
    def rank(self) -> tuple[int, float]:
        """Fewer lost tasks first, then less value."""
        return int(np.sum(~self.done)), self.value


def judged(problem: Problem, objective: Objective, schedule: Schedule) -> Judged:
    """Bill a schedule at forecasts, negative prices as 0."""
    bill = account(_weighed(problem, objective), schedule)
    if objective == ENERGY:
        return Judged(schedule, bill.total_j)
    return Judged(schedule, objective.value(bill.total_j, bill.money_clipped, bill.carbon_kg))


def _weighed(problem: Problem, objective: Objective) -> Problem:
    """The problem with forecasts as its prices, and only those that count."""

    def counted(zone: ZonePrices) -> ZonePrices:
        price, carbon = zone.expected_price, zone.expected_carbon
        return ZonePrices(price if objective.cost else None, carbon if objective.carbon else None)

    zones = tuple((name, counted(zone)) for name, zone in problem.prices.zones)
    return replace(problem, prices=Prices(zones, problem.prices.currency))
