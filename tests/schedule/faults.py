"""Planted faults: each turns a valid schedule into one that breaks one rule, or gives up (None).

A fault gets a problem and a valid schedule and says whom `verify` must name. Where a rule is about
what was asked, the fault changes the problem instead of the schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from downclock.power.points import ClockRange
from downclock.problem.graph import Edges
from downclock.problem.problem import Problem
from downclock.schedule.schedule import (
    ASLEEP,
    DONE,
    DOWN,
    FAILED,
    ON,
    REJECTED,
    WAKING,
    PowerSpans,
    Schedule,
    Segments,
)


@dataclass(frozen=True, slots=True)
class Planted:
    """A problem and a faulty schedule, and whom the complaint must name."""

    problem: Problem
    schedule: Schedule
    task: int | None = None
    processor: int | None = None
    server: int | None = None


Fault = Callable[[Problem, Schedule], Planted | None]


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the table: the rule a fault breaks, what else it cannot but break, where to try."""

    name: str
    rule: str
    plant: Fault
    knobs: dict[str, Any] = field(default_factory=dict)
    also: frozenset[str] = frozenset()


FAULTS: list[Entry] = []

SIMPLE: dict[str, Any] = {
    "edges": False,
    "gangs": False,
    "chip_wide": False,
    "slot_s": None,
    "deadlines": False,
    "initially_on": True,
    "milestones": False,
}
"""Knobs that leave only the freedom a fault is about."""


def fault(rule: str, *also: str, **knobs: Any) -> Callable[[Fault], Fault]:
    """Enter a function into the table."""

    def enter(plant: Fault) -> Fault:
        name = plant.__name__.strip("_").replace("_", "-")
        FAULTS.append(Entry(name, rule, plant, knobs, frozenset(also)))
        return plant

    return enter


# --- edits -------------------------------------------------------------------------------------


def edited(table: Any, rows: Any, **cells: Any) -> Any:
    """Return a table with new values in some rows."""
    columns = {column.name: getattr(table, column.name).copy() for column in fields(table)}
    for name, value in cells.items():
        columns[name][rows] = value
    return type(table)(**columns)


def appended(table: Any, row: int | None = None, **cells: Any) -> Any:
    """Return a table with one more row: a copy of ``row`` with new values."""
    columns = {}
    for column in fields(table):
        old = getattr(table, column.name)
        columns[column.name] = np.append(
            old, cells.get(column.name, 0 if row is None else old[row])
        )
    return type(table)(**columns)


def without(table: Any, rows: Any) -> Any:
    """Return a table without some rows."""
    return type(table)(*(np.delete(getattr(table, c.name), rows) for c in fields(table)))


def with_segments(schedule: Schedule, segments: Segments) -> Schedule:
    return replace(schedule, segments=segments)


def always_on(schedule: Schedule) -> Schedule:
    """Forget the spans: with servers that begin on, all are on for ever."""
    none = np.empty(0)
    return replace(schedule, spans=PowerSpans(none, none, none, none))


def is_free(schedule: Schedule, processor: int, start: float, end: float, skip: int = -1) -> bool:
    """Tell whether nothing runs on a processor in a time; row ``skip`` does not count."""
    s = schedule.segments
    meets = (s.processor == processor) & (s.start_s < end) & (start < s.end_s)
    return not np.any(np.delete(meets, skip) if skip >= 0 else meets)


def attempts_of(schedule: Schedule) -> list[np.ndarray[Any, Any]]:
    """Rows of each attempt, by start."""
    s = schedule.segments
    keys = sorted(set(zip(s.task.tolist(), s.attempt.tolist(), strict=True)))
    rows = [np.flatnonzero((s.task == task) & (s.attempt == tried)) for task, tried in keys]
    return [mine[np.argsort(s.start_s[mine], kind="stable")] for mine in rows]


def in_pieces(schedule: Schedule) -> list[np.ndarray[Any, Any]]:
    """Attempts of more than one segment."""
    return [rows for rows in attempts_of(schedule) if rows.size > 1]


def done_alone(schedule: Schedule) -> list[int]:
    """Rows that are the only segment of a done task."""
    s = schedule.segments
    count = np.bincount(s.task, minlength=len(schedule.outcomes))
    return [r for r in range(len(s)) if count[s.task[r]] == 1 and is_done(schedule, r)]


def is_done(schedule: Schedule, row: int) -> bool:
    return bool(schedule.outcomes.status[schedule.segments.task[row]] == DONE)


def with_tasks(problem: Problem, task: int, **cells: Any) -> Problem:
    columns = {name: getattr(problem.tasks, name).copy() for name in cells}
    for name, value in cells.items():
        columns[name][task] = value
    return replace(problem, tasks=replace(problem.tasks, **columns))


def at_row(problem: Problem, schedule: Schedule, old: Schedule, row: int) -> Planted:
    """Name the task and processor of a row."""
    s = old.segments
    return Planted(problem, schedule, int(s.task[row]), int(s.processor[row]))


