"""Offline solvers as policies: everything is known, so one call plans it all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from downclock.columns import joined, taken
from downclock.engine.decisions import Decisions, no_segments, woken
from downclock.engine.facts import ARRIVED, LOST, SERVER_UP, Facts
from downclock.engine.keeping import begun_again
from downclock.engine.outcome import switches_of
from downclock.engine.play import told_s
from downclock.engine.policy import MomentByMoment, Policy
from downclock.engine.view import View
from downclock.errors import InvalidInput
from downclock.planners.portfolio import planned, timed
from downclock.planners.result import Result
from downclock.problem.problem import Problem
from downclock.schedule.schedule import REJECTED, Outcomes, PowerSpans, Schedule
from downclock.units import Ints


class Solver(Protocol):
    """What a room of solvers offers: a value that holds its parameters."""

    def objection(self, problem: Problem) -> str | None:
        """Say why it cannot take a problem, or None."""

    def solve(self, problem: Problem) -> Result:
        """Solve it; a problem that it cannot meet is an `InvalidInput`."""


@dataclass(slots=True)
class State:
    """What was planned: rows by task, to give a lost task its processors again."""

    task: Ints
    processor: Ints


class CarriesOut(MomentByMoment):
    """Carry out a plan of the whole problem, whatever happens.

    What was planned is kept: a row starts when it was promised, or as soon as its processors and
    the tasks before it are done. A lost task begins again on its processors, at full speed, when
    they work; nothing moves elsewhere.
    """

    __slots__ = ()

    heeds: ClassVar[frozenset[int]] = frozenset((ARRIVED, LOST, SERVER_UP))

    def start(self, view: View) -> State:
        """Nothing is planned."""
        none = np.empty(0, dtype=np.int64)
        return State(none, none)


@dataclass(frozen=True, slots=True)
class OfflinePolicy(CarriesOut):
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
            return Result(rejecting(len(problem.tasks), error.rule), 0.0, 0.0, "infeasible")
        return replace(result, schedule=replace(result.schedule, policy=self.name))

    def decide(self, state: State, view: View, facts: Facts) -> tuple[State, Decisions]:
        """Plan what arrives; begin lost tasks again; wake servers that are repaired."""
        if not facts.tasks(ARRIVED).size:
            return state, recovered(state, view, facts)
        schedule = self.solved(view.problem()).schedule
        placed, outcomes = schedule.segments, schedule.outcomes
        left = np.flatnonzero(outcomes.status == REJECTED)
        return State(placed.task, placed.processor), Decisions(
            place=placed,
            rejected=left,
            reason=outcomes.reason[left],
            power=switches_of(view.platform, schedule.spans),
        )


@dataclass(frozen=True, slots=True)
class ForeseeingPolicy(OfflinePolicy):
    """The same where the solver takes arrivals for windows: all are in view, so it is a tuner."""

    def objection(self, problem: Problem) -> str | None:
        """The solver's own."""
        return self.solver.objection(problem)

    def tuned(self, problem: Problem) -> Policy:
        """A policy that carries out the plan; where all is there at time 0, the solver plans."""
        if not np.any(problem.tasks.arrival_s > 0.0):
            return OfflinePolicy(self.name, self.solver)
        return CarriedOut.of(self.name, problem, self.solved(problem).schedule)


@dataclass(frozen=True, slots=True, eq=False)
class CarriedOut(CarriesOut):
    """A plan that was made with all arrivals in view, told as tasks arrive.

    Attributes:
        name: of who made it.
        schedule: the plan; tasks are numbered in the order of telling.
    """

    name: str
    schedule: Schedule

    @classmethod
    def of(cls, name: str, problem: Problem, schedule: Schedule) -> CarriedOut:
        """Carry out a schedule of a problem."""
        told = np.argsort(told_s(problem), kind="stable")
        renumbered = replace(schedule.segments, task=np.argsort(told)[schedule.segments.task])
        ended = taken(schedule.outcomes, told)
        return cls(name, replace(schedule, segments=renumbered, outcomes=ended))

    def objection(self, problem: Problem) -> str | None:
        """It was planned."""
        return None

    def decide(self, state: State, view: View, facts: Facts) -> tuple[State, Decisions]:
        """Tell the rows of what arrives, at first also when servers wake and sleep."""
        planned, outcomes, arrived = (
            self.schedule.segments, self.schedule.outcomes, facts.tasks(ARRIVED)
        )  # fmt: skip
        left = arrived[outcomes.status[arrived] == REJECTED]
        decided = recovered(state, view, facts)
        if not state.task.size:
            state = State(planned.task, planned.processor)
            decided = replace(decided, power=switches_of(view.platform, self.schedule.spans))
        place = joined([taken(planned, np.isin(planned.task, arrived)), decided.place])
        return state, replace(decided, place=place, rejected=left, reason=outcomes.reason[left])


def recovered(state: State, view: View, facts: Facts) -> Decisions:
    """Lost tasks begin again where they were planned, and servers that are repaired wake."""
    lost = {
        task: np.unique(state.processor[state.task == task])[: view.tasks.processors[task]].tolist()
        for task in facts.tasks(LOST).tolist()
    }
    return Decisions(
        place=begun_again(view, lost, facts.now_s),
        power=woken(facts.places(SERVER_UP), facts.now_s),
    )


def planned_with_proof(problem: Problem, policy: Policy) -> tuple[Schedule, Result | None, float]:
    """Plan; return also the solver's proof where a solver planned, and the seconds it took."""
    if isinstance(policy, OfflinePolicy) and policy.objection(problem) is None:
        result, seconds = timed(lambda: policy.solved(problem))
        return result.schedule, result, seconds
    schedule, seconds = planned(problem, policy)
    return schedule, None, seconds


def refusal(ask: Callable[[], object]) -> str | None:
    """What an `InvalidInput` says, or None where there is none."""
    try:
        ask()
    except InvalidInput as error:
        return error.rule
    return None


def rejecting(tasks: int, reason: str) -> Schedule:
    """Return a schedule that rejects all for one reason."""
    none, empty = np.empty(0, dtype=np.int64), np.empty(0)
    outcomes = Outcomes(
        np.full(tasks, REJECTED), np.full(tasks, reason, dtype=object), np.ones(tasks)
    )
    return Schedule(no_segments(), PowerSpans(none, none, empty, empty), outcomes)
