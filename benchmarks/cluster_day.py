"""A day of jobs: how far policies are from the bound, on sets nobody was tuned on.

    python -m benchmarks.cluster_day [single] [gangs] [odd] [weeks] [--seeds FIRST COUNT]
    python -m benchmarks.cluster_day large [--gpus 98304 ...]

Single: the papers' day and week and their batches. Gangs: the day with gangs of 1 to 32 GPUs on
servers of 4, 8 and 16; odd: of any size up to 24; weeks: seven such days. One row a setting: mean
and worst gap to the per-task bound in per cent (of the jobs that are done), jobs refused, CPU
seconds. Every schedule is verified. ``large``: 13 days of such jobs on servers of eight, 8.5 jobs a
GPU (so 98,304 GPUs have 833,000 jobs): CPU seconds of `late` and memory.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.measured import gap, show
from downclock.problem.problem import Problem
from downclock.workloads import mei

GANGS, CHANCES = np.array([1, 2, 4, 8, 16, 32]), np.array([0.7, 0.1, 0.08, 0.09, 0.025, 0.005])
ODD = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 24])
ODD_CHANCES = np.array([0.6, *(0.4 / 12,) * 12])
SPECS = ("late", "race", "edl")
DAYS, JOBS_A_GPU = 13, 8.474
FIRST, COUNT = 7100, 6


def day(
    seed: int, per_server: int, days: int = 1, sizes: np.ndarray = GANGS,
    chances: np.ndarray = CHANCES,
) -> Problem:  # fmt: skip
    """As many GPU-tasks a day as the papers' day has tasks, in gangs of these sizes."""
    mean = float(sizes @ chances)
    problem = mei.online(
        seed,
        utilisation=1.6 / mean,
        initial_utilisation=0.4 / mean,
        days=days,
        cluster=mei.Cluster(per_server=per_server),
    )
    return with_gangs(problem, seed, sizes, chances)


def with_gangs(
    problem: Problem, seed: int, sizes: np.ndarray = GANGS, chances: np.ndarray = CHANCES
) -> Problem:
    """The problem with gangs of drawn sizes."""
    gang = np.random.default_rng([seed, 18]).choice(sizes, len(problem.tasks), p=chances)
    return replace(problem, tasks=replace(problem.tasks, processors=gang))


def single(seeds: range) -> None:
    """Jobs of one GPU: days, weeks on servers of 16, batches."""
    for size in (1, 2, 4, 8, 16):
        cluster = mei.Cluster(per_server=size)
        show(f"single, l = {size}", lambda s, c=cluster: mei.online(s, cluster=c), seeds, ("late",))
    cluster = mei.Cluster(per_server=16)
    show("week, l = 16", lambda s: mei.online(s, cluster=cluster, days=7), seeds, ("late",))
    free = mei.Cluster(turn_on_j=0.0)
    for used in (0.2, 0.8, 1.6):
        made = _batch(used, free)
        show(f"batch, U = {used:g}, l = 16", made, seeds, ("late",))


def _batch(used: float, cluster: mei.Cluster) -> Callable[[int], Problem]:
    return lambda seed: mei.offline(seed, utilisation=used, cluster=cluster)


def gangs(seeds: range) -> None:
    """A day of gangs, beside the lists."""
    for size in (4, 8, 16):
        show(f"gangs, l = {size}", lambda s, n=size: day(s, n), seeds, SPECS)


def odd(seeds: range) -> None:
    """A day of gangs of any size."""
    for size in (4, 8, 16):
        show(
            f"odd gangs, l = {size}",
            lambda s, n=size: day(s, n, 1, ODD, ODD_CHANCES),
            seeds,
            ("late",),
        )


def weeks(seeds: range) -> None:
    """Seven days of gangs."""
    for size in (4, 8, 16):
        show(f"gangs, 7 days, l = {size}", lambda s, n=size: day(s, n, 7), seeds, ("late",))


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
    parts = {each.__name__: each for each in (single, gangs, odd, weeks)}
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["gangs"], choices=[*parts, "large"])
    parser.add_argument("--seeds", nargs=2, type=int, default=(FIRST, COUNT))
    parser.add_argument("--gpus", nargs="+", type=int, default=[98_304])
    asked = parser.parse_args()
    first, count = asked.seeds
    for name in asked.parts:
        if name == "large":
            for gpus in asked.gpus:
                large(gpus)
        else:
            parts[name](range(first, first + count))


if __name__ == "__main__":
    main()
