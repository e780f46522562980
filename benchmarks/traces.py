"""Traces: rows converted, Philly planned online on its virtual clusters, every public file.

Run ``python -m benchmarks.traces [rows N] [philly] [week] [files]``; all of it when nothing is
named. ``week`` asks `whatif` of a week of Philly; ``files`` takes every public trace through
`convert`, `plan`, `verify` and `report`. All but the rows need public data: DOWNCLOCK_DATA names
the folder with ``traces`` in it. Times are those of the processor; those of rows are also told in
times that Python's csv module takes to read them.
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

import downclock as dc
from benchmarks.million import measured
from downclock.study.as_it_ran import as_it_ran
from downclock.workloads.traces.read import read_trace
from downclock.workloads.traces.to_problem import converted

T = TypeVar("T")
PHILLY = Path("traces", "philly", "philly_jobs_elasticflow_pollux.csv")
POLICIES = ("race", "late")


def timed(action: Callable[[], T]) -> tuple[T, float]:
    start = time.process_time()
    made = action()
    return made, time.process_time() - start


def write_trace(path: Path, rows: int, seed: int = 1) -> None:
    """Write a trace in Philly's layout: arrivals over 75 days, run times as heavy-tailed as its."""
    draw = np.random.default_rng(seed)
    begin = np.datetime64("2017-10-01T00:00:00")
    submit = begin + np.sort(draw.integers(0, 75 * 86400, rows)).astype("timedelta64[s]")
    run_s = np.exp(draw.normal(6.5, 2.0, rows)).clip(1.0, 3e6)
    gpus = draw.choice([1, 2, 4, 8, 16], rows, p=[0.93, 0.02, 0.02, 0.02, 0.01])
    lines = (
        f"{str(when).replace('T', ' ')},{run:.1f},{n},{run * n:.1f},vc{k % 15}\n"
        for k, (when, run, n) in enumerate(zip(submit, run_s, gpus, strict=True))
    )
    with open(path, "w") as file:
        file.write("timestamp,duration,num_gpus,gpu_time,cluster\n")
        file.writelines(lines)


def read_plain(path: Path) -> int:
    """The rival: the rows as the csv module reads them, and nothing else."""
    with open(path, newline="") as file:
        return sum(1 for _ in csv.reader(file))


def convert_rows(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.csv")
        write_trace(path, rows)
        _, plain_s = timed(lambda: read_plain(path))
        trace, read_s = timed(lambda: read_trace(path))
        found, convert_s = timed(lambda: converted(trace))
        target = Path(folder, "problem.parquet")
        _, write_s = timed(lambda: dc.write_problem(found.problem, target))
    print(f"{rows:,} rows   CPU s   x csv module")
    for name, seconds in (("read", read_s), ("convert", convert_s), ("write", write_s)):
        print(f"  {name:10s} {seconds:7.1f}   {seconds / plain_s:7.1f}")


def plan_philly(path: Path) -> None:
    found = converted(read_trace(path))
    problem = found.problem
    gpu_s = found.trace.asked_s
    dc.require_valid(problem, as_it_ran(found))
    print(f"\n{problem}\n  policy    CPU s   done   GPU-hours done   broken promises")
    for name in POLICIES:
        schedule, seconds = timed(lambda n=name: dc.plan(problem, n))
        broken = dict(dc.verify(problem, schedule).counts)
        done = schedule.outcomes.status == 0
        hours = f"{100.0 * gpu_s[done].sum() / gpu_s.sum():.1f} %"
        print(
            f"  {name:8s} {seconds:6.1f}   {done.sum():,}   {hours:>14s}   {broken or 0}",
            flush=True,
        )


FILES = {
    "philly/philly_jobs_elasticflow_pollux.csv": [],
    "philly/chronus_trace_job_Philly_SLO.csv": [],
    "alibaba_v2023/openb_pod_list_default.csv": ["--fractions", "pack"],
    "swf/NASA-iPSC-1993-3.1-cln.swf.gz": [],
    "swf/hpc2n_sample.swf": [],
    "nrel_eagle/sample_eagle_data.csv": ["--count", "nodes"],
}
"""Every public trace, and how it is read."""


def every_file(traces: Path) -> None:
    """Take each file through the commands; one that fails ends the run."""
    print("\nCPU s of                                       convert    plan  verify  report")
    for name, how in FILES.items():
        with tempfile.TemporaryDirectory() as folder:
            problem, plan, page = (
                str(Path(folder, each)) for each in ("p.parquet", "s.parquet", "r.html")
            )
            commands = (
                ["convert", str(traces / name), *how, "-o", problem, "-q"],
                ["plan", problem, "--policy", "late", "-o", plan, "-q"],
                ["verify", problem, plan, "-q"],
                ["report", problem, plan, "-o", page, "-q"],
            )  # fmt: skip
            took = [measured(Path(folder), "-m", "downclock", *words)[0] for words in commands]
        print(f"  {name:43s}" + "".join(f"{seconds:8.1f}" for seconds in took), flush=True)
    nodes = str(traces / "alibaba_v2023" / "openb_node_list_gpu_node.csv")
    with tempfile.TemporaryDirectory() as folder:
        words = ["convert", nodes, "-o", str(Path(folder, "cluster.toml")), "-q"]
        print(f"  its list of nodes: {measured(Path(folder), '-m', 'downclock', *words)[0]:.1f} s")


def philly_week(path: Path) -> None:
    """What would we have saved in the week from 2017-10-09, with flat prices."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["whatif", str(path), "--begin", "2017-10-09", "--length", "7d"]
        words += ["--flat-price", "0.2", "--flat-carbon", "380", "-o", str(Path(folder, "w.html"))]
        cpu_s, peak_gb = measured(Path(folder), "-m", "downclock", *words)
    print(
        f"\nwhatif of a Philly week: {cpu_s:.1f} CPU s (at most 60), {peak_gb:.2f} GB", flush=True
    )


def main() -> None:
    asked = sys.argv[1:] or ["rows", "philly", "week", "files"]
    folder = Path(os.environ.get("DOWNCLOCK_DATA", Path(__file__).parents[2] / "shared" / "data"))
    traces, philly = folder / "traces", folder / PHILLY
    if "rows" in asked:
        convert_rows(next((int(word) for word in asked if word.isdigit()), 1_000_000))
    if not philly.exists():
        print(f"the rest is skipped: no {philly} (DOWNCLOCK_DATA names its folder)")
        return
    for part, go, where in (
        ("philly", plan_philly, philly),
        ("week", philly_week, philly),
        ("files", every_file, traces),
    ):
        if part in asked:
            go(where)


if __name__ == "__main__":
    main()
