"""Unequal machines and per-machine prices under a fixed order."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.exact.cost_mixed import best_on_machines
from tests.cost.tiny import interval_costs, tiny_graph


def test_the_cut_finds_the_best_times_on_machines_of_their_own() -> None:
    found = 0
    for seed in range(25):
        random = np.random.default_rng(seed)
        graph = tiny_graph(seed, tasks=3, slots=(4, 6))
        slow = replace(graph, units=np.array([1]), power=np.array([0.3]))
        other = replace(slow, price=random.random(graph.slots))
        machine, rank = random.integers(0, 2, len(graph)), np.arange(len(graph))
        options = [
            list(interval_costs((graph, other)[machine[i]], i).items()) for i in range(len(graph))
        ]
        pairs = set(zip(graph.edges.before.tolist(), graph.edges.after.tolist(), strict=True))
        pairs |= {(i, j) for j in rank for i in range(j) if machine[i] == machine[j]}
        best = min(
            (
                sum(cost for _, cost in chosen)
                for chosen in product(*options)
                if all(chosen[i][0][1] < chosen[j][0][0] for i, j in pairs)
            ),
            default=np.inf,
        )
        plan = best_on_machines((graph, other), machine, rank)
        assert (plan is None) == np.isinf(best)
        if plan is not None:
            found += 1
            assert plan.cost == pytest.approx(best, abs=1e-9)
    assert found >= 10


def test_an_order_against_the_edges_is_refused() -> None:
    graph = next(g for g in map(tiny_graph, range(50)) if len(g.edges) > 0)
    rank = np.arange(len(graph))[::-1].copy()
    with pytest.raises(InvalidInput, match="before its predecessor"):
        best_on_machines((graph, graph), np.zeros(len(graph), int), rank)
