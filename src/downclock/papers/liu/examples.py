"""The worked examples of liu sections 4 to 6, each number beside the printed one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from downclock.papers.liu import PAPER
from downclock.papers.rows import Item, Row, Settings, against_itself, claimed, printed
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


def begun(reading: Reading) -> Mapping:
    """CPU P1 and GPU P2 with the six jobs at time 0."""
    queues = [Queue(CPU, True, LEVELS), Queue(GPU, False, LEVELS)]
    rules = Rules(reading=reading, threshold=Fraction(1, 5))
    mapping = Mapping(rules, queues, now=Fraction(0))
    mapping.begin(JOBS)
    return mapping


def play(mapping: Mapping, until: Number) -> list[tuple[Number, Job]]:
    """Let jobs run for their full worst case up to a time; return those that end, and when."""
    ended: list[tuple[Number, Job]] = []
    while True:
        busy = [q for q in mapping.queues if q.running >= 0]
        ends = [(mapping.now + q.remaining[q.running] / q.speed, q.running, q) for q in busy]
        end, job, queue = min(ends, default=(until, -1, None), key=lambda each: each[:2])
        if end > until or queue is None:
            break
        ended.append((end, queue.jobs[job]))
        mapping.advance(end)
        mapping.finish(job)
    if until < math.inf:
        mapping.advance(until)
    return ended


def loads(mapping: Mapping, less: Number = 0) -> list[float]:
    """Load of every processor (Def. 3), each job so much shorter than its worst case."""
    left = [
        [(q.jobs[j].deadline, j, r - less) for j, r in q.remaining.items()] for q in mapping.queues
    ]
    return [float(load(jobs, mapping.now)) for jobs in left]


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
        _row("load(P1) after Assignment", 0.333, start[CPU]),
        _row("load(P2) after Assignment", 0.467, start[GPU]),
        _row("demand(P1) after balancing", 6.0, demand[CPU]),
        _row("demand(P2) after balancing", 6.0, demand[GPU]),
        _row("load(P1) after balancing", 0.6, balanced[CPU]),
        _row("load(P2) after balancing", 0.4, balanced[GPU]),
        _row("level of P1", 0.8, float(mapping.queues[CPU].levels[mapping.queues[CPU].level])),
        _row("level of P2", 0.5, float(mapping.queues[GPU].levels[mapping.queues[GPU].level])),
    ]
    return [*rows, *_arrival(), *_average()]


def _row(quantity: str, value: float, ours: float, digits: int = 3) -> Row:
    return printed((PAPER, "examples"), quantity, value, ours, "1", digits=digits)


def _own(quantity: str, value: float, ours: float, digits: int, note: str) -> Row:
    return against_itself((PAPER, "examples"), quantity, value, ours, "1", digits=digits, note=note)


def _arrival() -> list[Row]:
    """J7 arrives at 4: as published it makes J5 move, by the paper's own rules it just fits."""
    mapping = begun(PUBLISHED)
    play(mapping, Fraction(4))
    wall_s = {j: q.speed for q in mapping.queues for j in (q.running,) if j >= 0}
    mapping.arrive(J7)
    gpu = mapping.queues[GPU]
    counted = [
        (gpu.jobs[j].deadline, j, left / wall_s[j] if j == gpu.running else left)
        for j, left in gpu.remaining.items()
    ]
    whole = [
        (gpu.jobs[j].deadline, j, left if j == gpu.running else gpu.jobs[j].times[GPU])
        for j, left in gpu.remaining.items()
    ]
    rows = [
        _row("load(P1, 4) after J7 came", 0.571, loads(mapping)[CPU]),
        _row("load(P2, 4) after J7 came, the running job at its locked level", 0.79,
             float(load(counted, mapping.now)), digits=2),
        _own("load(P2, 4) after J7 came, by Definition 3", 0.79, float(load(whole, mapping.now)), 2,
             "J5 begins anew on P2; the printed load counts the running job by the wall clock"),
    ]  # fmt: skip
    strict = begun(SAFE_FREE)
    play(strict, Fraction(4))
    strict.arrive(J7)
    why = "Theorem 1 accepts J7 there: load at most 1"
    refused = against_itself((PAPER, "examples"), "load(P1, 4) with J7 is too high for Theorem 1",
                             1.0, loads(strict)[CPU], "1", relation=">", note=why)  # fmt: skip
    return [*rows, refused]


