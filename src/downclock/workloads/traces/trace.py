"""A trace: what ran on a cluster, when, on how much of it. Columnar, whatever the format.

A format says which of its columns are ours and how their cells are read; `collected` reads any
sheet of rows by it. The rules a row must obey are here, once for all formats.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from downclock.errors import InvalidInput, suggestion
from downclock.problem.calendar import moment
from downclock.problem.files.read_cluster import MOST_PROCESSORS
from downclock.quantities import MOST
from downclock.units import Bools, Floats, Ints, Names
from downclock.workloads.traces.cells import CALENDAR, NAN, Read, readers
from downclock.workloads.traces.ledger import AGAIN, Ledger
from downclock.workloads.traces.rows import Sheet

TIMES = ("submit", "start", "end", "deadline")
"""Fields that are instants: seconds since 1970, or since the trace began."""

LENGTHS = ("run", "limit", "within")
"""Fields that are lengths of time: run time, time limit, time from submission to deadline."""

COUNTS = ("gpus", "nodes", "cpus")
"""What a job may have used; one of them counts as its processors."""

TEXTS = ("name", "queue", "application", "kind", "hosts")
NUMBERS = (*TIMES, *LENGTHS, *COUNTS, "part", "power_w")
FIELDS = (*TEXTS, *NUMBERS)
"""All fields; ``part`` is that of a GPU, ``hosts`` the names of nodes."""

_KEPT = ("submit", "start", "end", "run", "limit", "deadline", "power_w", "part")

EARLIEST_S, LATEST_S = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (1990, 2100))
"""Instants of the calendar before or after are slips; 1970 is what unset clocks say."""

LONGEST_S = 366 * 86400.0
"""No job waits or runs longer, and no cluster is without a submission for longer: it is a slip."""

OVERRUN_S = 3601.0
"""So much longer than from start to end a job may say that it ran: clocks are set back an hour."""


class Column(NamedTuple):
    """A field of ours in a file.

    Attributes:
        names: what the column may be called; the first that is there counts.
        read: a word of `readers`, or a function of the cell.
        constant: the value where there is no column.
    """

    names: tuple[str, ...]
    read: str | Read = "text"
    constant: Any = None


Job: TypeAlias = dict[str, Any]
_Limit: TypeAlias = tuple[str, float, float, str]


@dataclass(frozen=True, slots=True)
class Format:
    """What a kind of file is like.

    Attributes:
        name: what users call it.
        columns: its columns, by our field.
        signature: columns that tell it from others.
        pools: its queues have machines of their own.
        repeats: rows may share a name (tasks of a job array): they are numbered.
        requeues: so may rows that start later (runs of a requeued job); one that says the same of a
            job as before is left out.
        mapped: somebody named its columns: all must be there.
        notes: what reading it assumes, a sentence each.
        amend: changes a row's job, or says why it is left out.
    """

    name: str
    columns: Mapping[str, Column]
    signature: tuple[str, ...] = ()
    pools: bool = False
    repeats: bool = False
    requeues: bool = False
    mapped: bool = False
    notes: tuple[str, ...] = ()
    amend: Callable[[Job], str | None] | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trace:
    """What a file says of its jobs, a row each (n,), by submission.

    Attributes:
        format: how it was read.
        name, queue, application, kind, hosts: as the file says; empty where it does not.
        submit_s, start_s, end_s: seconds since 1970 where ``calendar``, else since any moment.
        run_s: how long it ran.
        limit_s, deadline_s, power_w: NaN where the file says nothing.
        processors: that it held; whole ones.
        part: of a GPU that it asked for, 1 for whole ones.
        asked_s: GPU-seconds that it asked for; those that it held may be more.
        rows: of the file that it is made of.
        used: our fields and the file's columns behind them.
        ledger: what became of all rows.
        assumptions: what was assumed in reading, a sentence each.
    """

    format: Format
    name: Names
    queue: Names
    application: Names
    kind: Names
    hosts: Names
    submit_s: Floats
    start_s: Floats
    end_s: Floats
    run_s: Floats
    limit_s: Floats
    deadline_s: Floats
    power_w: Floats
    processors: Ints
    part: Floats
    asked_s: Floats
    rows: Ints
    used: tuple[tuple[str, str], ...]
    ledger: Ledger
    calendar: bool
    assumptions: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.name.size

    def where(self, mask: Bools, reason: str) -> Trace:
        """Return the jobs marked; the others are counted as left out for this reason.

        Raises:
            InvalidInput: none is left.
        """
        if mask.all():
            return self
        if not mask.any():
            raise InvalidInput(f"no job is left: each {reason}", source=self.ledger.source)
        asked_s, rows = float(self.asked_s[~mask].sum()), int(self.rows[~mask].sum())
        ledger = self.ledger.without(reason, asked_s, rows=rows)
        return replace(self.taken(np.flatnonzero(mask)), ledger=ledger)

    def taken(self, rows: Ints) -> Trace:
        """Return these rows."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _COLUMNS})


