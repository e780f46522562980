"""Simulate: what a policy promises, and what becomes of it.

run = simulate(problem, policy("edl"), chances=Chances(actual="uniform:0.5:1"), seed=1)
run.promised, run.realised      # two schedules, both for `verify` and `account`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from downclock.engine.engine import plan
from downclock.engine.policy import Policy, View
from downclock.errors import InvalidInput
from downclock.planners.cluster.reserve import Rolling
from downclock.planners.mapping.reacting import Reactive
from downclock.problem.problem import Problem
from downclock.schedule.schedule import DONE, FAILED, REJECTED, Schedule
from downclock.simulate.chances import CALM, Chances, draw_fate
from downclock.simulate.promises import carry_out, finish_s
from downclock.simulate.reacting import react_to
from downclock.simulate.rolling import only_run_times, roll_out
from downclock.units import Ints, slack


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One simulated run.

    Attributes:
        problem: what was asked.
        promised: the plan, run times as estimated.
        realised: what happened. A task that was done too late counts as failed there, with a
            reason, as `verify` accepts no late one as done.
        events: arrivals, starts, ends, failures, repairs and power changes.
        seed: of the draws.
    """

    problem: Problem
    promised: Schedule
    realised: Schedule
    events: int
    seed: int

    @property
    def done(self) -> Ints:
        """Tasks done in time."""
        return np.flatnonzero(self.realised.outcomes.status == DONE)

    @property
    def rejected(self) -> Ints:
        """Tasks that were turned away or orphaned."""
        return np.flatnonzero(self.realised.outcomes.status == REJECTED)

    @property
    def late(self) -> Ints:
        """Tasks that were done, but after their deadline."""
        deadline_s = self.problem.tasks.deadline_s
        ends = finish_s(self.realised.segments, len(self.problem.tasks))
        over = ends > deadline_s + slack(deadline_s)
        failed = self.realised.outcomes.status == FAILED
        lost = np.array([str(r).startswith("lost") for r in self.realised.outcomes.reason])
        return np.flatnonzero(failed & over & ~lost)

    @property
    def failed(self) -> Ints:
        """Tasks that failed for any reason, the late ones included."""
        return np.flatnonzero(self.realised.outcomes.status == FAILED)


def simulate(problem: Problem, policy: Policy, *, chances: Chances = CALM, seed: int = 0) -> Run:
    """Plan and carry out; policies that react do both at once.

    Raises:
        InvalidInput: the policy cannot plan the problem, or its plan cannot meet what varies.
    """
    return simulate_many(problem, policy, chances=chances, seeds=(seed,))[0]


def simulate_many(
    problem: Problem,
    policy: Policy,
    *,
    chances: Chances = CALM,
    seeds: tuple[int, ...] = (0,),
    progress: Callable[[str, int, int], None] | None = None,
) -> list[Run]:
    """Simulate several fates of one problem; it is planned once. Tells of each run beforehand."""
    objection = policy.objection(problem)
    if objection is not None:
        raise InvalidInput(objection, item=f"policy '{policy.name}'")
    promised = plan(problem, policy)
    runs: list[Run] = []
    view = View(problem)
    for seed in seeds:
        if progress is not None:
            progress(f"simulating run {seed}", len(runs), len(seeds))
        fate = draw_fate(problem, chances, seed)
        if isinstance(policy, Reactive):
            ended = react_to(problem, policy, fate, chances.retries)
        elif isinstance(policy, Rolling) and only_run_times(chances):
            ended = roll_out(view, policy, fate)
        else:
            ended = carry_out(problem, promised, fate, chances.retries)
        runs.append(Run(problem, promised, ended.schedule, ended.events, seed))
    return runs
