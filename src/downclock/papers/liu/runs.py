"""Runs of section 7's job sets: every scheme on the same jobs with the same actual times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from downclock.engine.policy import Policy
from downclock.papers.rows import Settings
from downclock.planners.mapping.mapping import Rules
from downclock.planners.mapping.policy import LiuPolicy
from downclock.planners.mapping.queue import LITERAL, SAFE_FREE
from downclock.planners.mapping.replan import Replan
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.simulate.simulate import simulate
from downclock.workloads.liu import FAMILIES, Box, job_set

SCHEMES: dict[str, Policy] = {
    "ERF": LiuPolicy("erf", Rules("erf-execution")),
    "ERF-response": LiuPolicy("erf-response", Rules("erf-response")),
    "Static": LiuPolicy("static", Rules("static", LITERAL)),
    "Dynamic": LiuPolicy("dynamic", Rules("dynamic", LITERAL)),
    "Dynamic, no balancing": LiuPolicy("unbalanced", Rules("dynamic", LITERAL, math.inf)),
    "Aggressive": LiuPolicy("aggressive", Rules("aggressive", LITERAL)),
    "Safe": LiuPolicy("safe", Rules("dynamic", SAFE_FREE, math.inf)),
    "Ours, horizon": Replan("ours-horizon"),
    "Ours, makespan": Replan("ours-makespan", until="makespan"),
}
"""The paper's schemes as printed, the safe Dynamic without balancing, and ours."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What a run took.

    Attributes:
        above_idle_j: energy above idle, for a common horizon.
        total_j: all energy until the last job is done, the system's included.
        makespan_s: when that is.
        missed, rejected: jobs.
    """

    above_idle_j: float
    total_j: float
    makespan_s: float
    missed: int
    rejected: int


Ends: TypeAlias = dict[str, list[Ended]]
"""Runs of every scheme, set by set."""


def ended(problem: Problem, policy: Policy, seed: int) -> Ended:
    """Run a policy and bill what happened."""
    run = simulate(problem, policy, seed=seed)
    bill = account(problem, run.realised, boundary="makespan")
    segments = run.realised.segments
    idle_w = problem.platform.idle_w[segments.processor]
    idle_j = float(np.sum((segments.end_s - segments.start_s) * idle_w))
    above_idle_j, makespan_s = bill.energy_j["run"] - idle_j, run.realised.makespan_s
    return Ended(above_idle_j, bill.total_j, makespan_s, run.late.size, run.rejected.size)


def sets(
    settings: Settings, load: str, box: Box, *, families: Iterable[str] = FAMILIES, **how: Any
) -> Iterator[tuple[int, Problem]]:
    """Job sets of a load: ``settings.sets`` of every family, with their seeds; see `job_set`."""
    for family in families:
        for seed in settings.seeds:
            yield seed, job_set(seed, load=load, family=family, box=box, **how)


def table(found: Iterator[tuple[int, Problem]], schemes: dict[str, Policy]) -> Ends:
    """Run every scheme on every set."""
    ends: Ends = {name: [] for name in schemes}
    for seed, problem in found:
        for name, policy in schemes.items():
            ends[name].append(ended(problem, policy, seed))
    return ends


def aggressive(caution: float) -> Policy:
    """Aggressive with the paper's K."""
    return LiuPolicy("aggressive", Rules("aggressive", LITERAL, caution=caution))


def cpu_only(policy: Policy) -> Policy:
    """The same scheme with the GPU at its top level (Fig. 5c-d)."""
    assert isinstance(policy, LiuPolicy)
    return replace(policy, rules=replace(policy.rules, scaled=(0,)))
