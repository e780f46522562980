"""What planning in shards costs in energy: `-m benchmarks.shards [JOBS]`.

A day of jobs is planned whole, and in shards that know nothing of each other: by cluster (a part
of the servers and of the jobs each) and by time window (all servers; a job that would pass the end
of its window has to be done by then, or waits for the next). Shards run through one sweep, so that
they could as well run on many machines. Printed are the energy of a GPU-hour done (at full speed)
beside the whole plan's, jobs turned away, and seconds of the longest shard, judging included.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.million import CLUSTER, day_of_jobs
from downclock.study.executor import pool
from downclock.study.sweep.grid import read_grid
from downclock.study.sweep.sweep import sweep
from downclock.tabular import write_columns
from downclock.units import Ints

SHARDS = (1, 2, 4, 8)
POLICIES = ("late", "edl")
DAY_S = 86400.0
GPUS_A_SERVER, JOBS_A_GPU = 8, 40
Columns = Mapping[str, Any]


def by_cluster(jobs: Columns, servers: int, shards: int) -> list[tuple[Columns, int]]:
    """Deal jobs and servers to the shards in turn."""
    shard = np.arange(len(jobs["scale"])) % shards
    return [(_only(jobs, np.flatnonzero(shard == k)), servers // shards) for k in range(shards)]


def by_window(jobs: Columns, servers: int, shards: int) -> list[tuple[Columns, int]]:
    """Cut the day into windows; every job lies in one, where it can be done with time to spare."""
    length_s, run_s = DAY_S / shards, jobs["x_run_s"]
    window = np.minimum(jobs["arrival_s"] // length_s, shards - 1)
    room_s = np.minimum(jobs["deadline_s"], (window + 1.0) * length_s) - jobs["arrival_s"]
    later_s = jobs["deadline_s"] - (window + 1.0) * length_s
    window += (room_s < 1.2 * run_s) & (later_s > room_s) & (window < shards - 1)
    ends_s = np.where(window == shards - 1, np.inf, (window + 1.0) * length_s)
    cut = {
        **jobs,
        "arrival_s": np.maximum(jobs["arrival_s"], window * length_s),
        "deadline_s": np.minimum(jobs["deadline_s"], ends_s),
    }
    return [(_only(cut, np.flatnonzero(window == k)), servers) for k in range(shards)]


def _only(jobs: Columns, rows: Ints) -> Columns:
    return {name: np.asarray(column)[rows] for name, column in jobs.items()}


def planned(parts: list[tuple[Columns, int]], folder: Path) -> list[dict[str, Any]]:
    """Plan the parts through a sweep; return its rows."""
    text = [f"policies = {list(POLICIES)}\n".replace("'", '"')]
    for k, (jobs, servers) in enumerate(parts):
        (folder / f"cluster-{k}.toml").write_text(CLUSTER.format(servers=servers))
        write_columns(jobs, folder / f"shard-{k}.parquet")
        names = f'cluster = "cluster-{k}.toml"\njobs = "shard-{k}.parquet"\n'
        text.append(f"[[problem]]\n{names}")
    (folder / "sweep.toml").write_text("\n".join(text))
    done = sweep(read_grid(folder / "sweep.toml"), folder / "out", lambda left: pool(1))
    return list(done.rows)


def main(count: int = 40_000) -> None:
    jobs = day_of_jobs(count)
    servers = count // (GPUS_A_SERVER * JOBS_A_GPU) // max(SHARDS) * max(SHARDS)
    print(f"{count:,} jobs on {servers * GPUS_A_SERVER:,} GPUs")
    print(f"{'shards':>6} {'by':10} {'policy':6} {'energy':>9} {'rejected':>9} {'most s':>7}")
    whole: dict[str, float] = {}
    for way in (by_cluster, by_window):
        for shards in SHARDS if way is by_cluster else SHARDS[1:]:
            parts = way(jobs, servers, shards)
            asked_s = {f"shard-{k}": part["x_run_s"].sum() for k, (part, _) in enumerate(parts)}
            with tempfile.TemporaryDirectory() as name:
                rows = planned(parts, Path(name))
            for spec in POLICIES:
                mine = [row for row in rows if row["spec"] == spec]
                done_s = sum(row["covered"] * asked_s[row["problem"]] for row in mine)
                mean_w = sum(row["total_j"] for row in mine) / done_s
                beside = mean_w / whole.setdefault(spec, mean_w) - 1.0
                lost = sum(row["rejected"] for row in mine)
                most_s = max(row["seconds"] for row in mine)
                kind = way.__name__[3:]
                print(
                    f"{shards:>6} {kind:10} {spec:6} {100 * beside:>+8.2f}% {lost:>9,}"
                    f" {most_s:>7.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
