"""downclock simulate: rows of runs beside the plan."""

from __future__ import annotations

import json

import pytest


def test_exact_run_times_give_the_plan(run, files):
    ran = run("simulate", files.cluster, files.jobs, "--format", "json")
    assert ran.code == 0
    data = json.loads(ran.out)
    (one,) = data["runs"]
    assert one["energy_j"] == data["promised"]["energy_j"]
    assert one["late"] == one["failed"] == one["lost_attempts"] == 0


def test_shorter_jobs_take_less_energy_in_every_run(run, files):
    ran = run(
        "simulate", files.cluster, files.jobs, "--actual", "uniform:0.5:0.9", "--runs", "3",
        "--seed", "5", "--format", "json",
    )  # fmt: skip
    data = json.loads(ran.out)
    assert [one["seed"] for one in data["runs"]] == [5, 6, 7]
    for one in data["runs"]:
        assert one["energy_j"] < data["promised"]["energy_j"]


def test_the_table_has_a_row_a_run_and_their_mean(run, files):
    ran = run("simulate", files.cluster, files.jobs, "--fail-jobs", "0.5", "--runs", "2")
    assert ran.code == 0
    assert "promised:" in ran.out
    assert "mean" in ran.out


def test_the_realised_schedule_can_be_written_and_verified(run, files):
    path = files.path("real.json")
    assert run("simulate", files.cluster, files.jobs, "--output", path, "-q").code == 0
    assert run("verify", files.cluster, files.jobs, path).code == 0


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--actual", "uniform:2:1", "low before high"),
        ("--actual", "file:nowhere.csv", "nowhere.csv"),
        ("--fail-jobs", "2", "fail_jobs=2.0 must be between 0 and 1"),
        ("--repair-s", "0", "repair_s=0.0 must be positive"),
    ],
)
def test_bad_options_are_one_line(run, files, option, value, said):
    ran = run("simulate", files.cluster, files.jobs, option, value)
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
