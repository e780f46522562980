"""What is still to come: who waits for company, which servers need no planned end, room kept."""

from dataclasses import replace

import numpy as np
import pytest

from downclock.engine.play import plan
from downclock.planners.catalog import policy
from downclock.planners.cluster.board import new_board
from downclock.planners.cluster.kernels import curves, holes, outlook, reserve
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE
from downclock.schedule.verify.verify import verify
from downclock.workloads import mei
from tests.laws.test_engine import same
from tests.planners.cluster.test_scarce import cluster_of

HOUR_S = 3600.0


def came(count, every_s, work_s, size=16):
    """A cluster of servers of 16 to which so many tasks of this processor time came, evenly."""
    cluster, _ = cluster_of(mei.offline(3, utilisation=0.01, cluster=mei.Cluster(8 * size, size)))
    cluster.tally["arrivals"][0] = count
    for m in range(count):
        cluster.arrival_history[:, m % 256] = (m + 1) * every_s, work_s
    return cluster, count * every_s


@pytest.mark.parametrize(
    ("every_s", "waits"), [(20 * HOUR_S, False), (HOUR_S, True), (HOUR_S / 100, False)]
)
def test_tasks_wait_for_each_other_where_a_few_run_at_a_time(every_s, waits):
    cluster, now = came(40, every_s, HOUR_S)  # 1/20, 1 and 100 processors busy
    assert outlook.is_sparse(cluster, 1, now) == waits
    cluster.tally["queued"][0] = 1
    assert not outlook.is_sparse(cluster, 1, now)


def test_nobody_waits_for_company_on_a_server_of_one():
    cluster, now = came(40, HOUR_S, HOUR_S, size=1)
    assert not outlook.is_sparse(cluster, 1, now)


def test_servers_have_a_planned_end_where_few_wait_and_once_tasks_stay_away():
    cluster, now = came(200, HOUR_S / 100, 4 * HOUR_S)  # 400 processors busy
    cluster.tally["queued"][0] = 64
    outlook.foresee(cluster, now)
    assert cluster.tally["most_bases"][0] == pytest.approx(64 / 16)
    cluster.tally["queued"][0] = 1000
    outlook.foresee(cluster, now)
    assert cluster.tally["most_bases"][0] == pytest.approx(0.25 * 400 / 16)
    outlook.foresee(cluster, now + HOUR_S)  # a hundred times the usual time between two
    assert cluster.tally["most_bases"][0] < 1e-3
    cluster.tally["closed"][0] = 1
    outlook.foresee(cluster, now)
    assert cluster.tally["most_bases"][0] == 0.0


def test_what_runs_alone_is_the_more_likely_the_fewer_come_and_wait():
    cluster, now = came(40, HOUR_S, HOUR_S)  # one processor of 16 busy
    shares = []
    for waiting in (0, 4, 15):
        cluster.tally["queued"][0] = waiting
        outlook.foresee(cluster, now)
        shares.append(cluster.tally["idle_share"][0])
        assert cluster.tally["coming"][0] == pytest.approx(shares[-1])
    assert shares == pytest.approx([(15 / 16) ** 3, (11 / 16) ** 3, 0.0])


def test_a_task_that_can_wait_for_others_need_not_fill_a_hole():
    cluster, now = came(40, HOUR_S, HOUR_S)
    cluster.tally["awake"][0], cluster.tally["mean_s"][0] = 1, HOUR_S
    outlook.foresee(cluster, now)
    alone_j = []
    for waits_s in (0.0, HOUR_S, 10.0 * HOUR_S):
        cluster.tasks["start_s"][0] = now + waits_s
        alone_j.append(holes._alone_j(cluster, 0, 0, now))
    assert alone_j[0] > 0.0
    come = 0.3 * (15 / 16) ** 3
    assert alone_j == pytest.approx([alone_j[0] * np.exp(-come * h) for h in (0, 1, 10)])


def test_a_run_is_the_shorter_the_more_its_seconds_cost_and_about_as_short_as_is_best():
    cluster, _ = came(1, HOUR_S, HOUR_S)
    table = cluster.curves
    for row in range(20):
        found = [curves.hurried_s(table, row, more_w) for more_w in (0.0, 50.0, 200.0, 1e9)]
        assert found == sorted(found, reverse=True)
        assert (found[0], found[-1]) == (table.rows["best_s"][row], table.rows["short_s"][row])
        cost_j = [
            curves.energy_j(table, row, t) + 50.0 * t
            for t in (found[1], curves.at_slope_s(table, row, -50.0))
        ]
        assert cost_j[0] < 1.02 * cost_j[1]


@pytest.mark.parametrize(("servers", "kept"), [(3, 0), (4, 1), (10, 3)])
def test_the_last_servers_of_a_kind_keep_room_for_short_tasks(servers, kept):
    day = mei.offline(3, utilisation=0.01, cluster=mei.Cluster(4 * servers, 4))
    assert new_board(day.platform, late=True).pools["express_first"][0] == servers - kept
    cluster, _ = cluster_of(day)
    cluster.tally["mean_s"][0] = 100.0
    assert not reserve.is_express(cluster, servers - 1, 101.0)
    cluster.pools["express"][0] = 1.0
    assert reserve.is_express(cluster, servers - 1, 101.0) == (kept > 0)
    assert not reserve.is_express(cluster, servers - 1, 99.0)
    assert not reserve.is_express(cluster, 0, 101.0)


def few(seed: int, count: int) -> Problem:
    """Some tasks of the papers' day, on servers of 16."""
    day = mei.online(seed, cluster=mei.Cluster(per_server=16))
    later = np.flatnonzero(day.tasks.arrival_s > 0.0)
    chosen = np.sort(np.random.default_rng(seed).choice(later, count, replace=False))
    tasks = day.tasks
    return replace(
        day,
        tasks=Tasks.of(
            tasks.application[chosen],
            scale=tasks.scale[chosen],
            arrival_s=tasks.arrival_s[chosen],
            deadline_s=tasks.deadline_s[chosen],
        ),
    )


def test_few_tasks_need_less_if_they_wait_for_each_other_and_none_is_late():
    spent = {}
    for spec in ("late", "prompt"):
        spent[spec] = 0.0
        for seed in range(3):
            problem = few(seed, 32)
            schedule = plan(problem, policy(spec))
            assert verify(problem, schedule).ok
            assert np.all(schedule.outcomes.status == DONE)
            spent[spec] += account(problem, schedule).total_j
    assert spent["late"] < 0.97 * spent["prompt"]


def test_waiting_for_each_other_is_the_same_told_one_by_one():
    problem = few(1, 32)
    whole, stepwise = (plan(problem, policy("late"), stepwise=each) for each in (False, True))
    same(whole, stepwise)
