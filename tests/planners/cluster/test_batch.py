"""Batches: chains are balanced on processors, and what is scored is finite."""

from __future__ import annotations

import numpy as np

from downclock.engine.play import plan
from downclock.planners.catalog import policy
from downclock.power.library import Library
from downclock.power.points import ClockRange
from downclock.power.profiles import CpuProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.schedule import DONE


def test_a_processor_opened_for_a_task_that_does_not_fit_there_is_free() -> None:
    """Its chain was endless: the packing cost no number, or less than all others."""
    one = np.ones(1)
    profiles = CpuProfiles(10.0 * one, 20.0 * one, 3.0 * one, 0.0 * one)
    library = Library.of_one_kind(np.array(["job"], object), "cpu", profiles)
    servers = [
        ServerSpec("near", (("cpu", 1),), host_w=50.0, wake_j=10.0),
        ServerSpec("far", (("cpu", 1),), count=2, host_w=5.0, wake_j=10.0, wake_s=100.0),
    ]
    platform = Platform.build([Kind("cpu", ClockRange(0.5, 2.0))], servers)
    tasks = Tasks.of(np.zeros(4, int), deadline_s=[20.0, 20.0, 110.0, 20.0])
    with np.errstate(all="raise", under="ignore"):
        schedule = plan(Problem(tasks, library, platform), policy("late"))
    assert schedule.outcomes.status[2] == DONE
