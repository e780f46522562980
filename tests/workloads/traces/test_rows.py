"""Rows of damaged files: what can be read is read, what is lost is counted and named."""

from __future__ import annotations

import gzip
import random
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from downclock.errors import InvalidInput
from downclock.workloads.traces.read import read_trace
from tests.workloads.trace_samples import FILES, MAPPING, PHILLY

HEAD = PHILLY.splitlines(keepends=True)[0]


def rows(count: int) -> list[str]:
    """Rows in Philly's layout, a minute apart."""
    return [f"2017-10-09 {7 + k // 60:02d}:{k % 60:02d}:00,600,1,600,vc1\n" for k in range(count)]


@pytest.mark.parametrize("tail", ["", "x" * 200_000 + "\n"])
def test_a_quote_that_nobody_closes_costs_its_own_row_only(read, tail):
    """Up to the end of the file, or as far as a CSV reader follows it."""
    head, *rows = PHILLY.splitlines(keepends=True)
    trace = read("philly.csv", "".join([head, rows[0], '"lost,1,1,1,vc1\n', *rows[1:], tail]))
    assert trace.processors.tolist() == [1, 4, 12]
    assert "line 3: " in trace.ledger.complaints[0]
    assert trace.ledger.dropped["malformed"][0] == 1 + bool(tail)


def test_a_cell_of_several_lines_is_one_cell(read):
    trace = read("helios.csv", FILES["helios.csv"].replace(",u,v,8", ',"a\nuser",v,8'))
    assert trace.processors.tolist() == [8, 16]
    late = read("helios.csv", FILES["helios.csv"].replace(",u,v,8", ',"a\nuser",v,-8'))
    assert "line 2: gpu_num=-8.0" in late.ledger.complaints[0]


@pytest.mark.parametrize("closed", ["", '"'])
@pytest.mark.parametrize("between", [1, 2, 300])
def test_a_quote_in_the_last_column_swallows_no_rows(read, closed, between):
    """The cell goes on to the end of the file, or to another such quote; the fields fit the header.

    A closing quote far away is part of its own row's name.
    """
    good = rows(400)
    bad = '2017-10-09 07:00:00,600,1,600,"vc1\n'
    last = f"2017-10-09 07:00:00,600,1,600,vc2{closed}\n"
    text = "".join([HEAD, *good[:100], bad, *good[100 : 99 + between], last])
    trace = read("philly.csv", text)
    assert len(trace) == 100 + between
    assert "line 102: has a quote that nobody closes" in trace.ledger.complaints[0]
    assert trace.ledger.dropped["malformed"][0] == 1


def test_a_log_cut_in_its_gzip_stream_gives_the_rows_before(read):
    draw = random.Random(1)
    row = "{} {} 0 {} 1 -1 -1 1 -1 -1 1 1 1 -1 -1 1 -1 -1\n"
    text = "".join(row.format(k, k, draw.randrange(1, 99999)) for k in range(1, 5000))
    whole = gzip.compress(text.encode())
    assert len(read("log.swf.gz", whole)) == 4999
    cut = read("log.swf.gz", whole[: len(whole) // 2])
    assert 100 < len(cut) < 4999
    assert any("the file is cut or damaged here" in line for line in cut.ledger.complaints)
    with pytest.raises(InvalidInput, match=r"has 1 fields|cut or damaged"):
        read("log.swf.gz", whole[: len(whole) // 2], strict=True)


def test_every_whole_line_before_the_end_of_a_cut_file_is_read(read):
    """Cut anywhere: the lines that the stream holds whole, and the number of the next one."""
    draw = random.Random(2)
    body = [row.replace(",600,1", f",{draw.randrange(1, 10**6)},1") for row in rows(900)]
    whole = gzip.compress("".join([HEAD, *body]).encode(), mtime=0)
    for part in (0.4, 0.7, 0.99):
        cut = whole[: int(len(whole) * part)]
        held = zlib.decompressobj(wbits=31).decompress(cut).count(b"\n")
        trace = read("philly.csv.gz", cut)
        assert len(trace) == held - 1
        assert f"line {held + 1}: the file is cut" in trace.ledger.complaints[0]
    with pytest.raises(InvalidInput, match="ends before its first line"):
        read("philly.csv.gz", whole[:9])


def test_lines_before_a_damaged_block_are_read(read):
    draw = random.Random(3)
    body = [row.replace(",600,1", f",{draw.randrange(1, 10**6)},1") for row in rows(900) * 10]
    whole = bytearray(gzip.compress("".join([HEAD, *body]).encode(), mtime=0))
    at = len(whole) // 2
    whole[at : at + 64] = bytes(64)
    trace = read("philly.csv.gz", bytes(whole))
    assert 4000 < len(trace) < 5000
    assert "the file is cut or damaged here" in trace.ledger.complaints[-1]


def test_lines_before_the_header_count(read):
    trace = read("philly.csv", "\n\n" + PHILLY + "soon,60,1,60,vc1\n")
    assert " line 7: timestamp='soon'" in trace.ledger.complaints[0]


def test_utf_16_is_read_as_what_it_is(read):
    assert len(read("philly.csv", PHILLY.encode("utf-16"))) == 3


def test_what_is_no_object_of_a_json_list_is_malformed(read):
    text = FILES["batsim.json"].replace('"jobs": [', '"jobs": [5, null, ')
    trace = read("batsim.json", text)
    assert len(trace) == 2
    assert trace.ledger.dropped["malformed"] == (2, 0.0)
    assert trace.ledger.complaints[0].endswith("batsim.json, job 1: 5 is no object")


def test_rows_of_parquet_are_named_by_their_number(tmp_path):
    (tmp_path / "map.toml").write_text(MAPPING)
    when = [1767600000000 + 1000 * k for k in range(4)]
    columns = {"who": list("abcd"), "when": when, "mins": ["1", "x", None, "nan"], "n": [1] * 4}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    ledger = read_trace(tmp_path / "t.parquet", mapping=tmp_path / "map.toml").ledger
    assert ledger.complaints == [f"{tmp_path / 't.parquet'}, row 2: mins='x' must be a number"]
    assert ledger.dropped["did not run, or still runs"] == (2, 0.0)


def test_lengths_of_time_of_parquet_need_no_unit(tmp_path):
    (tmp_path / "map.toml").write_text(MAPPING)
    run = pa.array([5400, None], pa.duration("s"))
    columns = {"who": ["a", "b"], "when": [1767600000000] * 2, "mins": run, "n": [1, 1]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    trace = read_trace(tmp_path / "t.parquet", mapping=tmp_path / "map.toml")
    assert trace.run_s.tolist() == [5400.0]
