"""Reader of WfFormat 1.5 workflow instances (WfCommons: Coleman et al., FGCS 2022).

Tasks and edges come from ``workflow.specification.tasks``, run times from
``workflow.execution.tasks``; a run time in seconds becomes that much work at clock 1. Tasks that
took no measurable time have no work and only order others.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from downclock.errors import InvalidInput
from downclock.files import parsed_json, read_text
from downclock.problem.graph import Edges
from downclock.units import Floats
from downclock.workloads.task_graph import TaskGraph
from downclock.workloads.traces.json_jobs import JsonText
from downclock.workloads.traces.rows import opened

VERSION = "1.5"
_OWN = ("schemaVersion", "workflow")
"""Members that a trace, whose jobs are a list ``jobs``, does not have."""


def read_wfformat(path: str | Path) -> TaskGraph:
    """Read a workflow instance.

    Raises:
        InvalidInput: naming file, task and field, where something is missing or contradictory.
    """
    try:
        return _graph(parsed_json(read_text(path), path), Path(path).stem)
    except InvalidInput as error:
        raise error.located(path) from None


def is_wfformat(path: str | Path) -> bool:
    """Tell whether a file looks like a workflow instance, whatever may be wrong in it."""
    if Path(path).suffix.lower() != ".json":
        return False
    with opened(path) as (stream, _):
        known = (each for each in JsonText(stream).members() if each in ("jobs", *_OWN))
        return next(known, None) in _OWN


def _graph(document: Any, fallback: str) -> TaskGraph:
    if not isinstance(document, dict):
        raise InvalidInput("is not a JSON object")
    version = document.get("schemaVersion")
    if version != VERSION:
        rule = f"is not supported: this reader knows {VERSION}"
        raise InvalidInput(rule, field="schemaVersion", value=version)
    workflow = _member(document, "workflow", dict, "document")
    specification = _member(workflow, "specification", dict, "workflow")
    execution = _member(workflow, "execution", dict, "workflow")
    tasks = _member(specification, "tasks", list, "workflow.specification")
    runs = _member(execution, "tasks", list, "workflow.execution")
    names = [_id(task, "workflow.specification.tasks") for task in tasks]
    place = {name: row for row, name in enumerate(names)}
    if len(place) < len(names):
        twice = next(name for row, name in enumerate(names) if place[name] != row)
        raise InvalidInput("is defined twice", item=f"task '{twice}'")
    if not names:
        raise InvalidInput("there are no tasks")
    work = _run_times(runs, place)
    name, column = document.get("name"), np.array(names, dtype=object)
    name = name if isinstance(name, str) else fallback
    return TaskGraph(name, column, work, _edges(tasks, place))


def _run_times(runs: list[Any], place: Mapping[str, int]) -> Floats:
    work = np.full(len(place), np.nan)
    for run in runs:
        name = _id(run, "workflow.execution.tasks")
        item = f"task '{name}'"
        if name not in place:
            raise InvalidInput("was executed but is not specified", item=item)
        seconds = run.get("runtimeInSeconds")
        number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not (number and 0.0 <= seconds <= sys.float_info.max):  # an integer may be larger
            rule = "must be finite and not negative" if number else "must be a number"
            raise InvalidInput(rule, item=item, field="runtimeInSeconds", value=seconds)
        if not np.isnan(work[place[name]]):
            raise InvalidInput("was executed twice", item=item)
        work[place[name]] = seconds
    if np.any(np.isnan(work)):
        row = int(np.argmax(np.isnan(work)))
        name = next(name for name, at in place.items() if at == row)
        raise InvalidInput("has no run time in workflow.execution.tasks", item=f"task '{name}'")
    return work


def _edges(tasks: list[Any], place: Mapping[str, int]) -> Edges:
    """Union of the edges that parents and children name."""
    pairs: set[tuple[int, int]] = set()
    for row, task in enumerate(tasks):
        for field in ("parents", "children"):
            for other in _neighbours(task, field):
                if other not in place:
                    rule = "names a task that is not specified"
                    raise InvalidInput(rule, item=f"task '{task['id']}'", field=field, value=other)
                pair = (place[other], row) if field == "parents" else (row, place[other])
                pairs.add(pair)
    ends = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return Edges(ends[:, 0], ends[:, 1])


def _neighbours(task: Mapping[str, Any], field: str) -> list[str]:
    value = task.get(field)
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        rule = "must be a list of task ids"
        raise InvalidInput(rule, item=f"task '{task['id']}'", field=field, value=value)
    return value


def _id(task: Any, where: str) -> str:
    if not isinstance(task, dict) or not isinstance(task.get("id"), str):
        raise InvalidInput("every task needs a text 'id'", item=where)
    name: str = task["id"]
    return name


def _member(parent: Mapping[str, Any], key: str, kind: type, where: str) -> Any:
    value = parent.get(key)
    if not isinstance(value, kind):
        word = "an object" if kind is dict else "a list"
        raise InvalidInput(f"'{key}' must be {word}", item=where)
    return value
