"""A real trace with gangs under `late` and the lists.

    python -m benchmarks.philly [servers ...]
    python -m benchmarks.philly weeks [servers ...] [--weeks 9 10 11 12] [--seeds FIRST COUNT]

82,247 jobs of Philly (gangs of up to 32 GPUs), on 96 servers of eight or as many as the arguments
say: idle GPU 50 W, host 600 W, a wake 180 kJ and 3 minutes; deadlines 1.2 to 3 run times after
arrival. Printed are processor seconds of one plan, jobs and GPU-time rejected, and energy.
``weeks``: what arrives in each of these weeks of the trace by itself, with other deadlines for each
seed; on the mean of all `late` beside `race` and the best static cap, and its gap to the bound of
the jobs that it does. Every plan is verified. The trace is read from the folder that DOWNCLOCK_DATA
names (or ../shared/data).
"""

from __future__ import annotations

import argparse
import csv
import os
from dataclasses import fields, replace
from datetime import datetime
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.measured import verified
from downclock.planners.cluster.bound import cluster_bound_j
from downclock.power.library import Library
from downclock.power.points import WIDE
from downclock.power.profiles import GpuProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import REJECTED
from downclock.units import Bools, Floats

FILE = Path("traces", "philly", "philly_jobs_elasticflow_pollux.csv")
SEED = 11
WEEK_S = 604800.0
SPECS = ("late", "race", "race:rho=break-even", "edl", "bin")


@cache
def jobs() -> Floats:
    """Arrivals, run times and GPUs of the trace (3, n), by arrival."""
    folder = Path(os.environ.get("DOWNCLOCK_DATA", "../shared/data"))
    if not (folder / FILE).is_file():
        raise SystemExit(
            f"skipped: no {folder / FILE}; name the folder of the data in DOWNCLOCK_DATA"
        )
    with (folder / FILE).open(encoding="utf-8") as lines:
        rows = [
            (datetime.fromisoformat(row["timestamp"]).timestamp(), float(row["duration"]),
             int(row["num_gpus"]))
            for row in csv.DictReader(lines)
        ]  # fmt: skip
    table: Floats = np.array(sorted(rows)).T
    table[0] -= table[0, 0]
    return table


def philly(servers: int, seed: int = SEED, week: int | None = None) -> Problem:
    """The trace, or a week of it; one application with half of its time in the core clock."""
    arrival_s, run_s, gpus = jobs()
    if week is not None:
        chosen: Bools = arrival_s // WEEK_S == week
        arrival_s, run_s, gpus = arrival_s[chosen] - week * WEEK_S, run_s[chosen], gpus[chosen]
    factor = np.random.default_rng(seed).uniform(1.2, 3.0, arrival_s.size)
    tasks = Tasks.of(
        np.zeros(arrival_s.size, np.int64),
        scale=np.maximum(run_s, 1.0),
        arrival_s=arrival_s,
        deadline_s=arrival_s + factor * np.maximum(run_s, 1.0),
        processors=gpus.astype(np.int64),
    )
    kind = Kind("gpu", WIDE, idle_w=50.0)
    server = ServerSpec("s", (("gpu", 8),), count=servers, host_w=600.0, wake_j=180e3, wake_s=180.0)
    profiles = GpuProfiles(*(np.array([v]) for v in (100.0, 30.0, 200.0, 1.0, 0.5, 0.0)))
    library = Library.of_one_kind(np.array(["job"], dtype=object), "gpu", profiles)
    return Problem(tasks, library, Platform.build((kind,), (server,)), name=f"philly-{servers}")


def only(problem: Problem, chosen: Bools) -> Problem:
    """Some of the tasks (n,) on the same servers: what the bound of those that are done counts."""
    columns = {each.name: getattr(problem.tasks, each.name) for each in fields(problem.tasks)}
    some = {name: None if column is None else column[chosen] for name, column in columns.items()}
    return replace(problem, tasks=Tasks(**some))


def result(problem: Problem, spec: str) -> Floats:
    """Jobs rejected, GPU-time rejected in per cent, kWh, gap to the bound in per cent, seconds."""
    schedule, seconds = verified(problem, spec)
    work = problem.tasks.scale * problem.tasks.processors
    lost = schedule.outcomes.status == REJECTED
    energy_j = account(problem, schedule).total_j
    above = 100.0 * (energy_j / cluster_bound_j(only(problem, ~lost)) - 1.0)
    part = 100.0 * work[lost].sum() / work.sum()
    return np.array([lost.sum(), part, energy_j / 3.6e6, above, seconds])


def line(spec: str, row: Floats) -> str:
    """How a table tells a result."""
    return (
        f"  {spec:20} {row[4]:6.1f} s; rejected {row[0]:,.1f} jobs, {row[1]:.3f} % of GPU-time;"
        f" {row[2]:,.0f} kWh, {row[3]:.2f} % above the bound"
    )


def whole(servers: int) -> None:
    """Print what policies make of the whole trace."""
    problem = philly(servers)
    work = problem.tasks.scale * problem.tasks.processors
    print(f"{problem.name}: {len(problem.tasks):,} jobs, {work.sum() / 3600:,.0f} GPU-hours")
    for spec in SPECS:
        print(line(spec, result(problem, spec)), flush=True)


def weeks(servers: int, which: list[int], seeds: range, specs: list[str]) -> None:
    """Print what policies make of weeks: each, and on the mean of all."""
    rows = {spec: [] for spec in specs}
    for week in which:
        for seed in seeds:
            problem = philly(servers, seed, week)
            for spec in specs:
                rows[spec].append(result(problem, spec))
                print(f"{servers} servers, week {week}, seed {seed}", line(spec, rows[spec][-1]))
    print(f"{servers} servers, mean of {len(which)} weeks and {len(seeds)} draws")
    for spec in specs:
        print(line(spec, np.mean(rows[spec], axis=0)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="weeks | servers")
    parser.add_argument("--weeks", type=int, nargs="+", default=[9, 10, 11, 12])
    parser.add_argument("--seeds", type=int, nargs=2, default=(SEED, 3))
    parser.add_argument("--specs", nargs="+", default=["late", "race", "static-cap"])
    asked = parser.parse_args()
    for servers in [int(word) for word in asked.words if word != "weeks"] or [96]:
        if "weeks" in asked.words:
            first, count = asked.seeds
            weeks(servers, asked.weeks, range(first, first + count), asked.specs)
        else:
            whole(servers)


if __name__ == "__main__":
    main()
