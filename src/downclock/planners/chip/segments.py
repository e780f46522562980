"""From a placement in cycles and its clocks to the segments of a schedule, in seconds.

Lengths of tasks may differ by any factor: moments are the same only where they differ by rounding,
and a task always keeps a moment of its own between its start and its end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.columns import joined, taken
from downclock.planners.chip.model import Placement, WorkGraph
from downclock.units import Floats, Ints, ranges

ROUNDING = 1e-12
"""Two moments that differ by less, relative to the later one, are the same."""

_WHOLE = 1e-10
"""Least part of a row's time that is worth a clock of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class ClockedRows:
    """Rows (n,): task, core, start and end in seconds, clock, and share of the task."""

    task: Ints
    core: Ints
    start_s: Floats
    end_s: Floats
    clock: Floats
    share: Floats


def chip_rows(graph: WorkGraph, placed: Placement, cycles: Floats, levels: Floats) -> ClockedRows:
    """Rows under one chip-wide clock that follows the number of active cores.

    ``cycles`` (M + 1, k) says how many of the cycles with m active cores run at which of the
    ``levels`` (M + 1, k); each m takes its levels in turn. Gaps without an active core take no
    time.
    """
    real = np.flatnonzero(graph.work > 0.0)
    edge, first, last = moments(placed.start[real], placed.start[real] + graph.work[real])
    active = np.cumsum(np.bincount(first, minlength=edge.size))
    active = (active - np.cumsum(np.bincount(last, minlength=edge.size)))[:-1]
    fine, clock = _split(edge, active, cycles, levels)
    first, last = np.searchsorted(fine, edge[first]), np.searchsorted(fine, edge[last])
    length = np.diff(fine)
    second = np.concatenate([[0.0], np.cumsum(length / clock)])
    instant = second[last] <= second[first]  # too short for a clock that counts from time 0
    count = np.where(instant, 1, last - first)
    piece = ranges(first, count)
    start_s, task = second[piece], np.repeat(real, count)
    piece = np.minimum(piece, length.size - 1)  # an instant may be the last of all
    end_s = np.where(np.repeat(instant, count), 0.0, second[piece + 1])
    end_s = np.maximum(end_s, np.nextafter(start_s, np.inf))
    clock = np.where(np.isfinite(clock), clock, levels[1, 0])[piece]  # or in a gap
    return _merged(task, placed.core[task], start_s, end_s, clock, length[piece])


def core_rows(graph: WorkGraph, placed: Placement, start_s: Floats, clock: Floats) -> ClockedRows:
    """Rows where every task runs at its own clock."""
    real = np.flatnonzero(graph.work > 0.0)
    start_s, clock = start_s[real], clock[real]
    end_s = np.maximum(start_s + graph.work[real] / clock, np.nextafter(start_s, np.inf))
    return ClockedRows(real, placed.core[real], start_s, end_s, clock, np.ones(real.size))


def at_levels(rows: ClockedRows, levels: Floats) -> ClockedRows:
    """Every row keeps its time, first at the level below its clock, then at the one above.

    ``levels`` rise; a clock must lie within them.
    """
    above = np.clip(np.searchsorted(levels, rows.clock), min(1, levels.size - 1), levels.size - 1)
    slow, fast = levels[np.maximum(above - 1, 0)], levels[above]
    part = np.clip((rows.clock - slow) / np.maximum(fast - slow, 1e-300), 0.0, 1.0)
    part = np.where((part < _WHOLE) | (part > 1.0 - _WHOLE), np.round(part), part)
    turn_s = rows.end_s - part * (rows.end_s - rows.start_s)
    turn_s = np.where(part == 1.0, rows.start_s, turn_s)  # but for rounding
    done = (1.0 - part) * slow / ((1.0 - part) * slow + part * fast)  # of the row's cycles
    both = (
        ClockedRows(rows.task, rows.core, rows.start_s, turn_s, slow, rows.share * done),
        ClockedRows(rows.task, rows.core, turn_s, rows.end_s, fast, rows.share * (1.0 - done)),
    )
    every = joined(both)
    kept = np.flatnonzero(every.end_s > every.start_s)
    return taken(every, kept[np.lexsort((kept // rows.task.size, kept % rows.task.size))])


def moments(start: Floats, end: Floats, rounding: float = ROUNDING) -> tuple[Floats, Ints, Ints]:
    """Return all moments (k,), and the place among them of each task's start and end."""
    both = np.concatenate([start, end])
    order = np.argsort(both, kind="stable")
    moment = both[order]
    step = np.diff(moment, prepend=-1.0)
    new = step > rounding * moment
    place = np.empty(both.size, dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    short = place[: start.size][place[: start.size] == place[start.size :]]
    new |= np.isin(place[order], short) & (step > 0.0)
    place[order] = np.cumsum(new) - 1
    return moment[new], place[: start.size], place[start.size :]


def _split(edge: Floats, active: Ints, cycles: Floats, levels: Floats) -> tuple[Floats, Floats]:
    """Cut pieces where an m changes its level; return edges and clocks (infinite in gaps)."""
    length = np.diff(edge)
    cuts = []
    for m in np.unique(active[active > 0]):
        mine = np.flatnonzero(active == m)
        done = np.concatenate([[0.0], np.cumsum(length[mine])])
        for at in np.cumsum(cycles[m])[:-1]:
            k = int(np.searchsorted(done, at, side="right")) - 1
            left = (at - done[k], done[k + 1] - at) if 0.0 < at < done[-1] else (0.0, 0.0)
            if min(left) > ROUNDING * edge[mine[min(k, mine.size - 1)] + 1]:
                cuts.append(edge[mine[k]] + left[0])
    fine = np.sort(np.concatenate([edge, cuts]))
    of_piece = active[np.searchsorted(edge, fine[:-1], side="right") - 1]
    clock = np.full(of_piece.size, np.inf)
    for m in np.unique(active[active > 0]):
        mine = np.flatnonzero(of_piece == m)
        span = np.diff(fine)[mine]
        level = np.searchsorted(np.cumsum(cycles[m]), np.cumsum(span) - 0.5 * span)
        clock[mine] = levels[m][np.minimum(level, levels.shape[1] - 1)]
    return fine, clock


def _merged(
    task: Ints, core: Ints, start_s: Floats, end_s: Floats, clock: Floats, cycles: Floats
) -> ClockedRows:
    """Join neighbouring pieces of a task that run at one clock; a task's shares add up to 1."""
    new = np.concatenate([[True], (np.diff(task) != 0) | (np.diff(clock) != 0.0)])
    first = np.flatnonzero(new)[: task.size]
    last = np.concatenate([first[1:], [task.size]])[: first.size] - 1
    part = np.add.reduceat(cycles, first) if first.size else cycles
    share = part / np.bincount(task[first], weights=part)[task[first]]
    return ClockedRows(task[first], core[first], start_s[first], end_s[last], clock[first], share)
