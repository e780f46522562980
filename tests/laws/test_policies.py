"""Laws that hold for every policy of the catalogue, on generated problems.

Valid; not below the lower bound; parts sum to the total; same input, same output; cutting the run
changes nothing; every task ends exactly once.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest

from downclock.engine.play import plan
from downclock.planners.bounds import Bounds
from downclock.planners.catalog import CATALOG, policy
from downclock.power.library import Library
from downclock.power.points import WIDE
from downclock.power.profiles import GpuProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE, REJECTED, PowerSpans, Schedule, Segments
from downclock.schedule.verify.verify import verify
from downclock.workloads import mei
from downclock.workloads.chip import chip_problem
from downclock.workloads.gerhards import (
    Machines,
    alternating_prices,
    flat_prices,
    increasing_prices,
    random_graph,
    slotted_problem,
)
from tests.generated import random_problem

READINGS = (
    "edl:theta=0.5,start=stream,rho=120",
    "edl:theta=0.9,group=off,rho=break-even",
    "edl:theta=0.9,grid=0.05,rho=never",
    "edl:theta=0.9,grid=0.05,slack=on",
    "edl:theta=0.8,slot=60,start=stream",
    "edl:dvfs=off,start=stream",
    "edf-bf:by=load,group=off",
    "edf-bf:start=stream",
    "edf-bf:by=peak",
    "edf-wf:by=end",
    "edf-wf:by=peak,start=stream",
    "lpt-ff:start=stream,dvfs=off",
    "bin:start=load,rho=30",
    "bin:start=peak",
    "bin:start=peak-prior,rho=120",
    "race:rho=break-even",
    "thrifty:objective=0.7cost+0.3carbon",
    "thrifty:objective=carbon,dvfs=off",
)
SPECS = (*CATALOG, *READINGS)
SEEDS = range(12)
GRAPHS = ("race", "static-cap", "edl", "edf-bf", "edf-wf", "lpt-ff", "bin", "late", "prompt")
"""Entries that plan task graphs on any cluster; ``thrifty`` does, too."""
SOLVERS = ("replan",)
"""Entries that solve a program at every event: no long problems."""

each_case = pytest.mark.parametrize(
    ("seed", "spec"), [(seed, spec) for spec in SPECS for seed in SEEDS]
)


def problem_of(seed: int, spec: str) -> Problem:
    """Task graphs for what plans them; else every third a small set of the papers, the others
    use the whole model."""
    if spec == "graph":
        graph = random_graph(6 + seed, seed=seed)
        return chip_problem(graph, 1 + seed % 5, 0.8 * graph.work.sum(), chip_wide=seed % 2 == 0)
    if spec == "least-cost":
        graph = random_graph(4 + seed % 6, seed=seed)
        slots = int(graph.work.sum())
        prices = (flat_prices, increasing_prices, alternating_prices)[seed % 3](slots)
        return slotted_problem(graph, Machines(2 + seed % 3), prices)
    if spec.startswith("thrifty"):
        return priced(seed)
    if seed % 3 == 0:
        cluster = mei.Cluster(pairs=32, per_server=(1, 2, 4, 8, 16)[seed % 5])
        if seed % 2:
            return mei.offline(seed, utilisation=0.02, task_utilisation="text", cluster=cluster)
        return mei.online(
            seed,
            utilisation=0.015,
            initial_utilisation=0.01,
            task_utilisation="text",
            cluster=cluster,
        )
    wake_s, edges = (
        0.0 if seed % 4 == 1 else None,
        seed % 3 == 2 and spec.split(":", maxsplit=1)[0] in GRAPHS,
    )
    return random_problem(seed, edges=edges, slot_s=None, chip_wide=False, tasks=12, wake_s=wake_s)


def priced(seed: int) -> Problem:
    """The whole model with prices; every fourth a batch on servers that are on."""
    drawn = random_problem(
        seed, edges=seed % 5 == 2, slot_s=None, chip_wide=False, tasks=12 + seed, prices=True
    )
    if seed % 4 < 3:
        return drawn
    on = np.ones(drawn.platform.server_count, dtype=bool)
    batch = replace(drawn.tasks, arrival_s=np.zeros(len(drawn.tasks)))
    return replace(drawn, tasks=batch, platform=replace(drawn.platform, initially_on=on))


@cache
def answer(seed: int, spec: str) -> tuple[Problem, Schedule | str]:
    """The problem of a seed and its plan, or why the policy refuses it."""
    problem, chosen = problem_of(seed, spec), policy(spec)
    objection = chosen.objection(problem)
    return problem, plan(problem, chosen) if objection is None else objection


def planned(seed: int, spec: str) -> tuple[Problem, Schedule]:
    problem, schedule = answer(seed, spec)
    if isinstance(schedule, str):
        pytest.skip(f"{spec} does not plan this problem: {schedule}")
    return problem, schedule


def rows(table: Segments | PowerSpans) -> np.ndarray:
    """All columns, rows in one order."""
    columns = np.array([getattr(table, spec.name) for spec in fields(table)])
    return columns[:, np.lexsort(columns)]


@each_case
def test_plans_are_valid_and_every_task_ends_once(seed: int, spec: str) -> None:
    problem, schedule = planned(seed, spec)
    verdict = verify(problem, schedule)
    assert verdict.ok, str(verdict)
    status = schedule.outcomes.status
    assert np.all((status == DONE) | (status == REJECTED))
    ran = np.bincount(schedule.segments.task, minlength=status.size)
    assert np.all((ran > 0) == ((status == DONE) & (problem.tasks.scale > 0.0)))


@each_case
def test_bills_add_up_and_respect_the_bound(seed: int, spec: str) -> None:
    problem, schedule = planned(seed, spec)
    bill = account(problem, schedule)
    assert sum(bill.energy_j.values()) == pytest.approx(bill.total_j, rel=1e-12)
    assert bill.task_j.sum() == pytest.approx(bill.energy_j["run"], rel=1e-12)
    assert bill.total_j >= Bounds(problem).below(schedule) * (1.0 - 1e-9)


@each_case
def test_another_run_is_the_same(seed: int, spec: str) -> None:
    problem, schedule = planned(seed, spec)
    other = plan(problem, policy(spec))
    assert np.array_equal(rows(other.segments), rows(schedule.segments))
    assert np.array_equal(rows(other.spans), rows(schedule.spans))
    assert np.array_equal(other.outcomes.status, schedule.outcomes.status)
    assert np.array_equal(other.outcomes.reason, schedule.outcomes.reason)


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec not in SOLVERS])
def test_no_deadline_is_missed_on_the_papers_sets(spec: str) -> None:
    """All utilisation ranges and server sizes; the big count is in benchmarks/no_misses.py."""
    for seed, ranges in enumerate(mei.TASK_UTILISATION):
        for per_server in (1, 4, 16):
            cluster = mei.Cluster(pairs=256, per_server=per_server)
            problem = mei.online(
                seed,
                utilisation=0.1,
                initial_utilisation=0.02,
                task_utilisation=ranges,
                cluster=cluster,
            )
            if policy(spec).objection(problem) is not None:
                pytest.skip(f"{spec} does not plan sets of this size")
            schedule = plan(problem, policy(spec))
            assert verify(problem, schedule).ok
            late = schedule.segments.end_s > problem.tasks.deadline_s[schedule.segments.task]
            assert not late.any()
            assert np.all(schedule.outcomes.status == DONE)


def test_every_entry_plans_something() -> None:
    """The laws are not skipped away: each entry plans at least a third of the problems."""
    for spec in CATALOG:
        objections = [policy(spec).objection(problem_of(seed, spec)) for seed in SEEDS]
        assert objections.count(None) >= len(SEEDS) // 3, spec


@pytest.mark.parametrize("spec", [spec for spec in CATALOG if spec not in ("graph", "least-cost")])
def test_what_is_impossible_by_itself_is_told_why(spec: str) -> None:
    """An application without a profile on the one kind that is there, gangs too wide, haste."""
    names = np.array(["anywhere", "elsewhere"], dtype=object)
    profiles = GpuProfiles(*(np.array([v]) for v in (100.0, 0.0, 200.0, 1.0, 0.5, 0.0)))
    group, kinds = np.array([[0, 0], [-1, 0]]), (Kind("here", WIDE), Kind("gone", WIDE))
    library = Library(names, ("here", "gone"), (profiles,), group, np.zeros((2, 2), np.int64))
    servers = (ServerSpec("s", (("here", 2),), initially_on=True),)
    tasks = Tasks.of(
        np.array([0, 1, 1, 0, 0, 0]),
        scale=np.full(6, 10.0),
        processors=np.array([1, 1, 1, 3, 3, 1]),
        deadline_s=np.array([100.0, np.inf, 100.0, np.inf, 100.0, 5.0]),
    )
    prices = Prices((("default", ZonePrices(Curve.constant(1e-8))),))
    problem = Problem(tasks, library, Platform.build(kinds, servers), prices=prices)
    schedule = plan(problem, policy(spec))
    assert schedule.outcomes.status.tolist() == [DONE, *[REJECTED] * 5]
    reason = schedule.outcomes.reason.tolist()
    assert reason[1:3] == ["no processor of this platform has a profile for it"] * 2
    assert reason[3:5] == ["needs 3 processors at once, of one kind; there are 2"] * 2
    assert reason[5].startswith("cannot end by its deadline 5 s even at full speed: earliest 8.7")


def test_a_refused_problem_is_named() -> None:
    slotted = random_problem(3, edges=True, slot_s=7.5, tasks=12)
    assert "slotted" in str(policy("prompt").objection(slotted))


@pytest.mark.parametrize("spec", [spec for spec in CATALOG if spec not in ("graph", "least-cost")])
def test_kinds_that_no_server_has_take_nothing_away(spec: str) -> None:
    """Two kinds follow those of the servers, with the curves of the last of them."""
    problem, schedule = planned(1, spec)
    platform, library, more = problem.platform, problem.library, ("spare", "other")
    kinds = (*platform.kinds, *(replace(platform.kinds[-1], name=name) for name in more))
    group, row = (np.pad(each, ((0, 0), (0, 2)), "edge") for each in (library.group, library.row))
    wider = replace(
        problem,
        platform=replace(platform, kinds=kinds),
        library=replace(library, kinds=(*library.kinds, *more), group=group, row=row),
    )
    other = plan(wider, policy(spec))
    assert verify(wider, other).ok
    assert np.array_equal(other.outcomes.status, schedule.outcomes.status)
    assert Bounds(wider).below(other) == Bounds(problem).below(other)
