"""Workflows on clusters: order is kept, slack is shared, all of a workflow is done or none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.workflow_day import bound_j
from benchmarks.workflow_day import day as workflow_day

from downclock.engine.facts import AMENDED, ARRIVED, CANCELLED, Fact, Facts
from downclock.engine.play import plan
from downclock.engine.scheduler import Scheduler
from downclock.planners.catalog import policy
from downclock.power.points import ClockRange
from downclock.problem.graph import Edges
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE, FAILED, PENDING, REJECTED, Schedule
from downclock.schedule.verify.verify import verify
from downclock.simulate.chances import Chances
from downclock.simulate.simulate import simulate
from downclock.workloads import mei
from downclock.workloads.chip import chip_problem
from downclock.workloads.task_graph import TaskGraph
from tests.generated import random_problem
from tests.golden.problems import problems, realised
from tests.laws.test_engine import same

GRAPHS = {"edges": True, "slot_s": None, "chip_wide": False}


def joined(room: float, pairs: list[tuple[int, int]], tasks: int, pair: int = 8) -> Problem:
    """Tasks of the papers that come at time 0 and are joined; ``room`` times the longest path."""
    drawn = mei.offline(3, utilisation=0.01, cluster=mei.Cluster(pairs=pair, per_server=4))
    length_s = drawn.frontier(0).cheapest(0.0).time_s
    path_s = length_s[:tasks].copy()
    for u, v in pairs:
        path_s[v] = max(path_s[v], path_s[u] + length_s[v])
    ends = np.full(tasks, room * path_s.max())
    rows, scale = drawn.tasks.application[:tasks], drawn.tasks.scale[:tasks]
    edges = Edges(np.array([u for u, _ in pairs]), np.array([v for _, v in pairs]))
    return replace(drawn, tasks=Tasks.of(rows, deadline_s=ends, scale=scale), edges=edges)


def times(schedule: Schedule) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of each task."""
    order = np.argsort(schedule.segments.task)
    return schedule.segments.start_s[order], schedule.segments.end_s[order]


def test_time_is_shared_in_proportion_to_the_run_times_that_tasks_want():
    problem = joined(0.8, [(0, 1), (1, 2)], 3)
    schedule = plan(problem, policy("late"))
    assert verify(problem, schedule).ok
    start_s, end_s = times(schedule)
    assert end_s[2] == pytest.approx(problem.tasks.deadline_s[2])
    fast = problem.frontier(0).t_min_s
    spare = (problem.frontier(0).cheapest(0.0).time_s - fast)[:3]
    given = (end_s - start_s) - fast[:3]
    assert given / spare == pytest.approx(np.full(3, given.sum() / spare.sum()), rel=1e-6)
    energy_j = float(account(problem, schedule).energy_j["run"])
    assert energy_j <= 1.02 * bound_j(problem, np.ones(3, bool))


def test_a_task_starts_when_those_before_it_have_really_ended():
    problem = joined(1.0, [(0, 1), (1, 2)], 3)
    run = simulate(problem, policy("late"), chances=Chances(actual="uniform:0.5:0.6"), seed=1)
    start_s, end_s = times(run.realised)
    planned_s, _ = times(run.promised)
    assert verify(problem, run.realised).ok
    assert np.all(start_s[1:] < planned_s[1:])
    assert start_s[1:] == pytest.approx(end_s[:-1])


def test_what_follows_one_that_takes_longer_is_moved_and_hurries():
    problem = joined(1.6, [(0, 1), (1, 2)], 3)
    run = simulate(problem, policy("late"), chances=Chances(actual="uniform:1.15:1.2"), seed=1)
    assert verify(problem, run.realised).ok
    assert np.all(run.realised.outcomes.status == DONE)
    start_s, end_s = times(run.realised)
    assert np.all(start_s[1:] >= end_s[:-1])


def test_a_workflow_that_cannot_be_in_time_is_refused_whole_and_says_why():
    problem = joined(1.0, [(0, 1), (1, 2), (0, 3)], 4)
    fast = problem.frontier(0).t_min_s
    deadline_s = problem.tasks.deadline_s.copy()
    deadline_s[2] = 0.9 * fast[:3].sum()
    problem = replace(problem, tasks=replace(problem.tasks, deadline_s=deadline_s))
    for stepwise in (False, True):
        schedule = plan(problem, policy("late"), stepwise=stepwise)
        assert np.all(schedule.outcomes.status == REJECTED)
        assert all("even at full speed" in reason for reason in schedule.outcomes.reason)
        others = [r for r in schedule.outcomes.reason if r.startswith("its workflow is refused")]
        assert len(others) == 3


def test_more_tasks_side_by_side_than_processors_still_are_in_time():
    pairs = [(0, k) for k in range(1, 13)] + [(k, 13) for k in range(1, 13)]
    problem = joined(6.0, pairs, 14, pair=4)
    schedule = plan(problem, policy("late"))
    assert verify(problem, schedule).ok
    assert np.all(schedule.outcomes.status == DONE)


def test_milestones_join_what_is_before_and_after_them():
    problem = joined(1.5, [(0, 2), (1, 2), (2, 3), (2, 4)], 5)
    scale = problem.tasks.scale.copy()
    scale[2] = 0.0
    problem = replace(problem, tasks=replace(problem.tasks, scale=scale))
    schedule = plan(problem, policy("late"))
    assert verify(problem, schedule).ok
    assert np.all(schedule.outcomes.status == DONE)
    s = schedule.segments
    before, after = s.end_s[s.task < 2].max(), s.start_s[s.task > 2].min()
    assert before <= after
    same(schedule, plan(problem, policy("late"), stepwise=True))


