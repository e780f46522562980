"""Rules for processors: one task at a time, gangs together, chips at one clock, slots."""

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
    clash = np.flatnonzero((before >= 0) & (start_s < end_s[before] - slack(end_s[before])))

    def say(k: int) -> str:
        other = order[before[k]]
        name = parsed.task_name(int(rows.task[other]))
        return f"overlaps {name}, which runs there until {seconds(rows.end_s[other])}"

    yield Finding("overlap", clash, lambda k: parsed.of_row("overlap", int(order[k]), say(k)))


def two_places(parsed: ParsedSchedule) -> Iterator[Finding]:
    """A task (a gang: all of it) runs in one place at a time; `overlap` has the same place."""
    runs, rows = parsed.runs, parsed.runs.rows
    joined = np.ones(len(rows), dtype=bool)
    joined[runs.first] = False
    beside = np.flatnonzero(joined)
    single = parsed.problem.tasks.processors[rows.task[beside]] == 1
    beside = beside[single & (rows.processor[beside] != rows.processor[beside - 1])]
    start_s, end_s = rows.start_s[runs.first], runs.bundle_end_s()
    before = latest_earlier(runs.attempt_of_bundle, end_s)
    elsewhere = rows.processor[runs.first] != rows.processor[runs.first[before]]
    clash = (before >= 0) & elsewhere & (start_s < end_s[before] - slack(end_s[before]))
    yield Finding(
        "two-places",
        np.sort(np.concatenate([beside, runs.first[clash]])),
        lambda row: parsed.of_row("two-places", row, "runs while the task also runs elsewhere"),
    )


def gang(parsed: ParsedSchedule) -> Iterator[Finding]:
    """A gang starts together on as many different processors as it needs, all alike."""
    runs, rows = parsed.runs, parsed.runs.rows
    size, distinct = np.diff(runs.bundle), runs.distinct()
    needed = parsed.problem.tasks.processors[rows.task[runs.first]]
    first = np.repeat(runs.first, size)
    in_gang = np.repeat(needed > 1, size)
    wrong = (needed > 1) & parsed.clear[rows.task[runs.first]]
    wrong &= (size != needed) | (distinct != needed)
    yield Finding(
        "gang-size",
        np.flatnonzero(wrong),
        lambda b: parsed.of_row(
            "gang-size",
            int(runs.first[b]),
            f"starts on {distinct[b]} processors ({size[b]} rows), but needs {needed[b]}",
        ),
    )
    unequal = in_gang & _differs(rows, np.arange(len(rows)), first)
    yield Finding(
        "gang-unequal",
        np.flatnonzero(unequal),
        lambda row: parsed.of_row(
            "gang-unequal", row, "differs in end, point or share from the rest of its gang"
        ),
    )
    mixed = in_gang & (runs.kind != runs.kind[first])
    yield Finding(
        "gang-kinds",
        np.flatnonzero(mixed),
        lambda row: parsed.of_row("gang-kinds", row, "runs a gang on two kinds of processor"),
    )


def _differs(rows: Segments, one: Ints, other: Ints) -> Bools:
    end = np.abs(rows.end_s[one] - rows.end_s[other]) > slack(rows.end_s[one])
    amount = np.abs(rows.share[one] - rows.share[other]) > slack(1.0)
    return np.asarray(end | amount | other_point(rows, one, other))


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
    clash = np.flatnonzero(meets & other_point(rows, mine, other))

    def say(k: int) -> str:
        where = platform.processor_name(int(rows.processor[other[k]]))
        there = f"{parsed.task_name(int(rows.task[other[k]]))} on {where}"
        here, beside = point_text(rows, mine[k]), point_text(rows, other[k])
        return f"runs at {here} while {there} of the same chip runs at {beside}"

    yield Finding("chip-clock", clash, lambda k: parsed.of_row("chip-clock", int(mine[k]), say(k)))


def slots(parsed: ParsedSchedule) -> Iterator[Finding]:
    """Where the platform has slots, segments start and end on them."""
    slot_s, rows = parsed.problem.platform.slot_s, parsed.runs.rows
    if slot_s is None:
        return
    off = np.zeros(len(rows), dtype=bool)
    for time_s in (rows.start_s, rows.end_s):
        off |= np.abs(time_s - np.round(time_s / slot_s) * slot_s) > slack(time_s)
    yield Finding(
        "slot",
        np.flatnonzero(off),
        lambda row: parsed.of_row(
            "slot", row, f"does not start and end on slots of {seconds(slot_s)}"
        ),
    )
