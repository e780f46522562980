from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import downclock as dc
from downclock.planners.bounds import Bounds
from downclock.schedule.account.bill import PARTS
from tests.cli.conftest import JOBS


def test_plan_shows_the_bill_beside_both_baselines(run, files):
    ran = run("plan", files.cluster, files.jobs)
    assert ran.code == 0
    assert ran.err == ""
    head = next(line for line in ran.out.splitlines() if "race" in line)
    assert head.split() == ["known", "race", "static-cap"]
    for row in ("run energy", "idle energy", "wake energy", "total energy", "gap to the bound"):
        assert row in ran.out


def test_a_plan_before_anything_is_compiled_says_that_it_is_no_long_search(run, files, monkeypatch):
    """The search for the usual plan is shorter where it would run as plain Python."""
    from downclock.planners.cluster.known.solve import search_on

    given = ["plan", files.cluster, files.jobs]
    for kept, here, said in ((False, True, True), (True, True, False), (False, False, False)):
        monkeypatch.setattr("downclock.study.baselines.available", lambda here=here: here)
        monkeypatch.setattr(type(search_on), "is_ready", property(lambda _, kept=kept: kept))
        assert ("a brief search" in run(*given).err) == said
    monkeypatch.setattr("downclock.study.baselines.available", lambda: True)
    assert run(*given, "--policy", "edl").err == run(*given, "--effort", "0.1").err == ""
    assert run(*given, "--quiet").err == ""


def test_a_plan_at_clocks_that_nobody_measured_says_so(run, files):
    head, tail = (
        '[[kind]]\nname = "a100"\n',
        '[[server]]\nname = "s"\nprocessors = [{kind = "a100"}]\n',
    )
    jobs = files.write("jobs.csv", "name,run\na,1h\n")
    said = run("plan", files.write("far.toml", f"{head}core_mhz = [1410, 5000]\n{tail}"), jobs).err
    assert "a100: core clocks 1410 to 5000 MHz, its profiles were fitted at 510 to 1410 MHz" in said
    assert "extrapolated" not in run("plan", files.write("near.toml", head + tail), jobs).err


def test_a_rejected_job_is_listed_with_its_reason(run, files):
    ran = run("plan", files.cluster, files.jobs)
    assert "1 task rejected" in ran.out
    line = next(line for line in ran.out.splitlines() if line.split()[:1] == ["d"])
    assert "40" in line, "the earliest possible finish is 40 s (4 units of 10 s at clock 1)"
    assert "3 of 4" in ran.out