# --- single rows -------------------------------------------------------------------------------


@fault("unknown-task")
def task_that_does_not_exist(problem: Problem, schedule: Schedule) -> Planted | None:
    s = schedule.segments
    if len(s) == 0:
        return None
    added = appended(s, 0, task=len(problem.tasks))
    return Planted(problem, with_segments(schedule, added), processor=int(s.processor[0]))


@fault("unknown-task")
def task_with_a_negative_index(problem: Problem, schedule: Schedule) -> Planted | None:
    if len(schedule.segments) == 0:
        return None
    return Planted(problem, with_segments(schedule, appended(schedule.segments, 0, task=-1)))


def cell(rule: str, name: str, column: str, value: Any) -> None:
    """Enter a fault that sets one cell of a random segment."""

    def plant(problem: Problem, schedule: Schedule) -> Planted | None:
        s = schedule.segments
        if len(s) == 0:
            return None
        row = len(s) // 2
        new = value(problem, s, row) if callable(value) else value
        changed = with_segments(schedule, edited(s, row, **{column: new}))
        return Planted(problem, changed, int(s.task[row]))

    FAULTS.append(Entry(name, rule, plant))


cell("unknown-processor", "processor-that-does-not-exist", "processor",
     lambda p, s, row: p.platform.processor_count)  # fmt: skip
cell("unknown-processor", "processor-with-a-negative-index", "processor", -1)
for _column in ("start_s", "end_s", "core", "memory", "volt", "share"):
    cell("not-finite", f"{_column}-is-nan", _column, np.nan)
    cell("not-finite", f"{_column}-is-infinite", _column, np.inf)
cell("negative-start", "start-before-time-zero", "start_s", -1.0)
cell("backwards", "end-at-start", "end_s", lambda p, s, row: s.start_s[row])
cell("backwards", "end-before-start", "end_s", lambda p, s, row: s.start_s[row] - 0.5)


def span_cell(rule: str, name: str, **cells: Any) -> None:
    """Enter a fault that spoils one span."""

    def plant(problem: Problem, schedule: Schedule) -> Planted | None:
        if len(schedule.spans) == 0:
            return None
        changed = replace(schedule, spans=edited(schedule.spans, 0, **cells))
        return Planted(problem, changed, server=int(schedule.spans.server[0]))

    FAULTS.append(Entry(name, rule, plant))


span_cell("unknown-state", "state-that-does-not-exist", state=4)
span_cell("unknown-state", "state-with-a-negative-code", state=-1)
span_cell("span-not-finite", "span-start-is-nan", start_s=np.nan)
span_cell("span-not-finite", "span-end-is-nan", end_s=np.nan)
span_cell("span-negative", "span-before-time-zero", start_s=-2.0)
span_cell("span-backwards", "span-ends-before-it-starts", start_s=5.0, end_s=4.0)


@fault("unknown-server")
def server_that_does_not_exist(problem: Problem, schedule: Schedule) -> Planted | None:
    cells = {"server": problem.platform.server_count, "state": ON, "start_s": 0.0, "end_s": 1.0}
    return Planted(problem, replace(schedule, spans=appended(schedule.spans, **cells)))


@fault("ragged")
def columns_of_two_lengths(problem: Problem, schedule: Schedule) -> Planted | None:
    s = schedule.segments
    if len(s) == 0:
        return None
    return Planted(problem, with_segments(schedule, replace(s, share=s.share[:-1])))


# --- outcomes ----------------------------------------------------------------------------------


@fault("outcome-rows")
def outcome_missing(problem: Problem, schedule: Schedule) -> Planted | None:
    last = len(schedule.outcomes) - 1
    return Planted(problem, replace(schedule, outcomes=without(schedule.outcomes, last)))


@fault("outcome-rows")
def outcome_too_many(problem: Problem, schedule: Schedule) -> Planted | None:
    return Planted(problem, replace(schedule, outcomes=appended(schedule.outcomes, 0)))


def outcome_cell(rule: str, name: str, of: tuple[int, ...], **cells: Any) -> None:
    """Enter a fault that spoils the outcome of a task that has one of some statuses."""

    def plant(problem: Problem, schedule: Schedule) -> Planted | None:
        rows = np.flatnonzero(np.isin(schedule.outcomes.status, of))
        if rows.size == 0:
            return None
        changed = replace(schedule, outcomes=edited(schedule.outcomes, rows[0], **cells))
        return Planted(problem, changed, int(rows[0]))

    FAULTS.append(Entry(name, rule, plant))


outcome_cell("unknown-status", "status-that-does-not-exist", (DONE,), status=7)
outcome_cell("outcome-work", "work-is-zero", (DONE,), work=0.0)
outcome_cell("outcome-work", "work-is-nan", (DONE,), work=np.nan)
outcome_cell("outcome-work", "work-is-negative", (DONE,), work=-1.0)
outcome_cell("no-reason", "rejected-without-a-reason", (REJECTED,), reason="")
outcome_cell("no-reason", "failed-without-a-reason", (FAILED,), reason="  ")


