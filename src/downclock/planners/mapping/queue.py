"""One processor's queue in liu's dynamic mapping: what runs, what waits, which level is safe.

All work is in worst-case seconds at the top level. A queue is plain data: it can be copied and
replayed. Numbers may be floats or fractions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from downclock.planners.mapping.rules import Job, Number, Waiting, load, lowest_level

Accept: TypeAlias = Literal["theorem1", "theorem3", "theorem3-current"]
"""Acceptance: load(P, t) <= 1; also load(P \\ x, t + e'x) <= 1 with e'x at the top level; with
e'x at the running job's present level."""

LevelRule: TypeAlias = Literal["line15", "blocking"]
"""Level: lowest v >= load(P, t) (line 15 of the paper); or also with the running job x in the
way: lowest v with load(P, t) <= v and load(P \\ x, t + rem_x / v) <= v."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read Dynamic-Mapping; the defaults are the safe rules for free clocks.

    Attributes:
        accept, level: see the types.
        locked: the clock may not change while a job runs.
        blocking_cpu: preemptive processors are tested as if jobs could not be preempted; the
            paper's example does so.
        move_running: a running job may move and keeps its progress, scaled; the paper's example
            does so, its footnote 9 forbids it.
        wall_clock: a running job counts with its time at its present level, not at the top one,
            when the load of a non-preemptive processor is computed; so in the paper's example.
    """

    accept: Accept = "theorem3"
    level: LevelRule = "blocking"
    locked: bool = False
    blocking_cpu: bool = False
    move_running: bool = False
    wall_clock: bool = False


SAFE_FREE = Reading()
"""No accepted job misses while run times stay within worst case; clocks may change any time."""

SAFE_LOCKED = Reading(accept="theorem3-current", locked=True)
"""The same where a job keeps the clock it started with."""

LITERAL = Reading(level="line15")
"""Theorem 3 and line 15 as printed: not safe (a slow blocker is overlooked)."""

LITERAL_LOCKED = Reading(level="line15", locked=True)

PUBLISHED = Reading(
    "theorem3-current", "line15", blocking_cpu=True, move_running=True, wall_clock=True
)
"""The one reading that gives every number of the paper's dynamic example."""

READINGS = {
    "safe": SAFE_FREE,
    "safe-locked": SAFE_LOCKED,
    "literal": LITERAL,
    "literal-locked": LITERAL_LOCKED,
    "theorem1": Reading(accept="theorem1", level="line15"),
    "theorem1-locked": Reading(accept="theorem1", level="line15", locked=True),
    "current": Reading(accept="theorem3-current", level="line15"),
    "published": PUBLISHED,
}
"""Named switches."""


@dataclass(slots=True)
class Queue:
    """Unfinished jobs of one processor.

    Attributes:
        kind: its type.
        preemptive: may a running job be put back?
        levels: normalised speeds, ascending, the last is 1.
        remaining: worst-case top-level time left of each job id.
        jobs: the jobs by id.
        running: id of the job that runs, -1: none.
        level: index of the level for jobs that start (and, clocks free, for the one that runs).
        locked_at: level of each started job where clocks are locked.
    """

    kind: int
    preemptive: bool
    levels: Sequence[Number]
    remaining: dict[int, Number] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    running: int = -1
    level: int = 0
    locked_at: dict[int, int] = field(default_factory=dict)

    def add(self, job: Job, remaining: Number | None = None) -> None:
        """Queue a job; ``remaining`` where some of it is done already."""
        self.jobs[job.id] = job
        self.remaining[job.id] = job.times[self.kind] if remaining is None else remaining

    def drop(self, job: int) -> None:
        """Take a job out: it is finished, lost or moved."""
        del self.jobs[job], self.remaining[job]
        self.locked_at.pop(job, None)
        if self.running == job:
            self.running = -1

    @property
    def speed(self) -> Number:
        """Speed of the running job."""
        return self.levels[self.locked_at.get(self.running, self.level)]

    def advance(self, elapsed: Number) -> None:
        """Let the running job run for a while."""
        if self.running >= 0:
            left = self.remaining[self.running] - elapsed * self.speed
            self.remaining[self.running] = left if left > 0 else 0 * left

    def next_job(self) -> int:
        """Return the job that should run: earliest deadline; none is put back on a GPU."""
        if self.running >= 0 and not self.preemptive:
            return self.running
        return min(self.jobs, key=lambda j: (self.jobs[j].deadline, j), default=-1)

    def accepts(
        self, job: Job, now: Number, reading: Reading, without: int = -1, share: Number = 1
    ) -> bool:
        """Tell whether the job fits beside the others, ``without`` one of them.

        ``share`` of the job is still to be done.
        """
        if job.times[self.kind] == math.inf:
            return False
        entry = (job.deadline, job.id, job.times[self.kind] * share)
        if reading.locked and reading.level == "blocking":
            return self._fits_locked(now, self.levels[-1], entry, without)
        queue, blocker = [*self._waiting(reading, without), entry], self._blocker(reading)
        if blocker == without or reading.accept == "theorem1":
            blocker = -1
        speed = 1 if reading.accept == "theorem3" else self.speed
        return self._fits_free(queue, now, 1, blocker, speed)

    def safe_level(self, now: Number, reading: Reading) -> int:
        """Index of the level to set now."""
        if reading.level == "line15":
            return lowest_level(self.levels, load(self._waiting(reading), now))
        queue, blocker = self._waiting(reading), self._blocker(reading)
        for index, level in enumerate(self.levels):
            if reading.locked:
                fits = self._fits_locked(now, level)
            else:
                fits = self._fits_free(queue, now, level, blocker, level)
            if fits:
                return index
        return len(self.levels) - 1

    def _blocker(self, reading: Reading) -> int:
        """The running job where it cannot be put back; -1: none."""
        return self.running if not self.preemptive or reading.blocking_cpu else -1

    def _waiting(self, reading: Reading, without: int = -1) -> list[Waiting]:
        queue = []
        for j, left in self.remaining.items():
            if j == without:
                continue
            wall = reading.wall_clock and j == self.running and not self.preemptive
            queue.append((self.jobs[j].deadline, j, left / self.speed if wall else left))
        return queue

    def _fits_free(
        self, queue: list[Waiting], now: Number, level: Number, blocker: int, speed: Number
    ) -> bool:
        """Tell whether this level for all meets every deadline, once a blocker is done too."""
        if not load(queue, now) <= level:
            return False
        if blocker < 0:
            return True
        later = now + self.remaining[blocker] / speed
        return bool(load([w for w in queue if w[1] != blocker], later) <= level)

    def _fits_locked(
        self, now: Number, level: Number, extra: Waiting | None = None, without: int = -1
    ) -> bool:
        """Tell whether every deadline is met if started jobs keep their clocks.

        Wall-clock demand: remaining / its own level for started jobs, / ``level`` for the rest;
        a job that cannot be preempted comes first.
        """
        own = {j: self.levels[index] for j, index in self.locked_at.items()}
        left = {j: rest for j, rest in self.remaining.items() if j != without}
        rows = [(self.jobs[j].deadline, j, rest / own.get(j, level)) for j, rest in left.items()]
        if extra is not None:
            rows.append((extra[0], extra[1], extra[2] / level))
        if self.running >= 0 and not self.preemptive:
            first = next(row for row in rows if row[1] == self.running)
            if not first[2] <= first[0] - now:
                return False
            return bool(load([r for r in rows if r[1] != self.running], now + first[2]) <= 1)
        return bool(load(rows, now) <= 1)