def _average() -> list[Row]:
    """Average times half a unit below the worst case."""
    hoped = loads(begun(SAFE_FREE), Fraction(1, 2))
    why = "the two printed loads are exchanged; both give level v1"
    return [
        _own("load(P1), average times", 0.3, hoped[CPU], 1, why),
        _own("load(P2), average times", 0.4, hoped[GPU], 1, why),
    ]


def constant_level(_: Settings) -> list[Row]:
    """Theorem 2, "a constant level is optimal", on the paper's own jobs: energy s² per work."""
    where, unit = (PAPER, "theorem2"), "1"
    balanced = begun(SAFE_FREE)
    level = [float(queue.levels[queue.level]) for queue in balanced.queues]
    work = [sum(queue.remaining.values()) for queue in balanced.queues]
    constant = sum(v**2 * float(w) for v, w in zip(level, work, strict=True))
    plain = assign(JOBS, [CPU, GPU])
    alone = sum(0.25 * float(job.times[plain[job.id] or CPU]) for job in JOBS)
    apart = [least_energy(queue.remaining, queue.jobs, mixed=False) for queue in balanced.queues]
    mixed = [least_energy(queue.remaining, queue.jobs, mixed=True) for queue in balanced.queues]
    note = f"a constant level for each processor takes {constant:g}"
    return [
        claimed(where, "one level for each job, same assignment", ">", constant - 1e-6, sum(apart),
                unit, note),
        claimed(where, "levels that change at any time, same assignment", ">", constant - 1e-6,
                sum(mixed), unit, note),
        claimed(where, "constant levels without Load-Balancing", ">", constant - 1e-6, alone, unit,
                f"{note}; balancing costs the rest"),
    ]  # fmt: skip


def least_energy(remaining: dict[int, Number], jobs: dict[int, Job], *, mixed: bool) -> float:
    """Least energy of one processor's jobs at `LEVELS`, earliest deadline first, by a program."""
    from scipy.optimize import linprog

    order = sorted(remaining, key=lambda j: (jobs[j].deadline, j))
    speeds = np.array([float(v) for v in LEVELS])
    work = np.repeat([float(remaining[j]) for j in order], speeds.size)
    speed = np.tile(speeds, len(order))
    after = np.tril(np.ones((len(order), len(order)))).repeat(speeds.size, axis=1)
    due = np.array([float(jobs[j].deadline) for j in order])
    each = np.kron(np.eye(len(order)), np.ones(speeds.size))
    found = linprog(
        work * speed**2,
        A_ub=after * (work / speed),
        b_ub=due,
        A_eq=each,
        b_eq=np.ones(len(order)),
        bounds=(0.0, 1.0),
        integrality=np.full(work.size, 0 if mixed else 1),
    )
    assert found.fun is not None
    return float(found.fun)


def competitive(_: Settings) -> list[Row]:
    """The speed-competitive ratio of 2, taken over from FF-3C: three CPUs, one GPU, 45 jobs."""
    kinds = [CPU, CPU, CPU, GPU]
    sizes = ((18.0, 99.9, 100.0), (1.8, 9.99, 10.0), (0.2, 0.999, 1.0))
    jobs = [
        Job(15 * k + i, 0.0, deadline, (cpu, gpu))
        for k, (cpu, gpu, deadline) in enumerate(sizes)
        for i in range(15)
    ]
    shared = [job for job in jobs if job.id % 3 == 0]
    fits = max(float(load(waiting(shared, CPU), 0.0)), 0.0)
    fast = [Job(j.id, j.arrival, j.deadline, (j.times[0] / 2, j.times[1] / 2)) for j in jobs]
    left = sum(place is None for place in assign(fast, kinds).values())
    note = f"a third of them on each CPU have load {fits:g} at speed 1"
    quantity = "jobs without a place at twice the speed, of 45 that fit at speed 1"
    return [claimed((PAPER, "speedup"), quantity, "<", 0.5, float(left), "jobs", note)]


ITEMS = (
    Item("examples", "Worked examples of sections 4 to 6", examples),
    Item("theorem2", "Theorem 2: a constant level is optimal", constant_level),
    Item("speedup", "Section 4: a speed-competitive ratio of 2", competitive),
)
