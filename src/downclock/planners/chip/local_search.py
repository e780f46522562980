"""Search for the order of tasks on cores of least energy where every core has its own clock.

The weighted makespan is the wrong target here. Instead: take run times from a convex program,
list-schedule them by their levels, solve for the best clocks of that order, give tasks the cores
that bind least, and repeat with the run times that came out. First run times come from the bound
program with the busy time of M cores and of fewer (shorter tasks are easier to pack). Every
answer is exact for its order, so the best one counts; where tasks are many, orders are first
looked at with quick clocks and most are dropped.

The first plan is there after one list schedule; placements found for one clock are looked at next,
so that a clock per core never needs more than one for all where clocks are all that counts. How
many orders follow is counted by the effort and the number of tasks, so an answer repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np

from downclock.planners.chip.clocks import ChipPower
from downclock.planners.chip.lists import by_most, greedy
from downclock.planners.chip.local import LocalClocks, local_clocks, ordered_graph
from downclock.planners.chip.model import Placement, WorkGraph
from downclock.planners.chip.search import SearchEffort
from downclock.planners.chip.times import with_cores
from downclock.units import Floats

_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_ROUNDS = 4
_SHAKES = 40
_TASKS = 15_000
"""Tasks of all orders that are looked at with effort 1."""

_QUICK = 40
"""Tasks from which an order is first looked at with quick clocks."""

_QUICKER = 150
"""Tasks from which run times of the bound are quick as well."""

_NEAR = 1.002
"""Energy of quick clocks, relative to the best so far, up to which an order is solved exactly."""


def search_local(
    graph: WorkGraph,
    cores: int,
    deadline: float,
    power: ChipPower,
    how: SearchEffort | None = None,
    starts: Sequence[Placement] = (),
) -> tuple[Placement, LocalClocks]:
    """Return a placement and its optimal clocks; none of ``starts`` needs less."""
    how = how or SearchEffort()

    def solve(placed: Placement, quick: bool = False) -> LocalClocks:
        return local_clocks(graph, placed, deadline, power, quick=quick)

    def fits(placed: Placement) -> bool:
        length = ordered_graph(graph, placed).critical_path
        return length <= deadline * power.fastest * (1.0 + 1e-12)

    starts = [greedy(graph, cores, by_most(graph.bottom_levels())), *starts]
    first = next(filter(fits, starts), starts[0])
    best = _Best(first, solve(first, quick=True))
    free = replace(power, slowest=0.0, fastest=np.inf, levels=())
    orders = chain(starts, _proposals(graph, cores, deadline, free, how, best))
    most_orders = len(starts) + int(how.effort * _TASKS / len(graph))
    for k, proposed in enumerate(islice(orders, most_orders)):
        if not fits(proposed):
            continue
        most = _NEAR * best.clocks.energy
        looked_at = k >= len(starts) and len(graph) > _QUICK
        if looked_at and solve(proposed, quick=True).energy > most:
            continue
        placed, clocks = _recored(graph, proposed, solve(proposed), solve)
        if clocks.energy < best.clocks.energy:
            best.placed, best.clocks = placed, clocks
    return best.placed, best.clocks


@dataclass(slots=True)
class _Best:
    """The best answer so far, which later proposals start from."""

    placed: Placement
    clocks: LocalClocks


def _proposals(
    graph: WorkGraph, cores: int, deadline: float, power: ChipPower, how: SearchEffort, best: _Best
) -> Iterator[Placement]:
    """Yield placements by the bound's run times, then near the best so far."""
    for share in _SHARES:
        quick = len(graph) > _QUICKER
        relaxed = local_clocks(graph, None, deadline, power, cores=share * cores, quick=quick)
        for _ in range(_ROUNDS):
            run_time = graph.work / relaxed.clock
            placed = _listed(graph, run_time, cores, run_time)
            yield placed
            relaxed = local_clocks(graph, placed, deadline, power, quick=quick)
    rng = np.random.default_rng(how.seed)
    for k in range(int(_SHAKES * how.effort)):
        run_time = graph.work / best.clocks.clock
        noise = rng.lognormal(0.0, (0.02, 0.1, 0.3)[k % 3], len(graph))
        yield _listed(graph, run_time, cores, run_time * noise)


def _listed(graph: WorkGraph, run_time: Floats, cores: int, weight: Floats) -> Placement:
    """List-schedule tasks of these run times by their longest path in ``weight``."""
    timed = replace(graph, work=run_time)
    placed = greedy(timed, cores, by_most(graph.bottom_levels(weight)))
    return with_cores(graph, placed.start, cores, duration=run_time)


def _recored(
    graph: WorkGraph,
    placed: Placement,
    clocks: LocalClocks,
    solve: Callable[[Placement], LocalClocks],
) -> tuple[Placement, LocalClocks]:
    """Keep the times, choose cores that bind least, solve again; until nothing is gained."""
    for _ in range(_ROUNDS):
        run_time = graph.work / clocks.clock
        moved = with_cores(graph, clocks.start, placed.cores, duration=run_time)
        if np.array_equal(moved.core, placed.core):
            break
        again = solve(moved)
        if again.energy >= clocks.energy * (1.0 - 1e-7):
            break
        placed, clocks = moved, again
    return placed, clocks
