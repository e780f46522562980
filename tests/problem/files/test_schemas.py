"""The JSON Schemas accept what we write and ship, and refuse what the readers refuse."""

from __future__ import annotations

import json
import tomllib
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

from downclock.power.library_file import built_in_library, library_document
from downclock.problem.files.files import load_problem
from downclock.problem.files.write_problem import prices_data, write_problem
from downclock.problem.files.write_tasks import write_tasks
from downclock.schedule.files import write_schedule
from tests.conftest import ROOT
from tests.generated import random_problem, random_schedule
from tests.problem.files.schemas import NAMES, schema

EXAMPLE = ROOT / "examples" / "gpu-day"
REGISTRY: Registry[Any] = Registry().with_resources(
    (f"{name}.json", Resource.from_contents(schema(name))) for name in NAMES
)


def faults(name: str, data: Any) -> list[str]:
    validator = jsonschema.Draft202012Validator(schema(name), registry=REGISTRY)
    return [error.message for error in validator.iter_errors(data)]


def loaded(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def cluster() -> dict[str, Any]:
    """Return the example's TOML as JSON."""
    data = tomllib.loads((EXAMPLE / "cluster.toml").read_text("utf-8"))
    return {k: v.isoformat() if isinstance(v, datetime) else v for k, v in data.items()}


@pytest.mark.parametrize("name", NAMES)
def test_every_schema_is_one(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))


def test_the_example_fits_its_schemas(tmp_path: Path) -> None:
    assert faults("cluster", cluster()) == []
    assert faults("library", library_document(built_in_library("gtx1080ti"))) == []
    problem = load_problem(EXAMPLE / "cluster.toml", EXAMPLE / "jobs.csv")
    assert faults("prices", prices_data(problem.prices)) == []
    write_tasks(problem.tasks, problem.library, tmp_path / "tasks.json")
    assert faults("tasks", loaded(tmp_path / "tasks.json")) == []
    write_problem(problem, tmp_path / "problem.json")
    assert faults("problem", loaded(tmp_path / "problem.json")) == []


@pytest.mark.parametrize("seed", range(15))
def test_what_we_write_fits_its_schema(tmp_path: Path, seed: int) -> None:
    problem = random_problem(seed)
    write_problem(problem, tmp_path / "problem.json")
    assert faults("problem", loaded(tmp_path / "problem.json")) == []
    write_tasks(problem.tasks, problem.library, tmp_path / "tasks.json", edges=problem.edges)
    assert faults("tasks", loaded(tmp_path / "tasks.json")) == []
    write_schedule(random_schedule(problem, seed), problem, tmp_path / "schedule.json")
    assert faults("schedule", loaded(tmp_path / "schedule.json")) == []


def test_short_jobs_on_known_cards_fit() -> None:
    kinds = [
        {"name": "a100"},
        {"name": "mine", "card": "v100", "speed": 2, "power_w": 300, "core_mhz": [900, 1380]},
        {"name": "a40", "power_limit_w": [100, 200]},
    ]
    libraries = ["builtin:a100", "mine.json"]
    assert faults("cluster", {**cluster(), "kind": kinds, "applications": libraries}) == []
    jobs = [
        {"run": 3600, "kind": ["a100", "mine"], "deadline_factor": 2},
        {"run": "2h", "power_w": 250, "arrival": "18:30", "deadline": "+6h", "gpus": 4},
    ]
    assert faults("tasks", jobs) == []


BROKEN: dict[str, tuple[str, Any]] = {
    "task without application": ("tasks", [{"name": "a"}]),
    "negative scale": ("tasks", [{"application": "a", "scale": -1}]),
    "misspelt key": ("tasks", [{"application": "a", "dedline_s": 1}]),
    "two deadlines": ("tasks", [{"application": "a", "deadline_s": 1, "within_s": 1}]),
    "text for a number": ("tasks", [{"application": "a", "arrival_s": "1"}]),
    "no tasks": ("tasks", {"tasks": []}),
    "bad spread": ("tasks", [{"application": "a", "actual": "gauss"}]),
    "cluster without servers": ("cluster", {"kind": cluster()["kind"]}),
    "limits and clocks": (
        "cluster",
        {**cluster(), "kind": [{"name": "k", "power_limit_w": [100], "core_mhz": [900]}]},
    ),
    "run time and scale": ("tasks", [{"application": "a", "run": "2h", "scale": 3}]),
    "kind with two clocks": (
        "cluster",
        {**cluster(), "kind": [{"name": "k", "interval": "wide", "core": [0.5, 1]}]},
    ),
    "unknown interval": ("cluster", {**cluster(), "kind": [{"name": "k", "interval": "x"}]}),
    "misspelt cluster key": ("cluster", {**cluster(), "slots": 3}),
    "server without processors": ("cluster", {**cluster(), "server": [{"name": "s"}]}),
    "curve without values": ("prices", {"zones": {"z": {"price": {"start_s": [0]}}}}),
    "unknown curve": ("prices", {"zones": {"z": {"gas": {"start_s": [0], "value": [1]}}}}),
    "problem without tasks": ("problem", {"format": "downclock-problem/1"}),
    "other format": ("schedule", {"format": "downclock-schedule/9", "segments": []}),
    "segment without a time": (
        "schedule",
        {
            "format": "downclock-schedule/1",
            "segments": [{"task": "a", "processor": "s/1", "start_s": 0}],
        },
    ),
    "unknown state": (
        "schedule",
        {
            "format": "downclock-schedule/1",
            "segments": [],
            "spans": [{"server": "s", "state": "off", "start_s": 0}],
        },
    ),
}


@pytest.mark.parametrize(("name", "data"), BROKEN.values(), ids=BROKEN)
def test_broken_files_do_not_fit(name: str, data: Any) -> None:
    assert faults(name, data)
