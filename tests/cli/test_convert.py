"""``downclock convert``: task graphs of other tools become problems that can be planned."""

from __future__ import annotations

import json

from tests.planners.chip.test_stg import SMALL


def test_a_graph_becomes_a_problem_that_plans(run, files):
    graph, problem = files.write("g.stg", SMALL), files.path("g.json")
    assert run("convert", graph, "--cores", "2", "--output", problem).code == 0
    data = json.loads(run("plan", problem, "--format", "json").out)
    assert data["plan"]["policy"] == "graph"
    assert data["plan"]["gap"] >= 0.0
    assert data["plan"]["done"] == data["tasks"]


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
