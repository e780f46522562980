"""Changes of the price as events: told to policies that heed them, billed as they really are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from downclock.engine.decisions import Decisions
from downclock.engine.facts import ARRIVED, EVERY, FINISHED, Facts
from downclock.engine.facts import PRICE as TOLD
from downclock.engine.view import View
from downclock.planners.catalog import policy
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.schedule import Segments
from downclock.schedule.verify.verify import require_valid
from downclock.simulate.simulate import simulate
from tests.simulate.test_faults import TWO_GPUS, cluster
from tests.simulate.test_laws import same

TOLD_AT: list[float] = []


@dataclass(frozen=True)
class Patient:
    """Runs what waits on processor 0, one by one, whenever a kWh costs at most ``limit``."""

    name: str = "patient"
    limit: float = 0.2
    heeds: frozenset[int] = EVERY

    def objection(self, problem: Problem) -> str | None:
        return None

    def start(self, view: View) -> dict[str, list[float]]:
        return {"waiting": [], "running": [], "price": [np.inf]}

    def decide(self, state: dict[str, list[float]], view: View, facts: Facts):
        state["waiting"] += facts.tasks(ARRIVED).tolist()
        done = facts.tasks(FINISHED).tolist()
        state["running"] = [i for i in state["running"] if i not in done]
        for price in [fact.value for fact in facts.rows if fact.code == TOLD]:
            state["price"] = [price]
            TOLD_AT.append(facts.now_s)
        if not state["waiting"] or state["running"] or state["price"][0] > self.limit:
            return state, Decisions()
        task = int(state["waiting"].pop(0))
        state["running"] = [task]
        start_s = np.array([facts.now_s])
        row = Segments.of(
            np.array([task]), np.array([0]), start_s, start_s + 100.0, np.ones((1, 3))
        )
        return state, Decisions(place=row)

    def fold(self, state, view, coming):
        return None


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


def test_prices_are_told_only_while_there_is_something_to_do():
    """At time 0, and when it drops; by the time of the last step all is done."""
    TOLD_AT.clear()
    simulate(priced(300.0, 300.0), Patient())
    assert sorted(set(TOLD_AT)) == [0.0, 300.0]


def test_policies_that_do_not_heed_prices_are_not_asked():
    problem = priced(300.0, 300.0)
    for name in ("liu", "replan"):
        with_prices = simulate(problem, policy(name))
        without = simulate(replace(problem, prices=Prices()), policy(name))
        assert with_prices.events == without.events
