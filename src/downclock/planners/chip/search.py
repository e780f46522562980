"""Search for the placement of least weighted makespan: least energy under one chip-wide clock.

Annealing in two stages, on a grid of whole cycles: the queue of a greedy list schedule, then
start times (see `kernels.search`). Where work is not whole, tasks are rounded up to a fine grid,
and a linear program afterwards finds the best times for the order of starts and
ends that came out: the weighted makespan is linear as long as that order stays.

The number of moves follows from ``effort`` and the size of the graph, so a seed gives one answer;
a time limit may only cut it short.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from downclock.planners.chip.bounds import common_unit, simple_bound
from downclock.planners.chip.clocks import ChipPower, weighted_makespan
from downclock.planners.chip.lists import by_most, list_schedule
from downclock.planners.chip.local import reduced
from downclock.planners.chip.model import Placement, WorkGraph
from downclock.planners.chip.times import best_times, with_cores
from downclock.units import Floats, Ints

_CELLS = 20_000
"""Grid cells of the horizon where work is not in whole cycles, or in too many of them."""

_MOST_CELLS = 200_000
_REDUCED = 20_000
_FORBIDDEN = 1e6
_CHUNKS = 20
_FEW = 3
"""Cores up to which the makespan is nearly all that counts, and warmer searches do better."""


@dataclass(frozen=True, slots=True)
class SearchEffort:
    """How long to search.

    Attributes:
        effort: 1 is well below a second for 50 tasks; the moves are proportional to it.
        restarts: independent runs, warmer and cooler in turn; the best counts.
        seed: same seed, same answer.
        time_limit_s: stop early; the answer then depends on the machine.
    """

    effort: float = 1.0
    restarts: int = 2
    seed: int = 0
    time_limit_s: float = np.inf

    def queue_moves(self, tasks: int) -> int:
        """Moves of the first stage: a fixed number of placed tasks."""
        return int(max(20.0, self.effort * 1e6 / tasks))

    def start_moves(self, tasks: int) -> int:
        """Moves of the second stage: so many a task, up to a limit."""
        return int(self.effort * min(25_000.0 * tasks, 1e7))


def search(
    graph: WorkGraph,
    cores: int,
    alpha: float = 3.0,
    how: SearchEffort | None = None,
    progress: Callable[[float, float], None] | None = None,
) -> Placement:
    """Return a placement of small weighted makespan, never worse than the list rules.

    ``progress(elapsed_s, weighted makespan)`` is told about every improvement.
    """
    how = how or SearchEffort()
    began = time.perf_counter()
    best = _best_list(graph, cores, alpha)
    value = weighted_makespan(best.parallelism(graph), alpha)
    if cores == 1 or graph.total_work <= 0.0:
        return best
    least = simple_bound(graph, cores, alpha) * (1.0 + 1e-9)
    grid, other = _grid(graph, cores), 2.0 if cores <= _FEW else 0.5
    slim = reduced(graph) if len(graph) <= _REDUCED else graph
    for k in range(how.restarts):
        left = how.time_limit_s - (time.perf_counter() - began)
        if left <= 0.0 or value <= least:
            break
        once = replace(how, seed=how.seed + 1009 * k, time_limit_s=left)
        found = _anneal(slim, grid, cores, alpha, once, warmth=1.0 if k % 2 == 0 else other)
        reached = weighted_makespan(found.parallelism(graph), alpha)
        if reached < value - 1e-9:
            best, value = found, reached
            if progress is not None:
                progress(time.perf_counter() - began, value)
    return best


def _best_list(graph: WorkGraph, cores: int, alpha: float) -> Placement:
    rules = ("hlf", "lpt", "heft")
    placed = [list_schedule(graph, cores, rule) for rule in rules]
    return min(placed, key=lambda p: weighted_makespan(p.parallelism(graph), alpha))


def _grid(graph: WorkGraph, cores: int) -> float:
    """Cycles of one grid cell: what all work is a multiple of, if the schedule is not too long."""
    longest = max(graph.critical_path, 1.5 * graph.total_work / cores)
    unit = common_unit(graph)
    return unit if unit > 0.0 and longest / unit <= _MOST_CELLS else longest / _CELLS


def _anneal(
    graph: WorkGraph, grid: float, cores: int, alpha: float, how: SearchEffort, warmth: float
) -> Placement:
    """Run both stages once; temperatures are multiples of the mean work times ``warmth``."""
    from downclock.planners.chip.kernels.search import anneal_queue

    deadline = time.perf_counter() + how.time_limit_s
    coarse = replace(graph, work=np.ceil(graph.work / grid - 1e-9))
    weight = ChipPower(alpha=alpha).weight(cores)
    queue = by_most(graph.bottom_levels())
    unit = float(coarse.work.mean()) * warmth
    start, _, _ = anneal_queue(
        coarse.work, queue, graph.pred_at, graph.succ_at, graph.succ, weight,
        how.queue_moves(len(graph)), 0.06 * unit, 0.005 * unit, how.seed,
    )  # fmt: skip
    cells = _shift_starts(coarse, start.astype(np.int64), weight, unit, how, deadline)
    placed = with_cores(graph, cells * grid, cores)
    return placed if grid == common_unit(graph) else best_times(graph, placed, alpha)


def _shift_starts(
    coarse: WorkGraph,
    start: Ints,
    weight: Floats,
    unit: float,
    how: SearchEffort,
    deadline: float,
) -> Floats:
    """Anneal start times in chunks, so that a time limit can stop between them."""
    from downclock.planners.chip.kernels.search import anneal_starts

    length = coarse.work.astype(np.int64)
    horizon = int(1.05 * (start + length).max()) + 2
    guarded = np.append(weight, _FORBIDDEN)
    # Measured: cooler for large graphs; warmer for few cores, where single moves hardly count.
    few = weight.size - 1 <= _FEW
    hot = (0.06 if few else float(np.clip(0.6 / len(coarse), 0.0035, 0.012))) * unit
    cold = (0.01 if few else 0.06) * hot
    moves = how.start_moves(len(coarse)) // _CHUNKS
    best, value = start, np.inf
    for k in range(_CHUNKS):
        if time.perf_counter() > deadline:
            break
        heat = [hot * (cold / hot) ** ((k + step) / _CHUNKS) for step in (0, 1)]
        start, found, reached = anneal_starts(
            length, start, coarse.pred_at, coarse.pred, coarse.succ_at, coarse.succ,
            guarded, horizon, moves, heat[0], heat[1], how.seed + 7919 * (k + 1),
        )  # fmt: skip
        if reached < value:
            best, value = found, reached
    return best.astype(np.float64)
