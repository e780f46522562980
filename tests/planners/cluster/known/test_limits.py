"""Plans under limits of the site: caps on power are kept, downtimes are planned round."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import downclock as dc
from downclock.errors import InvalidInput
from downclock.planners.catalog import CATALOG, policy
from downclock.planners.cluster.known.bins_bound import bins_bound
from downclock.planners.cluster.known.judge import judged
from downclock.planners.cluster.known.kernels.caps import cell_edge_s
from downclock.planners.cluster.known.kernels.model import new_placement
from downclock.planners.cluster.known.question import ask
from downclock.planners.cluster.known.solve import Searching, search_known
from downclock.planners.cluster.known.start_bound import start_bound
from downclock.problem.limits import Limits
from downclock.problem.objective import ENERGY, parse_objective
from downclock.problem.platform import Platform, ServerSpec
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.power_draws import all_draws, total_draw
from downclock.schedule.schedule import (
    DONE,
    ON,
    WAKING,
    Outcomes,
    PowerSpans,
    Schedule,
    Segments,
)
from downclock.schedule.verify.verify import require_valid, verify
from downclock.study.baselines import chosen_policy
from downclock.workloads import mei
from tests.generated import random_problem
from tests.planners.cluster.known.clusters import busy_day, own_cluster
from tests.planners.cluster.known.test_solve import assert_carried_out

LITTLE = 0.01


def limited(problem: Problem, limits: Limits) -> Problem:
    return replace(problem, platform=replace(problem.platform, limits=limits))


def peak_w(problem: Problem, schedule: Schedule) -> float:
    draws = all_draws(problem, schedule.segments, schedule.spans)
    return total_draw(draws, np.ones(problem.platform.server_count, np.bool_)).peak_w


def drawn_limits(rng: np.random.Generator, problem: Problem, peak: float) -> Limits:
    """A cap below the peak, one of a zone, and downtimes of half of the servers."""
    platform = problem.platform
    last_s = float(np.max(problem.tasks.deadline_s, initial=100.0, where=np.isfinite(
        problem.tasks.deadline_s)))  # fmt: skip
    down = []
    for server in range(platform.server_count):
        if rng.uniform() < 0.5:
            from_s = rng.uniform(0.0, 0.8) * last_s
            down.append((server, from_s, from_s + rng.uniform(0.05, 0.5) * last_s))
    zone = [(platform.zones[0], float(rng.uniform(0.4, 1.0) * peak) + 1e-3)]
    return Limits.of(float(rng.uniform(0.3, 0.9) * peak) + 1e-3, zone, down)


@pytest.mark.parametrize("seed", range(40))
def test_plans_of_generated_problems_keep_all_limits(seed: int) -> None:
    problem = random_problem(seed, chip_wide=False, slot_s=None)
    objective = parse_objective("cost") if problem.prices.zones and seed % 2 else ENERGY
    free = search_known(problem, objective, effort=LITTLE).schedule
    rng = np.random.default_rng(seed)
    tight = limited(problem, drawn_limits(rng, problem, peak_w(problem, free)))
    found = judged(tight, objective, search_known(tight, objective, effort=LITTLE).schedule)
    require_valid(tight, found.schedule)
    assert_carried_out(tight, found.schedule)
    asked = ask(tight, objective, found.done)
    whole = asked.task.size > 0 and bool(np.all(asked.whole))
    for bound in (bins_bound(asked, count=24), start_bound(asked, seconds=1.0) if whole else 0.0):
        assert bound <= found.value * (1 + 1e-9)


def bounds_of(problem: Problem) -> tuple[float, float]:
    """Both programs, for all jobs that can be done."""
    asked = ask(problem, ENERGY)
    return bins_bound(asked, count=48), start_bound(asked, seconds=1.0)


def test_bounds_know_of_downtimes() -> None:
    """Only the servers with A100 are up, whose hosts draw most."""
    problem = own_cluster(3, 8)
    down = [(server, 0.0, 30 * 3600.0) for server in range(2, 9)]
    pairs = zip(bounds_of(problem), bounds_of(limited(problem, Limits.of(down=down))), strict=True)
    assert all(tight > 1.01 * loose for loose, tight in pairs)


def test_a_gang_that_a_cap_keeps_off_one_zone_runs_in_the_other() -> None:
    """Each server of a zone may wake by itself, both together may not; the bounds know it too."""
    problem = busy_day(4, 6, kinds=2, servers=2, gangs=(8,))
    zone = np.array([0, 0, 1, 1])
    platform = replace(
        problem.platform, zones=("north", "south"), zone=zone,
        limits=Limits.of(zone_cap_w=[("north", 1500.0)]),
    )  # fmt: skip
    slack_s = 4.0 * (problem.tasks.deadline_s - problem.tasks.arrival_s)
    tasks = replace(problem.tasks, deadline_s=problem.tasks.arrival_s + slack_s)
    capped = replace(problem, platform=platform, tasks=tasks)
    found = search_known(capped, effort=0.05)
    require_valid(capped, found.schedule)
    assert np.all(found.done)
    free = replace(capped, platform=replace(platform, limits=Limits.of()))
    pairs = zip(bounds_of(free), bounds_of(capped), strict=True)
    assert all(1.1 * loose < tight <= found.value for loose, tight in pairs)


def lone_job(limits: Limits, wake_s: float, deadline_s: float) -> Problem:
    """A job of mei2021's, a server in the north for it, and a hungry one in the south."""
    drawn = mei.offline(3, utilisation=0.005)
    kind, one = drawn.platform.kinds[0], slice(1, 2)
    tasks = Tasks.of(
        drawn.tasks.application[one],
        scale=drawn.tasks.scale[one],
        deadline_s=np.array([deadline_s]),
    )
    servers = [
        ServerSpec(name, ((kind.name, 1),), 1, host_w=host_w, wake_s=wake_s, wake_j=0.0)
        for name, host_w in (("north", 0.0), ("south", 5000.0))
    ]
    platform = replace(
        Platform.build((kind,), servers),
        zones=("north", "south"), zone=np.array([0, 1]), limits=limits,
    )  # fmt: skip
    return replace(drawn, tasks=tasks, platform=platform)


