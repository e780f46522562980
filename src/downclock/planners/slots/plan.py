"""Plan a task graph at the least cost, carbon or energy, with a bound: the door to the solvers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.offline_solver import refusal
from downclock.planners.result import Result, status_of
from downclock.planners.slots.mixed_cut import MixedMachines
from downclock.planners.slots.mixed_search import solve_mixed
from downclock.planners.slots.question import (
    SlottedQuestion,
    classes,
    on_machine_class,
    question,
    schedule_of,
    written,
)
from downclock.planners.slots.reason import reason
from downclock.planners.slots.search import Progress
from downclock.planners.slots.solve import solve_slots
from downclock.problem.objective import Objective, parse_objective
from downclock.problem.problem import Problem
from downclock.units import Bools

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
        return refusal(lambda: question(problem, self.objective))

    def solve(self, problem: Problem) -> Result:
        """Search, without a proof by HiGHS."""
        return plan_least_cost(
            problem, self.objective, seconds=self.seconds, rounds=self.rounds, seed=self.seed
        )


def plan_least_cost(
    problem: Problem,
    objective: str | Objective = "cost",
    *,
    seconds: float = 1.0,
    proof_s: float = 0.0,
    rounds: int = 1 << 30,
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Plan every task by its deadline at the least value of the objective.

    Args:
        problem: a graph on processors with slots and enumerated clocks. Where they are not equal
            (several kinds, or zones with their own prices) the search is plainer, no proof is
            tried and the bound is that of tasks apart, at prices of machines.
        objective: see `downclock.problem.objective`; its unit is that of the result.
        seconds: time to search.
        proof_s: time for HiGHS to close the gap; 0: no proof is tried.
        rounds: orders to try; with enough seconds the plan depends on the seed only.
        seed: of the search.
        progress: called with (seconds, objective, bound) at every improvement.

    Returns:
        Schedule, objective, bound and status. Decisions and bound use forecasts where there are
        any and count negative prices as 0, so nobody is paid for burning; bills use the truth.

    Raises:
        InvalidInput: the problem has no slot model, a curve ends too early, or no schedule that
            meets the deadlines was found.
    """
    goal = parse_objective(objective) if isinstance(objective, str) else objective
    if len(classes(problem)[0]) > 1:
        return _plan_mixed(problem, goal, seconds=seconds, rounds=rounds, seed=seed)
    asked = question(problem, goal)
    found = solve_slots(
        asked.graph, seconds=seconds, proof_s=proof_s, rounds=rounds, seed=seed, progress=progress
    )
    if found.plan is None:
        rule = reason(asked.graph, problem.tasks.name[asked.task])
        raise InvalidInput(rule, item=f"problem '{problem.name}'")
    schedule, cost = schedule_of(problem, asked, found.plan, f"{NAME}:objective={goal}")
    method = f"least {goal}, {found.rounds} orders"
    unit = goal.unit(problem.prices.currency)
    easier, bound = question(problem, goal, relaxed=True).graph, found.bound
    if not np.array_equal(easier.units, asked.graph.units):
        bound = solve_slots(easier, seconds=0.5 * seconds, rounds=rounds, seed=seed).bound
    bound = min(bound, cost)
    return Result(schedule, cost, bound, status_of(cost, bound), method, unit)


def _plan_mixed(
    problem: Problem, goal: Objective, *, seconds: float, rounds: int, seed: int
) -> Result:
    """Plan on processors of several kinds, or in zones with prices of their own."""
    asked, mixed = _mixed(problem, goal)
    found = solve_mixed(mixed, seconds=seconds, rounds=ORDERS * rounds, seed=seed)
    if found is None:
        rule = (
            f"none of many list schedules meets them on these {len(asked)} classes of processors"
            " (which proves nothing)"
        )
        raise InvalidInput(rule, item=f"problem '{problem.name}'")
    plan, group = found.plan, mixed.machine_class[found.machine]
    every = [asked[c].levels(plan, [i])[0] for i, c in enumerate(group)]
    cost = sum(asked[c].cost(plan.first[[i]], [every[i]]) for i, c in enumerate(group))
    points = [asked[c].points for c in group]
    name = f"{NAME}:objective={goal}"
    schedule = written(problem, asked[0].task, found.machine, plan, every, points, name)
    bound = _mixed(problem, goal, relaxed=True)[1].bound()
    method = f"least {goal} on unequal machines, {found.rounds} orders"
    unit = goal.unit(problem.prices.currency)
    bound = min(bound, cost)
    return Result(schedule, cost, bound, status_of(cost, bound), method, unit)


def _mixed(
    problem: Problem, goal: Objective, *, actual: bool = False, relaxed: bool = False
) -> tuple[list[SlottedQuestion], MixedMachines]:
    """Return the question of each class of processors, and all of them together; asked once."""

    def compute() -> tuple[list[SlottedQuestion], MixedMachines]:
        groups, of = classes(problem)
        asked = [
            question(on_machine_class(problem, *group), goal, actual=actual, relaxed=relaxed)
            for group in groups
        ]
        return asked, MixedMachines.of([each.graph for each in asked], of)

    actual = actual and not goal.foreseen(problem.prices)
    return problem.once(("mixed question", goal, actual, relaxed), compute)


def value_bound(problem: Problem, objective: Objective, done: Bools) -> float | None:
    """`least_cost_bound` where all tasks are done (n,) and the problem has a slot model."""
    late = np.any(problem.tasks.arrival_s > 0.0)
    if late or not np.all(done) or refusal(lambda: question(problem, objective)) is not None:
        return None
    return problem.once(("slots bound", objective), lambda: least_cost_bound(problem, objective))


def least_cost_bound(
    problem: Problem, objective: Objective, *, seconds: float = 30.0, rounds: int = 100
) -> float:
    """Value at actual prices, negative ones as 0, below which no schedule of all tasks costs.

    Raises:
        InvalidInput: as for `plan_least_cost`, but not where nothing meets the deadlines.
    """
    if len(classes(problem)[0]) > 1:
        return _mixed(problem, objective, actual=True, relaxed=True)[1].bound()
    asked = question(problem, objective, actual=True, relaxed=True)
    return solve_slots(asked.graph, seconds=seconds, rounds=rounds).bound
