"""What a policy is: a fold over runs of events.

A policy holds parameters only. ``start`` makes its state, plain arrays that can be copied and
replayed; ``run`` is told which tasks arrived and until when nothing from outside will happen, and
answers with decisions. It touches nothing else; what cannot be done is a rejection, never an
exception. Cutting a run between two event times changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from downclock.power.frontier import Frontier
from downclock.problem.problem import Problem
from downclock.schedule.schedule import (
    DONE,
    PENDING,
    REJECTED,
    Outcomes,
    PowerSpans,
    Schedule,
    Segments,
)
from downclock.units import Floats, Ints, Names

T = TypeVar("T")
Table = TypeVar("Table", Segments, PowerSpans)


class View:
    """What a policy may look at: the problem, and what follows from it alone."""

    __slots__ = ("problem",)

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def frontier(self, kind: int) -> Frontier:
        """Energy-time frontier of every task on a kind."""
        return self.problem.frontier(kind)

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Compute something that depends on the problem alone, the first time it is asked."""
        return self.problem.once(key, compute)

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


def merged(problem: Problem, decisions: Sequence[Decisions], policy: str) -> Schedule:
    """Everything decided, as a schedule; what was not decided is pending."""
    place = _joined(Segments, [decided.place for decided in decisions])
    power = _joined(PowerSpans, [decided.power for decided in decisions])
    n = len(problem.tasks)
    status, reason = np.full(n, PENDING), np.full(n, "", dtype=object)
    status[place.task] = DONE
    status[(problem.tasks.scale == 0.0) & (status == PENDING)] = DONE
    for decided in decisions:
        status[decided.rejected] = REJECTED
        reason[decided.rejected] = decided.reason
    return Schedule(place, power, Outcomes(status, reason, np.ones(n)), policy)


def joined(parts: Sequence[Decisions]) -> Decisions:
    """What was decided one after the other, in one."""
    return Decisions(
        _joined(Segments, [part.place for part in parts]),
        _joined(PowerSpans, [part.power for part in parts]),
        np.concatenate([part.rejected for part in parts]),
        np.concatenate([part.reason for part in parts]),
        parts[-1].call_me_s,
    )


def _joined(kind: type[Table], tables: list[Table]) -> Table:
    """One table out of several."""
    if len(tables) == 1:
        return tables[0]
    columns = [
        np.concatenate([getattr(table, spec.name) for table in tables] or [np.empty(0)])
        for spec in fields(kind)
    ]
    return kind(*columns)
