"""``downclock convert``: task graphs of other tools become problems that can be planned."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.planners.chip.test_stg import SMALL
from tests.workloads.test_traces import CLUSTER
from tests.workloads.trace_samples import NODES, PHILLY, PODS, SACCT


def test_a_graph_becomes_a_problem_that_plans(run, files):
    graph, problem = files.write("g.stg", SMALL), files.path("g.json")
    assert run("convert", graph, "--cores", "2", "--output", problem).code == 0
    data = json.loads(run("plan", problem, "--format", "json").out)
    assert data["plan"]["policy"] == "graph"
    assert data["plan"]["gap"] >= 0.0
    assert data["plan"]["done"] == data["tasks"]


@pytest.mark.parametrize("options", [(), ("--per-core",), ("--c3", "50"), ("--deadline", "40")])
def test_clocks_reach_no_further_than_plans_do_and_a_retry_draws_no_more(run, files, options):
    """Twice as fast as one core that does everything, or that is alone with its chip's power."""
    graph, problem = files.write("g.stg", SMALL), files.path("g.json")
    assert run("convert", graph, "--cores", "2", *options, "-o", problem).code == 0
    top = json.loads(Path(problem).read_text())["platform"]["kind"][0]["core"][1]
    planned = run("plan", problem, "-o", files.path("s.json"), "--quiet")
    assert planned.code == 0
    rows = json.loads(Path(files.path("s.json")).read_text())["segments"]
    fastest = max(row["core"] for row in rows)
    assert 0.2 * top < fastest <= 0.5 * top * (1.0 + 1e-9)


def test_short_tasks_are_told_from_none(run, files):
    """Work of a few milliseconds, as in workflows: the clocks follow the deadline."""
    problem = files.path("g.json")
    arguments = ("convert", files.write("g.stg", SMALL), "--cores", "2", "--output", problem)
    assert run(*arguments, "--deadline", "0.01").code == 0
    assert run("plan", problem, "--quiet").code == 0


def test_a_graph_without_work_is_refused(run, files):
    text = "1\n0 0 0\n1 0 1 0\n2 0 1 1\n"
    ran = run(
        "convert", files.write("g.stg", text), "--cores", "2", "--output", files.path("o.json")
    )
    assert ran.code == 2
    assert "has no work" in ran.err
    assert ran.err.count("\n") == 1


HOURS = SMALL.replace("1 4 1 0", "1 14400 1 0").replace("2 2 1 1", "2 7200 1 1")
HOURS = HOURS.replace("3 5 1 0", "3 18000 1 0").split("#")[0]
"""Tasks of 4, 2 (after the first) and 5 hours at clock 1."""

DAY = "MTU,Price\n" + "".join(
    f"2024-06-10T{hour:02d}:00+02:00,{80 if hour < 4 else 20}\n" for hour in range(24)
)
IN_SLOTS = ("--cores", "2", "--slot", "1h", "--deadline", str(20 * 3600))
COLUMNS = ("--columns", "timestamp=MTU,price_eur_per_mwh=Price")


def test_a_graph_becomes_a_priced_plan_in_one_command(run, files):
    """Steps of 0.2 f in an hour, f^3 W: both machines do 16 cheap first steps at 0.16, 4 dear ones
    at 0.64 and then cheap second ones at 1.12 uEUR; 25 steps the one, 30 the chain.
    """
    graph, problem = files.write("g.stg", HOURS), files.path("g.json")
    prices = ("--prices", files.write("day.csv", DAY), *COLUMNS)
    ran = run("convert", graph, *IN_SLOTS, *prices, "--plan", "-o", problem, "--format", "json")
    assert ran.code == 0, ran.err
    plan = json.loads(ran.out)["plan"]
    assert plan["policy"].startswith("least-cost")
    assert plan["bill"]["money"] == pytest.approx(1e-6 * (2 * (16 * 0.16 + 4 * 0.64) + 15 * 1.12))
    again = json.loads(run("plan", problem, "--format", "json").out)["plan"]
    assert again["bill"]["money"] == plan["bill"]["money"]
    assert "least-cost   least-cost:objective=energy" in run("plan", problem).out


WORKFLOW = """{"name": "two", "schemaVersion": "1.5", "workflow": {
  "specification": {"tasks": [
    {"id": "align", "parents": [], "children": ["merge"]},
    {"id": "sort", "parents": [], "children": ["merge"]},
    {"id": "merge", "parents": ["align", "sort"], "children": []}]},
  "execution": {"tasks": [
    {"id": "align", "runtimeInSeconds": 600},
    {"id": "sort", "runtimeInSeconds": 0},
    {"id": "merge", "runtimeInSeconds": 300}]}}}
"""
A100 = """[[kind]]
name = "a100"
[[server]]
name = "s"
wake_s = 60
processors = [{ kind = "a100", count = 4 }]
"""


