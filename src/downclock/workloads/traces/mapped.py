"""A mapping file: which columns of any CSV or Parquet file are what. TOML.

    delimiter = ","                  # optional
    timezone = "Europe/Berlin"       # optional, of stamps without an offset
    pools = false                    # optional: queues have machines of their own

    [columns]
    name = "JobNumber"
    submit = { column = "created", as = "unix-milliseconds" }
    run = { column = "wall", as = "minutes" }
    gpus = 1                         # the same for all

Instants (submit, start, end, deadline) are ISO 8601 stamps unless ``as`` says ``unix``,
``unix-milliseconds`` or a number of ``seconds``, ``minutes``, ``hours``, ``milliseconds``; lengths
(run, limit, within) are seconds unless it says another of these or ``duration`` (1-02:03:04, 2h).
"""

from __future__ import annotations

from datetime import tzinfo
from pathlib import Path
from typing import Any, NamedTuple

from downclock.problem.calendar import zone_of
from downclock.problem.files.document import Document, Fields, read_toml
from downclock.workloads.traces.cells import CALENDAR, UNITS
from downclock.workloads.traces.trace import COUNTS, FIELDS, LENGTHS, TEXTS, TIMES, Column, Format


class Mapped(NamedTuple):
    """What a mapping file says."""

    format: Format
    delimiter: str | None
    zone: tzinfo | None


def read_mapping(path: str | Path) -> Mapped:
    """Read a mapping file.

    Raises:
        InvalidInput: with file, line, key, value and rule.
    """
    document = read_toml(path)
    top = document.fields(None, ("delimiter", "timezone", "pools", "columns"))
    delimiter = top.text("delimiter", None)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise top.complaint("must be one letter", "delimiter")
    with top.blamed():
        zone = zone_of(top.text("timezone")) if "timezone" in top else None
    top.raw("columns")
    columns = top.table("columns", "columns", FIELDS)
    found = {name: _column(document, columns, name) for name in FIELDS if name in columns}
    named = Path(path).name
    return Mapped(
        Format(f"mapping {named}", found, pools=top.flag("pools", False)), delimiter, zone
    )


def _column(document: Document, columns: Fields, field: str) -> Column:
    value, usual = columns.raw(field), _words(field)[0]
    if isinstance(value, str):
        return Column((value,), usual)
    if isinstance(value, dict):
        inner = columns.table(field, f"columns.{field}", ("column", "as"))
        return Column((inner.text("column"),), inner.choice("as", _words(field), usual))
    return Column((), usual, _constant(columns, field, value))


def _constant(columns: Fields, field: str, value: Any) -> float:
    if field in TEXTS or field in TIMES:
        raise columns.complaint("must be the name of a column", field)
    return columns.as_float(field, value)


def _words(field: str) -> tuple[str, ...]:
    """Ways the cells of a field may be written, the usual one first."""
    if field in TIMES:
        return (*CALENDAR, *UNITS)
    if field in LENGTHS:
        return ("seconds", *(unit for unit in UNITS if unit != "seconds"), "duration")
    return ("text",) if field in TEXTS else ("count",) if field in COUNTS else ("seconds",)
