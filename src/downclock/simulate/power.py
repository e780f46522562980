"""Power spans of a run: servers stay awake for what really runs, and go down when they fail.

A promised period (waking, then on) ends as long after its last task as was promised, wherever
that task really ends. Periods that grow into each other become one. A failure cuts a period; the
server wakes again after the repair if work is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.problem.platform import Platform
from downclock.schedule.schedule import DOWN, ON, WAKING, PowerSpans, Schedule
from downclock.simulate.chances import Fate
from downclock.units import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Downtimes:
    """When servers and processors are down, rows (k,) by machine, then start; disjoint."""

    server: Ints
    start_s: Floats
    end_s: Floats
    processor: Ints
    processor_start_s: Floats
    processor_end_s: Floats

    @classmethod
    def of(cls, fate: Fate) -> Downtimes:
        """Sort the incidents of a fate; one that comes during a repair makes it longer."""
        return cls(
            *_joined(fate.server_down, fate.server_down_s, fate.repair_s),
            *_joined(fate.processor_down, fate.processor_down_s, fate.repair_s),
        )

    @property
    def count(self) -> int:
        """Number of times anything went down."""
        return self.server.size + self.processor.size

    def of_processors(self, platform: Platform) -> tuple[Ints, Floats, Floats]:
        """Offsets (p + 1,), starts and usable-again times of every processor's downtimes.

        A processor can be used again when its server is repaired and awake.
        """
        p = platform.processor_count
        first = platform.first_processor
        held = np.diff(first)[self.server]
        shift = np.arange(held.sum()) - np.repeat(np.cumsum(held) - held, held)
        processor = np.concatenate([np.repeat(first[self.server], held) + shift, self.processor])
        ready_s = self.end_s + platform.wake_s[self.server]
        start_s = np.concatenate([np.repeat(self.start_s, held), self.processor_start_s])
        end_s = np.concatenate([np.repeat(ready_s, held), self.processor_end_s])
        order = np.lexsort((start_s, processor))
        offsets = np.searchsorted(processor[order], np.arange(p + 1)).astype(np.int64)
        return offsets, start_s[order], end_s[order]


def _joined(machine: Ints, start_s: Floats, repair_s: float) -> tuple[Ints, Floats, Floats]:
    """Incidents by machine and time, those that meet as one."""
    order = np.lexsort((start_s, machine))
    machine, start_s = machine[order], start_s[order]
    begins = np.ones(machine.size, dtype=bool)
    same = machine[1:] == machine[:-1]
    begins[1:] = ~same | (start_s[1:] > start_s[:-1] + repair_s)
    ends = np.append(begins[1:], True)[: machine.size]
    return machine[begins], start_s[begins], start_s[ends] + repair_s


@dataclass(frozen=True, slots=True, eq=False)
class Guests:
    """Segments that ran where they were not promised, rows (k,)."""

    server: Ints
    start_s: Floats
    end_s: Floats


NOBODY = Guests(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))


@dataclass(slots=True)
class Period:
    """Awake from ``start_s`` (waking) and ``on_s`` (on) to ``end_s``."""

    start_s: float
    on_s: float
    end_s: float


def realised_spans(
    platform: Platform,
    promised: Schedule,
    row_end_s: Floats,
    downtimes: Downtimes,
    guests: Guests = NOBODY,
) -> PowerSpans:
    """Spans of the run; ``row_end_s`` is when each promised segment really ended (m,)."""
    segments, spans = promised.segments, promised.spans
    server = platform.server[segments.processor]
    changed = np.zeros(platform.server_count, dtype=bool)
    changed[server[row_end_s != segments.end_s]] = True
    changed[downtimes.server] = changed[guests.server] = True
    kept = ~changed[spans.server]
    rows: list[tuple[int, int, float, float]] = []
    by_server = _grouped(server, changed)
    spans_of = _grouped(spans.server, changed)
    for j in np.flatnonzero(changed):
        mine = spans_of.get(int(j), np.empty(0, dtype=np.int64))
        held = by_server.get(int(j), np.empty(0, dtype=np.int64))
        periods = _periods(spans, mine, bool(platform.initially_on[j]))
        moved = _moved(periods, segments.start_s[held], segments.end_s[held], row_end_s[held])
        hit = np.flatnonzero(downtimes.server == j)
        taken = guests.server == j
        if taken.any():
            wake_s = float(platform.wake_s[j])
            moved = _with_guests(moved, guests.start_s[taken], guests.end_s[taken], wake_s)
        cuts = list(zip(downtimes.start_s[hit], downtimes.end_s[hit], strict=True))
        rows += _rows(int(j), moved, cuts, float(platform.wake_s[j]))
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    return PowerSpans(
        np.concatenate([spans.server[kept], table[:, 0].astype(np.int64)]),
        np.concatenate([spans.state[kept], table[:, 1].astype(np.int64)]),
        np.concatenate([spans.start_s[kept], table[:, 2]]),
        np.concatenate([spans.end_s[kept], table[:, 3]]),
    )


def _grouped(server: Ints, changed: Bools) -> dict[int, Ints]:
    """Rows of each changed server."""
    rows = np.flatnonzero(changed[server])
    rows = rows[np.argsort(server[rows], kind="stable")]
    cut = np.flatnonzero(np.diff(server[rows])) + 1
    return {int(server[part[0]]): part for part in np.split(rows, cut) if part.size}


def _periods(spans: PowerSpans, mine: Ints, initially_on: bool) -> list[Period]:
    """Join a server's waking and on spans to periods; time 0 on where it begins so."""
    mine = mine[np.argsort(spans.start_s[mine], kind="stable")]
    periods: list[Period] = []
    if initially_on and (mine.size == 0 or spans.start_s[mine[0]] > 0.0):
        periods.append(Period(0.0, 0.0, float(spans.start_s[mine[0]]) if mine.size else np.inf))
    waking = False
    for row in mine:
        start_s, end_s = float(spans.start_s[row]), float(spans.end_s[row])
        if spans.state[row] == WAKING:
            periods.append(Period(start_s, end_s, end_s))
        elif spans.state[row] == ON and (waking or (periods and periods[-1].end_s == start_s)):
            periods[-1].end_s = end_s
        elif spans.state[row] == ON:
            periods.append(Period(start_s, start_s, end_s))
        waking = bool(spans.state[row] == WAKING)
    return periods


