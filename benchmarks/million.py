"""A million jobs on 100,000 GPUs through every command: `-m benchmarks.million [JOBS] [--plot]`.

Jobs of half an hour on average arrive over a day on servers of eight GPUs, ten jobs a GPU. Each
command runs in a fresh process; printed are its CPU seconds and peak memory at 10^3, 10^4... jobs,
microseconds a job, and the ratio to a rival in the same run: a script of three lines that reads the
jobs and sorts them by deadline in plain Python. The run fails where a ratio is far above the one
written down. Needs no more than one core. `--plot` writes the figure of the guide.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from downclock.power.library_file import built_in_library
from downclock.tabular import write_columns

LIMITS_S = {
    "convert": 60.0, "plan": 15.0, "verify": 10.0,
    "account": 12.0, "simulate": 30.0, "report": 30.0,
}  # fmt: skip
"""CPU seconds that each command may take of a million jobs."""

LIMIT_GB = 2.0
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "million.svg"

RATIOS = {
    "convert": 11.5,
    "plan": 3.3,
    "verify": 1.4,
    "account": 1.9,
    "simulate": 10.6,
    "report": 9.6,
}
"""CPU seconds beside the rival's of a million jobs, when last looked at."""

ALLOWED = 1.5
"""A ratio so many times the one above is a regression."""

RIVAL = """
import sys, pyarrow.parquet as pq
rows = pq.read_table(sys.argv[1]).to_pylist()
rows.sort(key=lambda row: row["deadline_s"])
"""
JOBS_A_GPU, GPUS_A_SERVER = 10, 8

CLUSTER = """
applications = "builtin:gtx1080ti"
[[kind]]
name = "gtx1080ti"
idle_w = 37.0
interval = "wide"
[[server]]
name = "node"
count = {servers}
processors = [{{ kind = "gtx1080ti", count = 8 }}]
wake_j = 360.0
host_w = 50.0
"""


def day_of_jobs(jobs: int, seed: int = 1) -> dict[str, Any]:
    """Draw jobs of half an hour on average that arrive over a day, with room to be slowed."""
    rng = np.random.default_rng(seed)
    library = built_in_library("gtx1080ti")
    application = rng.integers(len(library), size=jobs)
    unit_s, _ = library.at(application, library.kinds[0], np.ones((jobs, 3)))
    run_s = rng.lognormal(7.0, 0.9, jobs).clip(60.0, 6 * 3600.0)
    arrival_s = np.sort(rng.uniform(0.0, 86400.0, jobs)).round()
    return {
        "name": np.array([f"job-{k:07d}" for k in range(jobs)], dtype=object),
        "application": np.array(library.names, dtype=object)[application],
        "scale": run_s / unit_s,
        "arrival_s": arrival_s,
        "deadline_s": arrival_s + run_s * rng.uniform(1.5, 6.0, jobs) + 60.0,
        "x_run_s": run_s,
    }


def write_files(folder: Path, jobs: int) -> None:
    """Write the cluster and the jobs."""
    servers = max(1, jobs // (JOBS_A_GPU * GPUS_A_SERVER))
    (folder / "cluster.toml").write_text(CLUSTER.format(servers=servers))
    columns = {name: each for name, each in day_of_jobs(jobs).items() if name != "x_run_s"}
    write_columns(columns, folder / "jobs.parquet")


def write_trace(folder: Path, jobs: int) -> None:
    """Write the same day as a trace in a layout of Philly."""
    day = day_of_jobs(jobs)
    submit = np.datetime64("2017-10-01T00:00:00") + day["arrival_s"].astype("timedelta64[s]")
    rows = zip(np.datetime_as_string(submit, "s").tolist(), day["x_run_s"].tolist(), strict=True)
    lines = (f"{at.replace('T', ' ')},{run_s:.1f},1,{run_s:.1f},vc\n" for at, run_s in rows)
    with open(folder / "trace.csv", "w") as file:
        file.write("timestamp,duration,num_gpus,gpu_time,cluster\n")
        file.writelines(lines)


def measured(folder: Path, *words: str) -> tuple[float, float]:
    """Run Python in a process of its own; return its CPU seconds and its peak GB."""
    pid = os.posix_spawn(
        sys.executable, [sys.executable, *words], os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, str(folder / "out.txt"), os.O_WRONLY | os.O_CREAT, 0o600)
        ],
    )  # fmt: skip
    _, status, used = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, words
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9


