"""Plans where all is known: beside every policy, beside bounds, and small ones beside the optimum.

    python -m benchmarks.known [--files 66] [--small 10] [--days 3] [--objective cost] [--seed 1000]

Own files: three kinds (2 × 8 A100, 3 × 4 V100, 4 × 2 CPU) with host, sleep and wake power, 3 to 200
jobs; with an objective at hourly prices or carbon. Two: 5 and 10 jobs on 2 × 4 A100. Days: 175
tasks of workflows under hourly prices on 4 × 4 GPUs, in money, with an effort of 20 unless said.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
from tests.planners.cluster.known.clusters import busy_day, day_prices, own_cluster, two_by_four

import downclock as dc
from downclock.planners.portfolio import planned
from downclock.problem.price import Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.study.baselines import chosen_policy
from downclock.study.objective_value import objective_or_none
from downclock.study.planned import Judge, Planned

COUNTS = (3, 5, 8, 12, 16, 20, 30, 50, 80, 120, 200)
FIRST = 1000
"""Seeds from here on belong to this file."""

DAY_EFFORT = 20.0
"""About ten seconds of CPU time."""

RIVALS = ("late", "prompt", "race", "static-cap", "edl", "edf-bf", "edf-wf", "lpt-ff", "bin")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=66)
    parser.add_argument("--small", type=int, default=10)
    parser.add_argument("--days", type=int, default=3)
    parser.add_argument("--effort", type=float, default=None)
    parser.add_argument("--objective", default=None, help="of own files: cost or carbon")
    parser.add_argument("--seed", type=int, default=FIRST, help="the first")
    asked = parser.parse_args()
    own_files(range(asked.seed, asked.seed + asked.files), asked.effort, asked.objective)
    two(range(asked.seed, asked.seed + asked.small), asked.effort)
    days(asked.days, asked.seed, asked.effort or DAY_EFFORT)


def timed(
    problem: Problem, effort: float | None, objective: str | None = None
) -> tuple[Planned, float]:
    """What `downclock plan` says, and how many seconds it took."""
    start = time.process_time()
    chosen = chosen_policy(problem, objective=objective, effort=effort)
    plan = Judge.of(problem, objective=objective_or_none(objective)).planned(chosen, prove=True)
    return plan, time.process_time() - start


def own_files(seeds: range, effort: float | None, objective: str | None) -> None:
    """Jobs done and energy, or what is asked, beside every policy; certified gaps by size."""
    worse, won, gaps, saved = 0, 0, [], []
    for seed in seeds:
        jobs = COUNTS[seed % len(COUNTS)]
        problem = own_cluster(seed, jobs)
        if objective is not None:
            problem = replace(problem, prices=hourly(np.random.default_rng(seed), objective))
        plan, seconds = timed(problem, effort, objective)
        ranks = [rank(each) for each in rivals(problem, objective)]
        done, worth = rank(plan)
        worse += any(each < (done, worth * (1.0 - 1e-9)) for each in ranks)
        won += plan.policy.startswith("known")
        best = min(each for each in ranks if each[0] == min(ranks)[0])
        saved.append(1.0 - worth / best[1] if best[0] == done else np.nan)
        gaps.append((jobs, plan.gap if plan.value is None else plan.value.gap))
        print(
            f"own {seed} jobs {jobs} by {plan.policy}: {seconds:.1f} s, gap {100 * gaps[-1][1]:.2f}"
            f" %, {100 * saved[-1]:.1f} % below the best policy",
            flush=True,
        )
    if gaps:
        few, many = ([g for n, g in gaps if (n > 20) == large] for large in (False, True))
        print(f"worse than a policy: {worse} of {len(gaps)}; the search won {won}")
        print(f"below the best policy, mean: {100 * np.nanmean(saved):.1f} %")
        print(f"mean gap, up to 20 jobs: {mean(few)} %; above: {mean(many)} %")


def mean(gaps: list[float]) -> str:
    return f"{100 * np.mean(gaps):.2f}" if gaps else "-"


def rank(plan: Planned) -> tuple[int, float]:
    """Jobs done, as a negative number, and joules or what was asked."""
    return -plan.done, plan.bill.total_j if plan.value is None else plan.value.amount


def hourly(rng: np.random.Generator, objective: str) -> Prices:
    """Four days of hourly prices, or the same as carbon."""
    zone = day_prices(rng).zones[0][1]
    return Prices((("default", ZonePrices(carbon=zone.price) if objective == "carbon" else zone),))


def rivals(problem: Problem, objective: str | None) -> Iterator[Planned]:
    """Every policy of the catalogue for clusters."""
    judge = Judge.of(problem, objective=objective_or_none(objective))
    aware = () if objective is None else (f"thrifty:objective={objective}",)
    for name in (*RIVALS, *aware):
        made = dc.policy(name)
        if made.objection(problem) is None:
            yield judge.given(planned(problem, made)[0])


def two(seeds: range, effort: float | None) -> None:
    """Gap to the proven optimum on 2 × 4 GPUs."""
    for jobs in (5, 10) if seeds else ():
        gaps, spent = [], []
        for seed in seeds:
            plan, seconds = timed(two_by_four(seed, jobs), effort)
            gaps.append(plan.gap)
            spent.append(seconds)
        proven = sum(gap < 1e-6 for gap in gaps)
        print(
            f"two {jobs} jobs: proven optimal {proven} of {len(gaps)}, mean gap"
            f" {100 * np.mean(gaps):.2f} %, most seconds {max(spent):.1f}",
            flush=True,
        )


def days(count: int, first: int, effort: float) -> None:
    """Workflows and prices at once; what a planner blind to prices pays stands beside."""
    drawn = (busy_day(first + i, 175, workflows=True, prices=True) for i in range(9 * count))
    known = (each for each in drawn if each.tasks.deadline_s.max() <= 96 * 3600.0)  # as are prices
    for i, problem in enumerate(islice(known, count)):
        plan, seconds = timed(problem, effort, "cost")
        blind = dc.account(problem, dc.plan(problem, chosen_policy(problem))).money
        greedy = dc.account(problem, dc.plan(problem, "known:objective=cost,effort=0")).money
        money, gap = plan.bill.money, plan.value.gap if plan.value else np.nan
        print(
            f"day {i}: {plan.done} of 175 done for {money:.3f} in {seconds:.1f} s, gap"
            f" {100 * gap:.1f} %; job by job {greedy:.3f}, blind to prices {blind:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
