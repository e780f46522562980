"""Deadline misses of liu's rules, and of the safe ones, under random arrivals.

Every job takes its worst case. The literal rules overlook that a slow running job blocks a GPU;
with locked clocks they also count on speeds that never come.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from downclock.papers.liu import PAPER
from downclock.papers.liu.examples import play
from downclock.papers.rows import Item, Row, Settings, claimed, ours_only
from downclock.planners.mapping.mapping import Mapping, Rules
from downclock.planners.mapping.queue import READINGS, Queue, Reading
from downclock.planners.mapping.rules import Job

LEVELS = {0: (2 / 3, 1.0), 1: (148 / 850, 500 / 850, 1.0)}
"""Table 2's clocks: CPU and GPU."""

UTILISATION = {"stress": (0.05, 0.6), "section 7": (0.001, 0.1)}
LOAD = {"stress": 1.6, "section 7": 1.2}
"""Loads of single jobs, and of all together (favourite processors, of two)."""

RULES = {
    "literal": "Theorem 3 and line 15",
    "literal-locked": "Theorem 3 and line 15, clocks locked",
    "theorem1": "Theorem 1 and line 15, which the paper rules out",
    "safe": "ours",
    "safe-locked": "ours, clocks locked",
}
"""Rules by their name in `READINGS`."""


class Count(NamedTuple):
    """Jobs by how they ended."""

    accepted: int
    rejected: int
    missed: int


def random_jobs(n: int, load: str, seed: int) -> list[Job]:
    """Jobs with Poisson arrivals whose GPU time is 0.7 to 6 times shorter than the CPU's."""
    rng = np.random.default_rng(seed)
    gpu = rng.uniform(0.6, 24.0, n)
    ratio = np.exp(rng.uniform(np.log(0.7), np.log(6.0), n))
    used = rng.uniform(*UTILISATION[load], n)
    times = np.column_stack([gpu * ratio, gpu])
    window = np.maximum(times.min(axis=1) / used, times.max(axis=1))
    arrival = np.cumsum(rng.exponential(times.min(axis=1).mean() / LOAD[load], n))
    columns = zip(arrival.tolist(), (arrival + window).tolist(), times.tolist(), strict=True)
    return [Job(i, start, due, tuple(lasts)) for i, (start, due, lasts) in enumerate(columns)]


def run_online(reading: Reading, jobs: list[Job]) -> Count:
    """Run jobs to their worst case on one CPU and one GPU."""
    queues = [Queue(0, True, LEVELS[0]), Queue(1, False, LEVELS[1])]
    mapping = Mapping(Rules(reading=reading), queues, now=0.0)
    accepted, ended = 0, []
    for job in jobs:
        ended += play(mapping, job.arrival)
        accepted += mapping.arrive(job) >= 0
    ended += play(mapping, math.inf)
    missed = sum(end > job.deadline * (1.0 + 1e-9) for end, job in ended)
    return Count(accepted, len(jobs) - accepted, missed)


def safety(settings: Settings) -> list[Row]:
    """Misses among accepted jobs: none, says Theorem 3 of its test with the levels of line 15."""
    n = 5_000 if settings.quick else 100_000
    where, rows = (PAPER, "safety"), []
    for load in UTILISATION:
        jobs = random_jobs(n, load, settings.seed)
        for name, words in RULES.items():
            found = run_online(READINGS[name], jobs)
            quantity = f"misses, {load}, {words}, {n:,} jobs"
            note = f"{found.rejected:,} rejected"
            if name == "literal":
                missed = float(found.missed)
                why = f"{note}; a slow running job blocks what was promised"
                rows.append(claimed(where, quantity, "<", 0.5, missed, "jobs", why))
            else:
                rows.append(ours_only(where, quantity, float(found.missed), "jobs", note))
    return rows


ITEMS = (Item("safety", "Deadline misses under random arrivals (Theorem 3)", safety),)
