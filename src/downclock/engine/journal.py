"""What a scheduler was told, to go back to where it was when a call fails.

Policies change their state in place, so a call that ends in an error leaves it half changed. The
way back is to begin again and to be told everything again: same facts, same decisions. What is told
is kept as plain numbers, and begins anew when the scheduler is written.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from downclock.columns import taken
from downclock.engine.facts import Fact, Facts
from downclock.engine.tasks import TaskTable
from downclock.engine.view import View

if TYPE_CHECKING:
    from downclock.engine.scheduler import Scheduler

_CALL, _FACT = 6, 6
"""Numbers of a call (moment, due, closed, tasks and edges told before it, facts), and of a fact."""


class Journal:
    """Calls since a beginning.

    Attributes:
        begin: makes the scheduler that all was told to, on a site where nothing is told yet.
        deadline_s: first deadline of every task that was given another one.
    """

    __slots__ = ("_numbers", "begin", "deadline_s")

    def __init__(self, begin: Callable[[View], Scheduler]) -> None:
        self.begin = begin
        self.deadline_s: dict[int, float] = {}
        self._numbers = array("d")

    def write(self, view: View, facts: Facts) -> None:
        """Add a call; ids are left out, as only facts that were not told before are kept."""
        told = (facts.now_s, facts.due, facts.closed, len(view.tasks), len(view.edges))
        self._numbers.extend((*told, len(facts.rows)))
        for fact in facts.rows:
            self._numbers.extend(fact[:_FACT])

    def replayed(self, view: View) -> Scheduler:
        """A scheduler that was told all of it; ``view`` is what is known now."""
        tasks, edges = TaskTable(), view.edges
        tasks.add(view.tasks, np.arange(len(view.tasks)))
        for task, first_s in self.deadline_s.items():
            tasks.deadline_s[task] = first_s
        fresh = self.begin(view.apart())

        def tell(upto: int, edges_upto: int) -> None:
            rows = np.arange(len(fresh.view.tasks), upto)
            fresh.tell(tasks, rows, taken(edges, slice(len(fresh.view.edges), edges_upto)))

        for upto, edges_upto, facts in self._calls():
            tell(upto, edges_upto)
            fresh.handle(facts)
        tell(len(tasks), len(edges))
        return fresh

    def _calls(self) -> Iterator[tuple[int, int, Facts]]:
        """Every call: tasks and edges told before it, and its facts."""
        numbers, at = self._numbers, 0
        while at < len(numbers):
            now_s, due, closed, *counts = numbers[at : at + _CALL]
            tasks, edges, size = (int(count) for count in counts)
            end = at + _CALL + size * _FACT
            facts = (numbers[a : a + _FACT] for a in range(at + _CALL, end, _FACT))
            rows = [Fact(*map(int, each[:3]), *each[3:]) for each in facts]
            yield tasks, edges, Facts(now_s, rows, due=bool(due), closed=bool(closed))
            at = end
