"""The worked examples of liu sections 4 to 6, each number beside the printed one."""

from __future__ import annotations

from fractions import Fraction

from downclock.papers.liu import PAPER
from downclock.papers.rows import Item, Row, Settings, judged
from downclock.planners.mapping.mapping import Mapping, Rules
from downclock.planners.mapping.queue import PUBLISHED, SAFE_FREE, Queue, Reading
from downclock.planners.mapping.rules import Job, Number, assign, load, waiting

CPU, GPU = 0, 1
LEVELS = (Fraction(1, 2), Fraction(4, 5), Fraction(1))
SIX = ((6, 2, 10), (2, 1, 5), (4, 3, 15), (6, 1, 8), (3, 4, 12), (1, 3, 4))
JOBS = [
    Job(i + 1, Fraction(0), Fraction(d), (Fraction(c), Fraction(g)))
    for i, (c, g, d) in enumerate(SIX)
]
J7 = Job(7, Fraction(4), Fraction(11), (Fraction(4), Fraction(6)))


def begun(reading: Reading, jobs: list[Job] | None = None) -> Mapping:
    """CPU P1 and GPU P2 with the six jobs at time 0."""
    queues = [Queue(CPU, True, LEVELS), Queue(GPU, False, LEVELS)]
    rules = Rules(reading=reading, threshold=Fraction(1, 5))
    mapping = Mapping(rules, queues, now=Fraction(0))
    mapping.begin(JOBS if jobs is None else jobs)
    return mapping


def play(mapping: Mapping, until: Number) -> None:
    """Let jobs run for their full worst case up to a time."""
    while True:
        ends = [
            (mapping.now + q.remaining[q.running] / q.speed, q.running)
            for q in mapping.queues
            if q.running >= 0
        ]
        end, job = min(ends, default=(until, -1))
        if end > until or job < 0:
            break
        mapping.advance(end)
        mapping.finish(job)
    mapping.advance(until)


def loads(mapping: Mapping) -> list[float]:
    """Load of every processor (Def. 3)."""
    return [
        float(load([(q.jobs[j].deadline, j, r) for j, r in q.remaining.items()], mapping.now))
        for q in mapping.queues
    ]


def examples(settings: Settings) -> list[Row]:
    """Assignment, balancing, levels, the arrival of J7, average times."""
    del settings
    placed = assign(JOBS, [CPU, GPU])
    held = [[job for job in JOBS if placed[job.id] == p] for p in (CPU, GPU)]
    start = [float(load(waiting(h, p), Fraction(0))) for p, h in enumerate(held)]
    mapping = begun(SAFE_FREE)
    balanced = loads(mapping)
    demand = [float(sum(q.remaining.values())) for q in mapping.queues]
    rows = [
        _row("load(P1) after Assignment", 1 / 3, start[CPU]),
        _row("load(P2) after Assignment", 7 / 15, start[GPU]),
        _row("demand(P1) after balancing", 6.0, demand[CPU]),
        _row("demand(P2) after balancing", 6.0, demand[GPU]),
        _row("load(P1) after balancing", 3 / 5, balanced[CPU]),
        _row("load(P2) after balancing", 6 / 15, balanced[GPU]),
        _row("level of P1", 0.8, float(mapping.queues[CPU].levels[mapping.queues[CPU].level])),
        _row("level of P2", 0.5, float(mapping.queues[GPU].levels[mapping.queues[GPU].level])),
    ]
    return [*rows, *_arrival(), *_average()]


def _row(
    quantity: str, published: float, ours: float, because: str = "", digits: int | None = None
) -> Row:
    return judged(PAPER, "examples", quantity, published, ours, "1", digits=digits, because=because)


def _arrival() -> list[Row]:
    """J7 arrives at 4: as published it makes J5 move, by the paper's own rules it just fits."""
    rows = []
    why = "Theorem 1 accepts J7 on P1 (load 0.85); nothing moves"
    for name, reading in (("as published", PUBLISHED), ("strict", SAFE_FREE)):
        mapping = begun(reading)
        play(mapping, Fraction(4))
        wall_s = {j: q.speed for q in mapping.queues for j in (q.running,) if j >= 0}
        mapping.arrive(J7)
        gpu = mapping.queues[GPU]
        counted = [
            (gpu.jobs[j].deadline, j, left / wall_s[j])
            if j == gpu.running and name == "as published"
            else (gpu.jobs[j].deadline, j, left)
            for j, left in gpu.remaining.items()
        ]
        rows.append(_row(f"load(P1, 4) with J7, {name}", 4 / 7, loads(mapping)[CPU], why))
        value = float(load(counted, mapping.now))
        rows.append(_row(f"load(P2, 4) with J7, {name}", 0.79, value, why, digits=2))
    return rows


def _average() -> list[Row]:
    """Average times half a unit below the worst case."""
    mapping = begun(SAFE_FREE)
    hoped = [
        load(
            [(q.jobs[j].deadline, j, left - Fraction(1, 2)) for j, left in q.remaining.items()],
            mapping.now,
        )
        for q in mapping.queues
    ]
    why = "the two printed loads are swapped; both give level v1"
    return [
        _row("load(P1), average times", 0.3, float(hoped[CPU]), why, digits=1),
        _row("load(P2), average times", 0.4, float(hoped[GPU]), why, digits=1),
    ]


ITEMS = (Item("examples", "Worked examples of sections 4 to 6", examples),)
