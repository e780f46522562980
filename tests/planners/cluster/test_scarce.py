"""Where room is scarce: who hurries, who waits, and what a gang of several servers finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.engine.view import View
from downclock.planners.cluster.kernels import accept, hurry
from downclock.planners.cluster.policy import ClusterPolicy
from downclock.power.library import Library
from downclock.problem.platform import Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.workloads import mei


def cluster_of(problem: Problem):
    """A board that has been told of all tasks."""
    made, view = ClusterPolicy(), View(problem)
    state = made.start(view)
    told = view.tasks.add(problem.tasks, np.arange(len(problem.tasks)))
    made.fill(state, view, told, view.tasks.arrival_s[told])
    return made.cluster(state, view, told.size), told


def on_two_kinds(first: int, second: int) -> Problem:
    """The papers' tasks on so many processors of a kind and of another that is alike."""
    drawn = mei.offline(3, utilisation=0.01, cluster=mei.Cluster(16, 4))
    (group,), kind = drawn.library.groups, drawn.platform.kinds[0]
    n = len(group)
    names = ("pair", "other")
    rows = np.tile(np.arange(n)[:, None], 2)
    library = Library(drawn.library.names, names, (group,), np.zeros((n, 2), np.int64), rows)
    specs = [
        ServerSpec(name, ((name, count),), 1)
        for name, count in zip(names, (first, second), strict=True)
        if count
    ]
    kinds = [replace(kind, name=name) for name in names]
    return replace(drawn, library=library, platform=Platform.build(kinds, specs))


@pytest.mark.parametrize(("second", "hurries"), [(1, True), (8, False)])
def test_tasks_hurry_on_the_only_processor_of_a_kind_and_nowhere_else(second, hurries):
    cluster, tasks = cluster_of(on_two_kinds(1, second))
    before = cluster.curves.rows["free_s"].reshape(-1, 2).copy()
    for i in tasks:
        hurry.hasten(cluster, i)
    after = cluster.curves.rows["free_s"].reshape(-1, 2)
    able = np.isfinite(before[tasks, 0])
    assert np.all(after[tasks, 0][able] < before[tasks, 0][able])
    assert np.any(after[tasks, 1] < before[tasks, 1]) == hurries


def test_nobody_waits_where_all_is_awake_or_room_was_missing():
    cluster, tasks = cluster_of(mei.offline(3, utilisation=0.01, cluster=mei.Cluster(16, 4)))
    calm = accept._patience(cluster, tasks[0])
    cluster.pools["hurry"][0] = 0.5
    assert accept._patience(cluster, tasks[0]) == pytest.approx(calm / 2)
    cluster.tally["processors"] = 16
    assert accept._patience(cluster, tasks[0]) == 0.0


def test_a_kind_without_processors_has_no_time_at_which_it_is_empty():
    cluster, _ = cluster_of(on_two_kinds(4, 0))
    assert accept._empty_times_s(cluster, 1, 5.0, True).size == 0
    assert accept._empty_times_s(cluster, 1, 5.0, False).size == 0
    assert accept._empty_times_s(cluster, 0, 5.0, False).tolist() == [5.0]
