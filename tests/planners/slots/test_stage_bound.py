"""The bound of barriers and near-barriers: below every plan, and near the best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.planners.slots.barriers import Stages, barriers
from downclock.planners.slots.fluid import Fluid, fluid_bound
from downclock.planners.slots.model import SlotGraph, SlotGraphIndex
from downclock.planners.slots.solve import SlotResult, solve_slots
from downclock.planners.slots.stage_bound import StageBound, best_stages
from downclock.problem.graph import Edges
from tests.planners.slots.near_barriers import near_barriers
from tests.planners.slots.tiny import brute_force


def test_three_tasks_between_barriers_on_two_machines_take_two_slots() -> None:
    """0 -> {1, 2, 3} -> 4 on two machines takes all of four slots: 1 + 2 + 5 + 1."""
    edges = Edges(np.array([0, 0, 0, 1, 2, 3]), np.array([1, 2, 3, 4, 4, 4]))
    price = np.array([1.0, 1.0, 5.0, 1.0])
    graph = SlotGraph(np.ones(5), edges, 2, price, np.array([1]), np.array([1.0]))
    found = solve_slots(graph, rounds=5)
    assert bound_of(graph, found) == pytest.approx(brute_force(graph), rel=1e-6)
    assert brute_force(graph) == pytest.approx(9.0)


def test_a_stage_with_more_long_tasks_than_machines_lasts_for_two_of_them() -> None:
    """Three tasks of two slots on two machines before a join take four, though 6 / 2 is three."""
    edges = Edges(np.array([0, 1, 2]), np.array([3, 3, 3]))
    graph = SlotGraph(
        np.array([2, 2, 2, 1]), edges, 2, np.arange(1.0, 7.0), np.array([1]), np.array([1.0])
    )
    bound = prepared(graph, solve_slots(graph, rounds=5), 0.0)
    assert bound is not None
    assert [stage.least for stage in bound.stages] == [4, 1]


def bound_of(graph: SlotGraph, found: SlotResult) -> float:
    index = SlotGraphIndex.of(graph).priced(graph.slots)
    assert found.plan is not None
    fluid = Fluid.of(graph)
    bound = best_stages(index, fluid, found.plan, barriers(index, fluid.work))
    return bound.safe if bound else 0.0


def prepared(graph: SlotGraph, found: SlotResult, share: float) -> StageBound | None:
    index, fluid = SlotGraphIndex.of(graph).priced(graph.slots), Fluid.of(graph)
    stages = Stages.of(barriers(index, fluid.work), fluid.work, share)
    assert found.plan is not None
    return None if stages is None else StageBound.of(index, fluid, stages, found.plan)


def proven(graph: SlotGraph) -> SlotResult:
    found = solve_slots(graph, rounds=60, proof_s=np.inf)
    assert found.status == "optimal"
    return found


@pytest.mark.parametrize("seed", range(8))
def test_any_multipliers_give_a_bound(seed: int) -> None:
    graph = near_barriers(seed, machines=2 + seed % 2)
    best, random = proven(graph), np.random.default_rng(seed)
    tried = 0
    for share in (0.05, 0.2, 0.4):
        bound = prepared(graph, best, share)
        if bound is None or not bound.barriers.beside.size:
            continue
        price = float(graph.price.max())
        for scale in (0.0, 0.1, 0.5, 2.0):
            room = scale * price * random.random(bound.room.shape)
            once = 2.0 * scale * price * random.random(bound.once.shape)
            assert bound.relaxed_at(room, once).value <= best.cost * (1.0 + 1e-9)
            tried += 1
    assert tried


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_climbs_and_never_passes_the_optimum(seed: int) -> None:
    graph = near_barriers(seed + 20, machines=3)
    best = proven(graph)
    for share in (0.0, 0.1, 0.3):
        bound = prepared(graph, best, share)
        if bound is None:
            continue
        # A plan that is dearer than the best keeps more arcs.
        bound.upper = 1.1 * best.cost
        values = []
        for steps in (0, 5, 20):
            bound.climb(steps)
            values.append(bound.value)
        bound.sharpen()
        values.append(bound.value)
        assert values == sorted(values)
        assert values[-1] <= best.cost * (1.0 + 1e-9)
    assert bound_of(graph, best) >= fluid_bound(graph, Fluid.of(graph)) * (1.0 - 1e-6)


@pytest.mark.parametrize("pause", [True, False])
@pytest.mark.parametrize("levels", ["even", "uneven", "static"])
def test_it_holds_for_all_levels_windows_and_curves(pause: bool, levels: str) -> None:
    units = {"even": [1, 2, 3, 4, 5], "uneven": [1, 4, 5], "static": [1, 2, 3, 4, 5]}[levels]
    power = 0.3 * (levels == "static") + (np.array(units) / 5) ** 2
    for seed in range(4):
        drawn = near_barriers(seed + 40, machines=2)
        random = np.random.default_rng(seed)
        second = random.integers(0, 2, len(drawn))
        graph = replace(
            drawn,
            units=np.array([units, units]),
            power=np.array([power, 1.7 * power]),
            curve=second,
            pause=pause,
            release=np.where(random.random(len(drawn)) < 0.2, 1, 0),
        )
        found = solve_slots(graph, rounds=30, proof_s=np.inf)
        if found.plan is None:
            continue
        assert bound_of(graph, found) <= found.cost * (1.0 + 1e-9)
        if found.status == "optimal":
            worse = replace(found.plan, cost=1.2 * found.cost)
            assert bound_of(graph, replace(found, plan=worse)) <= found.cost * (1.0 + 1e-9)


def test_idle_machines_at_a_join_with_a_task_beside_are_seen() -> None:
    """Six stages of nine tasks on four machines and a task beside each join.

    Nine equal tasks on four machines take three slots of which the last is mostly idle; work as a
    fluid never idles.
    """
    pairs, work, before = [], [], None
    for _ in range(6):
        stage = list(range(len(work), len(work) + 9))
        work += [5] * 10
        pairs += [(before, i) for i in stage if before is not None]
        pairs += [(i, stage[-1] + 1) for i in stage]
        if before is not None:
            work.append(5)
            pairs.append((before - 1, len(work) - 1))
        before = stage[-1] + 1
    edges = Edges(np.array([a for a, _ in pairs]), np.array([b for _, b in pairs]))
    units = np.arange(1, 6)
    graph = SlotGraph(np.array(work), edges, 4, np.ones(30), units, (units / 5) ** 2)
    index, fluid = SlotGraphIndex.of(graph), Fluid.of(graph)
    found = solve_slots(graph, rounds=30)
    assert found.plan is not None
    alone = bound_of(graph, found)
    assert fluid_bound(index.graph, fluid) < 0.9 * alone
    assert found.cost < 1.05 * alone


def test_tasks_that_choose_in_arcs_see_whole_slots() -> None:
    """0 -> {1, 2, 3} -> 4 on two machines at prices 9, 1, 9, 1, 9.

    A fluid spreads nine units over two cheap slots of two machines; of three tasks one has a
    machine for itself and the others share one: (4 + 1 + 9 + 9) / 25 of a cheap slot.
    """
    ends = [(0, i) for i in range(1, 4)] + [(i, 4) for i in range(1, 4)]
    edges = Edges(np.array([a for a, _ in ends]), np.array([b for _, b in ends]))
    price = np.array([9.0, 1.0, 9.0, 1.0, 9.0])
    units = np.arange(1, 6)
    graph = SlotGraph(
        np.array([5, 3, 3, 3, 5]), edges, 2, price, units, (units / 5) ** 2,
        release=np.array([0, 0, 0, 0, 4]), due=np.array([0, 4, 4, 4, 4]),
    )  # fmt: skip
    best = proven(graph)
    assert best.cost == pytest.approx(9.0 + 23.0 / 25.0 + 9.0)
    bound = prepared(graph, best, 0.0)
    assert bound is not None
    bound.upper = 1.5 * best.cost
    bound.climb(20)
    fluid = bound.value
    bound.sharpen()
    assert fluid < 9.0 + 21.0 / 25.0 + 9.0 + 1e-6
    assert bound.value == pytest.approx(best.cost, rel=1e-4)
