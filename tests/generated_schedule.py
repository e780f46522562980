"""A random valid schedule: tasks are placed one after another wherever they fit.

Every freedom of the model is used: split and paused tasks, clocks that change, migration, gangs,
failed attempts, retries, rejections that pass on to successors, waste in a last slot, and
servers that sleep, wake and are down between their tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from downclock.power.points import ClockRange, Clocks
from downclock.problem.problem import Problem
from downclock.schedule.schedule import (
    ASLEEP,
    DONE,
    DOWN,
    FAILED,
    ON,
    PENDING,
    REJECTED,
    WAKING,
    Outcomes,
    PowerSpans,
    Schedule,
    Segments,
)
from downclock.units import Floats, Ints

Point = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an attempt: where, after which pause, how long, how fast, how much."""

    processors: tuple[int, ...]
    gap_s: float
    length_s: float
    point: Point
    share: float


@dataclass(frozen=True, slots=True)
class Placed:
    """A piece with its start; ``held_from_s`` is when its processors were first held for it."""

    piece: Piece
    start_s: float
    end_s: float
    held_from_s: float


@dataclass(slots=True)
class Builder:
    """The schedule so far."""

    problem: Problem
    rng: np.random.Generator
    palettes: list[list[Point]] = field(init=False)
    rows: list[tuple[int, int, Placed]] = field(default_factory=list)
    finish_s: Floats = field(init=False)
    status: Ints = field(init=False)
    work: Floats = field(init=False)
    reason: list[str] = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.problem.tasks)
        self.palettes = [_palette(self.rng, kind.clocks) for kind in self.problem.platform.kinds]
        self.finish_s = np.zeros(n)
        self.status = np.full(n, DONE)
        self.work = np.where(self.rng.uniform(size=n) < 0.3, self.rng.uniform(0.6, 1.3, n), 1.0)
        self.reason = [""] * n


def random_schedule(problem: Problem, seed: int = 0) -> Schedule:
    """Return a valid schedule for ``problem``."""
    built = Builder(problem, np.random.default_rng([seed, 2]))
    for task in problem.edges.order(len(problem.tasks)):
        _decide(built, int(task))
    outcomes = Outcomes(built.status, np.array(built.reason, dtype=object), built.work)
    return Schedule(_segments(built), _spans(built), outcomes, policy="random")


def _palette(rng: np.random.Generator, clocks: Clocks) -> list[Point]:
    """The points used on a kind: few, so that chip-mates sometimes agree."""
    if not isinstance(clocks, ClockRange):
        return [tuple(point) for point in clocks.points.tolist()]
    core = rng.uniform(clocks.core_min, clocks.core_max, 3)
    memory = rng.uniform(clocks.memory_min, clocks.memory_max, 3)
    least = np.minimum(clocks.volt(core), clocks.volt_max)
    volt = least + (clocks.volt_max - least) * np.array([0.0, 0.0, rng.uniform()])
    return [tuple(point) for point in np.column_stack([core, memory, volt]).tolist()]


def _decide(built: Builder, task: int) -> None:
    """Run, reject, fail or leave one task, whose predecessors are decided."""
    edges, tasks = built.problem.edges, built.problem.tasks
    before = edges.before[edges.after == task]
    built.finish_s[task] = max([tasks.arrival_s[task], *built.finish_s[before]])
    if np.any(built.status[before] != DONE):
        _end(built, task, int(built.rng.choice([REJECTED, PENDING])), "a predecessor is not done")
    elif built.rng.uniform() < 0.05:
        _end(built, task, REJECTED, "not wanted")
    elif tasks.scale[task] > 0.0:
        _run(built, task)
    elif built.finish_s[task] > tasks.deadline_s[task]:
        _end(built, task, REJECTED, "deadline cannot be met")


def _end(built: Builder, task: int, status: int, reason: str) -> None:
    built.status[task] = status
    built.reason[task] = reason


def _run(built: Builder, task: int) -> None:
    """Place the attempts of a task; drop them all where the deadline would be missed."""
    fates = [built.rng.uniform() < 0.8]
    while not fates[-1] and len(fates) < 3 and built.rng.uniform() < 0.7:
        fates.append(built.rng.uniform() < 0.6)
    ready = float(built.finish_s[task])
    mine: list[tuple[int, int, Placed]] = []
    for whole in fates:
        placed = _attempt(built, task, ready, whole)
        if placed is None:
            return _end(built, task, REJECTED, "no processors for it")
        mine += [(task, mine[-1][1] + 1 if mine else 0, piece) for piece in placed]
        ready = max([ready, *(piece.end_s for piece in placed)])
    if fates[-1] and ready > built.problem.tasks.deadline_s[task]:
        return _end(built, task, REJECTED, "deadline cannot be met")
    built.rows += mine
    built.finish_s[task] = ready
    if not fates[-1]:
        _end(built, task, FAILED, "crashed")
    return None


