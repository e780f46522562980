"""How long reading and writing a million tasks and a million segments takes, by format.

Run ``python -m benchmarks.files [tasks]`` (one core is enough).
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from downclock.power.library_file import built_in_library
from downclock.power.points import WIDE
from downclock.problem.files.read_tasks import read_tasks
from downclock.problem.files.write_tasks import write_tasks
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.files import read_schedule, write_schedule
from downclock.schedule.schedule import ON, Outcomes, PowerSpans, Schedule, Segments

SUFFIXES = ("parquet", "csv", "json")


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def example(n: int) -> tuple[Problem, Schedule]:
    rng = np.random.default_rng(1)
    library = built_in_library("gtx1080ti")
    arrival_s = rng.uniform(0.0, 1e6, n)
    tasks = Tasks.of(
        rng.integers(0, len(library), n),
        deadline_s=arrival_s + 1e4,
        arrival_s=arrival_s,
        scale=rng.uniform(1.0, 9.0, n),
    )
    servers = 1000
    spec = ServerSpec("gpu", (("gtx1080ti", 4),), servers)
    problem = Problem(tasks, library, Platform.build((Kind("gtx1080ti", WIDE),), (spec,)))
    rows, zeros = np.arange(n), np.zeros(servers)
    segments = Segments.of(rows, rows % 4000, arrival_s, arrival_s + 1.0, np.ones((n, 3)))
    spans = PowerSpans(np.arange(servers), np.full(servers, ON), zeros, np.full(servers, np.inf))
    return problem, Schedule(segments, spans, Outcomes.all_done(n), "example")


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    problem, schedule = example(n)
    library = problem.library
    print(f"{n} rows          write s   read s     MB")
    with tempfile.TemporaryDirectory() as folder:
        for suffix in SUFFIXES:
            jobs, plan = Path(folder, f"jobs.{suffix}"), Path(folder, f"plan.{suffix}")
            actions = {
                jobs: (
                    lambda path: write_tasks(problem.tasks, library, path),
                    lambda path: read_tasks(path, library),
                ),
                plan: (
                    lambda path: write_schedule(schedule, problem, path),
                    lambda path: read_schedule(path, problem),
                ),
            }
            for path, (write, read) in actions.items():
                write_s, read_s = (
                    timed(lambda w=write, p=path: w(p)),
                    timed(lambda r=read, p=path: r(p)),
                )
                size = path.stat().st_size / 1e6
                print(f"{path.name:20} {write_s:8.2f} {read_s:8.2f} {size:6.0f}")


if __name__ == "__main__":
    main()
