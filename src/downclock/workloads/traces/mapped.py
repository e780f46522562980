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

from downclock.document import Fields, read_toml
from downclock.problem.calendar import zone_of
from downclock.workloads.traces.cells import CALENDAR, UNITS
from downclock.workloads.traces.trace import COUNTS, FIELDS, LENGTHS, TEXTS, TIMES, Column, Format


def read_mapping(path: str | Path) -> tuple[Format, str | None, tzinfo | None]:
    """Read a mapping file: what the format is, its delimiter and its time zone.

    Raises:
        InvalidInput: with file, line, key, value and rule.
    """
    top = read_toml(path).fields(None, ("delimiter", "timezone", "pools", "columns"))
    delimiter = top.text("delimiter", None)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise top.complaint("must be one letter", "delimiter")
    with top.blamed():
        zone = zone_of(top.text("timezone")) if "timezone" in top else None
    top.raw("columns")
    columns = top.table("columns", "columns", FIELDS)
    found = {name: _column(columns, name) for name in FIELDS if name in columns}
    pools, name = top.flag("pools", False), f"mapping {Path(path).name}"
    return Format(name, found, pools=pools, mapped=True), delimiter, zone


def _column(columns: Fields, field: str) -> Column:
    value, usual = columns.raw(field), _words(field)[0]
    if isinstance(value, str):
        return Column((value,), usual)
    if isinstance(value, dict):
        inner = columns.table(field, f"columns.{field}", ("column", "as"))
        return Column((inner.text("column"),), inner.choice("as", _words(field), usual))
    if field in TEXTS or field in TIMES:
        raise columns.complaint("must be the name of a column", field)
    return Column((), usual, columns.as_float(field, value))


def _words(field: str) -> tuple[str, ...]:
    """Ways the cells of a field may be written, the usual one first."""
    if field in TIMES:
        return (*CALENDAR, *UNITS)
    if field in LENGTHS:
        return ("seconds", *(unit for unit in UNITS if unit != "seconds"), "duration")
    return ("text",) if field in TEXTS else ("count",) if field in COUNTS else ("seconds",)
