"""A processor's queue against jobs run one by one: levels and answers in exact fractions."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from downclock.planners.mapping.queue import LITERAL, SAFE_FREE, SAFE_LOCKED, Queue, Reading
from downclock.planners.mapping.rules import Job, assign, balance, load, lowest_level, waiting

LEVELS = tuple(Fraction(k, 5) for k in (2, 3, 4, 5))
READINGS = (SAFE_FREE, SAFE_LOCKED)
NOW = Fraction(3)


def drawn_queue(rng: np.random.Generator, reading: Reading, preemptive: bool) -> Queue:
    """Up to four jobs, some begun; the one that runs may have done a part of its work."""
    queue = Queue(0, preemptive, LEVELS)
    for job in range(int(rng.integers(1, 5))):
        time, due = int(rng.integers(1, 12)), int(rng.integers(4, 40))
        done = Fraction(int(rng.integers(0, 4)), 4) if job == 0 else Fraction(0)
        queue.add(Job(job, 0, Fraction(due), (Fraction(time), math.inf)), time * (1 - done))
    if rng.uniform() < 0.7:
        queue.running = 0
        if reading.locked:
            queue.locked_at[0] = int(rng.integers(4))
    return queue


def meets(queue: Queue, now: Fraction, level: Fraction) -> bool:
    """Run the jobs one after the other, the one that cannot be put back first, by deadline."""
    first = queue.running if not queue.preemptive else -1
    at = now
    for job in sorted(queue.jobs, key=lambda j: (j != first, queue.jobs[j].deadline, j)):
        speed = queue.levels[queue.locked_at[job]] if job in queue.locked_at else level
        at += queue.remaining[job] / speed
        if at > queue.jobs[job].deadline:
            return False
    return True


@pytest.mark.parametrize("preemptive", [False, True])
@pytest.mark.parametrize("reading", READINGS)
def test_the_safe_level_is_the_lowest_that_meets_every_deadline(reading, preemptive) -> None:
    rng, seen = np.random.default_rng(5), set()
    for _ in range(600):
        queue = drawn_queue(rng, reading, preemptive)
        enough = [a for a, level in enumerate(LEVELS) if meets(queue, NOW, level)]
        found = queue.safe_level(NOW, reading)
        assert found == (enough[0] if enough else len(LEVELS) - 1)
        seen.add((found, bool(enough)))
    assert len(seen) == 5  # every level, and none


@pytest.mark.parametrize("preemptive", [False, True])
@pytest.mark.parametrize("reading", READINGS)
def test_a_job_is_accepted_where_all_meet_their_deadlines_at_the_top_level(
    reading, preemptive
) -> None:
    rng, answers = np.random.default_rng(6), []
    for _ in range(600):
        queue = drawn_queue(rng, reading, preemptive)
        queue.level = len(LEVELS) - 1
        time, due = int(rng.integers(1, 12)), int(rng.integers(4, 40))
        job = Job(9, 0, Fraction(due), (Fraction(time), math.inf))
        answer = queue.accepts(job, NOW, reading)
        queue.add(job)
        assert answer == meets(queue, NOW, Fraction(1))
        answers.append(answer)
    assert 60 < sum(answers) < 540


def test_a_job_that_moves_away_makes_room_and_a_part_of_a_job_needs_less() -> None:
    queue = Queue(0, False, LEVELS)
    queue.add(Job(0, 0, Fraction(20), (Fraction(8),)))
    queue.add(Job(1, 0, Fraction(20), (Fraction(8),)))
    new = Job(2, 0, Fraction(20), (Fraction(8),))
    assert not queue.accepts(new, Fraction(0), SAFE_FREE)
    assert queue.accepts(new, Fraction(0), SAFE_FREE, without=1)
    assert queue.accepts(new, Fraction(0), SAFE_FREE, share=Fraction(1, 2))
    assert not queue.accepts(new, Fraction(0), SAFE_FREE, share=Fraction(5, 8))
    nowhere = replace(new, times=(math.inf,))
    assert not queue.accepts(nowhere, Fraction(0), SAFE_FREE)


def test_what_is_begun_keeps_its_speed_where_clocks_are_locked() -> None:
    queue = Queue(0, True, LEVELS, level=3)
    queue.add(Job(0, 0, Fraction(20), (Fraction(8),)))
    queue.add(Job(1, 0, Fraction(10), (Fraction(2),)))
    queue.running, queue.locked_at[0] = 0, 0
    assert queue.speed == Fraction(2, 5)
    queue.advance(Fraction(5))
    assert queue.remaining[0] == 6
    assert queue.next_job() == 1
    queue.preemptive = False
    assert queue.next_job() == 0
    queue.advance(Fraction(100))
    assert queue.remaining[0] == 0
    queue.drop(0)
    assert (queue.running, queue.locked_at, queue.next_job()) == (-1, {}, 1)
    assert queue.speed == 1


def test_line_15_overlooks_the_job_in_the_way() -> None:
    """A blocker of 4 due at 100 and a job of 1 due at 6: load 1/6, but level 5/6 is needed."""
    queue = Queue(0, False, LEVELS)
    queue.add(Job(0, 0, Fraction(100), (Fraction(4),)))
    queue.add(Job(1, 0, Fraction(6), (Fraction(1),)))
    queue.running = 0
    assert LEVELS[queue.safe_level(Fraction(0), LITERAL)] == Fraction(2, 5)
    assert LEVELS[queue.safe_level(Fraction(0), SAFE_FREE)] == 1
    assert not meets(queue, Fraction(0), Fraction(4, 5))


def test_load_is_the_least_speed_that_meets_every_deadline() -> None:
    rng = np.random.default_rng(7)
    for _ in range(300):
        jobs = [
            Job(j, 0, Fraction(int(rng.integers(4, 40))), (Fraction(int(rng.integers(1, 9))),))
            for j in range(int(rng.integers(1, 5)))
        ]
        least = load(waiting(jobs, 0), NOW)
        queue = Queue(0, True, LEVELS)
        for job in jobs:
            queue.add(job)
        assert meets(queue, NOW, least)
        assert not meets(queue, NOW, least * Fraction(999, 1000))
        assert lowest_level((least / 2, least, 2 * least), least) == 1


def test_assigned_and_balanced_no_processor_is_overfull() -> None:
    rng, moved = np.random.default_rng(8), 0
    kinds = (0, 0, 1)
    for _ in range(100):
        jobs = []
        for j in range(int(rng.integers(2, 9))):
            times = tuple(Fraction(int(t)) for t in rng.integers(1, 9, 2))
            jobs.append(Job(j, 0, Fraction(int(rng.integers(10, 40))), times))
        placed = assign(jobs, kinds)
        if None in placed.values():
            continue
        even = balance(jobs, kinds, placed, Fraction(1, 10))
        moved += even != placed
        before, after = (_demands(jobs, kinds, each) for each in (placed, even))
        assert max(after) <= max(before)
        for p, kind in enumerate(kinds):
            mine = [job for job in jobs if even[job.id] == p]
            assert load(waiting(mine, kind), 0) <= 1
    assert moved > 20


def _demands(jobs: list[Job], kinds: tuple[int, ...], placed: dict) -> list[Fraction]:
    return [
        sum((job.times[kind] for job in jobs if placed[job.id] == p), Fraction(0))
        for p, kind in enumerate(kinds)
    ]


def test_nothing_is_in_time_after_all_times() -> None:
    """A blocker that never ends: no warning, whatever the deadline."""
    assert load([(np.inf, 0, 1.0)], np.float64(np.inf)) == np.inf
    assert load([(np.inf, 0, np.float64(np.inf))], 0.0) == np.inf
    assert load([], np.float64(np.inf)) == 0
