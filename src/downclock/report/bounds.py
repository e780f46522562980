"""How good could it be: every lower bound that applies to a problem, computed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.exact.bounds import per_task_bound_j
from downclock.exact.cluster_bound import cluster_bound_j
from downclock.policies.catalog import policy
from downclock.problem.problem import Problem
from downclock.schedule.schedule import DONE, Schedule
from downclock.units import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Lower bounds of a problem.

    Attributes:
        task_j: least run energy of each task (n,); infinite where it cannot meet its deadline.
        all_j: least energy of a schedule that runs every task that can meet its deadline.
    """

    task_j: Floats
    all_j: float

    @classmethod
    def of(cls, problem: Problem) -> Bounds:
        """Compute them: per task, and for clusters or task graphs as a whole."""
        task_j = per_task_bound_j(problem)
        if len(problem.edges) and policy("graph").objection(problem) is None:
            from downclock.policies.graph_plan import graph_bound_j

            return cls(task_j, graph_bound_j(problem))
        return cls(task_j, cluster_bound_j(problem))

    def below(self, schedule: Schedule) -> float:
        """The best bound that holds for schedules of the tasks that this one runs."""
        done = schedule.outcomes.status == DONE
        each = float(self.task_j[done].sum())
        return max(each, self.all_j) if np.array_equal(done, np.isfinite(self.task_j)) else each
