"""The other commands: verify, account, fit, generate, show, policies, completion."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import downclock as dc
from tests.cli.conftest import MEASUREMENTS


@pytest.fixture
def schedule(run, files) -> str:
    path = files.path("schedule.json")
    assert run("plan", files.cluster, files.jobs, "-q", "--output", path).code == 0
    return path


@pytest.fixture
def late(files, schedule) -> str:
    """The plan with job a moved behind its deadline."""
    data = json.loads(Path(schedule).read_text())
    row = next(row for row in data["segments"] if row["task"] == "a")
    row["start_s"] += 1000.0
    row["end_s"] += 1000.0
    return files.write("late.json", json.dumps(data))


FITTED = ("slow", "two", "odd")


def test_verify_says_yes_with_code_0(run, files, schedule):
    ran = run("verify", files.cluster, files.jobs, schedule)
    assert ran.code == 0
    assert ran.out.startswith("valid: ")


def test_verify_says_no_with_code_1_and_names_task_and_rule(run, files, late):
    ran = run("verify", files.cluster, files.jobs, late)
    assert ran.code == 1
    assert "invalid" in ran.out
    assert "deadline" in ran.out
    assert "'a'" in ran.out


def test_verify_in_json_lists_every_violation(run, files, late):
    data = json.loads(run("verify", files.cluster, files.jobs, late, "--format", "json").out)
    assert data["valid"] is False
    assert data["violations"] == sum(data["by_rule"].values())
    assert {"deadline"} <= {row["rule"] for row in data["listed"]}
    assert "a" in {row["task"] for row in data["listed"]}


def test_verify_in_csv_has_a_head_even_without_rows(run, files, schedule):
    ran = run("verify", files.cluster, files.jobs, schedule, "--format", "csv")
    assert ran.out == "rule,message,task,processor,server\n"


def test_account_prints_the_bill_of_the_library(run, files, schedule):
    problem = dc.load_problem(files.cluster, files.jobs)
    bill = dc.account(problem, dc.read_schedule(schedule, problem))
    assert run("account", files.cluster, files.jobs, schedule).out == f"{bill}\n"
    data = json.loads(run("account", files.cluster, files.jobs, schedule, "--format", "json").out)
    assert data["total_j"] == bill.total_j
    assert [row["task"] for row in data["tasks"]] == ["a", "b", "c", "d"]


def test_account_in_csv_has_a_row_per_server(run, files, schedule):
    out = run("account", files.cluster, files.jobs, schedule, "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["server"] for row in rows] == ["s1", "s2"]
    problem = dc.load_problem(files.cluster, files.jobs)
    bill = dc.account(problem, dc.read_schedule(schedule, problem))
    assert sum(float(row["total_j"]) for row in rows) == pytest.approx(bill.total_j)


def test_account_notes_on_stderr_that_a_schedule_is_not_valid(run, files, late):
    ran = run("account", files.cluster, files.jobs, late)
    assert ran.code == 0
    assert ran.err.startswith("note: invalid")
    assert len(ran.err.splitlines()) == 1


def test_account_refuses_a_schedule_without_power_as_bad_input(run, files, schedule):
    data = json.loads(Path(schedule).read_text())
    data["segments"][0]["end_s"] = -5.0
    path = files.write("broken.json", json.dumps(data))
    ran = run("account", files.cluster, files.jobs, path)
    assert ran.code == 2
    assert "broken.json" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_results_go_to_a_file_as_a_whole(run, files, schedule):
    path = files.path("bill.csv")
    ran = run("account", files.cluster, files.jobs, schedule, "--format", "csv", "--output", path)
    assert (ran.code, ran.out, ran.err) == (0, "", f"wrote {path}\n")
    assert Path(path).read_text().startswith("server,run_j,")


def test_fit_prints_errors_and_writes_a_library(run, files):
    source, path = files.write("runs.csv", MEASUREMENTS), files.path("fitted.json")
    ran = run("fit", source, "--kind", "gpu", "--default-core-mhz", "1000", "--output", path)
    assert ran.code == 0
    assert "slow" in ran.out
    assert "%" in ran.out
    library = dc.read_library(path)
    assert (library.names.tolist(), library.kinds) == (["slow"], ("gpu",))


def test_fit_reads_other_peoples_column_names(run, files):
    text = MEASUREMENTS.replace("core_mhz", "sm_clock").replace("time_s", "ms")
    source = files.write("runs.csv", text)
    ran = run(
        "fit",
        source,
        "--kind",
        "gpu",
        "--default-core-mhz",
        "1000",
        "--columns",
        "core_mhz=sm_clock,time_ms=ms",
        "--format",
        "json",
    )
    data = json.loads(ran.out)
    assert data["applications"][0]["points"] == 3


def test_a_fitted_library_plans(run, files):
    source, path = files.write("runs.csv", MEASUREMENTS), files.path("fitted.json")
    run("fit", source, "--kind", "gpu", "--default-core-mhz", "1000", "--output", path)
    jobs = files.write("mine.csv", "application,deadline_s\nslow,50\n")
    ran = run("plan", files.cluster, jobs, "--library", path)
    assert ran.code == 0
    assert "1 of 1" in ran.out


def test_the_public_1080_ti_measurements_fit(run, shared_data):
    """30 applications; errors of an independent prototype: 0.80 % of time, 0.83 % of power."""
    source = shared_data / "dvfs" / "hkbu" / "gtx1080ti-dvfs-real-Performance-Power.csv"
    names = "application=appName,core_mhz=coreF,memory_mhz=memF,time_ms=time/ms,power_w=power/W"
    clocks = ["--default-core-mhz", "1800", "--default-memory-mhz", "5000"]
    law = ["--law", "mei"]
    ran = run("fit", str(source), "--kind", "gtx1080ti", *clocks, *law, "--columns", names)
    assert " ".join(ran.out.splitlines()[:2]) == (
        "30 applications fitted; mean absolute error 0.80 % of time (0.91 % held out), 0.83 % of"
        " power (1.28 % held out)"
    )


def test_the_public_a100_measurements_fit_through_the_same_command(run, shared_data, files):
    sources = sorted(map(str, (shared_data / "dvfs" / "a100").glob("GA100-dvfs-*-dcgm.csv")))
    names = "core_mhz=sm_app_clock,time_s=run_time,power_w=power_usage"
    path = files.path("a100.json")
    ran = run(
        "fit",
        *sources,
        "--kind",
        "a100",
        "--default-core-mhz",
        "1410",
        "--columns",
        names,
        "--weighting",
        "relative",
        "--output",
        path,
    )
    assert ran.code == 0
    assert ran.out.startswith("25 applications fitted; ")
    assert "voltage law proportional" in ran.out
    assert dc.read_library(path).basis["a100"].core_mhz[::20] == (510, 810, 1110, 1410)


def test_a_second_fit_is_appended_under_the_law_of_the_first(run, files):
    first, path = files.write("runs.csv", MEASUREMENTS), files.path("fitted.json")
    fit = ("--kind", "gpu", "--default-core-mhz", "1000", "--output", path)
    assert run("fit", first, *fit, "--law", "proportional", "--source", "mine").code == 0
    second = files.write("more.csv", MEASUREMENTS.replace("slow", "quick"))
    assert run("fit", second, *fit, "--append").code == 0
    library = dc.read_library(path)
    assert (library.names.tolist(), library.source) == (["slow", "quick"], "mine")
    assert library.basis["gpu"].law == dc.VoltageLaw(0.0, 1.0, 0.0)
    again = run("fit", second, *fit, "--append")
    assert again.code == 2
    assert "application 'quick': has a profile for kind 'gpu' in two libraries" in again.err


def test_power_limits_are_fitted_and_planned(run, files):
    """Three limits measured; the plan names the one of least energy that is in time."""
    source = files.write(
        "zeus.csv",
        "network,batch,power_limit,time_per_epoch,average_power\n"
        "bert,8,100,30,98\nbert,8,150,18,146\nbert,8,250,15,230\n",
    )
    path = files.path("a40.json")
    columns = "application=network+batch,power_limit_w=power_limit,time_s=time_per_epoch"
    columns += ",power_w=average_power"
    ran = run("fit", source, "--kind", "a40", "--columns", columns, "--output", path)
    assert ran.out.startswith("no applications fitted, 1 measured table kept")
    assert dc.read_library(path).basis["a40"].power_limit_w == (100, 150, 250)
    cluster = files.write(
        "a40.toml",
        'applications = "a40.json"\n[[kind]]\nname = "a40"\n'
        '[[server]]\nname = "s"\nprocessors = [{ kind = "a40", count = 2 }]\n',
    )
    jobs = files.write("epochs.csv", "name,run,application,deadline\na,1h,bert/8,+2h\n")
    schedule = files.path("epochs.json")
    assert run("plan", cluster, jobs, "--output", schedule).code == 0
    segment = json.loads(Path(schedule).read_text())["segments"][0]
    assert segment["end_s"] == pytest.approx(3600 * 18 / 15)  # 146 W x 18 s is least
    said = run("explain", cluster, jobs, schedule, "a").out
    assert "limit 150 W" in said
    assert "3 power limits, 100 to 250 W" in run("show", cluster).out


THREE_KINDS = """
[[kind]]
name = "a100"
[[kind]]
name = "v100"
[[kind]]
name = "mine"
core = [0.5, 1.0]
[[server]]
name = "s"
processors = [{ kind = "a100", count = 2 }, { kind = "v100" }, { kind = "mine" }]
"""


def test_jobs_given_by_their_run_time_are_planned_and_assumptions_told_once(run, files):
    cluster = files.write("three.toml", THREE_KINDS)
    jobs = files.write("mine.csv", "name,run,gpus,deadline\na,2h,1,+6h\nb,1h,4,+9h\nc,1h,1,\n")
    ran = run("plan", cluster, jobs, "--deadline-factor", "3", "--archetype", "memory-bound")
    assert ran.code == 0
    assert "2 of 3" in ran.out
    assert "b      needs 4 processors at once" in ran.out
    told = [line for line in ran.err.splitlines() if line.startswith("assumed: ")]
    assert len(told) == len(set(told)) == 6
    assert "3 jobs without measurements: memory-bound" in told[1]
    assert told[3].startswith("assumed: jobs without measurements do not run on mine")
    quiet = run("plan", cluster, jobs, "--quiet")
    assert (quiet.code, quiet.err) == (0, "")


def test_show_warns_where_a_kind_has_no_profile(run, files):
    cluster = files.write("three.toml", THREE_KINDS)
    out = " ".join(run("show", cluster).out.split())
    assert "kind v100: no application of the library was measured on it; jobs given by" in out
    assert "kind mine: no profile of it is known, so nothing runs there" in out
    jobs = files.write("mine.csv", "name,run\na,2h\nb,1h\n")
    out = " ".join(run("show", cluster, jobs).out.split())
    assert "kind mine: no profile for 2 of 2 tasks (a, b): not run there" in out
    lower = files.write(
        "low.toml", THREE_KINDS.replace('v100"\n[[', 'v100"\ncore_mhz = [405, 1380]\n[[', 1)
    )
    out = " ".join(run("show", lower).out.split())
    assert "kind v100: core clocks 405 to 1380 MHz, its profiles were fitted at 802 to 1380" in out


def test_options_that_read_jobs_do_not_fit_a_problem_file(run, files):
    path = files.path("problem.json")
    run("generate", "mei2021-offline", "--utilisation", "0.01", "--output", path)
    ran = run("show", path, "--deadline-factor", "2")
    assert ran.code == 2
    assert "--deadline-factor is not for it" in ran.err
    for bad in ("0", "-1", "inf", "nan"):
        assert run("show", path, "--deadline-factor", bad).code == 2


@pytest.mark.parametrize("workload", ["mei2021-offline", "mei2021-online", "mei2017-online"])
def test_generate_is_seeded_and_its_problem_can_be_planned(run, files, workload):
    def problem(seed: str, name: str) -> str:
        path = files.path(name)
        ran = run(
            "generate",
            workload,
            "--seed",
            seed,
            "--utilisation",
            "0.02",
            "--pairs",
            "1024",
            "--per-server",
            "4",
            "--output",
            path,
        )
        assert ran.code == 0
        return Path(path).read_text()

    first = problem("3", "one.json")
    assert first == problem("3", "two.json")
    assert first != problem("4", "three.json")
    ran = run("plan", files.path("one.json"), "--format", "csv")
    assert ran.code == 0
    assert next(csv.DictReader(io.StringIO(ran.out)))["rejected"] == "0"


def test_generate_mei2017_has_the_conference_papers_idle_power(run, files):
    path = files.path("p.json")
    run("generate", "mei2017-offline", "--utilisation", "0.01", "--output", path)
    assert dc.read_problem(path).platform.kinds[0].idle_w == 85.0  # mei2017 section V-A


def test_show_describes_every_kind_of_file(run, files, schedule):
    dc.write_problem(dc.load_problem(files.cluster, files.jobs), files.path("problem.json"))
    cases = [
        ((files.cluster,), "2 servers"),
        ((files.path("library.json"),), "1 application"),
        (("builtin:a100",), "25 applications"),
        ((files.cluster, files.jobs), "Problem jobs"),
        ((files.path("problem.json"),), "Problem jobs"),
        ((files.cluster, files.jobs, schedule), "3 done, 1 rejected"),
        ((files.path("problem.json"), schedule), "3 done, 1 rejected"),
    ]
    for arguments, text in cases:
        ran = run("show", *arguments)
        assert (ran.code, ran.err) == (0, ""), arguments
        assert text in ran.out


def test_show_draws_who_runs_when(run, files):
    """One job of 20 s on the first processor, then nothing else: all of its row is busy."""
    jobs = files.write("one.csv", "name,application,scale\na,train,2\n")
    path = files.path("one.json")
    run("plan", files.cluster, jobs, "-q", "--output", path)
    ran = run("show", files.cluster, jobs, path)
    rows = {
        line.split("|")[0].strip(): line.split("|")[1]
        for line in ran.out.splitlines()
        if line.startswith("s")
    }
    busy = [name for name, chart in rows.items() if set(chart) == {"█"}]
    assert len(rows) == 4
    assert len(busy) == 1
    server = busy[0].split("/")[0]
    for name, chart in rows.items():
        if name != busy[0]:
            assert set(chart) == {"·" if name.startswith(server) else " "}, name


def test_show_asks_for_the_problem_of_a_schedule(run, schedule):
    ran = run("show", schedule)
    assert ran.code == 2
    assert "problem" in ran.err


def test_policies_lists_the_whole_catalogue(run):
    data = json.loads(run("policies", "--format", "json").out)
    assert [row["policy"] for row in data["policies"]] == list(dc.CATALOG)
    assert data["default"] == {"plan": "known", "simulate": "late"}
    shown = run("policies").out
    assert "static-cap" in shown
    assert "plan tries all that apply" in shown
    assert "takes late" in shown


@pytest.mark.parametrize("name", dc.CATALOG)
def test_policies_explains_each_parameter(run, name):
    data = json.loads(run("policies", name, "--format", "json").out)
    defaults = dc.CATALOG[name].defaults
    assert [row["parameter"] for row in data["parameters"]] == list(defaults)
    assert all(len(row["meaning"]) > 10 for row in data["parameters"])


def test_policies_refuses_a_name_it_does_not_know(run):
    ran = run("policies", "nope")
    assert ran.code == 2
    assert "policy='nope' is not a policy" in ran.err


def test_fit_gives_notes_below_the_table_and_means_over_fitted_curves_only(run, files, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")  # the table in one piece
    runs = files.write(
        "runs.csv",
        "application,core_mhz,memory_mhz,time_s,power_w\n"
        + "slow,500,1000,20,60\nslow,1000,1000,10,100\nslow,1500,1000,6.7,142\n"
        + "two,500,1000,20,60\ntwo,1000,1000,10,100\n"  # as many clocks as parameters
        + "odd,500,1000,20,60\nodd,1000,1000,2,900\nodd,1500,1000,19,60\n",  # no such curve
    )
    arguments = ("fit", runs, "--kind", "gpu", "--default-core-mhz", "1000", "--law", "fixed")
    out = run(*arguments).out
    lines = out.splitlines()
    slow, two, odd = (next(x.split() for x in lines if x.strip().startswith(n)) for n in FITTED)
    assert lines[0].startswith("2 applications fitted, 1 measured table kept; mean absolute error")
    assert slow[3] == lines[0].split("error ")[1].split()[0]  # the only known error
    assert two[3:9] == ["unknown"] * 6
    assert odd[3:9] == ["-"] * 6
    assert [x[-1] for x in (slow, two, odd)] == ["[1]", "[2]", "[3]"]
    for note in ("[1] memory clock fixed", "[2] memory clock fixed", "[3] measured table kept"):
        assert any(line.startswith(note) for line in lines)
    data = json.loads(run(*arguments, "--format", "json").out)
    assert data["applications"][1]["time_mape"] is None
    assert "interpolated" in data["applications"][1]["note"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_prints_a_script(run, shell):
    ran = run("completion", shell)
    assert ran.code == 0
    assert "_DOWNCLOCK_COMPLETE" in ran.out


def test_baselines_of_a_report_may_have_several_parameters(run, files, schedule):
    page = files.path("report.html")
    given = ["--baselines", "edl:theta=0.9,rho=120,race", "--output", page]
    ran = run("report", files.cluster, files.jobs, schedule, *given)
    assert ran.code == 0, ran.err
    text = Path(page).read_text()
    assert "edl:theta=0.9,rho=120, race</dd>" in text
    assert "--baselines edl:theta=0.9,rho=120,race" in text
    given[1] = "none"
    assert run("report", files.cluster, files.jobs, schedule, *given).code == 0
    assert "<dt>Baselines</dt><dd>none</dd>" in Path(page).read_text()
