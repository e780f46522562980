"""Rules for single rows: indices that exist, numbers that are numbers, tables of one length.

A row that breaks one of these is left out of everything else `verify` looks at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import numpy as np

from downclock.problem.problem import Problem
from downclock.schedule.schedule import (
    FAILED,
    REJECTED,
    STATES,
    STATUSES,
    Outcomes,
    PowerSpans,
    Schedule,
    Segments,
)
from downclock.schedule.verify.parsed_schedule import LARGEST, seconds
from downclock.schedule.verify.verdict import Finding, Violation
from downclock.units import Bools, Ints


def ragged(schedule: Schedule) -> Iterator[Finding]:
    """Every column of a table has the same length."""
    for name in ("segments", "spans", "outcomes"):
        table = getattr(schedule, name)
        lengths = {column.name: getattr(table, column.name).size for column in fields(table)}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{column} {size}" for column, size in lengths.items())
            text = f"{name}: the columns of a table must have one length ({listed})"
            yield _whole("ragged", text)


def _whole(rule: str, text: str) -> Finding:
    """Complain once about a whole table."""
    return Finding(rule, np.zeros(1, dtype=np.int64), lambda row: Violation(rule, text))


def segment_rows(problem: Problem, segments: Segments) -> Iterator[Finding]:
    """Tasks and processors exist; times, share and point are numbers; time runs forwards."""
    task_ok = _index(segments.task, len(problem.tasks))
    processor_ok = _index(segments.processor, problem.platform.processor_count)
    finite = np.ones(len(segments), dtype=bool)
    for name in ("start_s", "end_s", "core", "memory", "volt", "share"):
        finite &= np.abs(getattr(segments, name)) <= LARGEST

    def found(rule: str, bad: Bools, text: str) -> Finding:
        def say(row: int) -> Violation:
            task = int(segments.task[row]) if task_ok[row] else None
            processor = int(segments.processor[row]) if processor_ok[row] else None
            message = f"{_segment_text(problem, segments, row, task, processor)}, {text}"
            return Violation(rule, message, task, processor)

        return Finding(rule, np.flatnonzero(bad), say)

    yield found("unknown-task", ~task_ok, "names no task of the problem")
    yield found("unknown-processor", ~processor_ok, "names no processor of the platform")
    yield found("not-finite", ~finite, "has a time, clock, voltage or share that is no number")
    yield found("negative-start", finite & (segments.start_s < 0.0), "starts before time 0")
    yield found("backwards", finite & (segments.end_s <= segments.start_s), "ends before it starts")


def _index(values: Ints, count: int) -> Bools:
    return np.asarray((values >= 0) & (values < count))


def _segment_text(
    problem: Problem, segments: Segments, row: int, task: int | None, processor: int | None
) -> str:
    what = f"task {segments.task[row]}" if task is None else f"task '{problem.tasks.name[task]}'"
    where = f"processor {segments.processor[row]}"
    if processor is not None:
        where = problem.platform.processor_name(processor)
    start, end = seconds(segments.start_s[row]), seconds(segments.end_s[row])
    point = f"{segments.core[row]:g}/{segments.memory[row]:g}/{segments.volt[row]:g}"
    return (
        f"segment {row}, {what} on {where}, {start} to {end}, point {point},"
        f" share {segments.share[row]:g}"
    )


def span_rows(problem: Problem, spans: PowerSpans) -> Iterator[Finding]:
    """Servers and states exist; times are numbers; time runs forwards. An end may be infinite."""
    platform = problem.platform
    known = _index(spans.server, platform.server_count)
    finite = (np.abs(spans.start_s) <= LARGEST) & (
        (np.abs(spans.end_s) <= LARGEST) | np.isposinf(spans.end_s)
    )

    def found(rule: str, bad: Bools, text: str) -> Finding:
        def say(row: int) -> Violation:
            server = int(spans.server[row]) if known[row] else None
            name = f"{spans.server[row]}" if server is None else f"'{platform.server_name[server]}'"
            start, end = seconds(spans.start_s[row]), seconds(spans.end_s[row])
            message = f"power span {row}, server {name}, {start} to {end}, {text}"
            return Violation(rule, message, server=server)

        return Finding(rule, np.flatnonzero(bad), say)

    yield found("unknown-server", ~known, "names no server of the platform")
    states = ", ".join(STATES)
    yield found("unknown-state", ~_index(spans.state, len(STATES)), f"has none of: {states}")
    yield found("span-not-finite", ~finite, "has a time that is no number")
    yield found("span-negative", finite & (spans.start_s < 0.0), "starts before time 0")
    yield found("span-backwards", finite & (spans.end_s < spans.start_s), "ends before it starts")


def outcome_rows(problem: Problem, outcomes: Outcomes) -> Iterator[Finding]:
    """One row per task; a known status; positive work; a reason where a task was refused."""
    n = len(problem.tasks)
    if len(outcomes) != n:
        text = f"outcomes have {len(outcomes)} rows, the problem has {n} tasks"
        yield _whole("outcome-rows", text)
    short = min(n, len(outcomes))
    status, work = outcomes.status[:short], outcomes.work[:short]

    def found(rule: str, bad: Bools, text: str) -> Finding:
        def say(row: int) -> Violation:
            shown = f"status {status[row]}, work {work[row]:g}"
            return Violation(rule, f"task '{problem.tasks.name[row]}' ({shown}) {text}", row)

        return Finding(rule, np.flatnonzero(bad), say)

    unknown = ~_index(status, len(STATUSES))
    yield found("unknown-status", unknown, f"has none of the statuses {', '.join(STATUSES)}")
    positive = (work > 0.0) & (work <= LARGEST)
    yield found("outcome-work", ~positive, "must have done a positive, finite amount of work")
    refused = np.flatnonzero((status == REJECTED) | (status == FAILED))
    silent = np.zeros(short, dtype=bool)
    silent[refused] = [not str(outcomes.reason[row] or "").strip() for row in refused]
    yield found("no-reason", silent, "was rejected or failed without a reason")
