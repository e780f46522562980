"""Offline solvers as policies: everything is there at time 0, so one call plans it all."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from downclock.engine.decisions import Decisions, Switches, no_segments
from downclock.engine.facts import ARRIVED, LOST, SERVER_UP, Facts
from downclock.engine.keeping import begun_again
from downclock.engine.outcome import switches_of
from downclock.engine.policy import Columns, Coming, Folded, Policy
from downclock.engine.saved import flat, rebuilt
from downclock.engine.view import View
from downclock.errors import InvalidInput
from downclock.kernels.compiling import METER
from downclock.planners.portfolio import planned
from downclock.planners.result import Result
from downclock.problem.problem import Problem
from downclock.schedule.schedule import REJECTED, Outcomes, PowerSpans, Schedule
from downclock.units import Ints


class Solver(Protocol):
    """What a room of solvers offers: a value that holds its parameters."""

    def objection(self, problem: Problem) -> str | None:
        """Say why it cannot take a problem, or None."""
        ...

    def solve(self, problem: Problem) -> Result:
        """Solve it; a problem that it cannot meet is an `InvalidInput`."""
        ...


@dataclass(slots=True)
class State:
    """What was planned: rows by task, to give a lost task its processors again."""

    task: Ints
    processor: Ints


@dataclass(frozen=True, slots=True)
class OfflinePolicy:
    """Plan the whole problem with a solver when its tasks arrive.

    What was planned is kept: a row starts when it was promised, or as soon as its processors and
    the tasks before it are done. A lost task begins again on its processors, at full speed, when
    they work; nothing moves elsewhere.

    Attributes:
        name: name in the catalogue.
        solver: plans; where it finds nothing every task is rejected.
    """

    name: str
    solver: Solver

    heeds: ClassVar[frozenset[int]] = frozenset((ARRIVED, LOST, SERVER_UP))

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

    def start(self, view: View) -> State:
        """Nothing is planned."""
        none = np.empty(0, dtype=np.int64)
        return State(none, none)

    def decide(self, state: State, view: View, facts: Facts) -> tuple[State, Decisions]:
        """Plan what arrives; begin lost tasks again; wake servers that are repaired."""
        if facts.tasks(ARRIVED).size:
            schedule = self.solved(view.problem()).schedule
            placed = schedule.segments
            return State(placed.task, placed.processor), _decided(view, schedule)
        woken = facts.places(SERVER_UP)
        power = Switches(woken, np.ones(woken.size, bool), np.full(woken.size, facts.now_s))
        lost = {
            task: np.unique(state.processor[state.task == task])[
                : view.tasks.processors[task]
            ].tolist()
            for task in facts.tasks(LOST).tolist()
        }
        return state, Decisions(place=begun_again(view, lost, facts.now_s), power=power)

    def fold(self, state: State, view: View, coming: Coming) -> tuple[State, Folded] | None:
        """One moment after the other."""
        return None

    def saved(self, state: State) -> Columns:
        """The state as arrays by name."""
        return flat(state)

    def restored(self, view: View, columns: Columns) -> State:
        """The state from its arrays."""
        return rebuilt(self.start(view), columns)


def planned_with_proof(problem: Problem, policy: Policy) -> tuple[Schedule, Result | None, float]:
    """Plan; return also the solver's proof where a solver planned, and the seconds it took."""
    if isinstance(policy, OfflinePolicy) and policy.objection(problem) is None:
        start, compiled_s = time.perf_counter(), METER.compiled_s
        result = policy.solved(problem)
        seconds = time.perf_counter() - start - (METER.compiled_s - compiled_s)
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


def _rejecting(tasks: int, reason: str) -> Schedule:
    """Return a schedule that rejects all for one reason."""
    none, empty = np.empty(0, dtype=np.int64), np.empty(0)
    outcomes = Outcomes(
        np.full(tasks, REJECTED), np.full(tasks, reason, dtype=object), np.ones(tasks)
    )
    return Schedule(no_segments(), PowerSpans(none, none, empty, empty), outcomes)


def _decided(view: View, schedule: Schedule) -> Decisions:
    outcomes = schedule.outcomes
    left = np.flatnonzero(outcomes.status == REJECTED)
    return Decisions(
        place=schedule.segments,
        rejected=left,
        reason=outcomes.reason[left],
        power=Switches(*switches_of(view.platform, schedule.spans)),
    )
