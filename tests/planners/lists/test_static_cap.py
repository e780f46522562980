"""The operators' baseline: one cap for all, chosen in hindsight, never at the price of a job."""

from __future__ import annotations

import numpy as np

from downclock.engine.play import plan
from downclock.planners.catalog import policy
from downclock.planners.lists import static_cap
from downclock.planners.lists.lengths import OneClock
from downclock.power.library import Library
from downclock.power.points import WIDE
from downclock.power.profiles import GpuProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE
from downclock.schedule.verify.verify import verify
from downclock.workloads import mei


def _one_gpu(deadline_s: list[float]) -> Problem:
    """Jobs of 100 s at the default clock on one pair, all there at time 0."""
    n = len(deadline_s)
    profiles = GpuProfiles([100.0], [50.0], [150.0], [90.0], [0.5], [10.0])
    library = Library.of_one_kind(np.array(["a"], dtype=object), "pair", profiles)
    platform = Platform.build(
        (Kind("pair", WIDE, idle_w=30.0),), (ServerSpec("s", (("pair", 1),)),)
    )
    tasks = Tasks.of(np.zeros(n, dtype=np.int64), deadline_s=np.array(deadline_s))
    return Problem(tasks, library, platform)


def test_the_cap_keeps_every_job_that_full_speed_keeps() -> None:
    """Two jobs of 100 s with 205 s for both: a cap that runs one longer loses the other."""
    problem = _one_gpu([105.0, 205.0])
    schedule = plan(problem, policy("static-cap"))
    assert verify(problem, schedule).ok
    assert np.all(schedule.outcomes.status == DONE)


def test_the_cap_is_no_worse_than_full_speed() -> None:
    for seed in range(4):
        problem = mei.offline(seed, utilisation=0.02, cluster=mei.Cluster(pairs=16, per_server=4))
        race, capped = (plan(problem, policy(name)) for name in ("race", "static-cap"))
        lost = [int(np.sum(s.outcomes.status != DONE)) for s in (race, capped)]
        assert lost[1] <= lost[0]
        if lost[0] == lost[1] == 0:
            bills = [account(problem, s).total_j for s in (race, capped)]
            assert bills[1] <= bills[0] * (1.0 + 1e-9)


def test_of_many_jobs_one_cap_is_planned_beside_full_speed(monkeypatch) -> None:
    monkeypatch.setattr(static_cap, "_MANY", 0)
    asked: list[object] = []
    monkeypatch.setattr(static_cap, "plan", lambda *given: asked.append(given) or plan(*given))
    problem = mei.offline(1, utilisation=0.02, cluster=mei.Cluster(pairs=16, per_server=4))
    race, capped = (plan(problem, policy(name)) for name in ("race", "static-cap"))
    assert len(asked) == 2
    assert account(problem, capped).total_j <= account(problem, race).total_j * (1.0 + 1e-9)


def test_the_run_energy_of_a_cap_is_the_sum_over_tasks() -> None:
    """As if every task were asked for its own time and power at the cap."""
    problem = mei.offline(2, utilisation=0.01, cluster=mei.Cluster(pairs=16, per_server=4))
    tasks, cap = problem.tasks, OneClock(0.8, 0.9)
    needed_j = [np.full(len(tasks), 1e9)]
    every, kind = np.arange(len(tasks)), np.zeros(len(tasks), dtype=np.int64)
    point = cap.point(problem.platform.kinds[0].clocks)
    time_s, power_w = problem.at(every, kind, np.tile(point, (every.size, 1)))
    timely = time_s <= tasks.deadline_s - tasks.arrival_s
    wanted = float(np.where(timely, time_s * power_w, 1e9).sum())
    assert static_cap._run_energy(problem, cap, needed_j) == wanted
