"""Schedules in files: JSON, Parquet or CSV, with names of tasks, processors and servers.

Segments, power spans and outcomes are rows with these fields (defaults in brackets):

- segment: ``task``, ``processor`` (server name / place in it from 1), ``start_s``, ``end_s``,
  ``core`` [1], ``memory`` [1], ``volt`` [1], ``share`` [1], ``attempt`` [0];
- span: ``server``, ``state`` (on, waking, asleep, down), ``start_s``, ``end_s`` (empty: open);
- outcome: ``task``, ``status`` (done, rejected, failed, pending), ``reason``, ``work`` [1]. A
  task that is not listed is done, with the work that was estimated.

JSON has one list of each. CSV and Parquet are one table whose column ``record`` says which of
the three a row is; without that column every row is a segment. Nothing is lost in any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from downclock.columns import taken
from downclock.document import read_json
from downclock.errors import InvalidInput, suggestion
from downclock.files import json_text, write_text_atomically
from downclock.problem.files.columns import (
    known_suffix,
    read_table,
    refuse_unknown_columns,
    table_of_rows,
)
from downclock.problem.problem import Problem
from downclock.quantities import refuse_rows
from downclock.schedule.schedule import (
    DONE,
    STATES,
    STATUSES,
    Outcomes,
    PowerSpans,
    Schedule,
    Segments,
)
from downclock.tabular import Table, write_columns
from downclock.units import Ints, Names

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "downclock-schedule/1"

SUFFIXES = (".json", ".parquet", ".pq", ".csv")
"""Of the files a schedule may be in."""

LARGE = 100_000
"""Tasks above which a schedule without a suffix is Parquet: JSON would be ten times as large."""

RECORDS = ("segment", "span", "outcome")

TEXT = {
    "segment": ("task", "processor"),
    "span": ("server", "state"),
    "outcome": ("task", "status", "reason"),
}
NUMBERS = {
    "segment": ("attempt", "start_s", "end_s", "core", "memory", "volt", "share"),
    "span": ("start_s", "end_s"),
    "outcome": ("work",),
}
COLUMNS = (
    *("record", "policy", "task", "attempt", "processor", "server", "state", "start_s", "end_s"),
    *("core", "memory", "volt", "share", "status", "reason", "work"),
)


def schedule_path(path: str | Path, problem: Problem) -> Path:
    """Return the path with a suffix: its own, else JSON, or Parquet where tasks are many."""
    given = Path(path)
    suffix = ".json" if len(problem.tasks) <= LARGE else ".parquet"
    return given if given.suffix else given.with_name(given.name + suffix)


def write_schedule(schedule: Schedule, problem: Problem, path: str | Path) -> None:
    """Write a schedule by the file's suffix: ``.json``, ``.parquet`` or ``.csv``.

    Raises:
        InvalidInput: it refers to a task, processor or server the problem does not have.
    """
    suffix = known_suffix(path, SUFFIXES)
    try:
        tables = _named(schedule, problem)
        _refuse_not_finite(tables)
    except InvalidInput as error:
        raise error.located(path) from None
    if suffix == ".json":
        head = {"format": FORMAT, "problem": problem.name, "policy": schedule.policy}
        lists = {}
        for record, table in tables.items():
            rows = zip(*map(_plain, table.values()), strict=True)
            lists[f"{record}s"] = [dict(zip(table, row, strict=True)) for row in rows]
        write_text_atomically(path, json_text(head, lists))
    else:
        write_columns(_stacked(tables, schedule.policy), path)


def read_schedule(path: str | Path, problem: Problem) -> Schedule:
    """Read a schedule of ``problem`` by the file's suffix.

    Only the file is judged here; whether the schedule obeys the rules is for `verify` to say.

    Raises:
        InvalidInput: with file, line, field, value and rule.
    """
    suffix = known_suffix(path, SUFFIXES)
    tables, policy = _read_json(path) if suffix == ".json" else _read_table(path)
    words = _words(problem)
    ones = dict.fromkeys(("core", "memory", "volt", "share"), 1.0)
    segments = _read(tables["segment"], words, Segments.__slots__, **ones)
    spans = _read(tables["span"], words, PowerSpans.__slots__, end_s=np.inf)
    outcomes = _outcomes(tables["outcome"], words)
    return Schedule(Segments(**segments), PowerSpans(**spans), outcomes, policy)


def _named(schedule: Schedule, problem: Problem) -> dict[str, dict[str, Any]]:
    """Return the columns of each kind of record, indices replaced by names."""
    outcomes, words = schedule.outcomes, _words(problem)
    if len(outcomes) != len(problem.tasks):
        rule = f"has {len(outcomes)} rows; the problem has {len(problem.tasks)} tasks"
        raise InvalidInput(rule, item="the table of outcomes")
    told = np.flatnonzero(
        (outcomes.status != DONE) | (outcomes.work != 1.0) | (outcomes.reason != "")
    )
    ended = {"task": told} | _columns(taken(outcomes, told))
    tables = zip(
        RECORDS, (_columns(schedule.segments), _columns(schedule.spans), ended), strict=True
    )
    return {
        record: {
            name: _picked(record, name, words[name], column) if name in words else column
            for name, column in columns.items()
        }
        for record, columns in tables
    }


def _words(problem: Problem) -> dict[str, Names]:
    """What the numbers of a column stand for, by its name."""
    platform = problem.platform
    return {
        "task": problem.tasks.name,
        "processor": platform.processor_names(),
        "server": platform.server_name,
        "state": np.array(STATES, dtype=object),
        "status": np.array(STATUSES, dtype=object),
    }


def _columns(table: Segments | PowerSpans | Outcomes) -> dict[str, Any]:
    return {spec.name: getattr(table, spec.name) for spec in fields(table)}


def _picked(record: str, field: str, names: Names, index: Ints) -> Names:
    bad, rule = (index < 0) | (index >= names.size), f"is no {field} of the problem"
    refuse_rows(bad, rule, field=field, values=index, item=lambda row: f"{record} {row + 1}")
    return np.asarray(names[index])


def _refuse_not_finite(tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse numbers a file cannot hold; only the end of a span may be infinite."""
    for record, columns in tables.items():
        for field in NUMBERS[record]:
            column = np.asarray(columns[field], dtype=np.float64)
            good = np.isfinite(column)
            if (record, field) == ("span", "end_s"):
                good |= column == np.inf
            if not np.all(good):
                row = int(np.argmin(good))
                item = f"{record} {row + 1}"
                raise InvalidInput("must be finite", item=item, field=field, value=column[row])


