"""Everything is known: plans of policies, and a search over whole plans from the best on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from downclock.engine.policy import Policy
from downclock.planners.offline_solver import CarriedOut
from downclock.planners.portfolio import Progress, best_of, planned, ranks, timed
from downclock.problem.objective import ENERGY, Objective
from downclock.problem.problem import Problem
from downclock.schedule.schedule import Schedule

BRIEF = 1.0
"""Effort from which on a search goes on from what so much of it finds."""

AGREE = 1e-6
"""Part by which two plans may differ that are the same."""


@dataclass(frozen=True, slots=True)
class KnownPolicy:
    """Plan clusters with all arrivals in view; so it is a tuner, no policy.

    Attributes:
        name: name in the catalogue.
        objective: what is to be least.
        effort: about seconds of search.
        seed: of the search.
        begin: policies whose plans the search begins with, those that apply.
        proof: effort of the proof that may better a small plan; None: that of the search.
    """

    name: str
    objective: Objective
    effort: float = 1.0
    seed: int = 0
    begin: tuple[Policy, ...] = ()
    proof: float | None = None

    @property
    def proof_effort(self) -> float:
        """Effort of the proof."""
        return self.effort if self.proof is None else self.proof

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
            *(problem, self.objective), effort=self.effort, seed=self.seed, start=given,
            proof=self.proof_effort, progress=progress,
        ).schedule  # fmt: skip
        return replace(found, policy=self.name) if found.policy == NAME else found

    def tuned(self, problem: Problem) -> CarriedOut:
        """A policy that carries out the plan."""
        return CarriedOut.of(self.name, problem, planned(problem, _as_policy(self))[0])


def best_known(
    problem: Problem,
    policies: Iterable[Policy],
    search: KnownPolicy,
    progress: Progress | None = None,
) -> Policy | None:
    """The best of some policies, or a search that betters it; None: none can plan the problem.

    More than a second of effort goes on from what a second finds, and another objective than energy
    from what a search for that finds too, so neither is worse.
    """
    if search.objection(problem) is not None:
        return best_of(problem, policies, search.objective, progress)
    if search.effort <= 0.0:
        return best_of(problem, policies, search.objective, progress) or _as_policy(search)
    (best, last, plan), seconds = timed(partial(_bettered, problem, policies, search, progress))
    if plan.policy != search.name:
        return best
    problem.once(("plan", last), lambda: (plan, seconds))
    return _as_policy(last)


def _bettered(
    problem: Problem, policies: Iterable[Policy], search: KnownPolicy, progress: Progress | None
) -> tuple[Policy | None, KnownPolicy, Schedule]:
    """The best policy, the last of the searches that better it, and its plan."""
    brief = replace(search, effort=min(search.effort, BRIEF))
    blind = _as_policy(replace(brief, objective=ENERGY, proof=0.0))
    begin = [*policies, *([] if search.objective == ENERGY else [blind])]
    best = found = best_of(problem, begin, search.objective, progress)
    for each in dict.fromkeys((brief, search)):
        tries = _searched(problem, replace(each, proof=0.0), found, progress)
        found = best_of(problem, tries, search.objective)
    last = replace(search, effort=0.0, begin=() if found is None else (found,), proof=search.effort)
    return best, last, last.whole(problem, progress)


def _searched(
    problem: Problem, search: KnownPolicy, best: Policy | None, progress: Progress | None
) -> list[Policy]:
    """Search from the best plan on, and from nothing: either may end in another valley.

    Each has draws of its own. Where few jobs make that quick there are more, until two agree.
    """
    from downclock.planners.cluster.known.solve import searches

    tries = [] if best is None else [replace(search, begin=(best,), seed=search.seed + 1)]
    tries += [search]
    count = max(len(tries), searches(len(problem.tasks), search.effort))
    tries += [replace(search, seed=search.seed + k) for k in range(len(tries), count)]
    policies = [_as_policy(each) for each in tries]
    for k, each in enumerate(policies):
        planned(problem, each, progress)
        lost, cost = zip(*sorted(ranks(problem, policies[: k + 1], search.objective)), strict=True)
        if k > 0 and lost[0] == lost[1] and cost[1] - cost[0] <= AGREE * abs(cost[0]):
            return policies[: k + 1]
    return policies


def _as_policy(search: KnownPolicy) -> Policy:
    return cast(Policy, search)