def alone_from(problem: Problem, start_s: float, length_s: float) -> Schedule:
    """The job runs in the north, on a server that wakes just for it."""
    end_s, wake_s = start_s + length_s, float(problem.platform.wake_s[0])
    at = problem.frontier(0).at(np.array([length_s]))
    rows = Segments.of(
        np.array([0]), np.array([0]), np.array([start_s]), np.array([end_s]), at.points,
        np.array([1.0]),
    )  # fmt: skip
    spans = PowerSpans(
        np.zeros(2, np.int64), np.array([WAKING, ON]), np.array([start_s - wake_s, start_s]),
        np.array([start_s, end_s]),
    )  # fmt: skip
    return Schedule(rows, spans, Outcomes(np.array([DONE]), np.array([""], object), np.ones(1)))


def test_bounds_know_clocks_that_only_a_cap_wants() -> None:
    """Under 105 W the job runs at its slowest, which is dear, and nobody wants otherwise."""
    problem = lone_job(Limits.of(zone_cap_w=[("north", 105.0)]), 60.0, 1e5)
    schedule = alone_from(problem, 60.0, float(problem.frontier(0).t_max_s[0]))
    require_valid(problem, schedule)
    energy_j = dc.account(problem, schedule).total_j
    assert max(bounds_of(problem)) <= energy_j * (1 + 1e-9)


def test_who_is_refused_as_no_server_can_wake_under_the_cap_is_told_so() -> None:
    """A wake of 90 kJ in a minute draws 1,500 W; 1,200 are allowed, and jobs draw 100 or so."""
    problem = lone_job(Limits.of(1200.0), 60.0, 1e5)
    platform = replace(problem.platform, wake_j=np.full(2, 9e4))
    schedule = search_known(replace(problem, platform=platform), effort=0.01).schedule
    assert schedule.outcomes.reason[0] == (
        "no server can wake under the cap on power: a wake draws 1500 W or more"
    )
    awake = replace(platform, initially_on=np.array([True, False]))
    assert search_known(replace(problem, platform=awake), effort=0.01).done.all()


