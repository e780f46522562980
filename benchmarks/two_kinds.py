"""`late` online on two kinds of GPU with measured jobs, one of them better for most of these.

    python -m benchmarks.two_kinds [--loads .25,.5,.7] [--seeds FIRST COUNT]

16 × 8 V100 and 16 × 8 A40, a day of arrivals; 45 trainings that Zeus measured on both cards, by
power limit (read from the folder that DOWNCLOCK_DATA names, else ../shared/data). Load: run time
on the faster kind at full power, of all processors' day. Energy above the bound, in per cent; every
plan is verified.
"""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path

import numpy as np

from benchmarks.measured import verified
from downclock.planners.bounds import Bounds
from downclock.power.library import Library
from downclock.power.points import ClockTable
from downclock.power.profiles import MeasuredProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE
from downclock.units import Floats

HOUR_S, DAY_S = 3600.0, 86400.0
CARDS = {"v100": (30.0, 250.0), "a40": (25.0, 300.0)}
"""Idle power and the highest power limit of each."""

FIRST, COUNT = 1880, 3
"""Seeds that had no part in development, and how many."""

WAYS = ("late", "static-cap", "race")


def measured(card: str) -> dict[tuple[str, ...], dict[float, tuple[float, float]]]:
    """Time of an epoch and power by power limit of each training."""
    root = Path(os.environ.get("DOWNCLOCK_DATA", "../shared/data"))
    path = root / "dvfs" / "zeus" / f"summary_power_{card}.csv"
    if not path.exists():
        raise SystemExit(f"skipped: no {path}; name the folder of the data in DOWNCLOCK_DATA")
    found: dict[tuple[str, ...], dict[float, tuple[float, float]]] = {}
    with path.open(encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            job = (row["dataset"], row["network"], row["batch_size"], row["optimizer"])
            point = float(row["time_per_epoch"]), float(row["average_power"])
            found.setdefault(job, {})[float(row["power_limit"])] = point
    return {job: points for job, points in found.items() if CARDS[card][1] in points}


def library() -> tuple[Library, Floats, tuple[Kind, ...]]:
    """Profiles of an hour on the faster card, and how long each takes on either (jobs, 2)."""
    cards = [measured(card) for card in CARDS]
    jobs = sorted(set(cards[0]) & set(cards[1]))
    full_s = np.array(
        [[c[job][w][0] for c, (_, w) in zip(cards, CARDS.values(), strict=True)] for job in jobs]
    )
    unit = HOUR_S / full_s.min(axis=1)
    groups, kinds = [], []
    for (name, (idle_w, most_w)), card in zip(CARDS.items(), cards, strict=True):
        rows = [sorted(card[job].items()) for job in jobs]
        size = np.array([len(each) for each in rows])
        limit = np.array([w for each in rows for w, _ in each])
        time_s, power_w = np.array([p for each in rows for _, p in each]).T
        core = limit / most_w
        groups.append(
            MeasuredProfiles(
                np.append(0, np.cumsum(size)), core, np.ones(core.size),
                time_s * np.repeat(unit, size), power_w,
            )
        )  # fmt: skip
        limits = np.unique(limit)
        table = ClockTable(limits, np.full(limits.size, 1000.0), most_w, 1000.0)
        kinds.append(Kind(name, table, idle_w, "none", "locked"))
    n = len(jobs)
    names = np.array(["-".join(job) for job in jobs], dtype=object)
    row = np.tile(np.arange(n)[:, None], 2)
    group = np.tile([0, 1], (n, 1))
    return Library(names, tuple(CARDS), tuple(groups), group, row), full_s, tuple(kinds)


def a_day(seed: int, load: float) -> Problem:
    """Arrivals over a day; u(.15, .85) of the window is full speed on the faster card."""
    rng, (profiles, full_s, kinds) = np.random.default_rng([seed, 45]), library()
    specs = tuple(ServerSpec(k.name, ((k.name, 8),), 16, wake_j=8 * 5400.0) for k in kinds)
    platform = Platform.build(kinds, specs)
    scale = np.exp(rng.normal(0.0, 0.5, 20_000))
    count = int(np.searchsorted(np.cumsum(scale) * HOUR_S, load * DAY_S * platform.processor_count))
    scale = scale[:count]
    arrival_s = np.sort(rng.uniform(0.0, DAY_S, count))
    deadline_s = arrival_s + scale * HOUR_S / rng.uniform(0.15, 0.85, count)
    tasks = Tasks.of(
        rng.integers(full_s.shape[0], size=count),
        scale=scale, arrival_s=arrival_s, deadline_s=deadline_s,
    )  # fmt: skip
    return Problem(tasks, profiles, platform, name=f"two-kinds-{load}-{seed}")


def gap(problem: Problem, spec: str) -> tuple[float, int]:
    """Energy above the bound of the jobs that are done, in per cent, and jobs that are not."""
    schedule, _ = verified(problem, spec)
    least_j = Bounds(problem).below(schedule)
    lost = int(np.sum(schedule.outcomes.status != DONE))
    return 100.0 * (account(problem, schedule).total_j / least_j - 1.0), lost


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--loads", default=".25,.5,.7")
    parser.add_argument("--seeds", type=int, nargs=2, default=(FIRST, COUNT))
    asked = parser.parse_args()
    for load in map(float, asked.loads.split(",")):
        for spec in WAYS:
            first, count = asked.seeds
            found = [gap(a_day(seed, load), spec) for seed in range(first, first + count)]
            gaps, lost = np.array(found).T
            print(
                f"load {load:g} {spec}: {gaps.mean():.2f} % above the bound, worst"
                f" {gaps.max():.2f} %; {int(lost.sum())} jobs not done",
                flush=True,
            )


if __name__ == "__main__":
    main()
