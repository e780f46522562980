"""The tasks told so far: a table that grows. A task keeps the number under which it was told."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    """Columns with room to grow; adding costs its own rows on average."""

    __slots__ = ("_columns", "_spread", "n")

    def __init__(self) -> None:
        self.n = 0
        self._columns = {name: np.empty(0, dtype) for name, dtype in _COLUMNS.items()}
        self._spread: Spread | None = None

    def __len__(self) -> int:
        return self.n

    def add(self, tasks: Tasks | TaskTable, rows: Ints) -> Ints:
        """Add rows of a table of tasks; return their numbers here."""
        first, self.n = self.n, self.n + rows.size
        for name, column in self._columns.items():
            self._columns[name] = grown(column, self.n)
            self._columns[name][first : self.n] = getattr(tasks, name)[rows]
        self._add_spread(tasks.spread, rows, first)
        return np.arange(first, self.n)

    def _add_spread(self, spread: Spread | None, rows: Ints, first: int) -> None:
        if spread is None and self._spread is None:
            return
        size = rows.size
        before = self._spread or Spread(np.zeros(first, np.int64), np.ones(first), np.ones(first))
        more = (
            Spread(np.zeros(size, np.int64), np.ones(size), np.ones(size))
            if spread is None
            else Spread(spread.shape[rows], spread.a[rows], spread.b[rows])
        )
        self._spread = Spread(
            np.concatenate([before.shape, more.shape]),
            np.concatenate([before.a, more.a]),
            np.concatenate([before.b, more.b]),
        )

    def amend(self, task: int, deadline_s: float) -> None:
        """Give a task another deadline."""
        self._columns["deadline_s"][task] = deadline_s

    def as_tasks(self, n: int) -> Tasks:
        """The first ``n`` tasks as a table of a problem."""
        spread = self._spread
        part = None if spread is None else Spread(spread.shape[:n], spread.a[:n], spread.b[:n])
        columns: dict[str, Any] = {name: c[:n].copy() for name, c in self._columns.items()}
        return Tasks(**columns, spread=part)

    @property
    def name(self) -> Names:
        """Names (n,)."""
        return self._columns["name"][: self.n]

    @property
    def application(self) -> Ints:
        """Index into the library (n,)."""
        return self._columns["application"][: self.n]

    @property
    def scale(self) -> Floats:
        """Units of work (n,)."""
        return self._columns["scale"][: self.n]

    @property
    def arrival_s(self) -> Floats:
        """Earliest start (n,)."""
        return self._columns["arrival_s"][: self.n]

    @property
    def deadline_s(self) -> Floats:
        """Latest end (n,)."""
        return self._columns["deadline_s"][: self.n]

    @property
    def processors(self) -> Ints:
        """Processors that each needs at once (n,)."""
        return self._columns["processors"][: self.n]

    @property
    def spread(self) -> Spread | None:
        """Distribution of actual / estimated work, where any was told."""
        return self._spread


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