# --- tasks -------------------------------------------------------------------------------------


@fault("arrival")
def start_before_arrival(problem: Problem, schedule: Schedule) -> Planted | None:
    s = schedule.segments
    if len(s) == 0:
        return None
    task = int(s.task[0])
    late = float(s.start_s[s.task == task].min()) + 0.01
    changed = with_tasks(problem, task, arrival_s=late, deadline_s=np.inf)
    return Planted(changed, schedule, task)


@fault("deadline")
def done_after_the_deadline(problem: Problem, schedule: Schedule) -> Planted | None:
    s = schedule.segments
    rows = [row for row in range(len(s)) if is_done(schedule, row)]
    if not rows:
        return None
    task = int(s.task[rows[0]])
    missed = float(s.end_s[s.task == task].max()) - 0.01
    return Planted(with_tasks(problem, task, deadline_s=missed), schedule, task)


@fault("deadline", edges=True, milestones=True)
def milestone_reached_too_late(problem: Problem, schedule: Schedule) -> Planted | None:
    s, edges = schedule.segments, problem.edges
    for before, after in zip(edges.before, edges.after, strict=True):
        ends = s.end_s[s.task == before]
        zero = problem.tasks.scale[after] == 0.0
        if zero and schedule.outcomes.status[after] == DONE and ends.size:
            missed = max(float(ends.max()) - 0.01, problem.tasks.arrival_s[after])
            if missed < ends.max():
                changed = with_tasks(problem, int(after), deadline_s=missed)
                return Planted(changed, schedule, int(after))
    return None


def whole_attempt(problem: Problem, schedule: Schedule, **cells: float) -> Planted | None:
    """Change all segments of one attempt."""
    for rows in attempts_of(schedule):
        changed = with_segments(schedule, edited(schedule.segments, rows, **cells))
        return at_row(problem, changed, schedule, rows[0])
    return None


@fault("point", **SIMPLE)
def core_clock_too_high(problem: Problem, schedule: Schedule) -> Planted | None:
    return whole_attempt(problem, schedule, core=9.5)


@fault("point", **SIMPLE)
def core_clock_zero(problem: Problem, schedule: Schedule) -> Planted | None:
    return whole_attempt(problem, schedule, core=0.0)


@fault("point", **SIMPLE)
def memory_clock_too_high(problem: Problem, schedule: Schedule) -> Planted | None:
    return whole_attempt(problem, schedule, memory=9.5)


@fault("point", **SIMPLE, flavours=("gpu-wide",))
def voltage_too_low_for_the_clock(problem: Problem, schedule: Schedule) -> Planted | None:
    return whole_attempt(problem, schedule, volt=0.49)


@fault("point", **SIMPLE, flavours=("gpu-table",))
def voltage_that_is_not_the_table_s(problem: Problem, schedule: Schedule) -> Planted | None:
    return whole_attempt(problem, schedule, volt=0.3)


@fault("no-profile", **SIMPLE)
def kind_without_a_profile(problem: Problem, schedule: Schedule) -> Planted | None:
    s, library = schedule.segments, problem.library
    if len(s) == 0:
        return None
    group = library.group.copy()
    kind = problem.platform.kinds[problem.platform.kind[s.processor[0]]].name
    group[problem.tasks.application[s.task[0]], library.kinds.index(kind)] = -1
    changed = replace(problem, library=replace(library, group=group))
    return at_row(changed, schedule, schedule, 0)


@fault("unmeasured", **SIMPLE, flavours=("measured",))
def clock_nobody_measured(problem: Problem, schedule: Schedule) -> Planted | None:
    table = problem.platform.kinds[0].clocks.points
    for rows in attempts_of(schedule):
        task = np.full(len(table), schedule.segments.task[rows[0]])
        time_s, _ = problem.at(task, np.zeros_like(task), table)
        for core, memory, volt in table[np.isnan(time_s)][:1]:
            cells = {"core": core, "memory": memory, "volt": volt}
            changed = with_segments(schedule, edited(schedule.segments, rows, **cells))
            return at_row(problem, changed, schedule, rows[0])
    return None


@fault("share", **SIMPLE)
def shares_that_do_not_fit_their_times(problem: Problem, schedule: Schedule) -> Planted | None:
    s = schedule.segments
    for rows in in_pieces(schedule):
        a, b = rows[:2]
        moved = s.share[a] / 2.0
        new = edited(s, [a, b], share=[s.share[a] - moved, s.share[b] + moved])
        return at_row(problem, with_segments(schedule, new), schedule, a)
    return None


@fault("share", "work", **SIMPLE)
def share_that_is_negative(problem: Problem, schedule: Schedule) -> Planted | None:
    for row in done_alone(schedule):
        new = edited(schedule.segments, row, share=-0.5)
        return at_row(problem, with_segments(schedule, new), schedule, row)
    return None


