"""Comparing policies: every one that applies, on one problem or many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from downclock.engine.policy import Policy
from downclock.planners.catalog import CATALOG, policy, with_objective
from downclock.problem.objective import Objective
from downclock.problem.problem import Problem
from downclock.schedule.account.bill import Boundary
from downclock.study.planned import Judge, Planned
from downclock.study.summary import plans_of

Progress = Callable[[str, int, int], None]
"""Told what begins, how many are done, and of how many."""


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
        value = each.value if self.objective is not None else None
        return each.bill.total_j if value is None else value.amount

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


def compare(
    problem: Problem,
    policies: Sequence[str] | None = None,
    *,
    boundary: Boundary = "last-task",
    progress: Progress | None = None,
    objective: Objective | None = None,
) -> Comparison:
    """Plan a problem with many policies.

    Args:
        problem: what is asked.
        policies: specs; all of the catalogue that apply when not given.
        boundary: where the energy window of a server ends.
        progress: told before each policy.
        objective: what is to be least; policies that can plan by it do. Energy when not given.

    Raises:
        InvalidInput: a policy that does not exist.
    """
    return compare_all(
        [problem], policies, boundary=boundary, progress=progress, objective=objective
    )[0]


def compare_all(
    problems: Iterable[Problem],
    policies: Sequence[str] | None = None,
    *,
    boundary: Boundary = "last-task",
    progress: Progress | None = None,
    objective: Objective | None = None,
) -> list[Comparison]:
    """Compare on every problem in turn."""
    specs = CATALOG if policies is None else policies
    if objective is not None:
        specs = [with_objective(spec, str(objective)) for spec in specs]
    made = {each.name: each for each in map(policy, dict.fromkeys(specs))}.values()
    found = []
    for problem in problems:
        judge = Judge.of(problem, boundary, objective)
        plans, without = plans_of(judge, _told(list(made), progress))
        each = Comparison(problem, tuple(plans), tuple(without), objective)
        found.append(replace(each, plans=tuple(sorted(plans, key=each.rank))))
    return found


def _told(policies: list[Policy], progress: Progress | None) -> Iterator[Policy]:
    """Yield policies; tell of each when its turn comes."""
    for k, each in enumerate(policies):
        if progress is not None:
            progress(each.name, k, len(policies))
        yield each
