"""No raw bound of a room exceeds its plans: what it is before it is clipped to one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from benchmarks.graphs import near_barriers as near_barrier_work

import downclock as dc
from downclock.planners.chip.plan import energy_bound_j, plan_graph
from downclock.planners.chip.search import SearchEffort
from downclock.planners.result import PROVEN, status_of, without_rounding
from downclock.planners.slots.barriers import barriers
from downclock.planners.slots.fluid import Fluid
from downclock.planners.slots.model import SlotGraph, SlotGraphIndex
from downclock.planners.slots.multipliers import CapacityMultipliers
from downclock.planners.slots.search import CostSearch
from downclock.planners.slots.stage_bound import best_stages
from downclock.power.points import ClockRange, ClockTable
from downclock.workloads.chip import chip_problem
from downclock.workloads.gerhards import random_graph
from tests.planners.chip.graphs_for_tests import named
from tests.planners.slots.near_barriers import near_barriers
from tests.planners.slots.tiny import tiny_graph

LEVELS = ClockTable(np.array([0.3, 0.5, 1.0, 2.0]), np.ones(1), 1.0, 1.0)
CHIPS: list[dict[str, Any]] = [
    {},
    {"c2": 0.2, "c3": 3.0},
    {"chip_wide": False},
    {"chip_wide": False, "c3": 3.0, "clocks": LEVELS},
    {"islands": 2},
    {"islands": 2, "c2": 0.2, "c3": 3.0},
    {"islands": 2, "clocks": LEVELS},
    {"islands": 2, "c3": 1.0, "clocks": ClockRange(0.4, 1.5)},
]


def drawn_graph(seed: int) -> Any:
    """A graph of few tasks, fewer than cores among them, or one with joins."""
    if seed % 3:
        return random_graph(3 * seed - 1, seed=seed)
    return named(near_barrier_work(seed))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("how", range(len(CHIPS)))
def test_the_raw_bound_of_a_chip_is_below_its_plans(how: int, seed: int) -> None:
    graph = drawn_graph(seed)
    problem = chip_problem(graph, 4, 0.7 * float(graph.work.sum()), **CHIPS[how])
    found = plan_graph(problem, how=SearchEffort(effort=0.01), bound=False)
    dc.require_valid(problem, found.schedule)
    bound = energy_bound_j(problem, np.ones(len(problem.tasks), dtype=bool))
    assert bound is not None
    assert 0.0 < bound <= found.objective * (1.0 + PROVEN)


@pytest.mark.parametrize("pause", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_the_raw_bounds_of_slots_are_below_their_plans(seed: int, pause: bool) -> None:
    """Those that look for plans cheaper than one in hand are told that it costs twice as much."""
    graph = near_barriers(seed, machines=3) if seed % 2 else tiny_graph(seed)
    graph = replace(graph, pause=pause)
    search = CostSearch.of(graph)
    separable = search.bound
    if not search.open():
        return
    plan = search.best
    assert plan is not None
    dearer = replace(plan, cost=2.0 * plan.cost)
    index = SlotGraphIndex.of(graph).priced(graph.slots)
    fluid = Fluid.of(graph)
    stages = best_stages(index, fluid, dearer, barriers(index, fluid.work))
    raw = [separable, stages.safe if stages else 0.0, _relaxed(graph, search)]
    assert max(raw) <= plan.cost * (1.0 + PROVEN) + 1e-12


def _relaxed(graph: SlotGraph, search: CostSearch) -> float:
    """The bound of the multipliers after some steps."""
    assert search.best is not None
    assert search.separable is not None
    index = search.index
    index = index if index.monge else index.priced(graph.slots, envelope=True)
    multipliers = CapacityMultipliers(index, search.separable.multiplier)
    for _ in range(3):
        multipliers.step(search.best, 2.0 * search.best.cost)
    return multipliers.bound


def test_only_rounding_is_clipped() -> None:
    assert without_rounding(1.0 + 1e-9, 1.0) == 1.0
    assert without_rounding(1.1, 1.0) == 1.1
    assert without_rounding(0.9, 1.0) == 0.9
    assert status_of(1.0, without_rounding(1.0 + 1e-9, 1.0)) == "optimal"
