"""Profiles of use and starts found in them, against a slow count over all times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.engine.view import View
from downclock.planners.cluster.board import make_room, make_room_for_gangs
from downclock.planners.cluster.kernels import accept, opening
from downclock.planners.cluster.kernels import reserve as kernel
from downclock.planners.cluster.policy import ClusterPolicy
from downclock.problem.tasks import Tasks
from downclock.workloads import mei

SIZE = 6


def board(seed: int):
    """A server with some reservations that fit beside each other."""
    rng = np.random.default_rng(seed)
    made, view = (
        ClusterPolicy(),
        View(mei.online(1, cluster=mei.Cluster(pairs=SIZE, per_server=SIZE))),
    )
    state = made.start(view)
    make_room(state.board, 20)
    make_room_for_gangs(state.board, np.ones(20, np.int64))
    cluster = made.cluster(state, view, 0)
    rows = []
    for i in range(12):
        start, length, count = rng.integers(0, 30), rng.integers(1, 9), int(rng.integers(1, 4))
        if most_used(rows, start, start + length) + count <= SIZE:
            kernel.book(cluster, i, 0, count, float(start), float(start + length))
            rows.append((start, start + length, count))
    cluster.tasks["gang"][15] = 3
    return cluster, rows


def most_used(rows, start, end) -> int:
    """Most processors in use at any whole second, and just after it."""
    times = np.arange(start, end, 0.5)
    return max((sum(k for a, b, k in rows if a <= t < b) for t in times), default=0)


@pytest.mark.parametrize("seed", range(12))
def test_the_profile_counts_what_is_in_use(seed):
    cluster, rows = board(seed)
    times, used = kernel.profile(cluster, 0, -1, 2.0)
    assert times[0] == 2.0
    assert np.all(np.diff(times) > 0.0)
    for at, count in zip(times, used, strict=True):
        assert count == sum(k for a, b, k in rows if a <= at < b)
    assert used[-1] == 0


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("length", [1.0, 4.0])
def test_starts_are_the_soonest_and_the_latest_that_fit(seed, length):
    cluster, rows = board(seed)
    fits = [s for s in range(31) if most_used(rows, s, s + length) + 3 <= SIZE]
    soonest = kernel.soonest_start_s(cluster, 0, 15, length, 0.0, 30.0)
    latest = kernel.latest_start_s(cluster, 0, 15, length, 0.0, 30.0)
    assert soonest == fits[0]
    assert latest == fits[-1]


@pytest.mark.parametrize("seed", range(6))
def test_processors_are_free_until_somebody_needs_them(seed):
    cluster, rows = board(seed)
    for start in range(0, 30, 5):
        until = kernel.free_until_s(cluster, 0, -1, 2, float(start), 40.0)
        assert most_used(rows, start, until) + 2 <= SIZE or until == start
        assert until == 40.0 or most_used(rows, until, until + 0.5) + 2 > SIZE


def test_what_is_taken_back_leaves_no_trace():
    cluster, _ = board(3)
    for i in range(12):
        kernel.unbook(cluster, i)
    times, used = kernel.profile(cluster, 0, -1, 0.0)
    assert (times.tolist(), used.tolist()) == ([0.0], [0])
    assert cluster.groups["head"][0] == -1


@pytest.mark.parametrize("after", [1.1, np.inf])
def test_a_gang_on_whole_servers_runs_as_slowly_as_what_is_reserved_after_it_allows(after):
    """Listed at its fastest, as all are where one finds no room, it slows down at its start."""
    drawn = mei.online(1, cluster=mei.Cluster(pairs=4, per_server=2))
    tasks = Tasks.of(np.arange(2), processors=np.array([4, 1]), deadline_s=np.full(2, 1e9))
    view, made = View(replace(drawn, tasks=tasks)), ClusterPolicy()
    state, known = made.start(view), view.tasks.add(tasks, np.arange(2))
    made.tell(state, view, known, np.zeros(2))
    made.begin_reservations(state, view, known, 0.0)
    cluster, row = made.cluster(state, view, 2), state.curves.rows[0]
    assert accept.reserve_wide(cluster, 0, 0, 0.0, row["short_s"], 0.0)
    if after < np.inf:
        kernel.reserve_at(cluster, 1, 0, after * row["short_s"], 1.0, 0)
    opening.start_wide(cluster, 0, 0.0)
    length_s = cluster.starts["length_s"][:4]
    assert row["short_s"] * 1.1 < row["free_s"]
    assert length_s == pytest.approx(min(row["free_s"], after * row["short_s"]))


@pytest.mark.parametrize("rows", [1, 7, kernel.FEW_ROWS, kernel.FEW_ROWS + 1, 700])
def test_rows_are_sorted_by_time_and_those_of_one_time_stay_as_they_came(rows: int) -> None:
    rng = np.random.default_rng(rows)
    times, change = rng.integers(0, 1 + rows // 3, rows).astype(float), np.arange(rows)
    wanted = np.argsort(times, kind="stable")
    sorted_times = times[wanted]
    kernel._sort(times, change)
    assert times.tolist() == sorted_times.tolist()
    assert change.tolist() == wanted.tolist()
