"""Windows that count machines: never too narrow for any valid plan, never wider than paths say."""

from __future__ import annotations

from itertools import product

import numpy as np

from downclock.planners.slots.model import SlotGraph, SlotGraphIndex
from downclock.planners.slots.windows import capacity_windows
from downclock.problem.graph import Edges
from tests.planners.slots.tiny import tiny_graph


def valid_starts(graph: SlotGraph, index: SlotGraphIndex) -> list[np.ndarray]:
    """First slots of every valid plan in which all tasks run at the highest level."""
    found = []
    for starts in product(range(graph.slots), repeat=len(graph)):
        first, last = np.array(starts), np.array(starts) + index.length - 1
        before, after = graph.edges.before, graph.edges.after
        in_window = np.all(first >= graph.release) and np.all(last <= graph.due)
        if not in_window or np.any(last[before] >= first[after]):
            continue
        load = np.zeros(graph.slots + 1, dtype=int)
        np.add.at(load, first, 1)
        np.add.at(load, last + 1, -1)
        if np.cumsum(load).max() <= graph.machines:
            found.append(first)
    return found


def test_no_valid_plan_leaves_its_windows_and_some_touch_them() -> None:
    tight = plans = 0
    for seed in range(120):
        graph = tiny_graph(seed, tasks=4)
        index = SlotGraphIndex.of(graph)
        starts = valid_starts(graph, index)
        if not starts:
            continue
        plans += 1
        early, late = capacity_windows(index)
        first, last = (
            np.array(starts).min(axis=0),
            (np.array(starts) + index.length - 1).max(axis=0),
        )
        assert np.all(early <= first)
        assert np.all(last <= late)
        tight += bool(np.all(early == first) and np.all(late == last))
        by_path, until_path, _ = index.windows(index.before, index.after)
        assert np.all(early >= by_path)
        assert np.all(late <= until_path)
    assert plans > 60
    assert tight > 0.7 * plans


def test_four_tasks_on_two_machines_take_two_slots_before_a_join() -> None:
    """Four of one slot each, then a join: paths say slot 1, two machines say slot 2; of 6 slots."""
    before, after = np.array([0, 1, 2, 3]), np.full(4, 4)
    units = np.array([1])
    graph = SlotGraph(np.ones(5, dtype=int), Edges(before, after), 2, np.ones(6), units, np.ones(1))
    index = SlotGraphIndex.of(graph)
    early, late = capacity_windows(index)
    assert early.tolist() == [0, 0, 0, 0, 2]
    assert late.tolist() == [4, 4, 4, 4, 5]
    assert index.windows(index.before, index.after)[0].tolist() == [0, 0, 0, 0, 1]