def test_jobs_run_slower_than_is_cheapest_where_a_cap_asks_for_it() -> None:
    """Two jobs run side by side at 101 W each; one after the other they would draw 215 W each."""
    one = lone_job(Limits(), 0.0, np.inf)
    slow_s, twice = float(one.frontier(0).t_max_s[0]), np.zeros(2, np.int64)
    assert one.frontier(0).t_opt_s[0] < 0.5 * slow_s
    tasks = Tasks.of(
        one.tasks.application[twice], scale=one.tasks.scale[twice],
        deadline_s=np.full(2, 0.88 * slow_s),
    )  # fmt: skip
    spec = ServerSpec("s", ((one.platform.kinds[0].name, 2),), 1, host_w=40.0, wake_j=0.0)
    platform = Platform.build(one.platform.kinds, (spec,), limits=Limits.of(242.0))
    capped = replace(one, tasks=tasks, platform=platform)
    found = search_known(capped)
    require_valid(capped, found.schedule)
    assert np.all(found.done)
    assert np.all(found.schedule.segments.end_s > 0.8 * slow_s)


def test_bounds_take_downtimes_that_leave_no_time_to_wake_as_one() -> None:
    """Between 100 and 130 s the server cannot wake, in 60 s: it can run from 260 s on."""
    length_s = 1.05 * float(lone_job(Limits(), 60.0, 1e5).frontier(0).t_min_s[0])
    down = [(0, 0.0, 100.0), (0, 130.0, 200.0)]
    problem = lone_job(Limits.of(down=down), 60.0, 260.0 + length_s)
    schedule = alone_from(problem, 260.0, length_s)
    require_valid(problem, schedule)
    energy_j = dc.account(problem, schedule).total_j
    for count in (1, 2, 8, 24):
        assert bins_bound(ask(problem, ENERGY), count=count) <= energy_j * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_cap_costs_clocks_before_it_costs_jobs(seed: int) -> None:
    """Jobs with much slack: below the peak of full speed all are still done, slower or later."""
    problem = busy_day(seed, 60)
    race = dc.plan(problem, "race")
    cap_w = 0.9 * peak_w(problem, race)
    capped = limited(problem, Limits.of(cap_w))
    found = search_known(capped, effort=0.05).schedule
    require_valid(capped, found)
    assert peak_w(capped, found) <= cap_w * (1 + 1e-9)
    assert np.sum(found.outcomes.status == DONE) == 60


def test_what_hardly_changes_a_problem_hardly_changes_its_plan() -> None:
    """A cap that does not bind, a downtime after all is done, prices that ripple by a hundredth."""
    problem = own_cluster(5, 12)
    last_s, hour = float(problem.tasks.deadline_s.max()), np.arange(96.0)
    free = search_known(problem, effort=0.1)
    for limits in (Limits.of(1e6), Limits.of(down=[(0, 2.0 * last_s, 3.0 * last_s)])):
        loose = search_known(limited(problem, limits), effort=0.1)
        assert loose.rank[0] == free.rank[0]
        assert loose.value <= 1.01 * free.value
    curve = Curve(3600.0 * hour, 0.1 + 0.001 * np.sin(hour), 96 * 3600.0)
    priced = replace(problem, prices=Prices((("default", ZonePrices(curve)),)))
    rippled = search_known(priced, parse_objective("cost"), effort=0.1)
    assert dc.account(problem, rippled.schedule).total_j <= 1.02 * free.value


def test_jobs_move_to_servers_that_are_up_or_to_later() -> None:
    """Both servers with A100 are down for an hour in which jobs ran; all is done nevertheless."""
    problem = busy_day(2, 20, servers=2)
    free = search_known(problem, effort=0.05).schedule
    start_s = float(np.median(free.segments.start_s))
    down = [(server, start_s, start_s + 3600.0) for server in range(2)]
    closed = limited(problem, Limits.of(down=down))
    assert not verify(closed, free).ok
    found = search_known(closed, effort=0.05).schedule
    require_valid(closed, found)
    assert np.sum(found.outcomes.status == DONE) >= 18


def test_every_policy_keeps_limits_or_refuses_by_name() -> None:
    problem = own_cluster(2, 6)
    for limits in (Limits.of(1500.0), Limits.of(down=[(0, 0.0, 40000.0)])):
        tight = limited(problem, limits)
        for name in CATALOG:
            why = policy(name).objection(tight)
            if why is None:
                require_valid(tight, dc.plan(tight, name))
            elif policy(name).objection(problem) is None:
                assert "cap" in why or "down" in why
        assert chosen_policy(tight).name.startswith("known")
    with pytest.raises(InvalidInput, match="power cap"):
        dc.simulate(limited(problem, Limits.of(1500.0)), "late")


