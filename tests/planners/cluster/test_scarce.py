"""Where room is scarce: who hurries, who waits, and what a gang of several servers finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.engine.play import plan as played
from downclock.engine.view import View
from downclock.planners.catalog import policy as policy_of
from downclock.planners.cluster.kernels import accept, awake, flat, hurry, processors
from downclock.planners.cluster.kernels.curves import at_slope_s
from downclock.planners.cluster.policy import ClusterPolicy
from downclock.power.library import Library
from downclock.power.points import ClockRange, ClockTable
from downclock.power.profiles import CpuProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE, REJECTED
from downclock.study.decide import plan
from downclock.workloads import liu, mei
from tests.planners.cluster.known.clusters import busy_day


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


def wanted(pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Run times that a few tasks want on so many processors: before they hurry, and after."""
    cluster, tasks = cluster_of(on_two_kinds(pairs, pairs))
    before = cluster.curves.rows["free_s"].reshape(-1, 2)[tasks].copy()
    for i in tasks:
        hurry.hasten(cluster, i, 0.0)
    return before, cluster.curves.rows["free_s"].reshape(-1, 2)[tasks]


def test_tasks_hurry_on_few_processors_and_less_on_more():
    part = []
    for pairs in (1, 4, 16, 256):
        before, after = wanted(pairs)
        able = np.isfinite(before)
        assert np.all(after[able] <= before[able])
        part.append(float((after[able] / before[able]).mean()))
    assert part == sorted(part)
    assert part[0] < 0.97
    assert part[-1] == 1.0


def test_on_one_processor_a_run_is_no_longer_than_saves_what_it_may_cost_the_next():
    cluster, tasks = cluster_of(on_two_kinds(1, 1))
    rows = cluster.curves.rows
    for i in tasks[:8]:
        row, before = 2 * i, rows["free_s"][2 * i]
        power_w = rows["free_j"][row] / before
        hurry.hasten(cluster, i, 0.0)
        price_w = hurry.ONLY * hurry.crowding(cluster, 0, 1.0) ** 2 * power_w
        most = max(rows["short_s"][row], at_slope_s(cluster.curves, row, -price_w))
        assert rows["free_s"][row] <= most * (1.0 + 1e-12)
        assert rows["free_s"][row] < before


def test_the_chance_of_no_room_rises_with_what_comes_and_falls_with_time():
    cluster, tasks = cluster_of(on_two_kinds(4, 4))
    chances = []
    for i in tasks[:8]:
        hurry.hasten(cluster, i, 0.0)
        chances.append(hurry.crowding(cluster, 0, 0.0))
    hurry.hasten(cluster, tasks[8], 10.0 * 86400.0)
    assert chances == sorted(chances)
    assert hurry.crowding(cluster, 0, 0.0) < chances[0]


def test_who_cannot_wait_for_a_wake_is_no_sign_that_room_is_scarce():
    cluster, tasks = cluster_of(mei.offline(3, utilisation=0.01, cluster=mei.Cluster(16, 4)))
    hurry.note_no_room(cluster, tasks[0], 0.0)
    assert cluster.pools["hurry"][0] == 0.5
    cluster.pools["hurry"][0] = 0.0
    cluster.asleep[0, 1] = cluster.tasks["deadline_s"][tasks[0]]
    hurry.note_no_room(cluster, tasks[0], 0.0)
    assert cluster.pools["hurry"][0] == 0.0


def test_nobody_waits_where_all_of_a_kind_is_awake_or_room_was_missing():
    cluster, _ = cluster_of(mei.offline(3, utilisation=0.01, cluster=mei.Cluster(16, 4)))
    calm = accept._patience(cluster, 0)
    cluster.pools["hurry"][0] = 0.5
    assert accept._patience(cluster, 0) == pytest.approx(calm / 2)
    cluster.pools["awake"][0] = 16
    assert accept._patience(cluster, 0) == 0.0


def in_a_queue(hurried: float):
    """An awake processor, and four tasks that are due later the sooner they come."""
    cluster, told = cluster_of(mei.offline(3, utilisation=0.01, cluster=mei.Cluster(16, 4)))
    tasks = told[:4]
    cluster.pools["hurry"][0] = hurried
    awake.wake(cluster, 0, 0.0)
    cluster.tasks["deadline_s"][tasks] = [1e5, 9e4, 8e4, 7e4]
    for i in tasks:
        flat.put_in_order(cluster, 0, i, 1e4, 0.0)
    return cluster, tasks


def queue_of(cluster) -> list[int]:
    """What waits for the first processor, in order."""
    found, i = [], cluster.processors["head"][0]
    while i >= 0:
        found.append(int(i))
        i = cluster.tasks["after"][i]
    return found


