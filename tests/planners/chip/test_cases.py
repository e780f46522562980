"""Problems that once broke the planner, made small; and the files they came from, where present."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from benchmarks.graphs import layered
from hypothesis import given
from hypothesis import strategies as st

from downclock.planners.bounds import Bounds
from downclock.planners.catalog import policy
from downclock.planners.chip.lists import list_schedule
from downclock.planners.chip.plan import plan_graph
from downclock.planners.chip.search import SearchEffort
from downclock.planners.chip.segments import chip_rows
from downclock.power.points import ClockRange, ClockTable
from downclock.problem.files.files import load_problem
from downclock.problem.files.read_problem import read_problem
from downclock.problem.platform import Platform
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.schedule import ON, WAKING
from downclock.schedule.verify.verify import require_valid
from downclock.workloads.chip import chip_problem
from tests.planners.chip.graphs_for_tests import EXAMPLE1, graph_of, named

QUICK = SearchEffort(effort=0.02, restarts=1)


@pytest.fixture
def cases(shared_data: Path) -> Path:
    folder = shared_data.parent / "cases"
    if not folder.is_dir():
        pytest.skip("the folder of cases is absent beside the public data")
    return folder


def asleep(problem: Problem, wake_s: float, wake_j: float) -> Problem:
    """The same problem with a server that has to be woken."""
    platform = problem.platform
    spec = dataclasses.replace(platform.specs[0], wake_s=wake_s, wake_j=wake_j)
    return dataclasses.replace(problem, platform=Platform.build(platform.kinds, (spec,)))


def test_a_sleeping_server_wakes_before_the_first_task() -> None:
    problem = asleep(chip_problem(named(EXAMPLE1), 3, 130.0), 30.0, 7.0)
    found = plan_graph(problem, "hlf")
    require_valid(problem, found.schedule)
    spans = found.schedule.spans
    assert list(spans.state) == [WAKING, ON]
    assert list(spans.start_s) == [0.0, 30.0]
    assert found.objective == pytest.approx(36.4671 + 7.0, abs=5e-5)
    assert Bounds(problem).below(found.schedule) == pytest.approx(found.bound)


def test_a_deadline_within_the_wake_is_refused_with_a_reason() -> None:
    problem = asleep(chip_problem(named(EXAMPLE1), 3, 20.0), 30.0, 0.0)
    found = plan_graph(problem, "hlf")
    assert found.status == "infeasible"
    require_valid(problem, found.schedule)


def test_one_clock_is_never_below_the_least_clock() -> None:
    """Example 1 takes 60 cycles: by 1000 s the clock would be 0.06."""
    problem = chip_problem(named(EXAMPLE1), 3, 1000.0, clocks=ClockRange(0.3, 1.0))
    for clocks in ("single", "single-aware"):
        found = plan_graph(problem, "hlf", clocks=clocks)
        require_valid(problem, found.schedule)
        assert np.all(found.schedule.segments.core == 0.3)


def test_one_clock_of_a_table_is_one_of_its_levels() -> None:
    """60 cycles by 100 s need 0.6; 5 W of static power make 1.0 cheaper than 0.8."""
    table = ClockTable(np.array([500.0, 800.0, 1000.0]), np.ones(3), 1000.0, 1.0)
    problem = chip_problem(named(EXAMPLE1), 3, 100.0, c3=5.0, clocks=table)
    unaware = plan_graph(problem, "hlf", clocks="single")
    aware = plan_graph(problem, "hlf", clocks="single-aware")
    for found, clock in ((unaware, 0.8), (aware, 1.0)):
        require_valid(problem, found.schedule)
        assert np.all(found.schedule.segments.core == clock)
    assert aware.objective < unaware.objective


@given(
    st.lists(
        st.sampled_from([1e-7, 1e-3, 1.0, 4.0, 103.2, 1e4, 1e8, 1e10]), min_size=3, max_size=9
    ),
    st.integers(1, 4),
    st.sampled_from(["lpt", "hlf", "heft", "search"]),
    st.booleans(),
    st.sampled_from(
        [ClockRange(1e-4, 1e4), ClockTable(np.array([200.0, 1000.0]), np.ones(2), 1000.0, 1.0)]
    ),
)
def test_task_lengths_of_any_size_make_a_valid_plan(work, cores, rule, chip_wide, clocks) -> None:
    fork = [(0, i) for i in range(1, len(work) - 1)]
    join = [(i, len(work) - 1) for i in range(1, len(work) - 1)]
    graph = graph_of(work, *fork, *join)
    problem = chip_problem(
        named(graph), cores, 1.1 * graph.total_work, chip_wide=chip_wide, clocks=clocks
    )
    found = plan_graph(problem, rule, how=QUICK, bound=False)
    require_valid(problem, found.schedule)
    assert found.objective == pytest.approx(account(problem, found.schedule).total_j)


def test_a_task_too_short_for_the_clock_still_runs() -> None:
    """After 1e10 s a double counts in steps of 2 microseconds; a task of 0.1 is one step long."""
    graph = graph_of([1e10, 1e-7, 1e10], (0, 1), (1, 2))
    placed = list_schedule(graph, 1, "hlf")
    omega = placed.parallelism(graph)
    rows = chip_rows(graph, placed, omega[:, None], np.ones((2, 1)))
    assert list(rows.task) == [0, 1, 2]
    assert list(rows.share) == [1.0, 1.0, 1.0]
    assert np.all(rows.end_s > rows.start_s)


@pytest.mark.parametrize(
    ("file", "spec"),
    [
        ("graph-wake.json", "graph"),
        ("graph-single-clock.json", "graph:clocks=single"),
        ("graph-work.json", "graph:rule=lpt"),
        ("graph-work-large.json", "graph:rule=lpt"),
    ],
)
def test_the_files_that_broke_it_plan(file: str, spec: str, cases: Path) -> None:
    problem = read_problem(cases / file)
    require_valid(problem, policy(spec).solved(problem).schedule)


@pytest.mark.parametrize("cluster", ["chips.toml", "chipl.toml"])
def test_clusters_that_broke_it_plan(cluster: str, cases: Path) -> None:
    problem = load_problem(cases / cluster, cases / "c1.csv")
    for spec in ("graph:effort=0.05", "graph:rule=lpt,clocks=single"):
        found = policy(spec).solved(problem)
        require_valid(problem, found.schedule)
        assert found.status != "infeasible"


@pytest.mark.parametrize("tasks", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "clocks", [ClockRange(0.05, 2.0), ClockTable(np.arange(1, 11) * 100.0, np.ones(10), 1e3, 1.0)]
)
def test_a_clock_per_core_at_any_size(tasks: int, clocks: ClockRange | ClockTable) -> None:
    """It took 22 s, 139 s, and more than 3.8 GB without an answer; now a first plan at once."""
    graph = layered(tasks, 20, 3, 1)
    problem = chip_problem(named(graph), 16, graph.total_work / 8.0, chip_wide=False, clocks=clocks)
    found = plan_graph(problem, how=SearchEffort(effort=0.0))
    require_valid(problem, found.schedule)
    assert found.status != "infeasible"
    assert found.gap < 0.05


def test_a_tight_deadline_takes_the_short_placement() -> None:
    """3, 3, 2, 2, 2 on two cores: every list rule needs 7 cycles, and 6 are enough."""
    graph = graph_of([3, 3, 2, 2, 2])
    for clocks in (ClockRange(0.5, 1.0), ClockTable(np.array([500.0, 1e3]), np.ones(2), 1e3, 1.0)):
        problem = chip_problem(named(graph), 2, 6.0, clocks=clocks)
        assert plan_graph(problem, "lpt").status == "infeasible"
        found = plan_graph(problem, how=QUICK)
        require_valid(problem, found.schedule)
        assert found.schedule.makespan_s == pytest.approx(6.0)


def test_clocks_far_below_the_default_are_planned_without_a_warning() -> None:
    """25 cycles on the longest path by 1e12 s: no price of time moves clocks that low."""
    graph = graph_of([7, 12, 3, 9, 4], (0, 2), (1, 2), (1, 3), (2, 4), (3, 4))
    clocks = ClockRange(3.5e-15, 1.5874010519682015e-10)
    problem = chip_problem(
        named(graph), 2, 1e12, c2=86400.0, c3=1e-30, chip_wide=False, clocks=clocks
    )
    found = plan_graph(problem, how=SearchEffort(effort=0.01))
    require_valid(problem, found.schedule)
    assert found.status != "infeasible"
