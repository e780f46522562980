"""The book: what was promised, what runs, what has ended. It follows facts and decisions.

Rows wait in the order placed on their processors. A row starts when its processors are free and
their servers on, when the tasks before it and the task's own earlier rows are done and, unless it
is eager, not before its promised start. The book counts attempts, finds tasks that have failed or
lost a predecessor, and writes everything down. It knows no truth: how long a row really takes is
told when it ends.
"""

from __future__ import annotations

from bisect import insort
from heapq import heappop, heappush
from typing import Any

import numpy as np

from downclock.engine import facts as event
from downclock.engine.decisions import Decisions
from downclock.engine.facts import Fact, Facts
from downclock.engine.outcome import NOT_WANTED, OFF, REPAIRED, TURNED_ON, WENT_DOWN, Ended
from downclock.engine.pages import Row, TaskBook, segments_of
from downclock.engine.view import View
from downclock.schedule.schedule import DONE, FAILED, PENDING, REJECTED, Segments

ASLEEP, WAKING, AWAKE, BROKEN = range(4)
"""State of a server."""

NOTHING = 1e-300
"""A part of a task that is no number any more."""

ORPHAN = "a task before it did not finish"


class Book:
    """Everything promised and done on one platform."""

    def __init__(self, view: View, retries: int) -> None:
        platform = view.platform
        self.view, self.retries = view, retries
        self.now_s = 0.0
        self.tasks: list[TaskBook] = []
        self.after: dict[int, list[int]] = {}
        self.queue: list[list[Row]] = [[] for _ in range(platform.processor_count)]
        self.running: list[Row | None] = [None] * platform.processor_count
        self.up = [True] * platform.processor_count
        self.server = platform.server.tolist()
        self.state = np.where(platform.initially_on, AWAKE, ASLEEP).tolist()
        self.awake_s = [0.0] * platform.server_count
        self.first = platform.first_processor.tolist()
        self.switched: list[tuple[int, int, float]] = []
        self.agenda: list[tuple[float, int, str, Any]] = []
        self.events = self.open_tasks = 0
        self._numbers = 0
        self._look: set[int] = set()
        self.sleepy: set[int] = set()

    # --- facts -------------------------------------------------------------------------------

    def note(self, facts: Facts) -> Facts:
        """Take note of facts that were checked; return them with those that follow from them."""
        self.now_s = facts.now_s
        told: list[Fact] = []
        for fact in facts.rows:
            told += self._follow(fact)
        while self.agenda and self.agenda[0][0] <= self.now_s:
            _, _, what, item = heappop(self.agenda)
            told += self._reach(what, item)
        self.events += len(told)
        return Facts(facts.now_s, told, due=facts.due, closed=facts.closed)

    def _follow(self, fact: Fact) -> list[Fact]:
        code = fact.code
        page = self.page(fact.task) if fact.task >= 0 else None
        if page is not None and page.running is not None:
            fact = fact._replace(place=page.running.processors[0])
        if code == event.ARRIVED:
            return [fact, *self._arrive(fact.task)]
        if code == event.FINISHED:
            return [fact, *self._finish(fact)]
        if code == event.PARTLY_DONE:
            self._close(self._running(fact.task), fact)
        if code == event.LOST:
            return self._lose(fact)
        if code == event.CANCELLED:
            return [fact, *self._give_up(fact.task, REJECTED, NOT_WANTED)]
        if code in (event.DOWN, event.UP):
            self.up[fact.place] = code == event.UP
            self._look.add(fact.place)
        elif code in (event.SERVER_DOWN, event.SERVER_UP):
            down = code == event.SERVER_DOWN
            self.state[fact.place] = BROKEN if down else ASLEEP
            self.switched.append((fact.place, WENT_DOWN if down else REPAIRED, self.now_s))
        return [fact]

    def _arrive(self, task: int) -> list[Fact]:
        """Open a page for a task; a milestone is done with the tasks before it."""
        self._open(task)
        page = self.tasks[task]
        page.arrived = True
        self.open_tasks += 1
        if page.reason:
            return [Fact(event.ORPHANED, task), *self._give_up(task, REJECTED, page.reason)]
        return self._settle(task)

    def _open(self, task: int) -> None:
        while len(self.tasks) <= task:
            self.tasks.append(TaskBook())

    def precede(self, before: int, after: int) -> None:
        """Take note of an edge between tasks that were told."""
        self._open(max(before, after))
        if self.tasks[before].status in (REJECTED, FAILED):
            self.tasks[after].reason = ORPHAN
        elif self.tasks[before].status != DONE:
            self.tasks[after].waits_for += 1
            self.after.setdefault(before, []).append(after)

    def _settle(self, task: int) -> list[Fact]:
        """A task without work is done when nothing is before it."""
        page = self.tasks[task]
        if self.view.tasks.scale[task] > 0.0 or page.waits_for or page.status != PENDING:
            return []
        page.status = DONE
        self.open_tasks -= 1
        return self._release(task)

    def _release(self, task: int) -> list[Fact]:
        """Let the tasks after a done one go on."""
        derived: list[Fact] = []
        for after in self.after.get(task, ()):
            page = self.tasks[after]
            page.waits_for -= 1
            if page.rows:
                self._look.update(page.rows[0].processors)
            derived += self._settle(after)
        return derived

    def _finish(self, fact: Fact) -> list[Fact]:
        page = self.tasks[fact.task]
        self._close(self._running(fact.task), fact)
        self._drop_rows(page)
        page.status = DONE
        self.open_tasks -= 1
        page.work = fact.value if fact.value == fact.value else self._work_of(page)
        return self._release(fact.task)

    def _running(self, task: int) -> Row:
        row = self.tasks[task].running
        assert row is not None, "facts are checked before they are noted"
        return row

    def _work_of(self, page: TaskBook) -> float:
        """Actual / estimated work of a done task, from the times of its last attempt."""
        mine = [row for row in page.log if row.attempt == page.attempt]
        if all(row.kept for row in mine):
            return 1.0
        return sum((row.ended_s - row.began_s) / row.whole_s for row in mine)

    def _lose(self, fact: Fact) -> list[Fact]:
        """Close a lost attempt; another one may follow while retries last."""
        page = self.tasks[fact.task]
        if page.running is not None:
            self._close(page.running, fact)
        if fact.value == fact.value:
            page.work = fact.value
        self._drop_rows(page)
        page.begun_on = ()
        if page.tried:
            page.attempt += 1
            page.tried = False
        if page.attempt <= self.retries:
            return [fact]
        failed = fact._replace(code=event.FAILED)
        return [failed, *self._give_up(fact.task, FAILED, "all its attempts were lost")]

    def _give_up(self, task: int, status: int, reason: str) -> list[Fact]:
        """End a task that is not done, and all that follow it."""
        page = self.tasks[task]
        if page.status != PENDING:
            return []
        if page.running is not None:
            self._close(page.running, Fact(event.CANCELLED))
            page.work = max(page.work, self._work_of(page))  # it was not done, however long it ran
        self._drop_rows(page)
        page.status, page.reason = status, reason
        self.open_tasks -= 1
        if status == REJECTED and page.log:
            page.status = FAILED
        derived: list[Fact] = []
        for after in self.after.get(task, ()):
            if self.tasks[after].status == PENDING:
                derived.append(Fact(event.ORPHANED, after))
                derived += self._give_up(after, REJECTED, ORPHAN)
        return derived

    def _reach(self, what: str, item: Any) -> list[Fact]:
        """Something on the agenda is due."""
        if what == "row":
            self._look.update(item.processors)
        elif what == "awake":
            self._awake(item)
        elif what == "switch":
            self._switch(*item)
        elif item.ended_s == np.inf:
            return [Fact(event.OVERDUE, item.task, item.processors[0])]
        return []

    # --- decisions ---------------------------------------------------------------------------

    def apply(self, decisions: Decisions) -> None:
        """Follow decisions: revokes first, then places, refusals and power."""
        for task in decisions.revoke.tolist():
            self._revoke(task)
        for task in decisions.accept.tolist():
            self.tasks[task].accepted = True
        self._place(decisions.place, decisions.eager)
        for task, why in zip(decisions.rejected.tolist(), decisions.reason, strict=True):
            self._give_up(task, REJECTED, why)
        power = decisions.power
        rows = zip(power.server.tolist(), power.on.tolist(), power.at_s.tolist(), strict=True)
        for row in rows:
            if row[2] <= self.now_s:
                self._switch(*row)
            else:
                self._remember(row[2], "switch", row)

    def _revoke(self, task: int) -> None:
        page = self.tasks[task]
        if page.status != PENDING:
            return
        if page.running is not None:
            processors = page.running.processors
            page.running.cut = True
            self._close(page.running, Fact(event.CANCELLED))
            page.begun_on = processors if page.tried else ()
        self._drop_rows(page)

    def _place(self, place: Segments, eager: bool) -> None:
        if not len(place):
            return
        columns = (place.task, place.processor, place.start_s, place.end_s, place.share)
        rows = zip(*(column.tolist() for column in columns), place.points.tolist(), strict=True)
        made: dict[tuple[int, float], Row] = {}
        for task, p, start_s, end_s, share, point in rows:
            gang = made.get((task, start_s))
            if gang is not None:
                gang.processors = (*gang.processors, p)
                continue
            page = self.tasks[task]
            if page.status != PENDING:  # it has ended meanwhile
                continue
            row = Row(
                task, page.attempt, (p,), start_s, end_s, tuple(point), share, eager, self._numbers
            )
            made[task, start_s] = row
            self._numbers += 1
            page.accepted = True
            page.rows = tuple(sorted((*page.rows, row)))
        for row in made.values():
            for p in row.processors:
                insort(self.queue[p], row)
                self._look.add(p)
            if row.start_s > self.now_s:
                self._remember(row.start_s, "row", row)

    def _switch(self, server: int, on: bool, at_s: float) -> None:
        """Wake a server, or let it sleep; one that does it already goes on, a broken one cannot."""
        if on:
            self.sleepy.discard(server)
        if on and self.state[server] == ASLEEP:
            self.state[server] = WAKING
            self.switched.append((server, TURNED_ON, at_s))
            self.awake_s[server] = at_s + float(self.view.platform.wake_s[server])
            waking = (server, self.awake_s[server])
            if waking[1] > self.now_s:
                self._remember(waking[1], "awake", waking)
            else:
                self._awake(waking)
        elif not on and self.state[server] in (AWAKE, WAKING):
            if self._needed(server, at_s):
                self.sleepy.add(server)
            else:
                self.state[server] = ASLEEP
                self.switched.append((server, OFF, at_s))

    def _needed(self, server: int, at_s: float) -> bool:
        """Tell whether anything runs on a server, or was to start there before ``at_s``."""
        return any(
            self.running[p] is not None or (self.queue[p] and self.queue[p][0].start_s < at_s)
            for p in range(self.first[server], self.first[server + 1])
        )

    def _rest(self) -> None:
        """Let servers sleep that were to, and are no longer needed."""
        for server in sorted(self.sleepy):
            if not self._needed(server, self.now_s):
                self.sleepy.remove(server)
                self._switch(server, on=False, at_s=self.now_s)

    def _awake(self, waking: tuple[int, float]) -> None:
        server, at_s = waking
        if self.state[server] == WAKING and self.awake_s[server] == at_s:
            self.state[server] = AWAKE
            self._look.update(range(self.first[server], self.first[server + 1]))

    def _remember(self, at_s: float, what: str, item: Any) -> None:
        self._numbers += 1
        heappush(self.agenda, (at_s, self._numbers, what, item))

    # --- starts and ends ---------------------------------------------------------------------

    def start_rows(self, overdue: bool) -> list[Row]:
        """Start every row that can; return them in the order of processors."""
        started: list[Row] = []
        for p in sorted(self._look):
            if self.queue[p] and self._ready(self.queue[p][0]):
                row = self.queue[p][0]
                self._start(row)
                started.append(row)
                if overdue:
                    self._remember(self.now_s + (row.end_s - row.start_s), "overdue", row)
        self._look.clear()
        if self.sleepy:
            self._rest()
        return started

    def _ready(self, row: Row) -> bool:
        page = self.tasks[row.task]
        if page.waits_for or page.running is not None or page.rows[0] is not row:
            return False
        for p in row.processors:
            free = self.running[p] is None and self.queue[p][0] is row and self.up[p]
            if not free or self.state[self.server[p]] != AWAKE:
                return False
        at_s = self.now_s if row.eager else max(row.start_s, self.now_s)
        at_s = self.view.platform.slot_up(at_s)
        if at_s > self.now_s:
            self._remember(at_s, "row", row)
            return False
        return True

    def _start(self, row: Row) -> None:
        page = self.tasks[row.task]
        page.rows = page.rows[1:]
        page.running = row
        row.began_s = self.now_s
        for p in row.processors:
            self.queue[p].remove(row)
            self.running[p] = row

    def _close(self, row: Row, fact: Fact) -> None:
        """End what runs; it is written down if it took any time."""
        page = self.tasks[row.task]
        page.running = None
        end_s = self.now_s if np.isnan(fact.at_s) else fact.at_s
        row.ended_s = end_s
        for p in row.processors:
            self.running[p] = None
            self._look.add(p)
        if end_s - row.began_s > NOTHING * row.whole_s:
            page.tried = True
            row.done = fact.share
            page.log = (*page.log, row)

    def _drop_rows(self, page: TaskBook) -> None:
        for row in page.rows:
            for p in row.processors:
                self.queue[p].remove(row)
                self._look.add(p)
        page.rows = ()

    def page(self, task: int) -> TaskBook | None:
        """What is known of a task; None: nothing."""
        return self.tasks[task] if task < len(self.tasks) else None

    def begun(self, processors: range) -> list[int]:
        """Tasks that run on these processors or were begun there and put back."""
        here = set(processors)
        running = {row.task for p in here if (row := self.running[p]) is not None}
        paused = {
            task
            for task, page in enumerate(self.tasks)
            if page.status == PENDING and page.running is None and here & set(page.begun_on)
        }
        return sorted(running | paused)

    @property
    def next_s(self) -> float:
        """When the book has something to do by itself; infinite: never."""
        return self.agenda[0][0] if self.agenda else np.inf

    # --- what came of it ---------------------------------------------------------------------

    def ended(self) -> Ended:
        """Everything that has happened, as columns; rows in the order of tasks."""
        switched = np.array(self.switched, dtype=np.float64).reshape(-1, 3)
        return Ended(
            segments_of(self.tasks),
            switched,
            np.array([page.status for page in self.tasks], dtype=np.int64),
            np.array([page.reason for page in self.tasks], dtype=object),
            np.array([page.work for page in self.tasks], dtype=np.float64),
        )
