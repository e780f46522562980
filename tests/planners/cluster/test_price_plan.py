"""`thrifty` and its bound: laws over generated problems, forecasts, sites, negative prices."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from downclock.engine.play import plan
from downclock.errors import InvalidInput
from downclock.planners.catalog import policy
from downclock.planners.cluster.price_bound import expected, price_bound, tariff_of
from downclock.planners.default import default_policy
from downclock.planners.per_task import per_task_bound_j
from downclock.problem.files.read_prices import read_prices
from downclock.problem.objective import Objective, parse_objective
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE, Schedule
from downclock.schedule.verify.verify import verify
from downclock.study.summary import summarise
from downclock.units import J_PER_KWH
from downclock.workloads import mei
from tests.generated import random_problem
from tests.golden.problems import problems

COST = Objective(cost=1.0)
HOUR_S = 3600.0
SEEDS = range(12)


def hourly(values: list[float] | np.ndarray, end_s: float = np.inf) -> Curve:
    values = np.asarray(values, dtype=np.float64)
    return Curve(np.arange(values.size) * HOUR_S, values, end_s)


def day_prices(seed: int) -> Curve:
    """A cheap noon, a dear evening, and some noise, for three days; the last value stays."""
    hour = np.arange(72)
    noise = np.random.default_rng(seed).uniform(0.0, 0.02, hour.size)
    return hourly(0.1 + 0.08 * np.sin(2 * np.pi * (hour - 14) / 24) + noise)


def small_day(seed: int, size: int = 4, zone: ZonePrices | None = None) -> Problem:
    cluster = mei.Cluster(pairs=128, per_server=size)
    drawn = mei.online(seed, utilisation=0.06, initial_utilisation=0.015, cluster=cluster)
    return replace(drawn, prices=Prices((("default", zone or ZonePrices(day_prices(seed))),)))


def value(problem: Problem, schedule: Schedule, objective: Objective) -> float:
    """The value at expected prices, none negative."""
    bill = account(expected(problem), schedule)
    return objective.value(bill.total_j, bill.money_clipped, bill.carbon_kg)


def generated(seed: int, **knobs: object) -> Problem:
    return random_problem(
        seed, edges=False, slot_s=None, chip_wide=False, prices=True, **{"gangs": False, **knobs}
    )


@cache
def batch(seed: int) -> Problem:
    drawn = generated(seed, tasks=14)
    return replace(drawn, tasks=replace(drawn.tasks, arrival_s=np.zeros(14)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("text", ["cost", "carbon", "0.7cost+0.3carbon"])
def test_the_bound_is_never_above_any_valid_schedule(seed: int, text: str) -> None:
    problem, objective = generated(seed), parse_objective(text)
    each = price_bound(problem, objective)
    for spec in (f"thrifty:objective={text}", "late", "race"):
        schedule = plan(problem, policy(spec))
        assert verify(problem, schedule).ok
        done = schedule.outcomes.status == DONE
        assert value(problem, schedule, objective) >= each[done].sum() * (1 - 1e-9)


def test_the_bound_holds_for_every_run_of_a_task_and_is_nearly_reached() -> None:
    problem = small_day(1)
    each, frontier = price_bound(problem, COST), problem.frontier(0)
    price = problem.prices.of("default").price
    assert price is not None
    rng = np.random.default_rng(0)
    nearest = np.full(len(each), np.inf)
    tasks = problem.tasks
    for _ in range(1000):
        long = np.minimum(frontier.t_max_s, tasks.deadline_s - tasks.arrival_s)
        length = frontier.t_min_s + rng.uniform(size=len(each)) * (long - frontier.t_min_s)
        start = tasks.arrival_s + rng.uniform(size=len(each)) * (
            tasks.deadline_s - tasks.arrival_s - length
        )
        watt = price.integral(start, start + length) / J_PER_KWH
        run = frontier.at(length).energy_j / length * watt
        assert np.all(run >= each * (1 - 1e-9))
        nearest = np.minimum(nearest, run)
    assert np.median(nearest / each) < 1.05


@pytest.mark.parametrize("seed", range(6))
def test_at_a_price_of_one_the_bound_is_the_energy_bound(seed: int) -> None:
    problem = generated(seed)
    zones = tuple((name, ZonePrices(Curve.constant(1.0))) for name in problem.platform.zones)
    priced = replace(problem, prices=Prices(zones))
    money, energy = price_bound(priced, COST) * J_PER_KWH, per_task_bound_j(problem)
    np.testing.assert_array_equal(np.isfinite(money), np.isfinite(energy))
    some = np.isfinite(energy)
    assert np.all(money[some] <= energy[some] * (1 + 1e-9))
    np.testing.assert_allclose(money[some], energy[some], rtol=2e-3)


@pytest.mark.parametrize("seed", range(100, 112))
def test_a_batch_costs_at_most_what_the_price_blind_plan_costs(seed: int) -> None:
    problem = batch(seed)
    ours, blind = plan(problem, policy("thrifty")), plan(problem, policy("late"))
    lost = [int(np.sum(each.outcomes.status != DONE)) for each in (ours, blind)]
    assert lost[0] <= lost[1]
    if lost[0] == lost[1]:
        assert value(problem, ours, COST) <= value(problem, blind, COST) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [1, 4])
def test_a_day_costs_less_than_blind_to_prices_and_no_deadline_is_missed(
    seed: int, size: int
) -> None:
    problem = small_day(seed, size)
    ours, blind = plan(problem, policy("thrifty")), plan(problem, policy("late"))
    assert verify(problem, ours).ok
    assert np.all(ours.outcomes.status == DONE)
    assert value(problem, ours, COST) < value(problem, blind, COST)


@pytest.mark.parametrize("seed", range(4))
def test_decisions_see_the_forecast_only(seed: int) -> None:
    zone = ZonePrices(price=day_prices(seed + 50), price_forecast=day_prices(seed))
    told = small_day(seed, zone=zone)
    other = small_day(seed, zone=replace(zone, price=hourly(np.linspace(1.0, -1.0, 72))))
    first, second = plan(told, policy("thrifty")), plan(other, policy("thrifty"))
    np.testing.assert_array_equal(first.segments.start_s, second.segments.start_s)
    np.testing.assert_array_equal(first.segments.processor, second.segments.processor)
    assert account(told, first).money != account(other, second).money


def test_the_bound_on_actual_prices_differs_from_that_on_the_forecast() -> None:
    zone = ZonePrices(price=day_prices(7), price_forecast=hourly(np.full(72, 0.5)))
    problem = small_day(3, zone=zone)
    assert price_bound(problem, COST).sum() > price_bound(problem, COST, actual=True).sum()


def test_where_prices_never_change_it_plans_as_for_energy() -> None:
    problem = small_day(2, zone=ZonePrices(Curve.constant(0.3)))
    ours, blind = plan(problem, policy("thrifty")), plan(problem, policy("late"))
    np.testing.assert_array_equal(ours.segments.start_s, blind.segments.start_s)


def test_two_sites_cost_less_than_either_alone() -> None:
    """The dear hours of one site are the cheap ones of the other."""
    hour = np.arange(72)
    east, west = (hourly(0.1 + 0.08 * np.sin(2 * np.pi * (hour - x) / 24)) for x in (2, 14))
    drawn = small_day(4)
    half = replace(drawn.platform.specs[0], count=16)

    def cost(first: Curve, second: Curve) -> float:
        servers = (replace(half, name="e", zone="east"), replace(half, name="w", zone="west"))
        zones = (("east", ZonePrices(first)), ("west", ZonePrices(second)))
        platform = Platform.build(drawn.platform.kinds, servers)
        problem = replace(drawn, platform=platform, prices=Prices(zones))
        schedule = plan(problem, policy("thrifty"))
        assert verify(problem, schedule).ok
        assert np.all(schedule.outcomes.status == DONE)
        return value(problem, schedule, COST)

    assert cost(east, west) < 0.95 * min(cost(east, east), cost(west, west))


def test_negative_prices_count_zero_in_decisions_and_true_in_the_bill() -> None:
    zone = ZonePrices(hourly([0.2, 0.2, -0.1, -0.1, -0.1, 0.2, 0.2] + [0.2] * 65))
    problem = small_day(5, zone=zone)
    assert tariff_of(problem, COST).rate.min() == 0.0
    schedule = plan(problem, policy("thrifty"))
    bill = account(problem, schedule)
    assert bill.money is not None
    assert bill.money_clipped is not None
    assert bill.money < bill.money_clipped
    assert price_bound(problem, COST).min() >= 0.0
    energy = account(problem, schedule).total_j
    assert energy < account(problem, plan(problem, policy("race"))).total_j


def test_a_curve_that_ends_too_early_is_refused_with_its_zone_and_the_span_needed() -> None:
    problem = small_day(6, zone=ZonePrices(hourly([0.1] * 24, end_s=24 * HOUR_S)))
    last = f"{problem.tasks.deadline_s.max():g} s"
    with pytest.raises(InvalidInput, match=f"zone 'default'.*at {last}.*to 86400 s"):
        plan(problem, policy("thrifty"))


def test_a_curve_that_ends_with_the_last_deadline_is_enough() -> None:
    drawn = small_day(6)
    last = float(drawn.tasks.deadline_s.max())
    zone = ZonePrices(Curve(np.array([0.0, 7200.0, 20000.0]), np.array([0.3, 0.1, 0.2]), last))
    problem = replace(drawn, prices=Prices((("default", zone),)))
    schedule = plan(problem, policy("thrifty"))
    assert verify(problem, schedule).ok
    assert np.all(schedule.outcomes.status == DONE)


def test_a_zone_without_a_price_is_refused_by_name() -> None:
    problem = replace(small_day(1), prices=Prices())
    assert "zone 'default'" in str(policy("thrifty").objection(problem))
    with pytest.raises(InvalidInput, match="needs a price, and there is none"):
        default_policy(problem, "cost")


def test_a_scarce_cluster_loses_no_job_that_the_price_blind_plan_keeps() -> None:
    """Held-back jobs make room: one processor, jobs that fill it nearly to the last second."""
    library = mei.online(1).library
    kind = Kind("pair", mei.MEI2021.clocks, idle_w=37.0, clock="locked")
    platform = Platform.build((kind,), (ServerSpec("s", (("pair", 1),), wake_j=5400.0),))
    drawn = Problem(
        Tasks.of(np.arange(4), deadline_s=np.full(4, 1e9), scale=np.full(4, 600.0)),
        library, platform,
    )  # fmt: skip
    short = drawn.frontier(0).t_min_s
    arrival = np.array([0.0, 0.0, 60.0, 120.0])
    deadline = arrival + np.array([1.0, 2.2, 3.3, 4.4]) * 1.05 * short.max()
    tasks = Tasks.of(np.arange(4), arrival_s=arrival, deadline_s=deadline, scale=np.full(4, 600.0))
    rising = ZonePrices(hourly(np.linspace(0.9, 0.1, 24)))
    problem = replace(drawn, tasks=tasks, prices=Prices((("default", rising),)))
    ours, blind = plan(problem, policy("thrifty")), plan(problem, policy("late"))
    assert verify(problem, ours).ok
    assert np.sum(ours.outcomes.status == DONE) >= np.sum(blind.outcomes.status == DONE)


def test_the_summary_tells_the_worth_of_clocks_from_that_of_prices() -> None:
    problem = small_day(8)
    summary = summarise(problem, "thrifty")
    named = [each.policy for each in (summary.plan, *summary.baselines)]
    assert named == ["thrifty", "race", "thrifty:dvfs=off", "late"]
    ours, race, fast, blind = (each.value.amount for each in summary.plans)
    assert ours < blind < race
    assert ours < fast < race


def test_on_the_day_of_25_hours_jobs_run_in_the_cheap_hour_that_comes_twice(
    tmp_path: Path,
) -> None:
    """Berlin, 27 October 2024: 02:00 comes at +02:00 (dear) and again at +01:00 (free)."""
    stamps = [f"2024-10-27T{hour:02}:00+02:00" for hour in range(3)]
    stamps += [f"2024-10-27T{hour:02}:00+01:00" for hour in range(2, 24)]
    rows = [f"{stamp},{0.0 if k == 3 else 0.4}" for k, stamp in enumerate(stamps)]
    (tmp_path / "prices.csv").write_text("timestamp,price_per_kwh\n" + "\n".join(rows) + "\n")
    epoch = datetime(2024, 10, 27, tzinfo=ZoneInfo("Europe/Berlin"))
    prices = read_prices(tmp_path / "prices.csv", epoch=epoch)
    drawn = small_day(1, size=1)
    some = Tasks.of(np.arange(5), deadline_s=np.full(5, 25 * HOUR_S), scale=np.full(5, 300.0))
    problem = replace(drawn, tasks=some, prices=prices, epoch=epoch)
    segments = plan(problem, policy("thrifty")).segments
    assert np.all(segments.start_s < 4 * HOUR_S)
    assert np.all(segments.end_s > 3 * HOUR_S)


@pytest.mark.parametrize("wake_s", [600.0, 3600.0])
@pytest.mark.parametrize("seed", range(3))
def test_servers_that_take_long_to_wake_under_jagged_prices(seed: int, wake_s: float) -> None:
    """A woken server may lose its task to another plan, so there are more wakes than tasks."""
    drawn = small_day(seed, size=1)
    noise = np.random.default_rng(seed).uniform(0.0, 0.3, 864)
    jagged = ZonePrices(Curve(np.arange(noise.size) * 300.0, noise, np.inf))
    servers = drawn.platform.server_count
    platform = replace(
        drawn.platform, wake_s=np.full(servers, wake_s), wake_j=np.full(servers, 10.0)
    )
    deadline = np.maximum(drawn.tasks.deadline_s, drawn.tasks.arrival_s + 2 * wake_s + 20000.0)
    tasks = replace(drawn.tasks, deadline_s=deadline)
    problem = replace(drawn, platform=platform, tasks=tasks, prices=Prices((("default", jagged),)))
    schedule = plan(problem, policy("thrifty"))
    verdict = verify(problem, schedule)
    assert verdict.ok, str(verdict)
    assert np.all(schedule.outcomes.status == DONE)


@pytest.mark.parametrize("seed", range(3))
def test_little_room_for_decisions_changes_nothing(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop stops where its tables may be full, and goes on with empty ones."""
    from downclock.planners.cluster import whole_run as ours

    problem = small_day(seed, size=1)
    whole = plan(problem, policy("thrifty"))
    monkeypatch.setattr(ours, "CHUNK", 1)
    parts = plan(problem, policy("thrifty"))
    np.testing.assert_array_equal(parts.segments.start_s, whole.segments.start_s)
    np.testing.assert_array_equal(parts.spans.end_s, whole.spans.end_s)


