"""Start times and cores of a placement: the best times for a given order, and free cores."""

from __future__ import annotations

from typing import Any

import numpy as np

from downclock.errors import InvalidSchedule
from downclock.planners.chip.clocks import ChipPower
from downclock.planners.chip.kernels.lists import cores_of_intervals
from downclock.planners.chip.kernels.paths import keep_order
from downclock.planners.chip.model import Placement, WorkGraph
from downclock.planners.highs import entries
from downclock.units import Floats, Ints

_MOST_RELATED = 20_000
"""Tasks up to which cores are chosen by who precedes whom: the bits take n² / 8 bytes."""


def with_cores(
    graph: WorkGraph, start: Floats, cores: int, *, duration: Floats | None = None
) -> Placement:
    """Give every task with work a core for its time.

    Raises:
        InvalidSchedule: more tasks run at once than there are cores.
    """
    length = graph.work if duration is None else duration
    real = np.flatnonzero(graph.work > 0.0)
    by_start = real[np.argsort(start[real], kind="stable")]
    words = np.zeros((len(graph), 0), dtype=np.uint64)
    reach = graph.reach() if len(graph) <= _MOST_RELATED else words
    core = cores_of_intervals(start, start + length, by_start, reach, cores)
    if np.any(core[real] < 0):
        raise InvalidSchedule(f"more than {cores} tasks run at once")
    return Placement(start, core, cores)


def best_times(graph: WorkGraph, placed: Placement, alpha: float = 3.0) -> Placement:
    """Return the times of least weighted makespan that keep the order of starts and ends.

    A linear program: between two neighbouring events the number of active cores is fixed.
    """
    from scipy.optimize import linprog

    real = np.flatnonzero(graph.work > 0.0)
    events = _event_order(graph, placed, real)
    rows, right = _order_rows(graph, events)
    task, is_end = events
    active = np.cumsum(np.where(is_end, -1, 1))[:-1]
    weight = ChipPower(alpha=alpha).weight(placed.cores)[active]
    cost = np.zeros(len(graph))
    np.add.at(cost, task[1:], weight)
    np.add.at(cost, task[:-1], -weight)
    answer = linprog(cost, A_ub=rows, b_ub=right, bounds=(0.0, None), method="highs")
    if answer.x is None:
        return placed
    start = np.maximum(answer.x, 0.0)
    if not keep_order(start, graph.work, task, is_end):
        return placed
    return with_cores(graph, start, placed.cores)


def _event_order(graph: WorkGraph, placed: Placement, real: Ints) -> tuple[Ints, Any]:
    """Return (task, is an end) of all events by time; ends before starts at the same time."""
    end = placed.start + graph.work
    task = np.concatenate([real, real])
    is_end = np.repeat([False, True], real.size)
    moment = np.concatenate([placed.start[real], end[real]])
    near = np.round(moment / max(moment.max(), 1e-300), 12)
    order = np.lexsort((~is_end, near))
    return task[order], is_end[order]


def _order_rows(graph: WorkGraph, events: tuple[Ints, Any]) -> tuple[Any, Floats]:
    """Rows "start_a - start_b <= right" for neighbouring events and for edges."""
    task, is_end = events
    first = np.concatenate([task[:-1], graph.before])
    second = np.concatenate([task[1:], graph.succ])
    gap = np.where(is_end[1:], graph.work[task[1:]], 0.0)
    gap -= np.where(is_end[:-1], graph.work[task[:-1]], 0.0)
    right = np.concatenate([gap, -graph.work[graph.before]])
    keep = first != second
    count = int(keep.sum())
    at = np.tile(np.arange(count), 2), np.concatenate([first[keep], second[keep]])
    return entries(*at, (count, len(graph)), np.repeat([1.0, -1.0], count)), right[keep]
