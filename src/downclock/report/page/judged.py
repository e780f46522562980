"""A schedule with everything a page says about it: verdict, bill, bound and baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from downclock.errors import InvalidSchedule
from downclock.planners.bounds import Bounds
from downclock.planners.catalog import objective_of, policy
from downclock.problem.problem import Problem
from downclock.report.summary import (
    Planned,
    Summary,
    planned,
    usual_baselines,
    with_limits_of,
)
from downclock.report.worth import Worth, goal, worth_of
from downclock.schedule.account.account import account
from downclock.schedule.account.bill import Bill, Boundary
from downclock.schedule.schedule import DONE, Schedule
from downclock.schedule.verify.verdict import Verdict
from downclock.schedule.verify.verify import verify
from downclock.units import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A schedule and its judgements.

    Attributes:
        problem, schedule: what was asked and answered.
        verdict: is it valid.
        bill: what it costs.
        bound_j: no valid schedule of the tasks it completes needs less.
        baselines: plans of the same problem as people make them today.
        without: (policy, reason) of baselines that cannot plan such a problem.
        worth: value under the objective it was planned by; None where that is energy alone.
    """

    problem: Problem
    schedule: Schedule
    verdict: Verdict
    bill: Bill
    bound_j: float
    baselines: tuple[Planned, ...]
    without: tuple[tuple[str, str], ...]
    worth: Worth | None = None

    @property
    def name(self) -> str:
        """Who made the plan."""
        return self.schedule.policy or "this plan"

    @property
    def finish_s(self) -> Floats:
        """End of each task's last segment (tasks,); NaN where it never ran."""
        finish = np.full(len(self.problem.tasks), -np.inf)
        np.maximum.at(finish, self.schedule.segments.task, self.schedule.segments.end_s)
        return np.where(np.isfinite(finish), finish, np.nan)


def judged(
    problem: Problem,
    schedule: Schedule,
    *,
    boundary: Boundary = "last-task",
    baselines: Sequence[str] | None = None,
) -> Judged:
    """Judge a schedule, and plan the (usual) baselines under the same sleep rule."""
    verdict = verify(problem, schedule)
    bill = account(problem, schedule, boundary=boundary)
    bounds, objective = Bounds.of(problem), goal(objective_of(schedule.policy))
    plans: list[Planned] = []
    without: list[tuple[str, str]] = []
    for name in usual_baselines(problem, objective) if baselines is None else baselines:
        if name in (schedule.policy, schedule.policy.partition(":")[0]):
            continue
        spec = with_limits_of(schedule.policy, name)
        objection = policy(spec).objection(problem)
        if objection is not None:
            without.append((spec, objection))
            continue
        try:
            plans.append(
                planned(problem, spec, boundary=boundary, bounds=bounds, objective=objective)
            )
        except InvalidSchedule as error:
            without.append((spec, f"its plan is {str(error).splitlines()[0]}"))
    kept, left = _comparable(schedule, plans)
    bound_j = bounds.below(schedule)
    worth = None
    if objective is not None:
        worth = worth_of(bill, objective, bounds.value_below(schedule, objective))
    return Judged(problem, schedule, verdict, bill, bound_j, kept, (*without, *left), worth)


def judged_summary(summary: Summary) -> Judged:
    """Judge the plan of a summary; its bill, bound and baselines are there already."""
    plan = summary.plan
    verdict = verify(summary.problem, plan.schedule)
    kept, left = _comparable(plan.schedule, summary.baselines)
    without = (*summary.without, *left)
    return Judged(
        *(summary.problem, plan.schedule, verdict, plan.bill, plan.bound_j, kept, without),
        plan.worth,
    )


def _comparable(
    schedule: Schedule, plans: Sequence[Planned]
) -> tuple[tuple[Planned, ...], tuple[tuple[str, str], ...]]:
    """Split plans into those that run the same tasks, and reasons why the others do not count."""
    done = schedule.outcomes.status == DONE
    same = [bool(np.all((plan.schedule.outcomes.status == DONE) == done)) for plan in plans]
    kept = tuple(plan for plan, fits in zip(plans, same, strict=True) if fits)
    left = tuple(
        (plan.policy, f"it runs other tasks, {plan.done:,} in all")
        for plan, fits in zip(plans, same, strict=True)
        if not fits
    )
    return kept, left
