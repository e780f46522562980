"""Decisions: what a policy answers to facts. Revokes count before places; all count at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np

from downclock.columns import joined
from downclock.schedule.schedule import Segments
from downclock.units import Bools, Floats, Ints, Names


@cache
def _none(dtype: type) -> Any:
    """An empty column; there is one of each type, as most decisions are empty in most parts."""
    return np.empty(0, dtype=dtype)


@cache
def no_segments() -> Segments:
    """An empty table."""
    none = _none(float)
    return Segments.of(_none(np.int64), _none(np.int64), none, none, np.empty((0, 3)))


@dataclass(frozen=True, slots=True, eq=False)
class Switches:
    """Servers that are switched, rows (n,): which, on or to sleep, and when.

    Waking takes the server's own time; the book makes spans of it.
    """

    server: Ints = field(default_factory=partial(_none, np.int64))
    on: Bools = field(default_factory=partial(_none, bool))
    at_s: Floats = field(default_factory=partial(_none, float))

    def __len__(self) -> int:
        return self.server.size


def woken(servers: Ints, now_s: float) -> Switches:
    """Servers that wake now."""
    return Switches(servers, np.ones(servers.size, bool), np.full(servers.size, now_s))


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """What a policy commits to.

    Attributes:
        place: rows to run: ``start_s`` may lie ahead, ``end_s`` is when the ``share`` is done if
            estimates hold; the last row of a task runs until the task is done. A gang is one row
            per processor, equal but for it.
        eager: rows start as soon as their processors are free and what was placed there before
            is done; else not before their ``start_s``.
        revoke: tasks (r,) whose rows are dropped; what runs is cut now and keeps its share.
        accept: tasks (a,) that will be done; placing implies it.
        rejected: tasks (r,) that will not run, and ``reason`` why (r,).
        power: servers to switch.
        call_me_s: when to be asked again at the latest; infinite: only when something happens.
    """

    place: Segments = field(default_factory=no_segments)
    eager: bool = False
    revoke: Ints = field(default_factory=partial(_none, np.int64))
    accept: Ints = field(default_factory=partial(_none, np.int64))
    rejected: Ints = field(default_factory=partial(_none, np.int64))
    reason: Names = field(default_factory=partial(_none, object))
    power: Switches = field(default_factory=Switches)
    call_me_s: float = np.inf


def joined_decisions(parts: Sequence[Decisions]) -> Decisions:
    """Starts, refusals and power of a run in one; what counts only while it goes on is left out."""
    every = [Decisions(), *parts]
    return Decisions(
        place=joined([part.place for part in every]),
        rejected=np.concatenate([part.rejected for part in every]),
        reason=np.concatenate([part.reason for part in every]),
        power=joined([part.power for part in every]),
    )
