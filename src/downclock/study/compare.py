"""Comparing policies: every one that applies, on one problem or many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, overload

from downclock.engine.policy import Policy, foresees
from downclock.errors import InvalidInput
from downclock.planners.catalog import CATALOG, with_objective
from downclock.planners.portfolio import Progress, counted
from downclock.problem.objective import Objective, parse_objective
from downclock.problem.problem import Problem
from downclock.schedule.account.bill import Boundary
from downclock.schedule.schedule import Schedule
from downclock.study.baselines import as_policy, chosen_policy
from downclock.study.planned import Judge, Planned
from downclock.study.summary import plans_of

Knowing: TypeAlias = Literal["arrivals", "all"]
"""What policies may know: a job when it arrives, or every job from the start."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Plans of one problem, from the least energy to the most.

    Attributes:
        problem: what was asked.
        plans: verified and billed; those that complete most tasks first, then by what is to be
            least.
        without: (policy, why it has no plan here).
        objective: what is to be least; None: energy.
    """

    problem: Problem
    plans: tuple[Planned, ...]
    without: tuple[tuple[str, str], ...]
    objective: Objective | None = None

    def amount(self, each: Planned) -> float:
        """What is to be least."""
        return each.bill.total_j if self.objective is None else each.amount

    def rank(self, each: Planned) -> tuple[int, float]:
        """Order of plans: those that complete more tasks first, then by what is to be least."""
        return -each.done, self.amount(each)

    def gap(self, each: Planned) -> float:
        """The gap to the bound on what is to be least."""
        value = each.value if self.objective is not None else None
        return each.gap if value is None else value.gap

    def records(self) -> list[dict[str, Any]]:
        """Flat rows, one a plan."""
        return [{"problem": self.problem.name, **each.record()} for each in self.plans]

    def __str__(self) -> str:
        return "\n  ".join([repr(self.problem), *map(str, self.plans)])


@overload
def compare(
    problems: Problem,
    policies: Sequence[str | Policy] | None = None,
    *,
    boundary: Boundary = "last-task",
    progress: Progress | None = None,
    objective: Objective | str | None = None,
    beside: Sequence[Schedule] = (),
    knowing: Knowing | None = None,
) -> Comparison: ...
@overload
def compare(
    problems: Iterable[Problem],
    policies: Sequence[str | Policy] | None = None,
    *,
    boundary: Boundary = "last-task",
    progress: Progress | None = None,
    objective: Objective | str | None = None,
    knowing: Knowing | None = None,
) -> list[Comparison]: ...
def compare(
    problems: Problem | Iterable[Problem],
    policies: Sequence[str | Policy] | None = None,
    *,
    boundary: Boundary = "last-task",
    progress: Progress | None = None,
    objective: Objective | str | None = None,
    beside: Sequence[Schedule] = (),
    knowing: Knowing | None = None,
) -> Comparison | list[Comparison]:
    """Plan a problem, or each of several, with many policies.

    Args:
        problems: what is asked.
        policies: specs or policies; all of the catalogue that apply when not given.
        boundary: where the energy window of a server ends.
        progress: told before each policy.
        objective: what is to be least; policies named here that can plan by it do. Energy when not
            given.
        beside: of a single problem: schedules that somebody made, such as a trace as it ran.
        knowing: "arrivals" leaves out policies that look at jobs before they arrive, "all" adds
            the best plan that is found with every job known, as `plan` does.

    Raises:
        InvalidInput: a policy that does not exist.
    """
    by = parse_objective(objective) if isinstance(objective, str) else objective
    made = _made(CATALOG if policies is None else policies, by)
    if isinstance(problems, Problem):
        judge = Judge.of(problems, boundary, by)
        given = [judge.given(each) for each in beside]
        return _compared(judge, made, progress, knowing, given)
    asked = list(problems)
    return [
        _compared(Judge.of(problem, boundary, by), made, _offset(progress, k, len(asked)), knowing)
        for k, problem in enumerate(asked)
    ]


def _made(given: Iterable[str | Policy], objective: Objective | None) -> list[Policy]:
    """Return the policies, each once; those named plan by the objective where they can."""
    if isinstance(given, str):
        raise InvalidInput("must be a list of policies", field="policies", value=given)
    asked = [
        with_objective(each, str(objective)) if objective is not None and isinstance(each, str)
        else each for each in given
    ]  # fmt: skip
    return list({each.name: each for each in map(as_policy, asked)}.values())


def _compared(
    judge: Judge,
    policies: list[Policy],
    progress: Progress | None,
    knowing: Knowing | None,
    given: Sequence[Planned] = (),
) -> Comparison:
    left: list[Policy] = []
    if knowing == "arrivals":
        left = [each for each in policies if foresees(each)]
        policies = [each for each in policies if not foresees(each)]
    elif knowing == "all":  # what `plan` answers, too, in the place of one of the same name
        by = None if judge.objective is None else str(judge.objective)
        best = chosen_policy(judge.problem, objective=by, progress=progress)
        policies = [best, *(each for each in policies if each.name != best.name)]
    plans, without = plans_of(judge, counted(policies, progress))
    without += [(each.name, "it looks at jobs before they arrive") for each in left]
    found = Comparison(judge.problem, (*given, *plans), tuple(without), judge.objective)
    return replace(found, plans=tuple(judge.proven(sorted(found.plans, key=found.rank))))


def _offset(progress: Progress | None, problem: int, problems: int) -> Progress | None:
    """Count policies over all problems."""
    if progress is None:
        return None
    return lambda what, done, of: progress(what, problem * of + done, problems * of)