def chosen(problem: Problem, some: np.ndarray, **columns: np.ndarray) -> Problem:
    """The problem with some of its tasks, and columns of theirs changed."""
    tasks = problem.tasks
    parts = Tasks.of(
        tasks.application[some], arrival_s=tasks.arrival_s[some], deadline_s=tasks.deadline_s[some],
        scale=tasks.scale[some],
    )  # fmt: skip
    return replace(problem, tasks=replace(parts, **columns))


@pytest.mark.parametrize("arrival_s", [[0.0, 1.0], [0.0, 0.0]])
def test_a_server_that_is_on_sleeps_until_the_valley(arrival_s: list[float]) -> None:
    """Idling for 8 hours would cost many times the runs; the other wake costs next to nothing."""
    valley = ZonePrices(hourly([0.3] * 8 + [0.01] * 8 + [0.3] * 56))
    asleep = chosen(
        small_day(1, zone=valley), np.arange(2), arrival_s=np.array(arrival_s),
        deadline_s=np.full(2, 20 * HOUR_S),
    )  # fmt: skip
    on = np.zeros(asleep.platform.server_count, bool)
    on[0] = True
    awake = replace(asleep, platform=replace(asleep.platform, initially_on=on))
    costs = []
    for problem in (awake, asleep):
        schedule = plan(problem, policy("thrifty"))
        assert verify(problem, schedule).ok
        assert np.all(schedule.segments.start_s >= 8 * HOUR_S)
        costs.append(value(problem, schedule, COST))
    assert costs[0] <= costs[1] * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("deadline", ["far", "none", "near"])