@fault("share", **{**SIMPLE, "slot_s": 2.0})
def waste_of_a_whole_slot(problem: Problem, schedule: Schedule) -> Planted | None:
    s = schedule.segments
    for rows in attempts_of(schedule):
        row = rows[-1]
        span = (float(s.end_s[row]), float(s.end_s[row]) + 2.0)
        if is_done(schedule, row) and is_free(schedule, int(s.processor[row]), *span):
            if np.any(s.attempt[s.task == s.task[row]] > s.attempt[row]):
                continue
            changed = with_segments(schedule, edited(s, row, end_s=span[1]))
            return at_row(problem, always_on(changed), schedule, row)
    return None


@fault("share", **{**SIMPLE, "slot_s": 2.0})
def waste_before_the_last_slot(problem: Problem, schedule: Schedule) -> Planted | None:
    s = schedule.segments
    for rows in in_pieces(schedule):
        a, b = rows[0], rows[-1]
        full_s = (s.end_s[a] - s.start_s[a]) / s.share[a]
        if is_done(schedule, a) and s.start_s[b] >= s.end_s[a]:
            moved = min(0.2 * s.share[a], 0.1 / full_s)
            new = edited(s, [a, b], share=[s.share[a] - moved, s.share[b] + moved])
            return at_row(problem, with_segments(schedule, new), schedule, a)
    return None


@fault("work", **SIMPLE)
def last_part_missing(problem: Problem, schedule: Schedule) -> Planted | None:
    s = schedule.segments
    for rows in in_pieces(schedule):
        final = s.attempt[rows[0]] == s.attempt[s.task == s.task[rows[0]]].max()
        if is_done(schedule, rows[0]) and final:
            changed = with_segments(schedule, without(s, rows[-1]))
            return Planted(problem, changed, int(s.task[rows[0]]))
    return None


@fault("work", **SIMPLE)
def part_done_twice(problem: Problem, schedule: Schedule) -> Planted | None:
    return more_than_all(problem, schedule, DONE)


@fault("excess-work", **SIMPLE)
def failed_attempt_did_too_much(problem: Problem, schedule: Schedule) -> Planted | None:
    return more_than_all(problem, schedule, FAILED)


def more_than_all(problem: Problem, schedule: Schedule, status: int) -> Planted | None:
    """Let a task that is done in one segment go on for half as long."""
    s = schedule.segments
    for row in done_alone(schedule):
        length = (s.end_s[row] - s.start_s[row]) / 2.0
        span = (float(s.end_s[row]), float(s.end_s[row] + length))
        if is_free(schedule, int(s.processor[row]), *span):
            longer = appended(s, row, start_s=span[0], end_s=span[1], share=s.share[row] / 2.0)
            outcomes = edited(schedule.outcomes, s.task[row], status=status, reason="crashed")
            changed = replace(schedule, segments=longer, outcomes=outcomes)
            return Planted(problem, always_on(changed), int(s.task[row]))
    return None


@fault("rejected-ran", edges=False)
def rejected_task_that_runs(problem: Problem, schedule: Schedule) -> Planted | None:
    if len(schedule.segments) == 0:
        return None
    task = int(schedule.segments.task[0])
    outcomes = edited(schedule.outcomes, task, status=REJECTED, reason="not wanted")
    return Planted(problem, replace(schedule, outcomes=outcomes), task)


@fault("not-run")
def done_without_a_segment(problem: Problem, schedule: Schedule) -> Planted | None:
    s = schedule.segments
    tasks = [int(task) for task in np.unique(s.task) if schedule.outcomes.status[task] == DONE]
    if not tasks:
        return None
    changed = with_segments(schedule, without(s, np.flatnonzero(s.task == tasks[0])))
    return Planted(problem, changed, tasks[0])


@fault("zero-work")
def milestone_that_runs(problem: Problem, schedule: Schedule) -> Planted | None:
    if len(schedule.segments) == 0:
        return None
    changed = with_tasks(problem, int(schedule.segments.task[0]), scale=0.0)
    return at_row(changed, schedule, schedule, 0)


@fault("attempt-number")
def attempt_left_out(problem: Problem, schedule: Schedule) -> Planted | None:
    s = schedule.segments
    if len(s) == 0:
        return None
    mine = s.task == s.task[0]
    changed = with_segments(schedule, edited(s, mine, attempt=s.attempt[mine] + 1))
    return Planted(problem, changed, int(s.task[0]))


@fault("attempt-order", slot_s=None)
def retry_before_the_failure(problem: Problem, schedule: Schedule) -> Planted | None:
    s = schedule.segments
    for task in np.flatnonzero(schedule.outcomes.status == FAILED):
        mine = s.task == task
        if mine.any() and s.attempt[mine].max() >= 1:
            swapped = np.array([1, 0, 2])[s.attempt[mine]]
            changed = with_segments(schedule, edited(s, mine, attempt=swapped))
            return Planted(problem, changed, int(task))
    return None