@pytest.mark.parametrize("name", ["w.json", "g.stg"])
def test_a_graph_becomes_jobs_of_a_cluster_and_a_plan(run, files, name):
    """Its longest path is 900 s (6 hours in the other file): twice that and a wake are there."""
    graph = files.write(name, WORKFLOW if name == "w.json" else HOURS)
    cluster, problem = files.write("a100.toml", A100), files.path("p.json")
    ran = run("convert", graph, "--cluster", cluster, "--plan", "-o", problem, "--format", "json")
    assert ran.code == 0, ran.err
    data = json.loads(ran.out)
    assert data["plan"]["done"] == data["tasks"] >= 3
    tasks = json.loads(Path(problem).read_text())["tasks"]
    assert {row["deadline_s"] for row in tasks} == {60 + 2 * (900 if name == "w.json" else 21600)}
    late = run("convert", graph, "--cluster", cluster, "--deadline", "70", "-o", problem)
    assert late.code == 0
    assert json.loads(run("plan", problem, "--format", "json").out)["plan"]["done"] < data["tasks"]


def test_a_graph_on_a_cluster_has_no_slots_and_without_either_is_refused(run, files):
    graph, cluster = files.write("w.json", WORKFLOW), files.write("a100.toml", A100)
    ran = run("convert", graph, "--cluster", cluster, "--slot", "1h", "-o", files.path("p.json"))
    assert (ran.code, "do not go with a task graph on a --cluster: --slot" in ran.err) == (2, True)
    ran = run("convert", graph, "-o", files.path("p.json"))
    assert (ran.code, "or the --cluster that runs it" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--prices", "day.csv"), "--prices needs --slot"),
        (("--slot", "1h", "--c3", "2"), "do not go with --slot: --c3"),
        (("--slot", "1h", "--islands", "2"), "do not go with --slot: --islands"),
        (("--per-core", "--islands", "2"), "do not go with --per-core: --islands"),
        (("--cluster", "none.toml"), "do not go with --cores: --cluster"),
        (("--card", "a100", "--begin", "2024-01-01"), "do not go with --cores: --begin, --card"),
        (("--ran", "ran.json"), "do not go with --cores: --ran"),
        (("--islands", "3"), "islands=3 must divide the 2 cores"),
        (("--slot", "1h", *COLUMNS), "--columns is about the price file"),
        (("--slot", "0h"), "'0h' is no length of time"),
        (("--slot", "soon"), "'soon'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(run, files, options, words):
    graph, problem = files.write("g.stg", HOURS), files.path("g.json")
    ran = run("convert", graph, "--cores", "2", *options, "--output", problem)
    assert ran.code == 2
    assert words in ran.err


def test_options_of_graphs_are_refused_for_traces(run, files):
    trace = files.write("week.txt", SACCT)
    ran = run("convert", trace, "--slot", "1h", "--plan", "-o", files.path("p.json"))
    assert ran.code == 2
    assert "do not go with a trace: --slot, --plan" in ran.err


def test_islands_are_planned_with_clocks_of_their_own(run, files):
    """4 then 2 beside 5 cycles by 11 s, an island each: (6³ + 5³) / 11² J."""
    graph, problem = files.write("g.stg", SMALL), files.path("g.json")
    asked = ("--cores", "2", "--islands", "2", "--plan", "-o", problem, "--format", "json")
    ran = run("convert", graph, *asked)
    assert ran.code == 0, ran.err
    plan = json.loads(ran.out)["plan"]
    assert plan["bill"]["total_j"] == pytest.approx((6**3 + 5**3) / 11**2, rel=1e-5)


def test_a_deadline_within_the_first_slot_is_said_to_be(run, files):
    graph, problem = files.write("g.stg", HOURS), files.path("g.json")
    slots = ("--cores", "2", "--slot", "1h", "--deadline", "600")
    ran = run("convert", graph, *slots, "--plan", "-o", problem)
    assert ran.code == 2
    assert "no slot ends by the last deadline" in ran.err


def test_a_price_file_of_others_is_told_how_to_name_its_columns(run, files):
    graph, problem = files.write("g.stg", HOURS), files.path("g.json")
    prices = ("--prices", files.write("day.csv", DAY))
    ran = run("convert", graph, *IN_SLOTS, *prices, "-o", problem)
    assert ran.code == 2
    assert "column 'MTU': is not a known column" in ran.err
    assert "--columns timestamp=" in ran.err


def test_prices_that_end_before_the_deadline_are_refused(run, files):
    graph, problem = files.write("g.stg", HOURS), files.path("g.json")
    prices = ("--prices", files.write("day.csv", DAY), *COLUMNS)
    late = ("--cores", "2", "--slot", "1h", "--deadline", str(40 * 3600))
    ran = run("convert", graph, *late, *prices, "--plan", "-o", problem)
    assert ran.code == 2
    assert "zone 'default': is known from 0 s to 86400 s" in ran.err


def test_a_trace_becomes_a_problem_and_a_schedule_as_it_ran(run, files):
    trace, problem, ran = (
        files.write("t.csv", PHILLY),
        files.path("p.parquet"),
        files.path("r.json"),
    )
    told = json.loads(run("convert", trace, "-o", problem, "--ran", ran, "--format", "json").out)
    assert told["format"] == "philly"
    assert told["covered"] == 1.0
    assert told["columns"]["run"] == "duration"
    assert told["rows"] == [{"what": "became jobs", "rows": 3, "gpu_hours": 5.0}]
    assert run("verify", problem, ran).code == 0
    plan = json.loads(run("plan", problem, "--beside", ran, "--format", "json").out)
    assert plan["baselines"][0]["policy"] == "as-it-ran"
    assert 0.0 < plan["baselines"][0]["saved"] < 1.0
    schedule, page = files.path("s.json"), files.path("s.html")
    assert run("plan", problem, "-o", schedule, "-q").code == 0
    assert run("report", problem, schedule, "--beside", ran, "-o", page).code == 0
    assert "as-it-ran" in Path(page).read_text()
    compared = run("compare", problem, "--policies", "race,known:effort=0.01", "--beside", ran)
    assert "as-it-ran" in compared.out
    assert "given" in compared.out


@pytest.mark.parametrize("words", [("show",), ("show", "--format", "json")])
def test_what_convert_writes_can_be_shown(run, files, words):
    problem, ran = files.path("p.parquet"), files.path("r.parquet")
    run("convert", files.write("t.csv", PHILLY), "-o", problem, "--ran", ran)
    shown = run(*words, problem)
    assert shown.code == 0, shown.err
    alone = run(*words, ran)
    assert "give the files it belongs to before it" in alone.err


@pytest.mark.parametrize(
    ("output", "ran", "words"),
    [
        ("t.csv", None, "Invalid value for '-o' / '--output': 't.csv' is the file of"),
        ("./t.csv", None, "'[TRACE|GRAPH]' too"),
        ("p.parquet", "p.parquet", "'p.parquet' is the file of"),
        ("p.parquet", "t.csv", "Invalid value for '--ran'"),
    ],
)
def test_no_file_is_written_over_another_one_of_the_command(
    run, files, monkeypatch, output, ran, words
):
    monkeypatch.chdir(Path(files.write("t.csv", PHILLY)).parent)
    told = run("convert", "t.csv", "-o", output, *(() if ran is None else ("--ran", ran)))
    assert told.code == 2
    assert words.replace("[TRACE|GRAPH]", "TRACE|GRAPH") in told.err
    assert Path("t.csv").read_text() == PHILLY
    assert not Path("p.parquet").exists()


def test_jobs_without_a_place_as_it_ran_are_counted(run, files):
    """Five hours of GPUs, four of them (1 + 2 + 2 GPUs) for an hour on one server of four."""
    rows = "".join(f"2017-10-09 07:00:00,3600,{n},1,v\n" for n in (1, 2, 2))
    trace = files.write("t.csv", PHILLY.splitlines()[0] + "\n" + rows)
    words = ("--cluster", files.write("a100.toml", A100), "--one-pool", "--format", "json")
    told = run("convert", trace, "-o", files.path("p.json"), "--ran", files.path("r.json"), *words)
    places = {each["what"][:11]: each for each in json.loads(told.out)["as_it_ran"]}
    assert places["left out as"]["jobs"] == 1
    assert places["left out as"]["gpu_hours"] == 2.0
    assert places["packed by b"]["gpu_hours"] == 3.0


@pytest.mark.parametrize(
    ("options", "began"),
    [((), "2026-01-05T07:58:00+01:00"), (("--timezone", "UTC"), "2026-01-05T07:58:00+00:00")],
)
def test_times_of_a_trace_are_those_of_its_cluster(run, files, options, began):
    """Its first job comes at eight, two minutes after servers begin to wake."""
    there = files.write("berlin.toml", 'timezone = "Europe/Berlin"\n' + CLUSTER)
    trace, problem = files.write("week.txt", SACCT), files.path("p.json")
    assert run("convert", trace, "--cluster", there, *options, "-o", problem).code == 0
    assert json.loads(Path(problem).read_text())["epoch"] == began


def test_what_was_assumed_and_left_out_is_told(run, files):
    trace = files.write("t.csv", PHILLY + "2017-10-09 09:00:00,x,1,1,vc1\n")
    ran = run("convert", trace, "-o", files.path("p.json"), "--deadline-factor", "3")
    assert ran.code == 0
    told = " ".join(ran.out.split())
    assert "malformed: " in told
    assert "line 5: duration='x' must be a number" in told
    assert "due 3 times their run time after they started" in told
    strict = run("convert", trace, "-o", files.path("p.json"), "--strict")
    assert strict.code == 2
    assert "line 5: duration='x' must be a number" in strict.err


def test_a_late_trace_is_a_baseline_whose_broken_rules_are_told(run, files):
    """Deadlines of the trace itself, which it missed: 800 s after the submission, 900 s of wait."""
    text = SACCT.replace("2026-01-05T08:05:00|2026-01-05T09:05:00", "2026-01-05T10:05:00|x", 1)
    text = text.replace("|x|", "|2026-01-05T11:05:00|", 1)
    mapping = files.write("m.toml", DEADLINES)
    problem, ran = files.path("p.parquet"), files.path("r.parquet")
    trace = files.write("t.txt", text)
    assert run("convert", trace, "--map", mapping, "-o", problem, "--ran", ran).code == 0
    out = run("plan", problem, "--beside", ran).out
    assert "as-it-ran breaks rules of the problem: deadline 1 times" in " ".join(out.split())


DEADLINES = """\
delimiter = "|"
[columns]
name = "JobID"
submit = "Submit"
start = "Start"
run = "ElapsedRaw"
gpus = "NNodes"
within = { column = "TimelimitRaw", as = "minutes" }
"""


def test_nodes_become_a_cluster_that_a_trace_is_converted_on(run, files):
    cluster = files.path("c.toml")
    assert run("convert", files.write("n.csv", NODES), "-o", cluster).code == 0
    told = run(
        "convert", files.write("t.csv", PODS), "--cluster", cluster, "-o", files.path("p.json")
    )
    assert told.code == 0
    assert "3 servers (8 processors)" in " ".join(told.out.split())


def test_nodes_that_are_left_out_are_told(run, files):
    nodes = files.write("n.csv", NODES + "n4,1,1,-2,T4\nn5,1,1,2,\n")
    ran = run("convert", nodes, "-o", files.path("c.toml"))
    assert ran.code == 0
    assert "left out: 1 node without a GPU" in ran.err
    assert "left out: 1 node without a model" in ran.err
    assert "line 6: gpu='-2' must be a whole number of GPUs" in ran.err
    assert "GPU-hours" not in ran.err
    odd = run("convert", nodes, "-o", files.path("d.toml"), "--ran", files.path("r.json"))
    assert (odd.code, "do not go with a list of nodes: --ran" in odd.err) == (2, True)


def test_a_trace_in_a_pipe_is_not_said_to_be_empty(run, tmp_path):
    """It is opened more than once: for its suffix, its columns and its rows."""
    os.mkfifo(tmp_path / "pipe")
    ran = run("convert", str(tmp_path / "pipe"), "-o", str(tmp_path / "p.json"))
    assert (ran.code, "must be a file, not a pipe" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--begin", "soon"), "begin"),
        (("--length", "x"), "must be a duration"),
        (("--map", "none.toml"), "no such file"),
        (("--timezone", "Nowhere"), "is not a time zone"),
        (("--cluster", "none.toml"), "no such file"),
        (("--map", "m.toml", "--trace-format", "swf"), "do not go with --map: --trace-format"),
        (("--cluster", "c.toml", "--card", "a100"), "do not go with --cluster: --card"),
    ],
)
def test_odd_options_of_a_trace_are_refused(run, files, options, words):
    ran = run("convert", files.write("t.csv", PHILLY), "-o", files.path("p.json"), *options)
    assert ran.code == 2
    assert words in ran.err
    assert not Path(files.path("p.json")).exists()
