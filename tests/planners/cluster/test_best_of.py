"""The safety net of batches: no task is lost that a plain policy keeps, no joule is thrown away."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.engine.engine import plan
from downclock.planners.catalog import policy
from downclock.planners.cluster.policy import PlanPolicy
from downclock.power.library import Library
from downclock.power.points import WIDE
from downclock.power.profiles import GpuProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE, REJECTED
from downclock.schedule.verify.verify import verify
from downclock.workloads import mei


def _batch(deadline_s: list[float], servers: tuple[ServerSpec, ...]) -> Problem:
    """Jobs of 100 s at the default clock that are all there at time 0."""
    profiles = GpuProfiles([100.0], [50.0], [150.0], [90.0], [0.5], [10.0])
    library = Library.of_one_kind(np.array(["a"], dtype=object), "pair", profiles)
    platform = Platform.build((Kind("pair", WIDE, idle_w=30.0),), servers)
    tasks = Tasks.of(np.zeros(len(deadline_s), np.int64), deadline_s=np.array(deadline_s))
    return Problem(tasks, library, platform)


def test_a_batch_loses_no_task_that_racing_keeps() -> None:
    """Two jobs on one GPU with 205 s for both: the first may not spread over its own 190 s."""
    problem = _batch([190.0, 205.0], (ServerSpec("s", (("pair", 1),)),))
    schedule = plan(problem, policy("late"))
    assert verify(problem, schedule).ok
    assert np.all(schedule.outcomes.status == DONE)


@pytest.mark.parametrize("seed", range(5))
def test_a_batch_needs_no_more_than_racing(seed: int) -> None:
    problem = mei.offline(seed, utilisation=0.02, cluster=mei.Cluster(pairs=64, per_server=8))
    ours, race = (account(problem, plan(problem, policy(name))) for name in ("late", "race"))
    assert ours.total_j < race.total_j


def test_online_the_main_policy_decides_alone() -> None:
    problem = mei.online(1, utilisation=0.05, cluster=mei.Cluster(pairs=64, per_server=4))
    ours, main = plan(problem, policy("late")), plan(problem, PlanPolicy("late"))
    assert np.array_equal(ours.segments.start_s, main.segments.start_s)
    assert np.array_equal(ours.segments.processor, main.segments.processor)


def test_the_server_that_wakes_in_time_is_woken() -> None:
    """A job of 100 s due after 130 s fits the server that wakes in 5 s, not that of 2,000 s."""
    servers = (
        ServerSpec("slow", (("pair", 1),), wake_s=2000.0),
        ServerSpec("quick", (("pair", 1),), wake_s=5.0),
    )
    problem = _batch([130.0], servers)
    schedule = plan(problem, PlanPolicy("late"))
    assert verify(problem, schedule).ok
    assert schedule.segments.start_s.tolist() == [5.0]


def test_one_impossible_job_does_not_spoil_the_packing_of_the_others() -> None:
    """Nineteen jobs of 100 s have 1,000 s; the last has 56 s after a wake of 5 s: too few."""
    servers = (ServerSpec("s", (("pair", 4),), count=5, wake_s=5.0),)
    others, all_jobs = _batch([1000.0] * 19, servers), _batch([1000.0] * 19 + [61.0], servers)
    schedule = plan(all_jobs, policy("late"))
    assert verify(all_jobs, schedule).ok
    assert schedule.outcomes.status.tolist() == [DONE] * 19 + [REJECTED]
    assert "cannot end by its deadline 61 s" in schedule.outcomes.reason[19]
    alone = account(others, plan(others, policy("late"))).total_j
    assert account(all_jobs, schedule).total_j == pytest.approx(alone, rel=1e-6)


def test_planned_jobs_are_hurried_before_another_is_rejected() -> None:
    """One GPU, T the shortest run time: the second job gives up its time for the third."""
    problem = _batch([0.0] * 3, (ServerSpec("s", (("pair", 1),)),))
    t = float(problem.frontier(0).t_min_s[0])
    arrival_s, deadline_s = np.array([0.0, 1.0, 2.0]), np.array([t, 3.2 * t, 2.1 * t])
    tasks = replace(problem.tasks, arrival_s=arrival_s, deadline_s=deadline_s)
    problem = replace(problem, tasks=tasks)
    done = {}
    for name in ("prompt", "late"):
        schedule = plan(problem, policy(name))
        assert verify(problem, schedule).ok
        done[name] = int(np.sum(schedule.outcomes.status == DONE))
    assert done == {"prompt": 2, "late": 3}


def test_servers_that_idle_for_nothing_stay_awake_instead_of_paying_a_wake() -> None:
    profiles = GpuProfiles([100.0], [50.0], [150.0], [90.0], [0.5], [10.0])
    library = Library.of_one_kind(np.array(["a"], dtype=object), "pair", profiles)
    servers = (ServerSpec("s", (("pair", 1),), count=2, wake_j=1000.0),)
    platform = Platform.build((Kind("pair", WIDE, idle_w=0.0),), servers)
    arrival_s = np.array([0.0, 2000.0, 4000.0])
    tasks = Tasks.of(np.zeros(3, np.int64), deadline_s=arrival_s + 1000.0, arrival_s=arrival_s)
    problem = Problem(tasks, library, platform)
    for name in ("late", "prompt"):
        schedule = plan(problem, policy(name))
        assert verify(problem, schedule).ok
        assert account(problem, schedule).wakes == 1
