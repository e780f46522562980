"""Every worked example of liu in exact fractions, in the strict and in the published reading."""

from __future__ import annotations

from fractions import Fraction

import pytest

from downclock.planners.mapping.mapping import Mapping, Rules
from downclock.planners.mapping.queue import LITERAL, PUBLISHED, SAFE_FREE, Queue, Reading
from downclock.planners.mapping.rules import Job, assign, balance, load, lowest_level, waiting

CPU, GPU = 0, 1
LEVELS = (Fraction(1, 2), Fraction(4, 5), Fraction(1))
"""v1 = 0.5, v2 = 0.8, vmax = 1 (liu section 4)."""

JOBS = [
    Job(i + 1, Fraction(0), Fraction(d), (Fraction(c), Fraction(g)))
    for i, (c, g, d) in enumerate(
        [(6, 2, 10), (2, 1, 5), (4, 3, 15), (6, 1, 8), (3, 4, 12), (1, 3, 4)]
    )
]
"""J1(6, 2, 10), J2(2, 1, 5), ... of liu section 4: (e^c, e^g, d)."""

J7 = Job(7, Fraction(4), Fraction(11), (Fraction(4), Fraction(6)))


def started(reading: Reading, threshold: Fraction = Fraction(1, 5)) -> Mapping:
    """The example's CPU P1 and GPU P2 with the six jobs at time 0."""
    queues = [Queue(CPU, True, LEVELS), Queue(GPU, False, LEVELS)]
    mapping = Mapping(Rules(reading=reading, threshold=threshold), queues, now=Fraction(0))
    assert mapping.begin(JOBS) == []
    return mapping


def played(mapping: Mapping, until: Fraction) -> None:
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


def loads(mapping: Mapping) -> list[Fraction]:
    return [
        load([(q.jobs[j].deadline, j, left) for j, left in q.remaining.items()], mapping.now)
        for q in mapping.queues
    ]


def test_definition_3_example_gives_one_third():
    assert load(
        [(Fraction(4), 1, Fraction(1)), (Fraction(12), 2, Fraction(3))], Fraction(0)
    ) == Fraction(1, 3)


def test_load_is_infinite_where_work_remains_at_its_deadline():
    assert load([(Fraction(4), 1, Fraction(1))], Fraction(4)) == float("inf")
    assert load([(Fraction(4), 1, Fraction(0))], Fraction(4)) == 0


def test_heterogeneity_and_heavy_jobs_are_those_printed():
    assert [job.heterogeneity for job in JOBS] == [3, 2, Fraction(4, 3), 6, Fraction(4, 3), 3]
    heavy = {job.id for job in JOBS if any(job.heavy(kind) for kind in job.others)}
    assert heavy == {1, 4, 6}


def test_assignment_puts_j5_and_j6_on_the_cpu_with_loads_1_3_and_7_15():
    placed = assign(JOBS, [CPU, GPU])
    assert {i for i, p in placed.items() if p == CPU} == {5, 6}
    held = [[job for job in JOBS if placed[job.id] == p] for p in (CPU, GPU)]
    assert load(waiting(held[CPU], CPU), Fraction(0)) == Fraction(1, 3)
    assert load(waiting(held[GPU], GPU), Fraction(0)) == Fraction(7, 15)


@pytest.mark.parametrize("time_on", ["receiver", "giver"])
@pytest.mark.parametrize("threshold", [Fraction(0), Fraction(1, 10), Fraction(1, 5)])
def test_load_balancing_moves_j2_and_both_demands_are_6(time_on, threshold):
    placed = balance(JOBS, [CPU, GPU], assign(JOBS, [CPU, GPU]), threshold, time_on=time_on)
    assert {i for i, p in placed.items() if p == CPU} == {2, 5, 6}
    demand = [sum(j.times[p] for j in JOBS if placed[j.id] == p) for p in (CPU, GPU)]
    assert demand == [6, 6]


