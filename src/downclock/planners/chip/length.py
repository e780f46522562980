"""A lower bound on the makespan of a task graph on M equal cores, in cycles.

To end within D, a task must run between its longest path from the start and D less its longest
path to the end. In every interval the work that cannot be elsewhere has to fit on M cores
(energetic reasoning; less of it where tasks may run in pieces); the least D that no interval
refutes is the bound. The critical path, the total work and Fernandez and Bussell's bound (1973)
follow from it. Where there are more long tasks than cores, counting them says more (`crowds`).

Joins make paths longer than their tasks: what precedes a pivot (`stages`) needs a length of its own
before the pivot can start, and likewise what lies between two pivots, so paths count from there;
and so does what precedes any other task, or follows it: all of it must be done on the M cores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners.chip.model import WorkGraph
from downclock.planners.chip.stages import Stages, before_in, stages_of
from downclock.planners.crowds import crowded, some
from downclock.units import Floats

_STEPS = 5e6
"""Pairs of interval and task to look at for one D; large graphs get fewer intervals."""

_PRECISION = 1e-6
"""Relative, where work is not whole."""

_MOST_TASKS = 2_000
"""Tasks up to which every join is asked what its predecessors need."""


@dataclass(frozen=True, slots=True, eq=False)
class Lengths:
    """Least length of each stage (2 k + 1,) by the tasks that have no other, and of the whole."""

    stage: Floats
    whole: float


def least_length(graph: WorkGraph, cores: int, unit: float = 0.0) -> float:
    """Return a makespan that no schedule can go below.

    ``unit``: what the work of every task is a multiple of; 0 where there is no such number.
    """
    return least_lengths(graph, cores, unit, stages_of(graph)).whole


def least_lengths(graph: WorkGraph, cores: int, unit: float, stages: Stages) -> Lengths:
    """Return the lengths that no schedule can go below, stage by stage and in all."""
    none = np.zeros(len(graph))
    if not stages.pivot.size:
        whole = _energetic(graph, none, none, cores, unit)
        return Lengths(np.array([whole]), whole)
    parts = [graph.part(stages.tasks_of(s)) for s in range(stages.count)]
    stage = np.array([_energetic(g, none[: len(g)], none[: len(g)], cores, unit) for g in parts])
    until = np.cumsum(stage)
    head, tail = none.copy(), none.copy()
    head[stages.pivot] = until[0::2][:-1]
    tail[stages.pivot] = until[-1] - until[1::2]
    return Lengths(stage, _energetic(graph, head, tail, cores, unit))


def _energetic(graph: WorkGraph, head: Floats, tail: Floats, cores: int, unit: float) -> float:
    """Return the least length that no interval refutes; ``head``, ``tail`` (n,) where known."""
    turned = graph.reversed()
    head = behind_joins(graph, cores, graph.top_levels(at_least=head))
    tail = behind_joins(turned, cores, turned.top_levels(at_least=tail))
    real = graph.work > 0.0
    head, work, tail = head[real], graph.work[real], tail[real]
    known = max(float((head + work + tail).max(initial=0.0)), float(work.sum()) / cores)
    if known <= 0.0 or work.size <= 1:
        return known
    if not graph.pieces:
        known = max(known, crowded(head, work, tail, cores))

    def refuted(length: float) -> bool:
        return _refuted(head, work, tail, cores, length, graph.pieces)

    step = unit or _PRECISION * known
    known = unit * np.ceil(known / unit - 1e-9) if unit else known
    if not refuted(known):
        return float(known)
    low, high = 0, 1  # steps beyond what is known: refuted, and not yet
    while refuted(known + high * step):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if refuted(known + middle * step) else (low, middle)
    return float(known + step * (high if unit else low))


def behind_joins(graph: WorkGraph, cores: int, head: Floats) -> Floats:
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


def _refuted(
    head: Floats, work: Floats, tail: Floats, cores: int, length: float, pieces: bool
) -> bool:
    """Say whether some interval of [0, length] would have more work than M cores can do."""
    soonest_end, last_start = head + work, length - tail - work
    most = int(np.sqrt(_STEPS / work.size)) + 1
    begins = some(np.concatenate([head, last_start]), most)
    ends = some(np.concatenate([length - tail, soonest_end]), most)[:, None]
    for begin in begins:
        inside = np.minimum(np.minimum(work, ends - begin), ends - last_start)
        inside = np.minimum(inside, soonest_end - begin)
        if pieces:
            before, after = np.maximum(begin - head, 0.0), np.maximum(length - tail - ends, 0.0)
            inside = np.minimum(inside, work - before - after)
        inside = inside.clip(0.0).sum(axis=1)
        if np.any(inside > cores * np.maximum(ends[:, 0] - begin, 0.0) * (1.0 + 1e-9) + 1e-9):
            return True
    return False
