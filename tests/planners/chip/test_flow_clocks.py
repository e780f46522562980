"""Quick clocks per core: in time, near the optimum, and with a bound that holds."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.graphs import layered, near_barriers
from hypothesis import given, settings
from hypothesis import strategies as st

from downclock.planners.chip.clocks import ChipPower
from downclock.planners.chip.levels import local_levels
from downclock.planners.chip.lists import list_schedule
from downclock.planners.chip.local import local_clocks, ordered_graph
from downclock.planners.chip.local_search import search_local
from downclock.planners.chip.search import SearchEffort
from downclock.planners.chip.segments import ClockedRows, at_levels, core_rows
from tests.planners.chip.graphs_for_tests import EXAMPLE1, energy_of, graph_of, random_graphs


@settings(max_examples=40)
@given(
    random_graphs(),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([(0.0, np.inf), (0.2, 1.0)]),
    st.floats(1.0, 3.0),
)
def test_quick_clocks_end_in_time_and_enclose_the_optimum(graph, cores, c3, limits, slack) -> None:
    slowest, fastest = limits
    power = ChipPower(c3=c3, slowest=slowest, fastest=fastest)
    placed = list_schedule(graph, cores, "hlf")
    joint = ordered_graph(graph, placed)
    deadline = joint.critical_path * slack
    quick, exact = (
        local_clocks(graph, placed, deadline, power, quick=quick) for quick in (True, False)
    )
    end = quick.start + graph.work / quick.clock
    assert end.max() <= deadline * (1.0 + 1e-9)
    assert np.all(end[joint.before] <= quick.start[joint.succ] + 1e-9 * deadline)
    real = graph.work > 0.0
    assert np.all(quick.clock[real] >= slowest * (1.0 - 1e-9))
    assert np.all(quick.clock[real] <= fastest * (1.0 + 1e-9))
    assert quick.bound <= exact.energy * (1.0 + 1e-9)
    assert exact.energy * (1.0 - 1e-6) <= quick.energy <= exact.energy * 1.1


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_thousand_tasks_come_within_half_a_percent(seed: int) -> None:
    graph = layered(1000, 20, 5, seed)
    placed = list_schedule(graph, 16, "hlf")
    quick, exact = (
        local_clocks(graph, placed, graph.total_work, ChipPower(), quick=quick)
        for quick in (True, False)
    )
    assert quick.energy <= 1.005 * exact.energy
    assert quick.bound >= 0.99 * exact.energy


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_ways_past_stages_carry_the_bound_of_near_barriers(seed: int) -> None:
    graph = near_barriers(seed)
    deadline, power = graph.total_work, ChipPower()
    quick = local_clocks(graph, None, deadline, power, cores=6.0, quick=True).bound
    _, found = search_local(graph, 6, deadline, power, SearchEffort(effort=0.05))
    busy_only = graph.total_work**3 / (6.0 * deadline) ** 2
    assert busy_only * (1.0 - 1e-6) <= quick <= found.energy
    assert found.energy <= 1.06 * quick


def test_a_fork_and_join_wider_than_the_chip_is_nearly_tight() -> None:
    """1, eight of 2, 1 on four cores by 10 s: a chain of 1, 4 (four cores at work) and 1."""
    middle = range(1, 9)
    graph = graph_of([1] + [2] * 8 + [1], *[(0, i) for i in middle], *[(i, 9) for i in middle])
    least = local_clocks(graph, None, 10.0, ChipPower(), cores=4.0, quick=True).bound
    best = (2.0 + 4.0 * 4.0 ** (1 / 3)) ** 3 / 100.0
    assert 0.99 * best <= least <= best * (1.0 + 1e-9)


def test_neighbouring_levels_keep_the_run_times() -> None:
    power = ChipPower(c3=0.1, levels=(0.2, 0.5, 1.0))
    placed, deadline = list_schedule(EXAMPLE1, 3, "hlf"), 100.0
    free = local_clocks(EXAMPLE1, placed, deadline, power)
    mixed = at_levels(core_rows(EXAMPLE1, placed, free.start, free.clock), np.array(power.levels))
    run_s = np.bincount(mixed.task, mixed.end_s - mixed.start_s)
    assert run_s == pytest.approx(EXAMPLE1.work / free.clock)
    assert mixed.end_s.max() <= deadline * (1.0 + 1e-9)
    solved = local_levels(EXAMPLE1, placed, deadline, power)
    least, reached = (energy_of(EXAMPLE1, rows, power) for rows in (solved, mixed))
    assert least * (1.0 - 1e-9) <= reached <= 1.1 * least
    one = at_levels(core_rows(EXAMPLE1, placed, placed.start, np.ones(6)), np.ones(1))
    assert np.all(one.clock == 1.0)


def test_the_search_betters_its_first_plan_and_repeats() -> None:
    graph, how = layered(300, 10, 3, 5), SearchEffort(effort=0.1)
    deadline = graph.total_work
    found = search_local(graph, 8, deadline, ChipPower(), how)[1]
    again = search_local(graph, 8, deadline, ChipPower(), how)[1]
    placed = list_schedule(graph, 8, "hlf")
    first = local_clocks(graph, placed, deadline, ChipPower(), quick=True)
    assert found.energy == again.energy < first.energy


def test_rows_at_a_level_stay_as_they_are() -> None:
    """No rest of a rounding error in front: 0.1 + 0.2 - 0.2 is not 0.1."""
    rng = np.random.default_rng(1)
    start, task = rng.uniform(1.0, 10.0, 1000), np.arange(1000)
    end = start + rng.uniform(0.1, 5.0, 1000)
    levels = np.array([0.3, 0.5, 1.0])
    rows = ClockedRows(task, task, start, end, rng.choice(levels, 1000), np.ones(1000))
    found = at_levels(rows, levels)
    assert np.array_equal(found.task, task)
    assert np.array_equal(found.start_s, start)
    assert np.array_equal(found.clock, rows.clock)
