"""The public names of the package: lazy, complete, and short in print."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import downclock as dc
from tests.conftest import ROOT
from tests.generated import random_problem, random_schedule

NAMES = [name for name in dir(dc) if not name.startswith("_") and name in dc._HOME]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_the_object_of_its_module(name):
    assert getattr(dc, name) is getattr(importlib.import_module(dc._HOME[name]), name)


def test_type_checkers_and_python_see_the_same_names():
    tree = ast.parse(Path(dc.__file__).read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    homes = {
        alias.asname: node.module
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
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
