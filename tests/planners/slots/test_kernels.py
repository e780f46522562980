"""Tables, cuts and bounds against the plainest way to compute them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.planners.slots.cost_quantum import CostQuantum
from downclock.planners.slots.fluid import Fluid, fluid_bound
from downclock.planners.slots.model import (
    SlotGraph,
    SlotGraphIndex,
    SlotPlan,
    is_valid,
    levels,
)
from downclock.planners.slots.multipliers import CapacityMultipliers
from downclock.planners.slots.order import best_intervals, machines_of, order_edges
from downclock.planners.slots.program import solve_intervals
from downclock.planners.slots.proof import surviving
from downclock.planners.slots.search import CostSearch
from downclock.planners.slots.separable_bound import SeparableBound
from downclock.planners.slots.solve import solve_slots
from downclock.planners.slots.start import list_schedule
from downclock.problem.graph import Edges
from downclock.workloads.gerhards import random_graph
from tests.planners.slots.tiny import brute_force, interval_costs, tiny_graph

POWERS = {
    "square": (np.array([1, 2, 3]), np.array([1.0, 4.0, 9.0]) / 9.0),
    "static": (np.array([1, 2, 3]), 0.4 + 0.6 * (np.array([1.0, 2.0, 3.0]) / 3.0) ** 3),
    "uneven": (np.array([1, 4, 5]), np.array([0.1, 0.5, 1.0])),
}


def with_power(graph: SlotGraph, name: str, pause: bool) -> SlotGraph:
    units, power = POWERS[name]
    return replace(graph, units=units, power=power, pause=pause)


@pytest.mark.parametrize("name", POWERS)
@pytest.mark.parametrize("pause", [True, False])
def test_tables_hold_the_least_cost_of_every_interval(name: str, pause: bool) -> None:
    for seed in range(4):
        graph = with_power(tiny_graph(seed, slots=(4, 5)), name, pause)
        index = SlotGraphIndex.of(graph).priced(graph.slots)
        table, envelope = index.table, index.priced(graph.slots, envelope=True).table
        for task in range(len(graph)):
            expected = interval_costs(graph, task)
            for first in range(graph.slots):
                for last in range(first, graph.slots):
                    cost = table[index.row[task], first, last - first]
                    best = expected.get((first, last), np.inf)
                    assert cost == pytest.approx(best, abs=1e-12)
                    assert envelope[index.row[task], first, last - first] <= cost + 1e-12


@pytest.mark.parametrize(
    ("name", "pause"), [("square", True), ("square", False), ("static", False)]
)
def test_tables_of_convex_power_are_monge(name: str, pause: bool) -> None:
    # c(s, e) + c(s+1, e+1) <= c(s+1, e) + c(s, e+1): what makes one cut exact.
    random = np.random.default_rng(1)
    graph = with_power(tiny_graph(0), name, pause)
    graph = replace(graph, price=random.random(30), due=np.empty(0), release=np.empty(0))
    assert graph.monge
    table = SlotGraphIndex.of(graph).priced(30).table[-1]
    for s in range(28):
        for length in range(1, 29 - s):
            inner = table[s + 1, length - 1]
            if np.isfinite(inner):
                corners = table[s, length] + table[s + 1, length]
                assert corners <= inner + table[s, length + 1] + 1e-9


@pytest.mark.parametrize("name", POWERS)
@pytest.mark.parametrize("pause", [True, False])
def test_every_bound_is_below_the_optimum_and_the_proof_meets_it(name: str, pause: bool) -> None:
    for seed in range(12):
        graph = with_power(tiny_graph(seed, tasks=3, slots=(4, 5)), name, pause)
        best = brute_force(graph)
        if np.isinf(best):
            continue
        index, fluid = SlotGraphIndex.of(graph).priced(graph.slots), Fluid.of(graph)
        assert fluid_bound(graph, fluid) <= best + 1e-12
        assert SeparableBound.of(index, fluid).bound <= best + 1e-12
        found = solve_slots(graph, rounds=20, proof_s=np.inf)
        assert found.bound <= best + 1e-9
        assert found.cost == pytest.approx(best, abs=1e-9)


def test_levels_do_all_the_work_at_the_cost_of_the_table() -> None:
    for seed in range(20):
        graph = with_power(tiny_graph(seed), "uneven", pause=True)
        index = SlotGraphIndex.of(graph).priced(graph.slots)
        n = len(graph)
        plan = SlotPlan(np.zeros(n, int), np.full(n, graph.slots - 1), 0.0)
        if not np.isfinite(index.plan(plan.first, plan.last).cost):
            continue
        for i in range(len(graph)):
            chosen = levels(graph, plan, i)
            on = np.flatnonzero(chosen >= 0)
            assert graph.units[0, chosen[on]].sum() >= graph.work[i]
            assert graph.units[0, chosen[on[:-1]]].sum() < graph.work[i]
            cost = float(graph.price[on] @ graph.power[0, chosen[on]])
            assert cost == pytest.approx(index.table[index.row[i], 0, graph.slots - 1], abs=1e-12)


def test_a_fixed_order_is_solved_to_the_optimum_by_one_cut() -> None:
    # One machine, order fixed by a chain: the cut must equal brute force on the chain.
    for seed in range(30):
        graph = tiny_graph(seed, tasks=3)
        n = len(graph)
        graph = replace(graph, machines=1, edges=Edges(np.arange(n - 1), np.arange(1, n)))
        index = SlotGraphIndex.of(graph)
        least = index.length
        first = np.concatenate([[0], np.cumsum(least)[:-1]])
        plan = SlotPlan(first, first + least - 1, np.inf)
        best = brute_force(graph)
        found = best_intervals(index.priced(graph.slots), plan, index.before, index.after)
        assert (found is None) == np.isinf(best)
        if found is not None:
            assert is_valid(graph, found)
            assert found.cost == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("name", ["static", "uneven"])
@pytest.mark.parametrize("pause", [True, False])
def test_a_cut_is_never_worse_than_the_plan_it_starts_from(name: str, pause: bool) -> None:
    # Power that is not convex: costs are exact at the plan and never too low elsewhere.
    better = 0
    for seed in range(40):
        drawn = random_graph(12, seed=seed)
        price = np.random.default_rng(seed).random(160)
        graph = SlotGraph((4 * drawn.work).astype(int), drawn.edges, 3, price, *POWERS[name], pause)
        index = SlotGraphIndex.of(graph).priced(graph.slots)
        first, machine, _ = list_schedule(index, np.arange(12.0), index.length)
        last = first + index.length - 1
        plan = index.plan(first, last)
        edges = order_edges(index, machine, first)
        for reach in (-1, 3):
            found = best_intervals(index, plan, *edges, reach=reach)
            assert found is not None
            assert found.cost <= plan.cost * (1.0 + 1e-9)
            better += found.cost < 0.95 * plan.cost
    assert better > 40


def test_placing_on_machines_never_overlaps_and_its_order_allows_the_plan() -> None:
    for seed in range(20):
        graph = tiny_graph(seed)
        search = CostSearch.of(graph)
        if not search.open() or search.best is None:
            continue
        plan = search.best
        machine = machines_of(search.index, plan)
        assert np.all((machine >= 0) & (machine < graph.machines))
        before, after = order_edges(search.index, machine, plan.first)
        assert np.all(plan.last[before] < plan.first[after])
        for c in range(graph.machines):
            mine = np.flatnonzero(machine == c)
            queue = mine[np.argsort(plan.first[mine])]
            assert np.all(plan.last[queue[:-1]] < plan.first[queue[1:]])


def capacity_multipliers(search: CostSearch) -> CapacityMultipliers:
    assert search.separable is not None
    return CapacityMultipliers(search.index, search.separable.multiplier)


def test_dropping_labels_keeps_the_best_plan() -> None:
    for seed in range(15):
        graph = tiny_graph(seed, levels=3)
        search = CostSearch.of(graph)
        if not search.open() or search.best is None:
            continue
        best = brute_force(graph)
        multipliers = capacity_multipliers(search)
        for _ in range(12):
            multipliers.step(search.best, search.best.cost)
        assert multipliers.bound <= best + 1e-9


def test_fixing_keeps_every_interval_of_the_best_plan_and_drops_others() -> None:
    # An interval is dropped only where no plan below `upper` uses it.
    dropped = 0
    for seed in range(40):
        graph = tiny_graph(seed, levels=3)
        found = solve_slots(graph, rounds=60, proof_s=np.inf)
        if found.plan is None:
            continue
        search = CostSearch.of(graph)
        multipliers = capacity_multipliers(search)
        upper = found.cost * (1.0 + 1e-6)
        multipliers.step(found.plan, upper)
        columns, bound = surviving(multipliers, upper, search.index.table)
        assert bound <= found.cost * (1.0 + 1e-9)
        cheapest = [columns.cost[columns.task == i].min() for i in range(len(graph))]
        assert sum(cheapest) <= found.cost * (1.0 + 1e-9)
        answer = solve_intervals(graph, columns)
        assert answer.chosen is not None
        assert columns.cost[answer.chosen].sum() == pytest.approx(found.cost)
        dropped += len(columns) < len(graph) * graph.slots * (graph.slots + 1) // 2
    assert dropped > 10


def test_machine_multipliers_reach_the_bound_of_the_linear_program() -> None:
    for seed in (3, 5):
        drawn = random_graph(8, seed=seed)
        work = (3 * drawn.work).astype(np.int64)
        graph = SlotGraph(work, drawn.edges, 2, np.arange(1.0, 41.0), *POWERS["square"])
        search = CostSearch.of(graph)
        assert search.open()
        best = search.best
        assert best is not None
        multipliers = capacity_multipliers(search)
        for _ in range(30):
            multipliers.step(best, 2.0 * best.cost)
        columns, _ = surviving(multipliers, 2.0 * best.cost, search.index.table)
        relaxed = solve_intervals(graph, columns, integral=False)
        assert multipliers.bound == pytest.approx(relaxed.bound, rel=2e-4)
        assert multipliers.bound <= relaxed.bound * (1.0 + 1e-9)


def test_round_prices_make_costs_multiples_of_a_quantum() -> None:
    graph = SlotGraph(
        np.array([3, 4]), Edges(), 1, np.full(6, 2.0), np.array([1, 2]), np.array([0.25, 1.0])
    )
    quantum = CostQuantum.of(graph)
    # Seven unit steps of 2 x 0.25 or 2 x 0.75: 3.5 plus whole multiples of 1.
    assert quantum.quantum == pytest.approx(1.0)
    assert quantum.least_from(3.6) == pytest.approx(4.5)
    assert quantum.least_from(4.5) == pytest.approx(4.5)
    assert CostQuantum.of(replace(graph, price=np.sqrt(np.arange(1.0, 7.0)))).quantum == 0.0
