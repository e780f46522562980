"""When `thrifty` waits for cheap hours, and when it plans as if blind to prices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.cli.compile import _samples as samples
from downclock.engine.play import plan
from downclock.engine.view import View
from downclock.planners.catalog import policy
from downclock.planners.cluster import policy as cluster_policy
from downclock.planners.cluster import price_choice
from downclock.planners.cluster.price_choice import PriceWatch, pays, spread_j, trust
from downclock.problem.objective import Objective
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE, Schedule
from downclock.schedule.verify.verify import verify
from downclock.workloads import mei
from tests.generated import random_problem

HOUR_S = 3600.0
HOURS = np.arange(96)
WAVE = np.sin(2 * np.pi * HOURS / 24)


def a_day(seed: int, size: int, values: np.ndarray) -> Problem:
    cluster = mei.Cluster(pairs=128, per_server=size)
    drawn = mei.online(seed, utilisation=0.06, initial_utilisation=0.015, cluster=cluster)
    curve = Curve(np.arange(values.size) * HOUR_S, values, np.inf)
    return replace(drawn, prices=Prices((("default", ZonePrices(curve)),)))


def is_worth_it(problem: Problem) -> bool:
    """Tell whether `thrifty` waits, by the tasks that are there at time 0."""
    view, made = View(problem), policy("thrifty")
    at_zero = np.flatnonzero(problem.tasks.arrival_s == 0.0)
    known = view.tasks.add(problem.tasks, at_zero)
    state = made.start(view)
    made.tell(state, view, known, np.zeros(known.size))
    return pays(view, Objective(cost=1.0), state.curves, state.board, known, 0.0)


def money(problem: Problem, schedule: Schedule) -> float:
    assert verify(problem, schedule).ok
    return float(account(problem, schedule).money_clipped or 0.0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [1, 4, 16])
@pytest.mark.parametrize("ripple", [0.0, 0.001])
def test_where_prices_hardly_change_it_costs_what_the_price_blind_plan_costs(
    seed: int, size: int, ripple: float
) -> None:
    problem = a_day(seed, size, 0.1 * (1.0 + ripple * WAVE))
    ours, blind = plan(problem, policy("thrifty")), plan(problem, policy("late"))
    assert money(problem, ours) <= money(problem, blind) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_at_one_price_any_problem_costs_what_the_price_blind_plan_costs(seed: int) -> None:
    drawn = random_problem(seed, edges=False, slot_s=None, chip_wide=False, tasks=16)
    zones = tuple((name, ZonePrices(Curve.constant(0.2))) for name in drawn.platform.zones)
    problem = replace(drawn, prices=Prices(zones))
    ours, blind = plan(problem, policy("thrifty")), plan(problem, policy("late"))
    assert money(problem, ours) <= money(problem, blind) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_where_room_is_scarce_nothing_waits_and_no_job_is_lost_for_it(seed: int) -> None:
    """Tasks that need 0.77 of all processors: who waits leaves no room for those to come."""
    drawn = a_day(seed, 4, 0.1 * (1.0 + 0.5 * WAVE))
    scarce = replace(drawn, platform=mei.Cluster(pairs=20, per_server=4).platform())
    assert is_worth_it(drawn)
    assert not is_worth_it(scarce)
    kept = [plan(scarce, policy(name)).outcomes.status == DONE for name in ("late", "thrifty")]
    assert np.all(kept[1] | ~kept[0])


@pytest.mark.parametrize("size", [4, 16])
def test_a_ripple_is_worth_waiting_for_only_where_processors_sleep_alone(size: int) -> None:
    """A best hour some per cent below the mean: less than the ends of a shared server cost."""
    values = 0.1 * (1.0 + 0.09 * WAVE)
    small, large = (a_day(1, each, values) for each in (1, size))
    assert is_worth_it(small)
    assert not is_worth_it(large)


def cheap_nights(seed: int, size: int) -> Problem:
    """Return three quiet days, then nights that cost a tenth; jobs come for four days."""
    hours = np.arange(168)
    values = np.where(hours < 72, 0.1, np.where(hours % 24 < 12, 0.02, 0.2))
    first = a_day(seed, size, values)
    tasks = first.tasks
    arrival = 4.0 * tasks.arrival_s
    deadline = arrival + tasks.deadline_s - tasks.arrival_s
    return replace(first, tasks=replace(tasks, arrival_s=arrival, deadline_s=deadline))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [1, 4, 16])
def test_what_the_price_blind_policy_began_is_taken_over_when_prices_begin_to_change(
    seed: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = cheap_nights(seed, size)
    times, real = [], cluster_policy.pays

    def noted(view, objective, curves, board, known, now_s):  # type: ignore[no-untyped-def]
        found = real(view, objective, curves, board, known, now_s)
        times.extend([now_s] * found)
        return found

    monkeypatch.setattr(cluster_policy, "pays", noted)
    ours, blind = plan(problem, policy("thrifty")), plan(problem, policy("late"))
    assert len(times) == 1
    assert 0.0 < times[0] < 72 * HOUR_S
    assert np.all(ours.outcomes.status == DONE)
    if size < 16:
        assert money(problem, ours) < money(problem, blind)
    early = [each.segments.start_s < times[0] for each in (ours, blind)]
    np.testing.assert_array_equal(
        np.sort(ours.segments.start_s[early[0]]), np.sort(blind.segments.start_s[early[1]])
    )
    parts = plan(problem, policy("thrifty"), stepwise=True)
    assert money(problem, parts) == pytest.approx(money(problem, ours), rel=1e-12)


def test_the_question_is_asked_at_once_then_for_twice_the_tasks_or_after_six_hours() -> None:
    watch = PriceWatch(asks=True)
    assert watch.is_due(1, 0.0)
    watch = watch.after(200, 5.0, waits=False)
    assert not watch.is_due(399, 9.0)
    assert watch.is_due(400, 9.0)
    assert watch.is_due(201, 5.0 + 6 * HOUR_S)
    assert not PriceWatch(asks=False).is_due(100, 1e9)


def test_while_tasks_wait_it_is_asked_with_every_fiftieth_whether_room_is_scarce() -> None:
    watch = PriceWatch(asks=True).after(200, 5.0, waits=True)
    assert not watch.is_due(203, 9.0)
    assert watch.is_due(204, 9.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_cluster_that_is_soon_full_costs_no_more_with_eyes_for_prices(seed: int) -> None:
    """Who waited filled the cheap hours: one job found no room, or others raced (+25, +4 %)."""
    drawn = a_day(seed, 1, 0.1 * (1.0 + 0.5 * WAVE))
    problem = replace(drawn, platform=mei.Cluster(pairs=28, per_server=1).platform())
    ours, blind = plan(problem, policy("thrifty")), plan(problem, policy("late"))
    assert np.all((ours.outcomes.status == DONE) | (blind.outcomes.status != DONE))
    assert money(problem, ours) <= 1.005 * money(problem, blind)


def test_who_waits_lets_go_when_room_becomes_scarce_and_asks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Enough room at time 0, too little six hours later, enough again after another six."""
    problem, made = a_day(1, 4, 0.1 * (1.0 + 0.5 * WAVE)), policy("thrifty")
    view, busy = View(problem), iter([0.0, 0.9, 0.0])
    state = made.start(view)
    known = view.tasks.add(problem.tasks, np.flatnonzero(problem.tasks.arrival_s == 0.0))
    made.tell(state, view, known, np.zeros(known.size))
    state.watch = state.watch._replace(enough=10 * known.size)
    answer = lambda *_: next(busy)  # noqa: E731
    monkeypatch.setattr(price_choice, "must_be_busy", answer)
    monkeypatch.setattr(cluster_policy, "must_be_busy", answer)
    waits = []
    for hour in (0.0, 6.0, 12.0):
        made.ask_waiting(state, view, 1, hour * HOUR_S)
        waits.append(int(state.board.tally["priced"][0]))
    assert waits == [1, 0, 1]


