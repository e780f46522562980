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
        ("--actual", "uniform:2:1", "<= LOW <= HIGH"),
        ("--actual", "file:nowhere.csv", "nowhere.csv"),
        ("--fail-jobs", "2", "fail_jobs=2.0 must be between 0 and 1"),
        ("--repair-s", "0", "repair_s=0.0 must be positive"),
        ("--repair-s", "1e300", "repair_s=1e+300 must be between 1e-15 and 1e+12"),
    ],
)
def test_bad_options_are_one_line(run, files, option, value, said):
    ran = run("simulate", files.cluster, files.jobs, option, value)
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_misses_against_reserve_are_a_table_and_a_row_each(run, files):
    asked = ("--actual", "uniform:0.8:1.2", "--reserve", "0,0.1,0.2", "--runs", "2")
    ran = run("simulate", files.cluster, files.jobs, *asked)
    assert ran.code == 0
    assert [line.split()[0] for line in ran.out.splitlines()[-3:]] == ["0", "0.1", "0.2"]
    ran = run("simulate", files.cluster, files.jobs, *asked, "--format", "json")
    rows = json.loads(ran.out)["reserves"]
    assert [row["reserve"] for row in rows] == [0.0, 0.1, 0.2]
    # the guarantee of the policy: no miss where no job needs more than its reserve
    assert rows[-1]["missed"] == 0.0


def test_a_policy_without_reserve_and_a_bad_list_are_named(run, files):
    ran = run("simulate", files.cluster, files.jobs, "--policy", "edl", "--reserve", "0")
    assert ran.code == 2
    assert "policy 'edl': has no reserve; these have: late, prompt" in ran.err
    ran = run("simulate", files.cluster, files.jobs, "--reserve", "0;1")
    assert ran.code == 2
    assert "must be numbers with commas between" in ran.err
