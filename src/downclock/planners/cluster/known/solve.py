"""Plan a cluster whose tasks are all known: the search, the plans of others, and a bound."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.cluster.known.certify import certified
from downclock.planners.cluster.known.judge import Judged, judged
from downclock.planners.cluster.known.question import ENERGY, KnownQuestion, ask, objection
from downclock.planners.cluster.known.write import placement_of, processors_of, written
from downclock.planners.result import Result, Status, status_of
from downclock.problem.objective import Objective
from downclock.problem.problem import Problem
from downclock.schedule.schedule import Schedule
from downclock.schedule.verify.verify import verify
from downclock.units import Ints

if TYPE_CHECKING:
    from downclock.planners.cluster.known.kernels.model import Search

NAME = "known"

TRIALS_PER_S = 1_500_000
"""Places that a second of effort stands for: counted, so that results repeat."""

ROUNDS, MOST_RETIMED = 3, 1500
"""Times the search pauses to choose all times together, and the jobs up to which it does."""


def solve_known(
    problem: Problem,
    objective: Objective = ENERGY,
    *,
    effort: float = 1.0,
    seed: int = 0,
    start: Iterable[Schedule] = (),
) -> Result:
    """Plan all tasks at once: as many as possible, then at the least value.

    Args:
        problem: tasks with arrivals, deadlines, edges and gangs on servers of any kinds.
        objective: what is to be least.
        effort: about seconds of search; counted in places tried, so that plans repeat.
        seed: of the search.
        start: schedules of others to begin with; the answer is no worse than any valid one.

    Returns:
        The plan; the bound is on schedules that do the same tasks. Plan and bound see forecasts
        and count negative prices as 0.

    Raises:
        InvalidInput: the problem is of another kind (see `objection`), or prices end too early.
    """
    doubt = objection(problem)
    if doubt is not None:
        raise InvalidInput(doubt, item=f"problem '{problem.name}'")
    asked = ask(problem, objective)
    given = [judged(problem, objective, each) for each in start if verify(problem, each).ok]
    found = judged(problem, objective, _searched(problem, asked, given, effort, seed))
    best = min([found, *given], key=lambda each: each.rank)
    bound, more = certified(problem, objective, best, effort)
    status: Status = "feasible" if more else status_of(best.value, bound)
    if not np.any(best.done):
        status = "infeasible"
    method = NAME if best is found else f"{best.schedule.policy or 'a given plan'}, not bettered"
    unit = "J" if objective == ENERGY else objective.unit(problem.prices.currency)
    return Result(best.schedule, best.value, bound, status, method, unit)


def _searched(
    problem: Problem, asked: KnownQuestion, given: list[Judged], effort: float, seed: int
) -> Schedule:
    """Search from the given plans and one made job by job."""
    from downclock.planners.cluster.known.kernels.model import new_placement, new_search
    from downclock.planners.cluster.known.kernels.search import begin_with, improve

    question = asked.columns
    search = new_search(question, seed)
    if asked.task.size:
        key = question.jobs.rank if question.before.size else question.jobs.to_s
        order = np.argsort(key, kind="stable")
        begin_with(question, search, new_placement(question.jobs), order)
        for each in given:
            begin_with(question, search, placement_of(problem, asked, each.schedule), order)
        for _ in range(ROUNDS):
            improve(question, search, int(effort * TRIALS_PER_S) // ROUNDS)
            _retime(problem, asked, search, order)
        begin_with(question, search, search.best, order)
    return written(problem, asked, search.board, NAME)


def _retime(problem: Problem, asked: KnownQuestion, search: Search, order: Ints) -> None:
    """Choose all times together, where a joule is always worth the same."""
    from downclock.planners.cluster.known.kernels.search import begin_with
    from downclock.planners.cluster.known.retime import retimed

    question = asked.columns
    if question.tariff.shape[1] > 1 or asked.task.size > MOST_RETIMED:
        return
    rows = processors_of(problem, question, search.board.place)
    better = retimed(question, search.board, *rows)
    if better is not None:
        begin_with(question, search, better, order)