def test_as_room_is_scarce_queues_are_in_order_of_deadline():
    for hurried in (0.0, 0.4, 1.0):
        cluster, tasks = in_a_queue(hurried)
        order = list(tasks) if hurried == 0.0 else list(tasks[::-1])
        if hurried == 0.4:  # what is due a little sooner does not go first
            order = list(tasks)
        assert queue_of(cluster) == order
        assert list(cluster.tasks["start_s"][order]) == [0.0, 1e4, 2e4, 3e4]
        assert cluster.processors["end_s"][0] == 4e4


def test_a_task_goes_ahead_of_the_first_that_is_due_later_as_far_as_that_has_time():
    cluster, tasks = in_a_queue(1.0)
    new = tasks.max() + 1
    cluster.tasks["deadline_s"][new] = 7.5e4
    behind, start_s, room_s = processors.room_ahead(cluster, 0, new, 0.0, 4)
    assert (behind, start_s, room_s) == (tasks[3], 1e4, 6e4)
    cluster.tasks["deadline_s"][tasks[2]] = 7.6e4
    cluster.tasks["deadline_s"][tasks[1]] = 4e4
    assert processors.room_ahead(cluster, 0, new, 0.0, 4)[2] == 1e4
    assert processors.room_ahead(cluster, 0, new, 0.0, 3)[2] == -1.0


@pytest.mark.parametrize("seed", [310400, 310523])
def test_short_jobs_are_kept_that_a_long_one_would_have_kept_out(seed: int):
    """liu's sets: two and three jobs were refused while the queue of the GPU was first come."""
    problem = liu.job_set(seed, load="heavy", arrivals_s=120.0)
    for spec in ("late", "liu"):
        assert np.all(played(problem, policy_of(spec)).outcomes.status == DONE)


def test_what_is_broken_counts_neither_as_working_nor_as_awake():
    cluster, _ = cluster_of(mei.offline(3, utilisation=0.01, cluster=mei.Cluster(16, 4)))
    awake.wake(cluster, 0, 0.0)
    assert (cluster.pools["up"][0], cluster.pools["awake"][0]) == (16, 4)
    cluster.processors["up"][1] = 0
    cluster.servers["works"][3] = 0
    awake.count_working(cluster)
    assert (cluster.pools["up"][0], cluster.pools["awake"][0]) == (11, 3)
    awake.sleep(cluster, 0, 0.0)
    assert cluster.pools["awake"][0] == 0


def test_a_kind_without_processors_has_no_time_at_which_it_is_empty():
    cluster, _ = cluster_of(on_two_kinds(4, 0))
    assert accept._empty_times_s(cluster, 1, 5.0, True).size == 0
    assert accept._empty_times_s(cluster, 1, 5.0, False).size == 0
    assert accept._empty_times_s(cluster, 0, 5.0, False).tolist() == [5.0]


def test_one_long_task_among_short_ones_is_no_crowd():
    """A job of days on 32 of 256 processors, and 40 short ones within a minute."""
    day = mei.offline(3, utilisation=0.05, cluster=mei.Cluster(256, 8))
    count, tasks = 41, day.tasks
    long = np.arange(count) == 10
    scale = np.where(long, 300.0, 0.1) * tasks.scale[:count]
    problem = replace(
        day,
        tasks=Tasks.of(
            tasks.application[:count],
            scale=scale,
            arrival_s=np.arange(count, dtype=float),
            deadline_s=np.arange(count) + 2.5 * scale * day.frontier(0).t_min_s[:count].max(),
            processors=np.where(long, 32, 1),
        ),
    )
    cluster, told = cluster_of(problem)
    for i in told:
        hurry.hasten(cluster, i, float(i))
    assert hurry.crowding(cluster, 0, 0.0) < 1e-6


def short_jobs(window_s: float, gang: int = 1) -> Problem:
    """A job of 50 s a minute for two hours, every fifth of them, and the last, gangs."""
    day = busy_day(3, 120)
    n, arrival_s = len(day.tasks), 60.0 * (1.0 + np.arange(len(day.tasks)))
    fast_s = day.frontier(0).t_min_s / day.tasks.scale
    able = np.arange(n) % 10 == 0
    made = replace(
        day.tasks,
        scale=50.0 / fast_s,
        arrival_s=arrival_s,
        deadline_s=arrival_s + np.where(able, 400.0, window_s),
        processors=np.where(np.arange(n) % 5 == 4, gang, 1),
    )
    return replace(day, tasks=made)


