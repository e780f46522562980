"""Search for the placement of least weighted makespan: least energy under one chip-wide clock.

Annealing in two stages, on a grid of whole cycles: the queue of a greedy list schedule, then
start times (see `kernels.search`). A first, brief run anneals the queue for the makespan alone: a
short placement is often a good start, and the only one that a tight deadline allows. Where work is
not whole, tasks are rounded up to a grid, and a linear program afterwards finds the best times for
the order of starts and ends that came out: the weighted makespan is linear as long as that order
stays.

Effort is counted in moves and in cells of the grid that they touch, so a seed gives one answer on
every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from downclock.planners.chip.bounds import lemma3_bound
from downclock.planners.chip.clocks import ChipPower, weighted_makespan
from downclock.planners.chip.kernels.search import Cooling, anneal_queue, anneal_starts
from downclock.planners.chip.length import least_length
from downclock.planners.chip.level_program import common_unit
from downclock.planners.chip.lists import by_most, greedy, list_schedule
from downclock.planners.chip.model import Placement, WorkGraph
from downclock.planners.chip.times import best_times, with_cores
from downclock.units import Floats, Ints

_CELLS = (2_000, 20_000)
"""Least and most grid cells of the horizon where work is not in whole cycles."""

_MOST_CELLS = 8_000
"""Whole cycles of the horizon up to which they are the grid."""

_CELLS_A_TASK = 10
_BRIEF = 0.25
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
    """

    effort: float = 1.0
    restarts: int = 2
    seed: int = 0


def search(
    graph: WorkGraph,
    cores: int,
    alpha: float = 3.0,
    how: SearchEffort | None = None,
    cost: Callable[[Floats], float] | None = None,
) -> Placement:
    """Return a placement of small weighted makespan, never worse than the list rules.

    ``cost`` of a parallelism is the weighted makespan; where clocks are limited another one chooses
    among the placements.
    """

    def value(placed: Placement) -> float:
        omega = placed.parallelism(graph)
        return weighted_makespan(omega, alpha) if cost is None else cost(omega)

    best = min((list_schedule(graph, cores, rule) for rule in ("hlf", "lpt", "heft")), key=value)
    if cores == 1 or graph.total_work <= 0.0:
        return best
    unit = common_unit(graph)
    length = least_length(graph, cores, unit)
    least = lemma3_bound(graph.total_work, length, cores, alpha, unit) * (1.0 + 1e-9)
    reached = value(best)
    for placed in _runs(graph, cores, alpha, how or SearchEffort()):
        found = value(placed)
        if found < reached * (1.0 - 1e-9):
            best, reached = placed, found
        if weighted_makespan(best.parallelism(graph), alpha) <= least:
            break
    return best


def _runs(graph: WorkGraph, cores: int, alpha: float, how: SearchEffort) -> Iterator[Placement]:
    """Yield what annealing finds, run by run: a brief one for the makespan, then others."""
    other = 2.0 if cores <= _FEW else 0.5
    slim = graph.reduced() if len(graph) <= _REDUCED else graph
    grid, brief = _grid(graph, cores), replace(how, effort=_BRIEF * how.effort)
    yield from _anneal(slim, grid, cores, alpha, brief, 1.0, short=True)
    for k in range(how.restarts):
        once = replace(how, seed=how.seed + 1009 * k)
        yield from _anneal(slim, grid, cores, alpha, once, (1.0, other)[k % 2], short=False)


def _grid(graph: WorkGraph, cores: int) -> float:
    """Cycles of one grid cell: what all work is a multiple of, if the schedule is not too long."""
    longest = max(graph.critical_path, 1.5 * graph.total_work / cores)
    wanted = _CELLS_A_TASK * longest * len(graph) / graph.total_work
    unit = common_unit(graph)
    if unit > 0.0 and longest / unit <= max(_MOST_CELLS, 2.0 * wanted):
        return unit
    return longest / float(np.clip(wanted, *_CELLS))


def _anneal(
    graph: WorkGraph,
    grid: float,
    cores: int,
    alpha: float,
    how: SearchEffort,
    warmth: float,
    short: bool,
) -> Iterator[Placement]:
    """Run both stages once; temperatures are multiples of the mean work times ``warmth``.

    ``short``: the first stage is for the makespan; what it finds is yielded as well.
    """
    coarse = replace(graph, work=np.ceil(graph.work / grid - 1e-9))
    weight = ChipPower(alpha=alpha).weight(cores)
    queue = by_most(graph.bottom_levels())
    unit = float(coarse.work.mean()) * warmth
    moves = int(max(20.0, how.effort * 1e6 / len(graph)))  # a fixed number of placed tasks
    cooling = Cooling(moves, 0.06 * unit, 0.005 * unit, how.seed)
    paid = np.sign(weight) if short else weight
    start, queue, _ = anneal_queue(coarse.columns(), queue, paid, cooling)
    if short:
        yield greedy(graph, cores, queue)
    cells = _shift_starts(coarse, start.astype(np.int64), weight, unit, how)
    placed = with_cores(graph, cells * grid, cores)
    yield placed if grid == common_unit(graph) else best_times(graph, placed, alpha)


def _shift_starts(
    coarse: WorkGraph, start: Ints, weight: Floats, unit: float, how: SearchEffort
) -> Floats:
    """Anneal start times, ever cooler; each chunk of moves has a seed of its own."""
    whole = coarse.columns()._replace(work=coarse.work.astype(np.int64))
    horizon = int(1.05 * (start + whole.work).max()) + 2
    guarded = np.append(weight, _FORBIDDEN)
    # Measured: cooler for large graphs; warmer for few cores, where single moves hardly count.
    few = weight.size - 1 <= _FEW
    hot = (0.06 if few else float(np.clip(0.6 / len(coarse), 0.0035, 0.012))) * unit
    cold = (0.01 if few else 0.06) * hot
    # So many moves a task, up to a limit; it counts how many cells a task has.
    most = min(25_000.0 * len(coarse), 3.5e6, 2.5e8 / (40.0 + float(coarse.work.mean())))
    moves = int(how.effort * most) // _CHUNKS
    best, value = start, np.inf
    for k in range(_CHUNKS):
        first, last = (hot * (cold / hot) ** ((k + step) / _CHUNKS) for step in (0, 1))
        cooling = Cooling(moves, first, last, how.seed + 7919 * (k + 1))
        start, found, reached = anneal_starts(whole, start, guarded, horizon, cooling)
        if reached < value:
            best, value = found, reached
    return best.astype(np.float64)
