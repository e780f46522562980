"""Trees as bytes: TOML, CSV and Parquet, usual and unusual; and damage to bytes."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.trees import Obj, Raw, json_of

JUNK = (
    *(b"", b"nan", b"-1", b"1e999", b"null", b"true", b"[]", b"{}", b'"', b",", b"\n", b"\x00"),
    *(b"\xff", b"9" * 400, b"0.5", b"x", b"[[", b"]", b"}", b"'", b"=", b"\r", b"1e-320", b";"),
    *(b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"\xef\xbb\xbf", b"#", b"\t", b"--", b"1_0"),
)


def json_bytes(tree: Any) -> bytes:
    """A tree as JSON."""
    return json_of(tree).encode("utf-8", "surrogatepass")


def toml_bytes(tree: Any) -> bytes:
    """A tree as TOML: lists of objects at the top as [[headers]], all else inline."""
    if not isinstance(tree, Obj):
        return json_bytes(tree)
    plain = [(key, value) for key, value in tree if not _is_tables(value)]
    lines = [f"{_toml_key(key)} = {_toml(value)}" for key, value in plain]
    for key, value in tree:
        for row in value if _is_tables(value) else ():
            lines += [f"[[{_toml_key(key)}]]"]
            lines += [f"{_toml_key(inner)} = {_toml(each)}" for inner, each in row]
    return "\n".join([*lines, ""]).encode("utf-8", "surrogatepass")


def _is_tables(value: Any) -> bool:
    listed = isinstance(value, list) and not isinstance(value, Obj)
    return bool(listed and value and all(isinstance(row, Obj) for row in value))


def _toml_key(key: Any) -> str:
    text = str(key)
    return text if text.isidentifier() and text.isascii() else json.dumps(text)


def _toml(value: Any) -> str:
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, Obj):
        return "{ " + ", ".join(f"{_toml_key(k)} = {_toml(v)}" for k, v in value) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str) and value[:5].count("-") == 1 and "T" in value:
        return value if value.isprintable() else json.dumps(value)
    return json.dumps(value)


def columns_of(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns; what a row does not have is None."""
    names = dict.fromkeys(key for row in rows for key in row)
    return {name: [row.get(name) for row in rows] for name in names}


def csv_bytes(rng: Random, table: Any) -> bytes:
    """Columns as CSV; a column that is no list is repeated, short ones make ragged rows."""
    columns = [
        (str(key), cells if isinstance(cells, list) else [cells] * 3) for key, cells in table
    ]
    height = max((len(cells) for _, cells in columns), default=0)
    out = io.StringIO(newline="")
    ends = rng.choice(("\n", "\n", "\n", "\r\n", "\r"))
    quoting = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    writer = csv.writer(out, lineterminator=ends, quoting=quoting)
    writer.writerow([name for name, _ in columns])
    pad = rng.random() < 0.7
    for k in range(height):
        full = [k < len(cells) for _, cells in columns]
        row = [
            _cell(cells[k]) if there else ""
            for (_, cells), there in zip(columns, full, strict=True)
        ]
        writer.writerow(
            row if pad else [cell for cell, there in zip(row, full, strict=True) if there]
        )
    return out.getvalue().encode("utf-8", "surrogatepass")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ";".join(map(_cell, value)) if not isinstance(value, Obj) else json_of(value)
    return str(value)


_MOMENT = datetime(2024, 6, 10, 8)

