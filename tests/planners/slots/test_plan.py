"""Plans of slotted problems: verified, billed as promised, with a bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.slot_graphs import structured_graph

from downclock.errors import InvalidInput
from downclock.planners.slots.model import SlotGraph, SlotPlan, levels
from downclock.planners.slots.plan import plan_least_cost
from downclock.planners.slots.search import CostSearch
from downclock.problem.graph import Edges
from downclock.problem.platform import Platform, ServerSpec
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.verify.verify import verify
from downclock.units import J_PER_KWH
from downclock.workloads.gerhards import (
    SLOT_S,
    Machines,
    alternating_prices,
    increasing_prices,
    random_graph,
    slotted_problem,
)
from downclock.workloads.task_graph import TaskGraph


def small_problem(machines: Machines, price: np.ndarray, seed: int = 3) -> Problem:
    return slotted_problem(random_graph(8, seed=seed), machines, price)


@pytest.mark.parametrize(
    ("machines", "gap"),
    [
        (Machines(2), 0.01),
        (Machines(2, pause=False), 0.01),
        (Machines(2, static=0.4), 0.03),
        (Machines(2, frequencies=(0.3, 0.75, 1.0)), 0.08),
        (Machines(3, frequencies=(0.5, 1.0), static=0.1, pause=False), 0.03),
    ],
)
def test_the_bill_is_what_the_solver_promised(machines: Machines, gap: float) -> None:
    problem = small_problem(machines, alternating_prices(50))
    result = plan_least_cost(problem, "cost", rounds=40)
    verdict = verify(problem, result.schedule)
    assert verdict.ok, str(verdict)
    bill = account(problem, result.schedule)
    assert bill.money == pytest.approx(result.objective, rel=1e-9)
    assert result.bound <= result.objective * (1.0 + 1e-9)
    assert result.gap < gap


def test_a_result_says_its_own_unit() -> None:
    problem = small_problem(Machines(2), alternating_prices(50))
    assert " EUR, bound " in str(plan_least_cost(problem, "cost", rounds=5))
    assert " kWh, bound " in str(plan_least_cost(problem, "energy", rounds=5))
    mixed = str(plan_least_cost(problem, "cost+2energy", rounds=5))
    assert "J" not in mixed
    assert "EUR" not in mixed


def test_free_power_is_not_burnt_for_nothing() -> None:
    # Ten free slots for two slots of work: any levels cost nothing, the lowest ones draw least.
    units = np.arange(1, 6)
    graph = SlotGraph(np.array([10]), Edges(), 1, np.zeros(10), units, (units / 5) ** 2)
    plan = SlotPlan(np.array([0]), np.array([9]), 0.0)
    assert levels(graph, plan, 0).tolist() == [0] * 10


def test_energy_and_weighted_objectives_are_billed_too() -> None:
    base = small_problem(Machines(2), increasing_prices(60))
    zone = base.prices.of("default")
    carbon = Curve(SLOT_S * np.arange(60), 100.0 + 10.0 * np.arange(60)[::-1], SLOT_S * 60)
    problem = replace(base, prices=Prices((("default", replace(zone, carbon=carbon)),)))
    for text, weights in {
        "energy": (0, 0, 1),
        "carbon": (0, 1, 0),
        "0.7cost+0.3carbon": (0.7, 0.3, 0),
    }.items():
        result = plan_least_cost(problem, text, rounds=30)
        bill = account(problem, result.schedule)
        assert bill.money is not None
        assert bill.carbon_kg is not None
        amounts = (bill.money, bill.carbon_kg, bill.total_j / J_PER_KWH)
        value = sum(w * a for w, a in zip(weights, amounts, strict=True))
        assert result.objective == pytest.approx(value, rel=1e-9)


def test_negative_prices_count_as_nothing_in_the_plan_and_as_they_are_in_the_bill() -> None:
    price = np.where(np.arange(40) % 8 < 3, -5.0, 20.0)
    problem = small_problem(Machines(2), price)
    result = plan_least_cost(problem, rounds=40)
    assert verify(problem, result.schedule).ok
    bill = account(problem, result.schedule)
    assert bill.money_clipped == pytest.approx(result.objective, rel=1e-9)
    assert bill.money is not None
    assert bill.money < result.objective
    assert bill.energy_j["run"] <= J_PER_KWH * random_graph(8, seed=3).work.sum() * (1 + 1e-9)


def test_a_curve_shorter_than_the_deadline_is_refused() -> None:
    problem = small_problem(Machines(2), np.ones(50))
    short = Curve(np.array([0.0]), np.array([1.0]), 10 * SLOT_S)
    cut = replace(problem, prices=Prices((("default", ZonePrices(price=short)),)))
    with pytest.raises(InvalidInput, match=r"'default' from 0 s to .* 180000 s.*to 36000 s"):
        plan_least_cost(cut)


def test_without_a_price_cost_is_refused_and_energy_is_not() -> None:
    problem = replace(small_problem(Machines(2), np.ones(50)), prices=Prices())
    with pytest.raises(InvalidInput, match=r"needs the price of zone .default., and there is none"):
        plan_least_cost(problem)
    assert plan_least_cost(problem, "energy", rounds=5).objective > 0.0


def test_a_deadline_nobody_meets_is_named() -> None:
    with pytest.raises(
        InvalidInput, match=r"task 't\d' cannot end by its deadline.* needs \d+ slot"
    ):
        plan_least_cost(small_problem(Machines(1), np.ones(5)))
    loose = replace(random_graph(8, seed=3), edges=Edges(np.empty(0, int), np.empty(0, int)))
    crowd = slotted_problem(loose, Machines(1), np.ones(20))
    with pytest.raises(InvalidInput, match="the 8 tasks due by the end of slot 20 need"):
        plan_least_cost(crowd)


def test_milestones_keep_their_order() -> None:
    graph = structured_graph("fork-join", 9, width=3)
    graph = replace(graph, work=np.where(np.arange(9) % 4 == 0, 0.0, graph.work))
    problem = slotted_problem(graph, Machines(2), alternating_prices(40))
    result = plan_least_cost(problem, rounds=20)
    verdict = verify(problem, result.schedule)
    assert verdict.ok, str(verdict)


def test_milestones_due_at_once_are_said_to_leave_no_slot() -> None:
    """A task of 2 slots with time, then a milestone that is due at 0."""
    named = np.array(["work", "mark"], dtype=object)
    graph = TaskGraph("two", named, np.array([2.0, 0.0]), Edges(np.array([0]), np.array([1])))
    problem = slotted_problem(graph, Machines(1), np.ones(10))
    tasks = replace(problem.tasks, deadline_s=np.array([10.0 * SLOT_S, 0.0]))
    with pytest.raises(InvalidInput, match=r"'work' cannot end .*needs 2 slots, and there are 0"):
        plan_least_cost(replace(problem, tasks=tasks))


def test_the_same_seed_gives_the_same_plan() -> None:
    problem = small_problem(Machines(2), alternating_prices(40), seed=5)
    one = plan_least_cost(problem, rounds=30, seed=1)
    two = plan_least_cost(problem, rounds=30, seed=1)
    assert one.objective == two.objective
    assert np.array_equal(one.schedule.segments.start_s, two.schedule.segments.start_s)


@pytest.mark.parametrize(
    ("clocks", "work", "slots"),
    [((0.18476, 0.78503, 1.0), 7.0, 60), ((0.1237, 1.0), 10.0, 200), ((0.0519, 1.0), 10.0, 400)],
)
def test_clocks_that_are_no_fraction_run_no_slot_too_many(
    clocks: tuple[float, ...], work: float, slots: int
) -> None:
    """Rounded down, so slow a clock seems to need some slots more than it does."""
    graph = TaskGraph("one", np.array(["a"], dtype=object), np.array([work]), Edges())
    problem = slotted_problem(graph, Machines(1, frequencies=clocks), np.ones(slots))
    result = plan_least_cost(problem, "cost", rounds=5)
    verdict = verify(problem, result.schedule)
    assert verdict.ok, str(verdict)
    assert account(problem, result.schedule).money == pytest.approx(result.objective, rel=1e-9)
    assert result.bound <= result.objective


def test_zones_with_the_same_prices_are_one() -> None:
    """Works 3, 3, 2, 2, 2 on two machines in six slots: the first list schedules miss it."""
    work = np.array([3.0, 3.0, 2.0, 2.0, 2.0])
    names = np.array(list("abcde"), dtype=object)
    single = slotted_problem(TaskGraph("lpt", names, work, Edges()), Machines(2), np.ones(6))
    kind, prices = single.platform.kinds[0], single.prices.of("default")
    servers = tuple(ServerSpec(z, ((kind.name, 1),), zone=z, initially_on=True) for z in "xy")
    split = replace(
        single,
        platform=Platform.build((kind,), servers, single.platform.slot_s),
        prices=Prices(tuple((z, prices) for z in "xy")),
    )
    one, two = (plan_least_cost(each, "cost", rounds=20) for each in (single, split))
    assert verify(split, two.schedule).ok
    assert two.objective == pytest.approx(one.objective)


def test_few_tasks_over_hundreds_of_slots_get_multipliers_of_machines() -> None:
    """93 tasks x 339 slots stood at a quarter above the bound that knows no paths."""
    units = np.arange(1, 6)
    chains = Edges(np.arange(92), np.arange(1, 93))
    price = np.linspace(1.0, 2.0, 339)
    graph = SlotGraph(np.full(93, 5), chains, 2, price, units, (units / 5) ** 2)
    assert CostSearch.of(graph).can_relax_capacity
