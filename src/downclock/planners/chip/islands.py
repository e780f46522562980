"""Clocks where sets of cores share one: voltage islands, between one clock for all and one each.

On an island the clock may change whenever a task starts or ends there. Between two such moments it
is one number, so an island is a chain of pieces: with m of its cores at work a piece draws
``m c1 f^alpha + c2 f + c3`` and is, for the choice of clocks, one task of ``m^(1/alpha)`` times as
many cycles on a core of its own. What one island waits for on another are edges between pieces. So
the clocks of a placement are those of `local_clocks` on the graph of pieces; one clock for all
islands is among them. Enumerated clocks, and limits that the free ones break, make it the linear
program of `levels`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.chip.clocks import ChipPower
from downclock.planners.chip.levels import LEVELS_SOLVED, least_mix
from downclock.planners.chip.local import local_clocks
from downclock.planners.chip.model import Placement, WorkGraph
from downclock.planners.chip.segments import ClockedRows, at_levels, moments
from downclock.problem.graph import Edges
from downclock.units import TOLERANCE, Floats, Ints, ranges

_SAME = 1e-6
"""How much longer than the deadline a plan may be before it is shrunk to it."""

_PASSES = 50
_GRID, _REACH = 40, 10.0
"""Clocks that stand for a range, and how far they reach from the pace that just ends in time."""


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
        whole = WorkGraph.of(work, Edges(both[:, 0], both[:, 1]))
        return cls(cycles, active, np.repeat(real, count), ranges(first[real], count), whole)

    def joined(self) -> tuple[Ints, Ints]:
        """Pieces and those that follow at once, because a task runs in both."""
        inner = self.task[1:] == self.task[:-1]
        return self.piece[:-1][inner], self.piece[1:][inner]


def filled(placed: Placement, chip: Ints) -> Placement:
    """The same placement with its cores on islands in turn, the largest first."""
    by_size = np.argsort(-np.bincount(chip)[chip], kind="stable")
    return _on_cores(placed, by_size[: placed.cores], chip)


def arranged(
    graph: WorkGraph, placed: Placement, chip: Ints, deadline: float, power: ChipPower
) -> Placement:
    """The same placement with cores of similar work on one island, at the least energy.

    What an island needs is estimated as if its cores began together and never waited. Then it is
    a choice of cuts in the cores by falling work, found exactly for islands by falling and by
    rising size.
    """
    load = np.bincount(
        placed.core.clip(0), np.where(placed.core < 0, 0.0, graph.work), placed.cores
    )
    by_load, size = np.argsort(-load, kind="stable"), np.bincount(chip)
    joules = _joules(load[by_load].astype(np.float64), int(size.max()), deadline, power)
    by_size = np.argsort(size, kind="stable")
    _, used, order = min(
        ((*_cuts(joules, size[order]), order) for order in (by_size[::-1], by_size)),
        key=lambda found: found[0],
    )
    core = np.empty(placed.cores, np.int64)
    core[by_load] = np.concatenate(
        [np.flatnonzero(chip == island)[:count] for island, count in zip(order, used, strict=True)]
    )
    return _on_cores(placed, core, chip)


def _on_cores(placed: Placement, core: Ints, chip: Ints) -> Placement:
    """The same placement on other cores (placed.cores,) of all that there are."""
    return Placement(placed.start, np.where(placed.core < 0, -1, core[placed.core]), chip.size)


def _joules(load: Floats, most: int, deadline: float, power: ChipPower) -> Floats:
    """Energy (n + 1, most + 1) of an island with j cores from the a-th on, of falling load."""
    weight = np.diff(power.weight(most))
    window = np.lib.stride_tricks.sliding_window_view(np.append(load, np.zeros(most)), most)
    weighted = np.cumsum(window * weight, axis=1)
    clock = np.maximum(np.maximum(power.critical, weighted / deadline), 1e-300)
    joules = weighted * (power.c1 * clock ** (power.alpha - 1.0) + power.c3 / clock)
    return np.pad(joules + power.c2 * window[:, :1], ((0, 0), (1, 0)))


def _cuts(joules: Floats, size: Ints) -> tuple[float, Ints]:
    """Return the least energy of all cores on islands in this order, and how many each takes."""
    n = joules.shape[0] - 1
    best, taken = np.append(0.0, np.full(n, np.inf)), np.zeros((size.size, n + 1), np.int64)
    for island, most in enumerate(size):
        value = np.full(n + 1, np.inf)
        for j in range(min(most, n) + 1):
            reached = best[: n + 1 - j] + joules[: n + 1 - j, j]
            better = reached < value[j:]
            value[j:][better], taken[island, j:][better] = reached[better], j
        best = value
    used, left = np.zeros(size.size, np.int64), n
    for island in range(size.size - 1, -1, -1):
        used[island] = taken[island, left]
        left -= used[island]
    return float(best[n]), used


def island_rows(
    graph: WorkGraph, placed: Placement, chip: Ints, deadline: float, power: ChipPower
) -> ClockedRows:
    """Rows of a placement with a clock for each island, the least energy by the deadline.

    Raises:
        InvalidInput: no such clocks within those of the chip are found.
    """
    pieces = Pieces.of(graph, placed, chip, power.alpha)
    if len(pieces.graph) > LEVELS_SOLVED:  # clocks that are in range with any number of cores
        slowest = power.slowest * float(pieces.active.max()) ** (1.0 / power.alpha)
        start, seconds = _flowing(pieces, deadline, replace(power, slowest=slowest))
    elif power.levels:
        start, seconds = _mixing(pieces, deadline, power)
    else:
        free = replace(power, slowest=0.0, fastest=np.inf)
        start, seconds = _flowing(pieces, deadline, free)
        if not _within(pieces, seconds, power):
            start, seconds = _mixing(pieces, deadline, power)
    if not _within(pieces, seconds, power):
        raise InvalidInput("some task would have to pause for another island", field="islands")
    clock = np.clip(pieces.cycles / seconds[: pieces.cycles.size], power.slowest, power.fastest)
    begin, share = start[pieces.piece], pieces.cycles[pieces.piece] / graph.work[pieces.task]
    core, end = placed.core[pieces.task], begin + seconds[pieces.piece]
    rows = ClockedRows(pieces.task, core, begin, end, clock[pieces.piece], share)
    return at_levels(rows, np.array(power.levels)) if power.levels else rows


def _within(pieces: Pieces, seconds: Floats, power: ChipPower) -> bool:
    """Say whether all clocks are of the chip."""
    clock = pieces.cycles / seconds[: pieces.cycles.size]
    slowest, fastest = power.slowest * (1.0 - TOLERANCE), power.fastest * (1.0 + TOLERANCE)
    return bool(clock.min() >= slowest and clock.max() <= fastest)


def _flowing(pieces: Pieces, deadline: float, power: ChipPower) -> tuple[Floats, Floats]:
    """Starts and seconds of pieces as tasks on cores of their own; clocks are of such tasks."""
    found = local_clocks(pieces.graph, None, deadline, replace(power, c2=0.0, levels=()))
    return _together(pieces, pieces.graph.work / found.clock, deadline)


def _mixing(pieces: Pieces, deadline: float, power: ChipPower) -> tuple[Floats, Floats]:
    """Starts and seconds of pieces that mix levels: those of the chip, or a grid of its range."""
    none = np.zeros(len(pieces.graph) - pieces.cycles.size, np.int64)
    graph = replace(pieces.graph, work=np.append(pieces.cycles, none))
    levels = np.array(power.levels)
    if not power.levels:
        pace = graph.critical_path / deadline
        fastest = min(power.fastest, _REACH * pace)
        levels = np.geomspace(max(power.slowest, fastest / _REACH**2), fastest, _GRID)
    active = np.append(pieces.active, none)[:, None]
    joules: Floats = graph.work[:, None] * power.per_cycle(levels, active)
    pairs = np.column_stack(pieces.joined())
    joined = np.isin(graph.before * len(graph) + graph.succ, pairs @ [len(graph), 1])
    share, start = least_mix(graph, joules, levels, deadline, joined)
    return _together(pieces, graph.work * (share / levels).sum(axis=1), deadline, start)


def _together(
    pieces: Pieces, seconds: Floats, deadline: float, not_before: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return starts and seconds of pieces such that no task has a gap between two of its own.

    A piece whose tasks go on in the next, which waits for another island, lasts until then.
    """
    before, after = pieces.joined()
    for _ in range(_PASSES):
        start = pieces.graph.top_levels(seconds, not_before)
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