def test_a_forecast_must_promise_half_as_much_again() -> None:
    known = a_day(1, 4, 0.1 * (1.0 + 0.3 * WAVE)).prices.of("default")
    told = replace(known, price_forecast=known.price)
    shares = [
        trust(Prices((("default", zone),)), objective)
        for zone in (known, told)
        for objective in (Objective(cost=1.0), Objective(carbon=1.0))
    ]
    assert shares == [1.0, 1.0, pytest.approx(2.0 / 3.0), 1.0]


@pytest.mark.parametrize("size", [4, 16])
def test_what_is_promised_must_exceed_the_loss_by_a_quarter_and_more_on_a_forecast(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The smallest wave that pays, as the loss is counted more or less."""

    def needed(told: bool, margin: float) -> float:
        monkeypatch.setattr(price_choice, "MARGINS", ((price_choice.AHEAD_S, margin),))
        for depth in np.arange(0.02, 0.6, 0.02):
            problem = a_day(1, size, 0.1 * (1.0 + depth * WAVE))
            zone = problem.prices.of("default")
            zone = replace(zone, price_forecast=zone.price if told else None)
            if is_worth_it(replace(problem, prices=Prices((("default", zone),)))):
                return float(depth)
        return np.inf

    plain, sure, told = needed(False, 1.0), needed(False, 1.25), needed(True, 1.25)
    assert plain < sure < told < 0.6


def test_what_a_block_of_tasks_loses() -> None:
    """Two ends even over 3600 s: the later comes 600 s after the mean; a wake is shared."""
    platform = a_day(1, 2, 0.1 + 0.0 * WAVE).platform
    lost = spread_j(platform, np.full(platform.server_count, 100.0), 3600.0)
    assert lost == pytest.approx((100.0 * 600.0 + platform.wake_j[0]) / 2)
    alone = a_day(1, 1, 0.1 + 0.0 * WAVE).platform
    assert spread_j(alone, np.full(128, 100.0), 3600.0) == pytest.approx(alone.wake_j[0])


def test_compiling_beforehand_reaches_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    times, real = [], cluster_policy.pays

    def noted(view, objective, curves, board, known, now_s):  # type: ignore[no-untyped-def]
        found = real(view, objective, curves, board, known, now_s)
        times.extend([now_s] * found)
        return found

    monkeypatch.setattr(cluster_policy, "pays", noted)
    for problem in samples():
        if policy("thrifty").objection(problem) is None:
            plan(problem, policy("thrifty"))
    assert times == [0.0]


def test_a_shared_server_awake_for_a_handful_of_jobs_saves_in_cheap_nights_on_the_mean():
    """One of 16 is awake all day: little is to be saved, and one draw of jobs may lose it."""
    parts = []
    for seed in range(12):
        problem = cheap_nights(seed, 16)
        ours, blind = plan(problem, policy("thrifty")), plan(problem, policy("late"))
        parts.append(money(problem, ours) / money(problem, blind))
    assert np.mean(parts) < 0.995
    assert max(parts) < 1.05
