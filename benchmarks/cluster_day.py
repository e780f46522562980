"""A day of jobs with gangs: how far policies are from the bound, on sets nobody was tuned on.

    python -m benchmarks.cluster_day [first seed] [sets]
    python -m benchmarks.cluster_day large [GPUs ...]

The papers' day with gangs of 1 to 32 GPUs on servers of 4, 8 and 16; one row a setting: mean and
worst gap to the per-task bound in per cent (of the jobs that are done), jobs refused, CPU seconds.
Every schedule is verified. ``large``: 13 days of such jobs on servers of eight, 8.5 jobs a GPU (so
98,304 GPUs have 833,000 jobs): CPU seconds of `late` and memory.
"""

from __future__ import annotations

import resource
import sys
from dataclasses import replace

import numpy as np

from benchmarks.measured import gap, show
from downclock.problem.problem import Problem
from downclock.workloads import mei

GANGS, CHANCES = np.array([1, 2, 4, 8, 16, 32]), np.array([0.7, 0.1, 0.08, 0.09, 0.025, 0.005])
SPECS = ("late", "race", "edl")
DAYS, JOBS_A_GPU = 13, 8.474


def day(seed: int, per_server: int) -> Problem:
    """As many GPU-tasks as the papers' day has tasks."""
    mean = float(GANGS @ CHANCES)
    problem = mei.online(
        seed,
        utilisation=1.6 / mean,
        initial_utilisation=0.4 / mean,
        cluster=mei.Cluster(per_server=per_server),
    )
    return with_gangs(problem, seed)


def with_gangs(problem: Problem, seed: int) -> Problem:
    gang = np.random.default_rng([seed, 18]).choice(GANGS, len(problem.tasks), p=CHANCES)
    return replace(problem, tasks=replace(problem.tasks, processors=gang))


def large(gpus: int) -> None:
    """Print how long a large cluster takes."""
    drawn = mei.online(
        1, utilisation=JOBS_A_GPU * gpus / (2 * mei.BASE_PAIRS * DAYS), initial_utilisation=0.0,
        days=DAYS, cluster=mei.Cluster(gpus, 8),
    )  # fmt: skip
    problem = with_gangs(drawn, 1)
    above, lost, seconds = gap(problem, "late")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    print(
        f"{gpus:,} GPUs, {len(problem.tasks):,} jobs: {seconds:.1f} s, gap {above:.3f} %,"
        f" refused {lost}, peak {peak_mb:,.0f} MB",
        flush=True,
    )


def main() -> None:
    if sys.argv[1:2] == ["large"]:
        for word in sys.argv[2:] or ["98304"]:
            large(int(word))
        return
    given = [int(word) for word in sys.argv[1:3]]
    first, sets = (*given, *(7100, 6)[len(given) :])
    for size in (4, 8, 16):
        seeds = range(first, first + sets)
        show(f"l = {size}", lambda seed, n=size: day(seed, n), seeds, SPECS)


if __name__ == "__main__":
    main()
