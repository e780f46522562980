"""Our policies against real run times: reclaim what is not needed, keep promises by a reserve."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from downclock.engine.play import plan, play
from downclock.engine.world import World
from downclock.errors import InvalidInput
from downclock.planners.catalog import policy
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE, FAILED, REJECTED, Schedule
from downclock.schedule.verify.verify import verify
from downclock.simulate.chances import Chances, draw_fate
from downclock.simulate.simulate import simulate
from downclock.workloads import mei
from tests.generated import random_problem
from tests.laws.test_conservation import sweep
from tests.laws.test_policies import rows
from tests.planners.cluster.test_pack import small
from tests.simulate.test_fate import two_jobs

SPECS = ("late", "prompt", "late:reserve=0.2", "prompt:reserve=0.2")


def problems(count: int, first: int = 0) -> list[Problem]:
    """Batches and streams; one kind and several; wake times, enumerated clocks, full clusters."""
    found = [
        random_problem(seed, chip_wide=False, edges=False, slot_s=None, tasks=20, deadlines=True)
        for seed in range(first, first + count)
    ]
    for seed in range(first, first + count):
        kind = {"wake_j": 2000.0, "wake_s": 20.0 * (seed % 2)}
        found.append(small(seed, arrivals=seed % 3 > 0, servers=1 + seed % 4, loose=2.0, **kind))
    return found


def same(one: Schedule, other: Schedule) -> None:
    for name in ("segments", "spans", "outcomes"):
        for spec in fields(getattr(one, name)):
            a, b = (getattr(getattr(each, name), spec.name) for each in (one, other))
            assert np.array_equal(a, b), f"{name}.{spec.name}"


@pytest.mark.parametrize("spec", SPECS)
def test_where_estimates_hold_the_run_is_the_plan_bit_for_bit(spec: str) -> None:
    for problem in problems(4):
        run = simulate(problem, policy(spec))
        same(run.promised, plan(problem, policy(spec)))
        same(run.realised, run.promised)
        assert verify(problem, run.promised).ok


@pytest.mark.parametrize("spec", ["late:reserve=0.2", "prompt:reserve=0.3", "late:effort=0.1"])
def test_cutting_the_run_anywhere_changes_nothing(spec: str) -> None:
    for problem in problems(3, first=60):
        whole = plan(problem, policy(spec))
        cut = plan(problem, policy(spec), stepwise=True)
        assert verify(problem, whole).ok
        assert np.array_equal(rows(cut.segments), rows(whole.segments))
        assert np.array_equal(rows(cut.spans), rows(whole.spans))


@pytest.mark.parametrize(
    ("spec", "actual"),
    [
        ("late", "uniform:0.5:1"),
        ("prompt", "uniform:0.5:1"),
        ("late:reserve=0.2", "uniform:0.8:1.2"),
        ("prompt:reserve=0.2", "uniform:0.8:1.2"),
        ("late:reserve=0.5", "uniform:1.4:1.5"),
        ("prompt:reserve=0.5", "uniform:0.1:1.5"),
    ],
)
def test_no_accepted_task_is_late_while_none_needs_more_than_its_reserve(
    spec: str, actual: str
) -> None:
    """The guarantee: actual <= (1 + reserve) x estimate for all; any seed."""
    accepted = 0
    for problem in problems(8, first=20):
        for seed in range(3):
            run = simulate(problem, policy(spec), chances=Chances(actual), seed=seed)
            verdict = verify(problem, run.realised)
            assert verdict.ok, str(verdict)
            assert run.late.size == run.failed.size == 0
            accepted += run.done.size
    assert accepted > 500


@pytest.mark.parametrize("spec", SPECS)
def test_overruns_leave_a_valid_schedule_in_which_every_accepted_task_runs_once(spec: str) -> None:
    late = 0
    for problem in problems(6, first=40):
        run = simulate(problem, policy(spec), chances=Chances("uniform:0.5:2"), seed=1)
        verdict = verify(problem, run.realised)
        assert verdict.ok, str(verdict)
        status = run.realised.outcomes.status
        assert np.all(np.isin(status, (DONE, REJECTED, FAILED)))
        ran = np.bincount(run.realised.segments.task, minlength=status.size)
        runs = (status != REJECTED) & (problem.tasks.scale > 0.0)
        assert np.array_equal(ran, runs * problem.tasks.processors)
        bill = account(problem, run.realised, boundary="makespan")
        swept = sum(map(sum, sweep(problem, run.realised, "makespan").parts))
        assert bill.total_j == pytest.approx(swept, rel=1e-9)
        late += run.late.size
    assert late > 0


@pytest.mark.parametrize("spec", SPECS)
def test_what_a_task_needs_is_not_known_before_it_ends(spec: str) -> None:
    """Change the work of tasks that end after a moment: what began before it stays the same."""
    for seed in range(3):
        problem, made = small(seed, servers=3, wake_j=1000.0), policy(spec)
        work = draw_fate(problem, Chances("uniform:0.6:1.1"), seed).work
        first = play(problem, made, World(problem, work)).schedule.segments
        moment_s = float(np.median(first.end_s))
        later = np.ones(work.size, dtype=bool)
        later[first.task[first.end_s <= moment_s]] = False
        running = first.task[(first.start_s < moment_s) & (first.end_s > moment_s)]
        other = np.where(later, np.maximum(work * 1.3, 1.0), work)
        other[running] = np.maximum(other[running], work[running])
        second = play(problem, made, World(problem, other)).schedule.segments
        before = [rows.start_s < moment_s for rows in (first, second)]
        for name in ("task", "processor", "start_s", "core", "volt", "memory"):
            one, two = (getattr(r, name)[b] for r, b in zip((first, second), before, strict=True))
            assert np.array_equal(one, two), name


def test_an_early_end_starts_the_next_task_at_once_and_lets_the_server_sleep_sooner() -> None:
    """Two jobs of 100 s on one processor; the first needs half of it."""
    problem, made = two_jobs(), policy("prompt")
    run = play(problem, made, World(problem, np.array([0.5, 1.0]))).schedule
    assert run.segments.start_s.tolist() == [0.0, 50.0]
    assert run.segments.end_s.tolist() == [50.0, 150.0]
    assert run.spans.end_s.tolist() == [150.0]


def test_reclaiming_saves_energy_on_the_papers_day() -> None:
    problem = mei.online(3, utilisation=0.2, initial_utilisation=0.05)
    chances = Chances("uniform:0.5:1")
    for spec in ("late", "prompt"):
        run = simulate(problem, policy(spec), chances=chances, seed=3)
        promised_j = account(problem, run.promised).total_j
        assert account(problem, run.realised).total_j < 0.8 * promised_j


def test_a_larger_reserve_misses_less() -> None:
    problem = mei.online(3, utilisation=0.1, initial_utilisation=0.02)
    missed = [
        simulate(problem, policy(f"late:reserve={r}"), chances=Chances("uniform:0.8:1.2")).late.size
        for r in (0.0, 0.1, 0.2)
    ]
    assert missed[0] > missed[1] > missed[2] == 0


@pytest.mark.parametrize("spec", ["late:reserve=-0.1", "prompt:reserve=nan"])
def test_a_reserve_must_be_a_sensible_number(spec: str) -> None:
    with pytest.raises(InvalidInput, match="reserve"):
        policy(spec)


@pytest.mark.parametrize("spec", ["late", "late:reserve=0.2"])
def test_cutting_a_batch_with_servers_on_from_the_start_changes_nothing(spec: str) -> None:
    for seed in range(4):
        problem = small(seed, arrivals=False, servers=4, wake_j=2000.0)
        platform = replace(problem.platform, initially_on=np.arange(4) % 2 == 0)
        problem = replace(problem, platform=platform)
        whole = plan(problem, policy(spec))
        cut = plan(problem, policy(spec), stepwise=True)
        assert np.array_equal(rows(cut.segments), rows(whole.segments))
        assert np.array_equal(rows(cut.spans), rows(whole.spans))


def test_many_wakes_of_overdue_tasks_leave_room_for_those_that_come() -> None:
    """Tasks of up to fifty times their estimate: each span that is written has its place."""
    for seed in range(4):
        problem = small(seed, servers=8, loose=1.5, wake_j=10.0)
        run = simulate(problem, policy("late"), chances=Chances("uniform:1:50"), seed=seed)
        verdict = verify(problem, run.realised)
        assert verdict.ok, str(verdict)
