"""Play a policy against a world: planning, simulating, and what a real cluster does, are this.

A world tells what happens and lets rows run; it alone knows how long they really take. In the
noiseless one estimates come true, so what is played is the plan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.engine.facts import ARRIVED, Fact, Facts
from downclock.engine.outcome import Ended, schedule_of
from downclock.engine.policy import Coming, Folded, Policy
from downclock.engine.scheduler import RETRIES, Scheduler, require
from downclock.engine.tasks import TaskTable
from downclock.engine.view import View
from downclock.engine.world import World
from downclock.problem.graph import Edges
from downclock.problem.problem import Problem
from downclock.schedule.schedule import DONE, PENDING, REJECTED, Schedule, Segments
from downclock.units import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """A schedule, and how many things happened in it."""

    schedule: Schedule
    events: int


def plan(problem: Problem, policy: Policy, *, stepwise: bool = False) -> Schedule:
    """Plan: play in the world where estimates come true.

    Args:
        problem: what is asked.
        policy: how to decide.
        stepwise: ask the policy moment by moment even where it offers to play the whole run;
            it changes nothing, and a law checks that.

    Raises:
        InvalidInput: the policy cannot plan the problem.
    """
    return play(problem, policy, World(problem), stepwise=stepwise).schedule


def play(
    problem: Problem,
    policy: Policy,
    world: World,
    *,
    retries: int = RETRIES,
    stepwise: bool = False,
) -> Played:
    """Let a policy decide in a world until nothing is left to happen.

    A tuner (it has a method ``tuned``) makes the policy first, with all of the problem in view.
    """
    require(problem, policy)
    tune = getattr(policy, "tuned", None)
    if tune is not None:
        policy = tune(problem)
    tell_s = told_s(problem)
    told = np.argsort(tell_s, kind="stable")
    view = View(problem)
    if not stepwise and world.only_run_times(policy.heeds):
        folded = _fold(problem, policy, view, world, told, tell_s[told])
        if folded is not None:
            ended = _ended(problem, told, folded, world)
            events = 2 * len(folded.decisions.place) + len(told) + len(folded.decisions.power)
            return Played(schedule_of(problem, told, ended, policy.name), events)
    scheduler = Scheduler(view, policy, retries=retries)
    _steps(problem, scheduler, world, told, tell_s[told])
    book = scheduler.book
    return Played(schedule_of(problem, told, book.ended(), policy.name), book.events)


def _fold(
    problem: Problem, policy: Policy, view: View, world: World, told: Ints, arrival_s: Floats
) -> Folded | None:
    """Ask the policy to play all of it; ``arrival_s`` is when each task is told (n,)."""
    tasks = TaskTable()
    tasks.add(problem.tasks, told)
    coming = Coming(tasks, arrival_s, world.work[told], closed=True)
    every = view.over(tasks)
    every.learn(_edges(problem, np.argsort(told), 0, told.size) or Edges())
    answer = policy.fold(policy.start(view), every, coming)
    return None if answer is None else answer[1]


def _ended(problem: Problem, told: Ints, folded: Folded, world: World) -> Ended:
    """A run that a policy has played, as the book would have written it."""
    place, decided = folded.decisions.place, folded.decisions
    n = told.size
    status, reason = np.full(n, PENDING), np.full(n, "", dtype=object)
    status[place.task] = DONE
    status[problem.tasks.scale[told] == 0.0] = DONE
    status[decided.rejected], reason[decided.rejected] = REJECTED, decided.reason
    columns = (place.task, place.processor, place.start_s, folded.end_s, place.points)
    power = decided.power
    switched = np.column_stack([power.server, power.on, power.at_s])
    return Ended(Segments.of(*columns), switched, status, reason, world.work[told])


def told_s(problem: Problem) -> Floats:
    """When each task is told (n,): when it arrives, but no task before those that precede it."""
    tell_s = problem.tasks.arrival_s.copy()
    if len(problem.edges) and tell_s.max() > 0.0:
        for before, after in problem.edges.in_order(tell_s.size):
            tell_s[after] = max(tell_s[after], tell_s[before])
    return tell_s


def _steps(
    problem: Problem, scheduler: Scheduler, world: World, told: Ints, arrival_s: Floats
) -> None:
    """Tell one moment after the other; ``arrival_s`` is when each is told (n,)."""
    number, known, last_s = np.argsort(told), 0, arrival_s[-1]
    world.told = told
    while True:
        coming_s = arrival_s[known] if known < told.size else np.inf
        now_s = min(coming_s, world.next_s(scheduler), scheduler.next_s)
        if now_s == np.inf:
            return
        rows = world.happens(scheduler.book, now_s)
        if coming_s == now_s:
            upto = int(np.searchsorted(arrival_s, now_s, side="right"))
            edges = _edges(problem, number, known, upto)
            fresh = scheduler.tell(problem.tasks, told[known:upto], edges)
            rows += [Fact(ARRIVED, int(task)) for task in fresh]
            known = upto
        facts = Facts(
            now_s, rows, due=now_s >= scheduler.call_me_s, closed=coming_s == now_s == last_s
        )
        _, started = scheduler.handle(facts)
        world.begin(scheduler.book, started)


def _edges(problem: Problem, number: Ints, known: int, upto: int) -> Edges | None:
    """Edges that are known once the tasks before ``upto`` are, and were not before."""
    if not len(problem.edges):
        return None
    ends = np.maximum(number[problem.edges.before], number[problem.edges.after])
    mine = (ends >= known) & (ends < upto)
    return Edges(number[problem.edges.before[mine]], number[problem.edges.after[mine]])