def commands(folder: Path) -> dict[str, list[str]]:
    both = [str(folder / "cluster.toml"), str(folder / "jobs.parquet")]
    plan, converted = str(folder / "plan.parquet"), str(folder / "converted.parquet")
    return {
        "convert": ["convert", str(folder / "trace.csv"), "--output", converted, "--quiet"],
        "plan": ["plan", *both, "--policy", "edl", "--output", plan, "--quiet"],
        "verify": ["verify", *both, plan],
        "account": ["account", *both, plan],
        "simulate": ["simulate", *both, "--actual", "uniform:0.5:1"],
        "report": ["report", *both, plan, "--output", str(folder / "report.html"), "--quiet"],
    }


def judged(command: str, cpu_s: float, peak_gb: float, ratio: float) -> str:
    """Say whether a command of a million jobs is within its limits."""
    fine = cpu_s <= LIMITS_S[command] and peak_gb <= LIMIT_GB
    limits = f"at most {LIMITS_S[command]:g} s, {LIMIT_GB:g} GB: {'met' if fine else 'MISSED'}"
    slower = f"; SLOWER, was {RATIOS[command]:g}" if ratio > ALLOWED * RATIOS[command] else ""
    return f"  ({limits}{slower})"


def plot(rows: list[tuple[int, str, float, float]]) -> None:
    """Draw CPU seconds and peak memory against jobs, a line a command."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.6), layout="constrained")
    times, memory = figure.subplots(1, 2)
    for command in dict.fromkeys(row[1] for row in rows):
        mine = [row for row in rows if row[1] == command]
        jobs = [row[0] for row in mine]
        times.loglog(jobs, [row[2] for row in mine], marker="o", markersize=3, label=command)
        memory.loglog(jobs, [row[3] for row in mine], marker="o", markersize=3, label=command)
    for axes, what in ((times, "CPU seconds"), (memory, "peak memory, GB")):
        axes.set(xlabel="jobs", ylabel=what)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
        axes.grid(alpha=0.3)
    figure.legend(*times.get_legend_handles_labels(), loc="outside right upper", frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None})


def main(most: int = 1_000_000, *, picture: bool = False) -> None:
    slower = False
    rows = []
    print(f"{'jobs':>10} {'command':10} {'CPU s':>8} {'GB':>6} {'us a job':>9} {'/ rival':>8}")
    for jobs in [10**k for k in range(3, 7) if 10**k <= most]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_files(folder, jobs)
            write_trace(folder, jobs)
            rival_s, _ = measured(folder, "-c", RIVAL, str(folder / "jobs.parquet"))
            print(f"{jobs:>10,} {'(rival)':10} {rival_s:>8.2f}")
            for command, words in commands(folder).items():
                cpu_s, peak_gb = measured(folder, "-m", "downclock", *words)
                ratio = cpu_s / rival_s
                said = judged(command, cpu_s, peak_gb, ratio) if jobs == 1_000_000 else ""
                slower |= "SLOWER" in said
                rows.append((jobs, command, cpu_s, peak_gb))
                print(
                    f"{jobs:>10,} {command:10} {cpu_s:>8.2f} {peak_gb:>6.2f}"
                    f" {1e6 * cpu_s / jobs:>9.1f} {ratio:>8.2f}{said}",
                    flush=True,
                )
    if picture:
        plot(rows)
    if slower:
        sys.exit("slower than it was, beside the rival")


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--plot"]
    main(*map(int, words[:1]), picture="--plot" in sys.argv)
