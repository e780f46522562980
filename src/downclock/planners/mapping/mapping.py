"""Mapping of liu at run time: Assignment at time 0, Dynamic-Mapping afterwards, levels, ERF.

`Mapping` is told what happens (jobs arrive, finish, fail; processors go and come back) and keeps
a queue per processor. It knows worst cases only; numbers may be floats or fractions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from downclock.planners.mapping.queue import SAFE_FREE, Queue, Reading
from downclock.planners.mapping.rules import (
    Job,
    Number,
    TimeOn,
    assign,
    balance,
    load,
    lowest_level,
)

Scheme: TypeAlias = Literal["static", "dynamic", "aggressive", "erf-response", "erf-execution"]
"""Static: the level of time 0 stays. Dynamic: levels follow arrivals and early completions.
Aggressive: levels from average times. ERF: top level, shortest response or execution time."""

ROUNDING = 1e-12
"""A job that ends with less of its time left ended when it should."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Parameters of a scheme.

    Attributes:
        scheme: see `Scheme`.
        reading: how to read Dynamic-Mapping.
        threshold: of Load-Balancing; infinite: none.
        time_on: see `balance`.
        average: average / worst-case time (Aggressive).
        caution: the paper's K: the level is at least this part of the worst-case one.
        scaled: types whose level may change; None: all (Fig. 5c-d scales CPUs only).
    """

    scheme: Scheme = "dynamic"
    reading: Reading = SAFE_FREE
    threshold: Number = 0.2
    time_on: TimeOn = "receiver"
    average: Number = 0.95 / 1.2
    caution: Number = 0.0
    scaled: tuple[int, ...] | None = None

    @property
    def races(self) -> bool:
        """Top level always."""
        return self.scheme.startswith("erf")


@dataclass(slots=True)
class Mapping:
    """Queues of all processors, and the clock time they stand at."""

    rules: Rules
    queues: list[Queue]
    now: Number = 0
    up: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.up = self.up or [True] * len(self.queues)

    def advance(self, now: Number) -> None:
        """Let time pass; running jobs get on."""
        if now > self.now:
            for queue in self.queues:
                queue.advance(now - self.now)
            self.now = now

    def begin(self, jobs: Sequence[Job]) -> list[int]:
        """Place the jobs of time 0 (liu section 4); return the ids that found no place."""
        kinds, rules = [queue.kind for queue in self.queues], self.rules
        placed: dict[int, int | None] = {}
        if not rules.races:
            placed = assign(jobs, kinds)
            fitting = [job for job in jobs if placed[job.id] is not None]
            if fitting:
                placed |= balance(fitting, kinds, placed, rules.threshold, time_on=rules.time_on)
        refused = []
        for job in jobs:  # all of them are spread before any starts
            p = self._fastest(job) if rules.races else placed[job.id]
            if p is None or p < 0:
                refused.append(job.id)
            else:
                self.queues[p].add(job)
        for p in range(len(self.queues)):
            self.settle(p)
        return refused

    def arrive(self, job: Job) -> int:
        """Place a job that arrives now; return its processor, or -1 where it is rejected."""
        p = self._fastest(job) if self.rules.races else self._dynamic(job)
        if p >= 0:
            self.queues[p].add(job)
            self.settle(p)
        return p

    def finish(self, job: int) -> None:
        """Take a finished job out; where it ended early its budget is reclaimed (lines 16-17)."""
        p = self.where(job)
        queue = self.queues[p]
        early = queue.remaining[job] > ROUNDING * queue.jobs[job].times[queue.kind]
        queue.drop(job)
        scheme = self.rules.scheme
        self.settle(p, reset=scheme == "aggressive" or (early and scheme != "static"))

    def left(self, p: int, job: int) -> float:
        """Part of a job that is left in the worst case."""
        queue = self.queues[p]
        return float(queue.remaining[job] / queue.jobs[job].times[queue.kind])

    def amend(self, job: Job) -> None:
        """Take note of another deadline of a job that was accepted."""
        for p, queue in enumerate(self.queues):
            if job.id in queue.jobs:
                queue.jobs[job.id] = job
                self.settle(p)

    def restart(self, job: int) -> None:
        """Take note that all work on a job is lost; it stays where it is."""
        p = self.where(job)
        again = self.queues[p].jobs[job]
        self.queues[p].drop(job)
        self.queues[p].add(again)
        self.settle(p)

    def change(self, down: Sequence[int], up: Sequence[int]) -> None:
        """Machines go and come back; jobs of a lost one move where they are accepted."""
        for p in down:
            self.up[p] = False
        for p in up:
            self.up[p] = True
        for p in (*down, *up):
            for job in list(self.queues[p].jobs.values()) if not self.up[p] else ():
                if self.arrive(job) >= 0:
                    self.queues[p].drop(job.id)
            self.settle(p)

    def where(self, job: int) -> int:
        """Processor that holds a job."""
        return next(p for p, queue in enumerate(self.queues) if job in queue.jobs)

    def settle(self, p: int, reset: bool = True) -> None:
        """Set the level of a processor, if asked, and let the job run that should."""
        queue = self.queues[p]
        if not self.up[p]:
            queue.running = -1
            return
        if reset:
            queue.level = self._level(queue)
        queue.running = queue.next_job()
        if self.rules.reading.locked and queue.running >= 0:
            queue.locked_at.setdefault(queue.running, queue.level)

    def _level(self, queue: Queue) -> int:
        top = len(queue.levels) - 1
        if self.rules.races or (
            self.rules.scaled is not None and queue.kind not in self.rules.scaled
        ):
            return top
        worst = queue.safe_level(self.now, self.rules.reading)
        if self.rules.scheme != "aggressive":
            return worst
        rows = []
        for j, job in queue.jobs.items():
            # Average time left; the worst case once a job has run longer than its average.
            left = queue.remaining[j]
            hoped = left - (1 - self.rules.average) * job.times[queue.kind]
            rows.append((job.deadline, j, hoped if hoped > 0 else left))
        floor = self.rules.caution * queue.levels[worst]
        return lowest_level(queue.levels, max(load(rows, self.now), floor))

    def _dynamic(self, job: Job) -> int:
        """Dynamic-Mapping, lines 1-13, with the three loops ended by the first swap."""
        own = self._places([job.favourite])
        for p in own:
            if self.queues[p].accepts(job, self.now, self.rules.reading):
                return p
        for p in own:
            if self._makes_room(p, job):
                return p
        for p in self._places(job.others):
            if self.queues[p].accepts(job, self.now, self.rules.reading):
                return p
        return -1

    def _places(self, kinds: list[int]) -> list[int]:
        return [
            p
            for kind in kinds
            for p, queue in enumerate(self.queues)
            if queue.kind == kind and self.up[p]
        ]

    def _makes_room(self, p: int, job: Job) -> bool:
        """Move a job of low heterogeneity from ``p`` elsewhere so that ``job`` fits there."""
        queue, reading = self.queues[p], self.rules.reading
        for other in sorted(queue.jobs.values(), key=lambda o: (o.heterogeneity, o.id)):
            share = queue.remaining[other.id] / other.times[queue.kind]
            if (other.id == queue.running or share < 1) and not reading.move_running:
                continue
            if not queue.accepts(job, self.now, reading, without=other.id):
                continue
            for a, target in enumerate(self.queues):
                if a == p or not self.up[a]:
                    continue
                if target.accepts(other, self.now, reading, share=share):
                    queue.drop(other.id)
                    target.add(other, other.times[target.kind] * share)
                    self.settle(a)
                    return True
        return False

    def _fastest(self, job: Job) -> int:
        """ERF: the shortest response (backlog + time) or, queues ignored, execution time."""
        waits = self.rules.scheme == "erf-response"

        def response(p: int) -> Number:
            queue = self.queues[p]
            return job.times[queue.kind] + (sum(queue.remaining.values()) if waits else 0)

        places = [p for p, up in enumerate(self.up) if up]
        best = min(places, key=lambda p: (response(p), p), default=-1)
        return -1 if best < 0 or response(best) == math.inf else best
