"""Bounds never exceed the best schedule, and the search never falls below them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downclock.planners.chip.bounds import (
    global_bound,
    lemma3_bound,
    weighted_bound,
)
from downclock.planners.chip.clocks import (
    ChipPower,
    global_clocks,
    level_clocks,
    makespan,
    weighted_makespan,
)
from downclock.planners.chip.length import least_length
from downclock.planners.chip.level_program import LevelProgram
from downclock.planners.chip.lists import list_schedule
from downclock.planners.chip.search import SearchEffort, search
from tests.planners.chip.graphs_for_tests import (
    assert_valid,
    graph_of,
    least_weighted_makespan,
    random_graphs,
)

QUICK = SearchEffort(effort=0.02, restarts=1)

TINY = [
    graph_of([2, 1, 2, 1], (0, 2), (1, 3)),
    graph_of([3, 1, 2, 2], (0, 1), (0, 2)),
    graph_of([2, 2, 1, 3]),
    graph_of([1, 3, 2, 2], (0, 3), (1, 3), (2, 3)),
    graph_of([1, 2, 1, 2, 1], (0, 1), (0, 2), (2, 3), (3, 4)),
    graph_of([2, 1, 1, 1, 2], (0, 1), (0, 2), (0, 3), (3, 4)),
]


@pytest.mark.parametrize("cores", [2, 3])
@pytest.mark.parametrize("graph", TINY)
def test_bound_and_search_enclose_the_exhaustive_optimum(graph, cores) -> None:
    optimum = least_weighted_makespan(graph, cores)
    placed = search(graph, cores, how=QUICK)
    assert weighted_makespan(placed.parallelism(graph)) == pytest.approx(optimum)
    assert weighted_bound(graph, cores) <= optimum * (1.0 + 1e-9)
    assert LevelProgram.of(graph, cores).solve(ChipPower().weight(cores)[1:])[0] >= lemma3_bound(
        graph.total_work, graph.critical_path, cores
    ) * (1.0 - 1e-6)


@settings(max_examples=40)
@given(random_graphs(), st.integers(1, 5), st.sampled_from(["lpt", "hlf", "heft"]))
def test_no_list_schedule_is_below_the_bound(graph, cores, rule) -> None:
    reached = weighted_makespan(list_schedule(graph, cores, rule).parallelism(graph))
    assert weighted_bound(graph, cores) <= reached * (1.0 + 1e-9)


def test_what_cannot_run_elsewhere_lengthens_the_schedule() -> None:
    """1, then three of 2, then 1 on two cores: 6 cycles; path and total work say only 4."""
    graph = graph_of([1, 2, 2, 2, 1], *[(0, i) for i in (1, 2, 3)], *[(i, 4) for i in (1, 2, 3)])
    assert least_length(graph, 2, 1.0) == 6.0
    assert least_length(graph, 2) == pytest.approx(6.0, rel=2e-6)
    assert least_length(graph, 3, 1.0) == graph.critical_path == 4.0


def test_tasks_in_pieces_have_a_weaker_bound() -> None:
    """1, then three of 2, then 1 on two cores: in pieces the three take 3 cycles, not 4."""
    graph = graph_of([1, 2, 2, 2, 1], *[(0, i) for i in (1, 2, 3)], *[(i, 4) for i in (1, 2, 3)])
    torn = replace(graph, pieces=True)
    assert least_length(torn, 2) == pytest.approx(5.0, rel=2e-6)
    assert weighted_bound(torn, 2) == pytest.approx(2.0 + 3.0 * 2.0 ** (1 / 3), rel=1e-5)


@settings(max_examples=60)
@given(random_graphs(whole=False), st.integers(1, 4), st.sampled_from(["lpt", "hlf", "heft"]))
def test_no_list_schedule_is_shorter_than_the_least_makespan(graph, cores, rule) -> None:
    length = makespan(list_schedule(graph, cores, rule).parallelism(graph))
    assert least_length(graph, cores) <= length * (1.0 + 1e-9)


@settings(max_examples=12)
@given(random_graphs(most=7), st.integers(1, 4), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_limited_clocks_have_their_own_bound(graph, cores, c2, c3) -> None:
    power = ChipPower(c2=c2, c3=c3)
    omega = list_schedule(graph, cores, "hlf").parallelism(graph)
    deadline = 2.0 * makespan(omega)
    listed = replace(power, levels=(0.4, 0.7, 1.0))
    _, mixed = level_clocks(omega, deadline, listed)
    assert global_bound(graph, cores, deadline, listed) <= mixed * (1.0 + 1e-9)
    limited = replace(power, slowest=0.4, fastest=1.0)
    boxed = global_clocks(omega, deadline, limited).energy
    assert global_bound(graph, cores, deadline, limited) <= boxed * (1.0 + 1e-9)
    free = global_clocks(omega, deadline, power).energy
    assert global_bound(graph, cores, deadline, power) <= free * (1.0 + 1e-9)


def test_a_common_unit_sharpens_the_bound() -> None:
    """Four tasks of 4 on three cores: 16 = 12 + 4 cycles, never 15 + 1."""
    graph = graph_of([4, 4, 4, 4])
    assert weighted_bound(graph, 3) == pytest.approx(4.0 * (3.0 ** (1 / 3) + 1.0))
    assert lemma3_bound(16.0, 4.0, 3, unit=1.0) < weighted_bound(graph, 3)


@settings(max_examples=12)
@given(random_graphs(whole=False), st.integers(2, 4), st.integers(0, 5))
def test_search_is_valid_repeatable_and_not_worse_than_lists(graph, cores, seed) -> None:
    how = replace(QUICK, seed=seed)
    placed = search(graph, cores, how=how)
    again = search(graph, cores, how=how)
    assert np.array_equal(placed.start, again.start)
    assert_valid(graph, placed.start, placed.core, cores)
    reached = weighted_makespan(placed.parallelism(graph))
    assert weighted_bound(graph, cores) <= reached * (1.0 + 1e-6)
    for rule in ("lpt", "hlf", "heft"):
        listed = weighted_makespan(list_schedule(graph, cores, rule).parallelism(graph))
        assert reached <= listed * (1.0 + 1e-9)


def test_delaying_a_task_nobody_waits_for_pays() -> None:
    """A chain 2-2 and a free task of 2 before a wide end: greedy runs it at once, beside 1."""
    graph = graph_of([4, 3, 3, 3], (0, 1), (0, 2))
    placed = search(graph, 3, how=QUICK)
    assert placed.start[3] == 4.0
    assert list(placed.parallelism(graph)) == [0.0, 4.0, 0.0, 3.0]
