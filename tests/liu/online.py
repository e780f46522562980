"""Random online jobs, run to their worst case under a reading of Dynamic-Mapping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.policies.liu_mapping import Mapping, Rules
from downclock.policies.liu_queue import Queue, Reading
from downclock.policies.liu_rules import Job

LEVELS = {0: (2 / 3, 1.0), 1: (148 / 850, 500 / 850, 1.0)}
"""Table 2's clocks: CPU and GPU."""

UTILISATION = {"stress": (0.05, 0.6), "section7": (0.001, 0.1)}
LOAD = {"stress": 1.6, "section7": 1.2}


@dataclass
class Result:
    accepted: int
    rejected: int
    misses: int


def random_jobs(n: int, load: str, seed: int) -> list[Job]:
    """Jobs whose favourite (mostly the GPU) is 0.7 to 6 times faster; load as in the spec."""
    rng = np.random.default_rng(seed)
    gpu = rng.uniform(0.6, 24.0, n)
    ratio = np.exp(rng.uniform(np.log(0.7), np.log(6.0), n))
    used = rng.uniform(*UTILISATION[load], n)
    times = np.column_stack([gpu * ratio, gpu])
    window = np.maximum(times.min(axis=1) / used, times.max(axis=1))
    gap = times.min(axis=1).mean() / LOAD[load]
    arrival = np.cumsum(rng.exponential(gap, n))
    return [
        Job(i, float(arrival[i]), float(arrival[i] + window[i]), tuple(map(float, times[i])))
        for i in range(n)
    ]


def run_online(reading: Reading, jobs: list[Job], factor: float = 1.0) -> Result:
    """Every job takes ``factor`` of its worst case; count deadlines missed."""
    mapping = Mapping(
        Rules(reading=reading), [Queue(0, True, LEVELS[0]), Queue(1, False, LEVELS[1])], now=0.0
    )
    result = Result(0, 0, 0)

    def play(until: float) -> None:
        while True:
            end, q = min(
                (
                    (
                        mapping.now
                        + (q.remaining[q.running] - (1 - factor) * q.jobs[q.running].times[q.kind])
                        / q.speed,
                        q.kind,
                    )
                    for q in mapping.queues
                    if q.running >= 0
                ),
                default=(np.inf, -1),
            )
            if end > until or q < 0:
                break
            job = mapping.queues[q].jobs[mapping.queues[q].running]
            mapping.advance(end)
            result.misses += end > job.deadline * (1 + 1e-9)
            mapping.finish(job.id)
        if until < np.inf:
            mapping.advance(until)

    for job in jobs:
        play(job.arrival)
        if mapping.arrive(job) >= 0:
            result.accepted += 1
        else:
            result.rejected += 1
    play(np.inf)
    return result
