"""Ours, the corrected program of gerhards section 4 and brute force agree on tiny cases."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.exact.cost_model import SlotGraph, is_valid
from downclock.exact.cost_printed import FLAWS, solve_program
from downclock.policies.cost_search import solve_slots
from downclock.problem.graph import Edges
from tests.cost.tiny import brute_force, tiny_graph

CASES = range(200)


@pytest.mark.parametrize("block", range(10))
def test_ours_proves_what_brute_force_finds(block: int) -> None:
    for seed in CASES[block * 20 : block * 20 + 20]:
        graph = tiny_graph(seed)
        best = brute_force(graph)
        ours = solve_slots(graph, seconds=5.0, rounds=60, proof_s=10.0)
        if np.isinf(best):
            assert ours.status == "infeasible", seed
            continue
        assert ours.plan is not None, seed
        assert is_valid(graph, ours.plan), seed
        assert ours.cost == pytest.approx(best, rel=1e-9, abs=1e-9), seed
        assert ours.bound <= best * (1.0 + 1e-9) + 1e-12, seed
        assert ours.status == "optimal", seed


def test_corrected_program_finds_what_brute_force_finds() -> None:
    for seed in CASES[:15]:
        graph = tiny_graph(seed)
        best, program = brute_force(graph), solve_program(graph, "corrected")
        if np.isinf(best):
            assert program.status == "infeasible", seed
        else:
            assert program.cost == pytest.approx(best, abs=1e-6), seed
            assert program.broken_edges(graph) == 0, seed


def chain(work: list[int], slots: int, price: list[float] | None = None) -> SlotGraph:
    n = len(work)
    edges = Edges(np.arange(n - 1), np.arange(1, n))
    units = np.array([1, 2])
    rate = np.ones(slots) if price is None else np.array(price)
    return SlotGraph(np.array(work), edges, 2, rate, units, (units / 2) ** 2)


def test_printed_program_has_no_place_for_unit_tasks() -> None:
    # Equation (10) asks for two slots a task: three one-slot tasks do not fit into three slots.
    graph = chain([2, 2, 2], slots=3)
    assert solve_program(graph, "corrected").cost == pytest.approx(3.0)
    assert solve_program(graph, "printed").status == "infeasible"


def test_printed_program_runs_a_successor_beside_its_predecessor() -> None:
    # (7) and (9) open the slot before the start and after the stop. Two tasks of two full slots
    # in four slots leave no choice, yet both move to the two cheap slots in the middle.
    graph = chain([4, 4], slots=4, price=[1.0, 0.1, 0.1, 1.0])
    printed, corrected = solve_program(graph, "printed"), solve_program(graph, "corrected")
    assert corrected.cost == pytest.approx(2.2)
    assert corrected.broken_edges(graph) == 0
    assert printed.cost == pytest.approx(0.4)
    assert printed.broken_edges(graph) == 1
    assert {"(7)", "(9)", "(10)"} <= set(FLAWS)
