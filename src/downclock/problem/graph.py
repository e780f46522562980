"""Precedence: which task must end before which starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from downclock.errors import InvalidInput
from downclock.kernels.graph_order import topological_order
from downclock.quantities import refuse_rows
from downclock.units import Ints, as_column


def grouped(n: int, key: Ints, value: Ints) -> tuple[Ints, Ints]:
    """Group ``value`` by ``key`` in 0..n-1, both (m,): offsets (n + 1,) and the grouped values."""
    by_key = np.argsort(key, kind="stable")
    at = np.searchsorted(key[by_key], np.arange(n + 1)).astype(np.int64)
    return at, np.ascontiguousarray(value[by_key])


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Edges (m,): task ``before[i]`` ends no later than ``after[i]`` starts. None by default."""

    before: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    after: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        object.__setattr__(self, "before", as_column(self.before, np.int64))
        object.__setattr__(self, "after", as_column(self.after, np.int64))
        if self.before.size != self.after.size:
            rule = f"has {self.after.size} rows, 'before' {self.before.size}"
            raise InvalidInput(rule, item="edges", field="after")

    def __len__(self) -> int:
        return self.before.size

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Every edge as (before, after)."""
        return zip(self.before.tolist(), self.after.tolist(), strict=True)

    def order(self, n: int) -> Ints:
        """Return the tasks 0..n-1 in topological order; cost n + m.

        Raises:
            InvalidInput: an edge names no task, or a cycle (its ``row`` is a task on it).
        """
        if len(self) == 0:
            return np.arange(n)
        for name, ends in (("before", self.before), ("after", self.after)):
            refuse_rows((ends < 0) | (ends >= n), "names no task", field=name, values=ends)
        order, placed = topological_order(n, self.before, self.after)
        if placed < n:
            row = self._on_cycle(np.setdiff1d(np.arange(n), order[:placed]))
            raise InvalidInput("the graph has a cycle through this task", row=row)
        return order

    def in_order(self, n: int) -> Edges:
        """The same edges, those into a task before those out of it."""
        by_rank = np.argsort(np.argsort(self.order(n))[self.before], kind="stable")
        return Edges(self.before[by_rank], self.after[by_rank])

    def _on_cycle(self, unplaced: Ints) -> int:
        """Return a task on a cycle: go back from any unplaced one until a task comes again."""
        left = np.isin(self.before, unplaced) & np.isin(self.after, unplaced)
        before = dict(zip(self.after[left].tolist(), self.before[left].tolist(), strict=True))
        seen: set[int] = set()
        task = int(unplaced[0])
        while task not in seen:
            seen.add(task)
            task = before[task]
        return task

    def reach(self, n: int, seeds: Ints) -> Ints:
        """Return ``seeds`` and every task after them, sorted."""
        hit = np.zeros(n, dtype=bool)
        hit[seeds] = True
        for before, after in self.in_order(n):
            hit[after] |= hit[before]
        return np.flatnonzero(hit)
