"""Read tasks: CSV, Parquet or JSON, one row a task.

What a task does is told one of two ways:

- ``application``: its name in the library, and ``scale``: units of work, 1 by default.
- ``run``: how long it takes at default clocks, such as ``2h``, ``90m``, ``01:30:00`` or seconds;
  with ``power_w`` (of one processor) where it is known. ``application`` may name one of the library
  then, or an archetype (compute-bound, mixed, memory-bound); empty, it is the cluster's archetype.

Other columns, all optional:

- ``name``: unique; ``t0, t1, ...`` by row where empty.
- ``kind``: the kinds it may run on, separated by semicolons or blanks; a ``run`` is of the first.
  Without it, all kinds, and a ``run`` is of the cluster's reference.
- ``arrival_s`` (seconds after the epoch, 0 by default), or ``arrival``: ISO 8601, a clock time
  (``18:30``: the first after the epoch) or an offset (``+6h`` after the epoch).
- ``deadline_s`` (seconds after the epoch), ``within_s`` (seconds after the arrival) or
  ``deadline``: ISO 8601, a clock time (the first after the arrival) or an offset from the arrival;
  none where empty. ``deadline_factor``: so many run times after the arrival.
- ``processors`` or ``gpus``: how many together, 1 by default.
- ``actual``: spread of actual / estimated run time, such as ``uniform:0.9:1``.
- ``after``: tasks that must end before, separated by semicolons; without a semicolon by blanks,
  unless the whole cell is a task's name. In JSON and Parquet it may be a list.
- ``x_...``: the user's own, not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import numpy as np

from downclock.document import Document, Place, read_json
from downclock.errors import InvalidInput, suggestion
from downclock.power.library import Library
from downclock.problem.calendar import Moments, at_clock, moment, moments
from downclock.problem.files.columns import (
    known_suffix,
    read_table,
    refuse_both,
    refuse_unknown_columns,
    table_of_rows,
)
from downclock.problem.files.read_work import Work, numbers_or_nan, read_work, require_work
from downclock.problem.files.site import Site
from downclock.problem.graph import Edges
from downclock.problem.spread import Spread
from downclock.problem.tasks import Tasks
from downclock.tabular import Table
from downclock.units import Floats, Names

FORMAT = "downclock-tasks/1"

TEXT_COLUMNS = ("name", "application", "actual", "arrival", "deadline", "run", "kind")
NUMBER_COLUMNS = (
    *("scale", "arrival_s", "deadline_s", "within_s", "processors", "gpus"),
    *("power_w", "deadline_factor"),
)
COLUMNS = (*TEXT_COLUMNS, *NUMBER_COLUMNS, "after")

OWN_COLUMNS = {
    "scale": ("run",),
    "arrival_s": ("arrival",),
    "deadline_s": ("deadline", "within_s", "deadline_factor"),
    "processors": ("gpus",),
}
"""What a file may say in place of a column of `Tasks`."""

MOST_FACTOR = 1e6
"""Run times after its arrival, at most, that a task may be due."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskFile:
    """What a file of tasks holds.

    Attributes:
        tasks: the tasks.
        edges: which must end before which.
        epoch: instant that times count from; None where the file has no calendar times.
        table: the file.
        library: the applications, those made for single jobs among them.
        assumptions: what was assumed of jobs that say little, a sentence each.
    """

    tasks: Tasks
    edges: Edges
    epoch: datetime | None
    table: Table
    library: Library
    assumptions: tuple[str, ...] = ()

    def blame(self, error: InvalidInput) -> InvalidInput:
        """Return a complaint, one about a task in the words of the line it stands in."""
        if (error.item or "").startswith("task "):
            return _as_written(self.table, error)
        return error.located(self.table.source)


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """What a file of tasks is read with; see `read_tasks`."""

    library: Library
    epoch: datetime | None = None
    zone: tzinfo | None = None
    site: Site | None = None
    deadline_factor: float | None = None


def read_tasks(
    path: str | Path | Table,
    library: Library,
    *,
    epoch: datetime | None = None,
    timezone: tzinfo | None = None,
    site: Site | None = None,
    deadline_factor: float | None = None,
) -> TaskFile:
    """Read a file of tasks by its suffix; columns as in the module's text.

    Args:
        path: ``.csv``, ``.parquet`` or ``.json``; or the table that such a file holds.
        library: where applications are looked up.
        epoch: instant that times count from. Where it is None and the file has calendar times,
            the first arrival is the epoch.
        timezone: of stamps without an offset; the epoch's by default.
        site: the cluster's kinds; needed for tasks given by their run time.
        deadline_factor: deadline of tasks that state none: so many run times after the arrival.

    Raises:
        InvalidInput: with file, line, task, field, value and rule.
    """
    context = Context(library, epoch, timezone, site, deadline_factor)
    if isinstance(path, Table):
        return _of_table(path, context)
    suffix = known_suffix(path, (".csv", ".txt", ".parquet", ".pq", ".json"))
    if suffix == ".json":
        document = read_json(path)
        place: Place = ()
        if isinstance(document.data, dict):
            fields = document.fields(None, ("format", "tasks"))
            fields.choice("format", (FORMAT,), FORMAT)
            fields.raw("tasks")
            place = ("tasks",)
        return tasks_of_rows(document, place, context)
    return _of_table(read_table(path), context)


