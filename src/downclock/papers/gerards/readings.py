"""Two ways to read the paper's evaluation: as its numbers need, and as its text says.

All 198 printed cells follow from the ``published`` reading, which holds two slips: every task
carries the work of the next one (the dummy entry task stayed in the graph but its work was
dropped from the list of works), and the column labelled c3 = 0.2 was computed with 0.1. The
authors' code was not seen; both are inferred from the exact match.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from downclock.planners.chip.model import WorkGraph
from downclock.problem.graph import Edges
from downclock.workloads.stg import read_stg
from downclock.workloads.task_graph import TaskGraph

APPLICATIONS = ("robot", "fpppp", "sparse")


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read the evaluation.

    Attributes:
        name: ``published`` or ``corrected``.
        shifted: each task has the work of the next one.
        c3: printed static power -> static power used.
        example2: cycles with 1, 2, 3 active cores in Example 2's alternative schedule.
    """

    name: str
    shifted: bool
    c3: tuple[tuple[float, float], ...]
    example2: tuple[float, float, float]

    def used(self, label: float) -> float:
        """Static power behind a printed label."""
        return dict(self.c3)[label]

    def graph(self, graph: TaskGraph) -> WorkGraph:
        """Return a graph with the work this reading gives its tasks."""
        if not self.shifted:
            return WorkGraph.of(graph.work, graph.edges)
        roots = np.setdiff1d(np.arange(len(graph)), graph.edges.after)
        before = np.concatenate([np.zeros_like(roots), graph.edges.before + 1])
        after = np.concatenate([roots + 1, graph.edges.after + 1])
        return WorkGraph.of(np.append(graph.work, 0.0), Edges(before, after))


PUBLISHED = Reading("published", True, ((0.0, 0.0), (0.2, 0.1), (0.4, 0.4)), (5.25, 0.0, 10.25))
CORRECTED = Reading("corrected", False, ((0.0, 0.0), (0.2, 0.2), (0.4, 0.4)), (5.5, 0.0, 10.0))


def random_graphs(folder: Path) -> list[TaskGraph]:
    """Return the 180 random graphs of 50 tasks."""
    return [read_stg(path) for path in sorted(folder.glob("*.stg"))]


def application(folder: Path, name: str) -> TaskGraph:
    """Return one of the three application graphs."""
    return read_stg(folder / f"{name}.stg")