def test_a_task_is_not_known_before_it_arrives(seed: int, deadline: str) -> None:
    """Only the task that arrives last differs: until then all is decided alike."""
    one = small_day(seed)
    last = int(np.argmax(one.tasks.arrival_s))
    when = float(one.tasks.arrival_s[last])
    changed = one.tasks.deadline_s.copy()
    changed[last] = {
        "far": changed.max() + 20 * HOUR_S, "none": np.inf, "near": changed[last] - 1.0
    }[deadline]  # fmt: skip
    other = replace(one, tasks=replace(one.tasks, deadline_s=changed))
    known = []
    for problem in (one, other):
        segments = plan(problem, policy("thrifty")).segments
        early = np.flatnonzero(segments.start_s < when)
        early = early[np.argsort(segments.task[early])]
        known.append([
            column[early] for column in
            (segments.task, segments.processor, segments.start_s, segments.end_s)
        ])  # fmt: skip
    assert known[0][0].size > 20
    for first, second in zip(*known, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("seed", range(20))
def test_a_run_waits_as_long_as_that_costs_little(seed: int) -> None:
    """Against starts tried one by one: the last of the first row of those that are cheap enough."""
    from downclock.planners.cluster.kernels.tariff import last_start_s, new_tariff, over

    rng = np.random.default_rng([seed, 61])
    tariff = new_tariff(np.arange(25) * HOUR_S, rng.uniform(0.5, 1.5, (1, 24)))
    from_s, length_s = rng.uniform(0.0, 5.0) * HOUR_S, rng.uniform(0.2, 6.0) * HOUR_S
    to_s = from_s + rng.uniform(0.0, 12.0) * HOUR_S
    most = (1.0 + rng.uniform(0.0, 0.2)) * over(tariff, 0, from_s, from_s + length_s)
    found = last_start_s(tariff, 0, from_s, to_s, length_s, most)
    tried = np.linspace(from_s, to_s, 2001)
    dear = [over(tariff, 0, s, s + length_s) > most * (1.0 + 1e-9) for s in tried]
    first = int(np.argmax(dear)) if any(dear) else tried.size
    assert found == pytest.approx(tried[first - 1], abs=1.01 * (to_s - from_s) / 2000)


@pytest.mark.parametrize("name", ["workflows-2", "priced-4", "whole-11"])
def test_a_run_time_reserved_on_one_kind_is_not_that_of_another(name: str) -> None:
    """Gangs on two or three kinds with clocks of their own, some reserved here and run there."""
    problem = problems()[name]
    schedule = plan(problem, policy("thrifty"))
    assert verify(problem, schedule).ok
    assert np.all(np.isfinite(schedule.segments.core))


def test_without_any_deadline_all_jobs_run_in_the_valley_and_none_is_rejected() -> None:
    """The last price holds for ever; there is time for what has arrived."""
    valley = ZonePrices(hourly([0.3] * 30 + [0.01] * 8 + [0.3]))
    drawn = small_day(2, zone=valley)
    problem = replace(
        drawn, tasks=replace(drawn.tasks, deadline_s=np.full(len(drawn.tasks), np.inf))
    )
    schedule = plan(problem, policy("thrifty"))
    assert verify(problem, schedule).ok
    assert np.all(schedule.outcomes.status == DONE)
    rows = schedule.segments
    outside_s = np.maximum(rows.end_s - 38 * HOUR_S, 0.0)
    outside_s += np.maximum(30 * HOUR_S - rows.start_s, 0.0)
    assert np.all(outside_s <= 0.01 * (rows.end_s - rows.start_s))


@pytest.mark.parametrize("seed", range(100, 112))
def test_a_batch_is_decided_at_once_however_it_is_played(seed: int) -> None:
    """All servers on at the start: what comes after must not put them to sleep once more."""
    drawn = batch(seed)
    on = np.ones(drawn.platform.server_count, bool)
    problem = replace(drawn, platform=replace(drawn.platform, initially_on=on))
    whole = plan(problem, policy("thrifty"))
    parts = plan(problem, policy("thrifty"), stepwise=True)
    assert len(parts.spans) == len(whole.spans)
    for table in ("segments", "spans"):
        for name in ("start_s", "end_s"):
            one, other = (np.sort(getattr(getattr(s, table), name)) for s in (parts, whole))
            np.testing.assert_array_equal(one, other)


def test_a_rejected_job_is_told_what_stands_in_its_way() -> None:
    """The wake, the time the prices are known, or other jobs."""
    drawn = small_day(1, size=1)
    servers = drawn.platform.server_count
    slow = replace(drawn.platform, wake_s=np.full(servers, 5000.0))
    short = float(drawn.frontier(0).t_min_s[0])
    valley = Curve(np.array([0.0, 600.0]), np.array([0.3, 0.1]), short + 4000.0)
    base = replace(drawn, platform=slow, prices=Prices((("default", ZonePrices(valley)),)))
    for deadline, told in (
        (short + 3000.0, f"cannot end by its deadline {short + 3000.0:g} s .*must wake"),
        (np.inf, f"no deadline.*until {short + 4000.0:g} s.*must wake.*{short + 5000.0:g} s"),
        (0.5 * short, f"even at full speed: earliest {short:g} s"),
    ):
        problem = chosen(base, np.arange(1), arrival_s=np.zeros(1), deadline_s=np.array([deadline]))
        reason = plan(problem, policy("thrifty")).outcomes.reason[0]
        assert re.search(told, reason), reason
