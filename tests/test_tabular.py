"""A table file is read as written, or refused with one line that says where it is wrong."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downclock.errors import InvalidInput
from downclock.tabular import LONGEST_LINE, Table, read_csv, read_parquet, write_columns


def table_of(folder: Path, content: bytes | str) -> Table:
    path = folder / "t.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_csv(path)


def complaint_of(folder: Path, content: bytes | str, column: str | None = None) -> str:
    """Return what reading the file (and a column of it as numbers) complains about."""
    with pytest.raises(InvalidInput) as caught:
        table_of(folder, content).floats(column or "a")
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(folder / "t.csv"))
    return message.removeprefix(str(folder / "t.csv"))


def test_columns_come_back_as_text_numbers_and_codes(tmp_path: Path) -> None:
    table = table_of(tmp_path, "name,time_s,gpus\nx,1.5,2\ny, 2e3 ,3.0\nx,inf,4\n")
    assert len(table) == 3
    assert table.columns == ("name", "time_s", "gpus")
    assert table.text("name").tolist() == ["x", "y", "x"]
    assert table.floats("time_s").tolist() == [1.5, 2000.0, np.inf]
    assert table.ints("gpus").tolist() == [2, 3, 4]
    distinct, index = table.codes("name")
    assert distinct.tolist() == ["x", "y"]
    assert index.tolist() == [0, 1, 0]


def test_missing_columns_and_empty_cells_take_the_default(tmp_path: Path) -> None:
    table = table_of(tmp_path, "a,b,c\n1,,\n2,5,z\n")
    assert table.floats("b", 7.0).tolist() == [7.0, 5.0]
    assert np.isnan(table.floats("b", np.nan)[0])
    assert table.floats("absent", 3.0).tolist() == [3.0, 3.0]
    assert table.ints("b", 1).tolist() == [1, 5]
    assert table.ints("absent", 1).tolist() == [1, 1]
    assert table.text("c", "none").tolist() == ["none", "z"]
    assert table.text("absent", "q").tolist() == ["q", "q"]
    assert table.codes("absent", "q")[1].tolist() == [0, 0]


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfa,b\n1,2\n3,4\n",
        b"a,b\r\n1,2\r\n3,4\r\n",
        b"a,b\r1,2\r3,4\r",
        b"\n\na,b\n\n1,2\n\n3,4",
        b" a ,b\n 1,2 \n3 , 4\n",
        b'"a","b"\n"1","2"\n"3","4"\n',
    ],
    ids=["byte order mark", "CRLF", "CR", "blank lines", "blanks", "quotes"],
)
def test_the_same_table_in_other_clothes(tmp_path: Path, content: bytes) -> None:
    table = table_of(tmp_path, content)
    assert table.columns == ("a", "b")
    assert table.ints("a").tolist() == [1, 3]
    assert table.ints("b").tolist() == [2, 4]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", ", the file: is empty"),
        (b"\n \n", ", the file: is empty"),
        (b"a,b\n1,2\n3\n4,5\n", " line 3, the row: has 1 fields, the header has 2"),
        (b"a,b\n1,2\n3,4,5\n", " line 3, the row: has 3 fields, the header has 2"),
        (b"a,b,a\n1,2,3\n", " line 1, column 'a': the header names it twice"),
        (b",\n1,2\n", " line 1, the header: names no column"),
        (b"a,b\n1,\x00\n", " line 2: holds a NUL byte: not a text file"),
        (b"a,b\n1,2\n3,\xfcber\n", " line 3: is not UTF-8 text (byte 0xfc at offset 10)"),
        (b"\xff\xfea\x00", " line 1: is not UTF-8 text (byte 0xff at offset 0)"),
        (b'a,b\n1,"open\n3,4\n', " line 2: is not a CSV row: unexpected end of data"),
        (b"b\n1\n", ": no column 'a'; there are: b"),
        (b"a\n1\n\nten\n", " line 4: a='ten' must be a number"),
        (b"a\n1\nnan\n", " line 3: a='nan' must be a number"),
        (b"a,b\n1,x\n,y\n", " line 3: a is empty"),
        (b'b,a\n"two\nlines",1\nz,bad\n', " line 4: a='bad' must be a number"),
    ],
)
def test_what_is_no_table_is_refused_with_its_place(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    assert complaint_of(tmp_path, content) == expected


def test_a_line_of_ten_megabytes_is_refused(tmp_path: Path) -> None:
    message = complaint_of(tmp_path, b"a,b\n1,2\n" + b"x" * 10_000_000 + b",1\n")
    assert message == (f" line 3, the line: has 10000002 bytes; at most {LONGEST_LINE} are allowed")


def test_whole_numbers_must_be_whole(tmp_path: Path) -> None:
    table = table_of(tmp_path, "n\n1\n2.5\n")
    with pytest.raises(InvalidInput, match=r"line 3: n='2\.5' must be a whole number"):
        table.ints("n")


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none\.csv: no such file"):
        read_csv(tmp_path / "none.csv")
    with pytest.raises(InvalidInput, match="is a folder, not a file"):
        read_csv(tmp_path)


def test_a_header_alone_is_a_table_without_rows(tmp_path: Path) -> None:
    table = table_of(tmp_path, "a,b\n")
    assert len(table) == 0
    assert table.floats("a").size == table.text("b").size == table.ints("a").size == 0


def test_nameless_columns_are_left_out(tmp_path: Path) -> None:
    assert table_of(tmp_path, ",a,\n0,5,6\n").columns == ("a",)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_arrow_reads_from_memory_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """Its threads freed Python's memory when Python had ended: the process was aborted."""
    seen, read = [], {"csv": read_csv, "parquet": read_parquet}[suffix]
    path = tmp_path / f"t.{suffix}"
    write_columns({"name": ["a", "b"]}, path)
    reader = pa.BufferReader
    monkeypatch.setattr(pa, "BufferReader", lambda data: seen.append(data) or reader(data))
    assert list(read(path).text("name")) == ["a", "b"]
    assert [type(each) for each in seen] == [pa.Buffer]


