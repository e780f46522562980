"""What the rules of `verify` look at: the tables sorted, grouped and joined, once for all rules.

Only well-formed rows get here (see `rules_tables`). A task or server with a malformed row is not
*clear*: rules that need all of its rows leave it alone, so that one mistake is one complaint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from downclock.columns import taken
from downclock.problem.problem import Problem
from downclock.schedule.schedule import ON, PENDING, STATUSES, Outcomes, PowerSpans, Segments
from downclock.schedule.states import place_among, server_states
from downclock.schedule.verify.verdict import Finding, Violation
from downclock.units import Bools, Floats, Ints, changes, slack

Say: TypeAlias = str | Callable[[int], str]
"""What is wrong, or how to say it of one of several."""

LARGEST = 1e30
"""A larger number is no time, clock or share of any schedule: products of it would overflow."""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Well-formed segments (m,) by task, attempt, start and processor, in groups.

    A *bundle* is the rows of one attempt that start together: one row, or one per processor of a
    gang. ``bundle`` (b + 1,) holds the first row of each bundle and the end; ``attempt``
    (a + 1,) the first bundle of each attempt and the end.

    Attributes:
        rows: the segments, sorted.
        kind: processor kind of each row (m,).
        allowed: the kind's clocks allow the point (m,).
        full_s: run time of the whole task at the point, as it turned out (m,); NaN where that
            is not defined.
        by_processor: row numbers by processor and start (m,).
        bundle, attempt: group starts, as above.
    """

    rows: Segments
    kind: Ints
    allowed: Bools
    full_s: Floats
    by_processor: Ints
    bundle: Ints
    attempt: Ints

    @property
    def first(self) -> Ints:
        """First row of each bundle (b,)."""
        return self.bundle[:-1]

    @property
    def attempt_row(self) -> Ints:
        """First row of each attempt (a,)."""
        return self.bundle[self.attempt[:-1]]

    @property
    def last(self) -> Bools:
        """Whether an attempt is the last of its task (a,)."""
        task = self.rows.task[self.attempt_row]
        return np.append(task[1:] != task[:-1], True)[: task.size]

    def distinct(self) -> Ints:
        """Number of different processors in each bundle (b,); rows are sorted by processor."""
        again = np.diff(self.rows.processor, prepend=-1) == 0
        again[self.first] = False
        return np.diff(self.bundle) - np.add.reduceat(again, self.first, dtype=np.int64)

    def bundle_end_s(self) -> Floats:
        """Latest end in each bundle (b,)."""
        return np.maximum.reduceat(self.rows.end_s, self.first)

    def attempt_end_s(self) -> Floats:
        """Latest end in each attempt (a,)."""
        return np.maximum.reduceat(self.rows.end_s, self.attempt_row)

    def following(self) -> Ints:
        """Bundles (k,) that continue an attempt: the one before belongs to it too."""
        continues = np.ones(self.first.size, dtype=bool)
        continues[self.attempt[:-1]] = False
        return np.flatnonzero(continues)


@dataclass(frozen=True, slots=True, eq=False)
class ParsedSchedule:
    """A problem and the judgeable part of a schedule.

    Attributes:
        problem: what was asked.
        runs: the segments.
        status, work: outcome of each task (n,), PENDING and 1 where it cannot be read.
        clear: all rows of a task are well formed (n,).
        start_s, finish_s: first start and last end of each task (n,); NaN where it never ran.
        spans: power spans by server and start.
        server_clear: all spans of a server are well formed (s,).
    """

    problem: Problem
    runs: Runs
    status: Ints
    work: Floats
    clear: Bools
    start_s: Floats
    finish_s: Floats
    spans: PowerSpans
    server_clear: Bools

    def task_name(self, task: int) -> str:
        """Name a task for a sentence."""
        return f"task '{self.problem.tasks.name[task]}'"

    def bad_rows(self, rule: str, bad: Bools, say: Say, row: Ints | None = None) -> Finding:
        """Complain about segments; words continue "task 't7' on s1/2, 3 s to 5 s, ".

        ``say`` puts an entry of ``bad`` (k,) into words; ``row`` (k,) are the segments meant.
        """
        return _finding(self._of_row, rule, bad, say, row)

    def bad_tasks(self, rule: str, bad: Bools, say: Say, task: Ints | None = None) -> Finding:
        """Complain about tasks, likewise."""
        return _finding(self._of_task, rule, bad, say, task)

    def bad_spans(self, rule: str, bad: Bools, say: Say) -> Finding:
        """Complain about power spans, likewise."""
        return _finding(self._of_span, rule, bad, say, None)

    def _of_row(self, rule: str, row: int, text: str) -> Violation:
        runs = self.runs.rows
        task, processor = int(runs.task[row]), int(runs.processor[row])
        platform = self.problem.platform
        when = f"{seconds(runs.start_s[row])} to {seconds(runs.end_s[row])}"
        where = f"{self.task_name(task)} on {platform.processor_name(processor)}, {when},"
        server = int(platform.chip_server[platform.chip[processor]])
        return Violation(rule, f"{where} {text}", task, processor, server)

    def _of_task(self, rule: str, task: int, text: str) -> Violation:
        return Violation(rule, f"{self.task_name(task)} {text}", task)

    def _of_span(self, rule: str, row: int, text: str) -> Violation:
        spans = self.spans
        server = int(spans.server[row])
        when = f"{seconds(spans.start_s[row])} to {seconds(spans.end_s[row])}"
        name = self.problem.platform.server_name[server]
        return Violation(rule, f"server '{name}', {when}, {text}", server=server)


