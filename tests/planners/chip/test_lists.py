"""List schedules: the rules themselves, against a plain twin, and against the paper."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from downclock.errors import InvalidInput
from downclock.planners.chip.clocks import makespan
from downclock.planners.chip.lists import by_most, greedy, list_schedule
from downclock.planners.chip.model import WorkGraph
from downclock.workloads.stg import read_stg
from tests.planners.chip.graphs_for_tests import (
    EXAMPLE1,
    assert_valid,
    graph_of,
    plain_greedy,
    random_graphs,
)


@given(random_graphs(), st.integers(1, 4), st.randoms())
def test_greedy_kernel_equals_its_plain_twin(graph, cores, random) -> None:
    queue = list(range(len(graph)))
    random.shuffle(queue)
    placed = greedy(graph, cores, np.array(queue))
    start, core = plain_greedy(graph, cores, queue)
    assert list(placed.start) == start
    assert list(placed.core) == core


@given(random_graphs(whole=False), st.integers(1, 4), st.sampled_from(["lpt", "hlf", "heft"]))
def test_every_rule_gives_a_valid_placement_that_conserves_work(graph, cores, rule) -> None:
    placed = list_schedule(graph, cores, rule)
    assert_valid(graph, placed.start, placed.core, cores)
    omega = placed.parallelism(graph)
    assert omega @ np.arange(cores + 1) == pytest.approx(graph.total_work, rel=1e-12, abs=1e-9)
    longest = max(graph.critical_path, graph.total_work / cores)
    assert makespan(omega) >= longest * (1.0 - 1e-12)


def test_example_1_has_the_parallelism_of_the_paper() -> None:
    """gerards section 3.3: 30, 10 and 20 cycles with 1, 2 and 3 active cores."""
    placed = list_schedule(EXAMPLE1, 3, "hlf")
    assert list(placed.parallelism(EXAMPLE1)) == [0.0, 30.0, 10.0, 20.0]


def test_lpt_prefers_long_tasks_and_breaks_ties_by_number() -> None:
    graph = graph_of([1, 5, 5, 3])
    placed = list_schedule(graph, 2, "lpt")
    assert list(placed.start) == [8.0, 0.0, 0.0, 5.0] or list(placed.start) == [5.0, 0.0, 0.0, 5.0]
    assert list(placed.core) == [1, 0, 1, 0]


def test_insertion_uses_a_gap_that_greedy_rules_leave() -> None:
    """Task 3 waits for 1; the short task 4 fits before it on the second core."""
    graph = graph_of([6, 2, 4, 5, 1], (1, 3), (0, 2))
    placed = list_schedule(graph, 2, "heft")
    assert placed.start[4] + 1.0 <= makespan(placed.parallelism(graph))
    assert_valid(graph, placed.start, placed.core, 2)


def test_tasks_without_work_take_no_core_and_no_time() -> None:
    graph = graph_of([4, 0, 3], (0, 1), (1, 2))
    placed = list_schedule(graph, 2, "lpt")
    assert list(placed.start) == [0.0, 4.0, 4.0]
    assert list(placed.core) == [0, -1, 0]


def test_unknown_rules_are_refused() -> None:
    with pytest.raises(InvalidInput, match="rule='best' is not one of lpt, hlf, heft"):
        list_schedule(EXAMPLE1, 2, "best")


def test_hlf_makespans_of_the_applications_equal_the_golden_file(shared_data: Path) -> None:
    golden = shared_data.parent / "expected" / "gerards-golden.json"
    if not golden.is_file():
        pytest.skip("golden numbers absent")
    known = json.loads(golden.read_text())["hlf_correct"]
    for name, by_cores in known.items():
        graph = read_stg(shared_data / "stg" / "apps" / f"{name}.stg")
        indexed = WorkGraph.of(graph.work, graph.edges)
        for cores, cell in by_cores.items():
            placed = greedy(indexed, int(cores), by_most(indexed.bottom_levels()))
            assert makespan(placed.parallelism(indexed)) == cell["S"]
