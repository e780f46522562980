"""Columns of the tables we read: which are known, and tables made from rows of a document."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from downclock.document import Document, Place
from downclock.errors import InvalidInput, suggestion
from downclock.tabular import Table, read_csv, read_parquet

OWN_PREFIX = "x_"
"""Columns whose names start like this are the user's own and are not read."""


def read_table(path: str | Path) -> Table:
    """Read a table by its suffix: ``.csv`` (also ``.txt``) or ``.parquet``."""
    readers: dict[str, Callable[[str | Path], Table]] = {
        ".csv": read_csv,
        ".txt": read_csv,
        ".parquet": read_parquet,
        ".pq": read_parquet,
    }
    return readers[known_suffix(path, readers)](path)


def known_suffix(path: str | Path, known: Collection[str]) -> str:
    """Return the file's suffix in small letters; refuse one that is not known."""
    suffix = Path(path).suffix.lower()
    if suffix not in known:
        had = f"the suffix '{suffix}'" if suffix else "no suffix"
        rule = f"has {had}; known are {', '.join(known)}"
        raise InvalidInput(rule, source=path)
    return suffix


def refuse_unknown_columns(table: Table, known: Sequence[str], otherwise: str = "") -> None:
    """Refuse a column nobody reads: it is probably a misspelt one; else do as ``otherwise``."""
    for name in table.columns:
        if name not in known and not name.startswith(OWN_PREFIX):
            rule = f"is not a known column{suggestion(name, known)}"
            rule += f" (columns of your own start with '{OWN_PREFIX}'{otherwise})"
            raise table.column_complaint(rule, name)


def refuse_both(table: Table, names: Sequence[str]) -> str | None:
    """Return which of these columns is there; refuse two that say the same thing."""
    present = [name for name in names if name in table.columns]
    if len(present) > 1:
        rule = f"cannot be given together with column '{present[1]}'"
        raise table.column_complaint(rule, present[0])
    return present[0] if present else None


def table_of_rows(
    document: Document, rows: Any, place: Place, *, text: Sequence[str], numbers: Sequence[str]
) -> Table:
    """Make a table from a list of objects; null and absent keys are empty cells.

    Args:
        document: where the rows stand.
        rows: the list.
        place: where in the document it stands.
        text: keys that hold strings.
        numbers: keys that hold numbers.
    """
    import pyarrow as pa

    if not isinstance(rows, list):
        raise document.complaint("must be a list of objects", place)
    for k, row in enumerate(rows):
        if not isinstance(row, dict):
            raise document.complaint(f"row {k + 1} must be an object", (*place, k), value=row)
    table = Table(document.source, {}, len(rows), lambda row: document.find_line((*place, row)))
    data: dict[str, Any] = {}
    for key in dict.fromkeys(key for row in rows for key in row):
        values = [row.get(key) for row in rows]
        if key in numbers:
            data[key] = pa.chunked_array([_numbers(table, key, values)])
        elif key in text:
            _require(table, key, values, (str,), "must be text")
            data[key] = pa.chunked_array([pa.array(values, pa.string())])
        elif not key.startswith(OWN_PREFIX):
            row = next(k for k, entry in enumerate(rows) if key in entry)
            rule = f"is not a known key{suggestion(key, [*text, *numbers])}"
            raise document.complaint(rule, (*place, row, key))
    return Table(table.source, data, len(rows), table.line)


def _numbers(table: Table, key: str, values: list[Any]) -> Any:
    import pyarrow as pa

    _require(table, key, values, (int, float), "must be a number")
    try:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    except OverflowError:
        row = next(k for k, v in enumerate(values) if isinstance(v, int) and abs(v) > 1e308)
        raise table.complaint("is too large", row=row, field=key) from None


def _require(table: Table, key: str, values: list[Any], kinds: tuple[type, ...], rule: str) -> None:
    """Refuse the first value of another type; bool does not count as a number."""
    if set(map(type, values)) <= {*kinds, type(None)}:
        return
    for row, value in enumerate(values):
        if value is not None and type(value) not in kinds:
            raise table.complaint(rule, row=row, field=key, value=value)