_COLUMNS = [
    each.name for each in fields(Trace) if each.type in ("Names", "Floats", "Ints", "Bools")
]


@dataclass(slots=True)
class _Bound:
    """A format's columns found in a header: (field, place, how to read) each, and their names.

    And the time zone of stamps without an offset, where there are stamps.
    """

    cells: list[tuple[str, int, Read]] = field(default_factory=list)
    constants: Job = field(default_factory=dict)
    used: list[tuple[str, str]] = field(default_factory=list)
    theirs: dict[str, str] = field(default_factory=dict)
    calendar: bool = False
    stamps: str | None = None


def collected(
    sheet: Sheet,
    format: Format,
    ledger: Ledger,
    *,
    count: str | None = None,
    zone: tzinfo | None = None,
) -> Trace:
    """Read all rows of a sheet.

    Args:
        sheet: header and rows.
        format: which columns are what.
        ledger: where rows are counted.
        count: what counts as a job's processors (of `COUNTS`); the first that the format has.
        zone: of stamps without an offset; UTC when not given.

    Raises:
        InvalidInput: columns are missing, no job is left, or a row is malformed and that is fatal.
    """
    bound = _bound(sheet.header, format, zone, ledger.source)
    counted = ledger.counted = _counted(bound, format, count, ledger.source)
    ledger.unit, limits = sheet.unit, _limits(counted, bound.calendar)
    columns: dict[str, Any] = {name: [] for name in TEXTS}
    columns |= {name: array("d") for name in (*_KEPT, counted, "started", "line")}
    names = _Names(format, {name: columns[name] for name in ("start", "run", counted)})
    for number, (line, cells) in enumerate(sheet.rows, start=1):
        job: Job = {**_EMPTY, **bound.constants, "line": line}
        try:
            _read(job, bound, cells)
            reason = None if format.amend is None else format.amend(job)
            _refuse_odd(job, limits, counted, bound.calendar)
            _complete(job, bound.calendar)
            job["name"] = job["name"] or f"job{number}"
            reason = reason or _unfit(job, counted)
            if reason is None and "name" in bound.theirs:  # else they are numbers
                reason = names.given(job)
        except InvalidInput as error:
            theirs = bound.theirs.get(error.field or "", error.field)
            ledger.malformed(line, error.rule, theirs, error.value, gpu_s=_gpu_s(job, counted))
            continue
        if reason is not None:
            ledger.drop(reason, _gpu_s(job, counted))
            continue
        for name, column in columns.items():
            column.append(job[name])
    if not columns["name"]:
        raise InvalidInput(_nothing(ledger, counted), source=ledger.source)
    return _trace(columns, bound, format, ledger, counted)


def _gpu_s(job: Job, counted: str) -> float:
    """GPU-seconds that a job asked for; NaN where they are not known."""
    run_s = job["end"] - job["start"] if math.isnan(job["run"]) else job["run"]
    return float(run_s * job[counted] * job["part"])


@dataclass(slots=True)
class _Names:
    """Names that rows have so far, with the row of ``columns`` that had it last."""

    format: Format
    columns: Mapping[str, Sequence[float]]
    row: dict[str, int] = field(default_factory=dict)
    again: Counter[str] = field(default_factory=Counter)

    def given(self, job: Job) -> str | None:
        """Keep the name of a job, numbered where an earlier one has it; or say why it is left out.

        Raises:
            InvalidInput: rows of the format share no names.
        """
        name, format = job["name"], self.format
        if name in self.row:
            before = {key: column[self.row[name]] for key, column in self.columns.items()}
            if format.requeues and all(job[key] == told for key, told in before.items()):
                return AGAIN
            if not (format.repeats or (format.requeues and job["start"] > before["start"])):
                raise InvalidInput("is the name of an earlier row", field="name", value=name)
            self.again[name] += 1
            job["name"] = f"{name}#{self.again[name] + 1}"
        self.row[name] = len(self.columns["start"])
        return None


def _nothing(ledger: Ledger, counted: str) -> str:
    why = [f"{reason}: {rows:,}" for reason, (rows, _) in ledger.dropped.items()]
    idle = f"uses no {counted}" in ledger.dropped
    hint = f" (--count says what counts, here {counted})" if idle else ""
    first = f"; {ledger.complaints[0]}" if ledger.complaints else ""
    return f"holds no job that ran{' (' + ', '.join(why) + ')' if why else ''}{hint}{first}"


