"""What a policy is: told facts, it answers with decisions.

A policy holds parameters only. ``start`` makes its state, plain columns that grow with the tasks
told; ``decide`` takes facts of one moment and answers. It touches nothing else, looks at no clock
and at nothing but its view; what cannot be done is a rejection, never an exception.

A policy may also offer to play a long run of moments by itself, in which nothing from outside can
happen but arrivals and ends (``fold``): a compiled loop over the function that ``decide`` calls. A
law holds the two equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from downclock.engine.decisions import Decisions
from downclock.engine.facts import Facts
from downclock.engine.saved import flat, rebuilt
from downclock.engine.tasks import TaskTable
from downclock.engine.view import View
from downclock.problem.problem import Problem
from downclock.units import Floats

Columns = Mapping[str, Any]
"""A state as arrays by name."""


class Coming(NamedTuple):
    """A run to be played: what the loop may know, and the policy's moments may not.

    Attributes:
        tasks: all tasks, those to come too, in the order of telling.
        told_s: when each is told (n,): when it arrives, but not before those that precede it.
        work: actual / estimated work of each (n,).
        closed: nothing arrives after them.
    """

    tasks: TaskTable
    told_s: Floats
    work: Floats
    closed: bool


class Folded(NamedTuple):
    """A run that was played: all decisions in one, and when each placed row really ended (m,)."""

    decisions: Decisions
    end_s: Floats


class Policy(Protocol):
    """How to decide.

    ``heeds`` lists the kinds of fact it wants to be asked about; it is asked once per moment, and
    told all of that moment. Where it names FINISHED, every end counts; where only OVERDUE, those
    that come at another time than promised.
    """

    @property
    def name(self) -> str:
        """The name in the catalogue, with parameters."""

    @property
    def heeds(self) -> frozenset[int]:
        """Kinds of fact to be asked about."""

    def objection(self, problem: Problem) -> str | None:
        """Say why this policy cannot plan the problem, or None."""

    def start(self, view: View) -> Any:
        """Make the state before anything was told."""

    def decide(self, state: Any, view: View, facts: Facts) -> tuple[Any, Decisions]:
        """Take note of facts and answer; the state may be changed in place."""

    def fold(self, state: Any, view: View, coming: Coming) -> tuple[Any, Folded] | None:
        """Play a whole run; None: one moment after the other, please."""

    def saved(self, state: Any) -> Columns:
        """The state as arrays by name."""

    def restored(self, view: View, columns: Columns) -> Any:
        """The state from its arrays."""


class MomentByMoment:
    """What most policies have in common: no whole runs, and a state that is a record of arrays."""

    __slots__ = ()

    def fold(self, state: Any, view: View, coming: Coming) -> tuple[Any, Folded] | None:
        """One moment after the other."""
        return None

    def saved(self, state: Any) -> Columns:
        """The state as arrays by name; it is a dataclass or a named tuple."""
        return flat(state)

    def restored(self: Policy, view: View, columns: Columns) -> Any:
        """The state from its arrays."""
        return rebuilt(self.start(view), columns)


def foresees(policy: Policy) -> bool:
    """Tell whether it looks at jobs before they arrive: a tuner, see `play`."""
    return hasattr(policy, "tuned")
