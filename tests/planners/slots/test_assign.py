"""Tasks that exchange their intervals."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.planners.slots.assign import MOST, reassigned
from downclock.planners.slots.model import (
    SlotGraph,
    SlotGraphIndex,
    is_valid,
)
from downclock.planners.slots.start import shortest_schedule
from downclock.problem.graph import Edges
from tests.planners.slots.near_barriers import SQUARE, UNITS, near_barriers


def test_the_cheap_slot_goes_to_the_task_with_more_work() -> None:
    """1 and 5 units at prices 1 and 10: 0.04 + 10 before, 10 × 0.04 + 1 after."""
    graph = SlotGraph(np.array([1, 5]), Edges(), 1, np.array([1.0, 10.0]), UNITS, SQUARE)
    index = SlotGraphIndex.of(graph).priced(2)
    plan = index.plan(np.array([0, 1]), np.array([0, 1]))
    assert plan.cost == pytest.approx(10.04)
    better = reassigned(index, plan, np.random.default_rng(0))
    assert better.first.tolist() == [1, 0]
    assert better.cost == pytest.approx(1.4)


@pytest.mark.parametrize(
    ("edge", "due"), [(((0,), (1,)), (1, 1)), (((), ()), (0, 1))], ids=["edge", "own deadline"]
)
def test_nothing_moves_past_an_edge_or_a_deadline(
    edge: tuple[tuple[int, ...], tuple[int, ...]], due: tuple[int, int]
) -> None:
    edges = Edges(*(np.array(ends, dtype=np.int64) for ends in edge))
    price = np.array([1.0, 10.0])
    graph = SlotGraph(np.array([1, 5]), edges, 1, price, UNITS, SQUARE, due=np.array(due))
    index = SlotGraphIndex.of(graph).priced(2)
    plan = index.plan(np.array([0, 1]), np.array([0, 1]))
    for seed in range(20):
        drawn = np.random.default_rng(seed)
        assert reassigned(index, plan, drawn) is plan


@pytest.mark.parametrize("seed", range(6))
def test_plans_stay_valid_and_become_cheaper(seed: int) -> None:
    """Also where there are more tasks than change places at once."""
    graph = near_barriers(seed, machines=3, tasks=(40, MOST + 60)[seed % 2])
    index, random = SlotGraphIndex.of(graph).priced(graph.slots), np.random.default_rng(seed)
    first = shortest_schedule(graph, tries=20)[0]
    plan = index.plan(first, first + index.length - 1)
    costs = [plan.cost]
    for _ in range(10):
        plan = reassigned(index, plan, random)
        costs.append(plan.cost)
        assert is_valid(graph, plan)
        assert plan.cost == pytest.approx(index.plan(plan.first, plan.last).cost)
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < 0.97 * costs[0]
