"""How good could it be: lower bounds, asked of the rooms that know them.

A room answers for the tasks that are done: no valid schedule of just these tasks needs less. It
answers None where it knows nothing of such problems or tasks, and computes once a problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from downclock.planners.result import Result
from downclock.problem.objective import Objective
from downclock.problem.problem import Problem
from downclock.schedule.schedule import DONE, Schedule
from downclock.units import J_PER_KWH, Bools

EnergyBound: TypeAlias = Callable[[Problem, Bools], float | None]
"""Joules that tasks (n,) need at least."""

ValueBound: TypeAlias = Callable[[Problem, Objective, Bools], float | None]
"""The least value under an objective, at actual prices, negative ones as 0."""


def _energy_bounds() -> tuple[EnergyBound, ...]:
    from downclock.planners import per_task
    from downclock.planners.chip import plan as chip
    from downclock.planners.cluster import bound as cluster
    from downclock.planners.cluster.known import bounds as known

    return (
        per_task.energy_bound_j, cluster.energy_bound_j, known.energy_bound_j, chip.energy_bound_j
    )  # fmt: skip


def _value_bounds() -> tuple[ValueBound, ...]:
    """The first that answers is the best known."""
    from downclock.planners.cluster.known import bounds as known
    from downclock.planners.slots import plan as slots

    return slots.value_bound, known.value_bound


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Lower bounds of a problem, and what solvers have proven meanwhile."""

    problem: Problem
    _proven: dict[Objective, float] = field(default_factory=dict)

    def below(self, schedule: Schedule) -> float:
        """The best bound on the energy of schedules of the tasks that this one runs."""
        done = schedule.outcomes.status == DONE
        known = (bound(self.problem, done) for bound in _energy_bounds())
        return max(least for least in known if least is not None)

    def prove(self, schedule: Schedule, objective: Objective | None, effort: float = 1.0) -> None:
        """Try to prove more of a small plan than bounds usually say; they remember it."""
        from downclock.planners.cluster.known.bounds import prove_plan

        prove_plan(self.problem, objective, schedule, effort)

    def value_below(
        self, schedule: Schedule, objective: Objective, proof: Result | None = None
    ) -> float:
        """The best bound on the objective of schedules of the tasks that this one runs.

        NaN where prices are not known up to the last deadline. Negative prices count as 0.
        ``proof`` is the answer of a solver that planned by the objective; its bound holds for
        bills where it saw the prices of bills.
        """
        done = schedule.outcomes.status == DONE
        energy = self.below(schedule) / J_PER_KWH * objective.energy
        if np.all(done) and proof is not None and objective.foreseen(self.problem.prices):
            self._proven[objective] = max(self._proven.get(objective, 0.0), proof.bound)
        if np.all(done) and objective in self._proven:
            return max(energy, self._proven[objective])
        known = (bound(self.problem, objective, done) for bound in _value_bounds())
        least = next((each for each in known if each is not None), None)
        return energy or np.nan if least is None else max(energy, least)
