"""A lower bound on the makespan of a task graph on M equal cores, in cycles.

To end within D, a task must run between its longest path from the start and D less its longest
path to the end. In every interval the work that cannot be elsewhere has to fit on M cores
(energetic reasoning; less of it where tasks may run in pieces); the least D that no interval
refutes is the bound. The critical path, the
total work and Fernandez and Bussell's bound (1973) follow from it.
"""

from __future__ import annotations

import numpy as np

from downclock.planners.chip.model import WorkGraph
from downclock.units import Floats

_STEPS = 5e6
"""Pairs of interval and task to look at for one D; large graphs get fewer intervals."""

_PRECISION = 1e-6
"""Relative, where work is not whole."""


def least_length(graph: WorkGraph, cores: int, unit: float = 0.0) -> float:
    """Return a makespan that no schedule can go below.

    ``unit``: what the work of every task is a multiple of; 0 where there is no such number.
    """
    real = graph.work > 0.0
    head, work = graph.top_levels()[real], graph.work[real]
    tail = graph.bottom_levels()[real] - work

    def refuted(length: float) -> bool:
        return _refuted(head, work, tail, cores, length, graph.pieces)

    known = max(graph.critical_path, graph.total_work / cores)
    if known <= 0.0:
        return 0.0
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


def _refuted(
    head: Floats, work: Floats, tail: Floats, cores: int, length: float, pieces: bool
) -> bool:
    """Say whether some interval of [0, length] would have more work than M cores can do."""
    soonest_end, last_start = head + work, length - tail - work
    most = int(np.sqrt(_STEPS / work.size)) + 1
    begins = _some(np.concatenate([head, last_start]), most)
    ends = _some(np.concatenate([length - tail, soonest_end]), most)[:, None]
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


def _some(times: Floats, most: int) -> Floats:
    """At most so many of the times, evenly over their order."""
    known = np.unique(times)
    if known.size <= most:
        return known
    return known[np.linspace(0, known.size - 1, most).astype(np.int64)]