def test_levels_at_time_0_are_v2_and_v1():
    mapping = started(SAFE_FREE)
    assert loads(mapping) == [Fraction(3, 5), Fraction(6, 15)]
    assert [q.levels[q.level] for q in mapping.queues] == [Fraction(4, 5), Fraction(1, 2)]


@pytest.mark.parametrize("reading", [SAFE_FREE, LITERAL])
def test_strictly_j7_is_accepted_on_the_cpu_at_load_17_20(reading):
    """Theorem 1 accepts what the paper says it refuses: load(P1 + J7, 4) = 0.85."""
    mapping = started(reading)
    played(mapping, Fraction(4))
    assert mapping.queues[CPU].remaining == {5: Fraction(14, 5)}
    assert mapping.arrive(J7) == CPU
    assert loads(mapping)[CPU] == Fraction(17, 20)
    assert mapping.queues[CPU].levels[mapping.queues[CPU].level] == 1


def test_as_published_j5_moves_and_the_loads_are_4_7_and_0_79():
    mapping = started(PUBLISHED)
    played(mapping, Fraction(4))
    assert mapping.arrive(J7) == CPU
    cpu, gpu = mapping.queues
    assert set(cpu.jobs) == {7}
    assert loads(mapping)[CPU] == Fraction(4, 7)
    assert gpu.remaining[5] == Fraction(56, 15)
    published = (Fraction(2) + Fraction(56, 15) + Fraction(3)) / 11
    assert round(float(published), 2) == 0.79
    assert [q.levels[q.level] for q in mapping.queues] == [Fraction(4, 5), Fraction(4, 5)]


def test_strictly_the_load_of_p2_with_j5_moved_unstarted_is_8_11():
    """Definition 3 counts top-level times: 1 left of J1, 4 of J5, 3 of J3; 0.727, not 0.79."""
    queue = [
        (Fraction(10), 1, Fraction(1)),
        (Fraction(12), 5, Fraction(4)),
        (Fraction(15), 3, Fraction(3)),
    ]
    assert load(queue, Fraction(4)) == Fraction(8, 11)


def test_aggressive_loads_are_0_4_and_0_3_after_balancing():
    """The paper prints them swapped; both levels are v1 either way."""
    rules = Rules(scheme="aggressive", threshold=Fraction(1, 5), average=Fraction(1))
    mapping = Mapping(rules, [Queue(CPU, True, LEVELS), Queue(GPU, False, LEVELS)], now=Fraction(0))
    short = [
        Job(j.id, j.arrival, j.deadline, tuple(t - Fraction(1, 2) for t in j.times)) for j in JOBS
    ]
    mapping.begin(JOBS)
    held = [[j for j in short if j.id in q.jobs] for q in mapping.queues]
    hoped = [load(waiting(h, p), Fraction(0)) for p, h in enumerate(held)]
    assert hoped == [Fraction(2, 5), Fraction(3, 10)]
    assert [lowest_level(LEVELS, v) for v in hoped] == [0, 0]
    unbalanced = assign(JOBS, [CPU, GPU])
    held = [[j for j in short if unbalanced[j.id] == p] for p in (CPU, GPU)]
    assert [load(waiting(h, p), Fraction(0)) for p, h in enumerate(held)] == [
        Fraction(1, 4),
        Fraction(1, 3),
    ]


def test_a_constant_level_is_not_optimal_and_balancing_costs_energy():
    """Energy s² per unit of work: 5.34 as mapped, 2.75 without balancing (lowest levels)."""
    balanced = started(SAFE_FREE)
    plain = started(SAFE_FREE, threshold=float("inf"))

    def energy(mapping: Mapping) -> Fraction:
        return sum(q.levels[q.level] ** 2 * sum(q.remaining.values()) for q in mapping.queues)

    assert energy(balanced) == Fraction(4, 5) ** 2 * 6 + Fraction(1, 2) ** 2 * 6
    assert float(energy(balanced)) == 5.34
    assert energy(plain) == Fraction(11, 4)
