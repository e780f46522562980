"""A plan beside the usual ways to plan the same problem, and beside the lower bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from downclock.engine.policy import Policy
from downclock.errors import InvalidSchedule
from downclock.planners.catalog import objective_of
from downclock.planners.portfolio import Progress, counted
from downclock.problem.objective import Objective
from downclock.problem.problem import Problem
from downclock.quantities import percent
from downclock.schedule.account.bill import Boundary
from downclock.schedule.schedule import DONE, Schedule
from downclock.study.baselines import chosen_policy, named_baselines, usual_baselines
from downclock.study.objective_value import objective_or_none
from downclock.study.planned import Judge, Planned


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """A plan beside its baselines.

    Attributes:
        plan: the plan.
        baselines: other plans of the same problem under the same sleep rule.
        without: (policy, reason) of baselines that have no plan of such a problem.
    """

    plan: Planned
    baselines: tuple[Planned, ...] = ()
    without: tuple[tuple[str, str], ...] = ()

    @property
    def problem(self) -> Problem:
        """What was asked."""
        return self.plan.problem

    @property
    def plans(self) -> tuple[Planned, ...]:
        """The plan and its baselines."""
        return (self.plan, *self.baselines)

    def saved(self, other: Planned) -> float | None:
        """Part of the other's energy, or of what is to be least, that the plan saves.

        None where they do not run the same tasks.
        """
        if not self.plan.runs_the_tasks_of(other):
            return None
        return 1.0 - self.plan.amount / other.amount if other.amount else 0.0

    def saved_on_both(self, other: Planned) -> tuple[float, int]:
        """Part saved on the tasks that both do, of their running alone, and how many those are.

        Idling, hosts and wakes are left out: nobody can say which tasks they are for.
        """
        statuses = (each.schedule.outcomes.status for each in (self.plan, other))
        both = np.logical_and.reduce([status == DONE for status in statuses])
        ours, theirs = (each.worth_by_task()[both].sum() for each in (self.plan, other))
        return 1.0 - float(ours / theirs) if theirs > 0.0 else 0.0, int(both.sum())

    def comparable(self) -> Summary:
        """The summary with only those baselines that run the same tasks as the plan."""
        kept = tuple(each for each in self.baselines if self.plan.runs_the_tasks_of(each))
        others = (each for each in self.baselines if each not in kept)
        left = [(each.policy, self._other_tasks(each)) for each in others]
        return Summary(self.plan, kept, (*self.without, *left))

    def _other_tasks(self, other: Planned) -> str:
        """Say that another plan does other tasks, and what can be compared all the same."""
        saved, both = self.saved_on_both(other)
        less = f"{percent(abs(saved))} {'less' if saved >= 0.0 else 'more'}"
        shared = f"; running the {both:,} that both do takes {less} in this plan" if both else ""
        return f"it runs other tasks, {other.done:,} in all{shared}"

    def __str__(self) -> str:
        return "\n  ".join([repr(self.problem), *map(str, self.plans)])


def summarise(
    problem: Problem,
    policy: str | Policy | None = None,
    *,
    boundary: Boundary = "last-task",
    baselines: Sequence[str] | None = None,
    objective: Objective | None = None,
    beside: Sequence[Schedule] = (),
    prove: bool = True,
    progress: Progress | None = None,
) -> Summary:
    """Plan with a policy (the usual one) and with the baselines, under the same sleep rule.

    The baselines are the usual ones for such a problem unless they are given; all are valued by
    the objective, which is that of the policy where none is given. ``beside`` are schedules that
    somebody made, such as a trace as it ran: baselines too, valid or not. Where nobody looks at
    the bound there is no need to ``prove`` more than is known at once.

    Raises:
        InvalidInput: an unknown policy, or one that cannot plan such problems.
        InvalidSchedule: the policy's plan breaks a rule; that is a bug.
    """
    made = chosen_policy(problem, policy)
    objective = objective or objective_or_none(objective_of(made.name))
    judge = Judge.of(problem, boundary, objective)
    others = _baselines(judge, made.name, baselines)
    told = counted([made, *others], progress)
    return _beside(judge, judge.planned(next(told), prove=prove), beside, told)


def judge(
    problem: Problem,
    schedule: Schedule,
    *,
    boundary: Boundary = "last-task",
    baselines: Sequence[str] | None = None,
    beside: Sequence[Schedule] = (),
    progress: Progress | None = None,
) -> Summary:
    """Judge a schedule that somebody made, and plan the (usual) baselines for it.

    All are valued by the objective of the policy that the schedule names; ``beside`` are other
    schedules that somebody made.

    Raises:
        InvalidSchedule: the schedule cannot be billed.
        InvalidInput: an unknown baseline.
    """
    objective = objective_or_none(objective_of(schedule.policy))
    by = Judge.of(problem, boundary, objective)
    others = _baselines(by, schedule.policy, baselines)
    return _beside(by, by.given(schedule), beside, counted(others, progress))


def _baselines(judge: Judge, plan: str, named: Sequence[str] | None) -> list[Policy]:
    if named is None:
        return usual_baselines(judge.problem, plan, judge.objective)
    return named_baselines(plan, tuple(named))


def _beside(
    judge: Judge, plan: Planned, given: Sequence[Schedule], baselines: Iterator[Policy]
) -> Summary:
    made = [judge.given(each) for each in given]
    others, without = plans_of(judge, baselines)
    return Summary(plan, (*made, *others), tuple(without))


def plans_of(
    judge: Judge, policies: Iterable[Policy]
) -> tuple[list[Planned], list[tuple[str, str]]]:
    """Plan with every policy that applies; return the plans, and why others have none."""
    plans: list[Planned] = []
    without: list[tuple[str, str]] = []
    for policy in policies:
        objection = policy.objection(judge.problem)
        if objection is not None:
            without.append((policy.name, objection))
            continue
        try:
            plans.append(judge.planned(policy))
        except InvalidSchedule as error:
            without.append((policy.name, f"its plan is {str(error).splitlines()[0]}"))
    return plans, without