def test_a_plan_that_rejects_all_jobs_ends_with_code_1_and_says_why(run, files):
    head, *rows = JOBS.splitlines()
    files.write("jobs.csv", f"{head}\n{rows[-1]}\n")
    ran = run("plan", files.cluster, files.jobs)
    assert (ran.code, ran.err) == (1, "error: all jobs are rejected\n")
    assert "1 task rejected" in ran.out
    assert "40 s at full speed" in ran.out
    quiet = run("plan", files.cluster, files.jobs, "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (1, "", ran.err)


def test_a_graph_that_no_plan_holds_ends_the_same_way(run, files):
    prices = files.write("prices.csv", "time_s,price_eur_per_kwh\n0,0.1\n3600,0.2\n")
    graph = files.write("graph.stg", "1\n0 0 0\n1 7200 1 0\n2 0 1 1\n")
    given = ["--cores", "1", "--slot", "1h", "--prices", prices, "--deadline", "3600"]
    assert run("convert", graph, *given, "-o", files.path("graph.json")).code == 0
    ran = run("plan", files.path("graph.json"))
    assert (ran.code, ran.err) == (1, "error: all jobs are rejected\n")
    assert "cannot end by its deadline" in ran.out


def test_json_holds_what_the_library_computes(run, files):
    data = json.loads(run("plan", files.cluster, files.jobs, "--format", "json").out)
    problem = dc.load_problem(files.cluster, files.jobs)
    bill = dc.account(problem, dc.plan(problem))
    assert data["plan"]["bill"]["total_j"] == bill.total_j
    assert data["plan"]["done"] == 3
    assert [job["task"] for job in data["plan"]["rejected"]] == ["d"]
    assert [each["policy"] for each in data["baselines"]] == ["race", "static-cap"]
    race = data["baselines"][0]
    assert race["saved"] == pytest.approx(1 - bill.total_j / race["bill"]["total_j"])


def test_race_uses_full_clocks(run, files):
    data = json.loads(run("plan", files.cluster, files.jobs, "--format", "json").out)
    # Jobs a, b, c: 2 + 1 + 3 units of 10 s at 40 + 60 W.
    assert data["baselines"][0]["bill"]["energy_j"]["run"] == pytest.approx(6 * 10 * 100)


def test_the_lower_bound_is_the_least_run_energy_of_the_jobs_that_run_and_a_wake(run, files):
    data = json.loads(run("plan", files.cluster, files.jobs, "--format", "json").out)
    # The voltage is fixed, so power is 40 + 60 f and a unit takes 10 / f: 400 / f + 600 J,
    # least at f = 1: 1000 J a unit, 6 units; one wake of 100 J.
    assert data["plan"]["bound_j"] == pytest.approx(6100.0)
    total = data["plan"]["bill"]["total_j"]
    assert data["plan"]["gap"] == pytest.approx(total / 6100.0 - 1.0)


def test_csv_has_a_row_per_policy_with_units_in_the_names(run, files):
    rows = list(
        csv.DictReader(io.StringIO(run("plan", files.cluster, files.jobs, "--format", "csv").out))
    )
    assert [row["policy"] for row in rows] == ["known", "race", "static-cap"]
    parts = sum(float(rows[0][f"{part}_j"]) for part in PARTS)
    assert float(rows[0]["total_j"]) == pytest.approx(parts)
    assert rows[0]["rejected"] == "1"


@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
def test_the_written_schedule_is_the_plan(run, files, suffix):
    path = files.path(f"schedule.{suffix}")
    ran = run("plan", files.cluster, files.jobs, "--output", path)
    assert (ran.code, ran.err) == (0, f"wrote {path}\n")
    problem = dc.load_problem(files.cluster, files.jobs)
    schedule, fresh = dc.read_schedule(path, problem), dc.plan(problem)
    assert schedule.segments.start_s.tolist() == fresh.segments.start_s.tolist()
    assert schedule.policy == fresh.policy


def test_quiet_prints_nothing_and_still_writes(run, files):
    path = files.path("schedule.json")
    ran = run("plan", files.cluster, files.jobs, "--quiet", "--output", path)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert Path(path).exists()


def test_quiet_proves_no_bound_that_nobody_sees(run, files, monkeypatch):
    asked = []
    monkeypatch.setattr(Bounds, "prove", lambda *_, **__: asked.append(1))
    assert run("plan", files.cluster, files.jobs, "--quiet").code == 0
    assert not asked
    page = files.path("page.html")
    assert run("plan", files.cluster, files.jobs, "--quiet", "--report", page).code == 0
    assert asked


def test_one_problem_file_gives_the_same_plan(run, files):
    problem = dc.load_problem(files.cluster, files.jobs)
    dc.write_problem(problem, files.path("problem.json"))
    two = json.loads(run("plan", files.cluster, files.jobs, "--format", "json").out)
    one = json.loads(run("plan", files.path("problem.json"), "--format", "json").out)
    assert one["plan"]["bill"] == two["plan"]["bill"]


def test_baselines_sleep_by_the_same_rule(run, files):
    ran = run("plan", files.cluster, files.jobs, "--policy", "edl:rho=never", "--format", "json")
    data = json.loads(ran.out)
    assert [b["policy"] for b in data["baselines"]] == ["race:rho=never", "static-cap:rho=never"]


def test_a_later_boundary_bills_more(run, files):
    def total(*extra: str) -> float:
        ran = run(
            "plan",
            files.cluster,
            files.jobs,
            "--policy",
            "race:rho=never",
            *extra,
            "--format",
            "json",
        )
        return json.loads(ran.out)["plan"]["bill"]["total_j"]

    assert total() <= total("--boundary", "makespan") < total("--boundary", "1000")


def test_prices_add_money_and_carbon(run, files):
    prices = files.write(
        "prices.csv", "time_s,price_eur_per_kwh,carbon_g_per_kwh\n0,0.5,100\n500,0.5,100\n"
    )
    ran = run("plan", files.cluster, files.jobs, "--prices", prices, "--format", "json")
    bill = json.loads(ran.out)["plan"]["bill"]
    assert bill["money"] == pytest.approx(0.5 * bill["total_j"] / 3.6e6)
    assert bill["carbon_kg"] == pytest.approx(0.1 * bill["total_j"] / 3.6e6)
    shown = run("plan", files.cluster, files.jobs, "--prices", prices).out
    assert "EUR" in shown
    assert "CO2" in shown


def test_every_number_in_the_table_has_a_unit_or_says_what_it_counts(run, files):
    ran = run("plan", files.cluster, files.jobs)
    rows = [line for line in ran.out.splitlines() if " energy " in line or "bound" in line]
    assert len(rows) >= 5
    for row in rows:
        assert row.rstrip().endswith(("J", "%")), row


def test_names_that_look_like_markup_are_shown_as_they_are(run, files):
    files.write("jobs.csv", JOBS.replace("\nd,", "\n[bold]d[/bold],"))
    assert "[bold]d[/bold]" in run("plan", files.cluster, files.jobs).out


def test_an_invalid_plan_is_an_internal_error_and_writes_nothing(run, files, monkeypatch):
    from downclock.planners import portfolio

    def broken(problem, policy):
        schedule = plan(problem, policy)
        schedule.segments.start_s[:] = -1.0
        return schedule

    plan = portfolio.plan
    monkeypatch.setattr(portfolio, "plan", broken)
    path = files.path("schedule.json")
    ran = run("plan", files.cluster, files.jobs, "--policy", "race", "--output", path)
    assert ran.code == 3
    assert "internal error" in ran.err
    assert ran.out == ""
    assert not Path(files.path("schedule.json")).exists()
