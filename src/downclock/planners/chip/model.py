"""A task graph as the graph algorithms see it, and a placement of it on equal cores.

Work is counted in clock cycles, so that a placement holds whatever the clocks are (gerards
section 3.3). Symbols of the paper: ``w`` work, ``W`` total work, ``S`` makespan, ``ω_m`` cycles
with exactly m active cores, ``S̄`` weighted makespan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from downclock.kernels.graph_order import longest_from
from downclock.planners.chip.kernels.lists import Graph
from downclock.planners.chip.kernels.paths import longest_before, needed_edges
from downclock.problem.graph import Edges, grouped
from downclock.units import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class WorkGraph:
    """Work (n,) in cycles and edges as ragged columns, both ways.

    Attributes:
        succ_at, succ: successors of task i are ``succ[succ_at[i]:succ_at[i + 1]]``.
        pred_at, pred: predecessors likewise.
        order: a topological order (n,).
        pieces: tasks may run in pieces, with pauses or elsewhere; bounds then assume less.
    """

    work: Floats
    succ_at: Ints
    succ: Ints
    pred_at: Ints
    pred: Ints
    order: Ints
    pieces: bool = False

    @classmethod
    def of(cls, work: Floats, edges: Edges, pieces: bool = False) -> WorkGraph:
        """Index the edges both ways; raises where they have a cycle or name no task."""
        work = np.ascontiguousarray(work, dtype=np.float64)
        n = work.size
        order = edges.order(n)
        succ_at, succ = grouped(n, edges.before, edges.after)
        pred_at, pred = grouped(n, edges.after, edges.before)
        return cls(work, succ_at, succ, pred_at, pred, order, pieces)

    def __len__(self) -> int:
        return self.work.size

    def columns(self) -> Graph:
        """The graph as kernels take it."""
        return Graph(self.work, self.succ_at, self.succ, self.pred_at, self.pred)

    @property
    def total_work(self) -> float:
        """W."""
        return float(self.work.sum())

    @property
    def before(self) -> Ints:
        """First task of every edge, in the order of ``succ``."""
        return np.repeat(np.arange(len(self)), np.diff(self.succ_at))

    def bottom_levels(self, weight: Floats | None = None) -> Floats:
        """Longest path from each task to the end, itself included; in cycles or ``weight``."""
        length = self.work if weight is None else weight
        return longest_from(length, self.order, self.succ_at, self.succ)

    def top_levels(self, weight: Floats | None = None, at_least: Floats | None = None) -> Floats:
        """Longest path to the start of each task, itself not included; ``at_least`` where known."""
        length = self.work if weight is None else weight
        floor = np.zeros(len(self)) if at_least is None else at_least
        return longest_before(length, self.order, self.pred_at, self.pred, floor)

    def reach(self) -> Any:
        """Who follows whom, as bits (n, n / 64 rounded up): n² / 8 bytes."""
        return self._closure()[1]

    def reduced(self) -> WorkGraph:
        """Drop every edge that a longer path implies."""
        needed, _, after = self._closure()
        return WorkGraph.of(self.work, Edges(self.before[needed], after[needed]), self.pieces)

    def reversed(self) -> WorkGraph:
        """Return the graph with every edge turned round."""
        return WorkGraph.of(self.work, Edges(self.succ, self.before), self.pieces)

    def part(self, kept: Ints) -> WorkGraph:
        """Return some tasks, in the order given, and the edges between them."""
        place = np.full(len(self), -1, np.int64)
        place[kept] = np.arange(kept.size)
        before, after = place[self.before], place[self.succ]
        inner = (before >= 0) & (after >= 0)
        return WorkGraph.of(self.work[kept], Edges(before[inner], after[inner]), self.pieces)

    def _closure(self) -> tuple[Any, Any, Ints]:
        """Return which edges are needed, who follows whom, and the edges' second tasks by rank."""
        by_rank = np.lexsort((np.argsort(self.order)[self.succ], self.before))
        after = np.ascontiguousarray(self.succ[by_rank])
        return *needed_edges(self.order, self.succ_at, after), after

    @property
    def critical_path(self) -> float:
        """Length of the longest path in cycles."""
        return float(self.bottom_levels().max(initial=0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """When each task starts, in cycles, and on which core (-1 where it has no work), (n,)."""

    start: Floats
    core: Ints
    cores: int

    def end(self, graph: WorkGraph) -> Floats:
        """When each task ends, in cycles."""
        return self.start + graph.work

    def parallelism(self, graph: WorkGraph) -> Floats:
        """ω (cores + 1,): cycles with exactly m cores at work (gerards section 3.3).

        Gaps are entry 0; the last entry also counts what runs on more cores than there are.
        """
        real = graph.work > 0.0
        moment = np.concatenate([self.end(graph)[real], self.start[real]])
        change = np.repeat([-1, 1], moment.size // 2)
        order = np.argsort(moment, kind="stable")  # ends before starts at the same time
        active = np.cumsum(change[order]) - change[order]
        omega = np.zeros(self.cores + 1)
        np.add.at(omega, np.minimum(active, self.cores), np.diff(moment[order], prepend=0.0))
        return omega

    def core_order(self, graph: WorkGraph) -> Edges:
        """Edges between consecutive tasks of each core."""
        real = np.flatnonzero(self.core >= 0)
        queue = real[np.lexsort((graph.work[real], self.start[real], self.core[real]))]
        same = self.core[queue[1:]] == self.core[queue[:-1]]
        return Edges(queue[:-1][same], queue[1:][same])
