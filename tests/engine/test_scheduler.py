"""The scheduler without a clock: facts in, decisions out, whatever the world does."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pytest

from downclock.engine.decisions import Decisions, Switches
from downclock.engine.facts import (
    AMENDED,
    ARRIVED,
    CANCELLED,
    DOWN,
    FINISHED,
    LOST,
    SERVER_DOWN,
    SERVER_UP,
    UP,
    Fact,
    Facts,
)
from downclock.engine.outcome import schedule_of
from downclock.engine.play import plan, play
from downclock.engine.scheduler import Scheduler
from downclock.engine.snapshot import restored, saved
from downclock.engine.world import Incident, World
from downclock.errors import InvalidInput
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE, FAILED, REJECTED, Segments
from downclock.schedule.verify.verify import require_valid
from downclock.workloads import mei


@dataclass(frozen=True)
class InTurn:
    """Every task goes to the next processor in turn, as fast as can be; a lost one goes again."""

    name: str = "in-turn"
    heeds: ClassVar[frozenset[int]] = frozenset((ARRIVED, LOST, SERVER_UP))

    def objection(self, problem: Problem) -> str | None:
        return "the tasks form a graph" if len(problem.edges) else None

    def start(self, view) -> np.ndarray:
        return np.zeros(1 + view.platform.processor_count)  # whose turn, and when each is free

    def decide(self, state, view, facts):
        task, processor, start_s, end_s, points = [], [], [], [], []
        for i in [*facts.tasks(ARRIVED).tolist(), *facts.tasks(LOST).tolist()]:
            p = int(state[0]) % view.platform.processor_count
            front = view.frontier(int(view.platform.kind[p]), np.array([i]))
            begin = max(facts.now_s, state[1 + p])
            task.append(i)
            processor.append(p)
            start_s.append(begin)
            end_s.append(begin + float(front.t_min_s[0]))
            points.append(front.cheapest(np.inf).points[0])
            state[0], state[1 + p] = state[0] + 1, end_s[-1]
        rows = Segments.of(
            np.array(task, dtype=np.int64), np.array(processor, dtype=np.int64),
            np.array(start_s), np.array(end_s), np.array(points).reshape(-1, 3),
        )  # fmt: skip
        every = np.arange(view.platform.server_count)
        now = np.full(every.size, facts.now_s)
        power = Switches(every, np.ones(every.size, dtype=bool), now)
        return state, Decisions(place=rows, eager=True, power=power)

    def fold(self, state, view, coming):
        return None

    def saved(self, state):
        return {"state": state}

    def restored(self, view, columns):
        return np.array(columns["state"])


def problem_of(seed: int = 1) -> Problem:
    cluster = mei.Cluster(pairs=8, per_server=2)
    drawn = mei.online(seed, utilisation=0.002, initial_utilisation=0.001, cluster=cluster)
    return drawn


def begun() -> tuple[Problem, Scheduler]:
    """A scheduler that was told of two tasks at time 0; both run."""
    problem = problem_of()
    scheduler = Scheduler(problem, InTurn())
    fresh = scheduler.tell(problem.tasks, np.arange(2))
    scheduler.handle(Facts(0.0, [Fact(ARRIVED, int(task)) for task in fresh]))
    return problem, scheduler


def test_a_plan_is_a_play_in_the_world_where_estimates_come_true() -> None:
    problem = problem_of()
    schedule = plan(problem, InTurn())
    assert np.all(np.isin(schedule.outcomes.status, (DONE, FAILED)))
    done = schedule.outcomes.status == DONE
    assert done.sum() > 3
    require_valid(problem, schedule)
    fastest_s = problem.frontier(0).t_min_s[schedule.segments.task]
    assert schedule.segments.end_s - schedule.segments.start_s == pytest.approx(fastest_s)


def test_what_ends_early_lets_the_next_start_at_once_and_is_billed_as_it_ran() -> None:
    problem = problem_of()
    n = len(problem.tasks)
    whole = plan(problem, InTurn())
    half = play(problem, InTurn(), World(problem, np.full(n, 0.5))).schedule
    require_valid(problem, half)
    ratio = account(problem, half).energy_j["run"] / account(problem, whole).energy_j["run"]
    assert ratio == pytest.approx(0.5)
    assert half.outcomes.work == pytest.approx(0.5)


def test_a_lost_attempt_is_written_down_and_the_task_has_another() -> None:
    problem = problem_of()
    breaks = np.full((len(problem.tasks), 4), 2.0)
    breaks[0, 0] = 0.25
    run = play(problem, InTurn(), World(problem, breaks=breaks)).schedule
    require_valid(problem, run)
    mine = run.segments.task == 0
    assert run.segments.attempt[mine].tolist() == [0, 1]
    assert run.segments.share[mine] == pytest.approx([0.25, 1.0])


def test_without_retries_a_lost_attempt_is_the_end() -> None:
    problem = problem_of()
    breaks = np.full((len(problem.tasks), 1), 2.0)
    breaks[0, 0] = 0.25
    run = play(problem, InTurn(), World(problem, breaks=breaks), retries=0).schedule
    assert run.outcomes.status[0] == FAILED
    assert run.outcomes.reason[0].startswith("lost 1 attempt, at ")


def test_a_server_that_fails_takes_its_tasks_along_and_is_woken_when_repaired() -> None:
    problem = problem_of()
    incidents = [Incident(1.0, SERVER_DOWN, 0), Incident(50.0, SERVER_UP, 0)]
    run = play(problem, InTurn(), World(problem, incidents=incidents)).schedule
    require_valid(problem, run)
    assert np.any(run.segments.attempt > 0)
    mine = run.spans.server == 0
    assert np.sum(run.spans.state[mine] == 3) == 1


IMPOSSIBLE = [
    ([Fact(FINISHED, 99)], 1.0, "names no task that was told"),
    ([Fact(ARRIVED, 0)], 1.0, "has arrived before"),
    ([Fact(FINISHED, 0), Fact(FINISHED, 0)], 1.0, "is named twice at one moment"),
    ([Fact(AMENDED, 0, value=np.nan)], 1.0, "must be a number"),
    ([Fact(DOWN, place=10_000)], 1.0, "names no processor"),
    ([Fact(UP, place=0)], 1.0, "not down"),
    ([Fact(SERVER_UP, place=0)], 1.0, "not down"),
    ([Fact(99)], 1.0, "is not a kind of fact"),
    ([], -1.0, "is before the last facts"),
    ([], np.nan, "must be a finite number"),
    ([Fact(CANCELLED, 0, at_s=5.0)], 1.0, "is after now"),
]


@pytest.mark.parametrize(("told", "now_s", "rule"), IMPOSSIBLE)
def test_facts_that_cannot_be_are_refused_by_name_and_change_nothing(told, now_s, rule) -> None:
    _, scheduler = begun()
    before = saved(scheduler)
    with pytest.raises(InvalidInput, match=rule):
        scheduler.handle(Facts(now_s, told))
    assert saved(scheduler) == before


def test_an_ended_task_cannot_end_again() -> None:
    _, scheduler = begun()
    scheduler.handle(Facts(1.0, [Fact(FINISHED, 0)]))
    with pytest.raises(InvalidInput, match="has ended before: it is done"):
        scheduler.handle(Facts(2.0, [Fact(FINISHED, 0)]))


def test_a_fact_told_twice_counts_once() -> None:
    _, scheduler = begun()
    scheduler.handle(Facts(1.0, [Fact(DOWN, place=0, id=7)]))
    before = saved(scheduler)
    scheduler.handle(Facts(1.0, [Fact(DOWN, place=0, id=7)]))
    assert saved(scheduler) == before


def test_a_cancelled_task_frees_its_processor() -> None:
    _, scheduler = begun()
    scheduler.handle(Facts(1.0, [Fact(CANCELLED, 0)]))
    assert scheduler.book.tasks[0].status in (REJECTED, FAILED)
    assert all(row is None or row.task != 0 for row in scheduler.book.running)


def test_a_task_that_is_cancelled_while_it_runs_has_lost_nothing() -> None:
    problem, scheduler = begun()
    scheduler.handle(Facts(1.0, [Fact(CANCELLED, 0)]))
    told = schedule_of(problem, np.arange(len(problem.tasks)), scheduler.book.ended(), "in-turn")
    assert told.outcomes.reason[0] == "it was cancelled"


def test_written_and_read_it_goes_on_the_same() -> None:
    problem, scheduler = begun()
    other = restored(problem, InTurn(), saved(scheduler))
    assert saved(other) == saved(scheduler)
    for each in (scheduler, other):
        each.handle(Facts(3.0, [Fact(FINISHED, 1)]))
    assert saved(other) == saved(scheduler)


def test_bytes_of_another_policy_or_of_nothing_are_refused() -> None:
    problem, scheduler = begun()
    with pytest.raises(InvalidInput, match="is of policy 'in-turn'"):
        restored(problem, InTurn("other"), saved(scheduler))
    with pytest.raises(InvalidInput, match="is no saved state"):
        restored(problem, InTurn(), b"nothing")


@dataclass(frozen=True)
class Failing(InTurn):
    """In turn; while ``fails`` is not empty it changes its state and then raises what is there."""

    fails: list[Exception] = field(default_factory=list, hash=False)

    def decide(self, state, view, facts):
        state, decided = super().decide(state, view, facts)
        if self.fails:
            raise self.fails.pop()
        return state, decided


@pytest.mark.parametrize("through_bytes", [False, True])
def test_where_the_policy_fails_all_is_as_before_and_it_goes_on_the_same(through_bytes) -> None:
    problem = problem_of()
    steady, shaken = Failing(), Failing()
    one, other = Scheduler(problem, steady), Scheduler(problem, shaken)
    calls = [
        [Fact(ARRIVED, 0, id=0), Fact(ARRIVED, 1, id=1)],
        [Fact(AMENDED, 1, value=1e6), Fact(DOWN, place=0, id=9)],
        [Fact(ARRIVED, 2), Fact(LOST, 1)],
        [Fact(UP, place=0), Fact(AMENDED, 1, value=2e6), Fact(LOST, 1)],
    ]
    for moment, rows in enumerate(calls):
        for each in (one, other):
            each.tell(problem.tasks, np.arange([0, 2, 2, 3][moment], [2, 2, 3, 3][moment]))
        if moment != 1:  # nothing that the policy heeds
            shaken.fails.append(RuntimeError("a bug"))
            with pytest.raises(RuntimeError, match="a bug"):
                other.handle(Facts(float(moment), rows))
        if through_bytes:
            assert saved(other) == saved(one)
        assert told_of(other) == told_of(one)
        answers = [each.handle(Facts(float(moment), rows)) for each in (one, other)]
        assert len({str(started) for _, started in answers}) == 1
        assert told_of(other) == told_of(one)
    assert other.view.tasks.deadline_s[1] == 2e6
    assert saved(other) == saved(one)


def told_of(scheduler: Scheduler) -> list[str]:
    """All that a scheduler knows, as text; nothing is written."""
    book = scheduler.book
    parts = (book.tasks, book.queue, book.running, book.agenda, book.switched, book.now_s)
    known = (scheduler.state, scheduler.view.tasks.deadline_s, scheduler.call_me_s, scheduler._seen)
    return [str(part) for part in (*parts, *known)]


def test_a_decision_that_cannot_be_followed_changes_nothing() -> None:
    _, scheduler = begun()
    before = told_of(scheduler)

    class Wrong(InTurn):
        def decide(self, state, view, facts):
            return state, Decisions(revoke=np.array([77]))

    scheduler.policy = Wrong()
    with pytest.raises(IndexError):
        scheduler.handle(Facts(1.0, [Fact(LOST, 0)]))
    assert told_of(scheduler) == before
    scheduler.policy = InTurn()
    _, started = scheduler.handle(Facts(1.0, [Fact(LOST, 0)]))
    assert [row.task for row in started] == [0]


@pytest.mark.parametrize("call_me_s", [0.0, -1.0, np.nan])
def test_a_policy_that_asks_to_be_called_at_once_and_does_nothing_is_refused(call_me_s) -> None:
    """It would be asked at this moment for ever."""

    class Hasty(InTurn):
        def decide(self, state, view, facts):
            state, decided = super().decide(state, view, facts)
            return state, replace(decided, call_me_s=call_me_s)

    with pytest.raises(InvalidInput, match=r"policy 'in-turn': call_me_s=.* must be later than"):
        plan(problem_of(), Hasty())
