"""Rules for processors: one task at a time, chips at one clock, slots."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from downclock.schedule.schedule import Segments
from downclock.schedule.verify.parsed_schedule import (
    ParsedSchedule,
    latest_earlier,
    point_text,
    seconds,
)
from downclock.schedule.verify.verdict import Finding
from downclock.units import Bools, Ints, slack


def overlap(parsed: ParsedSchedule) -> Iterator[Finding]:
    """A processor runs one segment at a time."""
    order = parsed.runs.by_processor
    rows = parsed.runs.rows
    start_s, end_s = rows.start_s[order], rows.end_s[order]
    before = latest_earlier(rows.processor[order], end_s)
    clash = (before >= 0) & (start_s < end_s[before] - slack(end_s[before]))

    def say(k: int) -> str:
        other = order[before[k]]
        name = parsed.task_name(int(rows.task[other]))
        return f"overlaps {name}, which runs there until {seconds(rows.end_s[other])}"

    yield parsed.bad_rows("overlap", clash, say, order)


def two_places(parsed: ParsedSchedule) -> Iterator[Finding]:
    """A task (a gang: all of it) runs in one place at a time; `overlap` has the same place."""
    runs, rows = parsed.runs, parsed.runs.rows
    beside = parsed.problem.tasks.processors[rows.task] == 1
    beside &= rows.processor != np.roll(rows.processor, 1)
    start_s, end_s = rows.start_s[runs.first], runs.bundle_end_s()
    attempt = np.repeat(np.arange(runs.attempt.size - 1), np.diff(runs.attempt))
    before = latest_earlier(attempt, end_s)
    elsewhere = rows.processor[runs.first] != rows.processor[runs.first[before]]
    clash = (before >= 0) & elsewhere & (start_s < end_s[before] - slack(end_s[before]))
    beside[runs.first] = clash
    yield parsed.bad_rows("two-places", beside, "runs while the task also runs elsewhere")


def other_point(rows: Segments, one: Ints, other: Ints) -> Bools:
    """Tell where two rows run at different points."""
    differ = np.zeros(one.size, dtype=bool)
    for column in (rows.core, rows.memory, rows.volt):
        differ |= np.abs(column[one] - column[other]) > slack(1.0)
    return differ


def chip_clock(parsed: ParsedSchedule) -> Iterator[Finding]:
    """Processors of one chip that run at the same time run at one point.

    Each segment is held against the one on its chip that started before it and ends last. If
    any two differ, the first segment that differs from a running one is found this way: all
    that run before it are alike.
    """
    rows, platform = parsed.runs.rows, parsed.problem.platform
    crowded = np.bincount(platform.chip) > 1
    chip = platform.chip[rows.processor]
    mine = np.flatnonzero(crowded[chip])
    mine = mine[np.lexsort((rows.start_s[mine], chip[mine]))]
    before = latest_earlier(chip[mine], rows.end_s[mine])
    other = mine[before]
    meets = (before >= 0) & (rows.start_s[mine] < rows.end_s[other] - slack(rows.end_s[other]))
    meets &= rows.processor[mine] != rows.processor[other]
    clash = meets & other_point(rows, mine, other)

    def say(k: int) -> str:
        where = platform.processor_name(int(rows.processor[other[k]]))
        there = f"{parsed.task_name(int(rows.task[other[k]]))} on {where}"
        here, beside = point_text(rows, mine[k]), point_text(rows, other[k])
        return f"runs at {here} while {there} of the same chip runs at {beside}"

    yield parsed.bad_rows("chip-clock", clash, say, mine)


def slots(parsed: ParsedSchedule) -> Iterator[Finding]:
    """Where the platform has slots, segments start and end on them."""
    slot_s, rows = parsed.problem.platform.slot_s, parsed.runs.rows
    if slot_s is None:
        return
    off = np.zeros(len(rows), dtype=bool)
    for time_s in (rows.start_s, rows.end_s):
        off |= np.abs(time_s - np.round(time_s / slot_s) * slot_s) > slack(time_s)
    yield parsed.bad_rows("slot", off, f"does not start and end on slots of {seconds(slot_s)}")
