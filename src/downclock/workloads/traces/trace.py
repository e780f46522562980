"""A trace: what ran on a cluster, when, on how much of it. Columnar, whatever the format.

A format says which of its columns are ours and how their cells are read; `collected` reads any
sheet of rows by it. The rules a row must obey are here, once for all formats.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import tzinfo
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from downclock.errors import InvalidInput, suggestion
from downclock.units import Bools, Floats, Ints, Names
from downclock.workloads.traces.cells import CALENDAR, NAN, Read, readers
from downclock.workloads.traces.ledger import Ledger
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
_KEPT = ("submit", "start", "end", "run", "limit", "deadline", "power_w", "part")
"""All fields; ``part`` is that of a GPU, ``hosts`` the names of nodes."""


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


@dataclass(frozen=True, slots=True)
class Format:
    """What a kind of file is like.

    Attributes:
        name: what users call it.
        columns: its columns, by our field.
        signature: columns that tell it from others.
        pools: its queues have machines of their own.
        repeats: rows may share a name (tasks of a job array): they are numbered.
        notes: what reading it assumes, a sentence each.
        amend: changes a row's job, or says why it is left out.
    """

    name: str
    columns: Mapping[str, Column]
    signature: tuple[str, ...] = ()
    pools: bool = False
    repeats: bool = False
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
        started: the start is the file's, not the submission taken for it.
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
    started: Bools
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
    """A format's columns found in a header: (field, place, how to read) each."""

    cells: list[tuple[str, int, Read]] = field(default_factory=list)
    constants: Job = field(default_factory=dict)
    used: list[tuple[str, str]] = field(default_factory=list)
    calendar: bool = False


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
    columns: dict[str, Any] = {name: [] for name in TEXTS}
    columns |= {name: array("d") for name in (*_KEPT, counted, "started")}
    seen: dict[str, int] = {}
    for number, (line, cells) in enumerate(sheet.rows, start=1):
        try:
            job = _job(bound, cells)
            reason = _completed(job, format, counted)
            job["name"] = _unique(job["name"] or f"job{number}", seen, format)
        except InvalidInput as error:
            ledger.malformed(line, error.rule, error.field, error.value)
            continue
        gpu_s = job["run"] * job[counted] * job["part"]
        if reason is not None:
            ledger.drop(reason, 0.0 if math.isnan(gpu_s) else gpu_s)
            continue
        ledger.keep(gpu_s)
        for name, column in columns.items():
            column.append(job[name])
    if not columns["name"]:
        raise InvalidInput(_nothing(ledger, counted), source=ledger.source)
    return _trace(columns, bound, format, ledger, counted)


def _unique(name: str, seen: dict[str, int], format: Format) -> str:
    """Return the name, numbered where rows of the format may share one."""
    again = seen[name] = seen.get(name, 0) + 1
    if again == 1:
        return name
    if not format.repeats:
        raise InvalidInput("is the name of an earlier row", field="name", value=name)
    return f"{name}#{again}"


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
            continue
        read = words[column.read] if isinstance(column.read, str) else column.read
        bound.cells.append((ours, place[there.lower()], read))
        bound.used.append((ours, there))
        bound.calendar |= ours in TIMES and column.read in CALENDAR
    found = {ours for ours, *_ in bound.cells} | set(bound.constants)
    for alternatives in (("submit", "start"), ("run", "end")):
        if not found & set(alternatives):
            wanted = [
                name for ours in alternatives for name in format.columns.get(ours, Column(())).names
            ]
            rule = f"no column '{' or '.join(wanted)}' ({format.name})"
            if wanted:
                rule += suggestion(wanted[0], [name for name in header if name])
            raise InvalidInput(rule, source=source, line=1)
    return bound


def _counted(bound: _Bound, format: Format, count: str | None, source: str | Path) -> str:
    """Return the field that counts as processors."""
    there = [ours for ours, _ in bound.used if ours in COUNTS]
    known = [each for each in COUNTS if each in there]
    if count is not None and count not in known:
        rule = f"the file says nothing of {count}; it has {', '.join(known) or 'no counts at all'}"
        raise InvalidInput(rule, source=source)
    if not known:
        wanted = [name for each in COUNTS for name in format.columns.get(each, Column(())).names]
        rule = f"no column '{' or '.join(wanted)}': how many processors a job held ({format.name})"
        raise InvalidInput(rule, source=source, line=1)
    return count or known[0]


_EMPTY: Job = {**dict.fromkeys(TEXTS, ""), **dict.fromkeys(NUMBERS, NAN), "part": 1.0}


def _job(bound: _Bound, cells: Any) -> Job:
    job = {**_EMPTY, **bound.constants}
    for ours, place, read in bound.cells:
        try:
            job[ours] = read(cells[place])
        except ValueError as error:
            raise InvalidInput(str(error), field=ours, value=cells[place]) from None
    return job


def _completed(job: Job, format: Format, counted: str) -> str | None:
    """Fill in what follows from the rest; return why a sound row is left out.

    Raises:
        InvalidInput: the row contradicts itself.
    """
    reason = None if format.amend is None else format.amend(job)
    job["started"] = not math.isnan(job["start"])
    if math.isnan(job["submit"]):
        job["submit"] = job["start"]
    if math.isnan(job["start"]):
        job["start"] = job["submit"]
    if math.isnan(job["run"]):
        job["run"] = job["end"] - job["start"]
    job["end"] = job["start"] + job["run"]
    if math.isnan(job["deadline"]):
        job["deadline"] = job["submit"] + job["within"]
    for name in ("run", counted, "part", "limit", "within", "power_w"):
        if job[name] < 0.0:
            raise InvalidInput("is negative", field=name, value=job[name])
    if job["start"] < job["submit"]:
        rule = f"is before the submission at {job['submit']}"
        raise InvalidInput(rule, field="start", value=job["start"])
    if job[counted] == job[counted] and (job[counted] != round(job[counted]) or job[counted] > 1e7):
        rule = "must be a whole number of processors"
        raise InvalidInput(rule, field=counted, value=job[counted])
    return reason or _unfit(job, counted)


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
    order = np.argsort(np.array(columns["submit"]), kind="stable")
    texts = {name: np.array(columns[name], dtype=object)[order] for name in TEXTS}
    numbers = {name: np.array(columns[name])[order] for name in (*_KEPT, counted, "started")}
    started = numbers["started"] > 0.0
    asked_s = numbers["run"] * numbers[counted] * numbers["part"]
    notes = list(format.notes)
    if counted != "gpus":
        notes.append(f"each of a job's {counted} counts as one processor")
    if not started.all():
        which = f"{int((~started).sum()):,} jobs" if started.any() else "any job"
        notes.append(f"the trace says no start of {which}: the submission is taken for it")
    return Trace(
        format=format,
        **texts,
        **{f"{name}_s": numbers[name] for name in _KEPT[:6]},
        power_w=numbers["power_w"],
        part=numbers["part"],
        asked_s=asked_s,
        rows=np.ones(started.size, dtype=np.int64),
        processors=numbers[counted].astype(np.int64),
        started=started,
        used=tuple(bound.used),
        ledger=ledger,
        calendar=bound.calendar,
        assumptions=tuple(notes),
    )
