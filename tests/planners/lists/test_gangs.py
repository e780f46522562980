"""Gangs under list policies: together, on one server where they fit, nothing promised put off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.engine.facts import ARRIVED, FINISHED, LOST, SERVER_DOWN, Fact, Facts
from downclock.engine.play import plan
from downclock.engine.scheduler import Scheduler
from downclock.planners.catalog import policy
from downclock.power.library import Library
from downclock.power.points import WIDE
from downclock.power.profiles import GpuProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.schedule import DONE, REJECTED, Schedule
from downclock.schedule.verify.verify import verify

LISTS = ("race", "static-cap", "edl", "edf-bf", "edf-wf", "lpt-ff", "bin")


def jobs(
    *rows: tuple[int, float, float], servers: tuple[int, ...] = (4, 4), deadline_s: float = 1e4
) -> Problem:
    """Jobs (processors, seconds at the default clock, arrival) on servers that are on."""
    many, run_s, arrival_s = np.array(rows).T
    profiles = GpuProfiles(*(np.array([v]) for v in (100.0, 0.0, 200.0, 1.0, 0.5, 0.0)))
    names = np.array(["app"], dtype=object)
    platform = Platform.build(
        (Kind("gpu", WIDE, idle_w=30.0),),
        tuple(
            ServerSpec(f"s{j}", (("gpu", size),), initially_on=True, host_w=10.0)
            for j, size in enumerate(servers)
        ),
    )
    tasks = Tasks.of(
        np.zeros(len(rows), np.int64),
        scale=run_s,
        arrival_s=arrival_s,
        deadline_s=arrival_s + deadline_s,
        processors=many.astype(np.int64),
    )
    return Problem(tasks, Library.of_one_kind(names, "gpu", profiles), platform, name="gangs")


def lanes(schedule: Schedule, task: int) -> tuple[list[int], float, float]:
    """Processors of a task, its start and its end; its rows are equal."""
    s = schedule.segments
    mine = np.flatnonzero(s.task == task)
    for column in (s.start_s, s.end_s, s.core, s.memory, s.share):
        assert np.unique(column[mine]).size == 1
    return sorted(s.processor[mine].tolist()), float(s.start_s[mine[0]]), float(s.end_s[mine[0]])


@pytest.mark.parametrize("spec", LISTS)
def test_a_gang_runs_together_on_one_server(spec: str) -> None:
    problem = jobs((1, 50.0, 0.0), (3, 20.0, 1.0), (4, 20.0, 2.0))
    schedule = plan(problem, policy(spec))
    assert verify(problem, schedule).ok
    assert np.all(schedule.outcomes.status == DONE)
    for task, many in ((1, 3), (2, 4)):
        processors, _, _ = lanes(schedule, task)
        assert len(processors) == many
        assert np.unique(problem.platform.server[processors]).size == 1


def test_a_short_job_runs_before_a_gang_that_waits_and_does_not_put_it_off() -> None:
    """One server of 4, busy on one processor until 100: a gang of 4 waits, three are idle."""
    alone = ((1, 100.0, 0.0), (4, 30.0, 1.0))
    late = plan(jobs(*alone, servers=(4,)), policy("race"))
    assert lanes(late, 1)[1] == pytest.approx(100.0)
    problem = jobs(*alone, (1, 60.0, 2.0), (2, 200.0, 3.0), servers=(4,))
    schedule = plan(problem, policy("race"))
    assert verify(problem, schedule).ok
    assert lanes(schedule, 1)[1:] == lanes(late, 1)[1:]
    assert lanes(schedule, 2)[1] == 2.0  # it fits before the gang
    assert lanes(schedule, 3)[1] == pytest.approx(130.0)  # it does not


def test_a_gang_fits_before_another_one_too() -> None:
    problem = jobs((1, 100.0, 0.0), (4, 30.0, 1.0), (3, 90.0, 2.0), servers=(4,))
    assert lanes(plan(problem, policy("race")), 2)[1] == 2.0


def test_what_no_server_holds_takes_whole_servers() -> None:
    problem = jobs((1, 40.0, 0.0), (8, 20.0, 1.0), (2, 5.0, 2.0), servers=(4, 4, 2))
    schedule = plan(problem, policy("race"))
    assert verify(problem, schedule).ok
    processors, start_s, _ = lanes(schedule, 1)
    assert processors == list(range(8))
    assert start_s == pytest.approx(40.0)
    assert lanes(schedule, 2)[1] == 2.0


def test_a_sleeping_server_is_woken_for_a_gang_the_smallest_that_holds_it() -> None:
    problem = jobs((2, 40.0, 0.0), (3, 20.0, 1.0), servers=(2, 8, 3))
    asleep = replace(problem.platform, initially_on=np.array([True, False, False]))
    problem = replace(problem, platform=replace(asleep, wake_s=np.full(3, 5.0)))
    schedule = plan(problem, policy("race"))
    assert verify(problem, schedule).ok
    assert lanes(schedule, 1) == ([10, 11, 12], 6.0, pytest.approx(26.0))


def test_a_gang_that_is_in_a_hurry_is_shortened_and_one_that_cannot_be_is_refused() -> None:
    problem = jobs((4, 50.0, 0.0), (4, 50.0, 0.0), servers=(4,), deadline_s=95.0)
    schedule = plan(problem, policy("race"))
    assert verify(problem, schedule).ok
    assert np.all(schedule.outcomes.status == DONE)
    assert max(lanes(schedule, i)[2] for i in (0, 1)) <= 95.0
    problem = jobs((4, 50.0, 0.0), (4, 50.0, 0.0), servers=(4,), deadline_s=60.0)
    schedule = plan(problem, policy("race"))
    assert sorted(schedule.outcomes.status.tolist()) == [DONE, REJECTED]
    assert "every processor is taken" in schedule.outcomes.reason[1]


def test_more_processors_than_there_are_is_refused_by_name() -> None:
    schedule = plan(jobs((9, 5.0, 0.0), (1, 5.0, 0.0)), policy("edl"))
    assert schedule.outcomes.status.tolist() == [REJECTED, DONE]
    rule = "needs 9 processors at once, of one kind; there are 8"
    assert schedule.outcomes.reason[0] == rule


def begun(problem: Problem, spec: str = "race") -> Scheduler:
    """A scheduler that was told of all tasks, which arrive at 0."""
    scheduler = Scheduler(problem, policy(spec))
    fresh = scheduler.tell(problem.tasks, np.arange(len(problem.tasks)))
    scheduler.handle(Facts(0.0, [Fact(ARRIVED, int(task)) for task in fresh]))
    return scheduler


def running(scheduler: Scheduler) -> dict[int, tuple[int, ...]]:
    """Processors of every task that runs."""
    rows = {row.task: row for row in scheduler.book.running if row is not None}
    return {task: tuple(sorted(row.processors)) for task, row in rows.items()}


def test_a_gang_starts_when_the_last_of_its_processors_is_really_free() -> None:
    scheduler = begun(jobs((1, 100.0, 0.0), (1, 60.0, 0.0), (2, 30.0, 0.0), servers=(2,)))
    assert set(running(scheduler)) == {0, 1}
    scheduler.handle(Facts(20.0, [Fact(FINISHED, 0)]))
    assert set(running(scheduler)) == {1}
    scheduler.handle(Facts(25.0, [Fact(FINISHED, 1)]))
    assert running(scheduler) == {2: (0, 1)}


def test_a_gang_moves_to_a_server_that_is_free_sooner_than_believed() -> None:
    scheduler = begun(jobs((2, 90.0, 0.0), (2, 90.0, 0.0), (2, 50.0, 0.0), servers=(2, 2)))
    first, waiting = running(scheduler), {0, 1, 2} - set(running(scheduler))
    freed = next(task for task, where in first.items() if where == (2, 3))
    scheduler.handle(Facts(10.0, [Fact(FINISHED, freed)]))
    assert running(scheduler)[waiting.pop()] == (2, 3)


def test_a_lost_gang_begins_again_elsewhere_and_what_waited_follows() -> None:
    scheduler = begun(jobs((3, 50.0, 0.0), (3, 40.0, 0.0), (1, 10.0, 0.0), servers=(4, 4)))
    hit = running(scheduler)
    server, task = 0, next(task for task, where in hit.items() if where[0] < 4 and len(where) == 3)
    lost = [Fact(LOST, t) for t, where in hit.items() if where[0] < 4]
    scheduler.handle(Facts(5.0, [*lost, Fact(SERVER_DOWN, place=server)]))
    assert all(p >= 4 for where in running(scheduler).values() for p in where)
    other = next(t for t, where in hit.items() if where[0] >= 4 and len(where) == 3)
    scheduler.handle(Facts(60.0, [Fact(FINISHED, t) for t in running(scheduler) if t != task]))
    assert other not in running(scheduler)
    assert running(scheduler)[task] == (4, 5, 6) or len(running(scheduler)[task]) == 3


def test_an_answer_names_each_task_once_however_many_facts_there_are() -> None:
    """Hundreds wait, a server of 8 fails: rows are as many as what moves, not times the facts."""
    n = 400
    problem = jobs(*[(1, 50.0, 0.0)] * n, servers=(8, 8), deadline_s=1e6)
    scheduler = begun(problem)
    lost = [Fact(LOST, t) for t, where in running(scheduler).items() if where[0] < 8]
    decided, _ = scheduler.handle(Facts(5.0, [*lost, Fact(SERVER_DOWN, place=0)]))
    assert np.unique(decided.place.task).size == len(decided.place) == n // 2
    assert np.unique(decided.revoke).size == decided.revoke.size <= n // 2


@pytest.mark.parametrize("spec", ["race", "edl", "bin"])
def test_a_gang_wakes_every_server_it_needs_again_and_again(spec: str) -> None:
    """Thirty gangs of four, far apart, on servers of one: 120 wakes, 120 sleeps, each written."""
    asked = jobs(*((4, 100.0, 1e5 * k) for k in range(30)), servers=(1, 1, 1, 1))
    found = plan(asked, policy(spec))
    assert verify(asked, found).ok
    assert found.outcomes.counts()["done"] == 30
    assert len(found.spans) == 120
