"""The scheduler without a clock: facts in, decisions out, a log that replays.

Whoever knows the time calls `Scheduler.handle`. Facts are checked before anything changes; a fact
that was told before is ignored; the policy is asked where it heeds what happened. The state can be
written as bytes and read back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from downclock.engine.book import Book, Row
from downclock.engine.checks import check
from downclock.engine.decisions import Decisions
from downclock.engine.facts import AMENDED, FINISHED, OVERDUE, Facts
from downclock.engine.outcome import Ended
from downclock.engine.policy import Policy
from downclock.engine.tasks import TaskTable
from downclock.engine.view import View
from downclock.errors import InvalidInput
from downclock.problem.graph import Edges
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.units import Ints

RETRIES = 3
"""Further attempts that a task may have where nothing else is said."""


class Scheduler:
    """One policy at work on one platform.

    Attributes:
        policy, view, state, book: how it decides, what it knows, remembers and has written down.
        call_me_s: when the policy wants to be asked at the latest.
    """

    def __init__(self, site: Problem | View, policy: Policy, *, retries: int = RETRIES) -> None:
        self.policy = policy
        self.view = site if isinstance(site, View) else View(site)
        self.state: Any = policy.start(self.view)
        self.book = Book(self.view, retries)
        self.call_me_s = 0.0
        self.calls = 0
        self._seen_below, self._seen = 0, set[int]()

    def tell(self, tasks: Tasks | TaskTable, rows: Ints, edges: Edges | None = None) -> Ints:
        """Add tasks, and edges among all told so far, by number; return the numbers.

        Facts of kind ARRIVED name them next.
        """
        numbers = self.view.tasks.add(tasks, rows)
        if edges is not None and len(edges):
            self.view.learn(edges)
            for before, after in zip(edges.before.tolist(), edges.after.tolist(), strict=True):
                self.book.precede(before, after)
        return numbers

    def handle(self, facts: Facts) -> tuple[Decisions, list[Row]]:
        """Take note of facts, ask the policy, follow it; return its answer and what starts now.

        Raises:
            InvalidInput: a fact that cannot be; nothing has changed.
        """
        fresh = self._unseen(facts)
        check(self.view, self.book, fresh)
        self._remember(fresh)
        for fact in fresh.rows():
            if fact.code == AMENDED:
                self.view.amend(fact.task, fact.value)
        told = self.book.note(fresh)
        decisions = Decisions(call_me_s=self.call_me_s)
        if self._asks(told):
            self.calls += 1
            self.state, decisions = self.policy.decide(self.state, self.view, told)
            self.call_me_s = decisions.call_me_s
            self.book.apply(decisions)
        return decisions, self.book.start_rows(OVERDUE in self.policy.heeds)

    @property
    def next_s(self) -> float:
        """When to call `handle` although nothing happens; infinite: never."""
        return min(self.call_me_s, self.book.next_s)

    def ended(self) -> Ended:
        """What has happened so far."""
        return self.book.ended()

    def _asks(self, facts: Facts) -> bool:
        """Tell whether the policy heeds any of this."""
        if facts.now_s >= self.call_me_s:
            return True
        heeds = self.policy.heeds
        codes = set(facts.code.tolist())
        if codes & heeds:
            return True
        if FINISHED in codes and OVERDUE in heeds:
            return any(not self.book.as_promised(int(task)) for task in facts.tasks(FINISHED))
        return False

    def _unseen(self, facts: Facts) -> Facts:
        """Facts that were not told before, by their id."""
        if not facts.id.size or facts.id.max() < 0:
            return facts
        ids = facts.id.tolist()
        new = np.array([i < 0 or not self._knows(i) for i in ids])
        first = np.zeros(new.size, dtype=bool)
        first[np.unique(facts.id, return_index=True)[1]] = True
        return facts.kept(new & (first | (facts.id < 0)))

    def _knows(self, number: int) -> bool:
        return number < self._seen_below or number in self._seen

    def _remember(self, facts: Facts) -> None:
        """Keep ids; runs of them from 0 on are one number."""
        self._seen.update(number for number in facts.id.tolist() if number >= 0)
        while self._seen_below in self._seen:
            self._seen.remove(self._seen_below)
            self._seen_below += 1


def require(problem: Problem, policy: Policy) -> None:
    """Refuse a problem that the policy cannot plan.

    Raises:
        InvalidInput: it says why.
    """
    objection = policy.objection(problem)
    if objection is not None:
        raise InvalidInput(objection, item=f"policy '{policy.name}'")
