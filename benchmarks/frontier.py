"""How many tasks a second get their best clocks: `python -m benchmarks.frontier`.

Every task is its own application, drawn from the ranges of mei2021 section 5.1.2 (as read from
its generator), on the Wide interval. Compiling is not counted. The naive rival tries a grid of
voltages and memory clocks for each task in turn, as the authors' public code does (step 0.05).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from downclock.power.frontier import Frontier, frontier
from downclock.power.library import Library
from downclock.power.points import MEI_LAW, WIDE
from downclock.power.profiles import GpuProfiles
from downclock.units import Floats, Ints

SIZES = (1_000, 10_000, 100_000, 1_000_000)
NAIVE_TASKS = 300
TARGET_FREE, TARGET_LIMIT = 1_000_000, 300_000
KIND = "gpu"


def draw(n: int, seed: int = 2021) -> Library:
    rng = np.random.default_rng(seed)
    peak = rng.uniform(175.0, 206.0, n)
    p0, gamma = peak * rng.uniform(0.20, 0.41, n), peak * rng.uniform(0.10, 0.20, n)
    d, t0 = rng.uniform(1.66, 7.61, n), rng.uniform(0.0, 0.95, n)
    profiles = GpuProfiles(p0, gamma, peak - p0 - gamma, d, rng.random(n), t0)
    return Library.of_one_kind(np.arange(n).astype(object), KIND, profiles)


def solve(library: Library, scale: Floats, application: Ints | None = None) -> Frontier:
    """Make the frontiers and take the free optimum of every task."""
    tasks = np.arange(len(library)) if application is None else application
    line = frontier(library, KIND, WIDE, tasks, scale)
    line.cheapest(0.0)
    return line


def limits(line: Frontier) -> Floats:
    """Draw limits between the shortest and the cheapest time, so that every one binds."""
    share = np.random.default_rng(1).random(len(line))
    return line.t_min_s + share * (line.t_opt_s - line.t_min_s)


def seconds(work: Callable[[], object], repeat: int = 5) -> float:
    """Return the least CPU time of several runs."""
    spent = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent)


def naive(profiles: GpuProfiles, limit_s: Floats) -> Floats:
    """Return each task's least energy on a grid, one task after the other."""
    volts = np.arange(WIDE.volt_min, WIDE.volt_max + 1e-9, 0.05)
    cores = [MEI_LAW.max_core(float(v)) for v in volts]
    memories = np.arange(WIDE.memory_min, WIDE.memory_max + 1e-9, 0.05)
    best = np.full(limit_s.size, np.inf)
    for i in range(limit_s.size):
        for core, volt in zip(cores, volts, strict=True):
            points = np.column_stack(
                [np.full(memories.size, core), memories, np.full(memories.size, volt)]
            )
            taken, power = profiles.at(np.full(memories.size, i), points)
            energy = np.where(taken <= limit_s[i], taken * power, np.inf)
            best[i] = min(best[i], float(energy.min()))
    return best


def main() -> int:
    warm = solve(draw(10), np.ones(10))
    warm.within(limits(warm))
    print(f"{'tasks':>10}  {'free, tasks/s':>14}  {'with limit, tasks/s':>20}  {'us a task':>10}")
    free = limited = 0.0
    for n in SIZES:
        free, limited = measure(draw(n), np.arange(n))
        print(f"{n:>10,}  {free:>14,.0f}  {limited:>20,.0f}  {1e6 / limited:>10.2f}")
    shared = measure(draw(30), np.random.default_rng(4).integers(0, 30, SIZES[-1]))
    print(f"{SIZES[-1]:>10,}  {shared[0]:>14,.0f}  {shared[1]:>20,.0f}  of 30 applications")
    compare(free, limited)
    good = free >= TARGET_FREE and limited >= TARGET_LIMIT
    verdict = "met" if good else "MISSED"
    print(f"target {TARGET_FREE:,} free and {TARGET_LIMIT:,} with a limit: {verdict}")
    return 0 if good else 1


def measure(library: Library, application: Ints) -> tuple[float, float]:
    """Return tasks a second: free optimum, and frontier plus an answer within a limit."""
    scale = np.random.default_rng(3).integers(10, 51, application.size).astype(np.float64) * 60.0
    limit = limits(solve(library, scale, application))
    free_s = seconds(lambda: solve(library, scale, application))
    both_s = seconds(lambda: solve(library, scale, application).within(limit))
    return application.size / free_s, application.size / both_s


def compare(free: float, limited: float) -> None:
    """Print the ratio to the naive grid, and what the grid loses."""
    library = draw(NAIVE_TASKS)
    profiles = library.groups[0]
    assert isinstance(profiles, GpuProfiles)
    line = solve(library, np.ones(NAIVE_TASKS))
    for name, limit, rate in (
        ("free", np.full(NAIVE_TASKS, np.inf), free),
        ("with a limit", limits(line), limited),
    ):
        spent = seconds(partial(naive, profiles, limit), repeat=1)
        grid = naive(profiles, limit)
        exact = line.within(limit).energy_j
        met = np.isfinite(grid)
        lost = float(np.mean(grid[met] / exact[met])) - 1.0
        print(
            f"naive grid, {name}: {NAIVE_TASKS / spent:,.0f} tasks/s, "
            f"{rate * spent / NAIVE_TASKS:,.0f} times slower; {lost:.2%} more energy, "
            f"no answer for {np.count_nonzero(~met)} of {NAIVE_TASKS} tasks"
        )


if __name__ == "__main__":
    sys.exit(main())
