"""A real trace with gangs under `late` and the lists: `python -m benchmarks.philly [servers ...]`.

82,247 jobs of Philly (gangs of up to 32 GPUs, ten weeks), on 96 servers of eight or as many as the
arguments say: idle GPU 50 W, host 600 W, a wake 180 kJ and 3 minutes; deadlines 1.2 to 3 run times
after arrival. Printed are processor seconds of one plan, jobs and GPU-time rejected, and energy.
The trace is read from the folder that DOWNCLOCK_DATA names (or ../shared/data).
"""

from __future__ import annotations

import csv
import os
import sys
import time
from datetime import datetime
from pathlib import Path

import numpy as np

from downclock.engine.play import plan
from downclock.planners.catalog import policy
from downclock.power.library import Library
from downclock.power.points import WIDE
from downclock.power.profiles import GpuProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import REJECTED
from downclock.schedule.verify.verify import verify

FILE = Path("traces", "philly", "philly_jobs_elasticflow_pollux.csv")
SEED = 11


def philly(servers: int) -> Problem:
    """The trace as a problem; one application with half of its time in the core clock."""
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
    stamp, run_s, gpus = np.array(sorted(rows)).T
    arrival_s = stamp - stamp[0]
    factor = np.random.default_rng(SEED).uniform(1.2, 3.0, arrival_s.size)
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


def main() -> None:
    for servers in [int(word) for word in sys.argv[1:]] or [96]:
        problem = philly(servers)
        work = problem.tasks.scale * problem.tasks.processors
        print(f"{problem.name}: {len(problem.tasks):,} jobs, {work.sum() / 3600:,.0f} GPU-hours")
        for spec in ("late", "race", "race:rho=break-even", "edl", "bin"):
            began = time.process_time()
            schedule = plan(problem, policy(spec))
            seconds = time.process_time() - began
            lost = schedule.outcomes.status == REJECTED
            share = 100.0 * work[lost].sum() / work.sum()
            kwh = account(problem, schedule).total_j / 3.6e6
            valid = "valid" if verify(problem, schedule).ok else "INVALID"
            print(
                f"  {spec:20} {seconds:6.1f} s; rejected {lost.sum():,} jobs, {share:.2f} % of"
                f" GPU-time; {kwh:,.0f} kWh; {valid}",
                flush=True,
            )


if __name__ == "__main__":
    main()
