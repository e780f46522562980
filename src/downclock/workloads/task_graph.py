"""A task graph read from a file: names, work and edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.errors import InvalidInput
from downclock.problem.graph import Edges
from downclock.units import Floats, Names


@dataclass(frozen=True, slots=True, eq=False)
class TaskGraph:
    """Tasks by name, their work (n,) in cycles (seconds at clock 1), and their edges."""

    name: str
    task: Names
    work: Floats
    edges: Edges

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for row, task in enumerate(self.task):
            if task in seen:
                raise InvalidInput("is the name of two tasks", item=f"task '{task}'", row=row)
            seen.add(task)
        try:
            self.edges.order(len(self))
        except InvalidInput as error:
            if error.field is not None or error.row is None:
                raise
            raise InvalidInput(error.rule, item=f"task '{self.task[error.row]}'") from None

    def __len__(self) -> int:
        return self.task.size

    @property
    def total_work(self) -> float:
        """Cycles of all tasks."""
        return float(self.work.sum())

    @property
    def critical_path(self) -> float:
        """Cycles on the longest path."""
        from downclock.kernels.graph_order import longest_from

        before, order = self.edges.before, self.edges.order(len(self))
        by_before = np.argsort(before, kind="stable")
        at = np.searchsorted(before[by_before], np.arange(len(self) + 1))
        return float(
            longest_from(self.work, order, at, self.edges.after[by_before]).max(initial=0.0)
        )