# --- processors --------------------------------------------------------------------------------


def overlapped_pair(schedule: Schedule) -> tuple[int, int] | None:
    """Two whole tasks that run at the same time on different processors."""
    s = schedule.segments
    alone = done_alone(schedule)
    for a in alone:
        for b in alone:
            together = s.start_s[a] < s.end_s[b] and s.start_s[b] < s.end_s[a]
            if s.processor[a] != s.processor[b] and together:
                return a, b
    return None


@fault("overlap", **SIMPLE, flavours=("cpu",))
def two_tasks_on_one_processor(problem: Problem, schedule: Schedule) -> Planted | None:
    pair = overlapped_pair(schedule)
    if pair is None:
        return None
    processor = schedule.segments.processor[pair[0]]
    others = schedule.segments.processor == processor
    if others.sum() > 1:
        return None
    new = edited(schedule.segments, pair[1], processor=processor)
    return Planted(problem, always_on(with_segments(schedule, new)), processor=int(processor))


@fault("overlap", **SIMPLE)
def task_overlaps_itself(problem: Problem, schedule: Schedule) -> Planted | None:
    s = schedule.segments
    for rows in in_pieces(schedule):
        a, b = rows[-2:]
        length = s.end_s[b] - s.start_s[b]
        start = s.end_s[a] - 0.5 * min(length, s.end_s[a] - s.start_s[a])
        if s.processor[a] == s.processor[b]:
            new = edited(s, b, start_s=start, end_s=start + length)
            if is_free(
                with_segments(schedule, without(new, [a, b])), s.processor[b], start, start + length
            ):
                return at_row(problem, always_on(with_segments(schedule, new)), schedule, b)
    return None


@fault("two-places", **SIMPLE, interrupt="migrate")
def task_in_two_places(problem: Problem, schedule: Schedule) -> Planted | None:
    return second_place(problem, schedule, 0.5)


@fault("two-places", **SIMPLE, interrupt="migrate")
def task_starts_in_two_places(problem: Problem, schedule: Schedule) -> Planted | None:
    return second_place(problem, schedule, 1.0)


def second_place(problem: Problem, schedule: Schedule, part: float) -> Planted | None:
    """Let the last segment of an attempt overlap the last ``part`` of the one before."""
    s = schedule.segments
    for rows in in_pieces(schedule):
        a, b = rows[-2:]
        length, start = s.end_s[b] - s.start_s[b], s.end_s[a] - part * (s.end_s[a] - s.start_s[a])
        free = is_free(schedule, int(s.processor[b]), start, start + length, skip=int(b))
        if s.processor[a] != s.processor[b] and free:
            new = edited(s, b, start_s=start, end_s=start + length)
            return Planted(problem, always_on(with_segments(schedule, new)), int(s.task[b]))
    return None


def gang_rows(problem: Problem, schedule: Schedule) -> np.ndarray[Any, Any] | None:
    """Rows of one gang that start together, by processor."""
    s = schedule.segments
    for row in np.flatnonzero(problem.tasks.processors[s.task] > 1):
        together = (s.task == s.task[row]) & (s.start_s == s.start_s[row])
        rows = np.flatnonzero(together)
        return rows[np.argsort(s.processor[rows])]
    return None


@fault("gang-size", gangs=True)
def gang_with_one_missing(problem: Problem, schedule: Schedule) -> Planted | None:
    rows = gang_rows(problem, schedule)
    if rows is None:
        return None
    changed = with_segments(schedule, without(schedule.segments, rows[-1]))
    return at_row(problem, changed, schedule, rows[0])


@fault("gang-size", "overlap", gangs=True)
def gang_with_one_processor_twice(problem: Problem, schedule: Schedule) -> Planted | None:
    rows = gang_rows(problem, schedule)
    if rows is None:
        return None
    s = schedule.segments
    new = edited(s, rows[-1], processor=s.processor[rows[0]])
    return at_row(problem, with_segments(schedule, new), schedule, rows[0])


@fault("gang-unequal", **{**SIMPLE, "gangs": True}, flavours=("gpu-wide",))
def gang_at_two_voltages(problem: Problem, schedule: Schedule) -> Planted | None:
    rows = gang_rows(problem, schedule)
    clocks = problem.platform.kinds[0].clocks
    assert isinstance(clocks, ClockRange)
    if rows is None or schedule.segments.volt[rows[0]] > clocks.volt_max - 0.01:
        return None
    changed = with_segments(schedule, edited(schedule.segments, rows[-1], volt=clocks.volt_max))
    return at_row(problem, changed, schedule, rows[-1])


@fault("gang-unequal", "share", **{**SIMPLE, "gangs": True})
def gang_with_two_shares(problem: Problem, schedule: Schedule) -> Planted | None:
    rows = gang_rows(problem, schedule)
    if rows is None:
        return None
    new = edited(schedule.segments, rows[-1], share=schedule.segments.share[rows[-1]] / 2.0)
    return at_row(problem, with_segments(schedule, new), schedule, rows[-1])


