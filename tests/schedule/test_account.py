"""The accountant's rules, one at a time, on platforms small enough to bill by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from downclock.errors import InvalidInput, InvalidSchedule
from downclock.power.library import Library
from downclock.power.points import ClockRange
from downclock.power.profiles import CpuProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.account.bill import Bill, Boundary
from downclock.schedule.schedule import (
    ASLEEP,
    DOWN,
    ON,
    WAKING,
    Outcomes,
    PowerSpans,
    Schedule,
    Segments,
)
from downclock.schedule.states import server_states

INF = np.inf
FOREVER_ON = (0, ON, 0.0, INF)


def cores(*specs: ServerSpec, idle_w: float = 1.0, prices: Prices | None = None) -> Problem:
    """Three tasks of 10 s at clock 1 and 8 core³ W, on servers of kind 'core'."""
    profile = CpuProfiles(*(np.array([value]) for value in (10.0, 8.0, 3.0, 0.0)))
    return Problem(
        Tasks.of(np.zeros(3, dtype=np.int64), deadline_s=np.full(3, INF)),
        Library.of_one_kind(np.array(["app"], dtype=object), "core", profile),
        Platform.build((Kind("core", ClockRange(0.1, 2.0), idle_w=idle_w),), specs),
        prices=prices or Prices(),
    )


def server(processors: int = 1, name: str = "s", **fields: Any) -> ServerSpec:
    return ServerSpec(name, (("core", processors),), **fields)


def answer(
    ran: list[tuple[int, int, float, float, float]],
    spans: list[tuple[int, int, float, float]] | None = None,
) -> Schedule:
    """Return a schedule of segments (task, processor, start, end, core) and power spans."""
    rows = np.array(ran, dtype=float).reshape(-1, 5)
    power = np.array(spans or [], dtype=float).reshape(-1, 4)
    points = np.column_stack([rows[:, 4], np.ones(len(rows)), np.ones(len(rows))])
    return Schedule(
        Segments.of(rows[:, 0], rows[:, 1].astype(int), rows[:, 2], rows[:, 3], points),
        PowerSpans(power[:, 0], power[:, 1], power[:, 2], power[:, 3]),
        Outcomes.all_done(3),
    )


def parts(bill: Bill) -> dict[str, float]:
    """Parts of the bill that are not 0."""
    return {part: joules for part, joules in bill.energy_j.items() if joules != 0.0}


# Windows and states


@pytest.mark.parametrize(
    ("boundary", "host_j"), [("last-task", 100.0), ("makespan", 300.0), (50.0, 500.0)]
)
def test_an_open_span_is_closed_where_the_window_ends(boundary: Boundary, host_j: float) -> None:
    problem = cores(server(host_w=10.0), server(name="other"), idle_w=0.0)
    schedule = answer([(0, 0, 0, 10, 1), (1, 1, 20, 30, 1)], [FOREVER_ON, (1, ON, 20.0, 30.0)])
    assert account(problem, schedule, boundary=boundary).energy_j["host"] == host_j


def test_a_span_with_an_end_is_billed_whole() -> None:
    problem = cores(server(host_w=10.0, sleep_w=1.0), idle_w=0.0)
    schedule = answer([(0, 0, 0, 10, 1)], [(0, ON, 0.0, 25.0), (0, ASLEEP, 25.0, 30.0)])
    assert parts(account(problem, schedule)) == {"run": 80.0, "host": 250.0, "sleep": 5.0}


def test_time_without_spans_is_sleep_inside_the_window_only() -> None:
    problem = cores(server(sleep_w=2.0), idle_w=0.0)
    schedule = answer(
        [(0, 0, 10, 20, 1), (1, 0, 30, 40, 1)], [(0, ON, 10.0, 20.0), (0, ON, 30.0, 40.0)]
    )
    assert account(problem, schedule).energy_j["sleep"] == 2.0 * (10 + 10)
    assert account(problem, schedule, boundary=100.0).energy_j["sleep"] == 2.0 * (10 + 10 + 60)


def test_a_window_that_ends_too_late_for_its_energy_is_refused() -> None:
    problem = cores(server(host_w=10.0))
    with pytest.raises(InvalidInput, match="boundary=1e\\+308 is so late"):
        account(problem, answer([(0, 0, 0, 10, 1)], [FOREVER_ON]), boundary=1e308)


def test_a_gap_before_a_later_span_ends_with_the_window() -> None:
    problem = cores(server(host_w=10.0, sleep_w=2.0), idle_w=0.0)
    schedule = answer([(0, 0, 0, 10, 1)], [(0, ON, 0.0, 10.0), (0, ON, 30.0, 40.0)])
    assert parts(account(problem, schedule)) == {"run": 80.0, "host": 200.0}
    bill = account(problem, schedule, boundary=25.0)
    assert parts(bill) == {"run": 80.0, "host": 200.0, "sleep": 30.0}


def test_a_server_initially_on_stays_on_until_its_first_span() -> None:
    problem = cores(server(host_w=10.0, sleep_w=2.0, initially_on=True), idle_w=0.0)
    asleep_later = answer([(0, 0, 0, 10, 1)], [(0, ASLEEP, 15.0, 20.0)])
    bill = account(problem, asleep_later, boundary=50.0)
    assert parts(bill) == {"run": 80.0, "host": 150.0, "sleep": 2.0 * (5 + 30)}
    assert account(problem, answer([]), boundary=7.0).energy_j["host"] == 70.0


def test_a_server_that_runs_nothing_has_an_empty_window() -> None:
    problem = cores(server(host_w=10.0, sleep_w=2.0), server(name="spare", host_w=5.0, wake_j=9.0))
    schedule = answer([(0, 0, 0, 10, 1)], [FOREVER_ON, (1, ON, 0.0, INF)])
    bill = account(problem, schedule)
    assert not bill.server_j[1].any()
    assert (bill.wakes, bill.servers_used) == (1, 1)


def test_a_horizon_before_the_last_task_still_carries_its_server() -> None:
    problem = cores(server(2, host_w=10.0))
    schedule = answer([(0, 0, 0, 10, 1)], [FOREVER_ON])
    assert account(problem, schedule, boundary=4.0).total_j == account(problem, schedule).total_j


def test_a_schedule_without_segments_costs_nothing_until_its_last_task() -> None:
    bill = account(cores(server(host_w=5.0, initially_on=True)), answer([]))
    assert (bill.total_j, bill.makespan_s, bill.servers_used) == (0.0, 0.0, 0)


def test_a_server_that_is_down_draws_nothing() -> None:
    problem = cores(server(host_w=10.0, sleep_w=2.0, initially_on=True), idle_w=3.0)
    schedule = answer(
        [(0, 0, 0, 10, 1), (1, 0, 20, 30, 1)], [(0, DOWN, 10.0, 20.0), (0, ON, 20.0, 30.0)]
    )
    assert parts(account(problem, schedule)) == {"run": 160.0, "host": 200.0}


# Wakes


@pytest.mark.parametrize(
    ("spans", "wakes"),
    [
        ([(0, ON, 0.0, 10.0)], 1),
        ([(0, ON, 0.0, 5.0), (0, ON, 5.0, 10.0)], 1),
        ([(0, ON, 0.0, 5.0), (0, ASLEEP, 5.0, 6.0), (0, ON, 6.0, 10.0)], 2),
        ([(0, ON, 0.0, 5.0), (0, DOWN, 5.0, 6.0), (0, ON, 6.0, 10.0)], 2),
        ([(0, ON, 0.0, 5.0), (0, ON, 6.0, 10.0)], 2),
        ([(0, WAKING, 0.0, 0.0), (0, ON, 0.0, 10.0)], 1),
    ],
)
def test_a_wake_without_time_comes_at_once_when_a_server_goes_on(
    spans: list[tuple[int, int, float, float]], wakes: int
) -> None:
    bill = account(cores(server(wake_j=7.0), idle_w=0.0), answer([(0, 0, 0, 10, 1)], spans))
    assert bill.wakes == wakes
    assert bill.energy_j["wake"] == 7.0 * wakes


def test_a_server_initially_on_needs_no_wake_for_its_first_span() -> None:
    problem = cores(server(wake_j=7.0, initially_on=True))
    assert account(problem, answer([(0, 0, 0, 10, 1)], [FOREVER_ON])).wakes == 0


def test_a_wake_with_time_draws_wake_power_only() -> None:
    problem = cores(server(wake_j=60.0, wake_s=6.0, host_w=10.0, sleep_w=1.0), idle_w=3.0)
    ran = [(0, 0, 10.0, 20.0, 1.0)]
    whole = account(problem, answer(ran, [(0, WAKING, 4.0, 10.0), (0, ON, 10.0, INF)]))
    assert parts(whole) == {"run": 80.0, "host": 100.0, "sleep": 4.0, "wake": 60.0}
    cut = [(0, WAKING, 4.0, 7.0), (0, WAKING, 7.0, 10.0), (0, ON, 10.0, INF)]
    twice = account(problem, answer(ran, cut))
    assert (twice.wakes, twice.energy_j) == (whole.wakes, whole.energy_j)


# Chips and idle processors


def test_a_chip_pays_once_at_its_highest_clock() -> None:
    chip = server(3, chip_wide=True, shared_w=4.0, shared_w_per_clock=10.0, initially_on=True)
    schedule = answer([(0, 0, 0, 20, 0.5), (1, 1, 10, 20, 1.0), (2, 2, 30, 35, 2.0)])
    # 10 s at 4 + 5 W, 10 s at 4 + 10 W, nothing for 10 s, 5 s at 4 + 20 W
    assert account(cores(chip), schedule).energy_j["shared"] == pytest.approx(90 + 140 + 120)


def test_processors_with_their_own_clock_each_pay_their_chip() -> None:
    own = server(2, shared_w=4.0, shared_w_per_clock=10.0, initially_on=True)
    schedule = answer([(0, 0, 0, 10, 1.0), (1, 1, 0, 10, 0.5)])
    assert account(cores(own), schedule).energy_j["shared"] == pytest.approx(140 + 90)


def test_a_chip_survives_segments_that_overlap_by_rounding() -> None:
    chip = server(2, chip_wide=True, shared_w=4.0, initially_on=True)
    schedule = answer([(0, 0, 0, 10 + 1e-10, 1.0), (1, 0, 10, 20, 1.0)])
    assert account(cores(chip), schedule).energy_j["shared"] == pytest.approx(80.0)


def test_a_busy_processor_has_exactly_no_idle_energy() -> None:
    ends = np.cumsum([0.1, 0.2, 0.3])
    starts = np.concatenate([[0.0], ends[:-1]])
    ran = [(i, 0, starts[i], ends[i], 1.0) for i in range(3)]
    bill = account(cores(server(initially_on=True), idle_w=37.0), answer(ran))
    assert bill.energy_j["idle"] == 0.0


def test_a_segment_across_several_on_spans_is_taken_out_of_each() -> None:
    problem = cores(server(2), idle_w=3.0)
    spans = [(0, ON, 0.0, 4.0), (0, ON, 4.0, 12.0), (0, ASLEEP, 12.0, 14.0), (0, ON, 14.0, 20.0)]
    bill = account(problem, answer([(0, 0, 2, 10, 1), (1, 1, 15, 17, 1)], spans))
    # On for 12 + 6 s with two processors, of which 8 + 2 s were busy.
    assert bill.energy_j["idle"] == pytest.approx(3.0 * (2 * 18 - 10))


# Money and CO2


def test_money_follows_the_actual_price_across_steps() -> None:
    actual = Curve(np.array([0.0, 4.0]), np.array([3.6, 7.2]), 100.0)
    forecast = Curve.constant(1000.0)
    prices = Prices((("default", ZonePrices(actual, price_forecast=forecast)),), "USD")
    problem = cores(server(wake_j=50.0), idle_w=0.0, prices=prices)
    bill = account(problem, answer([(0, 0, 2, 12, 1)], [(0, ON, 2.0, 12.0)]))
    # 8 W: 2 s at 1e-6 USD/J and 8 s at 2e-6 USD/J; the wake of 50 J at 2 s costs 1e-6 USD/J.
    assert bill.money_by_part is not None
    assert bill.money_by_part["run"] == pytest.approx(16e-6 + 128e-6)
    assert bill.money_by_part["wake"] == pytest.approx(50e-6)
    assert bill.task_money == pytest.approx([144e-6, 0.0, 0.0])
    assert (bill.currency, bill.carbon_kg, bill.money_clipped) == ("USD", None, bill.money)


def test_a_zone_without_a_price_counts_nothing_and_is_named() -> None:
    prices = Prices((("north", ZonePrices(Curve.constant(3.6))),))
    here, there = server(zone="north"), server(name="b", zone="south")
    schedule = answer([(0, 0, 0, 10, 1), (1, 1, 0, 10, 1)], [FOREVER_ON, (1, ON, 0.0, INF)])
    bill = account(cores(here, there, prices=prices), schedule)
    assert bill.money == pytest.approx(80e-6)
    assert bill.unpriced == ("south",)
    assert "zones without a price, counted as 0: south" in str(bill)


def test_without_any_price_there_is_no_money() -> None:
    bill = account(cores(server()), answer([(0, 0, 0, 10, 1)], [FOREVER_ON]))
    assert (bill.money, bill.money_clipped, bill.money_by_part, bill.task_money) == (None,) * 4


@pytest.mark.parametrize("what", ["price", "carbon"])
def test_a_curve_that_ends_too_early_is_named_with_its_zone(what: str) -> None:
    short = Curve(np.array([0.0]), np.array([1.0]), 5.0)
    prices = Prices((("north", ZonePrices(**{what: short})),))
    problem = cores(server(zone="north"), prices=prices)
    with pytest.raises(
        InvalidInput, match=f"{what} curve of zone 'north': is known from 0 s to 5 s"
    ):
        account(problem, answer([(0, 0, 0, 10, 1)], [FOREVER_ON]))


def test_a_curve_may_end_before_what_draws_nothing() -> None:
    day = Curve(np.array([0.0]), np.array([3.6]), 10.0)
    problem = cores(server(), idle_w=0.0, prices=Prices((("default", ZonePrices(day)),)))
    bill = account(problem, answer([(0, 0, 0, 10, 1)], [(0, ON, 0.0, 10.0)]), boundary=99.0)
    assert bill.money == pytest.approx(80e-6)


# What cannot be billed


@pytest.mark.parametrize("boundary", ["last", -1.0, INF, np.nan])
def test_an_unknown_boundary_is_refused(boundary: Any) -> None:
    with pytest.raises(InvalidInput, match="boundary="):
        account(cores(server()), answer([(0, 0, 0, 10, 1)]), boundary=boundary)


@pytest.mark.parametrize(
    ("segment", "complaint"),
    [
        ((9, 0, 0, 10, 1), "segment 0: task=9"),
        ((0, 7, 0, 10, 1), "segment 0: processor=7"),
        ((0, 0, np.nan, 10, 1), "segment 0: start_s=nan"),
        ((0, 0, 0, INF, 1), "segment 0: end_s=inf"),
        ((0, 0, 5, 4, 1), r"segment 0: end_s=4\.0 cannot be billed: it is before start_s=5\.0"),
        ((0, 0, 0, 10, np.nan), "segment 0: core=nan"),
        ((0, 0, 0, 10, 0), "segment 0: core=0"),
        ((0, 0, 0, 10, -1), "segment 0: core=-1"),
        ((0, 0, 0, 1e308, 1), "its energy is too large for a number"),
    ],
)
def test_a_segment_without_a_power_is_refused(
    segment: tuple[int, int, float, float, float], complaint: str
) -> None:
    with pytest.raises(InvalidSchedule, match=complaint):
        account(cores(server()), answer([segment]))


@pytest.mark.parametrize(
    ("span", "complaint"),
    [
        ((3, ON, 0.0, 1.0), "span 0: server=3"),
        ((0, 8, 0.0, 1.0), "span 0: state=8"),
        ((0, ON, np.nan, 1.0), "span 0: start_s=nan"),
        ((0, ON, 2.0, 1.0), "span 0: end_s=1"),
        ((0, ON, 2.0, np.nan), "span 0: end_s=nan"),
    ],
)
def test_a_span_without_a_meaning_is_refused(
    span: tuple[int, int, float, float], complaint: str
) -> None:
    with pytest.raises(InvalidSchedule, match=complaint):
        account(cores(server()), answer([], [span]))


def test_outcomes_of_another_problem_are_refused() -> None:
    schedule = answer([])
    short = Schedule(schedule.segments, schedule.spans, Outcomes.all_done(2))
    with pytest.raises(InvalidSchedule, match="outcomes has 2 rows for 3 tasks"):
        account(cores(server()), short)


# How a bill reads


@pytest.fixture
def priced() -> Bill:
    zone = ZonePrices(Curve.constant(720.0), Curve.constant(360.0))
    problem = cores(server(2, host_w=1000.0), prices=Prices((("default", zone),)))
    return account(problem, answer([(0, 0, 0, 10, 1)], [FOREVER_ON]))


def test_a_bill_prints_every_number_with_its_unit(priced: Bill) -> None:
    assert str(priced).splitlines() == [
        "Bill until each server's last task",
        "part       energy    share       money      CO2",
        "run          80 J    0.8 %   0.016 EUR  0.008 g",
        "shared        0 J    0.0 %  0.0000 EUR      0 g",
        "idle         10 J    0.1 %   0.002 EUR  0.001 g",
        "host    10.000 kJ   99.1 %  2.0000 EUR      1 g",
        "sleep         0 J    0.0 %  0.0000 EUR      0 g",
        "wake          0 J    0.0 %  0.0000 EUR      0 g",
        "total   10.090 kJ  100.0 %  2.0180 EUR  1.009 g",
        "servers used: 1 of 1, wakes: 1, makespan: 10 s",
    ]


def test_a_bill_shows_itself_in_one_line(priced: Bill) -> None:
    assert repr(priced) == "Bill(10.090 kJ, 2.0180 EUR, 1.009 g CO2, until each server's last task)"


def test_a_bill_is_a_table_in_notebooks(priced: Bill) -> None:
    html = priced._repr_html_()
    assert "<caption>Bill until each server&#x27;s last task</caption>" in html
    assert html.count("<tr>") == 8
    assert "<td>10.090 kJ</td>" in html


def test_a_bill_is_plain_values_for_json(priced: Bill) -> None:
    plain = json.loads(json.dumps(priced.as_dict(details=True)))
    assert plain["total_j"] == pytest.approx(10090.0)
    assert plain["energy_j"]["host"] == pytest.approx(10000.0)
    assert plain["money"] == pytest.approx(2.018)
    assert [row["server"] for row in plain["servers"]] == ["s"]
    assert [row["run_j"] for row in plain["tasks"]] == [80.0, 0.0, 0.0]
    assert "tasks" not in priced.as_dict()


def test_a_span_of_no_length_before_a_wake_is_no_wake_of_its_own() -> None:
    """A server that begins on sleeps for no time, wakes for a minute, and is on: one wake."""
    platform = Platform.build(
        [Kind("core", ClockRange(0.1, 2.0), idle_w=50.0)],
        [
            ServerSpec(
                "s", (("core", 1),), sleep_w=10.0, wake_j=100.0, wake_s=60.0, initially_on=True
            )
        ],
    )
    server, state = np.zeros(3, np.int64), np.array([ON, WAKING, ASLEEP])
    spans = PowerSpans(server, state, np.array([60.0, 0.0, 0.0]), np.array([90.0, 60.0, 0.0]))
    states, wakes = server_states(platform, spans, np.array([90.0]))
    assert wakes.at_s.tolist() == [0.0]
    assert states.state.tolist() == [WAKING, ON]
