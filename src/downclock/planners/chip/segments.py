"""From a placement in cycles and its clocks to the segments of a schedule, in seconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners.chip.model import Placement, WorkGraph
from downclock.units import Floats, Ints


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
    edge, active = _pieces(graph, placed)
    edge, active, clock = _split(edge, active, cycles, levels)
    length = np.diff(edge)
    with np.errstate(divide="ignore", invalid="ignore"):
        second = np.concatenate([[0.0], np.cumsum(np.where(active > 0, length / clock, 0.0))])
    real = np.flatnonzero(graph.work > 0.0)
    near = 1e-9 * max(1.0, float(edge[-1]))
    first = np.searchsorted(edge, placed.start[real] - near)
    last = np.searchsorted(edge, placed.start[real] + graph.work[real] - near)
    count = last - first
    piece = np.repeat(first - np.concatenate([[0], np.cumsum(count)[:-1]]), count)
    piece = piece + np.arange(piece.size)
    task = np.repeat(real, count)
    share = length[piece] / graph.work[task]
    return _merged(task, placed.core[task], second, piece, clock[piece], share)


def core_rows(graph: WorkGraph, placed: Placement, start_s: Floats, clock: Floats) -> ClockedRows:
    """Rows where every task runs at its own clock."""
    real = np.flatnonzero(graph.work > 0.0)
    end_s = start_s + graph.work / clock
    one = np.ones(real.size)
    return ClockedRows(real, placed.core[real], start_s[real], end_s[real], clock[real], one)


def _pieces(graph: WorkGraph, placed: Placement) -> tuple[Floats, Ints]:
    """Return the times of all starts and ends, and how many cores are active between them."""
    real = np.flatnonzero(graph.work > 0.0)
    moment = np.concatenate([placed.start[real], placed.start[real] + graph.work[real]])
    change = np.repeat([1, -1], real.size)
    order = np.argsort(moment, kind="stable")
    moment, change = moment[order], change[order]
    near = 1e-9 * max(1.0, float(moment[-1]))
    new = np.concatenate([[True], np.diff(moment) > near])
    edge = moment[new]
    active = np.cumsum(np.add.reduceat(change, np.flatnonzero(new)))[:-1]
    return edge, active


def _split(
    edge: Floats, active: Ints, cycles: Floats, levels: Floats
) -> tuple[Floats, Ints, Floats]:
    """Cut pieces where an m changes its level; return edges, active cores, and clocks."""
    length = np.diff(edge)
    cuts = [edge]
    for m in np.unique(active[active > 0]):
        mine = np.flatnonzero(active == m)
        done = np.concatenate([[0.0], np.cumsum(length[mine])])
        for at in np.cumsum(cycles[m])[:-1]:
            if 0.0 < at < done[-1]:
                k = int(np.searchsorted(done, at, side="right")) - 1
                cuts.append(np.array([edge[mine[k]] + at - done[k]]))
    near = 1e-9 * max(1.0, float(edge[-1]))
    fine = np.sort(np.concatenate(cuts))
    fine = fine[np.concatenate([[True], np.diff(fine) > near])]
    parent = np.searchsorted(edge, fine[:-1] + near, side="right") - 1
    fine_active = active[parent]
    clock = np.ones(fine_active.size)
    for m in np.unique(active[active > 0]):
        mine = np.flatnonzero(fine_active == m)
        span = np.diff(fine)[mine]
        middle = np.cumsum(span) - 0.5 * span
        level = np.searchsorted(np.cumsum(cycles[m]), middle)
        clock[mine] = levels[m][np.minimum(level, levels.shape[1] - 1)]
    return fine, fine_active, clock


def _merged(
    task: Ints, core: Ints, second: Floats, piece: Ints, clock: Floats, share: Floats
) -> ClockedRows:
    """Join neighbouring pieces of a task that run at one clock."""
    new = np.concatenate([[True], (np.diff(task) != 0) | (np.diff(clock) != 0.0)])
    first = np.flatnonzero(new)
    last = np.concatenate([first[1:], [task.size]]) - 1
    shares = np.add.reduceat(share, first)
    return ClockedRows(
        task[first],
        core[first],
        second[piece[first]],
        second[piece[last] + 1],
        clock[first],
        shares,
    )
