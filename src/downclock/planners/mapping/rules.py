"""Definitions and algorithms of liu: load, Assignment, Load-Balancing, levels.

Plain functions on numbers of any kind: floats in policies, exact fractions in tests. A job's
``times`` are its worst-case run times at the top level, one per processor type (liu: CPU, GPU);
infinite where it cannot run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Number: TypeAlias = Any
"""A float or a Fraction."""

Waiting: TypeAlias = tuple[Number, int, Number]
"""Deadline, id and remaining top-level time of an unfinished job on a processor."""

TimeOn: TypeAlias = Literal["receiver", "giver"]


@dataclass(frozen=True, slots=True)
class Job:
    """An application J_i = (r, d, e^c, e^g) of liu section 3; ``deadline`` is absolute."""

    id: int
    arrival: Number
    deadline: Number
    times: tuple[Number, ...]

    @property
    def favourite(self) -> int:
        """The type with the least time (Def. 2); ties go to the first type."""
        return min(range(len(self.times)), key=lambda kind: self.times[kind])

    @property
    def others(self) -> list[int]:
        """The other types the job can run on, fastest first."""
        kinds = sorted(range(len(self.times)), key=lambda kind: self.times[kind])
        return [k for k in kinds if k != self.favourite and self.times[k] != math.inf]

    @property
    def heterogeneity(self) -> Number:
        """H = slowest / fastest type (Def. 2)."""
        return max(self.times) / min(self.times)

    def heavy(self, kind: int) -> bool:
        """More than half of the window on this type (Def. 1)."""
        return bool(2 * self.times[kind] > self.deadline - self.arrival)


def load(queue: Iterable[Waiting], now: Number) -> Number:
    """Return the processor load of Def. 3: the largest demand / time left, in EDF order.

    Infinite where work remains at its deadline, which the paper leaves open.
    """
    worst: Number = 0
    total: Number = 0
    for deadline, _, remaining in sorted(queue):
        total += remaining
        if total > 0:
            endless = math.inf in (now, total)  # then no time is left, or none is enough
            left = 0 if endless else deadline - now
            worst = max(worst, total / left) if left > 0 else math.inf
    return worst


def waiting(jobs: Iterable[Job], kind: int) -> list[Waiting]:
    """Jobs that have not begun, as entries of a queue on a processor of ``kind``."""
    return [(job.deadline, job.id, job.times[kind]) for job in jobs]


def assign(jobs: Sequence[Job], kinds: Sequence[int]) -> dict[int, int | None]:
    """Algorithm Assignment: processor of each job id, None where no processor can take it.

    The paper fails as a whole when one job finds no place; here the others keep theirs.

    Args:
        jobs: all present at time 0.
        kinds: type of each processor.
    """
    held: list[list[Job]] = [[] for _ in kinds]
    placed: dict[int, int | None] = {}
    heavy = [job for job in jobs if any(job.heavy(kind) for kind in job.others)]
    chosen = {job.id for job in heavy}
    light = [job for job in jobs if job.id not in chosen]
    for job in (*_widest_first(heavy), *_widest_first(light)):
        placed[job.id] = _first_fit(job, [job.favourite], kinds, held)
    for job in _widest_first(light):
        if placed[job.id] is None:
            placed[job.id] = _first_fit(job, job.others, kinds, held)
    return placed


def _widest_first(jobs: list[Job]) -> list[Job]:
    return sorted(jobs, key=lambda job: (-job.heterogeneity, job.id))


def _first_fit(
    job: Job, wanted: list[int], kinds: Sequence[int], held: list[list[Job]]
) -> int | None:
    """First processor of the wanted types whose load stays at most 1 (Theorem 1)."""
    for kind in wanted:
        for p, own in enumerate(kinds):
            if own == kind and load(waiting([*held[p], job], kind), job.arrival) <= 1:
                held[p].append(job)
                return p
    return None


def balance(
    jobs: Sequence[Job],
    kinds: Sequence[int],
    placed: dict[int, int | None],
    threshold: Number,
    *,
    time_on: TimeOn = "receiver",
) -> dict[int, int | None]:
    """Algorithm Load-Balancing: move short jobs from the fullest to the emptiest processor.

    One move a pass. ``time_on`` says where the moved job's time is taken for the test
    e < max - min: on the receiver the fullest processor never gets fuller; the paper's words
    mean the giver.
    """
    placed = dict(placed)
    if threshold == math.inf:
        return placed
    for _ in range(len(jobs) * len(jobs) * len(kinds)):
        held: list[list[Job]] = [[] for _ in kinds]
        for job in jobs:
            held[placed[job.id] or 0].append(job)
        demand = [sum(job.times[kind] for job in held[p]) for p, kind in enumerate(kinds)]
        most = max(range(len(kinds)), key=lambda p: (demand[p], -p))
        least = min(range(len(kinds)), key=lambda p: (demand[p], p))
        if demand[most] * len(kinds) <= (1 + threshold) * sum(demand):
            break
        moved = _movable(held, kinds, most, least, demand[most] - demand[least], time_on)
        if moved is None:
            break
        placed[moved.id] = least
    return placed


def _movable(
    held: list[list[Job]],
    kinds: Sequence[int],
    most: int,
    least: int,
    difference: Number,
    time_on: TimeOn,
) -> Job | None:
    """The shortest job of ``most`` that ``least`` can take and that evens them out."""
    test = kinds[least] if time_on == "receiver" else kinds[most]
    for job in sorted(held[most], key=lambda job: (job.times[kinds[most]], job.id)):
        fits = load(waiting([*held[least], job], kinds[least]), job.arrival) <= 1
        if job.times[test] < difference and fits:
            return job
    return None


def lowest_level(levels: Sequence[Number], least: Number) -> int:
    """Index of the lowest level that is at least ``least`` (Theorem 2), else of the top one."""
    for index, level in enumerate(levels):
        if level >= least:
            return index
    return len(levels) - 1
