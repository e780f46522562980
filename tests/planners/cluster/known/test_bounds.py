"""No valid schedule is below a bound, and small bounds meet the optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.planners.cluster.known.bins_bound import bins_bound
from downclock.planners.cluster.known.block_program import block_bound
from downclock.planners.cluster.known.question import ENERGY, ask
from downclock.planners.cluster.known.solve import search_known, solve_known
from downclock.planners.cluster.known.start_bound import start_bound
from downclock.problem.objective import parse_objective
from downclock.problem.platform import Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import ASLEEP, DONE, DOWN, Schedule
from downclock.schedule.verify.verify import verify
from tests.generated import random_problem
from tests.generated_schedule import random_schedule
from tests.planners.cluster.known.brute import least_j
from tests.planners.cluster.known.clusters import kind, library, own_cluster, two_by_four

NEVER = 1.0 + 1e-9


def drawn(seed: int, **knobs: object) -> tuple[Problem, Schedule]:
    """A problem and a valid schedule of it: what was really to do is foreseen, nothing is down."""
    problem = random_problem(seed, chip_wide=False, slot_s=None, **knobs)
    schedule = random_schedule(problem, seed)
    work, spans = schedule.outcomes.work, schedule.spans
    problem = replace(problem, tasks=replace(problem.tasks, scale=problem.tasks.scale * work))
    schedule = replace(
        schedule,
        outcomes=replace(schedule.outcomes, work=np.ones(work.size)),
        spans=replace(spans, state=np.where(spans.state == DOWN, ASLEEP, spans.state)),
    )
    assert verify(problem, schedule).ok
    return problem, schedule


@pytest.mark.parametrize("seed", range(60))
def test_no_random_schedule_needs_less_than_the_bins(seed: int) -> None:
    """Schedules that pause, preempt, migrate and spread gangs over servers."""
    problem, schedule = drawn(seed)
    asked = ask(problem, ENERGY, schedule.outcomes.status == DONE)
    for count in (7, 40):
        bound_j = bins_bound(asked, count=count)
        assert bound_j <= account(problem, schedule).total_j * NEVER


@pytest.mark.parametrize("seed", range(40))
def test_no_random_schedule_without_a_pause_needs_less_than_the_starts(seed: int) -> None:
    problem, schedule = drawn(seed, interrupt="none", deadlines=True)
    asked = ask(problem, ENERGY, schedule.outcomes.status == DONE)
    for columns in (300, 5_000):
        bound_j = start_bound(asked, columns=columns)
        assert bound_j <= account(problem, schedule).total_j * NEVER


@pytest.mark.parametrize("seed", range(24))
def test_no_random_schedule_without_a_pause_needs_less_than_the_blocks(seed: int) -> None:
    problem, schedule = drawn(seed, interrupt="none", deadlines=True, gangs=True, tasks=6)
    total_j = account(problem, schedule).total_j
    asked = ask(problem, ENERGY, schedule.outcomes.status == DONE)
    if asked.task.size:
        assert block_bound(asked, total_j, nodes=20)[0] <= total_j * NEVER


@pytest.mark.parametrize("seed", range(20))
def test_no_random_schedule_costs_less_than_the_bins(seed: int) -> None:
    """The same in money, at prices that change every minute."""
    problem, schedule = drawn(seed, prices=True)
    asked = ask(problem, parse_objective("cost"), schedule.outcomes.status == DONE)
    money = account(problem, schedule).money_clipped
    assert money is not None
    assert bins_bound(asked, count=30) <= money * NEVER


@pytest.mark.parametrize("seed", range(40))
def test_no_random_schedule_without_a_pause_costs_less_than_the_starts(seed: int) -> None:
    """The same in money, with edges."""
    problem, schedule = drawn(seed, interrupt="none", deadlines=True, prices=True)
    asked = ask(problem, parse_objective("cost"), schedule.outcomes.status == DONE)
    money = account(problem, schedule).money_clipped
    assert money is not None
    for columns in (300, 5_000):
        assert start_bound(asked, columns=columns) <= money * NEVER


def tiny(seed: int) -> Problem:
    """Two or three jobs with two locked clocks on two small servers that sleep and wake."""
    rng = np.random.default_rng([seed, 3])
    count = int(rng.integers(2, 4))
    kinds = (kind("a100", 50.0, "locked"),)
    profiles = library(rng, 2, kinds)
    group = profiles.groups[0]
    kept = np.sort(rng.choice(group.offset[1], 2, replace=False))
    rows = (group.offset[:-1][:, None] + kept).ravel()
    few = replace(
        group,
        offset=np.arange(3) * 2,
        core=group.core[rows],
        memory=group.memory[rows],
        time_s=group.time_s[rows],
        power_w=group.power_w[rows],
    )
    servers = int(rng.integers(1, 3)) if count == 2 else 1
    spec = ServerSpec(
        "s",
        (("a100", int(rng.integers(1, 3))),),
        servers,
        host_w=float(rng.uniform(0.0, 500.0)),
        sleep_w=float(rng.choice([0.0, 20.0])),
        wake_j=float(rng.uniform(0.0, 1e6)),
        wake_s=float(rng.choice([0.0, 300.0])),
        initially_on=bool(rng.integers(2)),
    )
    scale, arrival_s = rng.uniform(0.2, 2.0, count), rng.uniform(300.0, 9000.0, count)
    deadline_s = arrival_s + 3600.0 * scale * rng.uniform(2.0, 6.0, count)
    tasks = Tasks.of(
        rng.integers(2, size=count), scale=scale, arrival_s=arrival_s, deadline_s=deadline_s
    )
    return Problem(
        tasks, replace(profiles, groups=(few,)), Platform.build(kinds, (spec,)), name=f"tiny-{seed}"
    )


@pytest.mark.parametrize("seed", range(25))
def test_plans_of_tiny_problems_are_the_best_of_all(seed: int) -> None:
    problem = tiny(seed)
    best_j = least_j(problem)
    found = solve_known(problem)
    if not np.isfinite(best_j):
        assert np.any(found.schedule.outcomes.status != DONE)
        return
    assert found.objective == pytest.approx(best_j, rel=1e-9)
    assert found.bound <= best_j * NEVER
    asked = ask(problem, ENERGY)
    assert bins_bound(asked, count=20) <= best_j * NEVER
    for columns in (200, 20_000):
        assert start_bound(asked, columns=columns) <= best_j * NEVER
    for chained in (False, True):
        bound_j, _ = block_bound(asked, best_j, nodes=1000, chained=chained)
        assert bound_j <= best_j * NEVER


def test_one_job_pays_for_its_wake_its_host_and_its_idle_neighbours() -> None:
    """One job of an hour at 100 W on a server of two: nothing can be saved, and all is bound."""
    problem = tiny(0)
    one = Tasks.of(np.array([0]), scale=np.ones(1), arrival_s=300.0, deadline_s=np.full(1, 1e5))
    kinds = problem.platform.kinds
    spec = ServerSpec("s", (("a100", 2),), host_w=400.0, wake_j=5e5, wake_s=300.0)
    problem = replace(problem, tasks=one, platform=Platform.build(kinds, (spec,)))
    found = solve_known(problem)
    _, time_s, energy_j = problem.frontier(0).ladder()
    by_hand_j = 5e5 + min(energy_j + (400.0 + 50.0) * time_s)
    assert found.objective == pytest.approx(by_hand_j, rel=1e-9)
    assert found.status == "optimal"


@pytest.mark.parametrize("seed", range(3))
def test_ten_jobs_on_two_servers_of_four_are_proven_optimal(seed: int) -> None:
    found = solve_known(two_by_four(seed, 10), effort=5.0)
    assert found.status == "optimal"
    assert found.gap < 1e-6


@pytest.mark.parametrize("count", [5, 20])
def test_small_clusters_of_one_s_own_are_certified_closely(count: int) -> None:
    gaps = [solve_known(own_cluster(seed, count)).gap for seed in range(4)]
    assert np.mean(gaps) < 0.09


def test_a_gang_over_servers_of_two_sizes_is_not_bound_to_one_size() -> None:
    """Six processors on a server of four with a hungry host and one of three without."""
    rng, used = np.random.default_rng(7), (kind("a100", 50.0),)
    specs = (
        ServerSpec("large", (("a100", 4),), 2, host_w=3000.0),
        ServerSpec("small", (("a100", 3),), 1, host_w=10.0),
    )
    tasks = Tasks.of(np.zeros(1, np.int64), deadline_s=np.full(1, 3e4), processors=np.full(1, 6))
    problem = Problem(tasks, library(rng, 1, used), Platform.build(used, specs))
    found = search_known(problem)
    assert np.unique(found.schedule.segments.processor // 4).size == 2
    asked = ask(problem, ENERGY)
    assert bins_bound(asked, count=96) <= found.value * NEVER
    assert start_bound(asked, columns=20_000) <= found.value * NEVER
    assert block_bound(asked, found.value, nodes=50)[0] <= found.value * NEVER
