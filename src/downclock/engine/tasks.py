"""The tasks told so far: a table that grows. A task keeps the number under which it was told."""

from __future__ import annotations

from typing import Any

import numpy as np

from downclock.columns import joined, taken
from downclock.problem.spread import Spread
from downclock.problem.tasks import Tasks
from downclock.units import Floats, Ints, Names

_COLUMNS = {
    "name": object,
    "application": np.int64,
    "scale": np.float64,
    "arrival_s": np.float64,
    "deadline_s": np.float64,
    "processors": np.int64,
}
LEAST = 16


class TaskTable:
    """Columns with room to grow; adding costs its own rows on average.

    Attributes:
        n: how many tasks were told.
        name, application, scale, arrival_s, deadline_s, processors: as in `Tasks` (n,).
        spread: distribution of actual / estimated work, where any was told.
    """

    __slots__ = (*_COLUMNS, "_rooms", "n", "spread")

    name: Names
    application: Ints
    scale: Floats
    arrival_s: Floats
    deadline_s: Floats
    processors: Ints

    def __init__(self) -> None:
        self._rooms = {name: np.empty(0, dtype) for name, dtype in _COLUMNS.items()}
        self.spread: Spread | None = None
        self._show(0)

    def __len__(self) -> int:
        return self.n

    def _show(self, n: int) -> None:
        self.n = n
        for name, room in self._rooms.items():
            setattr(self, name, room[:n])

    def add(self, tasks: Tasks | TaskTable, rows: Ints) -> Ints:
        """Add rows of a table of tasks; return their numbers here."""
        first, n = self.n, self.n + rows.size
        for name, room in self._rooms.items():
            self._rooms[name] = grown(room, n)
            self._rooms[name][first:n] = getattr(tasks, name)[rows]
        if tasks.spread is not None or self.spread is not None:
            more = _exact(rows.size) if tasks.spread is None else taken(tasks.spread, rows)
            self.spread = joined([self.spread or _exact(first), more])
        self._show(n)
        return np.arange(first, n)

    def as_tasks(self) -> Tasks:
        """All of them as a table of a problem."""
        columns: dict[str, Any] = {name: getattr(self, name).copy() for name in _COLUMNS}
        return Tasks(**columns, spread=self.spread)


def _exact(n: int) -> Spread:
    return Spread(np.zeros(n, np.int64), np.ones(n), np.ones(n))


def grown(
    column: np.ndarray[Any, Any], size: int, fill: float | int | None = None, least: int = LEAST
) -> np.ndarray[Any, Any]:
    """The column with room for ``size`` rows, at least doubled where it has none; new: ``fill``.

    Zeros by default: what is written to disk does not depend on what memory held before. Columns
    whose ``least`` rooms differ do not grow at the same moment.
    """
    if column.shape[0] >= size:
        return column
    room = max(least, size, 2 * column.shape[0])
    more = np.zeros((room, *column.shape[1:]), column.dtype)
    more[: column.shape[0]] = column
    if fill is not None:
        more[column.shape[0] :] = fill
    return more
