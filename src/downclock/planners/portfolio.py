"""All of it is known: the policy of several whose plan loses the fewest tasks, then costs least."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np

from downclock.engine.play import plan
from downclock.engine.policy import Policy
from downclock.engine.view import foreseen
from downclock.kernels.compiling import METER
from downclock.problem.objective import Objective
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE, Schedule

T = TypeVar("T")

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told what begins, how many are done, and of how many."""


def best_of(
    problem: Problem,
    policies: Iterable[Policy],
    objective: Objective | None = None,
    progress: Progress | None = None,
) -> Policy | None:
    """Plan with every policy that can, and return the best; the first wins ties; None: none can.

    Judged by forecasts where there are any, as plans are.
    """
    able = [each for each in policies if each.objection(problem) is None]
    if len(able) < 2:
        return able[0] if able else None
    costs = ranks(problem, counted(able, progress), objective)
    return able[costs.index(min(costs))]


def ranks(
    problem: Problem, policies: Iterable[Policy], objective: Objective | None = None
) -> list[tuple[int, float]]:
    """Tasks that the plans of policies lose, and what the rest is worth by forecasts."""
    seen = replace(problem, prices=foreseen(problem.prices))
    return [lost_and_cost(seen, planned(problem, each)[0], objective) for each in policies]


def counted(policies: Sequence[Policy], progress: Progress | None) -> Iterator[Policy]:
    """Yield policies; tell of each when its turn comes."""
    for k, each in enumerate(policies):
        if progress is not None:
            progress(f"planning by {each.name}", k, len(policies))
        yield each


def planned(
    problem: Problem, policy: Policy, progress: Progress | None = None
) -> tuple[Schedule, float]:
    """Plan once: a policy that was tried is not asked again; return how many seconds it took.

    One that plans with all of the problem in view (it has a method ``whole``) is asked for that.
    """
    whole = getattr(policy, "whole", None)
    ask = partial(plan, problem, policy) if whole is None else partial(whole, problem, progress)
    return problem.once(("plan", policy), lambda: timed(ask))


def timed(ask: Callable[[], T]) -> tuple[T, float]:
    """Return an answer and the seconds that it took, compiling not counted."""
    start, compiled_s = time.perf_counter(), METER.compiled_s
    answer = ask()
    return answer, time.perf_counter() - start - (METER.compiled_s - compiled_s)


def lost_and_cost(
    problem: Problem, schedule: Schedule, objective: Objective | None = None
) -> tuple[int, float]:
    """Tasks lost, and the energy or value of the rest."""
    bill = account(problem, schedule)
    lost = int(np.sum(schedule.outcomes.status != DONE))
    if objective is None:
        return lost, bill.total_j
    return lost, objective.value(bill.total_j, bill.money_clipped, bill.carbon_kg)