ARROW: tuple[tuple[Callable[[], Any], Callable[[Any], Any]], ...] = (
    (pa.string, str),
    (pa.large_string, str),
    (pa.string_view, str),
    (lambda: pa.dictionary(pa.int32(), pa.string()), str),
    (lambda: pa.dictionary(pa.int8(), pa.float64()), float),
    (pa.binary, lambda v: str(v).encode("utf-8", "surrogatepass")),
    (pa.binary, lambda v: b"\xff\xfe"),
    (pa.large_binary, lambda v: b"x"),
    (lambda: pa.binary(2), lambda v: b"\xed\xa0"),
    (pa.int8, lambda v: int(v) % 100),
    (pa.int64, int),
    (pa.uint64, lambda v: abs(int(v))),
    (pa.float16, float),
    (pa.float32, float),
    (pa.float64, float),
    (lambda: pa.decimal128(38, 3), lambda v: Decimal(int(v))),
    (pa.bool_, bool),
    (lambda: pa.timestamp("ns"), lambda v: _MOMENT),
    (lambda: pa.timestamp("us", "Europe/Berlin"), lambda v: _MOMENT),
    (pa.date32, lambda v: date(2024, 6, 10)),
    (lambda: pa.time64("us"), lambda v: time(8)),
    (lambda: pa.duration("s"), lambda v: timedelta(seconds=5)),
    (lambda: pa.list_(pa.string()), lambda v: [str(v)]),
    (lambda: pa.large_list(pa.string()), lambda v: [str(v), None]),
    (lambda: pa.list_(pa.float64()), lambda v: [1.5]),
    (lambda: pa.list_(pa.string(), 2), lambda v: [str(v), "b"]),
    (lambda: pa.struct([("a", pa.string())]), lambda v: {"a": str(v)}),
    (lambda: pa.map_(pa.string(), pa.int64()), lambda v: [("a", 1)]),
    (pa.null, lambda v: None),
)
"""Arrow types a column may be written as, and how a cell becomes one."""


def parquet_bytes(rng: Random, table: Any) -> bytes:
    """Columns as Parquet; one in four as a type nobody expects."""
    columns = [
        (str(key), cells if isinstance(cells, list) else [cells] * 3) for key, cells in table
    ]
    height = max((len(cells) for _, cells in columns), default=0)
    arrays, names = [], []
    for name, cells in columns:
        padded = [*cells, *[None] * (height - len(cells))]
        arrays.append(_arrow(rng, padded))
        names.append(name.encode("utf-8", "replace").decode())
    sink = pa.BufferOutputStream()
    try:
        pq.write_table(pa.Table.from_arrays(arrays, names=names), sink)
    except (pa.ArrowException, OSError):
        return b"PAR1"
    return sink.getvalue().to_pybytes()


def _arrow(rng: Random, cells: list[Any]) -> Any:
    usual = [cell if not isinstance(cell, list) else _listed(cell) for cell in cells]
    if rng.random() < 0.25:
        kind, convert = rng.choice(ARROW)
        try:
            values = [None if cell is None else convert(cell) for cell in cells]
            return pa.array(values, kind())
        except (pa.ArrowException, ValueError, TypeError, OverflowError, ArithmeticError):
            pass
    try:
        return pa.array(usual)
    except (pa.ArrowException, ValueError, TypeError, OverflowError, UnicodeError):
        return pa.array([None if cell is None else ascii(cell) for cell in cells])


def _listed(cell: list[Any]) -> Any:
    return [str(each) for each in cell] if not isinstance(cell, Obj) else json_of(cell)


def damaged(rng: Random, data: bytes, chance: float = 0.2) -> bytes:
    """The same bytes, or some of them damaged, or in another encoding."""
    if rng.random() >= chance:
        return data
    at = rng.randrange(len(data) + 1)
    text = data.decode("utf-8", "replace")
    return rng.choice(
        (
            lambda: data[:at],
            lambda: data[:at] + rng.choice(JUNK) + data[at:],
            lambda: data[:at] + rng.choice(JUNK) + data[at + rng.randrange(1, 9) :],
            lambda: data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :],
            lambda: b"\xef\xbb\xbf" + data,
            lambda: data.replace(b"\n", b"\r\n"),
            lambda: data.replace(b"\n", b"\r"),
            lambda: text.encode("utf-16"),
            lambda: text.encode("latin-1", "replace") + b"\xe9",
            lambda: gzip.compress(data, mtime=0),
            lambda: b"",
            lambda: b"\n" * 3,
            lambda: data + data,
            lambda: data + b"\x00",
        )
    )()
