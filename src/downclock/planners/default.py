"""The policy to use where none is named: by what is asked, and how much of it is known."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from downclock.engine.policy import Policy, foresees
from downclock.errors import InvalidInput
from downclock.planners.catalog import CATALOG, policy, with_choices, with_objective
from downclock.planners.known import KnownPolicy, best_known
from downclock.planners.portfolio import Progress
from downclock.problem.objective import parse_objective
from downclock.problem.problem import Problem

DEFAULT = "late"
"""The policy to use where none is named and jobs become known as they come."""

QUICK, MANY = ("late", "prompt", "thrifty", "race", "edl"), 20_000
"""What is tried of more tasks than this; of fewer, all of the catalogue is."""

SLOW, FEW = ("liu", "replan"), 100
"""What is tried of at most so many tasks."""

SEARCHED = 5_000
"""Tasks up to which plans are bettered by a search where nobody asks for it."""


def default_policy(
    problem: Problem,
    objective: str | None = None,
    *,
    known: bool = True,
    effort: float | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Policy:
    """The policy to use for a problem where none is named.

    Where all is known, for clusters the best of all that apply, or a search that goes on from it;
    else our own. For other problems the first that can plan them.

    Args:
        problem: what is asked.
        objective: what is to be least; None: what the policy for such problems is for, which is
            energy but for task graphs in slots.
        known: all of the problem may be looked at, not only what has arrived.
        effort: about seconds of search; when not given a second, less for few tasks, and where
            the search was not compiled (``downclock compile``) as much as it does in one plain.
        seed: of the search.
        progress: told of each policy.

    Raises:
        InvalidInput: no policy can plan such a problem by that objective, or none has an effort.
    """
    by = None if objective in (None, "energy") else objective
    if by is not None:
        _require_aware(problem, by, known=known)
    if not known:
        specs = [DEFAULT if by is None else "thrifty"]
    else:
        best = _best_known(problem, by, effort, seed, progress)
        if best is not None:
            return best
        specs = []
    specs += ["graph", *([] if objective == "energy" else ["least-cost"])]
    specs += [] if by else ["least-cost:objective=energy", "replan"]
    able = (spec for spec in specs if _able(problem, policy(with_choices(spec, by, seed)), known))
    slotted = known and problem.platform.slot_s is not None
    last = "least-cost" if slotted else DEFAULT  # who refuses says who else can
    return policy(with_choices(next(able, last), by, seed, effort))


def _able(problem: Problem, candidate: Policy, known: bool) -> bool:
    """Whether a policy can plan a problem of which all is known, or only what has arrived."""
    if not known and foresees(candidate) and np.any(problem.tasks.arrival_s > 0.0):
        return False
    return candidate.objection(problem) is None


def _best_known(
    problem: Problem,
    objective: str | None,
    effort: float | None,
    seed: int | None,
    progress: Progress | None,
) -> Policy | None:
    """The best of all that apply to a cluster, or a search that betters it."""
    from downclock.planners.cluster.known.solve import usual_effort

    count = len(problem.tasks)
    left = {"known", "least-cost", *(() if objective else ("thrifty",))}
    left |= set() if len(problem.edges) else {"graph"}
    left |= set() if count <= FEW else set(SLOW)
    names = [name for name in CATALOG if name not in left and (count <= MANY or name in QUICK)]
    tried = [*names, *([] if effort is None else [f"late:effort={effort:g}"])]
    spent = effort if effort is not None else usual_effort(count) if count <= SEARCHED else 0.0
    known = policy(with_choices("known", objective, seed, effort))
    search = replace(cast(KnownPolicy, known), effort=spent)
    made = [policy(with_choices(spec, objective, seed)) for spec in tried]
    return best_known(problem, made, search, progress)


def _require_aware(problem: Problem, objective: str, *, known: bool) -> None:
    """Refuse a problem that no policy can plan by an objective."""
    parse_objective(objective).require(problem.prices)
    why = []
    for name, entry in CATALOG.items():
        if "objective" in entry.defaults and (known or name != "known"):
            objection = policy(with_objective(name, objective)).objection(problem)
            if objection is None:
                return
            why.append(f"{name} {objection}")
    rule = f"has no policy that plans by {objective}: {'; '.join(why)}"
    raise InvalidInput(rule, item=f"problem '{problem.name}'")
