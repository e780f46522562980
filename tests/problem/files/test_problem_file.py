"""A whole problem survives its one file, bit for bit; broken files are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.power.library_file import library_document
from downclock.problem.files.files import load_problem
from downclock.problem.files.read_problem import read_problem
from downclock.problem.files.write_problem import platform_data, prices_data, write_problem
from downclock.problem.files.write_tasks import write_tasks
from downclock.problem.platform import Platform
from downclock.problem.problem import Problem
from tests.conftest import ROOT
from tests.generated import random_problem

COLUMNS = ("name", "application", "scale", "arrival_s", "deadline_s", "processors")
PLATFORM = (
    *("kind", "chip", "chip_server", "shared_w", "shared_w_per_clock", "server_name", "zone"),
    *("host_w", "sleep_w", "wake_j", "wake_s", "initially_on", "zones", "slot_s"),
)


def assert_same(one: Problem, other: Problem) -> None:
    for field in COLUMNS:
        np.testing.assert_array_equal(getattr(one.tasks, field), getattr(other.tasks, field))
    for field in PLATFORM:
        np.testing.assert_array_equal(getattr(one.platform, field), getattr(other.platform, field))
    np.testing.assert_array_equal(one.edges.before, other.edges.before)
    np.testing.assert_array_equal(one.edges.after, other.edges.after)
    assert platform_data(one.platform) == platform_data(other.platform)
    assert library_document(one.library) == library_document(other.library)
    assert prices_data(one.prices) == prices_data(other.prices)
    assert (one.name, one.epoch) == (other.name, other.epoch)


@pytest.mark.parametrize("seed", range(20))
def test_a_problem_comes_back_from_parquet_bit_for_bit(tmp_path: Path, seed: int) -> None:
    epoch = datetime(2024, 6, 10, 7, 30, tzinfo=timezone(timedelta(hours=2)))
    problem = replace(random_problem(seed), epoch=epoch if seed % 2 else None)
    write_problem(problem, tmp_path / "problem.parquet")
    assert_same(problem, read_problem(tmp_path / "problem.parquet"))


def test_a_parquet_file_of_tasks_alone_is_no_problem(tmp_path: Path) -> None:
    problem = random_problem(3)
    write_tasks(problem.tasks, problem.library, tmp_path / "tasks.parquet")
    with pytest.raises(InvalidInput, match="holds tasks and no cluster"):
        read_problem(tmp_path / "tasks.parquet")


@pytest.mark.parametrize("seed", range(40))
def test_a_problem_comes_back_bit_for_bit(tmp_path: Path, seed: int) -> None:
    epoch = datetime(2024, 6, 10, 7, 30, tzinfo=timezone(timedelta(hours=2)))
    problem = replace(random_problem(seed), epoch=epoch if seed % 2 else None)
    write_problem(problem, tmp_path / "problem.json")
    again = read_problem(tmp_path / "problem.json")
    assert_same(problem, again)
    write_problem(again, tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_bytes()) == json.loads(
        (tmp_path / "problem.json").read_bytes()
    )


@pytest.mark.parametrize("seed", range(10))
def test_what_is_read_back_computes_the_same(tmp_path: Path, seed: int) -> None:
    problem = random_problem(seed)
    write_problem(problem, tmp_path / "problem.json")
    again = read_problem(tmp_path / "problem.json")
    for k, kind in enumerate(problem.platform.kinds):
        n = len(problem.tasks)
        points = np.tile(kind.clocks.default, (n, 1))
        rows, column = np.arange(n), np.full(n, k)
        for one, other in zip(
            problem.at(rows, column, points), again.at(rows, column, points), strict=True
        ):
            np.testing.assert_array_equal(one, other)


def test_the_example_is_a_problem(tmp_path: Path) -> None:
    folder = ROOT / "examples" / "gpu-day"
    problem = load_problem(folder / "cluster.toml", folder / "jobs.csv")
    assert len(problem.tasks) == 140
    assert problem.platform.processor_count == 32
    assert problem.prices.currency == "EUR"
    curve = problem.prices.of("default").price
    assert curve is not None
    assert curve.covers(0.0, float(problem.tasks.deadline_s.max()))
    assert bool(np.all(problem.runnable()))
    window_s = problem.tasks.deadline_s - problem.tasks.arrival_s
    rows = np.arange(len(problem.tasks))
    point = np.tile(problem.platform.kinds[0].clocks.default, (len(rows), 1))
    time_s, _ = problem.at(rows, np.zeros(len(rows), dtype=np.int64), point)
    assert bool(np.all(time_s <= window_s))
    assert 10 * 60 * 0.95 < time_s.min() < time_s.max() < 90 * 60 * 1.05
    write_problem(problem, tmp_path / "problem.json")
    assert_same(problem, read_problem(tmp_path / "problem.json"))


def test_a_problem_needs_a_library(tmp_path: Path) -> None:
    folder = ROOT / "examples" / "gpu-day"
    text = (folder / "cluster.toml").read_text("utf-8").replace("applications", "# ")
    (tmp_path / "cluster.toml").write_text(text, "utf-8")
    (tmp_path / "prices.csv").write_bytes((folder / "prices.csv").read_bytes())
    with pytest.raises(InvalidInput, match=r"the cluster names none \(key 'applications'\)"):
        load_problem(tmp_path / "cluster.toml", folder / "jobs.csv")
    given = load_problem(
        tmp_path / "cluster.toml", folder / "jobs.csv", library="builtin:gtx1080ti"
    )
    assert len(given.library) == 30


def test_an_epoch_given_by_hand_wins(tmp_path: Path) -> None:
    folder = ROOT / "examples" / "gpu-day"
    usual = load_problem(folder / "cluster.toml", folder / "jobs.csv")
    moved = load_problem(
        folder / "cluster.toml", folder / "jobs.csv", epoch="2024-06-10T06:00:00+02:00"
    )
    assert np.all(moved.tasks.arrival_s == usual.tasks.arrival_s - 6 * 3600.0)


def test_a_platform_without_descriptions_cannot_be_written(tmp_path: Path) -> None:
    problem = random_problem(1)
    bare = replace(problem, platform=replace(problem.platform, specs=()))
    assert isinstance(bare.platform, Platform)
    with pytest.raises(InvalidInput, match=r"p\.json, the platform: cannot be written"):
        write_problem(bare, tmp_path / "p.json")
    assert not (tmp_path / "p.json").exists()


def drop(key: str) -> Callable[[dict[str, Any]], object]:
    return lambda data: data.pop(key)


BROKEN: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "other format": (
        lambda data: data.update(format="downclock-problem/2"),
        "format='downclock-problem/2' must be one of downclock-problem/1",
    ),
    "no tasks": (drop("tasks"), "needs the key 'tasks'"),
    "no platform": (drop("platform"), "needs the key 'platform'"),
    "no library": (drop("library"), "needs the key 'library'"),
    "empty tasks": (lambda data: data.update(tasks=[]), "there are no tasks"),
    "unknown key": (lambda data: data.update(task=[]), "task is not a known key; did you mean"),
    "bad epoch": (lambda data: data.update(epoch="today"), "epoch='today' must be an ISO 8601"),
    "edges of another type": (lambda data: data.update(edges={}), "must be a list of [before"),
    "edge to nowhere": (
        lambda data: data["edges"].append(["t0", "nobody"]),
        "'nobody' names no task",
    ),
    "half an edge": (lambda data: data["edges"].append(["t0"]), "must be [before, after]"),
    "cycle": (
        lambda data: data["edges"].append(list(reversed(data["edges"][0]))),
        "the graph has a cycle through this task",
    ),
    "late deadline": (
        lambda data: data["tasks"][1].update(deadline_s=-1.0),
        "deadline_s=-1.0 is before arrival_s=",
    ),
    "unknown application": (
        lambda data: data["tasks"][0].update(application="nothing"),
        "application='nothing' is not in the library",
    ),
    "negative power": (
        lambda data: data["platform"]["kind"][0].update(idle_w=-1),
        "idle_w=-1.0 must be finite and not negative",
    ),
    "bad profile": (
        lambda data: data["library"]["applications"][0].update(profiles=3),
        "profiles=3 must be a table of keys and values",
    ),
    "zones of another type": (lambda data: data["prices"].update(zones=[1]), "must be a table"),
    "curve back in time": (
        lambda data: data["prices"]["zones"].update(
            z={"price": {"start_s": [0, -1], "value": [1, 2], "end_s": None}}
        ),
        "start_s=-1.0 must be after the one before (0.0)",
    ),
}


@pytest.mark.parametrize(("breakage", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_problem_is_refused_in_one_line(
    tmp_path: Path, breakage: Callable[[dict[str, Any]], object], message: str
) -> None:
    path = tmp_path / "problem.json"
    write_problem(random_problem(7, edges=True, prices=True, tasks=6), path)
    data = json.loads(path.read_text("utf-8"))
    breakage(data)
    path.write_text(json.dumps(data), "utf-8")
    with pytest.raises(InvalidInput) as caught:
        read_problem(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_line_of_a_bad_task_is_named(tmp_path: Path) -> None:
    path = tmp_path / "problem.json"
    write_problem(random_problem(7, tasks=6), path)
    lines = path.read_text("utf-8").splitlines()
    at = next(k for k, line in enumerate(lines) if '"t3"' in line and "scale" in line)
    data = json.loads(lines[at].strip().rstrip(","))
    lines[at] = json.dumps({**data, "scale": -1.0}) + ","
    path.write_text("\n".join(lines), "utf-8")
    with pytest.raises(InvalidInput, match=rf"problem\.json line {at + 1}, task 't3': scale=-1\.0"):
        read_problem(path)


def test_a_trace_is_told_what_makes_a_problem_of_it(tmp_path):
    """It was said to be no JSON."""
    path = tmp_path / "week.txt"
    path.write_text("JobID|Start|End\n")
    with pytest.raises(InvalidInput, match="makes one of a trace"):
        read_problem(path)