def _bound(
    header: tuple[str, ...], format: Format, zone: tzinfo | None, source: str | Path
) -> _Bound:
    """Find the format's columns; refuse a file without those that every job needs."""
    words, bound = readers(zone), _Bound()
    place = {name.lower(): k for k, name in reversed(list(enumerate(header)))}
    for ours, column in format.columns.items():
        there = next((name for name in column.names if name.lower() in place), None)
        if there is None:
            if column.constant is not None:
                bound.constants[ours] = column.constant
                bound.used.append((ours, f"{column.constant} for all"))
            elif format.mapped:
                raise _missing(column.names, header, format, source)
            continue
        read = words[column.read] if isinstance(column.read, str) else column.read
        bound.cells.append((ours, place[there.lower()], read))
        bound.used.append((ours, there))
        bound.theirs[ours] = there
        bound.calendar |= ours in TIMES and column.read in CALENDAR
        bound.stamps = str(zone or UTC) if column.read == "stamp" else bound.stamps
    found = {ours for ours, *_ in bound.cells} | set(bound.constants)
    for alternatives in (("submit", "start"), ("run", "end")):
        if not found & set(alternatives):
            wanted = [
                name for ours in alternatives for name in format.columns.get(ours, Column(())).names
            ]
            if not wanted:
                rule = f"{format.name} names no column for {' or '.join(alternatives)}"
                raise InvalidInput(rule, source=source)
            raise _missing(wanted, header, format, source)
    return bound


def _missing(
    wanted: Sequence[str], header: tuple[str, ...], format: Format, source: str | Path
) -> InvalidInput:
    rule = f"no column '{' or '.join(wanted)}' ({format.name})"
    rule += suggestion(wanted[0], [name for name in header if name])
    return InvalidInput(rule, source=source, line=1)


def _counted(bound: _Bound, format: Format, count: str | None, source: str | Path) -> str:
    """Return the field that counts as processors."""
    there = [ours for ours, _ in bound.used if ours in COUNTS]
    known = [each for each in COUNTS if each in there]
    if count is not None and count not in known:
        rule = f"the file says nothing of {count}; it has {', '.join(known) or 'no counts at all'}"
        raise InvalidInput(rule, source=source)
    if not known and not format.columns.keys() & COUNTS:
        rule = f"{format.name} names no column for {' or '.join(COUNTS)}, and no number"
        raise InvalidInput(rule, source=source)
    if not known:
        wanted = [name for each in COUNTS for name in format.columns.get(each, Column(())).names]
        rule = f"no column '{' or '.join(wanted)}': how many processors a job held ({format.name})"
        raise InvalidInput(rule, source=source, line=1)
    return count or known[0]


_EMPTY: Job = {**dict.fromkeys(TEXTS, ""), **dict.fromkeys(NUMBERS, NAN), "part": 1.0}


def _read(job: Job, bound: _Bound, cells: Any) -> None:
    """Read every cell, also after one that cannot be read: what it ran for is counted.

    Raises:
        InvalidInput: of the first such cell.
    """
    complaint = None
    for ours, place, read in bound.cells:
        try:
            job[ours] = read(cells[place])
        except ValueError as error:
            complaint = complaint or InvalidInput(str(error), field=ours, value=cells[place])
    if complaint is not None:
        raise complaint


def _complete(job: Job, calendar: bool) -> None:
    """Fill in what follows from the rest.

    Raises:
        InvalidInput: the row contradicts itself.
    """
    job["started"] = not math.isnan(job["start"])
    if math.isnan(job["submit"]):
        job["submit"] = job["start"]
    if math.isnan(job["start"]):
        job["start"] = job["submit"]
    if math.isnan(job["run"]):
        job["run"] = job["end"] - job["start"]
    if math.isnan(job["deadline"]):
        job["deadline"] = job["submit"] + job["within"]
    _refuse_contradiction(job, calendar)
    job["end"] = job["start"] + job["run"]


def _limits(counted: str, calendar: bool) -> list[_Limit]:
    """Numbers that no job is without: the field, the least, the most, and what more of it is."""
    times = (EARLIEST_S, LATEST_S, "is not in the years 1990 to 2099")
    return [
        *((name, *(times if calendar else (0.0, MOST["s"], "is too late"))) for name in TIMES),
        *((name, 0.0, MOST["s"], "is too much") for name in ("part", "limit", "within", "power_w")),
        ("run", 0.0, LONGEST_S, "is more than a year"),
        (counted, 0.0, MOST_PROCESSORS, f"is more than {MOST_PROCESSORS:,} processors"),
    ]


