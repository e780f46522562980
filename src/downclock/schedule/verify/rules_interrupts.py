"""Rules for a running task: whether it may stop, move or change its clock (see `Kind`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from downclock.schedule.verify.parsed_schedule import ParsedSchedule, point_text, seconds
from downclock.schedule.verify.rules_processors import other_point
from downclock.schedule.verify.verdict import Finding
from downclock.units import Bools, Ints, ranges, slack


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Pairs (k,) of consecutive bundles of one attempt, the second after the first has ended.

    Attributes:
        before, after: the two bundles.
        gap: time passes between them.
        moved: their processors differ; ``kind_moved``: so do the kinds.
        rule: interrupt rule of the first one's kind.
    """

    before: Ints
    after: Ints
    gap: Bools
    moved: Bools
    kind_moved: Bools
    rule: np.ndarray[tuple[int], np.dtype[np.str_]]


def steps(parsed: ParsedSchedule) -> Steps:
    """Find the pairs; what overlaps or is no proper gang is for other rules."""
    runs, rows = parsed.runs, parsed.runs.rows
    after = runs.following()
    size = np.diff(runs.bundle)
    needed = parsed.problem.tasks.processors[rows.task[runs.first]]
    proper = parsed.clear[rows.task[runs.first]] & (size == needed) & (runs.distinct() == needed)
    end_s, start_s = runs.bundle_end_s(), rows.start_s[runs.first]
    in_turn = start_s[after] >= end_s[after - 1] - slack(end_s[after - 1])
    after = after[proper[after] & proper[after - 1] & in_turn]
    before = after - 1
    kind = runs.kind[runs.first]
    rules = np.array([spec.interrupt for spec in parsed.problem.platform.kinds])
    gap = start_s[after] > end_s[before] + slack(end_s[before])
    moved, kind_moved = _moved(parsed, before, after), kind[before] != kind[after]
    return Steps(before, after, gap, moved, kind_moved, rules[kind[before]])


def _moved(parsed: ParsedSchedule, before: Ints, after: Ints) -> Bools:
    """Compare two bundles of equal size processor by processor; rows are sorted by it."""
    runs = parsed.runs
    size = np.diff(runs.bundle)[after]
    here = runs.rows.processor[ranges(runs.first[after], size)]
    there = runs.rows.processor[ranges(runs.first[before], size)]
    return np.asarray(np.logical_or.reduceat(here != there, np.cumsum(size) - size))


def interrupts(parsed: ParsedSchedule) -> Iterator[Finding]:
    """A task stops, moves and lets others in only where its kind allows it."""
    pair = steps(parsed)
    stopped = pair.gap & (pair.rule == "none")
    yield _found(parsed, pair, "interrupted", stopped, "continues after a gap")
    moved = pair.moved & ((pair.rule != "migrate") | pair.kind_moved)
    yield _found(parsed, pair, "moved", moved, "continues on another processor")
    yield _held(parsed, pair)
    yield _locked(parsed, pair)


def _found(parsed: ParsedSchedule, pair: Steps, rule: str, bad: Bools, text: str) -> Finding:
    first, end_s = parsed.runs.first, parsed.runs.bundle_end_s()

    def say(k: int) -> str:
        kind = parsed.problem.platform.kinds[parsed.runs.kind[first[pair.before[k]]]]
        since = seconds(end_s[pair.before[k]])
        allowed = f"kind '{kind.name}' has interrupt '{kind.interrupt}'"
        return f"{text} (it stopped at {since}), but {allowed}"

    return parsed.bad_rows(rule, bad, say, first[pair.after])


def _held(parsed: ParsedSchedule, pair: Steps) -> Finding:
    """Nobody runs on a processor that a paused task holds: the next there is the task itself."""
    runs, rows, order = parsed.runs, parsed.runs.rows, parsed.runs.by_processor
    paused = np.flatnonzero((pair.rule == "pause") & pair.gap & ~pair.moved)
    size = np.diff(runs.bundle)[pair.before[paused]]
    stopped = ranges(runs.first[pair.before[paused]], size)
    until = np.repeat(rows.start_s[runs.first[pair.after[paused]]], size)
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.arange(len(rows))
    guest = order[np.minimum(place[stopped] + 1, len(rows) - 1)] if stopped.size else stopped
    bad = (rows.task[guest] != rows.task[stopped]) & (rows.start_s[guest] < until - slack(until))
    bad &= rows.processor[guest] == rows.processor[stopped]

    def say(k: int) -> str:
        host = parsed.task_name(int(rows.task[stopped[k]]))
        since = seconds(rows.end_s[stopped[k]])
        return f"runs where {host} holds the processor from {since} to {seconds(until[k])}"

    return parsed.bad_rows("held", bad, say, guest)


def _locked(parsed: ParsedSchedule, pair: Steps) -> Finding:
    """A kind with locked clocks keeps one point for a whole attempt."""
    runs, rows = parsed.runs, parsed.runs.rows
    before, after = runs.first[pair.before], runs.first[pair.after]
    locked = np.array([spec.clock == "locked" for spec in parsed.problem.platform.kinds])
    bad = locked[runs.kind[before]] & other_point(rows, before, after)

    def say(k: int) -> str:
        was, now = point_text(rows, before[k]), point_text(rows, after[k])
        return f"changes the clock from {was} to {now}, but its kind locks it"

    return parsed.bad_rows("clock-locked", bad, say, after)