def _plain(column: Any) -> list[Any]:
    """Return a column as a list; an infinite number (an open span's end) is None."""
    values = column.tolist()
    if column.dtype == np.float64 and not np.all(np.isfinite(column)):
        return [None if value == np.inf else value for value in values]
    return list(values)


def _stacked(tables: Mapping[str, Mapping[str, Any]], policy: str) -> dict[str, pa.ChunkedArray]:
    """Return all records as the columns of one table; cells a record has no use for are null."""
    import pyarrow as pa

    kinds = {np.dtype(np.int64): pa.int64(), np.dtype(np.float64): pa.float64()}
    parts = []
    for record, columns in tables.items():
        size = len(next(iter(columns.values())))
        words = {"record": record, "policy": policy}
        data = {name: pa.repeat(pa.scalar(word), size) for name, word in words.items()}
        for name, column in columns.items():
            open_end = np.isposinf(column) if column.dtype == np.float64 else None
            data[name] = pa.array(column, kinds.get(column.dtype, pa.string()), mask=open_end)
        parts.append(pa.table(data))
    whole = pa.concat_tables(parts, promote_options="default")
    return {name: whole[name] for name in COLUMNS}


def _read_json(path: str | Path) -> tuple[dict[str, Table], str]:
    document = read_json(path)
    top = document.fields(None, ("format", "problem", "policy", *(f"{r}s" for r in RECORDS)))
    top.choice("format", (FORMAT,))
    top.raw("segments")
    tables = {}
    for record in RECORDS:
        rows, known = top.raw(f"{record}s", []), {"text": TEXT[record], "numbers": NUMBERS[record]}
        tables[record] = table_of_rows(document, rows, (f"{record}s",), **known)
    return tables, top.text("policy", "")


def _read_table(path: str | Path) -> tuple[dict[str, Table], str]:
    """Split one table into the three kinds of record."""
    table = read_table(path)
    refuse_unknown_columns(table, COLUMNS)
    words, code = table.codes("record", "segment")
    for k, word in enumerate(words):
        if word not in RECORDS:
            rule = f"must be one of {', '.join(RECORDS)}"
            row = int(np.argmax(code == k))
            raise table.complaint(rule, row=row, field="record", value=word)
    policies = table.codes("policy", "")[0]
    tables = {}
    for record in RECORDS:
        is_this = np.array([word == record for word in words], dtype=bool)
        rows = np.flatnonzero(is_this[code]) if len(words) else code
        tables[record] = _subset(table, rows, (*TEXT[record], *NUMBERS[record]))
    return tables, str(policies[0]) if len(policies) else ""


def _subset(table: Table, rows: Ints, names: Sequence[str]) -> Table:
    data = {name: table.data[name] for name in names if name in table.data}
    if len(rows) != len(table):
        data = {name: column.take(rows) for name, column in data.items()}
    return Table(table.source, data, len(rows), lambda row: table.line(int(rows[row])))


def _read(
    table: Table, words: Mapping[str, Names], names: Iterable[str], **defaults: Any
) -> dict[str, Any]:
    """Return columns by name, words replaced by indices; all are empty where the table is."""

    def column(name: str) -> Any:
        if not len(table):
            return ()
        if name in words:
            return _indices(table, name, words[name])
        if name == "reason":
            return table.text(name, "")
        return table.ints(name, 0) if name == "attempt" else table.floats(name, defaults.get(name))

    return {name: column(name) for name in names}


def _outcomes(table: Table, words: Mapping[str, Names]) -> Outcomes:
    outcomes = Outcomes.all_done(words["task"].size)
    told = _read(table, words, ("task", *_columns(outcomes)), work=1.0)
    task = np.asarray(told["task"], dtype=np.int64)
    first = np.unique(task, return_index=True)[1]
    if first.size != task.size:
        row = int(np.setdiff1d(np.arange(task.size), first)[0])
        name = words["task"][task[row]]
        raise table.complaint("has two outcomes", row=row, field="task", value=name)
    for name, column in _columns(outcomes).items():
        column[task] = told[name]
    return outcomes


def _indices(table: Table, field: str, names: Names) -> Ints:
    """Return the place of each cell's word among the names."""
    index = table.places(field, names)
    if np.any(index < 0):
        row = int(np.argmax(index < 0))
        word = str(table.cell(field, row)).strip()
        rule = f"is no {field} of the problem{suggestion(word, list(names))}"
        if field in ("state", "status"):
            rule = f"must be one of {', '.join(names)}"
        raise table.complaint(rule, row=row, field=field, value=word)
    return index
