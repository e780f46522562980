"""Large graphs: eager lists, what is lost where, and neighbourhoods of a plan."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downclock.planners.slots.fluid import Fluid, fluid_bound, work_multipliers
from downclock.planners.slots.model import SlotGraph, SlotGraphIndex, is_valid, overlap
from downclock.planners.slots.neighbourhoods import improve_neighbourhood
from downclock.planners.slots.search import CostSearch
from downclock.planners.slots.separable_bound import SeparableBound
from downclock.planners.slots.solve import solve_slots
from downclock.planners.slots.start import fluid_paced_list, list_schedule, shortest_schedule
from downclock.problem.graph import Edges
from downclock.workloads.gerhards import Meshing, flat_prices, random_graph

UNITS = np.arange(1, 6)
SQUARE = (UNITS / 5) ** 2


def graph_of(
    tasks: int, machines: int, *, meshing: Meshing = "middle", seed: int = 0, extension: float = 0.2
) -> SlotGraph:
    drawn = random_graph(tasks, meshing=meshing, seed=seed)
    work = (5 * drawn.work).astype(np.int64)
    graph = SlotGraph(work, drawn.edges, machines, np.ones(1), UNITS, SQUARE)
    _, end = shortest_schedule(graph, tries=3)
    price = 1.0 + np.random.default_rng(seed).random(int(end * (1.0 + extension)))
    return replace(graph, price=price, release=np.empty(0), due=np.empty(0))


@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from(["low", "middle", "high"]))
@settings(max_examples=40, deadline=None)
def test_eager_lists_leave_no_machine_idle_while_a_task_could_run(
    seed: int, machines: int, meshing: Meshing
) -> None:
    graph = graph_of(40, machines, meshing=meshing, seed=seed)
    index = SlotGraphIndex.of(graph)
    key = np.random.default_rng(seed).random(40)
    first, machine, end = list_schedule(index, key, index.length, eager=True)
    last = first + index.length - 1
    busy = np.zeros((machines, end), dtype=np.int64)
    for i in range(40):
        busy[machine[i], first[i] : last[i] + 1] += 1
    assert busy.max() == 1
    could = np.zeros(40, dtype=np.int64)
    np.maximum.at(could, index.after, last[index.before] + 1)
    assert np.all(first >= could)
    for i in range(40):
        assert np.all(busy[:, could[i] : first[i]].sum(axis=0) == machines)


def test_a_paced_list_is_near_the_bound_and_meets_the_deadline() -> None:
    graph = graph_of(600, 6, seed=3)
    index = SlotGraphIndex.of(graph)
    search = CostSearch.of(graph)
    found = fluid_paced_list(index, search.fluid)
    assert found is not None
    first, length = found
    assert np.all(first + length <= graph.slots)
    plan = search.improve(first, first + length - 1, most=0)
    assert plan is not None
    assert plan.cost < 1.03 * search.bound
    late = replace(
        graph, price=graph.price[: graph.slots // 2], release=np.empty(0), due=np.empty(0)
    )
    assert fluid_paced_list(SlotGraphIndex.of(late), Fluid.of(late)) is None


@pytest.mark.parametrize("prices", ["flat", "random"])
def test_losses_of_tasks_and_machines_sum_to_the_gap(prices: str) -> None:
    graph = graph_of(150, 4, seed=1)
    if prices == "flat":
        graph = replace(graph, price=flat_prices(graph.slots))
    search = CostSearch.of(graph)
    assert search.open()
    assert search.separable is not None
    assert search.best is not None
    by_task, by_slot = search.separable.losses(search.index, search.best)
    assert min(by_task.min(), by_slot.min()) > -1e-9
    lost = float(by_task.sum() + by_slot.sum())
    assert search.best.cost - lost == pytest.approx(search.separable.bound, rel=1e-7)


def test_the_separable_bound_sees_whole_slots_where_fluid_does_not() -> None:
    # Five units in one slot or in two: with 20 % more time half of the tasks may not go slower.
    graph = SlotGraph(np.full(100, 5), random_graph(2).edges, 5, np.ones(24), UNITS, SQUARE)
    index = SlotGraphIndex.of(graph)
    separable = SeparableBound.of(index.priced(graph.slots), Fluid.of(graph))
    found = solve_slots(graph, rounds=50)
    assert fluid_bound(graph, Fluid.of(graph)) < 0.98 * separable.bound
    assert found.cost < 1.01 * separable.bound


def test_a_table_that_is_cut_short_gives_no_higher_bound() -> None:
    graph = graph_of(60, 4, seed=2)
    index = SlotGraphIndex.of(graph)
    whole = index.priced(graph.slots)
    fluid = Fluid.of(graph)
    full = SeparableBound.of(whole, fluid)
    for longest in (10, 12, 20):
        short = SeparableBound.of(index.priced(longest), fluid)
        assert short.bound <= full.bound * (1.0 + 1e-9)


@pytest.mark.parametrize("kind", ["square", "no pause", "uneven"])
def test_neighbourhoods_keep_a_plan_valid_and_never_make_it_worse(kind: str) -> None:
    graph = graph_of(160, 12 if kind == "square" else 5, seed=4)
    if kind == "no pause":
        graph = replace(graph, pause=False)
    elif kind == "uneven":
        graph = replace(graph, units=np.array([1, 3, 5]), power=np.array([0.1, 0.4, 1.0]))
    search = CostSearch.of(graph, limit_s=60.0)
    assert search.open()
    assert search.separable is not None
    assert search.best is not None
    begun = search.best.cost
    better = 0
    for _ in range(40):
        before = search.best.cost
        improve_neighbourhood(search)
        better += search.best.cost < before
        assert search.best.cost <= before
        assert is_valid(graph, search.best)
        assert overlap(search.best, graph.slots).max() <= graph.machines
    assert better > 0
    assert search.best.cost < begun


def test_the_search_ends_by_rounds_alone_and_the_same_seed_gives_the_same_plan() -> None:
    graph = graph_of(30, 4, seed=6)
    ticks = count()
    found = [
        solve_slots(graph, seconds=1e9, rounds=2, seed=3, clock=lambda: float(next(ticks)))
        for _ in range(2)
    ]
    assert found[0].plan is not None
    assert found[1].plan is not None
    assert found[0].cost == found[1].cost
    assert np.array_equal(found[0].plan.first, found[1].plan.first)


def test_the_separable_bound_sees_that_little_can_be_done_at_first() -> None:
    # One chain of 20 slots before 60 tasks that wait for it: two of three machines idle at first.
    edges = Edges(np.full(60, 0), np.arange(1, 61))
    work = np.concatenate([[100], np.full(60, 25)])
    graph = SlotGraph(work, edges, 3, np.ones(140), UNITS, SQUARE)
    index = SlotGraphIndex.of(graph)
    separable = SeparableBound.of(index.priced(graph.slots), Fluid.of(graph))
    found = solve_slots(graph, rounds=40)
    assert fluid_bound(graph, Fluid.of(graph)) < 0.95 * separable.bound
    assert separable.bound <= found.cost < 1.06 * separable.bound


def test_worth_of_work_rises_where_work_comes_late() -> None:
    graph = SlotGraph(np.full(10, 10), Edges(), 2, np.ones(24), UNITS, SQUARE)
    early, late = np.full(10, 12), np.full(10, 23)
    worth = work_multipliers(graph, Fluid.of(graph), early, late)
    assert np.all(worth[:12] < worth[12])
    assert np.ptp(worth[12:]) == 0.0
    free = work_multipliers(graph, Fluid.of(graph), graph.release, graph.due)
    assert np.ptp(free) == 0.0
    assert free[0] < worth[12]


def test_many_machines_and_few_tasks_leave_pieces_empty() -> None:
    """Ten chains on forty machines: most machines never run anything."""
    n = 150
    edges = Edges(np.arange(n - 10), np.arange(10, n))
    graph = SlotGraph(np.full(n, 10), edges, 40, np.ones(60), UNITS, SQUARE)
    found = solve_slots(graph, rounds=40)
    assert found.plan is not None
    assert is_valid(graph, found.plan)


def test_windows_longer_than_the_table_are_searched_too() -> None:
    graph = graph_of(110, 1, seed=8, extension=2.0)
    search = CostSearch.of(graph, limit_s=60.0)
    assert search.index.table.shape[2] < graph.slots
    assert search.open()
    assert search.separable is not None
    for _ in range(3):
        improve_neighbourhood(search)
    assert search.best is not None
    assert is_valid(graph, search.best)


@pytest.mark.parametrize(("release", "due"), [(9, 4), (0, -1)])
def test_a_task_without_a_slot_is_infeasible_not_an_error(release: int, due: int) -> None:
    graph = SlotGraph(
        np.array([5, 5]), Edges(), 1, np.ones(5), UNITS, SQUARE, True,
        np.array([0, release]), np.array([4, due]),
    )  # fmt: skip
    found = solve_slots(graph, rounds=5)
    assert found.status == "infeasible"
    assert found.plan is None


def test_prices_of_many_decades_give_valid_plans() -> None:
    for seed in range(60):
        random = np.random.default_rng(seed)
        graph = SlotGraph(
            random.integers(1, 8, 3), Edges(), 1, 10.0 ** random.integers(-4, 2, 12), UNITS, SQUARE,
            bool(seed % 2),
        )  # fmt: skip
        found = solve_slots(graph, rounds=15)
        assert found.plan is None or is_valid(graph, found.plan)
        assert found.bound <= found.cost * (1.0 + 1e-9)


def test_a_search_ends_where_every_order_misses_the_deadline(monkeypatch) -> None:
    """Orders that give no plan count too, three as one: such a search ran for minutes."""
    tries = count()

    def missed(search: CostSearch, key: object, near: object, reach: int = -1) -> None:
        assert next(tries) < 3 * 5 * 40, "at most five orders a turn"

    monkeypatch.setattr(CostSearch, "reorder", missed)
    found = solve_slots(graph_of(40, 3, extension=0.05), rounds=40)
    assert found.status == "feasible"
    assert next(tries) > 40