@pytest.mark.parametrize("gang", [1, 2])
def test_servers_stay_awake_for_jobs_that_cannot_wait_for_a_wake(gang: int) -> None:
    """A wake takes 60 s: nine of ten have 20 s to spare, later 80 s."""
    urgent, others = short_jobs(70.0, gang), short_jobs(130.0, gang)
    least_j = account(others, plan(others, "edl")).total_j
    for policy in ("late", "prompt"):
        done = np.sum(plan(urgent, policy).outcomes.status == DONE)
        assert done > 100 > 1.5 * np.sum(plan(urgent, "race").outcomes.status == DONE)
        given = plan(others, policy)  # all can wait, but a wake each would cost more than to idle
        assert np.sum(given.outcomes.status == DONE) == 120
        assert account(others, given).total_j < 1.1 * least_j


def two_of_one_clock(rows: list[tuple[int, float, float, float]]) -> Problem:
    """One processor of each of two kinds; rows (application, length, arrival, due)."""
    one = ClockTable(np.array([1.0]), np.array(1.0), 1.0, 1.0)
    kinds = [Kind(name, one, 5.0, "none", "locked") for name in "ab"]
    specs = [
        ServerSpec(name, ((name, 1),), host_w=1.0, wake_j=1e7, initially_on=True) for name in "ab"
    ]
    watts, seconds = np.array([50.0, 200.0]), np.array([100.0, 100.0])
    profiles = CpuProfiles(seconds, watts, np.array([3.0, 3.0]), watts)
    either, first, second = [0, 0], [0, -1], [-1, 0]
    group, row = np.array([either, first, second]), np.tile([0, 1], (3, 1))
    library = Library(np.array(["x", "y", "z"], object), ("a", "b"), (profiles,), group, row)
    application, length, arrival, due = zip(*rows, strict=True)
    tasks = Tasks.of(
        list(application), deadline_s=list(due), arrival_s=list(arrival),
        scale=[each / 100.0 for each in length],
    )  # fmt: skip
    return Problem(tasks, library, Platform.build(kinds, tuple(specs)))


@pytest.mark.parametrize("stepwise", [False, True])
def test_what_is_moved_to_an_idle_processor_is_timed_from_now(stepwise: bool) -> None:
    """It was timed from when the processor became free: the next task was promised taken time."""
    x, y, z = 0, 1, 2
    problem = two_of_one_clock([
        (y, 2000, 0, 2100), (x, 400, 500, 2520), (x, 400, 500, 3040), (y, 400, 1000, 2450),
        (z, 700, 1000, 2460), (z, 700, 1000, 2900),
    ])  # fmt: skip
    schedule = played(problem, policy_of("late"), stepwise=stepwise)
    assert np.all(np.isin(schedule.outcomes.status, [DONE, REJECTED]))
    assert np.sum(schedule.outcomes.status == DONE) >= 5


def unlike_wakes(seed: int) -> Problem:
    """Few jobs, most of them soon due, on servers of which some wake at once and others late."""
    rng = np.random.default_rng([seed, 99])
    one = np.ones(1)
    profiles = CpuProfiles(10.0 * one, 20.0 * one, 3.0 * one, 0.0 * one)
    library = Library.of_one_kind(np.array(["a"], dtype=object), "c", profiles)
    kind = Kind("c", ClockRange(0.5, 2.0), float(rng.choice([0.0, 5.0])))

    def servers(name: str, most: int, wake_s: float) -> ServerSpec:
        size, count = (int(x) for x in rng.integers(1, (3, most)))
        host_w = float(rng.uniform(0.0, 100.0))
        return ServerSpec(name, (("c", size),), count, wake_s=wake_s, wake_j=10.0, host_w=host_w)

    near = servers("near", 3, 0.0)
    far = servers("far", 4, float(rng.choice([5.0, 50.0, 100.0])))
    n = int(rng.integers(3, 12))
    due_s = rng.choice([10.0, 20.0, 30.0, 110.0, 130.0, 400.0], n)
    tasks = Tasks.of(np.zeros(n, int), scale=rng.uniform(0.3, 2.0, n), deadline_s=due_s)
    return Problem(tasks, library, Platform.build([kind], [near, far]))


def test_a_packing_leaves_out_no_more_than_race_where_some_servers_wake_late() -> None:
    done = {"late": [], "race": []}
    for problem in map(unlike_wakes, range(60)):
        for spec, counts in done.items():
            counts.append(int(np.sum(played(problem, policy_of(spec)).outcomes.status == DONE)))
    assert sum(done["late"]) > sum(done["race"])
    assert sum(a < b for a, b in zip(done["late"], done["race"], strict=True)) <= 1
