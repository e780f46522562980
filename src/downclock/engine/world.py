"""Worlds: what really happens. Only here is it known how long anything takes.

`World` lets rows run with the work that was drawn for each task; without draws estimates come
true. It knows nothing of policies, and tells the book no more than what has happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from downclock.engine.book import Book
from downclock.engine.facts import DOWN, FINISHED, LOST, PARTLY_DONE, PRICE, SERVER_DOWN, Fact
from downclock.engine.pages import Row
from downclock.engine.scheduler import Scheduler
from downclock.problem.platform import Platform
from downclock.problem.problem import Problem
from downclock.units import Floats

NEVER = 2.0
"""A failure after this part of an attempt's work does not happen."""


class Incident(NamedTuple):
    """A machine that fails or is back, or a price that changes: kind of fact, where, value."""

    at_s: float
    code: int
    place: int
    value: float = np.nan


class Running(NamedTuple):
    """A row at work: when it ends, by which fact, and which share it does until then."""

    row: Row
    code: int
    share: float


class World:
    """A world in which work, failures and prices are drawn beforehand.

    Args:
        site: what is asked; or only where, and estimates of whatever comes are true.
        work: actual / estimated work of each task (n,); None: 1.
        breaks: part of the work after which each attempt fails (n, attempts), or `NEVER`.
        incidents: by time.

    ``told`` says which task of the problem each number stands for.
    """

    def __init__(
        self,
        site: Problem | Platform,
        work: Floats | None = None,
        breaks: Floats | None = None,
        incidents: Sequence[Incident] = (),
    ) -> None:
        platform = site if isinstance(site, Platform) else site.platform
        n = 0 if isinstance(site, Platform) else len(site.tasks)
        self.work = np.ones(n) if work is None else work
        self.breaks = breaks if breaks is not None and np.any(breaks <= 1.0) else None
        self.incidents = tuple(incidents)
        self.platform = platform
        self.told = np.arange(n)
        self._left: dict[int, float] = {}
        self._cut: dict[int, Row] = {}
        self._ends: list[tuple[float, int, Running]] = []
        self._next = 0

    def only_run_times(self, heeds: frozenset[int]) -> bool:
        """Nothing can happen but arrivals and ends, for who heeds only these kinds of fact."""
        outside = any(incident.code in heeds for incident in self.incidents)
        return self.breaks is None and not outside

    def _work(self, task: int) -> float:
        """Actual / estimated work of a task; tasks that nothing was drawn for take their time."""
        return float(self.work[self.told[task]]) if task < self.told.size else 1.0

    def _part(self, task: int) -> float:
        """The part of a task that is left."""
        return self._left.get(task, 1.0)

    def next_s(self, scheduler: Scheduler) -> float:
        """When something happens next; prices count only for who heeds them and has work."""
        heeds = PRICE in scheduler.policy.heeds
        while not heeds and self._next < len(self.incidents):
            if self.incidents[self._next].code != PRICE:
                break
            self._next += 1
        wanted = heeds and scheduler.book.open_tasks > 0
        for incident in self.incidents[self._next :]:
            if wanted or incident.code != PRICE:
                return min(incident.at_s, self._next_end_s())
        return self._next_end_s()

    def _next_end_s(self) -> float:
        while self._ends and self._ends[0][2].row.ended_s < np.inf:
            heappop(self._ends)
        return self._ends[0][0] if self._ends else np.inf

    def happens(self, book: Book, now_s: float) -> list[Fact]:
        """All that happens now: ends first, then machines and prices."""
        facts: list[Fact] = []
        gone: set[int] = set()
        while self._next_end_s() <= now_s:
            at_s, _, running = heappop(self._ends)
            row = running.row
            if row.task not in gone:
                gone.add(row.task)
                facts.append(self._end(running, at_s))
        while self._next < len(self.incidents) and self.incidents[self._next].at_s <= now_s:
            incident = self.incidents[self._next]
            self._next += 1
            facts += self._strike(book, incident, now_s, gone)
        return facts

    def _end(self, running: Running, at_s: float) -> Fact:
        """A row ends by itself."""
        row, task = running.row, running.row.task
        self._left[task] = 1.0 if running.code == LOST else self._part(task) - running.share
        work = self._work(task)
        return Fact(running.code, task, row.processors[0], work, running.share, at_s)

    def _strike(self, book: Book, incident: Incident, now_s: float, gone: set[int]) -> list[Fact]:
        """A machine fails, with all that runs there or was begun there; or something else."""
        fact = Fact(incident.code, -1, incident.place, incident.value)
        if incident.code not in (DOWN, SERVER_DOWN):
            return [fact]
        place = incident.place
        hit = range(place, place + 1)
        if incident.code == SERVER_DOWN:
            hit = range(book.first[place], book.first[place + 1])
        lost = [self._lose(book, task, now_s) for task in book.begun(hit) if task not in gone]
        gone.update(each.task for each in lost)
        return [*lost, fact]

    def _lose(self, book: Book, task: int, now_s: float) -> Fact:
        """What a task had done is lost; in slots, what lies before the present one counts."""
        row, work = book.tasks[task].running, self._work(task)
        self._left[task] = 1.0
        self._cut.pop(task, None)
        if row is None:
            return Fact(LOST, task, -1, work)
        end_s, slot_s = now_s, self.platform.slot_s
        if slot_s is not None:
            end_s = float(np.floor(now_s / slot_s + 1e-9) * slot_s)
        share = max(end_s - row.began_s, 0.0) / (row.whole_s * work)
        return Fact(LOST, task, row.processors[0], work, share, end_s)

    def begin(self, book: Book, rows: Sequence[Row]) -> None:
        """Let rows run."""
        for row in rows:
            self._account(row)
            at_s, running = self._outlook(book, row)
            heappush(self._ends, (at_s, row.number, running))
            self._cut[row.task] = row

    def resume(self, book: Book) -> None:
        """Go on from a book that was written and read."""
        passed = [incident.at_s <= book.now_s for incident in self.incidents]
        self._next = sum(passed)
        for task, page in enumerate(book.tasks):
            for row in page.log:
                if row.cut and row.attempt == page.attempt:
                    self._cut[task] = row
                    self._account(row)
                elif row.attempt == page.attempt:
                    self._left[task] = self._part(task) - row.done
        self.begin(book, sorted({row.number: row for row in book.running if row}.values()))

    def _account(self, row: Row) -> None:
        """Take what a row did that was cut off the task's work."""
        before = self._cut.pop(row.task, None)
        if before is not None and before.attempt == row.attempt and before.cut:
            whole_s = before.whole_s * self._work(row.task)
            done = (before.ended_s - before.began_s) / whole_s
            self._left[row.task] = max(self._part(row.task) - done, 0.0)

    def _outlook(self, book: Book, row: Row) -> tuple[float, Running]:
        """When a row ends, and how."""
        work, left = self._work(row.task), self._part(row.task)
        last = not book.tasks[row.task].rows
        planned_s, whole_s = row.end_s - row.start_s, row.whole_s * work
        if work == 1.0 and not (last and abs(left - row.share) > 1e-9):
            end_s, share = row.due_s, row.share
        elif last or planned_s >= left * whole_s * (1.0 - 1e-12):
            end_s, share = self.platform.slot_up(row.began_s + left * whole_s), left
        else:
            end_s, share = row.began_s + planned_s, planned_s / whole_s
        stop_s, done = self._break(row, left, whole_s)
        if stop_s < end_s:
            return self.platform.slot_up(stop_s), Running(row, LOST, done)
        code = FINISHED if last or left - share <= 1e-12 else PARTLY_DONE
        return end_s, Running(row, code, share)

    def _break(self, row: Row, left: float, whole_s: float) -> tuple[float, float]:
        """When the attempt fails by itself, and the share done by then; infinite: it does not."""
        if self.breaks is None:
            return np.inf, 0.0
        tries = self.breaks[self.told[row.task]]
        at = float(tries[min(row.attempt, tries.size - 1)])
        if at > 1.0:
            return np.inf, 0.0
        done = max(at - (1.0 - left), 0.0)
        return row.began_s + done * whole_s, done
