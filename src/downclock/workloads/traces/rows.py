"""Rows of files, one after the other: CSV and its kin, lines, gzip, Parquet.

A sheet is a header and an iterator of (line, cells). What is not a row is counted in the ledger
and skipped; a gzip stream that ends early gives the rows before its end.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from downclock.errors import InvalidInput
from downclock.files import read_bytes
from downclock.workloads.traces.ledger import Ledger

Rows: TypeAlias = Iterator[tuple[int | None, Sequence[Any]]]

_GZIP = b"\x1f\x8b"
_DELIMITERS = ",|;\t"


class Sheet(NamedTuple):
    """A header, and rows of as many cells."""

    header: tuple[str, ...]
    rows: Rows


class _Tolerant(io.RawIOBase):
    """A stream that ends where it cannot be read further, and remembers why."""

    def __init__(self, stream: Any) -> None:
        self._stream, self.fault = stream, ""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except (EOFError, OSError, zlib.error) as error:
            self.fault, data = str(error) or type(error).__name__, b""
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def lines(path: str | Path, ledger: Ledger) -> Iterator[str]:
    """Yield the lines of a text file, gzip or not; bytes that are no UTF-8 are replaced."""
    with (
        _opened(path) as raw,
        io.TextIOWrapper(io.BufferedReader(raw, 1 << 20), "utf-8-sig", errors="replace") as text,
    ):
        number = 0
        for line in text:
            number += 1
            yield line
        if raw.fault:
            ledger.malformed(number, f"the file is cut or damaged here: {raw.fault}")


def _opened(path: str | Path) -> _Tolerant:
    try:
        with open(path, "rb") as stream:
            packed = stream.read(2) == _GZIP
        return _Tolerant(gzip.open(path, "rb") if packed else open(path, "rb"))
    except (OSError, ValueError):
        read_bytes(path)  # says why in our words
        raise


def csv_sheet(path: str | Path, ledger: Ledger, delimiter: str | None = None) -> Sheet:
    """Open a CSV file; the delimiter is the one the header has most of, unless it is given.

    Raises:
        InvalidInput: there is no header, or none that can be read.
    """
    text = lines(path, ledger)
    first = next((line for line in text if line.strip()), "")
    if not first:
        raise InvalidInput("is empty", item="the file", source=path)
    mark = delimiter or max(_DELIMITERS, key=first.count)
    parse = partial(csv.reader, delimiter=mark)
    if mark == "|":  # sacct quotes nothing
        parse = partial(parse, quoting=csv.QUOTE_NONE)
    try:
        names = tuple(name.strip() for name in next(parse([first])))
    except csv.Error as error:
        raise InvalidInput(f"is not a CSV header: {error}", source=path, line=1) from None
    source = _Returnable(text)
    return Sheet(names, _csv_rows(parse(source), source, len(names), ledger))


class _Returnable:
    """Lines that can be given back: a quote that nobody closes swallows the rows that follow."""

    def __init__(self, text: Iterator[str]) -> None:
        self._text, self._back, self._taken = text, deque[str](), list[str]()
        self.line = 2  # of the next; the header was read before

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._back.popleft() if self._back else next(self._text)
        self._taken.append(line)
        self.line += 1
        return line

    def begin(self) -> int:
        """Begin a row; return its line."""
        self._taken.clear()
        return self.line

    def give_back(self) -> None:
        """Read all lines of this row but the first again."""
        self._back.extendleft(reversed(self._taken[1:]))
        self.line -= len(self._taken[1:])


def _csv_rows(reader: Any, source: _Returnable, width: int, ledger: Ledger) -> Rows:
    while True:
        line = source.begin()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            ledger.malformed(line, f"is not a CSV row: {error}")
            source.give_back()
            continue
        if len(cells) == width:
            yield line, cells
        elif any(cell.strip() for cell in cells):
            ledger.malformed(line, f"has {len(cells)} fields, the header has {width}")
            source.give_back()


def parquet_sheet(path: str | Path) -> Sheet:
    """Open a Parquet file; its rows have no lines."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        stored = pq.ParquetFile(pa.BufferReader(read_bytes(path)))
        names = tuple(stored.schema_arrow.names)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidInput(f"is not a Parquet file: {error}", source=path) from None
    return Sheet(names, _parquet_rows(stored, path))


def _parquet_rows(stored: Any, path: str | Path) -> Rows:
    import pyarrow as pa

    try:
        for batch in stored.iter_batches():
            columns = [column.to_pylist() for column in batch.columns]
            yield from ((None, cells) for cells in zip(*columns, strict=True))
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidInput(f"is not a Parquet file we can read: {reason}", source=path) from None
