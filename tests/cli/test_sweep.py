"""downclock sweep: files in the folder, going on, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.test_widths import SWEEP


@pytest.fixture
def sweep_file(files):
    """The sweep of the golden files beside its cluster and jobs: 12 runs."""
    path = Path(files.path("sweep.toml"))
    text = SWEEP.replace("cluster.toml", str(files.cluster)).replace("jobs.csv", str(files.jobs))
    path.write_text(text)
    return str(path)


def test_the_folder_holds_table_summary_figure_and_log(run, files, sweep_file):
    ran = run("sweep", sweep_file, "--jobs", "1", "--format", "json")
    assert ran.code == 0
    data = json.loads(ran.out)
    assert [cell["runs"] for cell in data["cells"]] == [3, 3, 3, 3]
    folder = Path(files.path("sweep"))
    assert len(pq.read_table(folder / "runs.parquet")) == 12
    assert len((folder / "summary.csv").read_text().splitlines()) == 1 + 4
    assert "<svg" in (folder / "sweep.svg").read_text()


def test_the_second_time_all_is_kept_and_the_table_is_the_same(run, files, sweep_file):
    out = ["--output", files.path("there"), "--jobs", "1"]
    first = run("sweep", sweep_file, *out)
    table = Path(files.path("there/runs.parquet"))
    before = table.read_bytes()
    again = run("sweep", sweep_file, *out)
    assert "12 kept from before" in " ".join(again.out.split())
    assert "kept" not in first.out
    assert table.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--dask", "tcp://127.0.0.1:1", "--jobs", "2"], "--dask is another engine"),
        (["--output", "sweep.toml"], "is a file, not a folder"),
        (["--jobs", "0"], "--jobs"),
    ],
)
def test_what_does_not_go_together_is_refused(run, files, sweep_file, options, said):
    words = [sweep_file if word == "sweep.toml" else word for word in options]
    ran = run("sweep", sweep_file, *words)
    assert ran.code == 2
    assert said in ran.err


def test_a_file_that_is_not_there_is_named(run, files):
    ran = run("sweep", files.path("none.toml"))
    assert ran.code == 2
    assert "none.toml: no such file" in ran.err


def test_jobs_that_are_not_there_are_named_before_anything_runs(run, files, sweep_file):
    path = Path(sweep_file)
    path.write_text(path.read_text().replace(str(files.jobs), "gone.csv"))
    ran = run("sweep", sweep_file)
    assert ran.code == 2
    assert "gone.csv: no such file" in ran.err
