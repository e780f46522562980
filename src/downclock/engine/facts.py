"""Facts: what happened at one moment. The only way into a policy.

Whoever knows the time (a world that is imagined, drawn or real) tells them; nothing here has a
clock. Tasks are named by the number under which they were told, in the order of telling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from downclock.units import Ints

(
    ARRIVED, FINISHED, LOST, FAILED, CANCELLED, AMENDED, ORPHANED, OVERDUE,
    DOWN, UP, SERVER_DOWN, SERVER_UP, PRICE, PARTLY_DONE,
) = range(14)  # fmt: skip
WORDS = (
    "arrived", "finished", "lost", "failed", "cancelled", "amended", "orphaned", "overdue",
    "down", "up", "server down", "server up", "price", "partly done",
)  # fmt: skip
"""Kinds of fact, by code: a task came; was done; lost its attempt and may have another; has none
left; is no longer wanted; has another deadline (``value``); follows one that did not finish; did
not end when it was promised to. A processor fails or is back (``place``); a server likewise, which
is asleep then. A kWh costs ``value`` in zone ``place`` from now on. One of a task's rows is done,
and more are promised."""

EVERY = frozenset(range(14))
"""All kinds."""

CHANGES = frozenset(
    (ARRIVED, FINISHED, LOST, FAILED, CANCELLED, AMENDED, DOWN, UP, SERVER_DOWN, SERVER_UP)
)
"""Kinds that a policy is asked about which plans anew whatever happens."""

DERIVED = (FAILED, ORPHANED, OVERDUE)
"""Kinds that the book finds out by itself; no world tells them."""


class Fact(NamedTuple):
    """One thing that happened.

    Attributes:
        code: its kind.
        task: the task, or -1.
        place: the processor, server or zone, or -1.
        value: see the kinds; of an end, actual / estimated work of the task; NaN: not known.
        share: part of the task that was done in what ended; NaN: as its time says.
        at_s: when it ended, where that is not now; NaN: now.
        id: a number that no other fact has: one told twice counts once. -1: none.
    """

    code: int
    task: int = -1
    place: int = -1
    value: float = np.nan
    share: float = np.nan
    at_s: float = np.nan
    id: int = -1


@dataclass(frozen=True, slots=True)
class Facts:
    """What happened at one moment.

    Attributes:
        now_s: the moment; never before the last one told.
        rows: the facts, in the order told.
        due: the policy asked to be called now.
        closed: nothing more will arrive; known with the last arrivals, if at all.
    """

    now_s: float
    rows: Sequence[Fact]
    due: bool = False
    closed: bool = False

    def tasks(self, code: int) -> Ints:
        """Tasks that a kind of fact names, in the order told."""
        return np.array([fact.task for fact in self.rows if fact.code == code], dtype=np.int64)

    def places(self, code: int) -> Ints:
        """Processors, servers or zones that a kind of fact names, in the order told."""
        return np.array([fact.place for fact in self.rows if fact.code == code], dtype=np.int64)
