"""Rules that a row of any trace must obey; what breaks them is counted and named."""

from __future__ import annotations

import json

import pytest

from downclock.errors import InvalidInput
from downclock.report.converted import converted_page
from downclock.workloads.traces.to_problem import Choices, converted
from tests.workloads.trace_samples import BATSIM, MAPPED, MAPPING, PHILLY, SACCT, SWF

PLANTED = {
    "wrong type": ("2017-10-09 07:00:00,soon,1,1,vc1", "duration='soon' must be a number", 0.0),
    "no date": ("yesterday,60,2,1,vc1", "timestamp='yesterday' must be an ISO 8601 date", 120.0),
    "negative time": ("2017-10-09 07:00:00,-5,1,1,vc1", "duration=-5.0 is negative", 0.0),
    "part": ("2017-10-09 07:00:00,60,1.5,1,vc1", "num_gpus=1.5 must be a whole number", 0.0),
    "too many": ("2017-10-09 07:00:00,60,1e8,1,vc1", "num_gpus=100000000.0 is more than", 0.0),
    "too few fields": ("2017-10-09 07:00:00,60,1", "has 3 fields, the header has 5", 0.0),
    "too large": ("2017-10-09 07:00:00,1e300,1,1,vc1", "duration='1e300' must be between", 0.0),
    "too long": ("2017-10-09 07:00:00,4e7,1,1,vc1", "duration=40000000.0 is more than a year", 0.0),
    "1970": ("1970-01-01 00:00:00,60,1,1,vc1", "timestamp='1970-01-01T00:00:00Z' is not in", 60.0),
    "last year": ("9999-12-31 23:59:59,60,1,1,vc1", "timestamp='9999-12-31T23:59:59Z' is", 60.0),
    "first year": ("0001-01-01 00:00:00,60,1,1,vc1", "timestamp='1-01-01T00:00:00Z' is not", 60.0),
    "far away": ("2042-01-01 00:00:00,60,1,1,vc1", "'2042-01-01T00:00:00Z' is more than", 60.0),
}


@pytest.mark.parametrize("what", PLANTED)
def test_planted_bad_rows_are_counted_and_named(read, what):
    row, complaint, known_s = PLANTED[what]
    lines = PHILLY.splitlines(keepends=True)
    text = "".join([*lines[:2], row + "\n", *lines[2:]])
    trace = read("philly.csv", text)
    assert len(trace) == 3
    assert trace.ledger.dropped == {"malformed": (1, known_s)}
    assert complaint in trace.ledger.complaints[0]
    assert " line 3: " in trace.ledger.complaints[0]
    with pytest.raises(InvalidInput, match="line 3"):
        read("philly.csv", text, strict=True)
    found = converted(trace)
    assert len(found.problem.tasks) == 3
    told = any("1 row of unknown GPU-hours" in note for note in converted_page(found).notes)
    assert told == (known_s == 0.0)


HELIOS = "job_id,gpu_num,submit_time,start_time,end_time,duration\n"
DAY = "2024-01-01 "
ODD = {
    "a wait of years": (
        "2020-01-01 00:00:00",
        "00:00:00",
        "00:05:00",
        300,
        "submit_time='2020",
        300,
    ),
    "too long": (
        DAY + "00:00:00",
        "00:00:00",
        "00:05:40",
        99_999,
        "duration=99999.0 is longer",
        340,
    ),
    "backwards": (DAY + "00:00:00", "02:00:00", "01:00:00", "", "end_time='2024-01-01T01:00", 0),
    "early": (DAY + "03:00:00", "02:00:00", "02:05:00", 300, "start_time='2024-01-01T02:00", 300),
}


@pytest.mark.parametrize("what", ODD)
def test_times_that_do_not_follow_on_each_other_are_malformed(read, what):
    submit, start, end, run, complaint, known_s = ODD[what]
    good = f"g,1,{DAY}00:00:00,{DAY}00:00:30,{DAY}01:00:30,3600\n"
    odd = f"o,1,{submit},{DAY}{start},{DAY}{end},{run}\n"
    trace = read("helios.csv", HELIOS + good + odd)
    assert trace.name.tolist() == ["g"]
    assert f"line 3: {complaint}" in trace.ledger.complaints[0]
    assert trace.ledger.dropped == {"malformed": (1, known_s)}
    assert trace.ledger.covered == pytest.approx(3600.0 / (3600.0 + known_s))


def test_time_that_a_job_was_suspended_is_no_contradiction(read):
    rows = f"a,1,{DAY}00:00:00,{DAY}00:00:00,{DAY}09:00:00,3600\n"
    assert read("helios.csv", HELIOS + rows).run_s.tolist() == [3600.0]


def test_a_submission_before_the_beginning_is_malformed(read):
    swf = read("log.swf", SWF.replace("    2       60 ", "    2       -5 "))
    assert "line 5: submit=-5.0 is negative" in swf.ledger.complaints[0]
    jobs = [{**BATSIM["jobs"][0], "subtime": -5}, *BATSIM["jobs"][1:]]
    batsim = read("b.json", json.dumps({**BATSIM, "jobs": jobs}))
    assert "b.json, job 1: subtime=-5.0 is negative" in batsim.ledger.complaints[0]


DUE = MAPPING + 'deadline = { column = "due", as = "unix-milliseconds" }\n'


def test_a_deadline_before_the_submission_is_malformed(read, tmp_path):
    (tmp_path / "map.toml").write_text(DUE)
    text = "who;when;mins;n;due\na;1767600000000;60;2;1767599999000\nb;1767600600000;10;1;\n"
    trace = read("any.csv", text, mapping=tmp_path / "map.toml")
    assert trace.name.tolist() == ["b"]
    assert "due='2026-01-05T07:59:59Z' is before the submission" in trace.ledger.complaints[0]


def test_a_mapped_column_must_be_there(read, tmp_path):
    (tmp_path / "map.toml").write_text(DUE)
    with pytest.raises(InvalidInput, match="no column 'due'"):
        read("any.csv", MAPPED, mapping=tmp_path / "map.toml")


def test_steps_and_jobs_that_never_started_are_not_lost_hours(read):
    """One job of an hour on two GPUs, its step, one that never started, one that still runs."""
    step = SACCT.replace("||cpu=8|1|8||gpu1", "||gres/gpu=2|1|8||gpu1")
    lines = [line for line in step.splitlines(keepends=True) if not line.startswith("12_3")]
    ledger = read("sacct.txt", "".join(lines)).ledger
    assert ledger.dropped["is a step of a job"] == (1, 0.0)
    assert ledger.covered == pytest.approx(7200.0 / 7299.0)


def test_queues_with_like_names_stay_apart(read):
    names = ("a b", "a_b", "a;b", "gpu", "")
    rows = "".join(f"2017-10-09 07:00:00,3600,8,1,{name}\n" for name in names)
    found = converted(read("p.csv", PHILLY.splitlines()[0] + "\n" + rows), choices=Choices())
    assert len(found.problem.platform.kinds) == 5
    assert found.problem.runnable().sum(axis=1).tolist() == [1] * 5


def test_a_row_left_out_is_never_rounded_away(read):
    """A minute of a row without a date, beside ten thousand hours."""
    text = PHILLY.splitlines()[0] + "\n2017-10-09 07:00:00,3600000,10,1,vc1\n"
    whole, part = (converted(read("t.csv", text + row)) for row in ("", "soon,60,1,1,vc1\n"))
    assert "1 of 1 rows, 100.0 % of their" in converted_page(whole).lines[0]
    assert "1 of 2 rows, 99.9 % of their" in converted_page(part).lines[0]
