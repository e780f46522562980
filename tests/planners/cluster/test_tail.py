"""A batch to which more may come: one server is at work as long as deadlines allow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.engine.play import plan
from downclock.engine.view import View
from downclock.planners.catalog import policy
from downclock.planners.cluster.batch import joined, packing
from downclock.planners.cluster.board import make_room, new_board
from downclock.planners.cluster.columns import CurveTables
from downclock.planners.cluster.search import Batch, Search
from downclock.planners.cluster.tail import SLACK, tail_of
from downclock.planners.per_task import per_task_bound_j
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE
from downclock.schedule.verify.verify import verify
from downclock.workloads import mei

HOUR_S, SIZE = 3600.0, 8


def batch_problem(seed: int, utilisation: float = 0.15) -> Problem:
    cluster = mei.Cluster(pairs=512, per_server=SIZE, turn_on_j=0.0)
    return mei.offline(seed, utilisation=utilisation, cluster=cluster)


def batch_of(problem: Problem) -> Batch:
    view, tables = View(problem), CurveTables.of(problem.platform)
    every = view.tasks.add(problem.tasks, np.arange(len(problem.tasks)))
    tables.learn(view, every, problem.tasks.deadline_s, 1.0, dvfs=True, priced=False)
    board = new_board(problem.platform, late=True)
    make_room(board, every.size)
    board.tasks["deadline_s"][every] = problem.tasks.deadline_s
    return Batch.of(tables, board, every, 0.0)


def some_later(problem: Problem, count: int) -> Problem:
    """The problem, but so many of its tasks come some time in the next nine hours."""
    tasks, rng = problem.tasks, np.random.default_rng(len(problem.tasks))
    arrival_s = np.zeros(len(tasks))
    arrival_s[rng.choice(len(tasks), count, replace=False)] = rng.uniform(0.0, 9 * HOUR_S, count)
    later = replace(tasks, arrival_s=arrival_s, deadline_s=tasks.deadline_s + arrival_s)
    return replace(problem, tasks=later)


def test_tasks_of_the_tail_follow_each_other_and_could_all_wait_longer():
    batch = batch_of(batch_problem(1))
    every = np.arange(batch.task.size)
    place = tail_of(batch, 0, every, np.arange(SIZE), np.inf)
    wanted_s = np.minimum(batch.free_s[:, 0], batch.due_s)
    assert set(place) == {-1, *range(SIZE)}
    for p in range(SIZE):
        mine = np.flatnonzero(place == p)
        mine = mine[np.argsort(batch.due_s[mine] - wanted_s[mine])]
        starts_s = np.append(0.0, np.cumsum(wanted_s[mine]))[: mine.size - 1]
        latest_s = (batch.due_s - wanted_s)[mine[:-1]]  # the last ones may have been exchanged
        assert mine.size > 1
        assert np.all(starts_s <= SLACK * latest_s + 1e-6)


def test_a_tail_lasts_longer_and_costs_next_to_nothing():
    last_s = np.zeros(2)
    for seed in range(3):
        batch = batch_of(batch_problem(seed))
        plain, tail = (packing(batch, 0, more=more) for more in (False, True))
        assert tail.cost_j <= 1.002 * plain.cost_j
        for a, found in enumerate((plain, tail)):
            last_s[a] += np.bincount(found.processor, found.length_s).max()
            assert sorted(found.task) == sorted(batch.task)
    assert last_s[1] > last_s[0]


@pytest.mark.parametrize("most_j", [-1e12, np.inf])
def test_a_tail_costs_no_more_than_it_may(most_j: float):
    batch = batch_of(batch_problem(2))
    place = tail_of(batch, 0, np.arange(batch.task.size), np.arange(SIZE), most_j)
    assert np.any(place >= 0) == (most_j > 0.0)


def test_who_comes_after_a_batch_shares_the_server_that_is_at_work(monkeypatch):
    over_j: list[float] = []
    for _ in range(2):  # with a tail, then without
        over_j.append(0.0)
        for seed in range(4):
            problem = some_later(batch_problem(seed, 0.2), 4)
            schedule = plan(problem, policy("late"))
            assert verify(problem, schedule).ok
            assert np.all(schedule.outcomes.status == DONE)
            over_j[-1] += account(problem, schedule).total_j - per_task_bound_j(problem).sum()
        monkeypatch.setattr("downclock.planners.cluster.batch.RISKED", -1.0)
    assert over_j[0] < 0.95 * over_j[1]


def test_where_nothing_more_comes_a_batch_has_no_tail(monkeypatch):
    problem = batch_problem(5)
    before = plan(problem, policy("late"))
    monkeypatch.setattr("downclock.planners.cluster.batch.RISKED", -1.0)
    after = plan(problem, policy("late"))
    assert np.array_equal(before.segments.end_s, after.segments.end_s)


def test_a_server_is_listed_anew_where_that_adds_less_than_a_task_at_an_end():
    batch = batch_of(batch_problem(4))
    place = packing(batch, 0, more=True)
    where = np.full(batch.task.size, -1)
    where[place.task] = place.processor
    later = int(np.argmin(np.where(where < SIZE, batch.due_s, np.inf)))
    where[later] = -1
    found = joined(batch, where)
    naive = Search(batch, where)
    adds_j = []
    for p in range(batch.kind.size):
        naive.place[later] = p
        j = int(batch.server[p])
        adds_j.append(naive.cost(j, [*naive.members[j], later])[0] - naive.costs_j[j])
    assert sorted(found.task) == list(range(batch.task.size))
    assert found.cost_j <= naive.cost_j + min(adds_j) + 1e-6
