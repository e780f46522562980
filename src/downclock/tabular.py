"""Tables in files: columns of text or numbers, and complaints that name file, line and field.

`read_csv` reads UTF-8 with or without a byte order mark, any line ends, quoted fields that may
hold commas and line breaks; blank lines are skipped, blanks around a value are dropped. What is
not such a table is refused with one `InvalidInput`.
"""

from __future__ import annotations

import csv
import io
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from downclock.errors import InvalidInput, suggestion
from downclock.files import decoded, read_bytes, write_bytes_atomically
from downclock.units import Bools, Floats, Ints, Names

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST_LINE = 1_000_000
"""A longer line (in bytes) is taken for a mistake; see `read_csv`."""

WHOLE = 2**53
"""Whole numbers are below this in size: every one of them is a float, too."""

_BLOCK_BYTES = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Named columns of one file, all of one length.

    Attributes:
        source: the file, for complaints.
        data: Arrow columns by name.
        row_count: number of rows.
        line: returns the line (from 1) where a row (from 0) starts; None where files have none.
    """

    source: str | Path
    data: Mapping[str, pa.ChunkedArray]
    row_count: int
    line: Callable[[int], int | None] = field(default=lambda row: None)

    @classmethod
    def of(cls, source: str | Path, columns: Mapping[str, Any]) -> Table:
        """Columns of values that no file holds; ``source`` is named in complaints all the same."""
        import pyarrow as pa

        data = {name: pa.chunked_array([pa.array(each)]) for name, each in columns.items()}
        return cls(source, data, len(next(iter(data.values()))))

    def __len__(self) -> int:
        return self.row_count

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in the file's order."""
        return tuple(self.data)

    def cell(self, name: str, row: int) -> Any:
        """Return one value as it stands in the file; None where the cell is empty."""
        try:
            return self.data[name][row].as_py()
        except (ValueError, OverflowError):  # an instant that Python cannot hold
            return ...

    def complaint(
        self, rule: str, *, row: int, field: str, value: Any = ..., item: str | None = None
    ) -> InvalidInput:
        """Return the error for one cell: ``raise table.complaint(...)``."""
        source, line = self.source, self.line(row)
        return InvalidInput(
            rule, item=item, field=field, value=value, row=row, source=source, line=line
        )

    def column_complaint(self, rule: str, name: str) -> InvalidInput:
        """Return the error for a whole column: it is about the header."""
        return InvalidInput(rule, item=f"column '{name}'", source=self.source, line=1)

    def refuse(
        self, bad: Bools, rule: str, field: str, value: Any = None, *, tasks: Names | None = None
    ) -> None:
        """Refuse the first of the bad rows (n,), by its cell or another value; a task by name."""
        if np.any(bad):
            row = int(np.argmax(bad))
            shown = self.cell(field, row) if value is None else value
            item = None if tasks is None else f"task '{tasks[row]}'"
            raise self.complaint(rule, row=row, field=field, value=shown, item=item)

    def require(self, names: Sequence[str]) -> None:
        """Refuse the file where one of these columns is missing."""
        for name in names:
            if name not in self.data:
                rule = f"no column '{name}'{suggestion(name, self.columns)}"
                raise InvalidInput(rule, source=self.source)

    def text(self, name: str, default: str | None = None) -> Names:
        """Return a column as an object array of strings (n,).

        A missing column or an empty cell gives ``default``; without one it is refused.
        """
        if name not in self.data and default is not None:
            return np.full(len(self), default, dtype=object)
        return np.array(self._text_column(name, default).to_pylist(), dtype=object)

    def codes(self, name: str, default: str | None = None) -> tuple[Names, Ints]:
        """Return a text column as (distinct values in order of appearance, index of each row)."""
        if name not in self.data and default is not None:
            return np.array([default], dtype=object), np.zeros(len(self), dtype=np.int64)
        encoded = self._text_column(name, default).combine_chunks().dictionary_encode()
        if hasattr(encoded, "combine_chunks"):
            encoded = encoded.combine_chunks()
        distinct = np.array(encoded.dictionary.to_pylist(), dtype=object)
        return distinct, _numpy(encoded.indices, "int64")

    def places(self, name: str, words: Names | Sequence[str]) -> Ints:
        """Return the place of each cell of a text column among words (n,); -1: none of them."""
        import pyarrow as pa
        import pyarrow.compute as pc

        known = pa.array(words, pa.string())
        place = pc.fill_null(pc.index_in(self._text_column(name, None), known), -1)
        return np.asarray(place.to_numpy(zero_copy_only=False), dtype=np.int64)

    def floats(self, name: str, default: float | None = None) -> Floats:
        """Return a column as floats (n,); "inf" is a number, "nan" is refused.

        A missing column or an empty cell gives ``default``; without one it is refused.
        """
        if name not in self.data and default is not None:
            return np.full(len(self), default, dtype=np.float64)
        values = self._numbers(name, default, "float64", "a number")
        if default is None or not np.isnan(default):
            self.refuse(np.isnan(values), "must be a number", name, "nan")
        return values

    def ints(self, name: str, default: int | None = None) -> Ints:
        """Return a column as whole numbers (n,); "3.0" is one, "3.5" is refused.

        A missing column or an empty cell gives ``default``; without one it is refused.
        """
        if name not in self.data and default is not None:
            return np.full(len(self), default, dtype=np.int64)
        try:
            whole = self._numbers(name, default, "int64", "a whole number")
        except InvalidInput:
            values = self.floats(name, None if default is None else float(default))
            bad = ~(np.isfinite(values) & (values == np.round(values)) & (np.abs(values) < WHOLE))
            self.refuse(bad, "must be a whole number", name)
            return values.astype(np.int64)
        self.refuse((whole >= WHOLE) | (whole <= -WHOLE), "must be below 2^53", name)
        return whole

    def _text_column(self, name: str, default: str | None) -> pa.ChunkedArray:
        import pyarrow as pa
        import pyarrow.compute as pc

        self.require([name])
        column = self.data[name]
        if not pa.types.is_string(column.type):
            try:
                column = column.cast(pa.string())
            except pa.ArrowException:
                raise self._other_type(name, "text") from None
        column = pc.utf8_trim_whitespace(column)
        empty = pc.or_kleene(pc.is_null(column), pc.equal(column, _scalar("")))
        if pc.any(empty).as_py():
            if default is None:
                row = pc.index(empty, True).as_py()
                raise self.complaint("is empty", row=row, field=name)
            column = pc.if_else(empty, _scalar(default), column)
        return column

    def _numbers(self, name: str, default: float | None, kind: str, what: str) -> NDArray[Any]:
        """Cast a column; the first cell that is not ``what`` is refused."""
        import pyarrow as pa

        self.require([name])
        column = self.data[name]
        if not len(column):
            return np.empty(0, dtype=kind)
        if pa.types.is_nested(column.type) or pa.types.is_boolean(column.type):
            raise self._other_type(name, what)
        if _is_text(column.type) or column.null_count:
            column = self._text_column(name, None if default is None else repr(default))
        try:
            return _numpy(column.cast(kind).combine_chunks(), kind)
        except pa.ArrowInvalid:
            row = _first_bad(column, kind)
        except pa.ArrowNotImplementedError:
            row = 0
        raise self.complaint(f"must be {what}", row=row, field=name, value=self.cell(name, row))

    def _other_type(self, name: str, what: str) -> InvalidInput:
        kind = self.data[name].type
        text = " that is not UTF-8" if _is_text(kind) else ""
        rule = f"must be {what}, and the file holds {kind}{text}"
        return InvalidInput(rule, item=f"column '{name}'", source=self.source)


