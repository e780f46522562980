"""Least starts behind joins: all that precedes a task must be done on the cores that there are."""

from __future__ import annotations

import numpy as np

from downclock.planners.chip.model import WorkGraph
from downclock.planners.chip.stages import before_in
from downclock.planners.crowds import crowded
from downclock.units import Floats

_MOST_TASKS = 2_000
"""Tasks up to which every join is asked what its predecessors need."""


def joined(graph: WorkGraph, cores: int, head: Floats) -> Floats:
    """Raise heads (n,): a task starts only after all that precede it, on M cores, can be done."""
    n = len(graph)
    if not cores < n <= _MOST_TASKS:
        return head
    head, known = head.copy(), dict[bytes, float]()
    reach = graph.reach()
    for i in graph.order:
        before = graph.pred[graph.pred_at[i] : graph.pred_at[i + 1]]
        if before.size:
            head[i] = max(head[i], float((head + graph.work)[before].max()))
        if before.size > 1:
            earlier = before_in(reach, int(i))
            key = earlier.tobytes()
            if key not in known:
                known[key] = _least_end(head[earlier], graph.work[earlier], cores, graph.pieces)
            head[i] = max(head[i], known[key])
    return head


def _least_end(head: Floats, work: Floats, cores: int, pieces: bool) -> float:
    """Least end of tasks with heads: the latest heads and all work behind them, or a crowd."""
    late = np.argsort(-head, kind="stable")
    filled = float((head[late] + np.cumsum(work[late]) / cores).max(initial=0.0))
    real = work > 0.0
    none = np.zeros(int(real.sum()))
    return filled if pieces else max(filled, crowded(head[real], work[real], none, cores))
