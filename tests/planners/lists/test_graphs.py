"""Task graphs under list policies: ready when what precedes has really ended, deadlines shared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.engine.facts import ARRIVED, CANCELLED, FINISHED, Fact, Facts
from downclock.engine.play import plan
from downclock.engine.scheduler import Scheduler
from downclock.planners.catalog import policy
from downclock.planners.lists.windows import windows
from downclock.power.library import Library
from downclock.power.profiles import GpuProfiles
from downclock.problem.graph import Edges
from downclock.problem.problem import Problem
from downclock.report.rejections import rejections
from downclock.schedule.schedule import DONE, FAILED, REJECTED
from downclock.schedule.verify.verify import verify
from tests.generated import random_problem
from tests.planners.lists.test_gangs import LISTS, jobs, lanes, running


def graph(
    *edges: tuple[int, int],
    rows: tuple[tuple[int, float, float], ...],
    deadline_s: float = 1e4,
    servers: tuple[int, ...] = (2, 2),
) -> Problem:
    """Jobs (processors, seconds, arrival) with edges between them."""
    before, after = np.array(edges, dtype=np.int64).T
    problem = jobs(*rows, servers=servers, deadline_s=deadline_s)
    return replace(problem, edges=Edges(before, after))


CHAIN = ((1, 20.0, 0.0), (2, 30.0, 0.0), (1, 10.0, 0.0))


@pytest.mark.parametrize("spec", LISTS)
def test_a_task_starts_when_all_before_it_have_ended(spec: str) -> None:
    problem = graph((0, 1), (1, 2), rows=CHAIN)
    schedule = plan(problem, policy(spec))
    assert verify(problem, schedule).ok
    assert np.all(schedule.outcomes.status == DONE)
    assert lanes(schedule, 1)[1] == pytest.approx(lanes(schedule, 0)[2])
    assert lanes(schedule, 2)[1] == pytest.approx(lanes(schedule, 1)[2])


def test_paths_share_their_time_and_leave_what_follows_its_fastest() -> None:
    """A chain of 2 and 3 s until 20: stretched by four; and a task of 1 s that may take all."""
    edges = Edges(np.array([0]), np.array([1]))
    found = windows(edges, np.zeros(3), np.array([np.inf, 20.0, 9.0]), np.array([2.0, 3.0, 1.0]))
    assert found.start_s.tolist() == [0.0, 8.0, 0.0]
    assert found.end_s.tolist() == [8.0, 20.0, 9.0]
    assert found.latest_s.tolist() == [17.0, 20.0, 9.0]


def test_what_is_told_later_does_not_count_yet() -> None:
    edges = Edges(np.array([0]), np.array([1]))
    found = windows(edges, np.array([0.0, 5.0]), np.array([30.0, 12.0]), np.array([2.0, 3.0]))
    assert found.latest_s.tolist() == [30.0, 12.0]


def test_what_can_run_nowhere_bounds_nothing_where_there_is_no_deadline() -> None:
    never = np.full(2, np.inf)
    edges = Edges(np.array([0]), np.array([1]))
    with np.errstate(all="raise"):
        found = windows(edges, np.zeros(2), never, np.array([2.0, np.inf]))
    assert found.latest_s.tolist() == [np.inf, np.inf]


def test_what_precedes_hurries_so_that_what_follows_is_on_time() -> None:
    problem = graph((0, 1), (1, 2), rows=CHAIN, deadline_s=59.0)
    schedule = plan(problem, policy("race"))
    assert verify(problem, schedule).ok
    assert np.all(schedule.outcomes.status == DONE)
    assert lanes(schedule, 0)[2] < 20.0  # 60 s at default clocks


def test_what_cannot_be_on_time_is_rejected_with_all_that_follows() -> None:
    problem = graph((0, 1), (1, 2), rows=CHAIN, deadline_s=30.0)
    schedule = plan(problem, policy("edl"))
    assert np.all(schedule.outcomes.status == REJECTED)
    assert not len(schedule.segments)
    assert schedule.outcomes.reason[2] == "a task before it did not finish"
    step = plan(problem, policy("edl"), stepwise=True)
    assert step.outcomes.reason[1] == schedule.outcomes.reason[1]


def test_a_kind_that_no_server_has_makes_nothing_faster() -> None:
    """The first has to end by 70 s less at least 26: its turn is before the last, due at 50 s.

    On the kind that is not there a task takes a tenth of its time.
    """
    problem = graph((0, 1), rows=((1, 20.0, 0.0), (1, 30.0, 0.0), (1, 20.0, 0.0)), servers=(1,))
    deadline_s = np.array([1e4, 70.0, 50.0])
    problem = replace(problem, tasks=replace(problem.tasks, deadline_s=deadline_s))
    here, library = problem.platform.kinds[0], problem.library
    fast = GpuProfiles(*(np.array([v]) for v in (100.0, 0.0, 200.0, 0.1, 0.5, 0.0)))
    wider = replace(
        problem,
        platform=replace(problem.platform, kinds=(here, replace(here, name="gone"))),
        library=Library(
            library.names, ("gpu", "gone"), (*library.groups, fast), np.array([[0, 1]]),
            np.zeros((1, 2), np.int64),
        ),
    )  # fmt: skip
    found, plain = (plan(each, policy("race")) for each in (wider, problem))
    assert [lanes(found, task) for task in range(3)] == [lanes(plain, task) for task in range(3)]
    assert lanes(found, 0)[1] == 0.0


@pytest.mark.parametrize("spec", LISTS)
def test_what_comes_too_late_for_what_follows_is_told_so(spec: str) -> None:
    """At full speed they take 17.494 and 5.248 s: the second, due at 25 s, begins by 19.752 s."""
    problem = graph((0, 1), rows=((1, 20.0, 100.0), (1, 6.0, 0.0)))
    deadline_s = np.array([200.0, 25.0])
    problem = replace(problem, tasks=replace(problem.tasks, deadline_s=deadline_s))
    schedule = plan(problem, policy(spec))
    assert schedule.outcomes.status.tolist() == [REJECTED, REJECTED]
    assert schedule.outcomes.reason[0] == (
        "cannot end by 19.7518 s, as late as what follows it allows, even at full speed:"
        " earliest 117.494 s"
    )
    assert rejections(problem, schedule)[0].why == schedule.outcomes.reason[0]


def test_a_server_that_is_about_to_sleep_takes_what_is_ready() -> None:
    problem = graph((0, 1), rows=((1, 20.0, 0.0), (1, 30.0, 0.0)), servers=(1,))
    waking = replace(problem.platform, wake_s=np.array([5.0]), initially_on=np.array([False]))
    problem = replace(problem, platform=waking)
    schedule = plan(problem, policy("race"))
    assert lanes(schedule, 1)[1] == pytest.approx(25.0)  # not woken again
    assert verify(problem, schedule).ok


def test_milestones_hand_on_at_once() -> None:
    problem = graph((0, 1), (1, 2), rows=CHAIN)
    scale = problem.tasks.scale.copy()
    scale[1] = 0.0
    problem = replace(problem, tasks=replace(problem.tasks, scale=scale))
    schedule = plan(problem, policy("race"))
    assert verify(problem, schedule).ok
    assert lanes(schedule, 2)[1] == pytest.approx(lanes(schedule, 0)[2])


def told(problem: Problem) -> Scheduler:
    scheduler = Scheduler(problem, policy("race"))
    fresh = scheduler.tell(problem.tasks, np.arange(len(problem.tasks)), problem.edges)
    scheduler.handle(Facts(0.0, [Fact(ARRIVED, int(task)) for task in fresh]))
    return scheduler


def test_an_early_end_lets_what_follows_start_at_once() -> None:
    scheduler = told(graph((0, 1), (1, 2), rows=CHAIN))
    assert set(running(scheduler)) == {0}
    scheduler.handle(Facts(3.0, [Fact(FINISHED, 0)]))
    assert set(running(scheduler)) == {1}
    assert len(running(scheduler)[1]) == 2


def test_what_runs_over_keeps_what_follows_waiting() -> None:
    scheduler = told(graph((0, 1), rows=CHAIN[:2]))
    scheduler.handle(Facts(scheduler.next_s, []))
    assert set(running(scheduler)) == {0}
    scheduler.handle(Facts(26.0, [Fact(FINISHED, 0)]))
    assert set(running(scheduler)) == {1}


def test_a_cancelled_task_takes_what_follows_with_it() -> None:
    scheduler = told(graph((0, 1), (1, 2), rows=(*CHAIN, (1, 5.0, 0.0))))
    scheduler.handle(Facts(2.0, [Fact(CANCELLED, 0)]))
    assert [page.status == REJECTED for page in scheduler.book.tasks][1:3] == [True, True]
    assert set(running(scheduler)) <= {3}


@pytest.mark.parametrize("name", ["race", "edl", "late"])
def test_what_follows_a_milestone_that_is_reached_late_is_no_orphan(name: str) -> None:
    """As after any task that was done too late: it has failed, but it was done."""
    knobs = {"edges": True, "slot_s": None, "chip_wide": False, "tasks": 62}
    problem = random_problem(50097, deadlines=True, **knobs)
    schedule = plan(problem, policy(name))
    verdict = verify(problem, schedule)
    assert verdict.ok, verdict
    late = (schedule.outcomes.status == FAILED) & (problem.tasks.scale == 0.0)
    assert name == "late" or late.any()
