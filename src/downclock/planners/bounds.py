"""How good could it be: every lower bound that applies to a problem, computed once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.catalog import policy, with_objective
from downclock.planners.cluster.bound import cluster_bound_j
from downclock.planners.per_task import per_task_bound_j
from downclock.planners.result import Result
from downclock.problem.objective import Objective
from downclock.problem.problem import Problem
from downclock.schedule.schedule import DONE, Schedule
from downclock.units import J_PER_KWH, Floats


@dataclass(slots=True, eq=False)
class Bounds:
    """Lower bounds of a problem.

    Attributes:
        problem: what is asked.
        task_j: least run energy of each task (n,); infinite where it cannot meet its deadline.
        all_j: least energy of a schedule that runs every task that can meet its deadline.
    """

    problem: Problem
    task_j: Floats
    all_j: float
    _values: dict[Objective, float] = field(default_factory=dict)
    _task_values: dict[Objective, Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem) -> Bounds:
        """Compute them: per task, and for clusters or task graphs as a whole."""
        task_j = per_task_bound_j(problem)
        all_j = cluster_bound_j(problem, task_j)
        if policy("graph").objection(problem) is None:
            from downclock.planners.chip.plan import graph_bound_j

            all_j = max(all_j, graph_bound_j(problem))
        return cls(problem, task_j, all_j)

    def below(self, schedule: Schedule) -> float:
        """The best bound on the energy of schedules of the tasks that this one runs."""
        done = schedule.outcomes.status == DONE
        each = float(self.task_j[done].sum())
        return max(each, self.all_j) if np.array_equal(done, np.isfinite(self.task_j)) else each

    def value_below(
        self, schedule: Schedule, objective: Objective, proof: Result | None = None
    ) -> float:
        """The best bound on the objective of schedules of the tasks that this one runs.

        NaN where prices are not known up to the last deadline. Negative prices count as 0.
        ``proof`` is the answer of a solver that planned by the objective; its bound holds for
        bills where it saw the prices of bills.
        """
        from downclock.planners.slots.question import foresees

        least = self.below(schedule) / J_PER_KWH * objective.energy
        slotted = policy(with_objective("least-cost", str(objective))).objection(self.problem)
        if slotted is None and np.all(schedule.outcomes.status == DONE):
            if proof is not None and foresees(self.problem, objective):
                known = self._values.get(objective, 0.0)
                self._values[objective] = max(known, proof.bound)
            return max(least, self._slotted(objective))
        try:
            return max(least, self._per_task(schedule, objective))
        except InvalidInput:  # other schedules may run where no price is known
            return least or np.nan

    def _per_task(self, schedule: Schedule, objective: Objective) -> float:
        """Return what the tasks cost at least, each in its cheapest hours."""
        from downclock.planners.cluster.price_bound import price_bound

        if objective not in self._task_values:
            self._task_values[objective] = price_bound(self.problem, objective, actual=True)
        return float(self._task_values[objective][schedule.outcomes.status == DONE].sum())

    def _slotted(self, objective: Objective) -> float:
        if objective not in self._values:
            from downclock.planners.slots.plan import least_cost_bound

            self._values[objective] = least_cost_bound(self.problem, objective)
        return self._values[objective]
