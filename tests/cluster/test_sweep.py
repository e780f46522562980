"""A sweep whose workers are Slurm jobs: the same table as on this machine's own processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from downclock.study.sweep.run import PROVENANCE
from tests.cli.conftest import CLUSTER, JOBS, LIBRARY
from tests.cli.test_widths import SWEEP
from tests.cluster.loopback import Loopback

WORKERS = """
[slurm]
interface = "lo"
memory = "1GB"
walltime = "00:05:00"
job_extra_directives = ["--gres=gpu:1"]
"""


def _table(folder: Path) -> pa.Table:
    table = pq.read_table(folder / "runs.parquet")
    return table.drop_columns([name for name in PROVENANCE if name in table.column_names])


def test_a_sweep_on_slurm_jobs_has_the_table_of_the_pool(folder: Path) -> None:
    pytest.importorskip("dask_jobqueue")
    files = {"cluster.toml": CLUSTER, "library.json": LIBRARY, "jobs.csv": JOBS}
    for name, text in {**files, "s.toml": SWEEP + WORKERS}.items():
        (folder / name).write_text(text)
    words = [sys.executable, "-m", "downclock", "sweep", str(folder / "s.toml"), "--jobs", "2"]
    with Loopback(folder / "slurm", 2, 1) as cluster:
        cluster.run(*words, "--slurm", "--output", str(folder / "far"), timeout=200)
        seen = cluster.run("squeue", "-h", "-t", "all", "-o", "%j %T").splitlines()
        assert {line.split()[0] for line in seen} == {"downclock-sweep"}
        assert len(seen) == 2  # each had a node of its own, and none is left
        assert not {"RUNNING", "PENDING"} & {line.split()[1] for line in seen}
    cluster.run(*words, "--output", str(folder / "near"), timeout=200)
    far, near = _table(folder / "far"), _table(folder / "near")
    assert len(near) == 12
    assert far.equals(near)
