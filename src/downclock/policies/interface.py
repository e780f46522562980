"""What a policy is: a fold over runs of events.

A policy holds parameters only. ``start`` makes its state, plain arrays that can be copied and
replayed; ``run`` is told which tasks arrived and until when nothing from outside will happen, and
answers with decisions. It touches nothing else; what cannot be done is a rejection, never an
exception. Cutting a run between two event times changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from downclock.power.frontier import Frontier
from downclock.problem.problem import Problem
from downclock.schedule.schedule import PowerSpans, Segments
from downclock.units import Floats, Ints, Names

T = TypeVar("T")


class View:
    """What a policy may look at: the problem, and each kind's frontier, solved once."""

    __slots__ = ("_known", "problem")

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._known: dict[Hashable, Any] = {}

    def frontier(self, kind: int) -> Frontier:
        """Energy-time frontier of every task on a kind."""
        return self.once(("frontier", kind), lambda: self.problem.frontier(kind))

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Compute something that depends on the problem alone, the first time it is asked."""
        if key not in self._known:
            self._known[key] = compute()
        known: T = self._known[key]
        return known

    @property
    def window_s(self) -> Floats:
        """Time between arrival and deadline of each task."""
        return self.problem.tasks.deadline_s - self.problem.tasks.arrival_s


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """What a policy commits to in one run.

    Attributes:
        place: segments of tasks, promised.
        power: spans of servers, closed or open.
        rejected: tasks that will not run (r,), and ``reason`` why (r,).
        call_me_s: when to be asked again at the latest; infinite: only when something happens.
    """

    place: Segments
    power: PowerSpans
    rejected: Ints
    reason: Names
    call_me_s: float = np.inf


@runtime_checkable
class Policy(Protocol):
    """How to decide."""

    @property
    def name(self) -> str:
        """The name in the catalogue, with parameters."""
        ...

    def objection(self, problem: Problem) -> str | None:
        """Say why this policy cannot plan the problem, or None."""
        ...

    def start(self, view: View) -> Any:
        """Make the state at time 0."""
        ...

    def run(self, state: Any, view: View, arrived: Ints, until_s: float) -> tuple[Any, Decisions]:
        """Decide on ``arrived`` (task indices, by arrival) and all up to ``until_s``."""
        ...
