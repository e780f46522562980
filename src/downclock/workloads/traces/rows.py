"""Rows of files, one after the other: CSV and its kin, lines, gzip, Parquet.

A sheet is a header and an iterator of (number, cells). What is not a row is counted in the ledger
and skipped; a gzip stream that ends early gives the rows before its end.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeAlias

from downclock.errors import InvalidInput
from downclock.files import read_bytes
from downclock.workloads.traces.ledger import Ledger

Rows: TypeAlias = Iterator[tuple[int, Sequence[Any]]]

_GZIP = b"\x1f\x8b"
_DELIMITERS = ",|;\t"
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UNPACKED = 512
"""Bytes unpacked at once: so many may be lost where a stream is damaged."""


class Sheet(NamedTuple):
    """A header, and rows of as many cells.

    Attributes:
        began: the instant its times count from.
        unit: what the numbers of its rows count.
    """

    header: tuple[str, ...]
    rows: Rows
    began: float | None = None
    unit: str = "line"


class _Tolerant(io.RawIOBase):
    """A stream that ends where it cannot be read further, and remembers why."""

    def __init__(self, stream: Any, at_once: int) -> None:
        self._stream, self._at_once, self.fault = stream, at_once, ""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read1(min(len(buffer), self._at_once))
        except (EOFError, OSError, zlib.error) as error:
            self.fault, data = str(error) or type(error).__name__, b""
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def lines(path: str | Path, ledger: Ledger) -> Iterator[str]:
    """Yield the lines of a text file, gzip or not.

    The line in which a damaged file ends is no row: it is counted and named.
    """
    with opened(path) as (text, raw):
        number = 1
        for line in text:
            if raw.fault and not line.endswith("\n"):
                break
            yield line
            number += 1
        if raw.fault:
            rule = f"the file is cut or damaged here: {raw.fault}"
            ledger.malformed(number, rule, always=True)


@contextmanager
def opened(path: str | Path) -> Iterator[tuple[TextIO, _Tolerant]]:
    """Open a text file, gzip or not, beside what says why it ends early.

    Bytes that are no UTF-8 (or UTF-16, by its mark) are replaced.
    """
    with _unpacked(path) as raw, io.BufferedReader(raw, 1 << 20) as packed:
        encoding = "utf-16" if packed.peek(2).startswith(_WIDE) else "utf-8-sig"
        with io.TextIOWrapper(packed, encoding, errors="replace") as text:
            yield text, raw


def _unpacked(path: str | Path) -> _Tolerant:
    there = Path(path)
    if there.is_fifo() or there.is_char_device():
        raise InvalidInput("must be a file, not a pipe: it is read more than once", source=path)
    try:
        with open(path, "rb") as stream:
            packed = stream.read(2) == _GZIP
        if packed:
            return _Tolerant(gzip.open(path, "rb"), _UNPACKED)
        return _Tolerant(open(path, "rb"), io.DEFAULT_BUFFER_SIZE)
    except (OSError, ValueError):
        read_bytes(path)  # says why in our words
        raise


def csv_sheet(path: str | Path, ledger: Ledger, delimiter: str | None = None) -> Sheet:
    """Open a CSV file; the delimiter is the one the header has most of, unless it is given.

    Raises:
        InvalidInput: there is no header, or none that can be read.
    """
    text = lines(path, ledger)
    empty = (0, "")
    number, first = next((each for each in enumerate(text, start=1) if each[1].strip()), empty)
    if not first:
        rule = "ends before its first line" if ledger.complaints else "is empty"
        raise InvalidInput(rule, item="the file", source=path)
    mark = delimiter or max(_DELIMITERS, key=first.count)
    parse = partial(csv.reader, delimiter=mark)
    if mark == "|":  # sacct quotes nothing
        parse = partial(parse, quoting=csv.QUOTE_NONE)
    try:
        names = tuple(name.strip() for name in next(parse([first])))
    except csv.Error as error:
        raise InvalidInput(f"is not a CSV header: {error}", source=path, line=number) from None
    source = _Returnable(text, number + 1)
    return Sheet(names, _csv_rows(parse(source), source, mark, len(names), ledger))


class _Returnable:
    """Lines that can be given back: a quote that nobody closes swallows the rows that follow."""

    def __init__(self, text: Iterator[str], line: int) -> None:
        self._text, self._back, self._taken = text, deque[str](), list[str]()
        self._ended = False
        self.line = line  # of the next

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            line = self._back.popleft() if self._back else next(self._text)
        except StopIteration:
            self._ended = True
            raise
        self._taken.append(line)
        self.line += 1
        return line

    def begin(self) -> int:
        """Begin a row; return its line."""
        self._taken.clear()
        return self.line

    def swallowed(self, cells: Sequence[str], delimiter: str) -> bool:
        """Tell whether the lines of this row are several rows: a quote was opened by mistake.

        It goes on to the end of the file; or a line inside one of its cells is as long as a row,
        the last of them as far as that cell.
        """
        if len(self._taken) < 2:
            return False
        if self._ended and sum(line.count('"') for line in self._taken) % 2:
            return True
        for k, cell in enumerate(cells):
            *inner, last = (line.count(delimiter) for line in cell.split("\n")[1:] or [""])
            if len(cells) - 1 in inner or (k > 1 and last == k):
                return True
        return False

    def give_back(self) -> None:
        """Read all lines of this row but the first again."""
        self._back.extendleft(reversed(self._taken[1:]))
        self.line -= len(self._taken[1:])


def _csv_rows(reader: Any, source: _Returnable, delimiter: str, width: int, ledger: Ledger) -> Rows:
    while True:
        line = source.begin()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            rule = f"is not a CSV row: {error}"
        else:
            if source.swallowed(cells, delimiter):
                rule = "has a quote that nobody closes"
            elif len(cells) == width:
                yield line, cells
                continue
            elif any(cell.strip() for cell in cells):
                rule = f"has {len(cells)} fields, the header has {width}"
            else:
                continue
        ledger.malformed(line, rule)
        source.give_back()


def parquet_sheet(path: str | Path) -> Sheet:
    """Open a Parquet file; its rows have numbers, no lines."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        stored = pq.ParquetFile(path)
        names = tuple(stored.schema_arrow.names)
    except (pa.ArrowException, OSError, ValueError) as error:
        read_bytes(path)  # says in our words why it cannot be read at all
        raise InvalidInput(f"is not a Parquet file: {error}", source=path) from None
    return Sheet(names, _parquet_rows(stored, path), unit="row")


def _parquet_rows(stored: Any, path: str | Path) -> Rows:
    import pyarrow as pa

    number = itertools.count(1)
    try:
        for batch in stored.iter_batches():
            columns = [column.to_pylist() for column in batch.columns]
            yield from zip(number, zip(*columns, strict=True), strict=False)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidInput(f"is not a Parquet file we can read: {reason}", source=path) from None
