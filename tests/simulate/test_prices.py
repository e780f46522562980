"""Changes of the price as events: told to policies that heed them, billed as they really are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from downclock.engine.engine import plan
from downclock.engine.events import PRICE, events
from downclock.engine.policy import Decisions, View
from downclock.planners.catalog import policy
from downclock.planners.mapping.reacting import (
    Facts,
    Orders,
    Planning,
    run_planning,
    start_planning,
)
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.verify.verify import require_valid
from downclock.simulate.simulate import simulate
from downclock.units import Ints
from tests.simulate.test_faults import TWO_GPUS, cluster
from tests.simulate.test_laws import same


@dataclass(frozen=True)
class Patient:
    """Runs what waits on processor 0, one by one, whenever a kWh costs at most ``limit``."""

    name: str = "patient"
    limit: float = 0.2
    heeds_prices: bool = True

    def objection(self, problem: Problem) -> str | None:
        return None

    def begin(self, view: View) -> dict[str, list[float]]:
        return {"waiting": [], "running": [], "price": [np.inf], "told": []}

    def react(self, state: dict[str, list[float]], view: View, facts: Facts) -> Orders:
        state["waiting"] += facts.arrived
        state["running"] = [i for i in state["running"] if i not in facts.finished]
        for _, price in facts.prices:
            state["price"] = [price]
            state["told"].append(facts.now_s)
        if state["waiting"] and not state["running"] and state["price"][0] <= self.limit:
            state["running"] = [state["waiting"].pop(0)]
        return Orders([(0, int(i), 1) for i in state["running"]] or [(0, -1, 0)])

    def start(self, view: View) -> Planning:
        return start_planning(self, view)

    def run(
        self, state: Planning, view: View, arrived: Ints, until_s: float
    ) -> tuple[Planning, Decisions]:
        return run_planning(self, state, view, arrived, until_s)


def priced(forecast_drop_s: float, drop_s: float) -> Problem:
    """Two jobs of 100 s; a kWh costs 0.4 until it drops to 0.1, and 0.4 again after 2,000 s."""

    def curve(at_s: float) -> Curve:
        return Curve(np.array([0.0, at_s, 2000.0]), np.array([0.4, 0.1, 0.4]), np.inf)

    zone = ZonePrices(price=curve(drop_s), price_forecast=curve(forecast_drop_s))
    problem = cluster(TWO_GPUS, jobs=2, deadline_s=np.inf)
    return replace(problem, prices=Prices((("default", zone),)))


def test_a_policy_that_heeds_prices_waits_for_the_real_drop():
    problem = priced(forecast_drop_s=50.0, drop_s=300.0)
    run = simulate(problem, Patient())
    assert run.promised.segments.start_s.tolist() == [50.0, 150.0]
    assert run.realised.segments.start_s.tolist() == [300.0, 400.0]
    require_valid(problem, run.realised)
    run_kwh = 2 * 50.0 * 100.0 / 3.6e6
    idle_kwh = 10.0 * 2 / 3.6e6
    bill = account(problem, run.realised, boundary="makespan")
    money = 0.1 * run_kwh + idle_kwh * (0.4 * 300.0 + 0.1 * 200.0) - 0.1 * 10.0 * 200.0 / 3.6e6
    assert bill.money == pytest.approx(money)


def test_where_the_forecast_holds_the_run_is_the_plan_bit_for_bit():
    problem = priced(300.0, 300.0)
    run = simulate(problem, Patient())
    same(run.realised, run.promised)
    cut = plan(problem, Patient(), cuts=np.array([0.0, 10.0, 299.0, 300.0, 350.0, 450.0]))
    same(cut, run.promised)


def test_prices_are_told_only_while_there_is_something_to_do():
    """At time 0, and when it drops; by the time of the last step all is done."""
    problem, patient = priced(300.0, 300.0), Patient()
    state = patient.start(View(problem))
    patient.run(state, View(problem), np.arange(2), np.inf)
    assert state.own["told"] == [0.0, 300.0]


def test_policies_that_do_not_heed_prices_are_not_asked():
    problem = priced(300.0, 300.0)
    for name in ("liu", "replan"):
        with_prices = simulate(problem, policy(name))
        without = simulate(replace(problem, prices=Prices()), policy(name))
        assert with_prices.events == without.events


def test_the_event_log_lists_changes_of_the_actual_price():
    problem = priced(forecast_drop_s=50.0, drop_s=300.0)
    log = events(problem, simulate(problem, Patient()).realised)
    assert log.time_s[log.kind == PRICE].tolist() == [300.0]
    assert "300 price default 0.1" in log.lines(problem)
