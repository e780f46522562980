"""No valid schedule is below a bound, and small bounds meet the optimum."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from downclock.planners.bounds import Bounds
from downclock.planners.catalog import policy
from downclock.planners.cluster.known.bins_bound import bins_bound
from downclock.planners.cluster.known.block_program import block_bound
from downclock.planners.cluster.known.hulls import _fewer, hulls
from downclock.planners.cluster.known.places import Pairs
from downclock.planners.cluster.known.program import Program
from downclock.planners.cluster.known.question import ask
from downclock.planners.cluster.known.solve import search_known, solve_known
from downclock.planners.cluster.known.start_bound import _Model, start_bound
from downclock.planners.known import KnownPolicy, best_known
from downclock.problem.files.files import load_problem
from downclock.problem.limits import Limits
from downclock.problem.objective import ENERGY, parse_objective
from downclock.problem.platform import Platform, ServerSpec
from downclock.problem.price import ZonePrices
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import ASLEEP, DONE, DOWN, Schedule
from downclock.schedule.verify.verify import verify
from downclock.workloads.starters import starter, write_starter
from tests.generated import random_problem
from tests.generated_schedule import random_schedule
from tests.planners.cluster.known.brute import least_j
from tests.planners.cluster.known.clusters import (
    busy_day,
    kind,
    library,
    own_cluster,
    two_by_four,
)

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
    problem, schedule = drawn(seed, interrupt="none")
    asked = ask(problem, ENERGY, schedule.outcomes.status == DONE)
    for seconds in (0.05, 1.0):
        bound_j = start_bound(asked, seconds=seconds)
        assert bound_j <= account(problem, schedule).total_j * NEVER


@pytest.mark.parametrize("seed", range(24))
def test_no_random_schedule_without_a_pause_needs_less_than_the_blocks(seed: int) -> None:
    problem, schedule = drawn(seed, interrupt="none", gangs=True, tasks=6)
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
    for seconds in (0.05, 1.0):
        assert start_bound(asked, seconds=seconds) <= money * NEVER


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
    for seconds in (0.02, 5.0):
        assert start_bound(asked, seconds=seconds) <= best_j * NEVER
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
    assert start_bound(asked, seconds=1.0) <= found.value * NEVER
    assert block_bound(asked, found.value, nodes=50)[0] <= found.value * NEVER


def together(size: int, gangs: list[int]) -> Problem:
    """Jobs of one application on servers of some size, in windows in which all run at once."""
    used = (kind("a100", 50.0),)
    profiles = library(np.random.default_rng(4), 1, used)
    spec = ServerSpec("s", (("a100", size),), len(gangs), host_w=1000.0, wake_j=1e5)
    count = len(gangs)
    tasks = Tasks.of(
        np.zeros(count, np.int64),
        deadline_s=np.full(count, 3700.0),
        processors=np.array(gangs),
    )
    return Problem(tasks, profiles, Platform.build(used, (spec,)))


@pytest.mark.parametrize(
    ("size", "gangs", "servers"),
    [(4, [4, 1], 2), (8, [6, 5, 3], 2), (8, [3, 3, 3, 3], 2), (4, [6, 3, 1], 3)],
)
def test_gangs_that_leave_each_other_no_room_count_servers_of_their_own(
    size: int, gangs: list[int], servers: int
) -> None:
    """By hand: so many servers; processors alone would need 1.25, 1.75, 1.5 and 2.5."""
    problem = together(size, gangs)
    found = search_known(problem)
    bound_j = start_bound(ask(problem, ENERGY), seconds=1.0)
    assert bound_j <= found.value * NEVER
    assert np.unique(found.schedule.segments.processor // size).size == servers
    assert bound_j > 0.97 * found.value


def test_a_job_without_a_deadline_is_bound_like_one_with_a_far_one() -> None:
    far = two_by_four(3, 6)
    deadline_s = far.tasks.deadline_s.copy()
    deadline_s[2] = 40 * 3600.0
    far = replace(far, tasks=replace(far.tasks, deadline_s=deadline_s))
    deadline_s = deadline_s.copy()
    deadline_s[2] = np.inf
    endless = replace(far, tasks=replace(far.tasks, deadline_s=deadline_s))
    bounds_j = [start_bound(ask(each, ENERGY), seconds=1.0) for each in (far, endless)]
    assert bounds_j[1] == pytest.approx(bounds_j[0], rel=0.01)
    assert bounds_j[1] <= search_known(endless).value * NEVER


def test_a_job_without_a_deadline_may_wait_for_a_server_that_is_down_for_long() -> None:
    """Ten days: far longer than all run times together."""
    problem = two_by_four(1, 3)
    tasks = replace(problem.tasks, deadline_s=np.full(3, np.inf))
    down = [(server, 0.0, 864_000.0) for server in range(2)]
    platform = replace(problem.platform, limits=Limits.of(None, down=down))
    problem = replace(problem, tasks=tasks, platform=platform)
    found = search_known(problem)
    assert np.all(found.done)
    asked = ask(problem, ENERGY)
    for chained in (False, True):
        bound_j, _ = block_bound(asked, found.value, nodes=50, chained=chained)
        assert 0.9 * found.value < bound_j <= found.value * NEVER
    assert 0.9 * found.value < start_bound(asked, seconds=1.0) <= found.value * NEVER


def test_a_program_that_goes_in_circles_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by odd inputs: costs of 1 to 4e8, and the simplex after the interior point ran on."""
    monkeypatch.setattr("downclock.planners.cluster.known.program.STEPS", 1)
    monkeypatch.setattr("downclock.planners.cluster.known.program.STEPS_A_ROW", 0)
    assert start_bound(ask(two_by_four(5, 3), ENERGY), seconds=1.0) == 0.0


