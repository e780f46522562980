"""Everything is known: plans of policies, and a search over whole plans from the best on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

from downclock.engine.policy import Policy
from downclock.planners.offline_solver import CarriedOut
from downclock.planners.portfolio import Progress, best_of, planned
from downclock.problem.objective import Objective
from downclock.problem.problem import Problem
from downclock.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True)
class KnownPolicy:
    """Plan clusters with all arrivals in view; so it is a tuner, no policy.

    Attributes:
        name: name in the catalogue.
        objective: what is to be least.
        effort: about seconds of search.
        seed: of the search.
        begin: policies whose plans the search begins with, those that apply.
    """

    name: str
    objective: Objective
    effort: float = 1.0
    seed: int = 0
    begin: tuple[Policy, ...] = ()

    def objection(self, problem: Problem) -> str | None:
        """Continuous time, a clock for each processor, prices where they count."""
        from downclock.planners.cluster.known.question import objection

        return objection(problem, self.objective)

    def whole(self, problem: Problem, progress: Progress | None = None) -> Schedule:
        """The plan; that of a policy to begin with, where it is the best, keeps its name."""
        from downclock.planners.cluster.known.solve import NAME, search_known

        able = (each for each in self.begin if each.objection(problem) is None)
        given = [planned(problem, each)[0] for each in able]
        found = search_known(
            *(problem, self.objective),
            effort=self.effort, seed=self.seed, start=given, progress=progress,
        ).schedule  # fmt: skip
        return replace(found, policy=self.name) if found.policy == NAME else found

    def tuned(self, problem: Problem) -> CarriedOut:
        """A policy that carries out the plan."""
        return CarriedOut.of(self.name, problem, planned(problem, cast(Policy, self))[0])


def best_known(
    problem: Problem,
    policies: Iterable[Policy],
    search: KnownPolicy,
    progress: Progress | None = None,
) -> Policy | None:
    """The best of some policies, or a search that betters it; None: none can plan the problem.

    It searches from the best plan on, and from nothing: either may end in another valley. Each has
    draws of its own, as they begin alike where a plan made job by job is better than all policies'.
    """
    best = best_of(problem, policies, search.objective, progress)
    if search.effort <= 0.0 or search.objection(problem) is not None:
        return best
    other = [] if best is None else [replace(search, begin=(best,), seed=search.seed + 1)]
    searches = [*other, search]
    for each in searches:
        planned(problem, cast(Policy, each), progress)
    found = best_of(problem, [cast(Policy, each) for each in searches], search.objective)
    made = planned(problem, cast(Policy, found))[0]
    return found if made.policy == search.name else best
