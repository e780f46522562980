"""Schedules survive their files, are written by name, and bad files are refused in one line."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.problem.problem import Problem
from downclock.schedule.files import read_schedule, schedule_path, write_schedule
from downclock.schedule.schedule import (
    DOWN,
    FAILED,
    ON,
    REJECTED,
    Outcomes,
    PowerSpans,
    Schedule,
    Segments,
)
from tests.generated import random_problem, random_schedule

SUFFIXES = ["json", "parquet", "csv"]


def small() -> tuple[Problem, Schedule]:
    """Three tasks: one split over two clocks, one rejected, one failed and half done."""
    problem = random_problem(5, tasks=3, edges=False, gangs=False)
    points = np.array([[1.0, 1.0, 1.0], [0.5, 0.9, 0.1 + 0.2], [1.0, 1.0, 1.0]])
    segments = Segments.of(
        np.array([0, 0, 2]),
        np.array([0, 0, problem.platform.processor_count - 1]),
        np.array([0.0, 1.5, 0.0]),
        np.array([1.5, 1 / 3 + 2, 9.0]),
        points,
        np.array([0.25, 0.75, 0.5]),
        np.array([0, 0, 1]),
    )
    spans = PowerSpans(
        np.array([0, problem.platform.server_count - 1]),
        np.array([ON, DOWN]),
        np.array([0.0, 9.0]),
        np.array([np.inf, 10.0]),
    )
    outcomes = Outcomes(
        np.array([0, REJECTED, FAILED]),
        np.array(["", 'cannot meet "deadline", needs 7 s', "node lost"], dtype=object),
        np.array([0.9, 1.0, 1.0]),
    )
    return problem, Schedule(segments, spans, outcomes, "edl")


def assert_same(one: Schedule, other: Schedule) -> None:
    for part in ("segments", "spans", "outcomes"):
        mine, theirs = getattr(one, part), getattr(other, part)
        for field in mine.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(mine, field), getattr(theirs, field))
    assert one.policy == other.policy


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_schedule_comes_back_bit_for_bit(tmp_path: Path, suffix: str) -> None:
    problem, schedule = small()
    path = tmp_path / f"plan.{suffix}"
    write_schedule(schedule, problem, path)
    assert_same(schedule, read_schedule(path, problem))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("seed", range(20))
def test_generated_schedules_come_back(tmp_path: Path, suffix: str, seed: int) -> None:
    problem = random_problem(seed)
    schedule = random_schedule(problem, seed)
    path = tmp_path / f"plan.{suffix}"
    write_schedule(schedule, problem, path)
    assert_same(schedule, read_schedule(path, problem))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_answer_that_runs_nothing_comes_back(tmp_path: Path, suffix: str) -> None:
    problem = random_problem(5, tasks=2)
    none, no_times = np.empty(0, dtype=np.int64), np.empty(0)
    schedule = Schedule(
        Segments.of(none, none, no_times, no_times, np.empty((0, 3))),
        PowerSpans(none, none, no_times, no_times),
        Outcomes(np.full(2, REJECTED), np.full(2, "too late", dtype=object), np.ones(2)),
    )
    path = tmp_path / f"plan.{suffix}"
    write_schedule(schedule, problem, path)
    assert_same(schedule, read_schedule(path, problem))


def test_the_file_can_be_checked_by_hand(tmp_path: Path) -> None:
    problem, schedule = small()
    write_schedule(schedule, problem, tmp_path / "plan.json")
    data = json.loads((tmp_path / "plan.json").read_text("utf-8"))
    names = problem.tasks.name
    assert data["format"] == "downclock-schedule/1"
    assert data["policy"] == "edl"
    assert data["segments"][0] == {
        "task": names[0],
        "attempt": 0,
        "processor": problem.platform.processor_name(0),
        "start_s": 0.0,
        "end_s": 1.5,
        "core": 1.0,
        "memory": 1.0,
        "volt": 1.0,
        "share": 0.25,
    }
    assert data["spans"][0] == {
        "server": problem.platform.server_name[0],
        "state": "on",
        "start_s": 0.0,
        "end_s": None,
    }
    assert [row["status"] for row in data["outcomes"]] == ["done", "rejected", "failed"]


def test_tasks_done_as_planned_are_not_listed(tmp_path: Path) -> None:
    problem, schedule = small()
    done = replace(schedule, outcomes=Outcomes.all_done(3))
    write_schedule(done, problem, tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text("utf-8"))["outcomes"] == []


def test_the_csv_opens_in_a_spreadsheet(tmp_path: Path) -> None:
    problem, schedule = small()
    write_schedule(schedule, problem, tmp_path / "plan.csv")
    with (tmp_path / "plan.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["record"] for row in rows] == ["segment"] * 3 + ["span"] * 2 + ["outcome"] * 3
    assert float(rows[1]["end_s"]) == 1 / 3 + 2
    assert rows[3]["end_s"] == ""
    assert rows[6]["reason"] == 'cannot meet "deadline", needs 7 s'


def test_segments_written_by_hand_need_four_columns(tmp_path: Path) -> None:
    problem, _ = small()
    path = tmp_path / "plan.csv"
    server = problem.platform.server_name[0]
    path.write_bytes(
        f"task,processor,start_s,end_s\r\n{problem.tasks.name[1]},{server}/1,0,5\r\n".encode(
            "utf-8-sig"
        )
    )
    schedule = read_schedule(path, problem)
    assert schedule.segments.task.tolist() == [1]
    assert schedule.segments.processor.tolist() == [0]
    assert schedule.segments.share.tolist() == [1.0]
    assert schedule.segments.points.tolist() == [[1.0, 1.0, 1.0]]
    assert len(schedule.spans) == 0
    assert schedule.outcomes.status.tolist() == [0, 0, 0]


ROW = {"task": "t0", "processor": "?", "start_s": 0.0, "end_s": 1.0}

BROKEN: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "other format": (lambda d: d.update(format="x"), "line 2: format='x' must be one of"),
    "no segments": (lambda d: d.pop("segments"), "needs the key 'segments'"),
    "unknown key": (lambda d: d.update(span=[]), "span is not a known key; did you mean 'spans'?"),
    "unknown task": (
        lambda d: d["segments"][1].update(task="t9"),
        "line 7: task='t9' is no task of the problem",
    ),
    "unknown processor": (
        lambda d: d["segments"][0].update(processor="moon/1"),
        "line 6: processor='moon/1' is no processor of the problem",
    ),
    "unknown server": (
        lambda d: d["spans"][0].update(server="moon"),
        "line 11: server='moon' is no server of the problem",
    ),
    "unknown state": (
        lambda d: d["spans"][0].update(state="off"),
        "line 11: state='off' must be one of on, waking, asleep, down",
    ),
    "unknown status": (
        lambda d: d["outcomes"][0].update(status="lost"),
        "status='lost' must be one of done, rejected, failed, pending",
    ),
    "wrong type": (
        lambda d: d["segments"][2].update(start_s="now"),
        "line 8: start_s='now' must be a number",
    ),
    "NaN": (
        lambda d: d["segments"][2].update(end_s=float("nan")),
        "line 8: end_s='nan' must be a number",
    ),
    "missing time": (lambda d: d["segments"][2].pop("end_s"), "line 8: end_s is empty"),
    "fractional attempt": (
        lambda d: d["segments"][2].update(attempt=0.5),
        "line 8: attempt=0.5 must be a whole number",
    ),
    "two outcomes": (
        lambda d: d["outcomes"].append(d["outcomes"][0]),
        "has two outcomes",
    ),
    "segments of another type": (lambda d: d.update(segments={}), "must be a list of objects"),
}


def as_lines(data: dict[str, Any]) -> str:
    """Write one row a line, as the writer does, so that the tests know the lines."""
    parts = []
    for key, value in data.items():
        if isinstance(value, list):
            body = ",\n".join(json.dumps(row) for row in value)
            parts.append(f'"{key}": [\n{body}\n]')
        else:
            parts.append(f'"{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}"


@pytest.mark.parametrize(("breakage", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_refused_in_one_line(
    tmp_path: Path, breakage: Callable[[dict[str, Any]], object], message: str
) -> None:
    problem, schedule = small()
    path = tmp_path / "plan.json"
    write_schedule(schedule, problem, path)
    data = json.loads(path.read_text("utf-8"))
    breakage(data)
    path.write_text(as_lines(data), "utf-8")
    with pytest.raises(InvalidInput) as caught:
        read_schedule(path, problem)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


BAD_CSV = {
    "unknown record": (
        "record,task,processor,start_s,end_s\npiece,t0,x,0,1\n",
        "line 2: record='piece' must be one of segment, span, outcome",
    ),
    "missing column": ("task,start_s,end_s\nt0,0,1\n", "no column 'processor'"),
    "unknown column": (
        "task,processor,start,end_s\nt0,x,0,1\n",
        "line 1, column 'start': is not a known column; did you mean 'start_s'?",
    ),
    "a line further down": (
        "record,task,processor,server,state,start_s,end_s\n"
        "outcome,t0,,,,,\nspan,,,nowhere,on,0,1\n",
        "line 3: server='nowhere' is no server of the problem",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD_CSV.values(), ids=BAD_CSV)
def test_a_bad_csv_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    problem, _ = small()
    (tmp_path / "plan.csv").write_text(text, "utf-8")
    with pytest.raises(InvalidInput) as caught:
        read_schedule(tmp_path / "plan.csv", problem)
    assert message in str(caught.value)


def test_what_names_nothing_is_not_written(tmp_path: Path) -> None:
    problem, schedule = small()
    segments = replace(schedule.segments, task=np.array([0, 0, 7]))
    with pytest.raises(InvalidInput, match=r"segment 3: task=7 is no task of the problem"):
        write_schedule(replace(schedule, segments=segments), problem, tmp_path / "plan.json")
    segments = replace(schedule.segments, share=np.array([0.5, np.nan, 0.5]))
    with pytest.raises(InvalidInput, match=r"segment 2: share=nan must be finite"):
        write_schedule(replace(schedule, segments=segments), problem, tmp_path / "plan.csv")
    with pytest.raises(InvalidInput, match=r"outcomes: has 2 rows; the problem has 3 tasks"):
        write_schedule(
            replace(schedule, outcomes=Outcomes.all_done(2)), problem, tmp_path / "plan.json"
        )
    assert list(tmp_path.iterdir()) == []


def test_a_schedule_without_a_suffix_is_parquet_where_tasks_are_many(monkeypatch):
    problem = random_problem(3)
    assert schedule_path("a/plan", problem) == Path("a/plan.json")
    monkeypatch.setattr("downclock.schedule.files.LARGE", len(problem.tasks) - 1)
    assert schedule_path("a/plan", problem) == Path("a/plan.parquet")
    assert schedule_path("a/plan.v1.csv", problem) == Path("a/plan.v1.csv")
