"""People cancel jobs and change deadlines while machines fail: every task still ends once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.engine.facts import AMENDED, ARRIVED, CANCELLED, Fact, Facts
from downclock.engine.outcome import schedule_of
from downclock.engine.play import told_s
from downclock.engine.scheduler import Scheduler
from downclock.planners.catalog import policy
from downclock.problem.graph import Edges
from downclock.problem.problem import Problem
from downclock.schedule.schedule import DONE, FAILED, PENDING, REJECTED
from downclock.schedule.verify.verify import verify
from downclock.simulate.chances import Chances, draw_fate
from downclock.simulate.drawn import drawn_world
from tests.generated import random_problem

POLICIES = ("late", "late:reserve=0.2", "prompt", "race", "edl", "edf-bf", "bin", "edl:slot=60")
CHANCES = Chances(
    "uniform:0.5:1.4", fail_jobs=0.1, server_life="exponential:400", repair_s=40.0,
    processor_life="exponential:600",
)  # fmt: skip


def disturbed(problem: Problem, spec: str, seed: int) -> None:
    """Play a rough world; at every fourth moment a job is cancelled or its deadline changed."""
    rng = np.random.default_rng(seed)
    scheduler = Scheduler(problem, policy(spec))
    world = drawn_world(problem, draw_fate(problem, CHANCES, seed))
    tell_s = told_s(problem)
    told = np.argsort(tell_s, kind="stable")
    arrival_s, deadline_s = tell_s[told], problem.tasks.deadline_s[told].copy()
    before, after = (np.argsort(told)[ends] for ends in (problem.edges.before, problem.edges.after))
    world.told = told
    known = 0
    for _ in range(100 * told.size):
        coming_s = arrival_s[known] if known < told.size else np.inf
        now_s = min(coming_s, world.next_s(scheduler), scheduler.next_s)
        if now_s == np.inf or (known == told.size and scheduler.book.open_tasks == 0):
            break
        rows = world.happens(scheduler.book, now_s)
        named = {fact.task for fact in rows}
        rows += _asked(scheduler, rng, named, deadline_s)
        if coming_s == now_s:
            upto = int(np.searchsorted(arrival_s, now_s, side="right"))
            mine = (np.maximum(before, after) >= known) & (np.maximum(before, after) < upto)
            edges = Edges(before[mine], after[mine])
            fresh = scheduler.tell(problem.tasks, told[known:upto], edges)
            rows += [Fact(ARRIVED, int(task)) for task in fresh]
            known = upto
        _, started = scheduler.handle(Facts(now_s, rows, due=now_s >= scheduler.call_me_s))
        world.begin(scheduler.book, started)
    else:
        pytest.fail(f"{spec}: it goes on for ever")
    tasks = replace(problem.tasks, deadline_s=deadline_s[np.argsort(told)])
    asked = replace(problem, tasks=tasks)
    schedule = schedule_of(asked, told, scheduler.book.ended(), spec)
    assert np.all(np.isin(schedule.outcomes.status, (DONE, REJECTED, FAILED)))
    verdict = verify(asked, schedule)
    assert verdict.ok, f"{spec}, {seed}: {verdict}"


def _asked(
    scheduler: Scheduler, rng: np.random.Generator, named: set[int], deadline_s: np.ndarray
) -> list[Fact]:
    """Now and then one job is cancelled, or its deadline moves, or both."""
    pages = scheduler.book.tasks
    open_ = [i for i, p in enumerate(pages) if p.arrived and p.status == PENDING and i not in named]
    if not open_ or rng.uniform() > 0.25:
        return []
    task = int(rng.choice(open_))
    rows = []
    if rng.uniform() < 0.7:
        later_s = scheduler.book.now_s + float(rng.uniform(1.0, 200.0))
        deadline_s[task] = max(later_s, scheduler.view.tasks.arrival_s[task])
        rows.append(Fact(AMENDED, task, value=deadline_s[task]))
    if rng.uniform() < 0.4 or not rows:
        rows.append(Fact(CANCELLED, task))
    return rows


@pytest.mark.parametrize("spec", POLICIES)
@pytest.mark.parametrize("edges", [False, True])
def test_whatever_is_asked_for_every_task_ends_once_and_validly(spec: str, edges: bool) -> None:
    for seed in range(12):
        problem = random_problem(
            300 + seed, tasks=30, edges=edges, slot_s=None, chip_wide=False, prices=False
        )
        if policy(spec).objection(problem) is None:
            disturbed(problem, spec, seed)