def _numpy(column: Any, kind: str) -> NDArray[Any]:
    """An Arrow column of numbers, none of them null.

    Not by Arrow's own way, which imports pandas where that is installed; nor is `_scalar`.
    """
    return np.array(np.from_dlpack(column), dtype=kind)


def _scalar(text: str) -> Any:
    """A text as Arrow compares it with those of a column."""
    import pyarrow as pa

    data = text.encode()
    ends = pa.py_buffer(np.array([0, len(data)], dtype=np.int32))
    return pa.StringArray.from_buffers(1, ends, pa.py_buffer(data))[0]


def read_csv(path: str | Path) -> Table:
    """Read a CSV file with a header line.

    Raises:
        InvalidInput: the file cannot be read, is not UTF-8, holds a NUL byte, has no header or
            two columns of one name, a row of another length than the header, or a line longer
            than `LONGEST_LINE` bytes.
    """
    text = decoded(read_bytes(path), path)
    data = text.encode("utf-8")
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    _check_lines(data, path)
    line, header = next(_records(data, path))
    names = [" ".join(name.split()) for name in header]
    _check_names(names, path, line)
    columns = _parse(data, len(names), path)
    kept = {name: column for name, column in zip(names, columns, strict=True) if name}

    def line_of(row: int) -> int | None:
        return next((line for line, _ in islice(_records(data, path), row + 1, None)), None)

    return Table(path, kept, len(columns[0]), line_of)


def read_parquet(path: str | Path) -> Table:
    """Read a Parquet file into the same kind of table; rows have no lines there."""
    with _opened(path) as file:
        stored = file.read()
        stored.validate(full=True)
    _check_names(stored.column_names, path, None)
    columns = dict(zip(stored.column_names, map(_unpacked, stored.columns), strict=True))
    return Table(path, columns, stored.num_rows)


def parquet_head(path: str | Path) -> str | None:
    """Return the text that `write_columns` put beside the columns; None where there is none."""
    with _opened(path) as file:
        kept = file.schema_arrow.metadata or {}
    return decoded(kept[HEAD], path) if HEAD in kept else None


