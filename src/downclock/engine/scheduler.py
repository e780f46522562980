"""The scheduler without a clock: facts in, decisions out.

Whoever knows the time calls `Scheduler.handle`. Facts are checked before anything changes; a fact
that was told before is ignored; the policy is asked where it heeds what happened. The state can be
written as bytes and read back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from downclock.engine.book import Book
from downclock.engine.checks import check
from downclock.engine.decisions import Decisions
from downclock.engine.facts import AMENDED, FINISHED, OVERDUE, Facts
from downclock.engine.journal import Journal
from downclock.engine.pages import Row
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
        journal: what it was told, to go back where a call fails.
    """

    def __init__(self, site: Problem | View, policy: Policy, *, retries: int = RETRIES) -> None:
        self.policy = policy
        self.view = site if isinstance(site, View) else View(site)
        self.state: Any = policy.start(self.view)
        self.book = Book(self.view, retries)
        self.call_me_s = 0.0
        self.journal = Journal(lambda site: Scheduler(site, policy, retries=retries))
        self._seen_below, self._seen = 0, set[int]()

    def tell(self, tasks: Tasks | TaskTable, rows: Ints, edges: Edges | None = None) -> Ints:
        """Add tasks, and edges among all told so far, by number; return the numbers.

        Facts of kind ARRIVED name them next.
        """
        numbers = self.view.tasks.add(tasks, rows)
        if edges is not None and len(edges):
            self.view.learn(edges)
            for before, after in edges:
                self.book.precede(before, after)
        return numbers

    def handle(self, facts: Facts) -> tuple[Decisions, list[Row]]:
        """Take note of facts, ask the policy, follow it; return its answer and what starts now.

        Raises:
            InvalidInput: a fact that cannot be; nothing has changed.
            Exception: whatever the policy raised; all is as it was before the call.
        """
        fresh = self._unseen(facts)
        check(self.view, self.book, fresh)
        try:
            answer = self._follow(fresh)
        except Exception:  # begin again and be told all that was told before this call
            was = self.journal.replayed(self.view)
            self.view, self.state, self.book = was.view, was.state, was.book
            self.call_me_s, self.journal = was.call_me_s, was.journal
            raise
        self.journal.write(self.view, fresh)
        self._remember(fresh)
        return answer

    def _follow(self, facts: Facts) -> tuple[Decisions, list[Row]]:
        """Do all that a call does, on facts that were checked."""
        for fact in facts.rows:
            if fact.code == AMENDED:
                was_s = float(self.view.tasks.deadline_s[fact.task])
                self.journal.deadline_s.setdefault(fact.task, was_s)
                self.view.amend(fact.task, fact.value)
        told = self.book.note(facts)
        decisions = Decisions(call_me_s=self.call_me_s)
        if self._asks(told):
            self.state, decisions = self.policy.decide(self.state, self.view, told)
            self.call_me_s = decisions.call_me_s
            self._require_later(decisions, told)
            self.book.apply(decisions)
        return decisions, self.book.start_rows(OVERDUE in self.policy.heeds)

    @property
    def next_s(self) -> float:
        """When to call `handle` although nothing happens; infinite: never."""
        return min(self.call_me_s, self.book.next_s)

    def _require_later(self, decisions: Decisions, facts: Facts) -> None:
        """Refuse a call in the past, and one at once where nothing came of the last."""
        call_s, place, revoke = decisions.call_me_s, decisions.place, decisions.revoke
        idle = not (facts.rows or len(place) or revoke.size or decisions.rejected.size)
        if not call_s >= facts.now_s or (idle and call_s == facts.now_s):
            rule, item = (
                f"must be later than now, {facts.now_s:g} s",
                f"policy '{self.policy.name}'",
            )
            raise InvalidInput(rule, item=item, field="call_me_s", value=call_s)

    def _asks(self, facts: Facts) -> bool:
        """Tell whether the policy heeds any of this."""
        if facts.now_s >= self.call_me_s:
            return True
        heeds = self.policy.heeds
        if any(fact.code in heeds for fact in facts.rows):
            return True
        done = (self.book.tasks[fact.task].log for fact in facts.rows if fact.code == FINISHED)
        return OVERDUE in heeds and any(not log or not log[-1].kept for log in done)

    def _unseen(self, facts: Facts) -> Facts:
        """Facts that were not told before, by their id."""
        if all(fact.id < 0 for fact in facts.rows):
            return facts
        fresh, here = [], set[int]()
        for fact in facts.rows:
            known = fact.id < self._seen_below or fact.id in self._seen or fact.id in here
            if fact.id < 0 or not known:
                fresh.append(fact)
                here.add(fact.id)
        return replace(facts, rows=fresh)

    def _remember(self, facts: Facts) -> None:
        """Keep ids; runs of them from 0 on are one number."""
        self._seen.update(fact.id for fact in facts.rows if fact.id >= 0)
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
