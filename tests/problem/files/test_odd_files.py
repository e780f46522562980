"""Files that once ended in an internal error: refused in one line, or planned."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from downclock.errors import InvalidInput
from downclock.power.library_file import read_library
from downclock.problem.files.files import load_problem
from downclock.workloads.wfformat import read_wfformat
from tests.fuzz.worlds import WORKFLOW

LIBRARY = {
    "format": "downclock-library/1",
    "applications": [
        {
            "name": "w",
            "profiles": {
                "core": {"model": "cpu", "time_s": 1, "c1_w": 100, "alpha": 3, "static_w": 0}
            },
        }
    ],
}

CLUSTER = """\
applications = "library.json"

[[kind]]
name = "core"
core = [0.2, 1.0]
law = "fixed"

[[server]]
name = "s"
processors = [{ kind = "core", count = 2 }]
"""


@pytest.fixture
def refusal(tmp_path: Path) -> Callable[..., str]:
    """Plan jobs on a small cluster; return the complaint without the folder."""
    (tmp_path / "library.json").write_text(json.dumps(LIBRARY))
    (tmp_path / "cluster.toml").write_text(CLUSTER)

    def refused(jobs: Path, cluster: str = CLUSTER) -> str:
        (tmp_path / "cluster.toml").write_text(cluster)
        with pytest.raises(InvalidInput) as caught:
            load_problem(tmp_path / "cluster.toml", jobs)
        assert "\n" not in str(caught.value)
        return str(caught.value).replace(f"{jobs.parent}/", "").replace(f"{tmp_path}/", "")

    return refused


def jobs_of(path: Path, **columns: Any) -> Path:
    """Write a Parquet file of jobs."""
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("column", "cells", "rule"),
    [
        ("application", [["w"], None], "must be text, and the file holds list<element: string>"),
        (
            "application",
            [b"\xff", b"w"],
            "must be text, and the file holds binary that is not UTF-8",
        ),
        ("scale", [{"a": 1.0}, None], "must be a number, and the file holds struct<a: double>"),
        ("scale", [True, False], "must be a number, and the file holds bool"),
        ("name", [b"\xff\xfe", b"b"], "must be text, and the file holds binary that is not UTF-8"),
        ("after", [{"a": 1}, None], "must be text, and the file holds struct<a: int64>"),
    ],
)
def test_a_column_of_jobs_of_another_type(
    refusal: Callable[..., str], tmp_path: Path, column: str, cells: Any, rule: str
) -> None:
    columns = {"name": ["a", "b"], "application": ["w", "w"], column: cells}
    jobs = jobs_of(tmp_path / "jobs.parquet", **columns)
    assert refusal(jobs) == f"jobs.parquet, column '{column}': {rule}"


def test_a_nested_column_of_ones_own_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "library.json").write_text(json.dumps(LIBRARY))
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    own = {"x_labels": [{"owner": "me"}, None], "x_raw": [b"\xff", None]}
    jobs = jobs_of(tmp_path / "jobs.parquet", application=["w", "w"], **own)
    assert len(load_problem(tmp_path / "cluster.toml", jobs).tasks) == 2


def test_half_a_character_in_jobs(refusal: Callable[..., str], tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.json"
    jobs.write_text('[{"application": "w", "actual": "exact\\ud800"}]')
    rule = "actual='exact\\ud800' holds half a character (a lone surrogate)"
    assert refusal(jobs) == f"jobs.json: {rule}"
    jobs.write_text('[{"application": "w", "x_\\udfff": 1}]')
    assert "holds half a character" in refusal(jobs)


def test_a_pair_of_surrogates_is_a_character(tmp_path: Path) -> None:
    (tmp_path / "library.json").write_text(json.dumps(LIBRARY))
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    jobs = tmp_path / "jobs.json"
    jobs.write_text('[{"application": "w", "name": "\\ud83d\\ude00"}]')
    assert load_problem(tmp_path / "cluster.toml", jobs).tasks.name.tolist() == ["\U0001f600"]


def test_half_a_character_in_a_library(tmp_path: Path) -> None:
    path = tmp_path / "library.json"
    path.write_text(json.dumps(LIBRARY).replace('"w"', '"w\\ud800"'))
    with pytest.raises(InvalidInput) as caught:
        read_library(path)
    rule = "name='w\\ud800' holds half a character (a lone surrogate)"
    assert str(caught.value) == f"{path}: {rule}"


@pytest.mark.parametrize("parents", [[["split"]], [None], [{"id": "split"}], "split", None])
def test_parents_of_a_workflow_that_are_no_names(tmp_path: Path, parents: Any) -> None:
    workflow = json.loads(json.dumps(WORKFLOW))
    workflow["workflow"]["specification"]["tasks"][1]["parents"] = parents
    path = tmp_path / "flow.json"
    path.write_text(json.dumps(workflow))
    with pytest.raises(InvalidInput) as caught:
        read_wfformat(path)
    assert str(caught.value).startswith(f"{path}, task 'left': parents=")
    assert str(caught.value).endswith("must be a list of task ids")


@pytest.mark.parametrize(
    ("line", "instead", "complaint"),
    [
        (
            'name = "s"',
            'name = "s"\nwake_s = 1e100',
            "line 10, server 's': wake_s=1e+100 must be between 0 and 1e+12",
        ),
        (
            'law = "fixed"',
            'law = "fixed"\nidle_w = 1e10',
            "line 7, kind 'core': idle_w=10000000000.0 must be between 0 and 1e+09",
        ),
        (
            'law = "fixed"',
            "law = [1e308, 1e308, -1e308]",
            "line 6, kind 'core': law=[1e+308, 1e+308, -1e+308] must be three numbers from"
            " -1e+06 to 1e+06",
        ),
        (
            "core = [0.2, 1.0]",
            "core = [0.2, 1e300]",
            "line 3, kind 'core': core_max=1e+300 must be between 0 and 1e+15",
        ),
    ],
)
def test_quantities_beyond_all_sense(
    refusal: Callable[..., str], tmp_path: Path, line: str, instead: str, complaint: str
) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("application\nw\n")
    assert refusal(jobs, CLUSTER.replace(line, instead)) == f"cluster.toml {complaint}"


def test_the_shared_cases_are_refused_by_file_and_field(
    refusal: Callable[..., str], shared_cases: Path, tmp_path: Path
) -> None:
    for name in ("nested-column.parquet", "invalid-utf8.parquet", "lone-surrogate.json"):
        shutil.copy(shared_cases / name, tmp_path / name)
    with_zone = f'timezone = "Europe/Berlin"\n{CLUSTER}'
    assert refusal(tmp_path / "nested-column.parquet", with_zone) == (
        "nested-column.parquet, column 'application': must be text, and the file holds"
        " list<element: string>"
    )
    assert refusal(tmp_path / "invalid-utf8.parquet") == (
        "invalid-utf8.parquet, column 'name': must be text, and the file holds binary that is"
        " not UTF-8"
    )
    assert refusal(tmp_path / "lone-surrogate.json") == (
        "lone-surrogate.json: actual='uniform:0.8:1.2\\ud800' holds half a character (a lone"
        " surrogate)"
    )
    with pytest.raises(InvalidInput, match=r"lone-surrogate\.json: actual=.* half a character"):
        read_library(shared_cases / "lone-surrogate.json")
    with pytest.raises(
        InvalidInput, match=r"wfformat-list\.json, task .* must be a list of task ids"
    ):
        read_wfformat(shared_cases / "wfformat-list.json")
