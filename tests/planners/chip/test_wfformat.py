"""The WfFormat reader: what it reads and what it refuses."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from downclock.errors import InvalidInput
from downclock.workloads.wfformat import read_wfformat

SMALL: dict[str, Any] = {
    "name": "small",
    "schemaVersion": "1.5",
    "workflow": {
        "specification": {
            "tasks": [
                {"id": "a", "parents": [], "children": ["b", "c"]},
                {"id": "b", "parents": ["a"], "children": []},
                {"id": "c", "parents": ["a"], "children": []},
            ]
        },
        "execution": {
            "tasks": [
                {"id": "c", "runtimeInSeconds": 0.0},
                {"id": "a", "runtimeInSeconds": 2.5},
                {"id": "b", "runtimeInSeconds": 4},
            ]
        },
    },
}


def written(folder: Path, document: Any) -> Path:
    path = folder / "flow.json"
    path.write_text(json.dumps(document))
    return path


def test_run_times_become_work_and_edges_are_counted_once(tmp_path: Path) -> None:
    graph = read_wfformat(written(tmp_path, SMALL))
    assert graph.name == "small"
    assert list(graph.task) == ["a", "b", "c"]
    assert list(graph.work) == [2.5, 4.0, 0.0]
    assert list(zip(graph.edges.before, graph.edges.after, strict=True)) == [(0, 1), (0, 2)]


def broken(change: str) -> dict[str, Any]:
    document = copy.deepcopy(SMALL)
    tasks = document["workflow"]["specification"]["tasks"]
    runs = document["workflow"]["execution"]["tasks"]
    if change == "cycle":
        tasks[1]["children"] = ["a"]
    elif change == "dangling":
        tasks[1]["children"] = ["z"]
    elif change == "twice":
        tasks[2]["id"] = "b"
    elif change == "no run time":
        del runs[0]
    elif change == "text run time":
        runs[1]["runtimeInSeconds"] = "2.5"
    elif change == "negative":
        runs[1]["runtimeInSeconds"] = -1
    elif change == "huge":
        runs[1]["runtimeInSeconds"] = 10**400
    elif change == "no children":
        del tasks[0]["children"]
    elif change == "version":
        document["schemaVersion"] = "1.3"
    elif change == "no execution":
        del document["workflow"]["execution"]
    return document


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("cycle", "task 'a': the graph has a cycle"),
        ("dangling", "task 'b': children='z' names a task that is not specified"),
        ("twice", "task 'b': is defined twice"),
        ("no run time", "task 'c': has no run time in workflow.execution.tasks"),
        ("text run time", "task 'a': runtimeInSeconds='2.5' must be a number"),
        ("negative", "task 'a': runtimeInSeconds=-1 must be finite and not negative"),
        ("huge", "must be finite and not negative"),
        ("no children", "task 'a': children=None must be a list"),
        ("version", "schemaVersion='1.3' is not supported"),
        ("no execution", "workflow: 'execution' must be an object"),
    ],
)
def test_what_is_wrong_is_named(change: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as error:
        read_wfformat(written(tmp_path, broken(change)))
    assert message in str(error.value)
    assert "flow.json" in str(error.value)


def test_text_that_is_not_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "flow.json"
    for text in ("{", "[]", ""):
        path.write_text(text)
        with pytest.raises(InvalidInput, match=r"flow\.json"):
            read_wfformat(path)
