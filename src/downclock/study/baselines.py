"""Which policy plans a problem, and what its plan is compared with."""

from __future__ import annotations

from downclock.engine.policy import Policy
from downclock.errors import InvalidInput, require_type
from downclock.kernels.compiling import available
from downclock.planners.catalog import (
    CATALOG,
    policy,
    with_choices,
    with_objective,
    with_parameter,
)
from downclock.planners.default import DEFAULT, SEARCHED, default_policy
from downclock.planners.portfolio import Progress
from downclock.problem.objective import ENERGY, Objective
from downclock.problem.problem import Problem

BASELINES = ("race", "static-cap")
"""What a plan is compared with: full speed, and the best single clock for all jobs."""

GRAPH_BASELINES = ("graph:rule=lpt,clocks=single", "graph:rule=lpt")
"""The same for task graphs: gerards' list schedule at one clock, and at its best clocks."""

SLOT_BASELINES = ("least-cost:objective=energy",)
"""The same for task graphs in slots: blind to prices."""


def as_policy(given: str | Policy) -> Policy:
    """Make a policy of a spec; what is one already stays.

    Raises:
        InvalidInput: neither, or an unknown one.
    """
    if not hasattr(given, "objection"):
        require_type(given, str, "the name of a policy or a policy", field="policy")
    return policy(given) if isinstance(given, str) else given


def require_able(problem: Problem, chosen: Policy) -> None:
    """Refuse a policy that cannot plan such a problem; those of the catalogue that can are named.

    Raises:
        InvalidInput: with the policy's own reason.
    """
    objection = chosen.objection(problem)
    if objection is None:
        return
    able = [name for name in CATALOG if policy(name).objection(problem) is None]
    others = f"these can: {', '.join(able)}" if able else "no policy of the catalogue can"
    raise InvalidInput(f"{objection}; {others}", item=f"policy '{chosen.name}'")


def chosen_policy(
    problem: Problem,
    given: str | Policy | None = None,
    *,
    objective: str | None = None,
    seed: int | None = None,
    effort: float | None = None,
    known: bool = True,
    progress: Progress | None = None,
) -> Policy:
    """The policy to plan with: the one given, or the usual one for such a problem.

    ``known``: the whole problem is known, not only what has arrived. One that is named plans by
    the objective, and draws with the seed, where it can; a value stays as it is.

    Raises:
        InvalidInput: an unknown policy, or one without an effort where one is asked for.
    """
    require_type(problem, Problem, "a Problem (dc.load_problem reads one)", field="problem")
    if given is not None and not isinstance(given, str):
        return as_policy(given)
    if given is None:
        return default_policy(
            problem, objective, known=known, effort=effort, seed=seed, progress=progress
        )
    return policy(with_choices(given, objective, seed, effort))


def searches_briefly(problem: Problem, objective: str | None = None) -> bool:
    """Tell whether the usual plan is searched for less than it would be once that is compiled."""
    from downclock.planners.cluster.known.solve import usual_effort

    jobs = len(problem.tasks)
    if not available() or jobs > SEARCHED or usual_effort(jobs) >= 1.0:
        return False
    return policy(with_choices("known", objective, None)).objection(problem) is None


def usual_baselines(
    problem: Problem, plan: str, objective: Objective | None = None
) -> list[Policy]:
    """What a plan of such a problem is compared with, under the limits of the plan's spec.

    Where prices count: full speed and our price-blind plan, and full speed at cheap hours, so
    that the worth of clocks and that of prices can be told apart.
    """
    if len(problem.edges):
        for specs in (GRAPH_BASELINES, SLOT_BASELINES):
            made = named_baselines(plan, specs)
            if plan in specs or not made or made[-1].objection(problem) is None:
                return made
    if objective is None or objective == ENERGY:
        return named_baselines(plan, BASELINES)
    at_cheap_hours = with_objective("thrifty:dvfs=off", str(objective))
    return named_baselines(plan, ("race", at_cheap_hours, DEFAULT))


def named_baselines(plan: str, specs: tuple[str, ...]) -> list[Policy]:
    """Make the baselines named, under the limits of the plan's spec; the plan itself is none."""
    limited = [with_limits_of(plan, spec) for spec in specs]
    return [made for made in map(policy, (s for s in limited if s != plan)) if made.name != plan]


def with_limits_of(spec: str, baseline: str) -> str:
    """Return the baseline's spec with the patience and the time that ``spec`` asks for, if any."""
    given = dict(part.partition("=")[::2] for part in spec.partition(":")[2].split(",") if part)
    entry = CATALOG.get(baseline.partition(":")[0])  # an unknown one is refused where it is made
    for name in ("rho", "seconds", "rounds"):
        if name in given and entry is not None and name in entry.defaults:
            baseline = with_parameter(baseline, name, given[name])
    return baseline