def _of_table(table: Table, context: Context) -> TaskFile:
    refuse_unknown_columns(table, COLUMNS)
    return _tasks(table, _listed(table), context)


def tasks_of_rows(document: Document, place: Place, context: Context) -> TaskFile:
    """Read tasks from the list of objects at ``place`` of a JSON document."""
    rows = document.data[place[0]] if place else document.data
    lists = None
    if isinstance(rows, list):
        if any(isinstance(row, dict) and "after" in row for row in rows):
            lists = [row.get("after") if isinstance(row, dict) else None for row in rows]
        rows = [_as_cells(row) if isinstance(row, dict) else row for row in rows]
    table = table_of_rows(document, rows, place, text=TEXT_COLUMNS, numbers=NUMBER_COLUMNS)
    return _tasks(table, lists, context)


def _as_cells(row: dict[str, Any]) -> dict[str, Any]:
    """Write as one cell what JSON may hold as a number or a list; ``after`` is read apart."""
    row = {key: value for key, value in row.items() if key != "after"}
    run, kind = row.get("run"), row.get("kind")
    if isinstance(run, int | float) and not isinstance(run, bool):
        row["run"] = repr(run)
    if isinstance(kind, list) and all(isinstance(name, str) for name in kind):
        row["kind"] = ";".join(kind)
    return row


def _tasks(table: Table, predecessors: list[Any] | None, context: Context) -> TaskFile:
    if not len(table):
        require_work(table, runs=context.site is not None)
        raise InvalidInput("there are no tasks", source=table.source)
    names = _names(table)
    if context.zone is None and context.epoch is not None:
        context = replace(context, zone=context.epoch.tzinfo)
    timed = context.deadline_factor is not None
    work = read_work(table, names, context.library, context.site, timed=timed)
    arrival_s, deadline_s, epoch = _times(table, names, context, work)
    try:
        many = table.ints(refuse_both(table, ("processors", "gpus")) or "processors", 1)
        told = names, work.application, work.scale, arrival_s, deadline_s, many
        tasks = Tasks(*told, _spread(table))
    except InvalidInput as error:
        raise _as_written(table, error) from None
    edges = _edges(table, names, predecessors)
    _refuse_cycle(edges, table, names)
    return TaskFile(tasks, edges, epoch, table, work.library, work.assumptions)


def _names(table: Table) -> Names:
    names = table.text("name", "")
    for row in np.flatnonzero(names == ""):
        names[row] = f"t{row}"
    return names


def _times(
    table: Table, names: Names, context: Context, work: Work
) -> tuple[Floats, Floats, datetime | None]:
    """Return arrivals and deadlines in seconds after the epoch, and the epoch."""
    zone = context.zone
    columns = [
        refuse_both(table, ("arrival_s", "arrival")),
        refuse_both(table, ("deadline_s", "within_s", "deadline")),
    ]
    told = {
        field: moments(table, field, table.text(field, ""), zone)
        for field in columns
        if field in ("arrival", "deadline")
    }
    epoch = context.epoch or _first(table, told, zone)

    def seconds(field: str, after_s: Floats, default: float) -> Floats:
        if field not in told:
            return table.floats(f"{field}_s", default)
        found_s = _seconds(table, names, told[field], field, after_s, epoch, zone)
        return np.nan_to_num(found_s, nan=default)

    arrival_s = seconds("arrival", np.zeros(len(table)), 0.0)
    if "arrival" in told:
        table.refuse(arrival_s < 0.0, f"is before the epoch {epoch}", "arrival", tasks=names)
    deadline_s = seconds("deadline", arrival_s, np.inf)
    if "within_s" in columns:
        within_s = table.floats("within_s", np.inf)
        table.refuse(within_s < 0.0, "must not be negative", "within_s", tasks=names)
        with np.errstate(invalid="ignore"):  # an arrival that is not finite is refused later
            deadline_s = arrival_s + within_s
    return arrival_s, _by_factor(table, names, context, work, arrival_s, deadline_s), epoch


def _seconds(
    table: Table,
    names: Names,
    told: Moments,
    field: str,
    after_s: Floats,
    epoch: datetime | None,
    zone: tzinfo | None,
) -> Floats:
    """Return moments in seconds after the epoch; offsets and clock times follow ``after_s``."""
    zero = 0.0 if epoch is None else epoch.timestamp()
    seconds = np.where(np.isnan(told.after_s), told.instant_s - zero, after_s + told.after_s)
    not_before_s = after_s + (1.0 if field == "deadline" else 0.0)  # no deadline at the arrival
    for row in np.flatnonzero(~np.isnan(told.clock_s)):
        try:
            shown_s, from_s = float(told.clock_s[row]), float(not_before_s[row])
            seconds[row] = at_clock(shown_s, from_s, epoch, zone)
        except (ValueError, OverflowError) as error:
            value, item = table.cell(field, int(row)), _task(names, int(row))
            raise table.complaint(
                str(error), row=int(row), field=field, value=value, item=item
            ) from None
    return seconds


