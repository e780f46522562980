"""Barriers: which tasks lie before, after and beside them, and the stages between."""

from __future__ import annotations

import numpy as np
from benchmarks.slot_graphs import near_barrier_graph

from downclock.planners.slots.barriers import Stages, barriers
from downclock.planners.slots.model import SlotGraph, SlotGraphIndex
from downclock.problem.graph import Edges
from downclock.workloads.gerhards import random_graph


def indexed(pairs: list[tuple[int, int]], tasks: int) -> SlotGraphIndex:
    edges = Edges(np.array([a for a, _ in pairs], int), np.array([b for _, b in pairs], int))
    graph = SlotGraph(np.ones(tasks), edges, 2, np.ones(9), np.array([1]), np.array([1.0]))
    return SlotGraphIndex.of(graph)


def stages_of(index: SlotGraphIndex, share: float) -> Stages | None:
    work = index.graph.work.astype(np.float64)
    return Stages.of(barriers(index, work), work, share)


JOIN = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5)]
"""0 -> {1, 2} -> 3 -> {4, 5}."""


def test_exact_barriers_split_all_tasks() -> None:
    # An edge from 1 to 5 says nothing new.
    found = stages_of(indexed([*JOIN, (1, 5)], 6), 0.0)
    assert found is not None
    assert [sorted(tasks.tolist()) for tasks in found.tasks] == [[0], [1, 2], [3], [4, 5]]
    assert found.beside.size == 0
    assert found.crowd.tolist() == [0, 0, 0, 0]


def test_a_barrier_needs_no_join() -> None:
    """Two tasks before each of two others, and no task between."""
    found = stages_of(indexed([(0, 2), (0, 3), (1, 2), (1, 3)], 4), 0.0)
    assert found is not None
    assert [sorted(tasks.tolist()) for tasks in found.tasks] == [[0, 1], [2, 3]]


def test_tasks_without_order_have_no_barriers() -> None:
    assert stages_of(indexed([(0, 5)], 6), 0.0) is None
    assert stages_of(indexed([], 6), 1.0) is None


def test_a_task_beside_a_join_is_left_out_and_knows_where_it_may_run() -> None:
    """Task 6 runs after 1 and before 5: beside the join 3 and what follows it."""
    index = indexed([*JOIN, (1, 6), (6, 5)], 7)
    exact = stages_of(index, 0.0)
    assert exact is not None
    assert [sorted(tasks.tolist()) for tasks in exact.tasks] == [[0], [1, 2, 3, 4, 5, 6]]
    near = stages_of(index, 0.2)
    assert near is not None
    assert near.beside.tolist() == [6]
    assert [sorted(tasks.tolist()) for tasks in near.tasks] == [[0], [1, 2], [3], [4, 5]]
    assert (near.first.tolist(), near.last.tolist()) == ([1], [3])
    assert near.crowd.tolist() == [0, 1, 1, 1]


def test_every_task_is_in_one_stage_or_beside_and_stages_keep_the_order() -> None:
    for seed in range(12):
        drawn = near_barrier_graph(seed=seed) if seed % 2 else random_graph(40, seed=seed)
        pairs = list(zip(drawn.edges.before.tolist(), drawn.edges.after.tolist(), strict=True))
        index = indexed(pairs, len(drawn))
        for share in (0.0, 0.1, 0.4):
            found = stages_of(index, share)
            if found is None:
                continue
            stage = np.full(len(drawn), -1)
            for k, tasks in enumerate(found.tasks):
                assert tasks.size > 0
                stage[tasks] = k
            assert np.array_equal(np.flatnonzero(stage < 0), found.beside)
            first, last = stage.copy(), stage.copy()
            first[found.beside], last[found.beside] = found.first, found.last
            for i, j in pairs:
                assert first[i] <= last[j]
                assert first[i] <= first[j]
                assert last[i] <= last[j]
