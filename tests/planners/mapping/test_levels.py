"""Levels: what every task takes and draws at each clock, whoever was told when."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.engine.view import View
from downclock.planners.mapping.levels import learn, task_levels
from downclock.workloads.liu import job_set


def test_levels_are_the_same_whether_tasks_come_at_once_or_one_by_one() -> None:
    problem = job_set(3, load="light", family="MM")
    n = len(problem.tasks)
    whole, growing = View(problem), View(problem)
    whole.tasks.add(problem.tasks, np.arange(n))
    one_by_one = task_levels(growing)
    for task in range(n):
        learn(one_by_one, growing, growing.tasks.add(problem.tasks, np.array([task])))
    for kind, (told, grew) in enumerate(zip(task_levels(whole), one_by_one, strict=True)):
        every, level = np.arange(n), told.levels.points.shape[0] - 1
        top = np.tile(told.levels.points[level], (n, 1))
        time_s, power_w = problem.at(every, np.full(n, kind), top)  # what the profiles say
        assert told.time_s[:n, level] == pytest.approx(time_s)
        assert told.power_w[:n, level] == pytest.approx(power_w)
        np.testing.assert_array_equal(told.time_s[:n], grew.time_s[:n])
        np.testing.assert_array_equal(told.power_w[:n], grew.power_w[:n])


def test_no_level_promises_more_than_the_slowest_application_keeps() -> None:
    """A task at a level takes at most its time at the top one over the level's speed."""
    problem = job_set(3, load="light", family="MM")
    view = View(problem)
    view.tasks.add(problem.tasks, np.arange(len(problem.tasks)))
    for each in task_levels(view):
        speed = each.levels.speed
        assert speed[-1] == 1.0
        assert np.all(np.diff(speed) >= 0.0)
        time_s = each.time_s[: len(problem.tasks)]
        assert np.all(time_s <= time_s[:, -1:] / speed * (1.0 + 1e-12))
