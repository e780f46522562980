"""Offline solvers as policies: everything is there at time 0, so one call plans it all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from downclock.engine.engine import plan
from downclock.engine.policy import Decisions, Policy, View
from downclock.errors import InvalidInput
from downclock.planners.result import Result
from downclock.problem.problem import Problem
from downclock.schedule.schedule import REJECTED, Outcomes, PowerSpans, Schedule, Segments
from downclock.units import Ints


class Solver(Protocol):
    """What a room of solvers offers: a value that holds its parameters."""

    def objection(self, problem: Problem) -> str | None:
        """Say why it cannot take a problem, or None."""
        ...

    def solve(self, problem: Problem) -> Result:
        """Solve it; a problem that it cannot meet is an `InvalidInput`."""
        ...


@dataclass(frozen=True, slots=True)
class OfflinePolicy:
    """Plan the whole problem with a solver when its tasks arrive.

    Attributes:
        name: name in the catalogue.
        solver: plans; where it finds nothing every task is rejected.
    """

    name: str
    solver: Solver

    def objection(self, problem: Problem) -> str | None:
        """Solvers want to see every task at once."""
        if np.any(problem.tasks.arrival_s > 0.0):
            return "tasks arrive later; this policy plans what is there at time 0"
        return self.solver.objection(problem)

    def solved(self, problem: Problem) -> Result:
        """The solver's answer with its proof; one that rejects every task where there is none."""
        try:
            result = self.solver.solve(problem)
        except InvalidInput as error:
            return Result(_rejecting(len(problem.tasks), error.rule), 0.0, 0.0, "infeasible")
        return replace(result, schedule=replace(result.schedule, policy=self.name))

    def start(self, view: View) -> bool:
        """Nothing is planned."""
        return False

    def run(self, state: bool, view: View, arrived: Ints, until_s: float) -> tuple[bool, Decisions]:
        """Plan all on the first call with tasks; later calls have nothing to add."""
        if state or arrived.size == 0:
            return state, _nothing()
        return True, _decided(self.solved(view.problem).schedule)


def planned_with_proof(problem: Problem, policy: Policy) -> tuple[Schedule, Result | None]:
    """Plan, and return the solver's proof where a solver planned."""
    if isinstance(policy, OfflinePolicy) and policy.objection(problem) is None:
        result = policy.solved(problem)
        return result.schedule, result
    return plan(problem, policy), None


def refusal(ask: Callable[[], object]) -> str | None:
    """What an `InvalidInput` says, or None where there is none."""
    try:
        ask()
    except InvalidInput as error:
        return error.rule
    return None


def _rejecting(tasks: int, reason: str) -> Schedule:
    """Return a schedule that rejects all for one reason."""
    nothing = _nothing()
    outcomes = Outcomes(
        np.full(tasks, REJECTED), np.full(tasks, reason, dtype=object), np.ones(tasks)
    )
    return Schedule(nothing.place, nothing.power, outcomes)


def _decided(schedule: Schedule) -> Decisions:
    outcomes = schedule.outcomes
    left = np.flatnonzero(outcomes.status == REJECTED)
    return Decisions(schedule.segments, schedule.spans, left, outcomes.reason[left])


def _nothing() -> Decisions:
    none, empty = np.empty(0, dtype=np.int64), np.empty(0)
    return Decisions(
        Segments.of(none, none, empty, empty, np.empty((0, 3))),
        PowerSpans(none, none, empty, empty),
        none,
        np.empty(0, dtype=object),
    )
