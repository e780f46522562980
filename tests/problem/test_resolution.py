"""A task too short for its times is refused at load, with a line that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from downclock.errors import InvalidInput
from downclock.problem.files.files import load_problem
from downclock.problem.files.read_problem import read_problem
from downclock.problem.files.write_problem import write_problem

CLUSTER = """\
applications = "library.json"
[[kind]]
name = "k"
core_mhz = [500, 2000]
default_core_mhz = 1000
[[server]]
name = "s"
processors = [{ kind = "k" }]
"""
LIBRARY = """\
{"format": "downclock-library/1", "applications": [
 {"name": "curve", "profiles": {"k": {"model": "cpu", "time_s": 2, "c1_w": 1, "alpha": 3,
                                      "static_w": 1}}},
 {"name": "table", "profiles": {"k": {"model": "table", "points": [
   {"core": 0.5, "memory": 1, "time_s": 3, "power_w": 1},
   {"core": 2, "memory": 1, "time_s": 1, "power_w": 2}]}}}]}
"""
"""Both take 1 s a unit at their fastest: the curve 2 s / core 2, the table its second point."""


def load(folder: Path, *rows: str):  # type: ignore[no-untyped-def]
    (folder / "cluster.toml").write_text(CLUSTER)
    (folder / "library.json").write_text(LIBRARY)
    (folder / "jobs.csv").write_text("\n".join(["application,scale,arrival_s", *rows]) + "\n")
    return load_problem(folder / "cluster.toml", folder / "jobs.csv")


@pytest.mark.parametrize("application", ["curve", "table"])
def test_the_least_run_time_is_a_billionth_of_the_arrival_or_of_a_second(
    tmp_path: Path, application: str
) -> None:
    load(tmp_path, f"{application},1.1e-9,0", f"{application},1.8,1.7e9")
    with pytest.raises(InvalidInput, match=r"line 3, task 't1': scale=9e-10 makes a run time of"):
        load(tmp_path, f"{application},1,0", f"{application},0.9e-9,0")
    with pytest.raises(InvalidInput, match=r"arrival_s=1.7e\+09 .*an epoch nearby"):
        load(tmp_path, f"{application},1.6,1.7e9")
    with pytest.raises(InvalidInput, match="cannot be told from none"):
        load(tmp_path, f"{application},1e-300,5")


def test_a_task_without_work_is_no_short_task(tmp_path: Path) -> None:
    assert load(tmp_path, "curve,0,1.7e9").tasks.scale.tolist() == [0.0]


def test_a_problem_file_is_held_to_the_same(tmp_path: Path) -> None:
    write_problem(load(tmp_path, "curve,1,5"), tmp_path / "p.json")
    text = (tmp_path / "p.json").read_text()
    assert '"scale": 1.0' in text
    (tmp_path / "p.json").write_text(text.replace('"scale": 1.0', '"scale": 1e-300'))
    with pytest.raises(InvalidInput, match=r"p.json line .*cannot be told from none"):
        read_problem(tmp_path / "p.json")


def test_a_task_that_takes_for_ever_is_refused(tmp_path: Path) -> None:
    load(tmp_path, "curve,1e12,0")
    with pytest.raises(InvalidInput, match=r"scale=1e\+300 makes a run time of more than 1e\+12 s"):
        load(tmp_path, "curve,1e300,0")
