"""Gangs in our policy: reservations that hold, servers that fill up, failures that are followed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.engine.play import plan
from downclock.planners.catalog import policy
from downclock.planners.per_task import per_task_bound_j
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE, REJECTED, Schedule
from downclock.schedule.verify.verify import verify
from downclock.simulate.chances import Chances
from downclock.simulate.simulate import simulate
from downclock.workloads import mei
from tests.generated import random_problem
from tests.laws.test_engine import same

PLAIN = {"edges": False, "slot_s": None, "chip_wide": False, "gangs": True}
SIZES = np.array([1, 2, 4, 8])


def day(seed: int, per_server: int, utilisation: float = 0.06) -> Problem:
    """A short day of the papers with gangs in it."""
    problem = mei.online(
        seed,
        utilisation=utilisation,
        initial_utilisation=utilisation / 4,
        cluster=mei.Cluster(pairs=256, per_server=per_server),
    )
    gang = np.random.default_rng(seed).choice(SIZES, len(problem.tasks), p=[0.6, 0.2, 0.1, 0.1])
    return replace(problem, tasks=replace(problem.tasks, processors=gang))


def energy_j(problem: Problem, schedule: Schedule) -> float:
    return float(account(problem, schedule).server_j.sum())


def busiest(schedule: Schedule, platform: Platform) -> int:
    """Most processors of one server that run at once, counted by hand."""
    s = schedule.segments
    server, most = platform.server[s.processor], 0
    for at in s.start_s:
        running = (s.start_s <= at) & (at < s.end_s)
        most = max(most, int(np.bincount(server[running]).max()))
    return most


@pytest.mark.parametrize("spec", ["late", "prompt", "late:reserve=0.2"])
@pytest.mark.parametrize("seed", range(8))
def test_drawn_problems_with_gangs_are_valid_and_nothing_accepted_is_late(spec, seed):
    problem = random_problem(500 + seed, tasks=(8, 24, 40)[seed % 3], **PLAIN)
    schedule = plan(problem, policy(spec))
    verdict = verify(problem, schedule)
    assert verdict.ok, str(verdict)
    assert np.all(np.isin(schedule.outcomes.status, (DONE, REJECTED)))
    same(schedule, plan(problem, policy(spec), stepwise=True))


@pytest.mark.parametrize("seed", range(6))
def test_failures_overruns_and_repairs_are_followed_with_gangs(seed):
    problem = random_problem(520 + seed, tasks=20, **PLAIN)
    chances = Chances(
        actual="uniform:0.6:1.4", fail_jobs=0.1, server_life="exponential:300",
        processor_life="exponential:400", repair_s=40.0,
    )  # fmt: skip
    run = simulate(problem, policy("late"), chances=chances, seed=seed)
    verdict = verify(problem, run.realised)
    assert verdict.ok, str(verdict)


@pytest.mark.parametrize("per_server", [4, 8])
def test_a_day_with_gangs_is_near_the_bound_and_below_full_speed(per_server):
    problem = day(1, per_server)
    schedule = plan(problem, policy("late"))
    assert verify(problem, schedule).ok
    assert np.all(schedule.outcomes.status == DONE)
    gap = energy_j(problem, schedule) / per_task_bound_j(problem).sum() - 1.0
    assert gap < 0.05
    assert busiest(schedule, problem.platform) <= per_server


def test_a_gang_stays_on_one_server_where_it_fits_and_takes_whole_ones_else():
    problem = day(2, 4)
    platform, s = problem.platform, plan(problem, policy("late")).segments
    for task in np.unique(s.task):
        servers, rows = np.unique(platform.server[s.processor[s.task == task]], return_counts=True)
        gang = int(problem.tasks.processors[task])
        assert servers.size == max(1, gang // 4)
        assert gang <= 4 or np.all(rows == 4)


def test_singles_are_planned_as_before_until_the_first_gang_comes():
    problem = day(3, 4)
    late = problem.tasks.arrival_s > np.median(problem.tasks.arrival_s)
    gang = np.where(late, problem.tasks.processors, 1)
    mixed = replace(problem, tasks=replace(problem.tasks, processors=gang))
    single = replace(problem, tasks=replace(problem.tasks, processors=np.ones(late.size, int)))
    first_s = problem.tasks.arrival_s[gang > 1].min()
    rows = []
    for p in (mixed, single):
        s = plan(p, policy("late")).segments
        mine = s.start_s < first_s
        order = np.lexsort((s.processor[mine], s.task[mine]))
        rows.append(np.column_stack([s.task, s.processor, s.start_s])[mine][order])
    assert np.array_equal(*rows)
    assert len(rows[0]) > 10


def test_a_gang_larger_than_any_kind_is_refused_with_what_there_is():
    problem = day(4, 4)
    small = Platform.build(
        (Kind(mei.PAIR, mei.MEI2021.clocks, idle_w=37.0, clock="locked"),),
        (ServerSpec("s", ((mei.PAIR, 2),), count=2),),
    )
    schedule = plan(replace(problem, platform=small), policy("late"))
    wide = problem.tasks.processors == 8
    assert np.all(schedule.outcomes.status[wide] == REJECTED)
    expected = "needs 8 processors at once, of one kind; there are 4"
    assert set(schedule.outcomes.reason[wide]) == {expected}


def test_a_gang_of_more_processors_than_memory_has_bytes_is_refused_like_others():
    problem = day(4, 4)
    many = np.where(np.arange(len(problem.tasks)) == 7, 10**18, problem.tasks.processors)
    vast = replace(problem, tasks=replace(problem.tasks, processors=many))
    schedule = plan(vast, policy("late"))
    assert schedule.outcomes.status[7] == REJECTED
    assert schedule.outcomes.reason[7].startswith(f"needs {10**18} processors at once")


def lone(seed: int, jobs: int, hours: float, *, gangs: bool) -> Problem:
    """A few jobs on two servers of eight that cost much while they are awake."""
    rng, drawn = np.random.default_rng(seed), mei.online(seed, utilisation=0.02)
    tasks, kind = drawn.tasks, drawn.platform.kinds[0]
    server = ServerSpec(
        "s", ((kind.name, 8),), count=2, host_w=600.0, wake_j=60e3, wake_s=120.0, sleep_w=20.0
    )
    window_s = (tasks.deadline_s - tasks.arrival_s)[-jobs:] + 300.0
    arrival_s = np.sort(rng.uniform(0.0, 3600.0 * hours, jobs))
    few = Tasks.of(
        tasks.application[-jobs:],
        scale=tasks.scale[-jobs:],
        arrival_s=arrival_s,
        deadline_s=arrival_s + window_s,
        processors=rng.choice([1, 2, 4], jobs) if gangs else np.ones(jobs, np.int64),
    )
    return replace(drawn, tasks=few, platform=Platform.build((kind,), (server,)))


@pytest.mark.parametrize("gangs", [False, True])
@pytest.mark.parametrize(("jobs", "hours"), [(3, 1.0), (5, 8.0)])
def test_lone_jobs_on_servers_that_cost_much_need_no_more_than_full_speed(gangs, jobs, hours):
    spent = np.zeros((4, 2))
    for a, seed in enumerate(range(9100, 9104)):
        problem = lone(seed, jobs, hours, gangs=gangs)
        late, race = plan(problem, policy("late")), plan(problem, policy("race"))
        assert np.all(late.outcomes.status == DONE)
        spent[a] = energy_j(problem, late), energy_j(problem, race)
    assert np.all(spent[:, 0] < 1.05 * spent[:, 1])
    assert spent[:, 0].sum() < 0.97 * spent[:, 1].sum()


def test_where_room_is_scarce_no_more_jobs_are_refused_than_at_full_speed():
    refused = {"late": 0, "race": 0}
    for seed in range(9400, 9406):
        problem = mei.online(
            seed, utilisation=0.009, initial_utilisation=0.0, days=3,
            cluster=mei.Cluster(pairs=4, per_server=2),
        )  # fmt: skip
        for spec in refused:
            schedule = plan(problem, policy(spec))
            assert verify(problem, schedule).ok
            refused[spec] += int(np.sum(schedule.outcomes.status == REJECTED))
    assert refused["late"] <= refused["race"]
    assert refused["race"] > 0


def wide_gangs(
    servers: list[ServerSpec], deadline_s: list[float], scale: list[float], gang: list[int]
) -> Problem:
    """Gangs of one application of mei2021's on servers of a kind."""
    drawn = mei.online(1, utilisation=0.01, initial_utilisation=0.01)
    kind = drawn.platform.kinds[0]
    named = [replace(each, processors=((kind.name, each.processors[0][1]),)) for each in servers]
    tasks = Tasks.of(
        np.full(len(gang), drawn.tasks.application[0]),
        scale=np.array(scale) * drawn.tasks.scale[0],
        deadline_s=np.array(deadline_s),
        processors=np.array(gang),
    )
    return replace(drawn, tasks=tasks, platform=Platform.build((kind,), named))


