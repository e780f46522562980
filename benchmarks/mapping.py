"""Exact CPU-GPU mapping of 36 jobs and the search beside it: `python -m benchmarks.mapping [SEED]`.

Section 7 sets of liu with exactly 36 jobs, heavy load, both energy boundaries; wall clock times.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from benchmarks.exact_mapping import Choices, solve_mapping
from downclock.engine.view import View
from downclock.planners.mapping.levels import learn
from downclock.planners.mapping.replan import Held, Replan, Until, _Trial
from downclock.problem.problem import Problem
from downclock.workloads.liu import FAMILIES, Box, job_set

JOBS, TARGET_GAP, TARGET_S = 36, 0.002, 5.0


def with_jobs(family: str, box: Box, first: int) -> Problem:
    """The first set from a seed on that has exactly as many jobs as wanted."""
    for seed in range(first, first + 200):
        problem = job_set(seed, load="heavy", family=family, box=box)
        if len(problem.tasks) == JOBS:
            return problem
    raise AssertionError("no set of this size")


def trial_of(problem: Problem, until: Until) -> tuple[_Trial, float]:
    view = View(problem)
    book = Replan(until=until).start(view)
    learn(book.levels, view, view.tasks.add(problem.tasks, np.arange(len(problem.tasks))))
    for i, deadline_s in enumerate(problem.tasks.deadline_s.tolist()):
        book.held[i] = Held(i, deadline_s)
    return _Trial(book, 0.0), book.on_w


def one(problem: Problem, until: Until) -> tuple[float, float, float, float]:
    """Seconds and proven gap of the exact solution; excess and seconds of the search."""
    trial, on_w = trial_of(problem, until)
    began = time.perf_counter()
    _, place, (time_s, cost_j, _), due_s, leads = trial.options
    given = (time_s, cost_j, due_s, leads.astype(bool), trial.processors, on_w)
    choices = Choices(trial.owner, place, *given)
    found = solve_mapping(choices, gap=TARGET_GAP, limit_s=TARGET_S)
    exact_s = time.perf_counter() - began
    began = time.perf_counter()
    trial.search(on_w, 2e6)
    search_s = time.perf_counter() - began
    spans = np.bincount(place[trial.choice], time_s[trial.choice], trial.processors)
    cost = cost_j[trial.choice].sum() + on_w * spans.max()
    return exact_s, found.gap, cost / found.objective_j - 1.0, search_s


def main() -> None:
    first = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 0
    one(with_jobs("NMF", Box(), first), "horizon")
    boundaries: tuple[Until, ...] = ("horizon", "makespan")
    for until in boundaries:
        box = Box(system_w=100.0 if until == "makespan" else 0.0)
        rows = np.array(
            [
                one(with_jobs(family, box, first + 300 * k), until)
                for family in FAMILIES
                for k in range(5)
            ]
        )
        met = np.all((rows[:, 0] <= TARGET_S) & (rows[:, 1] <= TARGET_GAP + 1e-6))
        print(
            f"{until}: {len(rows)} sets of {JOBS} jobs; exact: mean {rows[:, 0].mean():.2f} s,"
            f" longest {rows[:, 0].max():.2f} s, largest gap {rows[:, 1].max():.2%}"
            f" ({'met' if met else 'MISSED'}); search: {rows[:, 2].mean():+.2%} on average,"
            f" {rows[:, 2].max():+.2%} at worst, {rows[:, 3].mean() * 1e3:.0f} ms"
        )


if __name__ == "__main__":
    main()
