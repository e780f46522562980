"""Bounds are asked of the rooms that know them; a room that does not says nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.engine.play import plan
from downclock.planners.bounds import Bounds
from downclock.planners.catalog import policy
from downclock.planners.chip import plan as chip
from downclock.planners.cluster import bound as cluster
from downclock.planners.cluster import price_bound
from downclock.planners.per_task import energy_bound_j, per_task_bound_j
from downclock.planners.result import Result
from downclock.planners.slots import plan as slots
from downclock.problem.objective import Objective
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.schedule.schedule import DONE
from downclock.workloads import mei
from tests.laws.test_policies import problem_of

COST = Objective(cost=1.0)


def test_the_bound_of_some_tasks_is_the_sum_of_theirs() -> None:
    problem = mei.offline(3, utilisation=0.01, cluster=mei.Cluster(pairs=16))
    some = np.arange(len(problem.tasks)) % 2 == 0
    assert energy_bound_j(problem, some) == per_task_bound_j(problem)[some].sum()
    assert cluster.energy_bound_j(problem, some) is None
    every = np.ones(len(problem.tasks), dtype=bool)
    whole = cluster.energy_bound_j(problem, every)
    assert whole is not None
    assert whole >= energy_bound_j(problem, every)
    schedule = plan(problem, policy("edl"))
    assert Bounds(problem).below(schedule) >= whole


def test_only_the_room_of_chips_bounds_a_graph_on_a_chip() -> None:
    graph, day = problem_of(2, "graph"), problem_of(0, "edl")
    every = np.ones(len(graph.tasks), dtype=bool)
    known = chip.energy_bound_j(graph, every)
    assert known is not None
    assert known > energy_bound_j(graph, every)
    assert chip.energy_bound_j(graph, ~every) is None
    assert chip.energy_bound_j(day, np.ones(len(day.tasks), dtype=bool)) is None
    schedule = plan(graph, policy("graph:rule=lpt"))
    assert Bounds(graph).below(schedule) >= known


def test_a_graph_of_which_something_is_left_out_has_no_bound_of_the_whole() -> None:
    graph = problem_of(2, "graph")
    none = np.zeros(len(graph.tasks), dtype=bool)
    over = replace(graph, tasks=replace(graph.tasks, deadline_s=0.0 * graph.tasks.deadline_s))
    assert chip.energy_bound_j(over, none) is None
    assert Bounds(over).below(plan(over, policy("graph:rule=lpt"))) == 0.0


def test_the_room_of_slots_answers_for_all_tasks_or_none() -> None:
    slotted, priced = problem_of(1, "least-cost"), problem_of(1, "thrifty")
    every = np.ones(len(slotted.tasks), dtype=bool)
    assert slots.value_bound(slotted, COST, every) > 0.0  # type: ignore[operator]
    assert slots.value_bound(slotted, COST, ~every) is None
    assert slots.value_bound(priced, COST, np.ones(len(priced.tasks), dtype=bool)) is None


def test_without_a_price_up_to_the_last_deadline_no_value_is_bounded() -> None:
    problem = problem_of(1, "thrifty")
    soon = Curve(np.array([0.0]), np.array([0.3]), 1.0)
    short = replace(problem, prices=Prices((("default", ZonePrices(price=soon)),)))
    schedule = plan(problem, policy("race"))
    every = schedule.outcomes.status == DONE
    assert price_bound.value_bound(short, COST, every) is None
    assert np.isnan(Bounds(short).value_below(schedule, COST))
    assert Bounds(problem).value_below(schedule, COST) > 0.0


def test_a_proof_counts_where_plans_saw_the_prices_of_bills() -> None:
    problem = problem_of(1, "least-cost")
    schedule = plan(problem, policy("least-cost:rounds=2"))
    least = slots.least_cost_bound(problem, COST)
    proof = Result(schedule, 2.0 * least, 1.5 * least, "feasible")
    assert Bounds(problem).value_below(schedule, COST, proof) == pytest.approx(1.5 * least)
    zones = tuple(
        (name, replace(zone, price_forecast=zone.price)) for name, zone in problem.prices.zones
    )
    blurred = replace(problem, prices=replace(problem.prices, zones=zones))
    assert Bounds(blurred).value_below(schedule, COST, proof) == pytest.approx(least)


def test_what_is_computed_once_cannot_be_written_to() -> None:
    problem = problem_of(0, "edl")
    assert per_task_bound_j(problem) is per_task_bound_j(problem)
    with pytest.raises(ValueError, match="read-only"):
        per_task_bound_j(problem)[0] = 0.0
