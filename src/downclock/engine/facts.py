"""Facts: what happened at one moment, as rows of columns. The only way into a policy.

Whoever knows the time (a world that is imagined, drawn or real) tells them; nothing here has a
clock. Tasks are named by the number under which they were told, in the order of telling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from downclock.units import Bools, Floats, Ints

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

DERIVED = (FAILED, ORPHANED, OVERDUE)
"""Kinds that the book finds out by itself; no world tells them."""


class Fact(NamedTuple):
    """One row: see `Facts`."""

    code: int
    task: int = -1
    place: int = -1
    value: float = np.nan
    share: float = np.nan
    at_s: float = np.nan
    id: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """Rows (m,) of one moment.

    Attributes:
        now_s: the moment; never before the last one told.
        code: kind of each fact.
        task: the task, or -1.
        place: the processor, server or zone, or -1.
        value: see the kinds; of an end, actual / estimated work of the task; NaN: not known.
        share: part of the task that was done in what ended; NaN: as its time says.
        at_s: when it ended, where that is not now; NaN: now.
        id: number of each fact, which no other has: one told twice counts once. -1: none.
        due: the policy asked to be called now.
        closed: nothing more will arrive; known with the last arrivals, if at all.
    """

    now_s: float
    code: Ints
    task: Ints
    place: Ints
    value: Floats
    share: Floats
    at_s: Floats
    id: Ints
    due: bool = False
    closed: bool = False

    def __len__(self) -> int:
        return self.code.size

    @classmethod
    def of(
        cls, now_s: float, rows: Sequence[Fact], *, due: bool = False, closed: bool = False
    ) -> Facts:
        """Make facts from rows."""
        columns = zip(*rows, strict=True) if rows else ((),) * len(Fact._fields)
        whole = {"code", "task", "place", "id"}
        arrays: dict[str, Any] = {
            name: np.array(column, dtype=np.int64 if name in whole else np.float64)
            for name, column in zip(Fact._fields, columns, strict=True)
        }
        return cls(now_s=now_s, due=due, closed=closed, **arrays)

    def tasks(self, code: int) -> Ints:
        """Tasks that a kind of fact names, in the order told."""
        return np.asarray(self.task[self.code == code])

    def places(self, code: int) -> Ints:
        """Processors, servers or zones that a kind of fact names, in the order told."""
        return np.asarray(self.place[self.code == code])

    def kept(self, which: Bools) -> Facts:
        """Only some of the rows."""
        picked = {name: getattr(self, name)[which] for name in Fact._fields}
        return replace(self, **picked)

    def rows(self) -> list[Fact]:
        """Every row."""
        columns = (getattr(self, name).tolist() for name in Fact._fields)
        return [Fact(*row) for row in zip(*columns, strict=True)]

    def lines(self) -> list[str]:
        """One line per fact, for people."""
        return [
            " ".join(
                [f"{self.now_s:g}", WORDS[row.code]]
                + [f"task {row.task}"] * (row.task >= 0)
                + [f"place {row.place}"] * (row.place >= 0)
                + [f"{row.value:g}"] * (row.value == row.value)
            )
            for row in self.rows()
        ]


assert Fact._fields == tuple(spec.name for spec in fields(Facts))[1:8]