def _attempt(built: Builder, task: int, ready: float, whole: bool) -> list[Placed] | None:
    """Place one attempt; an empty list where a failure cannot be cut to slots."""
    platform, rng = built.problem.platform, built.rng
    size = int(built.problem.tasks.processors[task])
    fits = built.problem.runnable()[task] & (
        np.bincount(platform.kind, minlength=len(platform.kinds)) >= size
    )
    if not fits.any():
        return None
    kind = int(rng.choice(np.flatnonzero(fits)))
    home = _home(built, kind, size)
    pieces = _pieces(built, task, kind, home, whole)
    if platform.kinds[kind].interrupt in ("none", "pause"):
        return _place(built, pieces, ready)
    placed: list[Placed] = []
    for piece in pieces:
        where = home
        if platform.kinds[kind].interrupt == "migrate":
            where = _home(built, kind, size)
        alone = Piece(where, 0.0, piece.length_s, piece.point, piece.share)
        placed += _place(built, [alone], ready + piece.gap_s, placed)
        ready = placed[-1].end_s
    return placed


def _home(built: Builder, kind: int, size: int) -> tuple[int, ...]:
    """Processors of one server where one has enough, else of whole servers but for the last."""
    platform, rng = built.problem.platform, built.rng
    pools = [
        np.flatnonzero((platform.kind == kind) & (platform.server == server))
        for server in rng.permutation(platform.server_count)
    ]
    for pool in pools:
        if pool.size >= size:
            return tuple(sorted(rng.choice(pool, size=size, replace=False).tolist()))
    return tuple(sorted(np.concatenate(pools)[:size].tolist()))


def _pieces(
    built: Builder, task: int, kind: int, home: tuple[int, ...], whole: bool
) -> list[Piece]:
    """Cut an attempt into parts that sum to 1, or to less where it fails."""
    rng, spec = built.rng, built.problem.platform.kinds[kind]
    slot_s = built.problem.platform.slot_s
    shares = rng.dirichlet(np.ones(int(rng.integers(1, 5))))
    points = [_point(built, task, kind) for _ in shares]
    if spec.clock == "locked":
        points = [points[0]] * len(shares)
    full = _full_times(built, task, kind, points)
    gaps = np.where(rng.uniform(size=len(shares)) < 0.5, 0.0, rng.uniform(0.0, 20.0, len(shares)))
    gaps[0] = 0.0
    if spec.interrupt == "none":
        gaps[:] = 0.0
    if not whole:
        shares = shares * rng.uniform(0.2, 0.9)
    lengths = shares * full
    if slot_s is not None:
        gaps = np.ceil(gaps / slot_s) * slot_s
        shares, lengths = _slotted(shares, full, slot_s, whole)
    rows = zip(gaps, lengths, points, shares, strict=True)
    return [Piece(home, float(g), float(d), p, float(s)) for g, d, p, s in rows if s > 0.0]


def _slotted(shares: Floats, full: Floats, slot_s: float, whole: bool) -> tuple[Floats, Floats]:
    """Round the parts to slots; the last part takes what is left and wastes the rest of a slot."""
    slots = np.floor(shares * full / slot_s)
    cut = slots * slot_s / full
    if whole:
        cut[-1] = 1.0 - cut[:-1].sum()
        slots[-1] = np.ceil(cut[-1] * full[-1] / slot_s - 1e-9)
    return cut, slots * slot_s


def _full_times(built: Builder, task: int, kind: int, points: list[Point]) -> Floats:
    """Run time of the whole task, as it turns out, at each point."""
    n = len(points)
    time_s, _ = built.problem.at(np.full(n, task), np.full(n, kind), np.array(points))
    return np.asarray(time_s * built.work[task])


def _point(built: Builder, task: int, kind: int) -> Point:
    palette = built.palettes[kind]
    times = _full_times(built, task, kind, palette)
    return palette[int(built.rng.choice(np.flatnonzero(np.isfinite(times))))]


def _place(
    built: Builder, pieces: list[Piece], ready: float, own: list[Placed] | None = None
) -> list[Placed]:
    """Put pieces, a gap before each, at the first time from ``ready`` where all of them fit."""
    platform = built.problem.platform
    others = [placed for _, _, placed in built.rows] + (own or [])
    used = np.array(sorted({p for piece in pieces for p in piece.processors}), dtype=np.int64)
    server = platform.server[used]
    waking = np.where(platform.initially_on[server], 0.0, platform.wake_s[server])
    start = _on_slot(max([ready, *waking.tolist()]), platform.slot_s)
    while True:
        block = _laid_out(pieces, start)
        blocker = max((_until(built, placed, others) for placed in block), default=0.0)
        if blocker <= start:
            return block
        start = _on_slot(blocker, platform.slot_s)


def _laid_out(pieces: list[Piece], start: float) -> list[Placed]:
    block: list[Placed] = []
    now = start
    for piece in pieces:
        held, now = now, now + piece.gap_s
        block.append(Placed(piece, now, now + piece.length_s, held))
        now += piece.length_s
    return block


