"""Near-barriers, whole tasks and joins: what the bounds know beyond work and paths."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.graphs import near_barriers
from hypothesis import given, settings
from hypothesis import strategies as st

from downclock.planners.chip.bounds import local_bound, weighted_bound
from downclock.planners.chip.clocks import ChipPower, weighted_makespan
from downclock.planners.chip.length import least_length
from downclock.planners.chip.level_program import LevelProgram
from downclock.planners.chip.local import local_clocks
from downclock.planners.chip.local_search import search_local
from downclock.planners.chip.model import WorkGraph
from downclock.planners.chip.search import SearchEffort, search
from downclock.planners.chip.stages import stages_of
from downclock.workloads.wfformat import read_wfformat
from tests.planners.chip.graphs_for_tests import graph_of, random_graphs

QUICK = SearchEffort(effort=0.1, restarts=1)


def two_forks(work: float, beside: float) -> WorkGraph:
    """Four tasks, a join of 1, four tasks, an end of 1; task 10 runs beside the join, if at all."""
    first, second = range(4), range(5, 9)
    edges = [(i, 4) for i in first] + [(4, i) for i in second] + [(i, 9) for i in second]
    return graph_of([work] * 4 + [1] + [work] * 4 + [1, beside], *edges, (0, 10), (10, 9))


def reached(graph: WorkGraph, cores: int) -> float:
    return weighted_makespan(search(graph, cores, how=QUICK).parallelism(graph))


def test_a_join_cuts_a_graph_although_a_task_runs_beside_it() -> None:
    stages = stages_of(two_forks(2, 1))
    assert [p for p in stages.pivot if p in (4, 9)] == [4, 9]
    at = list(stages.pivot).index(4)
    join = 2 * at + 1
    assert np.all(stages.last[1:4] < join)
    assert np.all(stages.first[5:9] > join)
    assert stages.first[10] < join < stages.last[10]
    task, stage = stages.cells()
    assert np.all(np.diff(stage) >= 0)
    assert np.all((stages.first[task] <= stage) & (stage <= stages.last[task]))


def test_a_graph_without_barriers_is_one_stage() -> None:
    assert stages_of(graph_of([2, 2, 2, 2], (0, 1), (2, 3))).count == 1
    assert stages_of(graph_of([])).count == 1


def test_stages_make_the_bound_of_a_near_barrier_tight() -> None:
    """All four, the join with the task beside it, all four, the end: 4 x 4^(1/3) + 2^(1/3) + 1."""
    graph = two_forks(2, 1)
    assert weighted_bound(graph, 4) == pytest.approx(reached(graph, 4), rel=1e-6)
    assert reached(graph, 4) == pytest.approx(4.0 * 4.0 ** (1 / 3) + 2.0 ** (1 / 3) + 1.0)


@pytest.mark.parametrize("length", [2.5, 3.0])
@pytest.mark.parametrize(("count", "cores", "levels"), [(12, 8, (8, 4)), (8, 3, (3, 3, 2))])
def test_tasks_of_one_length_fill_cores_by_whole_numbers(length, count, cores, levels) -> None:
    """Twelve on eight cores: eight, then four; fluid work would be cheaper and does not exist."""
    graph = graph_of([length] * count)
    assert weighted_bound(graph, cores) == pytest.approx(
        length * sum(m ** (1 / 3) for m in levels), rel=1e-6
    )
    torn = replace(graph, pieces=True)
    assert weighted_bound(torn, cores) < weighted_bound(graph, cores) * (1.0 - 1e-3)


@settings(max_examples=40)
@given(
    random_graphs(most=14, whole=False),
    st.integers(2, 5),
    st.sampled_from([0.0, 0.9, 1.0]),
    st.booleans(),
)
def test_no_schedule_is_below_the_bound(graph, cores, alike, whole) -> None:
    """Lengths from quite different to all the same."""
    work = alike * 5.0 + (1.0 - alike) * graph.work
    graph = replace(graph, work=np.ceil(work) if whole else work)
    assert weighted_bound(graph, cores) <= reached(graph, cores) * (1.0 + 1e-7)


def test_large_graphs_drop_paths_and_keep_barriers() -> None:
    """Two forks of 4,000 tasks of 1 and 2: 500 and 1,000 full cycles on 8 cores, joins alone."""
    middle = [range(1, 4001), range(4002, 8002)]
    edges = [(0, i) for i in middle[0]] + [(i, 4001) for i in middle[0]]
    edges += [(4001, i) for i in middle[1]] + [(i, 8002) for i in middle[1]]
    graph = graph_of([1] + [1] * 4000 + [3] + [2] * 4000 + [1], *edges)
    assert weighted_bound(graph, 8) == pytest.approx(2.0 * 1500 + 5.0, rel=1e-6)
    assert local_bound(graph, 8, 1505.0, ChipPower()) == pytest.approx(
        (8.0 ** (1 / 3) * 1500 + 5.0) ** 3 / 1505.0**2, rel=0.02
    )


def test_the_least_length_adds_up_over_joins() -> None:
    """Twenty times seven tasks of 10 and a join of 1 on four cores: 20 + 1 each, not 17.5 + 1."""
    edges, work, join = [], [1.0], 0
    for _ in range(20):
        middle = range(len(work), len(work) + 7)
        work += [10.0] * 7 + [1.0]
        edges += [(join, i) for i in middle] + [(i, len(work) - 1) for i in middle]
        join = len(work) - 1
    graph = graph_of(work, *edges)
    assert least_length(graph, 4, 1.0) == 1.0 + 20 * 21.0
    assert least_length(replace(graph, pieces=True), 4) == pytest.approx(1.0 + 20 * 18.5, rel=1e-5)


def test_a_bound_repeats() -> None:
    graph = near_barriers(4)
    first, again = (weighted_bound(graph, 6) for _ in range(2))
    assert first == again


@pytest.mark.parametrize(("seed", "cores"), [(201, 3), (202, 8), (203, 12)])
def test_generated_near_barriers_are_nearly_proven(seed: int, cores: int) -> None:
    """Without stages the gap of such graphs is up to 18 % (docs/background/task-graphs.md)."""
    graph = near_barriers(seed)
    gap = (reached(graph, cores) / weighted_bound(graph, cores)) ** 3 - 1.0
    assert 0.0 <= gap + 1e-6 < 0.05
    deadline = graph.total_work
    quick = local_clocks(graph, None, deadline, ChipPower(), cores=cores, quick=True).bound
    _, found = search_local(graph, cores, deadline, ChipPower(), SearchEffort(effort=0.02))
    assert quick <= local_bound(graph, cores, deadline, ChipPower()) <= found.energy


@pytest.mark.slow
def test_workflows_are_proven_within_a_tenth(shared_data: Path) -> None:
    """On 8 cores; five of 110 cases keep more (docs/background/task-graphs.md)."""
    for path in sorted((shared_data / "wfformat").glob("*.json")):
        read = read_wfformat(path)
        graph = WorkGraph.of(read.work, read.edges)
        placed = search(graph, 8)
        value = weighted_makespan(placed.parallelism(graph))
        gap = (value / weighted_bound(graph, 8)) ** 3 - 1.0
        assert -1e-6 <= gap < 0.1


def test_the_program_counts_cycles() -> None:
    """What it finds for four tasks of 4 on three cores: 4 cycles with three, 4 with one."""
    program = LevelProgram.of(graph_of([4, 4, 4, 4]), 3)
    value, omega = program.solve(ChipPower().weight(3)[1:])
    assert value == pytest.approx(4.0 * (3.0 ** (1 / 3) + 1.0), rel=1e-6)
    assert omega == pytest.approx([0.0, 4.0, 0.0, 4.0])
