"""A plan that was verified, what it took, and how far it is from the bound."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from downclock.engine.play import plan
from downclock.planners.catalog import policy
from downclock.planners.per_task import per_task_bound_j
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE, Schedule
from downclock.schedule.verify.verify import verify


def verified(problem: Problem, spec: str, *, whole: bool = False) -> tuple[Schedule, float]:
    """Return a policy's schedule and its CPU seconds; ends here if it is not valid.

    Args:
        problem: what is planned.
        spec: the policy.
        whole: whether all tasks have to be done.
    """
    begin = time.process_time()
    schedule = plan(replace(problem), policy(spec))  # no one finds what another has computed
    seconds = time.process_time() - begin
    verdict = verify(problem, schedule)
    lost = int(np.sum(schedule.outcomes.status != DONE))
    if not verdict.ok or (whole and lost):
        raise SystemExit(f"{problem.name} {spec}: {verdict}; {lost} tasks are not done")
    return schedule, seconds


def gap(problem: Problem, spec: str) -> tuple[float, int, float]:
    """Return (energy above the per-task bound of what is done, %; tasks not done; CPU seconds)."""
    schedule, seconds = verified(problem, spec)
    done = schedule.outcomes.status == DONE
    energy_j = float(account(problem, schedule).server_j.sum())
    bound_j = float(per_task_bound_j(problem)[done].sum())
    return 100.0 * (energy_j / bound_j - 1.0), int(np.sum(~done)), seconds


def show(
    label: str, made: Callable[[int], Problem], seeds: Iterable[int], specs: Sequence[str]
) -> None:
    """Print mean and worst gap of each policy on a problem a seed."""
    problems = [made(seed) for seed in seeds]
    for spec in specs:
        rows = np.array([gap(problem, spec) for problem in problems])
        mean, worst = rows.mean(axis=0), rows.max(axis=0)
        print(
            f"{label:26s} {spec:8s} gap {mean[0]:8.3f} worst {worst[0]:8.3f} %"
            f"  refused {int(rows[:, 1].sum()):4d}  {mean[2]:6.2f} s",
            flush=True,
        )
