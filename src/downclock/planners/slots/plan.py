"""Plan a task graph at the least cost, carbon or energy, with a bound: the door to the solvers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.offline_solver import refusal
from downclock.planners.result import Result, status_of, without_rounding
from downclock.planners.slots.mixed_cut import MixedMachines
from downclock.planners.slots.mixed_search import solve_mixed
from downclock.planners.slots.model import SlotGraphIndex, SlotPlan
from downclock.planners.slots.order import machines_of
from downclock.planners.slots.question import (
    SlottedQuestion,
    as_slot_question,
    classes,
    on_machine_class,
    schedule_of,
)
from downclock.planners.slots.reason import reason
from downclock.planners.slots.solve import ROUNDS, solve_slots
from downclock.problem.objective import Objective, parse_objective
from downclock.problem.problem import Problem
from downclock.units import Bools, Ints

NAME = "least-cost"

ORDERS = 20
"""Orders on unequal machines that count as one round: each is quick, and moves little."""


@dataclass(frozen=True, slots=True)
class LeastCostSolver:
    """`plan_least_cost` with its parameters: what the catalogue's ``least-cost`` plans with."""

    objective: Objective
    seconds: float
    rounds: int
    seed: int

    def objection(self, problem: Problem) -> str | None:
        """Say why a problem has no slot model, or None."""
        return refusal(lambda: as_slot_question(problem, self.objective))

    def solve(self, problem: Problem) -> Result:
        """Search."""
        return plan_least_cost(
            problem, self.objective, seconds=self.seconds, rounds=self.rounds, seed=self.seed
        )


def plan_least_cost(
    problem: Problem,
    objective: str | Objective = "cost",
    *,
    seconds: float = np.inf,
    rounds: int = ROUNDS,
    seed: int = 0,
) -> Result:
    """Plan every task by its deadline at the least value of the objective.

    Args:
        problem: a graph on processors with slots and enumerated clocks. Where they are not equal
            (several kinds, or zones with their own prices) the search is plainer and the bound is
            the separable one.
        objective: see `downclock.problem.objective`; its unit is that of the result.
        seconds: time to search, where the clock and not ``rounds`` should end it.
        rounds: orders to try; the plan depends on them and the seed only.
        seed: of the search.

    Returns:
        Schedule, objective, bound and status. Decisions and bound use forecasts where there are
        any and count negative prices as 0, so nobody is paid for burning; bills use the truth.

    Raises:
        InvalidInput: the problem has no slot model, a curve ends too early, or no schedule that
            meets the deadlines was found.
    """
    objective = parse_objective(objective) if isinstance(objective, str) else objective
    if len(classes(problem)[0]) > 1:
        return _plan_mixed(problem, objective, seconds=seconds, rounds=rounds, seed=seed)
    question = as_slot_question(problem, objective)
    found = solve_slots(question.graph, seconds=seconds, rounds=rounds, seed=seed)
    if found.plan is None:
        rule = reason(question.graph, problem.tasks.name[question.task])
        raise InvalidInput(rule, item=f"problem '{problem.name}'")
    easier, bound = as_slot_question(problem, objective, relaxed=True).graph, found.bound
    if not np.array_equal(easier.units, question.graph.units):
        bound = solve_slots(easier, seconds=0.5 * seconds, rounds=rounds, seed=seed).bound
    machine = machines_of(SlotGraphIndex.of(question.graph), found.plan)
    of, method = [question] * machine.size, f"least {objective}, {found.rounds} orders"
    return _result(problem, objective, of, machine, found.plan, bound, method)


def _plan_mixed(
    problem: Problem, objective: Objective, *, seconds: float, rounds: int, seed: int
) -> Result:
    """Plan on processors of several kinds, or in zones with prices of their own."""
    questions, mixed = _mixed(problem, objective)
    found = solve_mixed(mixed, seconds=seconds, rounds=ORDERS * rounds, seed=seed)
    if found is None:
        rule = (
            "none of many list schedules meets them on these"
            f" {len(questions)} classes of processors (which proves nothing)"
        )
        raise InvalidInput(rule, item=f"problem '{problem.name}'")
    of = [questions[c] for c in mixed.machine_class[found.machine]]
    bound = _mixed(problem, objective, relaxed=True)[1].bound()
    method = f"least {objective} on unequal machines, {found.rounds} orders"
    return _result(problem, objective, of, found.machine, found.plan, bound, method)


def _result(
    problem: Problem,
    objective: Objective,
    of: list[SlottedQuestion],
    machine: Ints,
    plan: SlotPlan,
    bound: float,
    method: str,
) -> Result:
    """Write the plan that was found; ``of`` and ``machine`` are of each task (n,)."""
    name, unit = f"{NAME}:objective={objective}", objective.unit(problem.prices.currency)
    schedule, cost = schedule_of(problem, of, machine, plan, name)
    bound = without_rounding(bound, cost)
    return Result(schedule, cost, bound, status_of(cost, bound), method, unit)


def _mixed(
    problem: Problem, objective: Objective, *, actual: bool = False, relaxed: bool = False
) -> tuple[list[SlottedQuestion], MixedMachines]:
    """Return the question of each class of processors, and all of them together; asked once."""

    def compute() -> tuple[list[SlottedQuestion], MixedMachines]:
        groups, of = classes(problem)
        ask = partial(as_slot_question, objective=objective, actual=actual, relaxed=relaxed)
        questions = [ask(on_machine_class(problem, *group)) for group in groups]
        return questions, MixedMachines.of([each.graph for each in questions], of)

    actual = actual and not objective.foreseen(problem.prices)
    return problem.once(("mixed question", objective, actual, relaxed), compute)


def value_bound(problem: Problem, objective: Objective, done: Bools) -> float | None:
    """`least_cost_bound` where all tasks are done (n,) and the problem has a slot model."""
    if not np.all(done) or refusal(lambda: as_slot_question(problem, objective)) is not None:
        return None
    return problem.once(("slots bound", objective), lambda: least_cost_bound(problem, objective))


def least_cost_bound(problem: Problem, objective: Objective) -> float:
    """Value at actual prices, negative ones as 0, below which no schedule of all tasks costs.

    Raises:
        InvalidInput: as for `plan_least_cost`, but not where nothing meets the deadlines.
    """
    if len(classes(problem)[0]) > 1:
        return _mixed(problem, objective, actual=True, relaxed=True)[1].bound()
    question = as_slot_question(problem, objective, actual=True, relaxed=True)
    return solve_slots(question.graph).bound
