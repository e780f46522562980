"""A safety net: where every task is there at time 0, the best of several plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from downclock.policies.interface import Decisions, Policy, View, merged
from downclock.problem.problem import Problem
from downclock.schedule.account import account
from downclock.units import Ints


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
    main: Policy
    others: tuple[Policy, ...]

    def objection(self, problem: Problem) -> str | None:
        """As the main policy."""
        return self.main.objection(problem)

    def start(self, view: View) -> Any:
        """As the main policy."""
        return self.main.start(view)

    def run(self, state: Any, view: View, arrived: Ints, until_s: float) -> tuple[Any, Decisions]:
        """Decide on a batch at once and for good; else as the main policy."""
        if arrived.size == 0 or np.any(view.problem.tasks.arrival_s > 0.0):
            return self.main.run(state, view, arrived, until_s)
        plans = [
            policy.run(policy.start(view), view, arrived, np.inf)[1]
            for policy in (self.main, *self.others)
        ]
        return state, min(plans, key=lambda decided: _cost(view, decided))


def _cost(view: View, decided: Decisions) -> tuple[int, float]:
    """Tasks lost and energy needed."""
    schedule = merged(view.problem, [decided], "")
    return decided.rejected.size, account(view.problem, schedule).total_j