def _refuse_odd(job: Job, limits: list[_Limit], counted: str, calendar: bool) -> None:
    """Refuse a number that no job has; what it is about is then not known."""
    for name, least, most, words in limits:
        value = job[name]
        if value < least or value > most:
            job[name] = NAN
            rule = words if least or value > most else "is negative"
            raise InvalidInput(rule, field=name, value=_shown(value, calendar and name in TIMES))
    number = job[counted]
    if number % 1.0 > 0.0:
        job[counted] = NAN
        raise InvalidInput("must be a whole number of processors", field=counted, value=number)


def _refuse_contradiction(job: Job, calendar: bool) -> None:
    """Refuse times that do not follow on each other."""
    for name in ("start", "deadline"):
        if job[name] < job["submit"]:
            rule = f"is before the submission at {_shown(job['submit'], calendar)}"
            raise InvalidInput(rule, field=name, value=_shown(job[name], calendar))
    if job["start"] - job["submit"] > LONGEST_S:
        rule = f"is more than a year before the start at {_shown(job['start'], calendar)}"
        raise InvalidInput(rule, field="submit", value=_shown(job["submit"], calendar))
    span_s, run_s = job["end"] - job["start"], job["run"]
    if run_s > span_s + OVERRUN_S or run_s > LONGEST_S or run_s < 0.0:
        job["run"] = NAN
        if run_s == span_s:
            job["end"] = NAN
            rule = "is before its start" if run_s < 0.0 else "is more than a year after its start"
            raise InvalidInput(rule, field="end", value=_shown(job["start"] + span_s, calendar))
        rule = f"is longer than the {span_s:g} s from its start to its end"
        raise InvalidInput(rule, field="run", value=run_s)


def _shown(seconds: float, calendar: bool) -> str | float:
    """An instant as people write it, where it is one of the calendar."""
    try:
        return f"{moment(seconds, None):%Y-%m-%dT%H:%M:%SZ}" if calendar else seconds
    except OverflowError:
        return seconds


def _unfit(job: Job, counted: str) -> str | None:
    if math.isnan(job["submit"]):
        return "was never submitted"
    if math.isnan(job["run"]):
        return "did not run, or still runs"
    if not job["run"] > 0.0:
        return "ran for 0 s"
    if not job[counted] >= 1.0:
        return f"uses no {counted}"
    if not job["part"] > 0.0:
        return "uses no part of a GPU"
    return None


def _trace(
    columns: dict[str, Any], bound: _Bound, format: Format, ledger: Ledger, counted: str
) -> Trace:
    columns["processors"] = columns.pop(counted)
    numbers = {name: np.array(columns[name]) for name in (*_KEPT, "processors", "started", "line")}
    numbers["asked"] = numbers["run"] * numbers["processors"] * numbers["part"]
    order = _near_others(numbers, bound, ledger)
    texts = {name: np.array(columns[name], dtype=object)[order] for name in TEXTS}
    numbers = {name: column[order] for name, column in numbers.items()}
    ledger.kept = order.size, float(numbers["asked"].sum())
    return Trace(
        format=format,
        **texts,
        **{f"{name}_s": numbers[name] for name in (*_KEPT[:6], "asked")},
        power_w=numbers["power_w"],
        part=numbers["part"],
        rows=np.ones(order.size, dtype=np.int64),
        processors=numbers["processors"].astype(np.int64),
        used=tuple(bound.used),
        ledger=ledger,
        calendar=bound.calendar,
        assumptions=tuple(_notes(format, counted, numbers["started"] > 0.0, bound.stamps)),
    )


def _near_others(numbers: Mapping[str, Floats], bound: _Bound, ledger: Ledger) -> Ints:
    """Rows by submission, without those that a year without any parts from most of the others.

    Beside such a one, servers that wait for the next job would cost more than all the jobs.
    """
    submit_s = numbers["submit"]
    order = np.argsort(submit_s, kind="stable")
    group = np.concatenate([[0], np.cumsum(np.diff(submit_s[order]) > LONGEST_S)])
    most = int(np.bincount(group).argmax())
    for row in order[group != most].tolist():
        shown = _shown(float(submit_s[row]), bound.calendar)
        rule = "is more than a year from the other jobs"
        gpu_s, line = float(numbers["asked"][row]), int(numbers["line"][row])
        theirs = bound.theirs.get("submit") or bound.theirs["start"]
        ledger.malformed(line, rule, theirs, shown, gpu_s=gpu_s)
    return np.asarray(order[group == most])


def _notes(format: Format, counted: str, started: Bools, zone: str | None) -> Iterator[str]:
    yield from format.notes
    if zone is not None:
        yield f"times without an offset are those of {zone} (--timezone says otherwise)"
    if counted != "gpus":
        yield f"each of a job's {counted} counts as one processor"
    if not started.all():
        which = f"{int((~started).sum()):,} jobs" if started.any() else "any job"
        yield f"the trace says no start of {which}: the submission is taken for it"