def _finding(
    of: Callable[[str, int, str], Violation], rule: str, bad: Bools, say: Say, place: Ints | None
) -> Finding:
    def violation(k: int) -> Violation:
        words = say if isinstance(say, str) else say(k)
        return of(rule, k if place is None else int(place[k]), words)

    return Finding(rule, np.flatnonzero(bad), violation)


def seconds(time_s: float) -> str:
    """Write a time."""
    return f"{time_s:.10g} s"


def point_text(rows: Segments, row: int) -> str:
    """Write the operating point of a segment."""
    core, memory, volt = rows.core[row], rows.memory[row], rows.volt[row]
    return f"core {core:.6g}, memory {memory:.6g}, volt {volt:.6g}"


def latest_earlier(group: Ints, end_s: Floats) -> Ints:
    """For each row, the earlier row of its group that ends last, or -1 (n,).

    ``group`` must not fall. Ends are compared by rank, so the running maximum over all groups
    is one integer scan: a higher group outweighs every rank.
    """
    n = end_s.size
    by_end = np.argsort(end_s, kind="stable")
    rank = np.empty(n, dtype=np.int64)
    rank[by_end] = np.arange(n)
    dense = np.cumsum(np.concatenate([[0], np.diff(group) != 0])[:n])
    leader = by_end[np.maximum.accumulate(dense * n + rank) % max(n, 1)]
    earlier = np.full(n, -1, dtype=np.int64)
    if n > 1:
        earlier[1:] = np.where(group[1:] == group[:-1], leader[:-1], -1)
    return earlier


def parse_schedule(
    problem: Problem,
    segments: Segments,
    spans: PowerSpans,
    outcomes: Outcomes,
    hurt: Bools,
    server_hurt: Bools,
) -> ParsedSchedule:
    """Sort and group well-formed rows; ``outcomes`` has a row per task.

    ``hurt`` (n,) and ``server_hurt`` (s,) mark tasks and servers with malformed rows.
    """
    known = (outcomes.status >= 0) & (outcomes.status < len(STATUSES))
    real = (outcomes.work > 0.0) & (outcomes.work <= LARGEST)
    work = np.where(real, outcomes.work, 1.0)
    clear = ~hurt & known & real
    runs = _runs(problem, segments, work, clear)
    status, times = np.where(known, outcomes.status, PENDING), _times(runs, len(problem.tasks))
    spans = taken(spans, np.lexsort((spans.end_s, spans.start_s, spans.server)))
    return ParsedSchedule(problem, runs, status, work, clear, *times, spans, ~server_hurt)


def _runs(problem: Problem, segments: Segments, work: Floats, clear: Bools) -> Runs:
    order = np.lexsort((segments.start_s, segments.attempt, segments.task))
    rows = taken(segments, order)
    later = np.diff(rows.start_s, prepend=-np.inf) > slack(rows.start_s)
    bundle_of = np.cumsum(changes(rows.task) | changes(rows.attempt) | later) - 1
    if len(rows) and bundle_of[-1] + 1 < len(rows):
        order = np.lexsort((rows.processor, bundle_of))
        rows, bundle_of = taken(rows, order), bundle_of[order]
    bundle = _offsets(np.diff(bundle_of, prepend=-1) > 0)
    first = bundle[:-1]
    new_attempt = changes(rows.task[first]) | changes(rows.attempt[first])
    kind = problem.platform.kind[rows.processor]
    allowed, points = np.zeros(len(rows), dtype=bool), rows.points
    for k, spec in enumerate(problem.platform.kinds):
        mine = np.flatnonzero(kind == k)
        allowed[mine] = spec.clocks.allows(points[mine])
    with np.errstate(all="ignore"):  # points nobody allows may divide by zero
        full_s = problem.at(rows.task, kind, points)[0] * work[rows.task]
    full_s[~(allowed & clear[rows.task])] = np.nan
    by_processor = np.lexsort((rows.start_s, rows.processor))
    return Runs(rows, kind, allowed, full_s, by_processor, bundle, _offsets(new_attempt))


def _offsets(starts: Bools) -> Ints:
    return np.append(np.flatnonzero(starts), starts.size).astype(np.int64)


def _times(runs: Runs, n: int) -> tuple[Floats, Floats]:
    """First start of all attempts and end of the last attempt, per task (n,)."""
    start_s, finish_s = np.full(n, np.nan), np.full(n, np.nan)
    task = runs.rows.task[runs.attempt_row]
    first, last = changes(task), runs.last
    start_s[task[first]] = runs.rows.start_s[runs.attempt_row[first]]
    finish_s[task[last]] = runs.attempt_end_s()[last]
    return start_s, finish_s


def awake(parsed: ParsedSchedule) -> PowerSpans:
    """When servers are on: spans that touch are one, and those that begin on need none."""
    endless = np.full(parsed.problem.platform.server_count, np.inf)
    on = server_states(parsed.problem.platform, parsed.spans, endless)[0].only(ON)
    before = latest_earlier(on.server, on.end_s)
    joins = (before >= 0) & (on.start_s <= on.end_s[before] + slack(on.start_s))
    first = np.flatnonzero(~joins)
    return replace(taken(on, first), end_s=np.maximum.reduceat(on.end_s, first))


def at_or_before(server: Ints, start_s: Floats, which: Ints, time_s: Floats) -> Ints:
    """Find the last of the rows sorted by (server, start) that starts by a time, or -1."""
    place = place_among(server, start_s, which, time_s, side="right") - 1
    found = (place >= 0) & (server[place] == which) if server.size else np.zeros(which.size, bool)
    return np.where(found, place, -1)
