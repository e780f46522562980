"""Unequal machines and per-machine prices under a fixed order."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from downclock.planners.slots.mixed_cut import MixedMachines
from downclock.planners.slots.mixed_search import solve_mixed
from downclock.planners.slots.plan import least_cost_bound, plan_least_cost
from downclock.power.library import Library
from downclock.power.points import ClockTable
from downclock.power.profiles import CpuProfiles
from downclock.problem.graph import Edges
from downclock.problem.objective import Objective
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.verify.verify import verify
from downclock.workloads.gerhards import SLOT_S, Machines, random_graph, slotted_problem
from downclock.workloads.task_graph import TaskGraph
from tests.planners.slots.tiny import brute_force, interval_costs, tiny_graph


def test_the_cut_finds_the_best_times_on_machines_of_their_own() -> None:
    found = 0
    for seed in range(25):
        random = np.random.default_rng(seed)
        graph = tiny_graph(seed, tasks=3, slots=(4, 6))
        slow = replace(graph, units=np.array([1]), power=np.array([0.3]))
        other = replace(slow, price=random.random(graph.slots))
        machine, rank = random.integers(0, 2, len(graph)), np.arange(len(graph))
        options = [
            list(interval_costs((graph, other)[machine[i]], i).items()) for i in range(len(graph))
        ]
        pairs = set(zip(graph.edges.before.tolist(), graph.edges.after.tolist(), strict=True))
        pairs |= {(i, j) for j in rank for i in range(j) if machine[i] == machine[j]}
        best = min(
            (
                sum(cost for _, cost in chosen)
                for chosen in product(*options)
                if all(chosen[i][0][1] < chosen[j][0][0] for i, j in pairs)
            ),
            default=np.inf,
        )
        plan = MixedMachines.of((graph, other), np.arange(2)).best(machine, rank)
        assert (plan is None) == np.isinf(best)
        if plan is not None:
            found += 1
            assert plan.cost == pytest.approx(best, abs=1e-9)
    assert found >= 10


def two_sites(hours: int = 60) -> Problem:
    """A quick machine where power is dear at first, a slow one where it is dear at last."""
    two = np.ones(2)
    profiles = CpuProfiles(
        SLOT_S * np.array([1.0, 1.5]), np.array([1000.0, 400.0]), 2.0 * two, 0.0 * two
    )
    rows = np.array([[0, 1]])
    names = np.array(["work"], dtype=object)
    library = Library(names, ("quick", "slow"), (profiles,), np.zeros_like(rows), rows)
    clocks = ClockTable(np.array([0.5, 1.0]), np.ones(1), 1.0, 1.0)
    kinds = (Kind("quick", clocks, interrupt="pause"), Kind("slow", clocks, interrupt="pause"))
    servers = (
        ServerSpec("north", (("quick", 1),), zone="NO", initially_on=True),
        ServerSpec("south", (("slow", 2),), zone="IT", initially_on=True),
    )
    start_s = SLOT_S * np.arange(hours)
    rising = np.linspace(10.0, 50.0, hours)
    zones = tuple(
        (name, ZonePrices(price=Curve(start_s, value, SLOT_S * hours)))
        for name, value in (("NO", rising[::-1]), ("IT", rising))
    )
    graph = random_graph(7, meshing="low", seed=4)
    tasks = Tasks.of(
        np.zeros(7, dtype=np.int64),
        deadline_s=np.full(7, SLOT_S * hours),
        scale=graph.work,
        name=graph.task,
    )
    platform = Platform.build(kinds, servers, SLOT_S)
    return Problem(tasks, library, platform, graph.edges, Prices(zones), name="two sites")


def test_a_problem_on_unequal_machines_is_planned_and_billed_as_promised() -> None:
    problem = two_sites()
    result = plan_least_cost(problem, "cost", rounds=60)
    verdict = verify(problem, result.schedule)
    assert verdict.ok, str(verdict)
    assert account(problem, result.schedule).money == pytest.approx(result.objective, rel=1e-9)
    assert 0.0 < result.bound <= result.objective
    first = plan_least_cost(problem, "cost", rounds=1)
    assert result.objective < first.objective
    assert set(problem.platform.kind[result.schedule.segments.processor]) == {0, 1}


def test_equal_machines_planned_as_unequal_cost_no_less_than_the_optimum() -> None:
    # Every machine a class of its own: the plainer search stays above the proven optimum.
    for seed in range(6):
        graph = tiny_graph(seed, tasks=4)
        best = brute_force(graph)
        if np.isinf(best):
            continue
        mixed = MixedMachines.of([graph] * graph.machines, np.arange(graph.machines))
        found = solve_mixed(mixed, rounds=80)
        assert found is not None
        assert mixed.bound() <= best + 1e-9
        assert best - 1e-9 <= found.plan.cost <= 1.05 * best + 1e-9


def one_task(work: float, machines: Machines, price: list[float]) -> Problem:
    graph = TaskGraph("one", np.array(["a"], dtype=object), np.array([work]), Edges())
    return slotted_problem(graph, machines, np.array(price))


def test_the_bound_of_a_run_without_pauses_looks_at_every_interval() -> None:
    """One slot of work at prices 10, 10, 1, 10, 10 in two zones: 1, not a slow run over all."""
    single = one_task(1.0, Machines(1, frequencies=(0.5, 1.0), pause=False), [10, 10, 1, 10, 10])
    kind, prices = single.platform.kinds[0], single.prices.of("default")
    servers = tuple(ServerSpec(z, ((kind.name, 1),), zone=z, initially_on=True) for z in "xy")
    problem = replace(
        single,
        platform=Platform.build((kind,), servers, SLOT_S),
        prices=Prices(tuple((z, prices) for z in "xy")),
    )
    assert plan_least_cost(problem, rounds=5).objective == pytest.approx(1.0)
    assert least_cost_bound(problem, Objective(cost=1.0)) == pytest.approx(1.0)


def test_clocks_that_are_no_fraction_are_rounded_up_for_bounds() -> None:
    """Two slots at clock 1 / sqrt 2 just do the work; rounded down they do not."""
    clock = 2.0**-0.5
    problem = one_task(2.0 * clock, Machines(1, frequencies=(clock, 1.0)), [1.0, 1.0])
    slow = 2.0 * clock**2
    assert least_cost_bound(problem, Objective(cost=1.0)) <= slow
    result = plan_least_cost(problem, rounds=5)
    assert result.bound <= slow < result.objective
    assert result.status == "feasible"
