"""Laws of the one way to decide, over every policy of the catalogue.

Blind to the future; a chance that never strikes changes nothing; one moment at a time is the whole
run; state written as bytes goes on the same; facts that cannot be are refused by name and change
nothing; a fact told twice counts once.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from downclock.engine.facts import (
    AMENDED,
    ARRIVED,
    CANCELLED,
    DOWN,
    FINISHED,
    LOST,
    SERVER_UP,
    UP,
    Fact,
    Facts,
)
from downclock.engine.play import plan
from downclock.engine.policy import Policy
from downclock.engine.scheduler import Scheduler
from downclock.engine.snapshot import restored, saved
from downclock.errors import InvalidInput
from downclock.planners.catalog import CATALOG, policy
from downclock.problem.graph import Edges
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.schedule.schedule import DONE, FAILED, REJECTED, PowerSpans, Schedule, Segments
from downclock.schedule.verify.verify import verify
from downclock.simulate.chances import Chances
from downclock.simulate.simulate import simulate
from downclock.workloads.chip import chip_problem
from downclock.workloads.gerhards import Machines, flat_prices, random_graph, slotted_problem
from tests.generated import random_problem

TUNERS = ("static-cap", "known")
"""Made with the whole problem in view, and marked so: exempt from blindness."""
SOLVERS = {
    "graph": "graph:effort=0.02",
    "least-cost": "least-cost:rounds=3",
    "known": "known:effort=0.02",
}
"""Entries that plan all of it at once."""
SPECS = (
    *(SOLVERS.get(name, name) for name in CATALOG),
    "late:reserve=0.2",
    "edl:theta=0.8,rho=120,start=stream",
    "edl:slot=60,start=stream",
    "liu:scheme=static",
)
ONLINE = tuple(s for s in SPECS if s.split(":")[0] not in (*SOLVERS, *TUNERS))
LISTS = ("race", "static-cap", "edl", "edf-bf", "edf-wf", "lpt-ff", "bin")
OURS = ("late", "prompt", "thrifty")
"""Policies that plan gangs and graphs online; every second problem of theirs has some."""
SEEDS = range(4)
NEVER_STRIKES = Chances(fail_jobs=1e-12, server_life="exponential:1e15")


def small(seed: int, spec: str) -> Problem:
    """A problem that suits a policy: mixed kinds, gangs, wake times, some arrivals."""
    name = spec.split(":", maxsplit=1)[0]
    if name == "graph":
        graph = random_graph(7 + seed, seed=seed)
        return chip_problem(graph, 2 + seed % 3, 0.8 * graph.work.sum(), chip_wide=False)
    if name == "least-cost":
        graph = random_graph(5, seed=seed)
        return slotted_problem(graph, Machines(2), flat_prices(int(graph.work.sum())))
    knobs: dict[str, object] = {"edges": False, "slot_s": None, "chip_wide": False, "tasks": 24}
    if name in ("liu", "replan"):
        knobs |= {"flavours": ("gpu-table", "cpu-table"), "wake_s": 0.0}
    if name == "thrifty":
        knobs |= {"prices": True, "deadlines": True}
    if name in (*LISTS, *OURS):
        knobs |= {"gangs": seed % 2 == 1, "edges": seed >= 2}
    return random_problem(100 + seed, **knobs)


@cache
def large(load: float, gangs: bool) -> Problem:
    """More than 300 tasks of two kinds on servers of different sizes."""
    drawn = random_problem(
        7, edges=False, slot_s=None, chip_wide=False, gangs=gangs, tasks=320, milestones=False,
        flavours=("gpu-wide", "cpu"), deadlines=True,
    )  # fmt: skip
    rng = np.random.default_rng(3)
    arrival_s = np.sort(rng.uniform(0.0, 3000.0 / load, 320))
    tasks = replace(
        drawn.tasks, arrival_s=arrival_s, deadline_s=arrival_s + rng.uniform(60.0, 900.0, 320)
    )
    return replace(drawn, tasks=tasks, name=f"large-{load}")


@cache
def many_workflows() -> Problem:
    """The same with gangs, every four tasks a diamond that comes at once."""
    drawn, first = large(1.0, True), np.arange(0, 320, 4)
    before = np.concatenate([first, first, first + 1, first + 2])
    after = np.concatenate([first + 1, first + 2, first + 3, first + 3])
    arrival_s = np.repeat(drawn.tasks.arrival_s[first], 4)
    ends = arrival_s + 3.0 * (drawn.tasks.deadline_s - drawn.tasks.arrival_s)
    tasks = replace(drawn.tasks, arrival_s=arrival_s, deadline_s=ends)
    return replace(drawn, tasks=tasks, edges=Edges(before, after), name="many-workflows")


def ordered(table: Segments | PowerSpans, *keys: str) -> np.ndarray:
    """All columns, rows in the order of some of them."""
    columns = np.array([getattr(table, spec.name) for spec in fields(table)], dtype=np.float64)
    return columns[:, np.lexsort([getattr(table, key) for key in keys])]


def same(one: Schedule, other: Schedule) -> None:
    """Equal; numbers up to the last digits, as powers of many numbers at once differ there."""
    for a, b, keys in (
        (one.segments, other.segments, ("processor", "start_s", "attempt", "task")),
        (one.spans, other.spans, ("start_s", "state", "server")),
    ):
        assert len(a) == len(b)
        np.testing.assert_allclose(ordered(a, *keys), ordered(b, *keys), rtol=1e-11, atol=1e-11)
    assert np.array_equal(one.outcomes.status, other.outcomes.status)
    np.testing.assert_allclose(one.outcomes.work, other.outcomes.work, rtol=1e-11)


def suited(seed: int, spec: str) -> Problem:
    problem = small(seed, spec)
    objection = policy(spec).objection(problem)
    if objection is not None:
        pytest.skip(f"{spec} does not plan this problem: {objection}")
    return problem


each = pytest.mark.parametrize(("spec", "seed"), [(spec, seed) for spec in SPECS for seed in SEEDS])


def plans(stepwise: bool) -> dict[tuple[str, int], Schedule]:
    """Plans by every policy that decides as things happen: single tasks, and gangs in graphs."""
    found = {}
    for spec, seed in ((spec, seed) for spec in (*ONLINE, "static-cap") for seed in (0, 3)):
        problem = small(seed, spec)
        if policy(spec).objection(problem) is None:
            found[spec, seed] = plan(problem, policy(spec), stepwise=stepwise)
    return found


def test_without_compiling_it_is_the_same_moment_by_moment(tmp_path: Path) -> None:
    told = (
        "import pickle, sys\nfrom tests.laws.test_engine import plans\n"
        "open(sys.argv[1], 'wb').write(pickle.dumps(plans(stepwise=True)))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    file = tmp_path / "plain.pickle"
    subprocess.run([sys.executable, "-c", told, str(file)], env=environment, check=True)
    plain, compiled = pickle.loads(file.read_bytes()), plans(stepwise=False)
    assert len(plain) >= 25
    assert plain.keys() == compiled.keys()
    for key, schedule in compiled.items():
        same(schedule, plain[key])


@each
def test_one_moment_at_a_time_is_the_whole_run(spec: str, seed: int) -> None:
    problem = suited(seed, spec)
    same(plan(problem, policy(spec)), plan(problem, policy(spec), stepwise=True))


@each
def test_a_chance_that_never_strikes_changes_nothing(spec: str, seed: int) -> None:
    problem = suited(seed, spec)
    actual = None if spec.startswith("graph") else "uniform:0.6:1.3"
    calm = simulate(problem, policy(spec), chances=Chances(actual=actual), seed=seed)
    risky = simulate(
        problem, policy(spec), chances=replace(NEVER_STRIKES, actual=actual), seed=seed
    )
    same(calm.realised, risky.realised)
    assert verify(problem, calm.realised).ok


@pytest.mark.parametrize("spec", [s for s in ONLINE if not s.startswith(("thrifty", "liu", "rep"))])
@pytest.mark.parametrize("sigma", [1.0, 2.0])
def test_heavy_tails_on_mixed_kinds_are_followed_alike_and_stay_valid(
    spec: str, sigma: float
) -> None:
    name = spec.split(":", maxsplit=1)[0]
    problem = many_workflows() if name in OURS else large(1.0, name in LISTS)
    chances = Chances(actual=f"lognormal:0.8:{sigma}")
    run = simulate(problem, policy(spec), chances=chances, seed=2)
    step = simulate(problem, policy(spec), chances=chances, seed=2, stepwise=True)
    same(run.realised, step.realised)
    verdict = verify(problem, run.realised)
    assert verdict.ok, str(verdict)
    assert np.all(np.isin(run.realised.outcomes.status, (DONE, REJECTED, FAILED)))
    assert verify(problem, run.promised).ok


def other_future(problem: Problem, cut_s: float, seed: int) -> Problem:
    """The same up to a moment; after it other tasks, and other actual prices all along."""
    rng = np.random.default_rng(seed)
    tasks, n = problem.tasks, len(problem.tasks)
    later = tasks.arrival_s > cut_s
    delay = np.where(later, rng.uniform(1.0, 400.0, n), 0.0)
    changed = replace(
        tasks,
        arrival_s=np.where(later, cut_s + delay, tasks.arrival_s),
        deadline_s=np.where(later, cut_s + delay + rng.uniform(50.0, 900.0, n), tasks.deadline_s),
        scale=np.where(later, rng.uniform(0.2, 3.0, n), tasks.scale),
    )
    prices = Prices(
        tuple(
            (name, ZonePrices(_other(zone.price), _other(zone.carbon), zone.expected_price,
                              zone.expected_carbon))
            for name, zone in problem.prices.zones
        )
    )  # fmt: skip
    return replace(problem, tasks=changed, prices=prices)


def _other(curve: Curve | None) -> Curve | None:
    return None if curve is None else Curve(curve.start_s, curve.value[::-1] + 0.01, curve.end_s)


@pytest.mark.parametrize(("spec", "seed"), [(s, k) for s in ONLINE for k in range(6)])
def test_policies_are_blind_to_the_future(spec: str, seed: int) -> None:
    """Replace all that lies behind a cut: what was decided before it stays the same."""
    problem = suited(seed, spec)
    problem = replace(problem, prices=other_future(problem, np.inf, seed).prices)
    arrivals = np.unique(problem.tasks.arrival_s)
    cut_s = float(arrivals[arrivals.size // 2])
    other = other_future(problem, cut_s, seed)
    assert np.any(problem.tasks.arrival_s > cut_s), "there is a future to replace"
    known = problem.tasks.arrival_s <= cut_s
    a, b = (begun_before(plan(p, policy(spec)), known, cut_s) for p in (problem, other))
    assert np.array_equal(a, b)


def begun_before(schedule: Schedule, known: np.ndarray, cut_s: float) -> np.ndarray:
    """Rows of what had started by a moment: task, processor, start and clock."""
    s = schedule.segments
    mine = (s.start_s <= cut_s) & known[s.task]
    table = np.column_stack([s.task, s.processor, s.start_s, s.core, s.memory])[mine]
    return table[np.lexsort(table.T)]


@pytest.mark.parametrize("spec", [s for s in SPECS if s.split(":")[0] not in TUNERS])
def test_written_and_read_it_goes_on_the_same(spec: str) -> None:
    problem = suited(1, spec)
    whole = plan(problem, policy(spec), stepwise=True)
    same(whole, played_through_bytes(problem, spec))


def played_through_bytes(problem: Problem, spec: str) -> Schedule:
    """Play the noiseless world; after every third moment the scheduler is written and read."""
    from downclock.engine.outcome import schedule_of
    from downclock.engine.play import told_s
    from downclock.engine.world import World

    made, world = policy(spec), World(problem)
    tell_s = told_s(problem)
    told = np.argsort(tell_s, kind="stable")
    number = np.argsort(told)
    world.told = told
    scheduler = Scheduler(problem, made)
    known, moments = 0, 0
    while True:
        coming_s = tell_s[told[known]] if known < told.size else np.inf
        now_s = min(coming_s, world.next_s(scheduler), scheduler.next_s)
        if now_s == np.inf:
            return schedule_of(problem, told, scheduler.book.ended(), made.name)
        happened = world.happens(scheduler.book, now_s)
        if coming_s == now_s:
            upto = int(np.searchsorted(tell_s[told], now_s, side="right"))
            later = np.maximum(number[problem.edges.before], number[problem.edges.after])
            mine = (later >= known) & (later < upto)
            edges = replace(
                problem.edges, before=number[problem.edges.before[mine]],
                after=number[problem.edges.after[mine]],
            )  # fmt: skip
            fresh = scheduler.tell(problem.tasks, told[known:upto], edges)
            happened += [Fact(ARRIVED, int(task)) for task in fresh]
            known = upto
        closed = coming_s == now_s == tell_s.max()
        due = now_s >= scheduler.call_me_s
        _, started = scheduler.handle(Facts(now_s, happened, due=due, closed=closed))
        moments += 1
        if moments % 3 == 0:
            scheduler, world = restored(problem, made, saved(scheduler)), World(problem)
            world.told = told
            world.resume(scheduler.book)
        else:
            world.begin(scheduler.book, started)


def begun(spec: str) -> tuple[Problem, Scheduler]:
    """A scheduler that was told of two tasks at time 0."""
    problem = small(1, spec)
    scheduler = Scheduler(problem, policy(spec))
    fresh = scheduler.tell(problem.tasks, np.arange(2))
    scheduler.handle(Facts(0.0, [Fact(ARRIVED, int(task)) for task in fresh]))
    return problem, scheduler


IMPOSSIBLE = [
    ([Fact(FINISHED, 99)], 1.0, "names no task that was told"),
    ([Fact(FINISHED, -1)], 1.0, "names no task that was told"),
    ([Fact(ARRIVED, 0)], 1.0, "has arrived before"),
    ([Fact(LOST, 0), Fact(LOST, 0)], 1e9, "twice|not running"),
    ([Fact(AMENDED, 0, value=np.nan)], 1.0, "must be a number|has ended"),
    ([Fact(DOWN, place=10_000)], 1.0, "names no processor"),
    ([Fact(UP, place=0)], 1.0, "not down"),
    ([Fact(SERVER_UP, place=0)], 1.0, "not down"),
    ([Fact(99)], 1.0, "is not a kind of fact"),
    ([], -1.0, "is before the last facts"),
    ([], np.nan, "must be a finite number"),
    ([Fact(CANCELLED, 0, at_s=5.0)], 1.0, "is after now"),
]


@pytest.mark.parametrize("spec", [s for s in ONLINE if s != "thrifty"])
@pytest.mark.parametrize(("told", "now_s", "rule"), IMPOSSIBLE)
def test_facts_that_cannot_be_are_refused_by_name_and_change_nothing(
    spec: str, told: list[Fact], now_s: float, rule: str
) -> None:
    problem, scheduler = begun(spec)
    if policy(spec).objection(problem) is not None:
        pytest.skip("another problem")
    before = saved(scheduler)
    with pytest.raises(InvalidInput, match=rule):
        scheduler.handle(Facts(now_s, told))
    assert saved(scheduler) == before


@pytest.mark.parametrize("spec", [s for s in ONLINE if s != "thrifty"])
def test_a_fact_told_twice_counts_once(spec: str) -> None:
    problem, scheduler = begun(spec)
    if policy(spec).objection(problem) is not None:
        pytest.skip("another problem")
    down = Facts(1.0, [Fact(DOWN, place=0, id=7)])
    scheduler.handle(down)
    before = saved(scheduler)
    scheduler.handle(Facts(1.0, [Fact(DOWN, place=0, id=7)]))
    assert saved(scheduler) == before


class Shaky:
    """A policy that decides and then, once, raises an error."""

    def __init__(self, inner: Policy) -> None:
        self.inner, self.fails = inner, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def decide(self, state: Any, view: Any, facts: Facts) -> tuple[Any, Any]:
        answer = self.inner.decide(state, view, facts)
        if self.fails:
            self.fails = False
            raise ZeroDivisionError
        return answer


@pytest.mark.parametrize("spec", [s for s in ONLINE if s != "thrifty"])
def test_where_a_policy_fails_nothing_has_changed(spec: str) -> None:
    problem = small(2, spec)
    if policy(spec).objection(problem) is not None:
        pytest.skip("another problem")
    shaky = Shaky(policy(spec))
    scheduler, steady = Scheduler(problem, shaky), Scheduler(problem, policy(spec))
    for known, now_s in ((0, 0.0), (2, 1.0), (4, 2.0)):
        for each in (scheduler, steady):
            fresh = each.tell(problem.tasks, np.arange(known, known + 2))
        told = Facts(now_s, [Fact(ARRIVED, int(task)) for task in fresh])
        shaky.fails = True
        with pytest.raises(ZeroDivisionError):
            scheduler.handle(told)
        scheduler.handle(told)
        steady.handle(told)
    assert saved(scheduler) == saved(steady)


@pytest.mark.parametrize("spec", [s for s in ONLINE if s != "thrifty"])
def test_cancelled_tasks_end_and_changed_deadlines_are_followed(spec: str) -> None:
    problem, scheduler = begun(spec)
    if policy(spec).objection(problem) is not None:
        pytest.skip("another problem")
    open_tasks = [i for i, page in enumerate(scheduler.book.tasks) if page.status == 3]
    for task in open_tasks[:1]:
        scheduler.handle(Facts(0.5, [Fact(AMENDED, task, value=1e6)]))
        scheduler.handle(Facts(1.0, [Fact(CANCELLED, task)]))
        assert scheduler.book.tasks[task].status in (REJECTED, FAILED)
        assert scheduler.book.tasks[task].running is None
        assert all(row is None or row.task != task for row in scheduler.book.running)
