"""Voltage islands: between one clock for the chip and one for each core."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import downclock as dc
from downclock.errors import InvalidInput
from downclock.planners.chip.plan import plan_graph
from downclock.planners.chip.search import SearchEffort
from downclock.power.points import ClockRange, Clocks, ClockTable
from downclock.problem.graph import Edges
from downclock.problem.platform import Platform, ServerSpec
from downclock.workloads.chip import chip_problem
from downclock.workloads.task_graph import TaskGraph
from tests.planners.chip.graphs_for_tests import named, random_graphs

LITTLE = SearchEffort(effort=0.05)


def layers(seed: int, n: int = 24, width: int = 4) -> TaskGraph:
    """A small graph in layers, with work of very different length."""
    rng = np.random.default_rng(seed)
    pairs = {
        (int(rng.integers(max(0, i - 2 * width), i // width * width)), i)
        for i in range(width, n)
        for _ in range(2)
    }
    before, after = np.array(sorted(pairs)).T
    names = np.array([f"t{i}" for i in range(n)], dtype=object)
    return TaskGraph("layers", names, rng.exponential(10.0, n) + 0.5, Edges(before, after))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("c2", "c3"), [(0.0, 0.0), (0.1, 0.4)])
def test_islands_lie_between_one_clock_and_a_clock_per_core(
    seed: int, c2: float, c3: float
) -> None:
    graph = layers(seed)
    deadline = float(graph.work.sum()) / 2.0
    asked = {"c2": c2, "c3": c3}
    two = chip_problem(graph, 4, deadline, islands=2, **asked)
    found = plan_graph(two, how=LITTLE)
    dc.require_valid(two, found.schedule)
    assert found.bound <= found.objective * (1.0 + 1e-9)
    if c3 == 0.0:  # a chip more draws no more
        one = plan_graph(chip_problem(graph, 4, deadline, **asked), how=LITTLE)
        own = plan_graph(chip_problem(graph, 4, deadline, chip_wide=False, **asked), how=LITTLE)
        assert own.bound <= found.objective <= one.objective * (1.0 + 1e-9)


def test_an_island_may_slow_down_while_another_hurries() -> None:
    """A long chain on one core, short tasks before one long task on another: own clocks pay.

    Two tasks side by side, 4 and 1 cycles, each on its island: by the deadline 4 both fill it, at
    clocks 1 and 1/4, and need 4 + 1/16 joules. One clock: 1 cycle with two cores and 3 with one,
    (2^(1/3) + 3)^3 / 16.
    """
    names = np.array(["long", "short"], dtype=object)
    graph = TaskGraph("two", names, np.array([4.0, 1.0]), Edges())
    found = plan_graph(chip_problem(graph, 2, 4.0, islands=2), how=LITTLE)
    assert found.objective == pytest.approx(4.0 + 1.0 / 16.0, rel=1e-5)
    one = plan_graph(chip_problem(graph, 2, 4.0), how=LITTLE)
    assert one.objective == pytest.approx((2.0 ** (1 / 3) + 3.0) ** 3 / 16.0, rel=1e-6)


LEVELS = ClockTable(np.array([250.0, 500.0, 750.0, 1000.0]), np.ones(4), 1000.0, 1.0)


@pytest.mark.parametrize("clocks", [ClockRange(0.3, 1.0), LEVELS])
def test_islands_keep_the_clocks_they_have(clocks: Clocks) -> None:
    graph = layers(3)
    problem = chip_problem(graph, 4, float(graph.work.sum()), islands=2, clocks=clocks)
    found = plan_graph(problem, how=LITTLE)
    dc.require_valid(problem, found.schedule)
    assert found.schedule.segments.core.max() <= 1.0


def test_islands_from_a_catalogue_policy() -> None:
    problem = chip_problem(layers(1), 6, 200.0, islands=3)
    schedule = dc.plan(problem, "graph:effort=0.02")
    dc.require_valid(problem, schedule)
    assert schedule.outcomes.counts()["done"] == 24


def unequal(sizes: list[int], work: list[float], deadline_s: float, c3: float = 0.0) -> dc.Problem:
    """Tasks side by side on islands of these many cores."""
    names = np.array([f"t{i}" for i in range(len(work))], dtype=object)
    graph = TaskGraph("side by side", names, np.array(work), Edges())
    problem = chip_problem(graph, 2, deadline_s, islands=2, c3=c3)
    chips = tuple(("core", size) for size in sizes)
    server = ServerSpec("chip", chips, chip_wide=True, shared_w=c3)
    return replace(problem, platform=Platform.build(problem.platform.kinds, (server,)))


@pytest.mark.parametrize(
    ("sizes", "work", "c3", "reached_j"),
    [
        ([4, 4], [10.0, 1.0, 1.0], 0.0, 10.02),
        ([4, 4], [10.0, 1.0, 1.0, 1.0], 0.0, 10.03),
        ([4, 4], [10.0, 10.0, 1.0, 1.0, 1.0], 0.0, 20.03),
        ([1, 1, 6], [1.0] * 2, 10.0, 11.0521),
        ([1, 7], [1.0] * 4, 10.0, 13.9248),
        ([7, 1], [1.0] * 4, 10.0, 13.9248),
    ],
)
def test_all_islands_are_of_use_however_few_the_tasks(
    sizes: list[int], work: list[float], c3: float, reached_j: float
) -> None:
    """Valid plans by hand: alike tasks share an island; with c3, as many as one has cores.

    Without c3 by 10 s, work w alone at clock w / 10 needs w³ / 100 J. With c3 = 10 W by 100 s, n
    tasks of one cycle share an island at f = (c3 / 2 n)^(1/3): n f² + c3 / f.
    """
    problem = unequal(sizes, work, 100.0 if c3 else 10.0, c3)
    found = plan_graph(problem, how=LITTLE)
    dc.require_valid(problem, found.schedule)
    assert found.bound <= reached_j * (1.0 + 1e-4)
    assert found.objective == pytest.approx(reached_j, rel=1e-4)


@given(
    random_graphs(most=7),
    st.lists(st.integers(1, 4), min_size=2, max_size=3),
    st.sampled_from([0.0, 0.5, 10.0]),
)
@settings(max_examples=30)
def test_no_island_plan_is_below_the_bound_or_above_one_island(graph, sizes, c3) -> None:
    """The largest island alone is a chip of so many cores; the others may only help."""
    problem = unequal(sizes, [1.0], graph.total_work, c3)
    alone = chip_problem(named(graph), max(sizes), graph.total_work, c3=c3)
    problem = replace(alone, platform=problem.platform)
    found = plan_graph(problem, how=LITTLE)
    dc.require_valid(problem, found.schedule)
    reached = min(found.objective, plan_graph(alone, how=LITTLE).objective)
    assert found.bound <= reached * (1.0 + 1e-6)
    assert found.objective <= reached * (1.0 + 1e-6)


def test_islands_with_enumerated_clocks_have_levels_of_their_own() -> None:
    """9, 9 | 3, 3 cycles by 9 s: one island at clock 1, one at its slowest .4: 18 + 6 * .16 J."""
    names = np.array(list("abcd"), dtype=object)
    graph = TaskGraph("four", names, np.array([9.0, 9.0, 3.0, 3.0]), Edges())
    levels = ClockTable(np.array([400.0, 700.0, 1000.0]), np.ones(3), 1000.0, 1.0)
    problem = chip_problem(graph, 4, 9.0, islands=2, clocks=levels)
    found = plan_graph(problem, how=LITTLE)
    dc.require_valid(problem, found.schedule)
    assert found.objective == pytest.approx(18.96, rel=1e-6)


@pytest.mark.parametrize(("cores", "islands"), [(7, 2), (4, 0), (2, 3)])
def test_islands_that_do_not_share_the_cores_evenly_are_refused(cores: int, islands: int) -> None:
    with pytest.raises(InvalidInput, match=f"must divide the {cores} cores"):
        chip_problem(layers(1), cores, 10.0, islands=islands)
