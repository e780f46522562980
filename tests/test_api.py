"""The public names of the package: lazy, complete, and short in print."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import downclock as dc
from downclock.schedule.schedule import STATUSES
from downclock.workloads.chip import chip_problem
from downclock.workloads.gerhards import random_graph
from tests.conftest import ROOT
from tests.generated import random_problem, random_schedule

NAMES = [name for name in dir(dc) if not name.startswith("_") and name in dc._HOME]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_the_object_of_its_module(name):
    assert getattr(dc, name) is getattr(importlib.import_module(dc._HOME[name]), name)


def test_python_reads_the_names_that_type_checkers_see():
    tree = ast.parse(Path(f"{dc.__file__}i").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.asname: node.module for node in imports for alias in node.names}
    assert homes == dc._HOME


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'plann'"):
        dc.plann  # noqa: B018


def test_importing_the_package_imports_nothing_else():
    script = "import sys, downclock; print([m for m in sys.modules if m.startswith('downclock.')])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_the_map_in_the_docstring_names_every_folder():
    package = Path(dc.__file__).parent
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    missing = {name for name in folders if f"``{name}``" not in (dc.__doc__ or "")}
    assert missing == set()


def test_problems_and_schedules_print_in_one_line_and_render_as_tables():
    problem = random_problem(3)
    schedule = random_schedule(problem, 3)
    assert f"{len(problem.tasks)} tasks" in repr(problem)
    assert f"{len(schedule.segments)} segments" in repr(schedule)
    for thing in (problem, schedule):
        assert len(repr(thing).splitlines()) == 1
        assert len(repr(thing)) < 300
        assert str(thing) == repr(thing)
        html = thing._repr_html_()
        assert html.startswith("<table>")
        assert html.endswith("</table>")
        assert html.count("<tr>") == html.count("</tr>") >= 3


def test_the_parts_of_a_problem_and_its_bill_print_in_one_line():
    problem = random_problem(3)
    bill = dc.account(problem, random_schedule(problem, 3))
    for thing, word in [
        (problem.tasks, f"{len(problem.tasks)}"),
        (problem.library, f"{len(problem.library)} applications"),
        (problem.platform, f"{problem.platform.processor_count} processors"),
        (bill, "J"),
    ]:
        assert word in repr(thing)
        assert len(repr(thing).splitlines()) == 1
        assert len(repr(thing)) < 200


def test_names_in_html_are_escaped():
    problem = random_problem(3)
    renamed = dc.Problem(
        problem.tasks, problem.library, problem.platform, problem.edges, name="<script>"
    )
    assert "<script>" not in renamed._repr_html_()


def test_a_summary_prints_and_renders(monkeypatch):
    monkeypatch.chdir(ROOT)
    problem = dc.load_problem("examples/gpu-day/cluster.toml", "examples/gpu-day/jobs.csv")
    summary = dc.summarise(problem, "edl", baselines=["race"])
    assert summary.plan.bill.total_j < summary.baselines[0].bill.total_j
    assert summary.plan.gap >= 0.0
    assert "edl: 8" in str(summary)
    page = dc.show(summary)
    assert "total energy" in str(page)
    assert "<table>" in page._repr_html_()


def test_the_function_simulate_goes_before_the_folder_of_its_name():
    script = "import downclock as dc, downclock.simulate.chances; dc.plan; print(dc.simulate)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("<function simulate")


def test_a_policy_is_a_name_or_a_value_or_left_out():
    problem = dc.generate("mei2021-online", utilisation=0.002, pairs=8, per_server=4)
    usual = dc.plan(problem)
    assert usual.policy == "known"
    for given in ("edl:theta=0.9", dc.policy("edl:theta=0.9")):
        assert dc.plan(problem, given).policy == "edl:theta=0.9"
        assert dc.simulate(problem, given, seed=3).promised.policy == "edl:theta=0.9"
        assert dc.summarise(problem, given).plan.policy == "edl:theta=0.9"
        (row,) = dc.compare(problem, [given]).plans
        assert row.policy == "edl:theta=0.9"
    run = dc.simulate(problem, chances=dc.Chances(actual="uniform:0.5:0.6"), seed=3)
    assert run.realised.segments.end_s.sum() < usual.segments.end_s.sum()


def test_compare_takes_many_problems():
    problems = [
        dc.generate("mei2021-offline", seed=k, utilisation=0.002, pairs=8, per_server=4)
        for k in (1, 2)
    ]
    told: list[tuple[int, int]] = []
    found = dc.compare(
        problems, ["race", "edl"], progress=lambda _, done, of: told.append((done, of))
    )
    assert [each.problem for each in found] == problems
    assert told == [(0, 4), (1, 4), (2, 4), (3, 4)]
    assert "edl" in str(dc.show(found))
    assert str(found[0]) == str(dc.compare(problems[0], ["race", "edl"]))


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda p: dc.plan(p, 3), "policy=3 must be the name of a policy or a policy, not int"),
        (lambda p: dc.plan("jobs.csv"), "problem='jobs.csv' must be a Problem (dc.load_problem"),
        (lambda p: dc.plan(p, "eld"), "did you mean 'edl'?"),
        (lambda p: dc.compare(p, "edl"), "policies='edl' must be a list of policies"),
        (lambda p: dc.generate("mei2021"), "did you mean 'mei2021-o"),
        (lambda p: dc.Kind("a100", [0.5, 1.0]), "kind 'a100': clocks=[0.5, 1.0] must be a Clock"),
        (lambda p: dc.Platform.build(p.platform.kinds, p.platform.specs[0]), "specs=ServerSpec("),
        (lambda p: dc.Problem(p.tasks, p.platform, p.library), "library=Platform: "),
        (lambda p: dc.account(p, p), "schedule=Problem"),
        (lambda p: dc.verify(p, None), "schedule=None must be a Schedule"),
    ],
)
def test_what_is_of_the_wrong_type_is_named(mistake, words):
    problem = dc.generate("mei2021-offline", utilisation=0.002, pairs=8, per_server=4)
    with pytest.raises(dc.InvalidInput) as refused:
        mistake(problem)
    assert words in str(refused.value)


def test_tables_print_as_tables_and_go_elsewhere():
    problem = random_problem(3)
    schedule = random_schedule(problem, 3)
    segments, outcomes = schedule.segments, schedule.outcomes
    lines = str(segments).splitlines()
    assert lines[0] == f"Segments: {len(segments)} rows"
    assert lines[1].split() == list(segments.columns())
    assert lines[2].split()[:2] == ["0", str(segments.task[0])]
    assert len(lines) <= 2 + 11
    assert segments._repr_html_().count("<tr>") <= 12
    table = segments.to_arrow()
    assert table.column("end_s").to_pylist() == segments.end_s.tolist()
    assert set(outcomes.to_arrow().column("status").to_pylist()) <= set(STATUSES)
    assert "asleep" in str(dc.PowerSpans([0, 1], [2, 0], [0.0, 1.0], [1.0, 2.0]))
    assert problem.tasks.to_arrow().column("name").to_pylist() == problem.tasks.name.tolist()


def test_a_long_table_shows_its_ends():
    column = list(range(1000))
    spans = dc.PowerSpans(column, [0] * 1000, column, column)
    rows = str(spans).splitlines()
    assert len(rows) == 2 + 11
    assert rows[7].split() == ["..."] * 5
    assert rows[-1].split() == ["999", "999", "on", "999", "999"]


def test_tables_go_to_pandas(monkeypatch):
    schedule = random_schedule(random_problem(3), 3)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(dc.MissingExtra, match=r"pip install 'downclock\[pandas\]'"):
        schedule.segments.to_pandas()
    monkeypatch.undo()
    pytest.importorskip("pandas", reason="make .venv anew: the lock has pandas")
    frame = schedule.segments.to_pandas()
    assert frame["task"].tolist() == schedule.segments.task.tolist()


def test_applications_are_named_and_kinds_come_from_the_library():
    library = dc.built_in_library("a100")
    tasks = dc.Tasks.of(["dgemm", "LSTM"], library=library, deadline_s=9e4, processors=[1, 2])
    assert library.names[tasks.application].tolist() == ["dgemm", "LSTM"]
    assert tasks.processors.tolist() == [1, 2]
    assert tasks.deadline_s.tolist() == [9e4, 9e4]
    with pytest.raises(dc.InvalidInput, match="'dgem' is not in the library; did you mean 'dgemm'"):
        dc.Tasks.of(["dgem"], library=library, deadline_s=9e4)
    with pytest.raises(dc.InvalidInput, match="application='dgemm' must be a row, or a name where"):
        dc.Tasks.of(["dgemm"], deadline_s=9e4)
    kind = dc.Kind.of(library, "a100", idle_w=50.0)
    assert kind.clocks.law == library.basis_of("a100").law
    assert kind.clocks.points[:, 0].min() == pytest.approx(510 / 1410)
    with pytest.raises(dc.InvalidInput, match="kind 'h100': is not in the library"):
        dc.Kind.of(library, "h100")
    other = dc.Kind("a100", dc.ClockTable([705.0, 1410.0], [1.0, 1.0], 1410.0, 1.0))
    platform = dc.Platform.build([other], [dc.ServerSpec("node", (("a100", 2),))])
    with pytest.raises(dc.InvalidInput, match=r"kind 'a100': law=.* is not the voltage law"):
        dc.Problem(tasks, library, platform)


def test_a_policy_that_cannot_plan_names_those_that_can():
    problem = chip_problem(random_graph(6), 2, 40)
    with pytest.raises(dc.InvalidInput, match=r"policy 'late': .*; these can: .*") as refused:
        dc.plan(problem, "late")
    assert str(refused.value).endswith("these can: graph")
    assert dc.plan(problem).policy == "graph"
    assert dc.plan(problem, "graph").outcomes.counts()["done"] == len(problem.tasks)
