"""A safety net: where every task is there at time 0, the best of several plans."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from downclock.engine.policy import Decisions, Policy, View, merged
from downclock.planners.cluster.policy import PlanPolicy, carried_out
from downclock.planners.cluster.reserve import set_ratio, with_reserve
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.units import Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.cluster.kernels.plan import Plan


@dataclass(frozen=True, slots=True)
class BestOf:
    """Plan a batch with several policies and keep the plan that loses fewest tasks, then joules.

    Online there is no going back, so tasks that arrive later leave all to the main policy.

    Attributes:
        name: name in the catalogue.
        main: decides online, and wins ties.
        others: rivals for batches.
    """

    name: str
    main: PlanPolicy
    others: tuple[Policy, ...]

    def objection(self, problem: Problem) -> str | None:
        """As the main policy."""
        return self.main.objection(problem)

    def start(self, view: View) -> Plan:
        """As the main policy."""
        return self.main.start(view)

    def run(self, state: Plan, view: View, arrived: Ints, until_s: float) -> tuple[Plan, Decisions]:
        """Decide on a batch at once and for good; else as the main policy."""
        if arrived.size == 0 or np.any(view.problem.tasks.arrival_s > 0.0):
            return self.main.run(state, view, arrived, until_s)
        asked = with_reserve(view, self.main.reserve)
        plans = [
            policy.run(policy.start(asked), asked, arrived, np.inf)[1]
            for policy in (replace(self.main, reserve=0.0), *self.others)
        ]
        best = min(plans, key=lambda decided: _cost(asked, decided))
        return state, carried_out(state, asked, best)

    def roll(self, view: View, work: Floats) -> Decisions:
        """As `run`, while tasks end as they really do."""
        state = self.start(view)
        set_ratio(state, work, self.main.reserve)
        arrival_s = view.problem.tasks.arrival_s
        return self.run(state, view, np.argsort(arrival_s, kind="stable"), np.inf)[1]


def _cost(view: View, decided: Decisions) -> tuple[int, float]:
    """Tasks lost and energy needed."""
    schedule = merged(view.problem, [decided], "")
    return decided.rejected.size, account(view.problem, schedule).total_j
