"""Enumerated clock levels where cores, or islands of them, have their own clocks: a linear program.

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
from downclock.planners.chip.segments import ClockedRows, core_rows
from downclock.planners.highs import entries
from downclock.units import TOLERANCE, Bools, Floats

LEVELS_SOLVED = 2_000
"""Tasks up to which the use of enumerated clocks is solved as a linear program."""

_TASK_STEPS = 1e7
"""Falls of a level times tasks: counted, so that an answer repeats."""


def local_levels(
    graph: WorkGraph, placed: Placement, deadline: float, power: ChipPower
) -> ClockedRows:
    """Least energy of a placement with enumerated clocks that may change while a task runs.

    Raises:
        InvalidInput: the fastest level is too slow.
    """
    levels, joint = np.array(power.levels), ordered_graph(graph, placed)
    joules = graph.work[:, None] * power.per_cycle(levels)
    share, _ = least_mix(joint, joules, levels, deadline)
    return _found(joint, placed, deadline, share, levels)


def least_mix(
    joint: WorkGraph,
    joules: Floats,
    levels: Floats,
    deadline: float,
    joined: Bools | None = None,
) -> tuple[Floats, Floats]:
    """Return the share of each task's cycles at each level (n, k) of least energy, and starts (n,).

    ``joules`` (n, k): of a whole task at a level. ``joined`` (m,): edges whose second task starts
    when the first ends, not later.

    Raises:
        InvalidInput: the fastest level is too slow.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    least = joint.critical_path / levels[-1]
    if least > deadline * (1.0 + TOLERANCE):
        rule = f"is too short: the fastest clock needs {least:g}"
        raise InvalidInput(rule, field="deadline", value=deadline)
    real = np.flatnonzero(joint.work > 0.0)
    cost = np.concatenate([joules[real].ravel(), np.zeros(len(joint))])
    rows, right = _time_rows(joint, real, levels, deadline)
    if joined is not None:
        tight = sparse.csr_array(rows)[np.flatnonzero(joined)]
        rows, right = sparse.vstack([rows, -tight]), np.append(right, np.zeros(tight.shape[0]))
    shares = sparse.kron(sparse.eye_array(real.size), np.ones((1, levels.size)))
    sums: Any = sparse.hstack([shares, sparse.csr_array((real.size, len(joint)))])
    answer = linprog(
        cost, A_ub=rows, b_ub=right, A_eq=sums, b_eq=np.ones(real.size), method="highs"
    )
    if answer.x is None:
        raise InvalidInput("no mix of clock levels meets it", field="deadline", value=deadline)
    share = np.zeros((len(joint), levels.size))
    share[real] = np.maximum(answer.x[: real.size * levels.size].reshape(real.size, -1), 0.0)
    share[real] /= share[real].sum(axis=1, keepdims=True)
    return share, np.maximum(answer.x[real.size * levels.size :], 0.0)


def one_level_each(
    graph: WorkGraph, placed: Placement, deadline: float, power: ChipPower, clock: Floats
) -> ClockedRows:
    """Every task at one level, for clocks that are locked while a task runs.

    It starts at the level above its free ``clock`` (n,); then levels fall one by one where the
    deadline allows it, most joules first. No search for the best levels: that is a hard problem.
    """
    levels, joint = np.array(power.levels), ordered_graph(graph, placed)
    level = np.minimum(np.searchsorted(levels, clock), levels.size - 1)
    joules, time = graph.work[:, None] * power.per_cycle(levels), graph.work[:, None] / levels
    task = np.arange(len(graph))
    for _ in range(min(len(graph) * levels.size, int(_TASK_STEPS / len(graph)))):
        slower, run = np.maximum(level - 1, 0), time[task, level]
        left = deadline - joint.top_levels(run) - joint.bottom_levels(run)
        saved = joules[task, level] - joules[task, slower]
        saved[time[task, slower] - run > left] = 0.0
        most = int(np.argmax(saved))
        if saved[most] <= 0.0:
            break
        level[most] -= 1
    start = joint.top_levels(time[task, level])
    return core_rows(graph, placed, start, levels[level])


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
    spent = entries(row, column, (count, real.size * k), value)
    starts = entries(np.arange(count), tail, (count, n))
    after = entries(np.arange(edges), joint.succ, (count, n))
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
