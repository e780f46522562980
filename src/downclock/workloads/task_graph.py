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
        end = np.array(self.work)
        order = self.edges.order(len(self))
        rank = np.empty(len(self), dtype=np.int64)
        rank[order] = np.arange(len(self))
        by_rank = np.argsort(rank[self.edges.before], kind="stable")
        before, after = self.edges.before[by_rank], self.edges.after[by_rank]
        for i, j in zip(before.tolist(), after.tolist(), strict=True):
            end[j] = max(end[j], end[i] + self.work[j])
        return float(end.max(initial=0.0))
