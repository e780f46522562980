"""Voltage islands: between one clock for the chip and one for each core."""

from __future__ import annotations

import numpy as np
import pytest

import downclock as dc
from downclock.planners.chip.plan import plan_graph
from downclock.planners.chip.search import SearchEffort
from downclock.power.points import ClockRange, Clocks, ClockTable
from downclock.problem.graph import Edges
from downclock.workloads.chip import chip_problem
from downclock.workloads.task_graph import TaskGraph

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
