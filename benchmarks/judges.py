"""How long the two judges take: `python -m benchmarks.judges [TASKS]`.

Tasks of the built-in GTX 1080 Ti applications run at default clocks, one after another, on servers
of four processors that wake at time 0 and stay on. Both judges are timed in process for growing
sizes; the largest is also written to Parquet, then read and judged by a fresh process, whose peak
memory is printed. Times are wall clock.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from downclock.power.library_file import built_in_library
from downclock.power.points import WIDE
from downclock.problem.files.read_tasks import read_tasks
from downclock.problem.files.write_tasks import write_tasks
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.files import read_schedule, write_schedule
from downclock.schedule.schedule import ON, WAKING, Outcomes, PowerSpans, Schedule, Segments
from downclock.schedule.verify.verify import verify
from downclock.units import Floats, Ints

TARGET_S, TARGET_GB = 10.0, 4.0
"""A million tasks: read from Parquet, verify and account."""

TASKS_PER_SERVER = 40
WAKE_S = 30.0
T = TypeVar("T")


def platform(tasks: int) -> Platform:
    library = built_in_library("gtx1080ti")
    kind = Kind(library.kinds[0], WIDE, idle_w=37.0)
    servers = max(1, tasks // TASKS_PER_SERVER)
    spec = ServerSpec("s", ((kind.name, 4),), servers, wake_j=360.0, wake_s=WAKE_S, host_w=50.0)
    return Platform.build((kind,), (spec,))


def generate(n: int, seed: int = 1) -> tuple[Problem, Schedule]:
    """Make n tasks of 5 to 30 minutes and a valid schedule of them, rows in random order."""
    rng = np.random.default_rng(seed)
    library, machines = built_in_library("gtx1080ti"), platform(n)
    application = rng.integers(len(library), size=n)
    points = np.ones((n, 3))
    unit_s, _ = library.at(application, library.kinds[0], points)
    scale = rng.uniform(300.0, 1800.0, n) / unit_s
    processor = rng.integers(machines.processor_count, size=n)
    start_s, end_s = back_to_back(processor, unit_s * scale)
    tasks = Tasks.of(application, deadline_s=end_s * 1.5, arrival_s=start_s * 0.5, scale=scale)
    segments = Segments.of(np.arange(n), processor, start_s, end_s, points)
    schedule = Schedule(segments, spans(machines.server_count), Outcomes.all_done(n))
    return Problem(tasks, library, machines), schedule


def back_to_back(processor: Ints, length_s: Floats) -> tuple[Floats, Floats]:
    """Return starts and ends of tasks that follow each other on their processors.

    A second between them hides the rounding of one long sum.
    """
    order = np.argsort(processor, kind="stable")
    total = np.cumsum(length_s[order] + 1.0)
    first = np.searchsorted(processor[order], processor[order])
    before = np.concatenate([[0.0], total])
    start_s = np.empty_like(length_s)
    start_s[order] = WAKE_S + before[:-1] - before[first]
    return start_s, start_s + length_s


def spans(servers: int) -> PowerSpans:
    state = np.tile([WAKING, ON], servers)
    start_s, end_s = np.tile([0.0, WAKE_S], servers), np.tile([WAKE_S, np.inf], servers)
    return PowerSpans(np.repeat(np.arange(servers), 2), state, start_s, end_s)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    answer = work()
    return time.perf_counter() - start, answer


def judge_files(folder: Path, n: int) -> None:
    """Read, verify and account what `main` wrote; print each time and the peak memory."""
    library, machines = built_in_library("gtx1080ti"), platform(n)
    read_s, tasks = timed(lambda: read_tasks(folder / "tasks.parquet", library).tasks)
    problem = Problem(tasks, library, machines)
    plan_s, schedule = timed(lambda: read_schedule(folder / "plan.parquet", problem))
    verify_s, verdict = timed(lambda: verify(problem, schedule))
    account_s, bill = timed(lambda: account(problem, schedule))
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    total_s = read_s + plan_s + verify_s + account_s
    print(f"{n:,} tasks from Parquet, fresh process: {verdict}, {bill.total_j / 1e9:.3f} GJ")
    print(f"  read tasks {read_s:.2f} s, read schedule {plan_s:.2f} s,", end=" ")
    print(f"verify {verify_s:.2f} s, account {account_s:.2f} s")
    met = "met" if total_s <= TARGET_S and peak_gb <= TARGET_GB else "MISSED"
    print(f"  total {total_s:.2f} s (target {TARGET_S:g}),", end=" ")
    print(f"{peak_gb:.2f} GB (target {TARGET_GB:g}): {met}")


def grow(most: int) -> None:
    """Print the time of both judges for growing sizes."""
    print(f"{'tasks':>10} {'verify':>9} {'account':>9} {'verify, ns a segment':>21}")
    for n in [size for size in (1_000, 10_000, 100_000, 1_000_000) if size <= most]:
        problem, schedule = generate(n)
        verify_s, verdict = timed(lambda: verify(problem, schedule))  # noqa: B023
        account_s, _ = timed(lambda: account(problem, schedule))  # noqa: B023
        assert verdict.ok, verdict
        print(f"{n:>10,} {verify_s:>7.3f} s {account_s:>7.3f} s {verify_s / n * 1e9:>21,.0f}")


def main(n: int = 1_000_000) -> None:
    generate(1_000)
    grow(n)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        problem, schedule = generate(n)
        write_tasks(problem.tasks, problem.library, folder / "tasks.parquet")
        write_schedule(schedule, problem, folder / "plan.parquet")
        del problem, schedule
        subprocess.run([sys.executable, "-m", "benchmarks.judges", str(n), str(folder)], check=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        judge_files(Path(sys.argv[2]), int(sys.argv[1]))
    else:
        main(*map(int, sys.argv[1:]))
