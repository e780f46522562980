"""One command computes a problem's frontiers, a room's question and a policy once each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from downclock.cli import main
from downclock.planners.catalog import CATALOG
from downclock.planners.chip import plan as chip
from downclock.planners.cluster import bound as cluster_bound
from downclock.planners.cluster import columns
from downclock.planners.slots import plan as slots_plan
from downclock.planners.slots import question as slots
from downclock.power import frontier as frontiers
from downclock.problem import platform as platforms
from downclock.problem.files.files import write_problem
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

    watch(platforms, "frontier", "frontier")
    watch(frontiers, "_curves", "curves of applications")
    watch(columns, "_curves", "cluster question")
    watch(cluster_bound, "cluster_bound_j", "cluster bound")
    watch(chip, "_question", "chip question")
    watch(chip, "_bound", "chip bound")
    watch(slots, "_question", "slots question")
    watch(slots_plan, "least_cost_bound", "slots bound")
    for name, entry in CATALOG.items():
        monkeypatch.setitem(CATALOG, name, replace(entry, make=counting(name, entry.make)))
    return counted


def policies(calls: Counter[str]) -> list[str]:
    """Names of the policies that were made, each time they were."""
    return sorted(k.partition(" ")[0] for k in calls.elements() if k.partition(" ")[0] in CATALOG)


def test_a_day_on_a_cluster(calls: Counter[str]) -> None:
    assert main(["plan", *DAY]) == 0
    assert policies(calls) == ["late", "race", "static-cap"]
    for what in ("cluster question", "cluster bound", "chip question"):
        assert calls[what] == 1, what
    assert set(calls.values()) == {1}


def test_prices_of_a_day(calls: Counter[str]) -> None:
    assert main(["plan", *DAY, "--objective", "cost"]) == 0
    assert calls["thrifty objective=cost,dvfs=True"] == 1
    assert calls["cluster question"] == calls["cluster bound"] == 1
    assert [count for key, count in calls.items() if key.startswith("frontier")] == [1]


@pytest.mark.parametrize(
    ("family", "room", "made"),
    [
        ("graph", "chip", ["graph", "graph", "graph", "late"]),
        ("least-cost", "slots", [*["graph"] * 3, "late", "least-cost", "least-cost"]),
    ],
)
def test_task_graphs(
    calls: Counter[str], tmp_path: Path, family: str, room: str, made: list[str]
) -> None:
    path = tmp_path / "problem.json"
    write_problem(problem_of(2, family), path)
    assert main(["plan", str(path)]) == 0
    assert policies(calls) == made
    assert any(key.startswith(f"{room} question") for key in calls)
    assert {key: count for key, count in calls.items() if count > 1} == {}
