"""Clocks per core: optimal, in time, and proven by their own flow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downclock import require_valid
from downclock.errors import InvalidInput
from downclock.planners.chip.bounds import local_bound
from downclock.planners.chip.clocks import ChipPower, global_clocks
from downclock.planners.chip.levels import local_levels, one_level_each
from downclock.planners.chip.lists import list_schedule
from downclock.planners.chip.local import local_clocks, ordered_graph
from downclock.planners.chip.local_search import search_local
from downclock.planners.chip.model import WorkGraph
from downclock.planners.chip.plan import plan_graph
from downclock.planners.chip.search import SearchEffort
from downclock.planners.result import Result
from downclock.power.points import ClockTable
from downclock.workloads.chip import chip_problem
from downclock.workloads.stg import read_stg
from tests.planners.chip.graphs_for_tests import EXAMPLE1, energy_of, graph_of, named, random_graphs


def test_a_chain_runs_at_one_clock() -> None:
    graph = graph_of([2, 3, 5], (0, 1), (1, 2))
    found = local_clocks(graph, None, 20.0, ChipPower())
    assert found.clock == pytest.approx([0.5, 0.5, 0.5], rel=1e-4)
    assert found.energy == pytest.approx(10.0 * 0.25, rel=1e-7)


def test_a_fork_conserves_power() -> None:
    """Two branches of cubed clocks add up to the trunk's: f0³ = f1³ + f2³."""
    graph = graph_of([4, 3, 5], (0, 1), (0, 2))
    found = local_clocks(graph, None, 10.0, ChipPower())
    f = found.clock
    assert f[0] ** 3 == pytest.approx(f[1] ** 3 + f[2] ** 3, rel=1e-3)
    assert 3.0 / f[1] == pytest.approx(5.0 / f[2], rel=1e-3)


@settings(max_examples=40)
@given(
    random_graphs(),
    st.integers(1, 4),
    st.floats(0.0, 1.0),
    st.floats(1.8, 3.5),
    st.floats(0.5, 3.0),
)
def test_clocks_meet_the_deadline_and_prove_themselves(graph, cores, c3, alpha, slack) -> None:
    power = ChipPower(c3=c3, alpha=alpha)
    placed = list_schedule(graph, cores, "hlf")
    deadline = graph.total_work * slack
    found = local_clocks(graph, placed, deadline, power)
    joint = ordered_graph(graph, placed)
    end = found.start + graph.work / found.clock
    assert end.max() <= deadline * (1.0 + 1e-9)
    assert np.all(end[joint.before] <= found.start[joint.succ] + 1e-9 * deadline)
    assert -1e-9 <= found.residual < 1e-6
    assert found.energy == pytest.approx(graph.work @ power.per_cycle(found.clock))
    assert local_bound(graph, cores, deadline, power) <= found.energy * (1.0 + 1e-9)
    if c3 == 0.0:
        chip = global_clocks(placed.parallelism(graph), deadline, power).energy
        assert found.energy <= chip * (1.0 + 1e-6)


@settings(max_examples=25)
@given(random_graphs(most=8), st.integers(1, 3), st.floats(1.05, 2.5))
def test_many_levels_come_close_to_free_clocks(graph, cores, slack) -> None:
    placed = list_schedule(graph, cores, "hlf")
    deadline = ordered_graph(graph, placed).critical_path * slack
    levels = tuple(np.linspace(0.2, 1.0, 60).tolist())
    free = local_clocks(graph, placed, deadline, ChipPower(slowest=0.2, fastest=1.0))
    mixed = local_levels(graph, placed, deadline, ChipPower(levels=levels))
    joules = energy_of(graph, mixed, ChipPower())
    assert joules >= free.energy * (1.0 - 1e-6)
    assert joules <= free.energy * 1.002
    assert mixed.end_s.max() <= deadline * (1.0 + 1e-9)
    assert np.bincount(mixed.task, mixed.share, len(graph))[graph.work > 0.0] == pytest.approx(1.0)


def test_a_fork_and_join_wider_than_the_chip_has_a_tight_bound() -> None:
    """1, eight of 2, 1 on four cores: by symmetry a chain of 1, 4 (four cores at work) and 1."""
    middle = range(1, 9)
    graph = graph_of([1] + [2] * 8 + [1], *[(0, i) for i in middle], *[(i, 9) for i in middle])
    placed = list_schedule(graph, 4, "hlf")
    reached = local_clocks(graph, placed, 10.0, ChipPower()).energy
    assert reached == pytest.approx((2.0 + 4.0 * 4.0 ** (1 / 3)) ** 3 / 100.0, rel=1e-5)
    assert local_bound(graph, 4, 10.0, ChipPower()) == pytest.approx(reached, rel=1e-5)


def test_redundant_edges_are_dropped_and_change_nothing() -> None:
    graph = graph_of([2, 3, 4, 1], (0, 1), (1, 2), (0, 2), (2, 3), (0, 3))
    slim = graph.reduced()
    assert list(zip(slim.before, slim.succ, strict=True)) == [(0, 1), (1, 2), (2, 3)]
    assert np.array_equal(slim.bottom_levels(), graph.bottom_levels())


