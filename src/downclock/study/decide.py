"""Plan and simulate with a policy by name, as a value, or with the usual one for the problem."""

from __future__ import annotations

from downclock.engine.policy import Policy
from downclock.planners import portfolio
from downclock.problem.problem import Problem
from downclock.schedule.schedule import Schedule
from downclock.simulate import simulate as simulation
from downclock.simulate.chances import NOISELESS, Chances
from downclock.study.baselines import chosen_policy, require_able


def plan(
    problem: Problem,
    policy: str | Policy | None = None,
    *,
    objective: str | None = None,
    seed: int | None = None,
    effort: float | None = None,
) -> Schedule:
    """Plan the whole problem: everything in it is known.

    Args:
        problem: what is asked.
        policy: a spec such as ``edl:theta=0.9``, or a policy; the usual one for such a problem
            when not given.
        objective: cost, carbon, energy or a sum, for policies that plan by one.
        seed: of policies that draw.
        effort: seconds of search, for policies that have an effort.

    Raises:
        InvalidInput: an unknown policy, or one that cannot plan such problems; those that can are
            named.
    """
    chosen = chosen_policy(problem, policy, objective=objective, seed=seed, effort=effort)
    require_able(problem, chosen)
    return portfolio.planned(problem, chosen)[0]


def simulate(
    problem: Problem,
    policy: str | Policy | None = None,
    *,
    chances: Chances = NOISELESS,
    seed: int = 0,
) -> simulation.Run:
    """Plan, and see what becomes of it when run times vary and things fail.

    Args:
        problem: what is asked.
        policy: as in `plan`.
        chances: what may happen, such as ``Chances(actual="uniform:0.5:1")``.
        seed: of the draws.

    Raises:
        InvalidInput: as `plan`, or the plan cannot meet what varies.
    """
    chosen = chosen_policy(problem, policy, known=False)
    require_able(problem, chosen)
    return simulation.simulate(problem, chosen, chances=chances, seed=seed)
