"""Pages of the book: a row is a promise to run a part of a task; a page is what is known of one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.engine.decisions import no_segments
from downclock.schedule.schedule import PENDING, Segments


@dataclass(slots=True, eq=False)
class Row:
    """A promise to run a part of a task: see `Decisions.place`; a gang is one row.

    ``began_s`` is when it really started, ``ended_s`` when it ended; infinite: not yet. ``done``
    is the part of the task that was told to be done in it. ``cut``: it was ended by a decision.
    """

    task: int
    attempt: int
    processors: tuple[int, ...]
    start_s: float
    end_s: float
    point: tuple[float, float, float]
    share: float
    eager: bool
    number: int
    began_s: float = np.inf
    ended_s: float = np.inf
    done: float = np.nan
    cut: bool = False

    def __lt__(self, other: Row) -> bool:
        return self.order < other.order

    @property
    def order(self) -> tuple[float, int]:
        """Rows go by their promised start; eager ones in the order in which they were placed."""
        return (-np.inf if self.eager else self.start_s), self.number

    @property
    def whole_s(self) -> float:
        """Estimated time of the whole task at the row's point."""
        return (self.end_s - self.start_s) / self.share

    @property
    def due_s(self) -> float:
        """When it ends if estimates hold, from when it really began."""
        if self.began_s == self.start_s:
            return self.end_s
        return self.began_s + (self.end_s - self.start_s)

    @property
    def kept(self) -> bool:
        """It ran as long as promised."""
        return self.ended_s == self.due_s


@dataclass(slots=True)
class TaskBook:
    """What is known of one task; few objects, as every collection of garbage walks them all."""

    status: int = PENDING
    accepted: bool = False
    attempt: int = 0
    tried: bool = False
    rows: tuple[Row, ...] = ()
    running: Row | None = None
    log: tuple[Row, ...] = ()
    work: float = 1.0
    reason: str = ""
    waits_for: int = 0
    begun_on: tuple[int, ...] = ()
    arrived: bool = False


def segments_of(pages: list[TaskBook]) -> Segments:
    """What has run, in the order of tasks: a segment for each processor of a row."""
    rows = [
        (row.task, p, row.began_s, row.ended_s, row.point, share, row.attempt)
        for page in pages
        for row, share in _written(page)
        for p in row.processors
    ]
    if not rows:
        return no_segments()
    return Segments.of(*map(np.array, zip(*rows, strict=True)))


def _written(page: TaskBook) -> list[tuple[Row, float]]:
    """Rows of a task with their shares; what was not told follows from times and work."""
    found = []
    for row in page.log:
        share = row.done
        if row.kept and page.work == 1.0 and not row.done < row.share:
            share = row.share
        elif np.isnan(row.done):
            share = (row.ended_s - row.began_s) / (row.whole_s * page.work)
        found.append((row, share))
    return found