def test_too_short_deadlines_are_refused() -> None:
    with pytest.raises(InvalidInput, match="the fastest clock needs 60"):
        local_clocks(EXAMPLE1, None, 59.0, ChipPower(fastest=1.0))
    placed = list_schedule(EXAMPLE1, 3, "hlf")
    with pytest.raises(InvalidInput, match="the fastest clock needs 60"):
        local_levels(EXAMPLE1, placed, 59.0, ChipPower(levels=(0.5, 1.0)))


def test_search_is_repeatable_and_not_worse_than_levels() -> None:
    deadline = EXAMPLE1.total_work
    how = SearchEffort(effort=0.2, seed=3)
    first = search_local(EXAMPLE1, 2, deadline, ChipPower(), how)[1]
    again = search_local(EXAMPLE1, 2, deadline, ChipPower(), how)[1]
    assert first.energy == again.energy
    placed = list_schedule(EXAMPLE1, 2, "hlf")
    assert first.energy <= local_clocks(EXAMPLE1, placed, deadline, ChipPower()).energy
    assert first.energy >= local_bound(EXAMPLE1, 2, deadline, ChipPower()) * (1 - 1e-9)


def test_robot_on_twelve_cores_is_at_most_66_joules(shared_data: Path) -> None:
    """Weighted makespan schedules reach 66.1 (shared/specs/graphs.md section 5)."""
    graph = read_stg(shared_data / "stg" / "apps" / "robot.stg")
    indexed = WorkGraph.of(graph.work, graph.edges)
    how = SearchEffort(effort=0.0)
    _, found = search_local(indexed, 12, indexed.total_work, ChipPower(), how)
    assert found.energy <= 66.1
    assert found.residual < 1e-6


def per_core_and_chip_wide(
    graph: WorkGraph, cores: int, deadline: float, **asked: Any
) -> tuple[Result, Result]:
    """The answers with a clock for each core and with one for all."""
    own = chip_problem(named(graph), cores, deadline, chip_wide=False, **asked)
    one = chip_problem(named(graph), cores, deadline, **asked)
    how = SearchEffort(effort=0.05)
    found = plan_graph(own, how=how)
    require_valid(own, found.schedule)
    return found, plan_graph(one, how=how)


def test_a_clock_per_core_finds_the_order_that_one_clock_needs() -> None:
    """2 then 1, 4 and 5 cycles on two cores by 6 s: {2, 4} and {1, 5} would wait; {2, 1, ...}.

    All cores at clock 1 from 0 to 6 need 12 J, and 12 cycles on two cores by 6 s never less.
    """
    graph = graph_of([2, 1, 4, 5], (0, 1))
    own, one = per_core_and_chip_wide(graph, 2, 6.0)
    assert one.objective == pytest.approx(12.0)
    assert own.objective == pytest.approx(12.0, rel=1e-6)


@settings(max_examples=25)
@given(random_graphs(), st.integers(2, 4), st.booleans())
def test_a_clock_per_core_never_needs_more_than_one_clock(graph, cores, listed) -> None:
    levels = ClockTable(np.array([250.0, 500.0, 1000.0]), np.ones(3), 1000.0, 1.0)
    asked = {"clocks": levels} if listed else {}
    own, one = per_core_and_chip_wide(graph, cores, graph.total_work, **asked)
    assert own.objective <= one.objective * (1.0 + 1e-6)
    assert own.bound <= own.objective * (1.0 + 1e-9)


@settings(max_examples=25)
@given(random_graphs(most=6), st.integers(2, 3), st.floats(1.0, 3.0))
def test_locked_levels_are_one_a_task(graph, cores, slack) -> None:
    levels = ClockTable(np.array([400.0, 700.0, 1000.0]), np.ones(3), 1000.0, 1.0)
    deadline = graph.total_work * slack / cores
    problem = chip_problem(named(graph), cores, deadline, chip_wide=False, clocks=levels)
    kind = replace(problem.platform.kinds[0], clock="locked")
    problem = replace(problem, platform=replace(problem.platform, kinds=(kind,)))
    found = plan_graph(problem, how=SearchEffort(effort=0.05))
    if found.status != "infeasible":
        require_valid(problem, found.schedule)
        assert found.bound <= found.objective * (1.0 + 1e-9)
        assert np.bincount(found.schedule.segments.task).max() == 1


def test_locked_levels_fill_the_time_they_have() -> None:
    """3 then 2 cycles beside 4 by 9 s at .4, .7 or 1: 3 at .7 (4.3 s), 2 at .7 or .4, 4 at .7.

    3 / .4 + 2 / 1 = 9.5 s is too long, 3 / .7 + 2 / .7 = 7.1, 3 / .7 + 2 / .4 = 9.3: so all run
    at .7, 9 * .49 J.
    """
    graph = graph_of([3, 4, 2], (0, 2))
    levels = ChipPower(levels=(0.4, 0.7, 1.0))
    placed = list_schedule(graph, 2, "hlf")
    free = local_clocks(graph, placed, 9.0, levels)
    rows = one_level_each(graph, placed, 9.0, levels, free.clock)
    assert energy_of(graph, rows, levels) == pytest.approx(9.0 * 0.49)
