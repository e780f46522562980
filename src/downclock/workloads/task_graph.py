"""A task graph read from a file: names, work and edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.errors import InvalidInput
from downclock.problem.graph import Edges, grouped
from downclock.problem.tasks import Tasks
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

    def tasks(self, deadline_s: float) -> Tasks:
        """Its tasks, all of one application, by one deadline."""
        application = np.zeros(len(self), dtype=np.int64)
        return Tasks.of(application, deadline_s=deadline_s, scale=self.work, name=self.task)

    @property
    def total_work(self) -> float:
        """Cycles of all tasks."""
        return float(self.work.sum())

    @property
    def critical_path(self) -> float:
        """Cycles on the longest path."""
        from downclock.kernels.graph_order import longest_from

        order, edges = self.edges.order(len(self)), self.edges
        at, after = grouped(len(self), edges.before, edges.after)
        return float(longest_from(self.work, order, at, after).max(initial=0.0))