def told(problem: Problem) -> Scheduler:
    """A scheduler that was told of all tasks at time 0."""
    scheduler = Scheduler(problem, policy("late"))
    fresh = scheduler.tell(problem.tasks, np.arange(len(problem.tasks)), problem.edges)
    scheduler.handle(Facts(0.0, [Fact(ARRIVED, int(task)) for task in fresh]))
    return scheduler


def test_what_follows_a_cancelled_task_ends_with_it():
    scheduler = told(joined(3.0, [(0, 1), (1, 2), (0, 3)], 4))
    scheduler.handle(Facts(1.0, [Fact(CANCELLED, 1)]))
    status = [page.status for page in scheduler.book.tasks]
    assert status == [PENDING, REJECTED, REJECTED, PENDING]
    assert scheduler.state.board.tasks["booked"][1:3].tolist() == [-1, -1]


def test_another_deadline_moves_the_windows_of_all_that_is_joined():
    problem = joined(4.0, [(0, 1), (1, 2)], 3)
    scheduler = told(problem)
    tasks = scheduler.state.board.tasks
    before = tasks["deadline_s"][:3].copy()
    sooner_s = 0.5 * problem.tasks.deadline_s[2]
    scheduler.handle(Facts(1.0, [Fact(AMENDED, 2, value=sooner_s)]))
    tasks = scheduler.state.board.tasks
    waiting = tasks["place"][:3] < 0
    assert tasks["deadline_s"][2] == sooner_s
    assert np.all(tasks["deadline_s"][:3][waiting] < before[waiting])
    ends = tasks["start_s"] + tasks["length_s"]
    assert np.all(ends[:3][waiting] <= tasks["deadline_s"][:3][waiting] * (1 + 1e-9))


@pytest.mark.parametrize("spec", ["late", "prompt", "late:reserve=0.2"])
@pytest.mark.parametrize("seed", range(10))
def test_drawn_graphs_are_valid_and_nothing_accepted_is_late(spec, seed):
    problem = random_problem(700 + seed, tasks=(8, 24, 40)[seed % 3], **GRAPHS)
    schedule = plan(problem, policy(spec))
    verdict = verify(problem, schedule)
    assert verdict.ok, str(verdict)
    assert np.all(np.isin(schedule.outcomes.status, (DONE, REJECTED)))
    same(schedule, plan(problem, policy(spec), stepwise=True))


@pytest.mark.parametrize("seed", range(8))
def test_failures_overruns_and_repairs_are_followed_in_graphs(seed):
    problem = random_problem(720 + seed, tasks=24, **GRAPHS)
    chances = Chances(
        actual="uniform:0.6:1.4", fail_jobs=0.1, server_life="exponential:300",
        processor_life="exponential:400", repair_s=40.0,
    )  # fmt: skip
    run = simulate(problem, policy("late"), chances=chances, seed=seed)
    verdict = verify(problem, run.realised)
    assert verdict.ok, str(verdict)
    assert np.all(np.isin(run.realised.outcomes.status, (DONE, REJECTED, FAILED)))


def test_tasks_of_no_length_to_speak_of_that_are_too_late_end_after_they_start():
    problem = problems()["chip-local-7"]
    schedule = realised(problem, policy("late:reserve=0.2"), "rough")
    assert verify(problem, schedule).ok
    assert np.all(schedule.segments.end_s >= schedule.segments.start_s)


@pytest.mark.parametrize("per_server", [4, 8])
def test_a_day_of_workflows_is_near_the_bound_and_done_whole(per_server):
    problem, of = workflow_day(1, per_server, 0.06, (0.15, 0.85))
    schedule = plan(problem, policy("late"))
    assert verify(problem, schedule).ok
    done = schedule.outcomes.status == DONE
    assert np.all(np.isin(np.bincount(of, done) / np.bincount(of), (0.0, 1.0)))
    assert done.all()
    gap = account(problem, schedule).server_j.sum() / bound_j(problem, done) - 1.0
    assert 0.0 <= gap < 0.02 * per_server


@pytest.mark.parametrize("spec", ["late", "prompt"])
def test_a_chain_on_a_clock_without_a_limit_runs_at_one_speed(spec: str) -> None:
    """The slowest clock is the cheapest, so all deadlines bind: work^3 / time^2 is the least."""
    work = np.array([1.0, 4.0, 2.0, 8.0])
    edges = Edges(np.arange(3), np.arange(1, 4))
    names = np.array([f"t{i}" for i in range(4)], dtype=object)
    graph = TaskGraph("chain", names, work, edges)
    problem = chip_problem(graph, 1, 60.0, chip_wide=False)
    schedule = plan(problem, policy(spec))
    assert verify(problem, schedule).ok
    assert account(problem, schedule).total_j == pytest.approx(15.0**3 / 60.0**2, rel=1e-6)


@pytest.mark.parametrize("spec", ["late", "prompt"])
def test_a_task_waits_on_where_the_one_before_ends_within_the_same_digits(spec: str) -> None:
    """At 5e11 s a run of half a millisecond is eight steps of time: its start never came."""
    edges = Edges(np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]))
    graph = TaskGraph("tiny", np.array([*"abcd"], object), np.array([1e15, 0.0, 6e-4, 2.0]), edges)
    clocks = ClockRange(0.2, 4000.0)
    problem = chip_problem(graph, 2, 478316127231.2898, c2=2.0, chip_wide=False, clocks=clocks)
    assert plan(problem, policy(spec)).outcomes.status.tolist() == [DONE] * 4