@contextmanager
def _opened(path: str | Path) -> Iterator[Any]:
    """Open a Parquet file; what Arrow complains of inside is one `InvalidInput`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        yield pq.ParquetFile(_reader(read_bytes(path)))
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidInput(f"is not a Parquet file: {reason}", source=path) from None


def _reader(data: bytes) -> pa.BufferReader:
    """Return what Arrow reads bytes from, in memory of its own.

    Its threads let go of what they read some time later. Where that is Python's, and Python has
    ended by then, the process is aborted.
    """
    import pyarrow as pa

    copied = pa.BufferOutputStream()
    copied.write(data)
    return pa.BufferReader(copied.getvalue())


def _unpacked(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without what saves memory only: dictionaries, views, wide offsets."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        kind = pa.string()
    return column if kind == column.type else column.cast(kind)


def _is_text(kind: pa.DataType) -> bool:
    """Tell whether a type holds text, or bytes that may be text."""
    from pyarrow import types

    binary = types.is_binary(kind) or types.is_large_binary(kind)
    return bool(types.is_string(kind) or binary or types.is_fixed_size_binary(kind))


HEAD = b"downclock"
"""Key of the metadata of a Parquet file that holds what is not in its columns."""


def write_columns(columns: Mapping[str, Any], path: str | Path, *, head: str | None = None) -> None:
    """Write columns as CSV or Parquet by suffix; None is an empty cell.

    ``head`` is text that a Parquet file keeps beside its columns; see `parquet_head`.
    """
    import pyarrow as pa
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as pq

    # One chunk a column: Arrow's CSV writer puts NUL bytes for empty chunks.
    table = pa.table(dict(columns)).combine_chunks()
    if head is not None:
        table = table.replace_schema_metadata({HEAD: head})
    sink = pa.BufferOutputStream()
    if Path(path).suffix.lower() == ".csv":
        sink.write((",".join(columns) + "\n").encode())
        arrow_csv.write_csv(table, sink, arrow_csv.WriteOptions(include_header=False))
    else:
        pq.write_table(table, sink)
    write_bytes_atomically(path, sink.getvalue().to_pybytes())


def _check_lines(raw: bytes, path: str | Path) -> None:
    if not raw.strip():
        raise InvalidInput("is empty", item="the file", source=path)
    if b"\x00" in raw:
        at = raw.index(b"\x00")
        line = raw.count(b"\n", 0, at) + 1
        raise InvalidInput("holds a NUL byte: not a text file", source=path, line=line)
    ends = np.flatnonzero(np.frombuffer(raw, dtype=np.uint8) == ord("\n"))
    length = np.diff(np.concatenate([[-1], ends, [len(raw)]])) - 1
    if length.max() > LONGEST_LINE:
        line = int(np.argmax(length > LONGEST_LINE)) + 1
        rule = f"has {length[line - 1]} bytes; at most {LONGEST_LINE} are allowed"
        raise InvalidInput(rule, item="the line", source=path, line=line)


def _check_names(names: Sequence[str], path: str | Path, line: int | None) -> None:
    """Refuse a header without names or with one twice; nameless columns are left out."""
    if not any(names):
        raise InvalidInput("names no column", item="the header", source=path, line=line)
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            rule = "the header names it twice"
            raise InvalidInput(rule, item=f"column '{name}'", source=path, line=line)
        seen.add(name)


def _records(data: bytes, path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (start line, fields) of the header and every row: slow, exact, for complaints."""
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(data), "utf-8", newline=""), strict=True)
    start = 1
    try:
        for fields in reader:
            if fields:
                yield start, fields
            start = reader.line_num + 1
    except csv.Error as error:
        raise InvalidInput(f"is not a CSV row: {error}", source=path, line=start) from None


def _parse(data: bytes, width: int, path: str | Path) -> list[pa.ChunkedArray]:
    """Return the columns as strings, without the header."""
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    if data.count(b'"') % 2:
        _refuse_ragged(data, width, path)  # Arrow would take the rest of the file for one field
    names = [str(k) for k in range(width)]
    try:
        table = arrow_csv.read_csv(
            _reader(data),
            arrow_csv.ReadOptions(column_names=names, block_size=_BLOCK_BYTES),
            arrow_csv.ParseOptions(newlines_in_values=b'"' in data),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        _refuse_ragged(data, width, path)
        reason = str(error).splitlines()[0]
        raise InvalidInput(f"is not a CSV table: {reason}", source=path) from None
    return [column.slice(1) for column in table.columns]


def _refuse_ragged(data: bytes, width: int, path: str | Path) -> None:
    for line, cells in _records(data, path):
        if len(cells) != width:
            rule = f"has {len(cells)} fields, the header has {width}"
            raise InvalidInput(rule, item="the row", source=path, line=line)


def _first_bad(column: pa.ChunkedArray, kind: str) -> int:
    """Return the first row that does not cast; some row does not."""
    import pyarrow as pa

    def fails(row: int) -> bool:
        try:
            column.slice(0, row + 1).cast(kind)
        except pa.ArrowInvalid:
            return True
        return False

    return bisect_left(range(len(column) - 1), True, key=fails)