def _by_factor(
    table: Table, names: Names, context: Context, work: Work, arrival_s: Floats, deadline_s: Floats
) -> Floats:
    """Give tasks without a deadline one that is so many run times after their arrival."""
    factor = numbers_or_nan(table, "deadline_factor")
    allowed = (factor > 0.0) & (factor <= MOST_FACTOR)
    bad = ~np.isnan(factor) & (~allowed | np.isfinite(deadline_s))
    if np.any(bad):
        value, good = float(factor[int(np.argmax(bad))]), bool(allowed[int(np.argmax(bad))])
        rule = "must be positive" if value <= 0.0 else f"must be at most {MOST_FACTOR:g}"
        rule = "cannot be given together with a deadline" if good else rule
        table.refuse(bad, rule, "deadline_factor", value, tasks=names)
    open_ended = np.isinf(deadline_s)
    if context.deadline_factor is not None:
        factor = np.where(np.isnan(factor) & open_ended, context.deadline_factor, factor)
    if work.run_s is None:
        return deadline_s
    return np.where(np.isnan(factor), deadline_s, arrival_s + factor * work.run_s)


def _first(table: Table, told: dict[str, Moments], zone: tzinfo | None) -> datetime | None:
    """Return the first arrival as the epoch; deadlines alone do not say when time starts."""
    if all(np.isnan(each.instant_s).all() for each in told.values()):
        return None
    seconds = told["arrival"].instant_s if "arrival" in told else np.array([np.nan])
    if np.all(np.isnan(seconds)):
        rule = "needs the epoch (in the cluster), or a column 'arrival' with calendar times"
        raise table.column_complaint(rule, "deadline")
    return moment(float(np.nanmin(seconds)), zone)


def _as_written(table: Table, error: InvalidInput) -> InvalidInput:
    """Return a complaint about a task in the file's words: its line, its columns, its values."""
    row, field, rule, value = error.row, error.field, error.rule, error.value
    if row is None or field is None:
        return error.located(table.source, None if row is None else table.line(row))
    own = [name for name in OWN_COLUMNS.get(field, ()) if table.text(name, "")[row]]
    if own:
        rule = "is before the arrival" if rule.startswith("is before") else rule
        field, value = own[0], value if own[0] == "gpus" else table.cell(own[0], row)
    elif field == "deadline_s" and field not in table.data:
        field, value = "deadline_factor", ...  # which all of them have
    elif field == "name":
        first = int(np.argmax(_names(table) == value))
        line, both = table.line(first), table.text("name", "")[[first, row]]
        rule = rule if line is None else f"is already the name of line {line}"
        rule += "" if all(both) else " (tasks without a name are called t0, t1, ... by row)"
    return table.complaint(rule, row=row, field=field, value=value, item=error.item)


def _spread(table: Table) -> Spread | None:
    if "actual" not in table.columns:
        return None
    distinct, code = table.codes("actual", "exact")
    try:
        spread = Spread.parse(list(distinct))
    except InvalidInput as error:
        row = int(np.argmax(code == error.row))
        raise table.complaint(error.rule, row=row, field="actual", value=error.value) from None
    return Spread(spread.shape[code], spread.a[code], spread.b[code])


def _listed(table: Table) -> list[Any] | None:
    """Return the predecessors a Parquet file holds as lists."""
    import pyarrow as pa

    if "after" not in table.columns:
        return None
    column = table.data["after"]
    is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    return column.to_pylist() if is_list else list(table.text("after", ""))


def _edges(table: Table, names: Names, predecessors: list[Any] | None) -> Edges:
    if predecessors is None:
        return Edges()
    place = {name: row for row, name in enumerate(names)}
    before: list[int] = []
    after: list[int] = []
    for row, cell in enumerate(predecessors):
        for name in _predecessors(table, row, cell, place):
            if name not in place:
                rule = f"names no task of this file{suggestion(name, [str(n) for n in names])}"
                raise table.complaint(
                    rule, row=row, field="after", value=name, item=_task(names, row)
                )
            before.append(place[name])
            after.append(row)
    return Edges(np.array(before, dtype=np.int64), np.array(after, dtype=np.int64))


def _predecessors(table: Table, row: int, cell: Any, place: dict[Any, int]) -> Iterator[str]:
    if not cell:
        return
    if isinstance(cell, str):
        parts = [cell] if cell in place else cell.split(";") if ";" in cell else cell.split()
        yield from (part.strip() for part in parts if part.strip())
    elif isinstance(cell, list) and all(isinstance(name, str) for name in cell):
        yield from cell
    else:
        raise table.complaint("must be task names", row=row, field="after", value=cell)


def _refuse_cycle(edges: Edges, table: Table, names: Names) -> None:
    try:
        edges.order(len(table))
    except InvalidInput as error:
        row = error.row or 0
        rule, line = f"{error.rule} (column 'after')", table.line(row)
        item = _task(names, row)
        raise InvalidInput(rule, item=item, row=row, source=table.source, line=line) from None


def _task(names: Names, row: int) -> str:
    return f"task '{names[row]}'"