@pytest.mark.parametrize("gang", [1, 4])
@pytest.mark.parametrize("host_w", [0.0, 50.0])
def test_a_cap_that_lets_one_job_run_at_a_time_has_them_follow_each_other(
    gang: int, host_w: float
) -> None:
    """Found by drawn problems: of six jobs without deadlines one was done, whatever the effort."""
    library = dc.built_in_library("v100")
    platform = Platform.build(
        [dc.Kind.of(library, "v100", idle_w=10.0)],
        [ServerSpec("s", (("v100", 4),), host_w=host_w, initially_on=True)],
        limits=Limits.of(40.0 + host_w + 100.0 * gang),
    )
    scale = np.linspace(1e6, 3e6, 3)
    for deadline_s in (np.inf, 1e5):
        tasks = Tasks.of(
            ["cfd"] * 3, library=library, scale=scale, deadline_s=deadline_s, processors=gang
        )
        problem = Problem(tasks, library, platform)
        found = search_known(problem)
        require_valid(problem, found.schedule)
        assert np.all(found.schedule.outcomes.status == DONE)


@pytest.mark.parametrize("seed", range(6))
def test_caps_hold_where_servers_that_are_awake_draw_nothing(seed: int) -> None:
    """Found by drawn problems: no job was found that draws, so plans stayed above the cap."""
    problem = own_cluster(seed, 20)
    kinds = [replace(kind, idle_w=0.0) for kind in problem.platform.kinds]
    specs = [replace(spec, host_w=0.0, wake_j=0.0, wake_s=0.0) for spec in problem.platform.specs]
    problem = replace(problem, platform=Platform.build(kinds, specs))
    free = search_known(problem, effort=LITTLE).schedule
    problem = limited(problem, Limits.of(0.5 * peak_w(problem, free)))
    found = search_known(problem, effort=LITTLE, start=[free])
    require_valid(problem, found.schedule)
    assert np.any(found.schedule.outcomes.status == DONE)


def test_without_effort_a_plan_round_downtimes_is_made_too() -> None:
    """The portfolio asked for `late`, which refuses them."""
    problem = limited(own_cluster(3, 8), Limits.of(None, down=[(0, 3600.0, 7200.0)]))
    plan = dc.plan(problem, chosen_policy(problem, effort=0.0))
    require_valid(problem, plan)
    assert np.all(plan.outcomes.status == DONE)


def test_a_cap_of_one_zone_sheds_no_job_of_another() -> None:
    """Four jobs of the free zone went before the one that draws under the cap."""
    library = dc.built_in_library("v100")
    specs = [
        ServerSpec(zone, (("v100", 4),), zone=zone, initially_on=True) for zone in ("free", "tight")
    ]
    kinds = [dc.Kind.of(library, "v100")]
    problem = Problem(
        Tasks.of(["cfd"] * 6, library=library, scale=1e6, deadline_s=1e5),
        library,
        Platform.build(kinds, specs, limits=Limits.of(None, [("tight", 150.0)])),
    )
    asked = ask(problem, ENERGY)
    running = Searching.of(problem, asked, 0)
    place = new_placement(asked.columns.jobs)
    place.runs.kind, place.runs.count, place.runs.start_s = 0, 1, 0.0
    place.runs.end_s = asked.columns.jobs.natural_s
    place.held[:] = [0, 0, 0, 1, 1, 0]
    running._begin(place)
    assert running.search.board.place.runs.start_s[[0, 1, 2, 5]].tolist() == [0.0] * 4
    require_valid(problem, running.schedule())


def test_a_time_at_the_edge_of_a_cell_is_that_edge() -> None:
    """For one in eight whole numbers k, k x step / step is not k."""
    step_s, edges = 97.7, np.arange(1, 1000)
    question = ask(limited(own_cluster(0, 3), Limits.of(1e6)), ENERGY).columns
    question.caps.step_s = step_s
    for later in (False, True):
        found = [cell_edge_s.py_func(question, k * step_s, later) for k in edges]
        assert np.allclose(found, edges * step_s, rtol=1e-12, atol=0.0)
    assert cell_edge_s.py_func(question, 1.5 * step_s, True) == 2.0 * step_s
    assert cell_edge_s.py_func(question, 1.5 * step_s, False) == step_s
