"""plan_graph: schedules that verify, energies that the accountant confirms, and proofs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downclock.errors import InvalidInput
from downclock.planners.chip.clocks import ChipPower, global_clocks
from downclock.planners.chip.lists import list_schedule
from downclock.planners.chip.plan import plan_graph
from downclock.planners.chip.search import SearchEffort
from downclock.power.points import ClockRange, ClockTable
from downclock.schedule.account.account import account
from downclock.schedule.verify.verify import require_valid
from downclock.workloads.chip import ANY_CLOCK, chip_problem
from downclock.workloads.stg import read_stg
from downclock.workloads.wfformat import read_wfformat
from tests.planners.chip.graphs_for_tests import EXAMPLE1, named, random_graphs

QUICK = SearchEffort(effort=0.02, restarts=1)
LEVELS = ClockTable(np.array([200.0, 400.0, 700.0, 1000.0]), np.ones(4), 1000.0, 1.0)


def test_example_1_planned_verified_and_billed() -> None:
    """gerards Example 1: 36.467 J; one clock 39.600 J."""
    problem = chip_problem(named(EXAMPLE1), 3, 100.0)
    best = plan_graph(problem, "hlf")
    require_valid(problem, best.schedule)
    assert best.objective == pytest.approx(36.4671, abs=5e-5)
    assert best.schedule.makespan_s == pytest.approx(100.0)
    single = plan_graph(problem, "hlf", clocks="single")
    assert single.objective == pytest.approx(39.6)


@settings(max_examples=30)
@given(
    random_graphs(),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([ANY_CLOCK, ClockRange(0.3, 1.0), LEVELS]),
    st.sampled_from([(0.0, 0.0), (0.2, 0.5)]),
    st.sampled_from(["lpt", "heft", "search"]),
)
def test_every_plan_is_valid_and_not_below_its_bound(
    graph, cores, chip_wide, clocks, static, rule
) -> None:
    c2, c3 = static
    deadline = 2.0 * graph.total_work
    problem = chip_problem(
        named(graph), cores, deadline, c2=c2, c3=c3, chip_wide=chip_wide, clocks=clocks
    )
    found = plan_graph(problem, rule, how=QUICK)
    require_valid(problem, found.schedule)
    bill = account(problem, found.schedule)
    assert found.objective == pytest.approx(bill.total_j)
    assert found.bound <= found.objective
    assert found.status in ("optimal", "feasible")
    assert found.gap >= 0.0


@settings(max_examples=15)
@given(random_graphs(), st.integers(1, 4), st.floats(0.0, 1.0))
def test_the_accountant_confirms_the_formula(graph, cores, c3) -> None:
    power = ChipPower(c2=0.1, c3=c3)
    deadline = 1.5 * graph.total_work
    problem = chip_problem(named(graph), cores, deadline, c2=0.1, c3=c3)
    omega = list_schedule(graph, cores, "lpt").parallelism(graph)
    expected = global_clocks(omega, deadline, power).energy
    assert plan_graph(problem, "lpt", bound=False).objective == pytest.approx(expected, rel=1e-6)


def test_an_impossible_deadline_rejects_every_task() -> None:
    problem = chip_problem(named(EXAMPLE1), 3, 10.0, clocks=ClockRange(0.5, 1.0))
    found = plan_graph(problem, "hlf")
    assert found.status == "infeasible"
    require_valid(problem, found.schedule)
    assert "too short" in found.schedule.outcomes.reason[0]


def test_what_the_planner_cannot_do_is_said() -> None:
    problem = chip_problem(named(EXAMPLE1), 3, 100.0)
    with pytest.raises(InvalidInput, match="is not one of optimal, single"):
        plan_graph(problem, "hlf", clocks="fast")
    own = chip_problem(named(EXAMPLE1), 3, 100.0, chip_wide=False)
    with pytest.raises(InvalidInput, match="needs one clock for all"):
        plan_graph(own, "hlf", clocks="single")


def test_all_workflows_plan_and_verify(shared_data: Path) -> None:
    files = sorted((shared_data / "wfformat").glob("*.json"))
    assert len(files) == 10
    for path in files:
        graph = read_wfformat(path)
        problem = chip_problem(graph, 4, graph.total_work, c3=0.1)
        found = plan_graph(problem, how=QUICK)
        require_valid(problem, found.schedule)
        assert found.gap < 0.35


def test_sparse_is_proven_optimal(shared_data: Path) -> None:
    """121.0 and 30.25 J are the bounds W / M² (shared/specs/graphs.md section 5)."""
    graph = read_stg(shared_data / "stg" / "apps" / "sparse.stg")
    for cores, energy in ((4, 121.0), (8, 30.25)):
        found = plan_graph(chip_problem(graph, cores, graph.total_work))
        assert found.objective == pytest.approx(energy, rel=1e-6)
        assert found.status == "optimal"