def _moved(periods: list[Period], start_s: Floats, end_s: Floats, real_s: Floats) -> list[Period]:
    """Move each period's end with its last task, and join those that meet."""
    begins = np.array([period.start_s for period in periods])
    which = np.searchsorted(begins, start_s, side="right") - 1
    moved: list[Period] = []
    for k, period in enumerate(periods):
        mine = which == k
        end, real = end_s[mine].max(initial=-np.inf), real_s[mine].max(initial=-np.inf)
        until = period.end_s
        if np.isfinite(until) and np.isfinite(real):
            until = max(until + (real - end), real)
        elif np.isfinite(real):
            until = max(until, real)
        if moved and period.start_s < moved[-1].end_s:
            moved[-1].end_s = max(moved[-1].end_s, until)
        else:
            moved.append(Period(period.start_s, period.on_s, until))
    return moved


def _with_guests(
    periods: list[Period], start_s: Floats, end_s: Floats, wake_s: float
) -> list[Period]:
    """Stay on, or wake, for what was not promised here."""
    found = list(periods)
    for start, end in zip(start_s, end_s, strict=True):
        if not any(p.on_s <= start <= p.end_s for p in found):
            found.append(Period(float(start) - wake_s, float(start), float(end)))
        else:
            on = max((p for p in found if p.on_s <= start <= p.end_s), key=lambda p: p.end_s)
            on.end_s = max(on.end_s, float(end))
    found.sort(key=lambda period: period.start_s)
    joined: list[Period] = []
    for period in found:
        if joined and period.start_s <= joined[-1].end_s:
            joined[-1].end_s = max(joined[-1].end_s, period.end_s)
        else:
            joined.append(period)
    return joined


def _rows(
    server: int, periods: list[Period], cuts: list[tuple[float, float]], wake_s: float
) -> list[tuple[int, int, float, float]]:
    """Write periods as spans, interrupted where the server is down."""
    rows = [(server, DOWN, start, end) for start, end in cuts]
    for period in periods:
        pieces = [period]
        for down_s, up_s in cuts:
            last = pieces[-1]
            if up_s <= last.start_s or down_s >= last.end_s:
                continue
            pieces.pop()
            if down_s > last.start_s:
                pieces.append(Period(last.start_s, min(last.on_s, down_s), down_s))
            if last.end_s > up_s + wake_s:
                pieces.append(Period(up_s, up_s + wake_s, last.end_s))
            if not pieces:
                break
        for piece in pieces:
            if piece.on_s > piece.start_s:
                rows.append((server, WAKING, piece.start_s, piece.on_s))
            if piece.end_s > piece.on_s:
                rows.append((server, ON, piece.on_s, piece.end_s))
    return rows
