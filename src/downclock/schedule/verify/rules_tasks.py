"""Rules for tasks: when they may run, how much of them is done, in which attempts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from downclock.schedule.schedule import DONE, REJECTED
from downclock.schedule.verify.parsed_schedule import ParsedSchedule, point_text, seconds
from downclock.schedule.verify.verdict import Finding
from downclock.units import Bools, Floats, slack


def arrival(parsed: ParsedSchedule) -> Iterator[Finding]:
    """No segment starts before its task arrives."""
    rows = parsed.runs.rows
    arrival_s = parsed.problem.tasks.arrival_s[rows.task]
    yield parsed.bad_rows(
        "arrival",
        rows.start_s < arrival_s - slack(arrival_s),
        lambda row: f"starts before the task arrives at {seconds(arrival_s[row])}",
    )


def deadline(parsed: ParsedSchedule) -> Iterator[Finding]:
    """A done task ends by its deadline."""
    deadline_s = parsed.problem.tasks.deadline_s
    done = parsed.clear & (parsed.status == DONE)
    yield parsed.bad_tasks(
        "deadline",
        done & (parsed.finish_s > deadline_s + slack(deadline_s)),
        lambda task: (
            f"is done at {seconds(parsed.finish_s[task])}, after its deadline of"
            f" {seconds(deadline_s[task])}"
        ),
    )


def ran_or_not(parsed: ParsedSchedule) -> Iterator[Finding]:
    """A rejected task and one without work run nowhere; any other done task runs."""
    task = parsed.runs.rows.task
    has_work = parsed.problem.tasks.scale > 0.0
    refused = parsed.status[task] == REJECTED
    yield parsed.bad_rows("rejected-ran", refused, "runs although the task was rejected")
    yield parsed.bad_rows("zero-work", ~has_work[task], "runs although the task has no work")
    ran = np.zeros(has_work.size, dtype=bool)
    ran[task] = True
    idle = parsed.clear & (parsed.status == DONE) & has_work & ~ran
    yield parsed.bad_tasks("not-run", idle, "is done but has no segment")


def point(parsed: ParsedSchedule) -> Iterator[Finding]:
    """The kind has a profile of the task and allows the point; a table has measured it."""
    runs = parsed.runs
    profiled = parsed.problem.runnable()[runs.rows.task, runs.kind]
    has_work = parsed.problem.tasks.scale[runs.rows.task] > 0.0
    timed = np.isfinite(runs.full_s) | ~parsed.clear[runs.rows.task]

    def found(rule: str, bad: Bools, text: str) -> Finding:
        def say(row: int) -> str:
            kind = parsed.problem.platform.kinds[runs.kind[row]].name
            return text.format(kind=kind, point=point_text(runs.rows, row))

        return parsed.bad_rows(rule, bad, say)

    yield found("no-profile", has_work & ~profiled, "cannot run: no profile for kind '{kind}'")
    yield found("point", ~runs.allowed, "runs at {point}: not a clock of kind '{kind}'")
    unmeasured = has_work & profiled & runs.allowed & ~timed
    yield found("unmeasured", unmeasured, "runs at {point}: never measured on kind '{kind}'")


def share(parsed: ParsedSchedule) -> Iterator[Finding]:
    """A segment's share is its duration / run time of the whole task at its point.

    In the last slot of an attempt it may be less (but not nothing): the rest of it is waste.
    """
    runs, rows = parsed.runs, parsed.runs.rows
    duration, free = rows.end_s - rows.start_s, slack(rows.end_s)
    surplus = duration - rows.share * runs.full_s
    waste_s = _wasteable_s(parsed)
    # One slot is always needed; one more where the rest is more than rounding, if hardly so.
    ended = (surplus < waste_s - 1e-3 * free) | (duration <= waste_s + free)
    bad = (np.abs(surplus) > free) & ~((surplus > 0.0) & ended)
    bad |= rows.share <= 0.0
    bad &= np.isfinite(runs.full_s) & (runs.full_s > 0.0)
    yield parsed.bad_rows(
        "share",
        bad,
        lambda row: (
            f"does share {rows.share[row]:.9g}; its time is worth"
            f" {duration[row] / runs.full_s[row]:.9g} of the task"
        ),
    )


def _wasteable_s(parsed: ParsedSchedule) -> Floats:
    """Time at the end of each segment that may pass without work: less than a slot, or none."""
    rows, slot_s = parsed.runs.rows, parsed.problem.platform.slot_s
    if slot_s is None:
        return np.zeros(len(rows))
    size = np.diff(parsed.runs.attempt_row, append=len(rows))
    last = rows.end_s >= np.repeat(parsed.runs.attempt_end_s(), size) - slack(rows.end_s)
    return np.where(last, slot_s, 0.0)


def work(parsed: ParsedSchedule) -> Iterator[Finding]:
    """The last attempt of a done task does all of it; no attempt does more than that."""
    runs = parsed.runs
    task = runs.rows.task[runs.attempt_row]
    total = attempt_shares(parsed)
    must = runs.last & (parsed.status[task] == DONE)
    judged = parsed.clear[task] & (parsed.problem.tasks.scale[task] > 0.0)

    def found(rule: str, bad: Bools, text: str) -> Finding:
        def say(k: int) -> str:
            tried = runs.rows.attempt[runs.attempt_row[k]]
            return f"does {total[k]:.9g} of the task in attempt {tried}: {text}"

        return parsed.bad_tasks(rule, bad & judged, say, task)

    off = np.abs(total - 1.0) > slack(1.0)
    yield found("work", must & off, "a done task is done exactly once")
    excess = ~must & (total > 1.0 + slack(1.0))
    yield found("excess-work", excess, "an attempt can do at most the whole task")


def attempt_shares(parsed: ParsedSchedule) -> Floats:
    """Sum of shares of each attempt; a gang counts once."""
    runs, rows = parsed.runs, parsed.runs.rows
    counts = parsed.problem.tasks.processors[rows.task] == 1
    counts[runs.first] = True
    return np.add.reduceat(np.where(counts, rows.share, 0.0), runs.attempt_row)


def attempts(parsed: ParsedSchedule) -> Iterator[Finding]:
    """Attempts are numbered 0, 1, ... and follow each other in time."""
    runs = parsed.runs
    row, end_s = runs.attempt_row, runs.attempt_end_s()
    task, number, start_s = runs.rows.task[row], runs.rows.attempt[row], runs.rows.start_s[row]
    place = np.arange(task.size) - np.searchsorted(task, task)
    yield parsed.bad_rows(
        "attempt-number",
        (number != place) & parsed.clear[task],
        lambda k: f"is attempt {number[k]}, but attempt {place[k]} is due",
        row,
    )
    soon = place > 0
    soon[1:] &= start_s[1:] < end_s[:-1] - slack(end_s[:-1])
    yield parsed.bad_rows(
        "attempt-order",
        soon,
        lambda k: (
            f"is attempt {number[k]}, but attempt {number[k - 1]} ends at {seconds(end_s[k - 1])}"
        ),
        row,
    )