def test_a_program_that_fails_gives_way_to_one_of_fewer_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found on workflows of 162 tasks: nothing was proven, where a coarser program says 96 %."""
    asked = ask(two_by_four(5, 3), ENERGY)
    usual, failed = start_bound(asked, seconds=1.0), list[float]()
    solved = _Model.bound

    def fail_once(model: _Model) -> float:
        failed.append(model.step_s)
        return 0.0 if len(failed) == 1 else solved(model)

    monkeypatch.setattr(_Model, "bound", fail_once)
    assert 0.9 * usual < start_bound(asked, seconds=1.0) <= usual * NEVER
    assert failed[0] < failed[1]


def test_our_own_example_is_certified_within_six_per_cent(tmp_path: Path) -> None:
    """What `init` writes: 16 jobs, a gang of four and a job without a deadline among them."""
    write_starter(str(tmp_path), starter("init"))
    problem = load_problem(tmp_path / "cluster.toml", tmp_path / "jobs.csv")
    assert solve_known(problem).gap < 0.06
    assert solve_known(problem, parse_objective("cost"), effort=4.0).gap < 0.06


def test_energy_as_an_objective_is_bound_in_its_own_unit() -> None:
    """Kilowatt hours, not joules: the bound was 3.6 million times too high."""
    problem = two_by_four(0, 4)
    found = solve_known(problem)
    bounds = Bounds(problem)
    assert bounds.below(found.schedule) == found.bound
    assert bounds.value_below(found.schedule, ENERGY) == pytest.approx(found.bound / 3.6e6)


def test_clocks_chosen_for_hours_bound_as_much_as_for_every_moment() -> None:
    """A cap that nothing reaches has the program choose them for every moment."""
    problem, cost = busy_day(5, 12, workflows=True, prices=True), parse_objective("cost")
    capped = replace(problem.platform, limits=Limits.of(1e9))
    found = []
    for each in (problem, replace(problem, platform=capped)):
        asked = ask(each, cost)
        hull = hulls(asked.columns, few=True)
        found.append(_Model(asked.columns, hull, Pairs.of(asked, hull), 1200.0).bound())
    assert found[0] == pytest.approx(found[1], rel=1e-6)
    assert 0.0 < found[0] <= search_known(problem, cost).value * NEVER


def test_a_bound_does_not_depend_on_how_many_nodes_are_looked_at_first() -> None:
    """Few nodes find no plan of their own; the given one keeps the bound from being lost."""
    problem = own_cluster(3, 12)
    found = search_known(problem)
    bound_j, _ = block_bound(ask(problem, ENERGY, found.done), found.value, nodes=3)
    assert 0.5 * found.value < bound_j <= found.value * NEVER


def test_fewer_corners_lie_below_the_curve() -> None:
    """A table of forty clocks, convex by hand: 1 / t + t / 9."""
    time_s = np.linspace(1.0, 6.0, 40)
    energy_j = 1.0 / time_s + time_s / 9.0
    few_s, few_j = _fewer(time_s, energy_j)
    assert few_s.size == 12
    assert np.all(np.interp(time_s, few_s, few_j) <= energy_j * NEVER)
    assert np.interp(time_s, few_s, few_j) == pytest.approx(energy_j, rel=0.01)


def test_the_two_searches_of_a_plan_draw_differently() -> None:
    problem, race = two_by_four(2, 5), policy("race")
    search = KnownPolicy("known", ENERGY, effort=0.05)
    best_known(problem, [race], search)
    search = replace(search, proof=0.0)
    for made in (search, replace(search, begin=(race,), seed=1)):
        problem.once(("plan", made), lambda: pytest.fail("was not asked"))


def test_more_nodes_than_the_solver_counts_are_no_error() -> None:
    """Efforts of days ask for more than 2^31."""
    problem = own_cluster(3, 2)
    found = search_known(problem)
    bound_j, _ = block_bound(ask(problem, ENERGY, found.done), found.value, nodes=10**11)
    assert 0.0 < bound_j <= found.value * NEVER


@pytest.mark.parametrize("interior", [False, True])
def test_programs_tell_costs_apart_that_are_less_than_the_solvers_tolerance(
    interior: bool,
) -> None:
    program = Program()
    dear, cheap = program.columns(np.array([3e-8]), 1.0), program.columns(np.array([0.0]), 1.0)
    row = program.rows(1, 1.0)
    program.put(row, dear, 1.0)
    program.put(row, cheap, 1.0)
    assert program.solve(interior=interior).fun == pytest.approx(0.0, abs=1e-12)
    program.put(program.rows(1, 1e-3), dear, 1.0)
    assert program.solve(interior=interior).fun == pytest.approx(3e-11)


@pytest.mark.parametrize("seed", [3, 5, 11])
def test_a_bound_on_money_is_as_good_in_a_smaller_coin(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The solver tolerated more than small jobs cost: bounds were above plans."""
    monkeypatch.setattr("downclock.planners.cluster.known.bins_bound.ROUNDS", 1)
    problem, schedule = drawn(seed, interrupt="none", deadlines=True, prices=True)
    done, cost = schedule.outcomes.status == DONE, parse_objective("cost")

    def bound(coin: float) -> float:
        zones = tuple(
            (name, ZonePrices(replace(zone.price, value=coin * zone.price.value)))
            for name, zone in problem.prices.zones
            if zone.price is not None
        )
        asked = ask(replace(problem, prices=replace(problem.prices, zones=zones)), cost, done)
        return bins_bound(asked) / coin

    assert bound(1e-3) == pytest.approx(bound(1e4), rel=1e-6)
