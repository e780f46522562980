"""Slurm's accounting as operators have it: requeued jobs, files put together, local times."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.problem.calendar import zone_of
from tests.workloads.trace_samples import RECORDS, SACCT

HEAD = "JobID|Submit|Start|End|Elapsed|AllocTRES|State\n"
DAY = "2026-01-05T"


def row(name: str, start: str, end: str, gpus: int = 2, state: str = "COMPLETED") -> str:
    """A job that is submitted at 06:00, as ``sacct -D`` prints it."""
    times = [f"{DAY}06:00:00", *(at if at == "Unknown" else f"{DAY}{at}:00" for at in (start, end))]
    return f"{name}|{'|'.join(times)}||gres/gpu={gpus}|{state}\n"


def test_every_run_of_a_requeued_job_counts(read):
    """``sacct -D`` lists them all; the last waits again."""
    runs = row("7", "06:10", "06:40", state="NODE_FAIL") + row("7", "07:10", "07:40")
    trace = read("jobs.txt", HEAD + runs + row("7", "Unknown", "Unknown", state="PENDING"))
    assert trace.name.tolist() == ["7", "7#2"]
    assert trace.run_s.tolist() == [1800.0, 1800.0]
    assert trace.ledger.dropped == {"never started": (1, 0.0)}


def test_a_job_that_two_lists_have_counts_once(read):
    """Lists of two weeks: a job of both, one that still ran in the first; another has its name."""
    first = row("7", "06:10", "06:40") + row("8", "06:10", "Unknown", state="RUNNING")
    second = row("7", "06:10", "06:40") + row("8", "06:10", "07:10") + row("7", "06:10", "06:50")
    trace = read("jobs.txt", HEAD + first + second)
    assert trace.name.tolist() == ["7", "8"]
    assert trace.ledger.dropped == {
        "still runs": (1, 0.0),
        "says again what an earlier row says": (1, 0.0),
        "malformed": (1, 4800.0),
    }
    assert "line 6: JobID='7' is the name of an earlier row" in trace.ledger.complaints[0]


def test_records_that_are_written_again_and_again_count_once(read):
    """Jobs stay in ``scontrol show job`` for minutes after their end; it was asked twice."""
    once, twice = read("records.txt", RECORDS), read("records.txt", RECORDS * 2)
    assert twice.name.tolist() == once.name.tolist() == ["11", "12"]
    assert twice.ledger.kept == once.ledger.kept


def test_an_elapsed_time_that_is_spelt_out_is_the_run_time(read):
    """A job that was suspended ran for less than from its start to its end."""
    text = HEAD + row("7", "06:10", "08:40").replace("||", "|01:30:00|")
    assert read("jobs.txt", text).run_s.tolist() == [5400.0]
    days = HEAD + row("7", "06:10", "08:40").replace("||", "|1-01:30:00|")
    with pytest.raises(InvalidInput, match=r"Elapsed=91800\.0 is longer than the 9000 s"):
        read("jobs.txt", days)


@pytest.mark.parametrize(("zone", "offset_h"), [(None, 0), ("Europe/Berlin", 1)])
def test_whose_times_they_are_is_said(read, zone, offset_h):
    found = read("sacct.txt", SACCT, zone=None if zone is None else zone_of(zone))
    assert f"times without an offset are those of {zone or 'UTC'}" in found.assumptions[-1]
    assert found.submit_s[0] == 1767600000.0 - 3600 * offset_h


def test_times_with_an_offset_need_no_zone_and_know_the_hour_that_comes_twice(read):
    """As ``SLURM_TIME_FORMAT=%FT%T%z`` has them."""
    local = SACCT.replace("2026-01-05T08:05:00", "2026-10-25T02:05:00")
    local = local.replace("2026-01-05T09:05:00", "2026-10-25T03:05:00")
    told = read("sacct.txt", local.replace("T02:05:00", "T02:05:00+0200"), zone=zone_of("UTC"))
    assert told.start_s[told.name == "11"].tolist() == [1792886700.0]
    unsure = read("sacct.txt", local, zone=zone_of("Europe/Berlin"))
    assert "happens twice in Europe/Berlin" in unsure.ledger.complaints[0]
    assert not np.isin("11", unsure.name)


@pytest.mark.parametrize(
    ("header", "hint"),
    [
        ("JobID|JobName|Partition|State", "sacct would have 'Start' and 'End' too"),
        ("   JobID      Start        End  AllocTRES", "where it is asked with -P"),
    ],
)
def test_what_sacct_was_not_asked_for_is_said(read, header, hint):
    with pytest.raises(InvalidInput, match=hint):
        read("jobs.txt", f"{header}\n1\n")
