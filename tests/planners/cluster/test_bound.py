"""bound <= optimum <= policy on small batches with enumerated clocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.engine.play import plan
from downclock.errors import InvalidInput
from downclock.planners.catalog import policy
from downclock.planners.cluster.bound import busiest, cluster_bound_j
from downclock.planners.per_task import per_task_bound_j
from downclock.power.library import Library
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.verify.verify import verify
from downclock.workloads import mei
from tests.generated import GPU_TABLE
from tests.planners.cluster.optimum import cluster_optimum


def batch(seed: int) -> Problem:
    """Two to five tasks, two servers of two processors, eight clocks."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    names = np.array([f"a{i}" for i in range(n)], dtype=object)
    library = Library.of_one_kind(names, "gpu", mei.printed_profiles(rng, n))
    kind = Kind("gpu", GPU_TABLE, idle_w=float(rng.uniform(0, 60)), clock="locked")
    server = ServerSpec("s", (("gpu", 2),), count=2, wake_j=float(rng.uniform(0, 5000)))
    scale = rng.uniform(10, 50, n)
    deadline_s = 5 * scale * rng.uniform(2.5, 8, n)
    tasks = Tasks.of(np.arange(n), deadline_s=deadline_s, scale=scale)
    return Problem(tasks, library, Platform.build((kind,), (server,)))


def test_bound_optimum_and_policy_are_in_order_and_close() -> None:
    gaps = []
    for seed in range(5):
        problem = batch(seed)
        best = cluster_optimum(problem)
        assert best.proven
        schedule = plan(problem, policy("late"))
        assert verify(problem, schedule).ok
        energy = float(account(problem, schedule).server_j.sum())
        slack = 1e-7 * energy
        assert per_task_bound_j(problem).sum() <= cluster_bound_j(problem) + slack
        assert cluster_bound_j(problem) <= best.bound_j + slack
        assert best.bound_j <= energy + slack
        gaps.append(energy / best.energy_j - 1.0)
    # Over 200 problems of up to 8 tasks the mean is below 1 % (docs/background/our-policy.md).
    assert np.mean(gaps) < 0.02


def test_the_optimum_refuses_what_it_cannot_prove() -> None:
    with pytest.raises(InvalidInput, match="enumerated clocks"):
        cluster_optimum(mei.offline(0, utilisation=0.002))
    with pytest.raises(InvalidInput, match="time 0"):
        cluster_optimum(mei.online(0, utilisation=0.01, initial_utilisation=0.0))


def test_the_bound_counts_servers_that_must_be_awake_together() -> None:
    library = Library.of_one_kind(
        np.array(["a"], dtype=object), "gpu", mei.printed_profiles(np.random.default_rng(0), 1)
    )
    kind = Kind("gpu", GPU_TABLE, clock="locked")
    platform = Platform.build((kind,), (ServerSpec("s", (("gpu", 2),), count=4, wake_j=7.0),))
    fastest = (
        Problem(Tasks.of(np.zeros(1, np.int64), deadline_s=np.full(1, 1e6)), library, platform)
        .frontier(0)
        .t_min_s[0]
    )
    five = Tasks.of(np.zeros(5, np.int64), deadline_s=np.full(5, 1.5 * fastest))
    problem = Problem(five, library, platform)
    # All five run in (0.5, 1) of the fastest time: three servers of two.
    assert busiest(problem) == 5
    assert cluster_bound_j(problem) == pytest.approx(per_task_bound_j(problem).sum() + 21.0)
    # Where tasks may be interrupted nobody has to run then: one server may do.
    torn = replace(platform, kinds=(replace(kind, interrupt="preempt"),))
    problem = Problem(five, library, torn)
    assert busiest(problem) == 0
    assert cluster_bound_j(problem) == pytest.approx(per_task_bound_j(problem).sum() + 7.0)


def test_the_bound_counts_what_idles_beside_a_lone_task() -> None:
    """One task on a server of four: three idle at 30 W beside it, the host draws 10 W, one wake."""
    library = Library.of_one_kind(
        np.array(["a"], dtype=object), "gpu", mei.printed_profiles(np.random.default_rng(0), 1)
    )
    kind = Kind("gpu", GPU_TABLE, idle_w=30.0)
    server = ServerSpec("s", (("gpu", 4),), count=2, wake_j=7.0, host_w=10.0)
    one = Tasks.of(np.zeros(1, np.int64), deadline_s=np.full(1, 1e6))
    problem = Problem(one, library, Platform.build((kind,), (server,)))
    least = problem.frontier(0).mixed().cheapest(100.0)
    expected = least.energy_j[0] + 100.0 * least.time_s[0] + 7.0
    assert cluster_bound_j(problem) == pytest.approx(expected)
    schedule = plan(problem, policy("late"))
    assert account(problem, schedule).total_j == pytest.approx(expected, rel=1e-3)


def test_the_bound_takes_the_server_with_the_least_beside_a_task_whatever_their_order() -> None:
    """A lone task: 100 W beside it on a server of four, 20 W on one of one, repeated among them."""
    library = Library.of_one_kind(
        np.array(["a"], dtype=object), "gpu", mei.printed_profiles(np.random.default_rng(0), 1)
    )
    kind = Kind("gpu", GPU_TABLE, idle_w=30.0)
    four = ServerSpec("four", (("gpu", 4),), count=3, host_w=10.0)
    one = ServerSpec("one", (("gpu", 1),), count=2, host_w=20.0)
    last = replace(four, name="last")
    tasks = Tasks.of(np.zeros(1, np.int64), deadline_s=np.full(1, 1e6))
    for specs, beside_w in (((four, one, last), 20.0), ((one, four), 20.0), ((four, last), 100.0)):
        problem = Problem(tasks, library, Platform.build((kind,), specs))
        least = problem.frontier(0).mixed().cheapest(beside_w)
        expected = least.energy_j[0] + beside_w * least.time_s[0]
        assert cluster_bound_j(problem) == pytest.approx(expected)


def test_tasks_that_can_fill_a_server_have_nothing_idle_beside_them() -> None:
    problem = mei.offline(0, utilisation=0.02)
    per_task = per_task_bound_j(problem).sum()
    assert cluster_bound_j(problem) - per_task <= problem.platform.wake_j.max() * (1 + 1e-9)
