"""Clocks where sets of cores share one: voltage islands, between one clock for all and one each.

On an island the clock may change whenever a task starts or ends there. Between two such moments it
is one number, so an island is a chain of pieces: with m of its cores at work a piece draws
``m c1 f^alpha + c2 f + c3`` and is, for the choice of clocks, one task of ``m^(1/alpha)`` times as
many cycles on a core of its own. What one island waits for on another are edges between pieces. So
the clocks of a placement are those of `local_clocks` on the graph of pieces; one clock for all
islands is among them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.chip.clocks import ChipPower
from downclock.planners.chip.local import local_clocks
from downclock.planners.chip.model import Placement, WorkGraph
from downclock.planners.chip.segments import ClockedRows, moments
from downclock.problem.graph import Edges
from downclock.units import TOLERANCE, Floats, Ints

_SAME = 1e-6
"""How much longer than the deadline a plan may be before it is shrunk to it."""

_PASSES = 50


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Pieces (k,) of all islands, island by island, and which of them each task runs in.

    Attributes:
        cycles, active: length in cycles and cores at work.
        task, piece: rows: each task and its pieces, in order.
        graph: pieces, then tasks without work, and what waits for what.
    """

    cycles: Floats
    active: Ints
    task: Ints
    piece: Ints
    graph: WorkGraph

    @classmethod
    def of(cls, graph: WorkGraph, placed: Placement, chip: Ints, alpha: float) -> Pieces:
        """Cut a placement; ``chip`` is the island of each core (M,)."""
        parts, first, last = [], np.zeros(len(graph), np.int64), np.zeros(len(graph), np.int64)
        begin, chain, end = 0, [], placed.end(graph)
        for island in np.unique(chip):
            mine = np.flatnonzero((placed.core >= 0) & (chip[placed.core] == island))
            edge, a, b = moments(placed.start[mine], end[mine], TOLERANCE)
            active = np.cumsum(
                np.bincount(a, minlength=edge.size) - np.bincount(b, minlength=edge.size)
            )
            rank = begin + np.append(0, np.cumsum(active[:-1] > 0))  # pieces without work are none
            first[mine], last[mine] = rank[a], rank[b] - 1
            parts.append((np.diff(edge)[active[:-1] > 0], active[:-1][active[:-1] > 0]))
            chain += list(pairwise(range(begin, begin := begin + parts[-1][1].size)))
        none = np.flatnonzero(placed.core < 0)
        first[none] = last[none] = begin + np.arange(none.size)
        cycles, active = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        waits = np.column_stack([last[graph.before], first[graph.succ]])
        both = np.concatenate([waits, np.array(chain, dtype=np.int64).reshape(-1, 2)])
        both = np.unique(both[both[:, 0] != both[:, 1]], axis=0)
        work = np.append(active ** (1.0 / alpha) * cycles, np.zeros(none.size))
        real = np.flatnonzero(placed.core >= 0)
        count = last[real] - first[real] + 1
        piece = np.repeat(first[real] - np.cumsum(count) + count, count) + np.arange(count.sum())
        whole = WorkGraph.of(work, Edges(both[:, 0], both[:, 1]))
        return cls(cycles, active, np.repeat(real, count), piece, whole)


def by_load(graph: WorkGraph, placed: Placement) -> Placement:
    """The same placement with cores numbered by their work, so that islands hold similar ones."""
    load = np.bincount(placed.core.clip(0), graph.work, placed.cores)
    rank = np.argsort(np.argsort(-load, kind="stable"))
    return replace(placed, core=np.where(placed.core >= 0, rank[placed.core], -1))


def island_rows(
    graph: WorkGraph, placed: Placement, chip: Ints, deadline: float, power: ChipPower
) -> ClockedRows:
    """Rows of a placement with a clock for each island, the least energy by the deadline.

    Raises:
        InvalidInput: no such clocks within those of the chip are found.
    """
    pieces = Pieces.of(graph, placed, chip, power.alpha)
    slowest = power.slowest * float(pieces.active.max()) ** (1.0 / power.alpha)
    alone = replace(power, c2=0.0, slowest=slowest)
    found = local_clocks(pieces.graph, None, deadline, alone)
    share_of = pieces.active ** (1.0 / power.alpha)
    seconds = np.zeros(len(pieces.graph))
    seconds[: pieces.cycles.size] = pieces.cycles * share_of / found.clock[: pieces.cycles.size]
    start, seconds = _together(pieces, seconds, deadline)
    clock = pieces.cycles / seconds[: pieces.cycles.size]
    if clock.min() < power.slowest or clock.max() > power.fastest * (1.0 + TOLERANCE):
        raise InvalidInput("some task would have to pause for another island", field="islands")
    begin, share = start[pieces.piece], pieces.cycles[pieces.piece] / graph.work[pieces.task]
    return ClockedRows(
        pieces.task, placed.core[pieces.task], begin, begin + seconds[pieces.piece],
        np.minimum(clock, power.fastest)[pieces.piece], share,
    )  # fmt: skip


def _together(pieces: Pieces, seconds: Floats, deadline: float) -> tuple[Floats, Floats]:
    """Return starts and seconds of pieces such that no task has a gap between two of its own.

    A piece whose tasks go on in the next, which waits for another island, lasts until then.
    """
    inner = pieces.task[1:] == pieces.task[:-1]
    before, after = pieces.piece[:-1][inner], pieces.piece[1:][inner]
    for _ in range(_PASSES):
        start = pieces.graph.top_levels(seconds)
        until = start + seconds
        np.maximum.at(until, before, start[after])
        if np.all(until <= start + seconds):
            break
        seconds = until - start
    end = float(until.max())
    if end > deadline * (1.0 + _SAME):
        raise InvalidInput("is too short", field="deadline", value=deadline)
    shrink = min(1.0, deadline / end)
    return start * shrink, seconds * shrink
