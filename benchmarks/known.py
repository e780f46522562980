"""Plans where all is known: beside every policy, beside bounds, and small ones beside the optimum.

Own files: three kinds (2 × 8 A100, 3 × 4 V100, 4 × 2 CPU) with host, sleep and wake power, 3 to 200
jobs. Two: 5 and 10 jobs on 2 × 4 A100. Day: workflows under hourly prices on 4 × 4 GPUs, in money.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import islice

import numpy as np
from tests.planners.cluster.known.clusters import busy_day, own_cluster, two_by_four

import downclock as dc
from downclock.planners.portfolio import planned
from downclock.problem.problem import Problem
from downclock.study.baselines import chosen_policy
from downclock.study.objective_value import objective_or_none
from downclock.study.planned import Judge, Planned

COUNTS = (3, 5, 8, 12, 16, 20, 30, 50, 80, 120, 200)
FIRST = 1000
"""Seeds from here on belong to this file."""

RIVALS = ("late", "prompt", "race", "static-cap", "edl", "edf-bf", "edf-wf", "lpt-ff", "bin")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=66)
    parser.add_argument("--small", type=int, default=10)
    parser.add_argument("--days", type=int, default=3)
    parser.add_argument("--effort", type=float, default=None)
    asked = parser.parse_args()
    own_files(asked.files, asked.effort)
    two(asked.small, asked.effort)
    days(asked.days, asked.effort)


def timed(
    problem: Problem, effort: float | None, objective: str | None = None
) -> tuple[Planned, float]:
    """What `downclock plan` says, and how many seconds it took."""
    start = time.process_time()
    chosen = chosen_policy(problem, objective=objective, effort=effort)
    plan = Judge.of(problem, objective=objective_or_none(objective)).planned(chosen, prove=True)
    return plan, time.process_time() - start


def own_files(count: int, effort: float | None) -> None:
    """Jobs done and energy beside every policy; certified gaps by size."""
    worse, won, gaps, saved = 0, 0, [], []
    for i in range(count):
        jobs = COUNTS[i % len(COUNTS)]
        problem = own_cluster(FIRST + i, jobs)
        plan, seconds = timed(problem, effort)
        ranks = [(-each.done, each.bill.total_j) for each in rivals(problem)]
        worse += any(rank < (-plan.done, plan.bill.total_j * (1.0 - 1e-9)) for rank in ranks)
        won += plan.policy.startswith("known")
        best = min(rank for rank in ranks if rank[0] == min(ranks)[0])
        saved.append(1.0 - plan.bill.total_j / best[1] if -best[0] == plan.done else np.nan)
        gaps.append((jobs, plan.gap))
        print(
            f"own {i} jobs {jobs} by {plan.policy}: {seconds:.1f} s, gap {100 * plan.gap:.2f} %,"
            f" {100 * saved[-1]:.1f} % below the best policy",
            flush=True,
        )
    few = [gap for jobs, gap in gaps if jobs <= 20]
    many = [gap for jobs, gap in gaps if jobs > 20]
    print(f"worse than a policy: {worse} of {count}; the search won {won}")
    print(f"below the best policy, mean: {100 * np.nanmean(saved):.1f} %")
    print(
        f"mean gap, up to 20 jobs: {100 * np.mean(few):.2f} %; above: {100 * np.mean(many):.2f} %"
    )


def rivals(problem: Problem) -> Iterator[Planned]:
    """Every policy of the catalogue for clusters."""
    judge = Judge.of(problem)
    for name in RIVALS:
        made = dc.policy(name)
        if made.objection(problem) is None:
            yield judge.given(planned(problem, made)[0])


def two(count: int, effort: float | None) -> None:
    """Gap to the proven optimum on 2 × 4 GPUs."""
    for jobs in (5, 10):
        gaps, spent = [], []
        for i in range(count):
            plan, seconds = timed(two_by_four(FIRST + i, jobs), effort)
            gaps.append(plan.gap)
            spent.append(seconds)
        proven = sum(gap < 1e-6 for gap in gaps)
        print(
            f"two {jobs} jobs: proven optimal {proven} of {count}, mean gap"
            f" {100 * np.mean(gaps):.2f} %, most seconds {max(spent):.1f}",
            flush=True,
        )


def days(count: int, effort: float | None) -> None:
    """Workflows and prices at once; what a planner blind to prices pays stands beside."""
    drawn = (busy_day(FIRST + i, 175, workflows=True, prices=True) for i in range(9 * count))
    known = (each for each in drawn if each.tasks.deadline_s.max() <= 96 * 3600.0)  # as are prices
    for i, problem in enumerate(islice(known, count)):
        plan, seconds = timed(problem, effort, "cost")
        blind, _ = timed(problem, effort)
        first = dc.account(problem, dc.plan(problem, "known:objective=cost,effort=0")).money
        money, gap = plan.bill.money, plan.value.gap if plan.value else np.nan
        print(
            f"day {i}: {plan.done} of 175 done for {money:.3f} in {seconds:.1f} s, gap"
            f" {100 * gap:.1f} %; job by job {first:.3f}, blind to prices {blind.bill.money:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
