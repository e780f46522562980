"""Enumerated clock levels where every core has its own clock: a linear program.

Each task mixes levels: cycles ``y_il`` at level l; time and energy are linear in them. An optimal
answer uses at most two neighbouring levels of a task's convex hull.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.chip.clocks import ChipPower
from downclock.planners.chip.local import ordered_graph
from downclock.planners.chip.model import Placement, WorkGraph
from downclock.planners.chip.segments import ClockedRows
from downclock.units import TOLERANCE, Floats


def local_levels(
    graph: WorkGraph, placed: Placement, deadline: float, power: ChipPower
) -> ClockedRows:
    """Least energy of a placement with enumerated clocks that may change while a task runs.

    Raises:
        InvalidInput: the fastest level is too slow.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    levels = np.array(power.levels)
    joint = ordered_graph(graph, placed)
    least = joint.critical_path / levels[-1]
    if least > deadline * (1.0 + TOLERANCE):
        rule = f"is too short: the fastest clock needs {least:g}"
        raise InvalidInput(rule, field="deadline", value=deadline)
    real = np.flatnonzero(graph.work > 0.0)
    joules = graph.work[real, None] * power.per_cycle(levels)
    cost = np.concatenate([joules.ravel(), np.zeros(len(graph))])
    rows, right = _time_rows(joint, real, levels, deadline)
    shares = sparse.kron(sparse.eye_array(real.size), np.ones((1, levels.size)))
    sums: Any = sparse.hstack([shares, sparse.csr_array((real.size, len(graph)))])
    answer = linprog(
        cost, A_ub=rows, b_ub=right, A_eq=sums, b_eq=np.ones(real.size), method="highs"
    )
    if answer.x is None:
        raise InvalidInput("no mix of clock levels meets it", field="deadline", value=deadline)
    share = np.zeros((len(graph), levels.size))
    share[real] = np.maximum(answer.x[: real.size * levels.size].reshape(real.size, -1), 0.0)
    share[real] /= share[real].sum(axis=1, keepdims=True)
    return _found(joint, placed, deadline, share, levels)


def neighbouring_levels(
    graph: WorkGraph, placed: Placement, deadline: float, power: ChipPower, clock: Floats
) -> ClockedRows:
    """Every task keeps the run time of its free clock (n,), at the two levels beside it.

    No program to solve: for graphs too large for `local_levels`. A clock must lie within levels.
    """
    levels = np.array(power.levels)
    above = np.clip(np.searchsorted(levels, clock), 1, levels.size - 1) if levels.size > 1 else 0
    below = np.maximum(np.asarray(above) - 1, 0)
    fast, slow = 1.0 / levels[above], 1.0 / levels[below]
    part = np.clip((slow - 1.0 / clock) / np.maximum(slow - fast, 1e-300), 0.0, 1.0)
    share, task = np.zeros((len(graph), levels.size)), np.arange(len(graph))
    share[task, below] = 1.0 - part
    share[task, above] += np.where(above == below, 0.0, part)
    share[graph.work <= 0.0] = 0.0
    return _found(ordered_graph(graph, placed), placed, deadline, share, levels)


def _time_rows(joint: WorkGraph, real: Any, levels: Floats, deadline: float) -> tuple[Any, Floats]:
    """Rows: an edge's first task ends before its second starts; sinks end by the deadline."""
    from scipy import sparse

    n, k = len(joint), levels.size
    place = np.full(n, -1, dtype=np.int64)
    place[real] = np.arange(real.size)
    sinks = np.flatnonzero(np.diff(joint.succ_at) == 0)
    tail = np.concatenate([joint.before, sinks])
    count, edges = tail.size, joint.succ.size
    works = np.flatnonzero(place[tail] >= 0)
    row = np.repeat(works, k)
    column = (place[tail[works]][:, None] * k + np.arange(k)).ravel()
    value = (joint.work[tail[works], None] / levels).ravel()
    spent = sparse.csr_array((value, (row, column)), shape=(count, real.size * k))
    starts = sparse.csr_array((np.ones(count), (np.arange(count), tail)), shape=(count, n))
    after = sparse.csr_array((np.ones(edges), (np.arange(edges), joint.succ)), shape=(count, n))
    right = np.concatenate([np.zeros(edges), np.full(sinks.size, deadline)])
    return sparse.hstack([spent, starts - after]), right


def _found(
    joint: WorkGraph, placed: Placement, deadline: float, share: Floats, levels: Floats
) -> ClockedRows:
    """Round the solver's answer to one that ends in time, and lay the rows out."""
    share[share < 1e-9] = 0.0
    share[joint.work > 0.0] /= share[joint.work > 0.0].sum(axis=1, keepdims=True)
    time = joint.work * (share / levels).sum(axis=1)
    length = joint.bottom_levels(time).max(initial=0.0)
    if length > deadline * (1.0 + 1e-12):  # rounding: a little of all work at the fastest level
        fast = joint.work / levels[-1]
        most = joint.bottom_levels(fast).max()
        mix = min(1.0, (length - deadline) / max(length - most, 1e-300) * (1.0 + 1e-9))
        share = (1.0 - mix) * share
        share[joint.work > 0.0, -1] += mix
        time = joint.work * (share / levels).sum(axis=1)
    run = joint.work[:, None] * share / levels
    task, level = np.nonzero(share > 0.0)
    begin = (joint.top_levels(time)[:, None] + np.cumsum(run, axis=1) - run)[task, level]
    end = np.maximum(begin + run[task, level], np.nextafter(begin, np.inf))
    return ClockedRows(task, placed.core[task], begin, end, levels[level], share[task, level])
