"""Simulate: what a policy promises, and what becomes of it.

run = simulate(problem, policy("edl"), chances=Chances(actual="uniform:0.5:1"), seed=1)
run.promised, run.realised      # two schedules, both for `verify` and `account`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from downclock.engine.outcome import done_late
from downclock.engine.play import play
from downclock.engine.policy import Policy
from downclock.errors import InvalidInput
from downclock.problem.problem import Problem
from downclock.schedule.schedule import DONE, FAILED, REJECTED, Schedule
from downclock.simulate.chances import NOISELESS, Chances, Fate, draw_fate
from downclock.simulate.drawn import drawn_world, noiseless_world
from downclock.units import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One simulated run.

    Attributes:
        problem: what was asked.
        promised: the plan, run times as estimated.
        realised: what happened. A task that was done too late counts as failed there, with a
            reason, as `verify` accepts no late one as done.
        events: arrivals, ends, failures, repairs and what the policy was told else.
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
        return done_late(self.realised.outcomes)

    @property
    def failed(self) -> Ints:
        """Tasks that failed for any reason, the late ones included."""
        return np.flatnonzero(self.realised.outcomes.status == FAILED)


def simulate(
    problem: Problem,
    policy: Policy,
    *,
    chances: Chances = NOISELESS,
    seed: int = 0,
    stepwise: bool = False,
) -> Run:
    """Play a policy in the world where estimates come true, and in one that is drawn.

    ``stepwise`` asks it moment by moment even where it offers to play whole runs; it changes
    nothing.

    Raises:
        InvalidInput: the policy cannot plan the problem, or its plan cannot meet what varies.
    """
    return simulate_many(problem, policy, chances=chances, seeds=(seed,), stepwise=stepwise)[0]


def simulate_many(
    problem: Problem,
    policy: Policy,
    *,
    chances: Chances = NOISELESS,
    seeds: tuple[int, ...] = (0,),
    stepwise: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[Run]:
    """Simulate several fates of one problem; it is planned once. Tells of each run beforehand."""
    played = partial(play, problem, policy, retries=chances.retries, stepwise=stepwise)
    promised = played(noiseless_world(problem)).schedule
    runs: list[Run] = []
    for seed in seeds:
        if progress is not None:
            progress(f"simulating run {seed}", len(runs), len(seeds))
        fate = draw_fate(problem, chances, seed)
        _refuse_shared_clocks(problem, promised, fate)
        real = played(drawn_world(problem, fate))
        runs.append(Run(problem, promised, real.schedule, real.events, seed))
    return runs


def _refuse_shared_clocks(problem: Problem, promised: Schedule, fate: Fate) -> None:
    """What a common clock should be when one task is late is a decision that no plan holds."""
    crowded = np.bincount(problem.platform.chip) > 1
    if fate.noiseless or not crowded.any():
        return
    segments = promised.segments
    mine = crowded[problem.platform.chip[segments.processor]]
    if np.any(mine) and np.ptp(segments.points[mine], axis=0).max() > 0.0:
        rule = "its processors share a clock: what varies cannot be carried out as planned"
        raise InvalidInput(rule, item=f"problem '{problem.name}'")
