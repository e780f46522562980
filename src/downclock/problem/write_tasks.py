"""Write tasks: CSV, Parquet or JSON, as `downclock.problem.read_tasks` reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from downclock.errors import InvalidInput
from downclock.files import write_bytes_atomically, write_text_atomically
from downclock.power.library import Library
from downclock.problem.columns import known_suffix
from downclock.problem.graph import Edges
from downclock.problem.read_tasks import FORMAT
from downclock.problem.tasks import Tasks

if TYPE_CHECKING:
    import pyarrow as pa


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
    columns = {k: v for k, v in _columns(tasks, library).items() if v is not None}
    if len(edges):
        lists = _predecessors(tasks, edges)
        columns["after"] = lists if suffix != ".csv" else _cells(tasks, lists, path)
    write_columns(columns, path)


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


def json_text(head: Mapping[str, Any], lists: Mapping[str, Iterable[Any]]) -> str:
    """Return a JSON object: the head's keys, then lists with one element a line."""
    encode = json.JSONEncoder(allow_nan=False).encode
    parts = [f"  {encode(key)}: {encode(value)}" for key, value in head.items()]
    for key, elements in lists.items():
        texts = ",\n".join("    " + encode(each) for each in elements)
        body = f"[\n{texts}\n  ]" if texts else "[]"
        parts.append(f"  {encode(key)}: {body}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def write_columns(columns: Mapping[str, Any], path: str | Path) -> None:
    """Write columns as CSV or Parquet by suffix; None is an empty cell."""
    import pyarrow as pa
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as pq

    # One chunk a column: Arrow's CSV writer puts NUL bytes for empty chunks.
    table = pa.table({name: _arrow(column) for name, column in columns.items()}).combine_chunks()
    sink = pa.BufferOutputStream()
    if Path(path).suffix.lower() == ".csv":
        sink.write((",".join(columns) + "\n").encode())
        arrow_csv.write_csv(table, sink, arrow_csv.WriteOptions(include_header=False))
    else:
        pq.write_table(table, sink)
    write_bytes_atomically(path, sink.getvalue().to_pybytes())


def _arrow(column: Any) -> pa.Array:
    import pyarrow as pa

    return column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)


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