def _on_slot(time_s: float, slot_s: float | None) -> float:
    return time_s if slot_s is None else float(np.ceil(time_s / slot_s - 1e-9)) * slot_s


def _until(built: Builder, new: Placed, others: list[Placed]) -> float:
    """Return when the latest of what keeps ``new`` from running is over; 0 where nothing does."""
    chip = built.problem.platform.chip
    mine = set(new.piece.processors)
    chips = set(chip[list(mine)].tolist())
    latest = 0.0
    for other in others:
        theirs = other.piece.processors
        shared = mine.intersection(theirs)
        if shared and new.held_from_s < other.end_s and other.held_from_s < new.end_s:
            latest = max(latest, other.end_s)
        clash = other.piece.point != new.piece.point and chips.intersection(chip[list(theirs)])
        if clash and new.start_s < other.end_s and other.start_s < new.end_s:
            latest = max(latest, other.end_s)
    return latest


def _segments(built: Builder) -> Segments:
    """One row per processor, in random order: the order of rows carries no meaning."""
    rows = [
        (task, attempt, processor, placed)
        for task, attempt, placed in built.rows
        for processor in placed.piece.processors
    ]
    built.rng.shuffle(rows)  # type: ignore[arg-type]
    return Segments.of(
        np.array([task for task, _, _, _ in rows], dtype=np.int64),
        np.array([processor for _, _, processor, _ in rows], dtype=np.int64),
        np.array([placed.start_s for *_, placed in rows]),
        np.array([placed.end_s for *_, placed in rows]),
        np.array([placed.piece.point for *_, placed in rows]).reshape(-1, 3),
        np.array([placed.piece.share for *_, placed in rows]),
        np.array([attempt for _, attempt, _, _ in rows], dtype=np.int64),
    )


Span = tuple[int, float, float]


def _spans(built: Builder) -> PowerSpans:
    """Power states of every server around the times it must be on."""
    platform = built.problem.platform
    rows: list[tuple[int, int, float, float]] = []
    for server in range(platform.server_count):
        busy = sorted(
            (placed.held_from_s, placed.end_s)
            for _, _, placed in built.rows
            for processor in placed.piece.processors
            if platform.server[processor] == server
        )
        rows += [(server, *span) for span in _server_spans(built, server, busy)]
    server, state, start, end = zip(*rows, strict=True) if rows else ((), (), (), ())
    return PowerSpans(np.array(server), np.array(state), np.array(start), np.array(end))


def _server_spans(built: Builder, server: int, busy: list[tuple[float, float]]) -> list[Span]:
    platform, rng = built.problem.platform, built.rng
    wake_s, awake = float(platform.wake_s[server]), bool(platform.initially_on[server])
    if not busy:
        return [(ASLEEP, 0.0, np.inf)] if rng.uniform() < 0.3 else []
    stretches = _stretches(rng, busy, wake_s)
    spans: list[Span] = []
    now = 0.0
    for k, (start, end) in enumerate(stretches):
        stays_on = k == 0 and awake and (start < wake_s or rng.uniform() < 0.6)
        if stays_on:
            spans += [] if rng.uniform() < 0.5 else [(ON, 0.0, end)]
        else:
            spans += _off(rng, now, start - wake_s, awake and k == 0)
            spans += [(WAKING, start - wake_s, start)] if wake_s > 0.0 else []
            spans += _on(rng, start, end)
        now = end
    if spans and spans[-1][0] == ON and rng.uniform() < 0.3:
        spans[-1] = (ON, spans[-1][1], np.inf)
    elif rng.uniform() < 0.5:
        spans.append((ASLEEP, now, np.inf))
    return spans


def _stretches(
    rng: np.random.Generator, busy: list[tuple[float, float]], wake_s: float
) -> list[tuple[float, float]]:
    """Join busy times into stretches with room to wake between them, sometimes longer ones."""
    joined = [busy[0]]
    for start, end in busy[1:]:
        before = joined[-1][1]
        if start - before <= wake_s + 0.5 or rng.uniform() < 0.3:
            joined[-1] = (joined[-1][0], max(before, end))
        else:
            joined.append((start, end))
    return joined


def _off(rng: np.random.Generator, start: float, end: float, from_on: bool) -> list[Span]:
    """Sleep or be down between two times; a sleep needs no span unless the server begins on."""
    if end <= start:
        return []
    middle = float(rng.uniform(start, end))
    choices: list[list[Span]] = [
        [(ASLEEP, start, end)],
        [(DOWN, start, end)],
        [(ASLEEP, start, middle), (DOWN, middle, end)],
        [(DOWN, start, middle)],
    ]
    return [] if not from_on and rng.uniform() < 0.4 else choices[int(rng.integers(4))]


def _on(rng: np.random.Generator, start: float, end: float) -> list[Span]:
    if rng.uniform() < 0.7:
        return [(ON, start, end)]
    middle = float(rng.uniform(start, end))
    return [(ON, start, middle), (ON, middle, end)]
