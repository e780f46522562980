"""Write tasks: CSV, Parquet or JSON, as `downclock.problem.files.read_tasks` reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from downclock.errors import InvalidInput
from downclock.files import json_text, write_text_atomically
from downclock.power.library import Library
from downclock.problem.files.columns import known_suffix
from downclock.problem.files.read_tasks import FORMAT
from downclock.problem.graph import Edges
from downclock.problem.tasks import Tasks
from downclock.tabular import write_columns


def write_tasks(
    tasks: Tasks, library: Library, path: str | Path, *, edges: Edges | None = None
) -> None:
    """Write tasks and their edges by the file's suffix: ``.csv``, ``.parquet`` or ``.json``."""
    suffix = known_suffix(path, (".csv", ".parquet", ".pq", ".json"))
    edges = Edges() if edges is None else edges
    refuse_blank_ends(tasks, path)
    if suffix == ".json":
        head = {"format": FORMAT}
        rows = task_rows(tasks, library, edges)
        write_text_atomically(path, json_text(head, {"tasks": rows}))
        return
    columns = task_columns(tasks, library)
    if len(edges):
        lists = _predecessors(tasks, edges)
        columns["after"] = lists if suffix != ".csv" else _cells(tasks, lists, path)
    write_columns(columns, path)


def task_columns(tasks: Tasks, library: Library) -> dict[str, Any]:
    """Return tasks as columns; what is all default is left out."""
    return {k: v for k, v in _columns(tasks, library).items() if v is not None}


def task_rows(tasks: Tasks, library: Library, edges: Edges | None = None) -> list[dict[str, Any]]:
    """Return tasks as JSON objects; what has its default value is left out."""
    columns = _columns(tasks, library)
    keys = [key for key, column in columns.items() if column is not None]
    rows = [
        {key: value for key, value in zip(keys, row, strict=True) if value is not None}
        for row in zip(*(columns[key] for key in keys), strict=True)
    ]
    if edges is not None and len(edges):
        for row, names in zip(rows, _predecessors(tasks, edges), strict=True):
            if names:
                row["after"] = names
    return rows


def _columns(tasks: Tasks, library: Library) -> dict[str, Any]:
    """Return the columns as lists; a column that is all default is None."""
    finite = np.isfinite(tasks.deadline_s)
    deadline = [x if np.isfinite(x) else None for x in tasks.deadline_s.tolist()]
    spread = tasks.spread
    return {
        "name": tasks.name.tolist(),
        "application": library.names[tasks.application].tolist(),
        "scale": tasks.scale.tolist(),
        "arrival_s": tasks.arrival_s.tolist(),
        "deadline_s": deadline if np.any(finite) else None,
        "processors": tasks.processors.tolist() if np.any(tasks.processors != 1) else None,
        "actual": None if spread is None else [spread.text(row) for row in range(len(tasks))],
    }


def _predecessors(tasks: Tasks, edges: Edges) -> list[list[str]]:
    lists: list[list[str]] = [[] for _ in range(len(tasks))]
    for before, after in zip(edges.before.tolist(), edges.after.tolist(), strict=True):
        lists[after].append(tasks.name[before])
    return lists


def _cells(tasks: Tasks, lists: list[list[str]], path: str | Path) -> list[str]:
    """Return predecessors as one cell a task; names that would be read otherwise are refused."""
    names = set(tasks.name.tolist())
    cells = [";".join(each) for each in lists]
    for row, (each, cell) in enumerate(zip(lists, cells, strict=True)):
        if len(each) > 1 and (cell in names or any(";" in name for name in each)):
            rule = "holds a name with a semicolon, which CSV cannot tell apart; write JSON"
            item = f"task '{tasks.name[row]}'"
            raise InvalidInput(rule, item=item, field="after", value=cell, source=path)
    return cells


def refuse_blank_ends(tasks: Tasks, path: str | Path) -> None:
    """Refuse names that would come back changed: readers drop blanks around a value."""
    for name in tasks.name.tolist():
        if name != name.strip() or not name:
            rule = "is empty or has blanks at its ends, which readers drop"
            raise InvalidInput(rule, field="name", value=name, source=path)