def with_twin_kind(problem: Problem, processor: int) -> Problem:
    """Make one processor of another kind that is the same in all but its name."""
    platform, library = problem.platform, problem.library
    old = platform.kinds[platform.kind[processor]]
    column = library.kinds.index(old.name)
    kind = platform.kind.copy()
    kind[processor] = len(platform.kinds)
    twin = replace(old, name="twin")
    return replace(
        problem,
        platform=replace(platform, kinds=(*platform.kinds, twin), kind=kind),
        library=replace(
            library,
            kinds=(*library.kinds, "twin"),
            group=np.column_stack([library.group, library.group[:, column]]),
            row=np.column_stack([library.row, library.row[:, column]]),
        ),
    )


@fault("gang-kinds", gangs=True, interrupt="preempt")
def gang_of_two_kinds(problem: Problem, schedule: Schedule) -> Planted | None:
    rows = gang_rows(problem, schedule)
    if rows is None:
        return None
    processor = int(schedule.segments.processor[rows[-1]])
    return Planted(
        with_twin_kind(problem, processor), schedule, int(schedule.segments.task[rows[0]])
    )


@fault("gang-spread", **{**SIMPLE, "gangs": True}, interrupt="migrate")
def gang_on_two_servers(problem: Problem, schedule: Schedule) -> Planted | None:
    rows, s, platform = gang_rows(problem, schedule), schedule.segments, problem.platform
    failed = np.any(s.attempt > 0) or np.any(schedule.spans.state == DOWN)
    if rows is None or failed or np.unique(platform.server[s.processor[rows]]).size > 1:
        return None
    row = rows[-1]
    alike = platform.kind == platform.kind[s.processor[row]]
    for processor in np.flatnonzero(alike & (platform.server != platform.server[s.processor[row]])):
        new = edited(s, row, processor=processor)
        apart = platform.server[new.processor] == platform.server[processor]
        if np.flatnonzero(apart).tolist() == [row]:
            return Planted(problem, always_on(with_segments(schedule, new)), int(s.task[row]))
    return None


@fault("chip-clock", **SIMPLE)
def two_clocks_on_one_chip(problem: Problem, schedule: Schedule) -> Planted | None:
    platform, s = problem.platform, schedule.segments
    chips = replace(platform, chip=platform.server, chip_server=np.arange(platform.server_count))
    server = platform.server[s.processor]
    for a in range(len(s)):
        for b in range(len(s)):
            together = s.start_s[a] < s.end_s[b] - 1e-3 and s.start_s[b] < s.end_s[a] - 1e-3
            if server[a] == server[b] and together and np.any(s.points[a] != s.points[b]):
                return Planted(replace(problem, platform=chips), schedule)
    return None


@fault("slot", **{**SIMPLE, "slot_s": 2.0})
def start_between_slots(problem: Problem, schedule: Schedule) -> Planted | None:
    s = schedule.segments
    for row in done_alone(schedule):
        start, end = float(s.start_s[row]) + 1.0, float(s.end_s[row]) + 1.0
        if is_free(schedule, int(s.processor[row]), start, end, skip=row):
            new = edited(s, row, start_s=start, end_s=end)
            return at_row(problem, always_on(with_segments(schedule, new)), schedule, row)
    return None


# --- interrupts and clocks ---------------------------------------------------------------------


def with_last_part_later(schedule: Schedule, rows: Any, gap_s: float) -> Schedule | None:
    """Delay the last segment of an attempt, where its processor is free."""
    s, b = schedule.segments, rows[-1]
    start, end = float(s.start_s[b]) + gap_s, float(s.end_s[b]) + gap_s
    after = np.any(s.attempt[s.task == s.task[b]] > s.attempt[b])
    if after or not is_free(schedule, int(s.processor[b]), start - gap_s, end, skip=int(b)):
        return None
    return always_on(with_segments(schedule, edited(s, b, start_s=start, end_s=end)))


@fault("interrupted", **SIMPLE, interrupt="none")
def gap_where_none_may_be(problem: Problem, schedule: Schedule) -> Planted | None:
    for rows in in_pieces(schedule):
        changed = with_last_part_later(schedule, rows, 3.0)
        if changed is not None:
            return at_row(problem, changed, schedule, rows[-1])
    return None


def with_last_part_elsewhere(problem: Problem, schedule: Schedule) -> Planted | None:
    s, platform = schedule.segments, problem.platform
    for rows in in_pieces(schedule):
        b = rows[-1]
        for processor in np.flatnonzero(platform.kind == platform.kind[s.processor[b]]):
            free = is_free(schedule, int(processor), float(s.start_s[b]), float(s.end_s[b]))
            if processor != s.processor[b] and free:
                new = always_on(with_segments(schedule, edited(s, b, processor=processor)))
                return Planted(problem, new, int(s.task[b]), int(processor))
    return None


