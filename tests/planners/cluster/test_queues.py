"""Waiting tasks by class, trees of holes, lists that make room, quick curves; beside slow ways."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.engine.view import View
from downclock.kernels.least_tree import new_trees
from downclock.planners.cluster.board import make_queues, make_room_for_gangs
from downclock.planners.cluster.kernels import curves, holes, opening, queues, relist, reserve
from downclock.planners.cluster.policy import ClusterPolicy
from downclock.workloads import mei

GANGS = np.array([1, 1, 1, 2, 3, 4])


def board(seed: int, tasks: int = 40, servers: int = 3):
    """An empty cluster of servers of four, told of tasks that do not wait yet."""
    problem = mei.offline(seed, utilisation=tasks / 2048, cluster=mei.Cluster(4 * servers, 4))
    made, view = ClusterPolicy(), View(problem)
    state = made.start(view)
    told = view.tasks.add(problem.tasks, np.arange(len(problem.tasks)))
    made.fill(state, view, told, view.tasks.arrival_s[told])
    state.board.tasks["gang"] = np.random.default_rng(seed).choice(GANGS, state.board.tasks.size)
    make_room_for_gangs(state.board, state.board.tasks["gang"])
    make_queues(state.board)
    return made.cluster(state, view, told.size), told


def wanted_s(cluster, tasks):
    return cluster.curves.rows["free_s"][tasks]


@pytest.mark.parametrize("seed", range(4))
def test_a_hole_is_offered_the_tasks_whose_length_is_nearest(seed):
    cluster, tasks = board(seed)
    for i in tasks:
        queues.wait(cluster, i)
    narrow = tasks[cluster.tasks["gang"][tasks] <= 2]
    length = float(np.median(wanted_s(cluster, tasks)))
    found = queues.candidates(cluster, 0, 2, length, narrow.size + 5)
    assert sorted(found) == sorted(narrow)
    off = np.abs(np.log(wanted_s(cluster, found) / length))
    assert np.all(np.maximum.accumulate(off) - off <= 2 * queues.STEP + 1e-9)
    assert list(queues.candidates(cluster, 0, 2, length, 7)) == list(found[:7])


def test_who_waits_no_more_is_offered_no_more():
    cluster, tasks = board(5)
    for i in tasks:
        queues.wait(cluster, i)
        queues.wait(cluster, i)  # once is enough
    for i in tasks[::2]:
        queues.wait_no_more(cluster, i)
        queues.wait_no_more(cluster, i)
    assert cluster.tally["queued"][0] == tasks.size // 2
    assert sorted(queues.all_waiting(cluster, np.ones(1, np.int64))) == list(tasks[1::2])
    assert sorted(queues.candidates(cluster, 0, 4, 1000.0, 99)) == list(tasks[1::2])


def test_the_most_urgent_of_those_that_fit_is_found():
    cluster, tasks = board(6)
    cluster.tasks["start_s"][tasks] = np.random.default_rng(6).permutation(tasks.size) + 1.0
    for i in tasks:
        queues.wait(cluster, i)
    fits = tasks[cluster.tasks["gang"][tasks] <= 3]
    best = fits[np.argmin(cluster.tasks["start_s"][fits])]
    assert queues.most_urgent(cluster, 0, 3) == best
    lengths = queues.usual_lengths(cluster, 0, 4, 5)
    assert np.all(np.diff(lengths) >= 0.0)
    found = np.quantile(wanted_s(cluster, tasks), [0.0, 1.0])
    assert found[0] / 1.06 <= lengths[0] <= lengths[-1] <= found[1] * 1.06


@pytest.mark.parametrize("count", [1, 5, 16, 23])
def test_small_keys_of_a_tree_are_found_in_turns(count):
    keys = np.random.default_rng(count).uniform(0.0, 1.0, count)
    trees = new_trees(keys[None, :])
    for begin in range(count):
        for limit in (-1.0, 0.2, 0.7, 2.0):
            turns = (begin + np.arange(count)) % count
            right = turns[keys[turns] <= limit]
            for most in (1, 3, count):
                found = reserve.leaves_at_most(trees, 0, limit, begin, count, most)
                assert found.tolist() == right[:most].tolist()


def test_a_server_opens_on_which_nothing_is_reserved():
    cluster, tasks = board(8)
    for a, g in ((0, 0), (1, 0), (2, 1)):
        cluster.tasks["gang"][tasks[a]] = 1
        reserve.reserve_at(cluster, tasks[a], g, 100.0, 50.0, 0)
    assert opening._to_open(cluster, tasks[0], 0, 0, 0.0).tolist() == [2]
    assert opening._to_open(cluster, tasks[2], 1, 0, 0.0).tolist() == [1]
    reserve.reserve_at(cluster, tasks[3], 2, 100.0, 50.0, 0)
    cluster.tasks["gang"][tasks[0]] = 1
    assert opening._to_open(cluster, tasks[0], 0, 0, 0.0)[0] != 2


def test_tasks_that_can_wait_leave_poor_holes_to_those_that_are_due():
    cluster, tasks = board(9)
    cluster.tally["mean_s"] = 1000.0
    patient, due = tasks[:2]
    cluster.tasks["start_s"][patient], cluster.tasks["start_s"][due] = 1e6, 0.0
    price = holes.lane_w(cluster, 0) * 1000.0
    cluster.tasks["gang"][tasks[:2]] = 1
    for part in (0.0, 0.2):
        assert holes.reluctance(cluster, due, 0, part * price, 1000.0, 0.0) < part - 0.9
    assert holes.reluctance(cluster, patient, 0, 0.05 * price, 1000.0, 0.0) == pytest.approx(
        0.05, abs=0.01
    )
    cluster.tally["awake"], cluster.tally["queued"] = 3, 30
    assert holes.reluctance(cluster, patient, 0, 0.35 * price, 1000.0, 0.0) == np.inf
    worth = holes.URGENT * holes.CHOICE / (holes.CHOICE + 30)
    assert holes.reluctance(cluster, due, 0, 0.35 * price, 1000.0, 0.0) == pytest.approx(
        0.35 - worth
    )


def test_room_is_made_by_listing_what_waits_anew():
    cluster, tasks = board(7, tasks=30, servers=1)
    a, b, hurried = tasks[:3]
    cluster.tasks["gang"][[a, b, hurried]] = 4
    short = cluster.curves.rows["short_s"]
    cluster.tasks["deadline_s"][a] = cluster.tasks["deadline_s"][b] = 2.2 * (short[a] + short[b])
    cluster.tasks["deadline_s"][hurried] = 1.01 * short[hurried]
    reserve.reserve_at(cluster, a, 0, 0.0, 1.1 * short[a], 0)
    reserve.reserve_at(cluster, b, 0, 1.1 * short[a], 1.1 * short[b], 0)
    cluster.tasks["deadline_s"][[a, b]] += short[hurried]
    assert relist.make_room(cluster, hurried, 0.0)
    rows = cluster.tasks[[hurried, a, b]]
    ends = rows["start_s"] + rows["length_s"]
    assert rows["start_s"][0] == 0.0
    assert np.all(ends <= rows["deadline_s"])
    order = np.argsort(rows["start_s"])
    assert np.all(rows["start_s"][order][1:] >= ends[order][:-1] - 1e-9)


def test_what_cannot_be_in_time_leaves_reservations_as_they_were():
    cluster, tasks = board(8, servers=1)
    a, new = tasks[:2]
    cluster.tasks["gang"][[a, new]] = 4
    short = cluster.curves.rows["short_s"]
    cluster.tasks["deadline_s"][[a, new]] = 1.01 * short[a], 1.01 * short[new]
    reserve.reserve_at(cluster, a, 0, 0.0, short[a], 0)
    before = cluster.tasks[a].copy()
    assert not relist.make_room(cluster, new, 0.0)
    assert cluster.tasks[a] == before
    assert cluster.tasks["booked"][new] == -1


def test_quick_curves_follow_the_exact_ones():
    cluster, tasks = board(9)
    price_w = cluster.curves.kinds["price_w"][0]
    for i in tasks:
        row = cluster.curves.rows[i]
        for part in (0.9, 1.1):
            time_s = part * row["best_s"]
            if not row["short_s"] < time_s < row["long_s"] or row["free_s"] != row["best_s"]:
                continue
            cost = curves.energy_j(cluster.curves, i, time_s) + price_w * time_s
            best = row["free_j"] + price_w * row["free_s"]
            about = curves.about_over_j(cluster.curves, i, time_s)
            assert about == pytest.approx(cost - best, rel=1.0, abs=0.002 * best)
            assert about >= 0.0