@pytest.mark.parametrize("spec", ["late", "prompt"])
def test_a_gang_on_whole_servers_that_queues_does_not_race(spec: str) -> None:
    """Two gangs of four on two servers of two have time; few processors make them hurry a bit."""
    servers = [ServerSpec("pair", (("", 2),), 2, wake_j=1e4)]
    problem = wide_gangs(servers, [1e7, 1e7], [1.0, 0.3], [4, 4])
    schedule = plan(problem, policy(spec))
    assert verify(problem, schedule).ok
    assert np.all(schedule.outcomes.status == DONE)
    rows, best_s = schedule.segments, problem.frontier(0).t_opt_s
    for task in (0, 1):
        took_s = float((rows.end_s - rows.start_s)[rows.task == task][0])
        assert took_s >= 0.8 * best_s[task]


@pytest.mark.parametrize("spec", ["late", "prompt"])
def test_a_gang_holds_no_server_that_it_does_not_need(spec: str) -> None:
    """Twelve of 8 + 8 + 3 processors: whatever is looked at first, two servers hold them."""
    servers = [
        ServerSpec("small", (("", 3),), 1, host_w=400.0),
        ServerSpec("large", (("", 8),), 2, host_w=400.0),
    ]
    problem = wide_gangs(servers, [1e6], [1.0], [12])
    schedule = plan(problem, policy(spec))
    assert verify(problem, schedule).ok
    used = np.unique(problem.platform.server[schedule.segments.processor])
    assert used.size == 2