@fault("moved", **SIMPLE, interrupt="none")
def moved_without_a_stop(problem: Problem, schedule: Schedule) -> Planted | None:
    return with_last_part_elsewhere(problem, schedule)


@fault("moved", **SIMPLE, interrupt="preempt")
def moved_where_only_preemption_is_allowed(problem: Problem, schedule: Schedule) -> Planted | None:
    return with_last_part_elsewhere(problem, schedule)


@fault("moved", **SIMPLE, interrupt="migrate")
def moved_to_another_kind(problem: Problem, schedule: Schedule) -> Planted | None:
    s = schedule.segments
    for rows in in_pieces(schedule):
        if s.processor[rows[-1]] != s.processor[rows[-2]]:
            twin = with_twin_kind(problem, int(s.processor[rows[-1]]))
            return Planted(twin, schedule, int(s.task[rows[0]]))
    return None


@fault("held", **SIMPLE, interrupt="pause", flavours=("cpu",), tasks=6)
def guest_on_a_held_processor(problem: Problem, schedule: Schedule) -> Planted | None:
    s = schedule.segments
    for rows in in_pieces(schedule):
        host, stop = int(s.processor[rows[-2]]), float(s.end_s[rows[-2]])
        for guest in done_alone(schedule):
            length = float(s.end_s[guest] - s.start_s[guest])
            paused = with_last_part_later(schedule, rows, length + 2.0)
            if paused is None or not is_free(paused, host, stop, stop + length + 1.0):
                continue
            cells = {"processor": host, "start_s": stop + 1.0, "end_s": stop + 1.0 + length}
            changed = with_segments(paused, edited(paused.segments, guest, **cells))
            task = int(s.task[guest])
            return Planted(with_tasks(problem, task, arrival_s=0.0), changed, task, host)
    return None


@fault("clock-locked", slot_s=None, clock="free")
def clock_changed_where_it_is_locked(problem: Problem, schedule: Schedule) -> Planted | None:
    for rows in in_pieces(schedule):
        points = schedule.segments.points[rows]
        if np.any(points != points[0]):
            kinds = tuple(replace(kind, clock="locked") for kind in problem.platform.kinds)
            locked = replace(problem, platform=replace(problem.platform, kinds=kinds))
            return Planted(locked, schedule, int(schedule.segments.task[rows[0]]))
    return None


# --- graph -------------------------------------------------------------------------------------


@fault("precedence", edges=False)
def start_before_a_predecessor_is_done(problem: Problem, schedule: Schedule) -> Planted | None:
    pair = crossed_pair(schedule)
    if pair is None:
        return None
    edges = Edges(np.array(pair[:1]), np.array(pair[1:]))
    return Planted(replace(problem, edges=edges), schedule, pair[1])


@fault("precedence", edges=False, milestones=True, deadlines=False)
def start_before_a_milestone(problem: Problem, schedule: Schedule) -> Planted | None:
    pair = crossed_pair(schedule)
    done = schedule.outcomes.status == DONE
    zero = np.flatnonzero((problem.tasks.scale == 0.0) & done)
    if pair is None or zero.size < 2:
        return None
    chain = [pair[0], *zero[:2].tolist(), pair[1]]
    edges = Edges(np.array(chain[:-1]), np.array(chain[1:]))
    return Planted(replace(problem, edges=edges), schedule, pair[1])


def crossed_pair(schedule: Schedule) -> tuple[int, int] | None:
    """Two done tasks, the second of which starts before the first ends."""
    s = schedule.segments
    done = [int(task) for task in np.unique(s.task) if schedule.outcomes.status[task] == DONE]
    for a in done:
        for b in done:
            if a != b and s.start_s[s.task == b].min() < s.end_s[s.task == a].max() - 0.01:
                return a, b
    return None


@fault("orphan", edges=False)
def done_after_a_task_that_was_refused(problem: Problem, schedule: Schedule) -> Planted | None:
    return after_refused(problem, schedule, DONE)


@fault("orphan", edges=False)
def tried_after_a_task_that_was_refused(problem: Problem, schedule: Schedule) -> Planted | None:
    return after_refused(problem, schedule, FAILED)


def after_refused(problem: Problem, schedule: Schedule, status: int) -> Planted | None:
    """Put a task that ran behind one that was never done."""
    refused = np.flatnonzero(np.isin(schedule.outcomes.status, (REJECTED, FAILED)))
    ran = np.unique(schedule.segments.task)
    ran = ran[schedule.outcomes.status[ran] == status]
    ran = ran[~np.isin(ran, refused[:1])]
    if refused.size == 0 or ran.size == 0:
        return None
    edges = Edges(refused[:1], ran[:1])
    return Planted(replace(problem, edges=edges), schedule, int(ran[0]))


# --- servers -----------------------------------------------------------------------------------