def test_parquet_answers_the_same_questions(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1.5, None], "n": ["x", "y"], "k": [1, 2]}), path)
    table = read_parquet(path)
    assert table.floats("a", 9.0).tolist() == [1.5, 9.0]
    assert table.ints("k").tolist() == [1, 2]
    assert table.text("n").tolist() == ["x", "y"]
    with pytest.raises(InvalidInput, match="a is empty"):
        table.floats("a")
    path.write_bytes(b"no parquet")
    with pytest.raises(InvalidInput, match="is not a Parquet file"):
        read_parquet(path)


STORED = {
    "large_string": pa.array(["1", "2"], pa.large_string()),
    "string_view": pa.array(["1", "2"], pa.string_view()),
    "dictionary": pa.array(["1", "2"]).dictionary_encode(),
    "dictionary of numbers": pa.array([1.0, 2.0]).dictionary_encode(),
    "binary": pa.array([b"1", b"2"]),
    "decimal": pa.array([Decimal(1), Decimal(2)]),
    "uint8": pa.array([1, 2], pa.uint8()),
    "float16": pa.array(np.array([1, 2], dtype=np.float16)),
}
"""One column of 1 and 2, as different programs store it."""


@pytest.mark.parametrize("stored", STORED)
def test_a_parquet_column_is_what_it_holds_not_how_it_is_stored(
    tmp_path: Path, stored: str
) -> None:
    pq.write_table(pa.table({"a": STORED[stored]}), tmp_path / "t.parquet")
    table = read_parquet(tmp_path / "t.parquet")
    assert table.floats("a").tolist() == [1.0, 2.0]
    assert table.ints("a").tolist() == [1, 2]
    assert [float(text) for text in table.text("a")] == [1.0, 2.0]


NO_TEXT = {
    "list<element: string>": [["a"], None],
    "struct<a: int64>": [{"a": 1}, None],
    "map<string, int64 ('a')>": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    "binary that is not UTF-8": [b"\xff\xfe", b"b"],
}
"""Columns that are no text, by what a complaint calls them."""


@pytest.mark.parametrize("kind", NO_TEXT)
def test_a_parquet_column_of_another_type_is_refused_by_name_and_type(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": NO_TEXT[kind]}), path)
    with pytest.raises(InvalidInput) as caught:
        read_parquet(path).codes("a")
    assert str(caught.value) == f"{path}, column 'a': must be text, and the file holds {kind}"
    with pytest.raises(InvalidInput, match=f"column 'a': must be .* holds {re.escape(kind)}"):
        read_parquet(path).floats("a")


cells = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=6)


@settings(deadline=None)
@given(rows=st.lists(st.tuples(cells, st.integers(0, 9)), min_size=1, max_size=8))
def test_whatever_the_csv_module_writes_is_read_back(
    rows: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    import csv

    path = tmp_path_factory.mktemp("csv") / "t.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["a", "b"])
        writer.writerows(rows)
    table = read_csv(path)
    assert table.ints("b").tolist() == [number for _, number in rows]
    assert [t.strip() for t in table.text("a", " ")] == [text.strip() for text, _ in rows]


@settings(deadline=None)
@given(good=st.integers(0, 40), after=st.integers(0, 40))
def test_the_first_bad_number_is_the_one_named(
    good: int, after: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_text("a\n" + "1\n" * good + "bad\n" + "1\nworse\n" * after)
    with pytest.raises(InvalidInput) as caught:
        read_csv(path).floats("a")
    assert caught.value.line == good + 2
    assert caught.value.row == good
