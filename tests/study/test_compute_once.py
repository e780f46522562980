"""One command computes a problem's frontiers, a room's question and a policy once each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from downclock.cli import main
from downclock.planners import portfolio
from downclock.planners.chip import plan as chip
from downclock.planners.cluster import bound as cluster_bound
from downclock.planners.slots import plan as slots_plan
from downclock.planners.slots import question as slots
from downclock.power import frontier as frontiers
from downclock.problem.files.write_problem import write_problem
from tests.conftest import ROOT
from tests.laws.test_policies import problem_of

DAY = [str(ROOT / "examples" / "gpu-day" / name) for name in ("cluster.toml", "jobs.csv")]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each of the costly functions is called, policies by name and parameters."""
    counted: Counter[str] = Counter()

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **given: Any) -> Any:
            told = ",".join([*map(str, args[1:]), *(f"{k}={v}" for k, v in given.items())])
            counted[f"{name} {told}".strip()] += 1
            return function(*args, **given)

        return call

    def watch(module: Any, function: str, name: str) -> None:
        monkeypatch.setattr(module, function, counting(name, getattr(module, function)))

    watch(frontiers, "_curves", "curves of applications")
    watch(cluster_bound, "cluster_bound_j", "cluster bound")
    watch(chip, "_question", "chip question")
    watch(chip, "_bound", "chip bound")
    watch(slots, "_question", "slots question")
    watch(slots_plan, "least_cost_bound", "slots bound")
    watch(portfolio, "plan", "plan")
    return counted


def plans(calls: Counter[str]) -> list[str]:
    """Names of the policies that planned, each time they did."""
    return sorted(
        re.findall(r"name='([^']+)'", key)[0] for key in calls.elements() if key[:5] == "plan "
    )


ALL = ["bin", "edf-bf", "edf-wf", "edl", "late", "lpt-ff", "prompt", "race", "static-cap"]
"""What is tried where all of a cluster's day is known."""


def test_a_day_on_a_cluster(calls: Counter[str]) -> None:
    assert main(["plan", *DAY]) == 0
    assert plans(calls) == ALL
    for what in ("cluster bound", "chip question"):
        assert calls[what] == 1, what
    assert set(calls.values()) == {1}


def test_prices_of_a_day(calls: Counter[str]) -> None:
    assert main(["plan", *DAY, "--objective", "cost"]) == 0
    assert plans(calls) == [*ALL, "thrifty", "thrifty:dvfs=off"]
    assert calls["cluster bound"] == 1
    assert {count for key, count in calls.items() if key.startswith("curves")} == {1}


@pytest.mark.parametrize(("family", "room"), [("graph", "chip"), ("least-cost", "slots")])
def test_task_graphs(calls: Counter[str], tmp_path: Path, family: str, room: str) -> None:
    path = tmp_path / "problem.json"
    write_problem(problem_of(2, family), path)
    assert main(["plan", str(path)]) == 0
    assert plans(calls) == []
    assert any(key.startswith(f"{room} question") for key in calls)
    assert {key: count for key, count in calls.items() if count > 1} == {}