def on_span_in_use(problem: Problem, schedule: Schedule) -> tuple[int, int] | None:
    """An ON span and a segment that runs inside it."""
    s, spans = schedule.segments, schedule.spans
    server = problem.platform.server[s.processor]
    for span in np.flatnonzero(spans.state == ON):
        inside = (s.start_s > spans.start_s[span] - 1e-9) & (s.end_s <= spans.end_s[span])
        rows = np.flatnonzero((server == spans.server[span]) & inside)
        if rows.size:
            return int(span), int(rows[0])
    return None


def off_while_running(problem: Problem, schedule: Schedule, **cells: Any) -> Planted | None:
    found = on_span_in_use(problem, schedule)
    if found is None:
        return None
    span, row = found
    changed = replace(schedule, spans=edited(schedule.spans, span, **cells))
    return at_row(problem, changed, schedule, row)


@fault("asleep", wake_s=0.0)
def asleep_while_running(problem: Problem, schedule: Schedule) -> Planted | None:
    return off_while_running(problem, schedule, state=ASLEEP)


@fault("down", wake_s=0.0)
def down_while_running(problem: Problem, schedule: Schedule) -> Planted | None:
    return off_while_running(problem, schedule, state=DOWN)


@fault("asleep", initially_on=False)
def never_switched_on(problem: Problem, schedule: Schedule) -> Planted | None:
    s = schedule.segments
    if len(s) == 0:
        return None
    server = int(problem.platform.server[s.processor[0]])
    mine = np.flatnonzero(schedule.spans.server == server)
    changed = replace(schedule, spans=without(schedule.spans, mine))
    return Planted(problem, changed, int(s.task[0]), server=server)


@fault("asleep", initially_on=False, wake_s=0.0)
def asleep_too_soon(problem: Problem, schedule: Schedule) -> Planted | None:
    found = on_span_in_use(problem, schedule)
    if found is None:
        return None
    span, row = found
    early = 0.5 * (schedule.segments.start_s[row] + schedule.segments.end_s[row])
    changed = replace(schedule, spans=edited(schedule.spans, span, end_s=early))
    return at_row(problem, changed, schedule, row)


@fault("waking", initially_on=False, wake_s=3.0)
def waking_while_running(problem: Problem, schedule: Schedule) -> Planted | None:
    spans = schedule.spans
    for waking in np.flatnonzero(spans.state == WAKING):
        on = waking + 1
        if spans.end_s[on] - spans.start_s[on] > 1.0:
            start, end = spans.start_s[waking] + 0.5, spans.end_s[waking] + 0.5
            late = edited(edited(spans, waking, start_s=start, end_s=end), on, start_s=end)
            return Planted(problem, replace(schedule, spans=late), server=int(spans.server[on]))
    return None


@fault("span-overlap")
def two_states_at_once(problem: Problem, schedule: Schedule) -> Planted | None:
    spans = schedule.spans
    if not np.any(spans.state == ON):
        return None
    row = int(np.flatnonzero(spans.state == ON)[0])
    return Planted(
        problem, replace(schedule, spans=appended(spans, row)), server=int(spans.server[row])
    )


def waking_row(schedule: Schedule) -> int | None:
    rows = np.flatnonzero(schedule.spans.state == WAKING)
    return int(rows[0]) if rows.size else None


@fault("wake-missing", initially_on=False, wake_s=3.0)
def on_without_waking(problem: Problem, schedule: Schedule) -> Planted | None:
    row = waking_row(schedule)
    if row is None:
        return None
    changed = replace(schedule, spans=without(schedule.spans, row))
    return Planted(problem, changed, server=int(schedule.spans.server[row]))


@fault("wake-missing", initially_on=False, wake_s=3.0)
def waking_called_sleep(problem: Problem, schedule: Schedule) -> Planted | None:
    row = waking_row(schedule)
    if row is None:
        return None
    changed = replace(schedule, spans=edited(schedule.spans, row, state=ASLEEP))
    return Planted(problem, changed, server=int(schedule.spans.server[row]))


@fault("wake-length", wake_s=3.0)
def waking_too_quick(problem: Problem, schedule: Schedule) -> Planted | None:
    row = waking_row(schedule)
    if row is None:
        return None
    late = schedule.spans.start_s[row] + 1.0
    changed = replace(schedule, spans=edited(schedule.spans, row, start_s=late))
    return Planted(problem, changed, server=int(schedule.spans.server[row]))


@fault("wake-lost", initially_on=False, wake_s=3.0)
def waking_for_nothing(problem: Problem, schedule: Schedule) -> Planted | None:
    platform = problem.platform
    unused = np.setdiff1d(np.arange(platform.server_count), schedule.spans.server)
    if unused.size == 0:
        return None
    cells = {"server": unused[0], "state": WAKING, "start_s": 1.0, "end_s": 4.0}
    spans = appended(schedule.spans, **cells)
    return Planted(problem, replace(schedule, spans=spans), server=int(unused[0]))
