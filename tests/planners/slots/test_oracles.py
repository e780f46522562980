"""Ours, the corrected program of gerhards section 4 and brute force agree on tiny cases."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.planners.slots.model import SlotGraph, is_valid
from downclock.planners.slots.printed import FLAWS, LAST, solve_program
from downclock.planners.slots.solve import solve_slots
from downclock.problem.graph import Edges
from tests.planners.slots.tiny import brute_force, tiny_graph

CASES = range(200)


@pytest.mark.parametrize("block", range(10))
def test_ours_proves_what_brute_force_finds(block: int) -> None:
    for seed in CASES[block * 20 : block * 20 + 20]:
        graph = tiny_graph(seed)
        best = brute_force(graph)
        ours = solve_slots(graph, rounds=60, proof_s=np.inf)
        if np.isinf(best):
            assert ours.status == "infeasible", seed
            continue
        assert ours.plan is not None, seed
        assert is_valid(graph, ours.plan), seed
        assert ours.cost == pytest.approx(best, rel=1e-9, abs=1e-9), seed
        assert ours.bound <= best * (1.0 + 1e-9) + 1e-12, seed
        assert ours.status == "optimal", seed


def test_corrected_program_finds_what_brute_force_finds() -> None:
    # All 200 are compared by `python -m benchmarks.cost --part tiny`, which takes a minute.
    for seed in CASES[1:200:6]:
        graph = tiny_graph(seed)
        best, program = brute_force(graph), solve_program(graph, "corrected")
        if np.isinf(best):
            assert program.status == "infeasible", seed
        else:
            assert program.cost == pytest.approx(best, abs=1e-6), seed
            assert program.broken_edges(graph) == 0, seed
            assert program.gaps() == 0, seed


def chain(work: list[int], slots: int, price: list[float] | None = None) -> SlotGraph:
    n = len(work)
    edges = Edges(np.arange(n - 1), np.arange(1, n))
    units = np.array([1, 2])
    rate = np.ones(slots) if price is None else np.array(price)
    return SlotGraph(np.array(work), edges, 2, rate, units, (units / 2) ** 2)


def test_place_10_asks_for_two_slots_a_task() -> None:
    # Three one-slot tasks in a row fit three slots, but not with 1 + start <= stop.
    graph = chain([2, 2, 2], slots=3)
    assert solve_program(graph, "corrected").cost == pytest.approx(3.0)
    assert solve_program(graph, frozenset({"(10)"})).status == "infeasible"
    assert solve_program(graph, "printed").status == "infeasible"


@pytest.mark.parametrize(
    ("place", "held"),
    [("(7)", [[1, 1, 0, 0], [0, 1, 1, 0]]), ("(9)", [[0, 1, 1, 0], [0, 0, 1, 1]])],
)
def test_places_7_and_9_open_a_slot_beside_the_interval(place: str, held: list[list[int]]) -> None:
    # Two tasks of two full slots in four slots leave no choice, yet the successor starts a slot
    # before its start (7), or the predecessor stops a slot after its stop (9), where it is cheap.
    graph = chain([4, 4], slots=4, price=[1.0, 0.1, 0.1, 1.0])
    assert solve_program(graph, "corrected").cost == pytest.approx(2.2)
    alone = solve_program(graph, frozenset({place}))
    assert alone.cost == pytest.approx(1.3)
    assert alone.broken_edges(graph) == 1
    assert alone.holding.astype(int).tolist() == held


def test_printed_program_runs_a_successor_beside_its_predecessor() -> None:
    # (7) and (9) together: both tasks move to the two cheap slots in the middle.
    graph = chain([4, 4], slots=4, price=[1.0, 0.1, 0.1, 1.0])
    printed = solve_program(graph, "printed")
    assert printed.cost == pytest.approx(0.4)
    assert printed.broken_edges(graph) == 1


def test_place_11_counts_slots_but_does_not_join_them() -> None:
    # One machine, two tasks. The dear second slot is passed to the other task in between, which
    # counting slots does not forbid unless (7) and (9) tie the count to the interval.
    units = np.array([1, 2])
    price = np.array([0.1, 0.5, 0.1, 1.0])
    graph = SlotGraph(np.array([4, 2]), Edges(), 1, price, units, (units / 2) ** 2)
    printed, corrected = solve_program(graph, "printed"), solve_program(graph, "corrected")
    assert corrected.gaps() == 0
    assert printed.gaps() > 0


def test_place_4_says_the_same_in_more_rows() -> None:
    # m (m - 1) rows a task instead of m; no schedule is won or lost by it.
    units = np.array([1, 2])
    graph = SlotGraph(np.array([3, 2]), Edges(), 3, np.array([0.3, 0.1]), units, (units / 2) ** 2)
    one, weak = solve_program(graph, "corrected"), solve_program(graph, frozenset({"(4)"}))
    assert weak.cost == pytest.approx(one.cost)
    assert weak.rows - one.rows == 2 * (3 * 2 - 3)


def test_the_slot_after_the_last_one_is_one_too_many() -> None:
    graph = chain([2, 2, 2], slots=2)
    assert solve_program(graph, "corrected").status == "infeasible"
    assert solve_program(graph, frozenset({LAST})).cost == pytest.approx(3.0)
    assert set(FLAWS) == {"(4)", "(7)", "(9)", "(10)", "(11)", LAST}
