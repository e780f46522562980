"""Events a second of the simulator, memory, and SimPy beside it: `python -m benchmarks.simulator`.

Days of mei2021's online tasks, EDL, actual run times uniform in [0.5, 1] of the estimate. "Carry
out" is the simulator alone, "plan too" includes planning. Beside SimPy both sides schedule: ours
plan and carry out, SimPy runs an earliest-deadline queue. Then up to a million jobs
with 1 % of attempts and 5 % of servers failing, each size in a fresh process, whose peak memory is
printed. Times are wall clock.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Generator
from heapq import heappop, heappush
from typing import Any

import numpy as np

from downclock.engine.engine import plan
from downclock.planners.catalog import policy
from downclock.planners.mapping.policy import LiuPolicy
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.schedule import PENDING
from downclock.schedule.verify.verify import verify
from downclock.simulate.chances import Chances, Fate, draw_fate
from downclock.simulate.promises import carry_out
from downclock.simulate.simulate import simulate
from downclock.workloads.liu import job_set
from downclock.workloads.mei import MEI2021, online

TARGET = 100_000
VARY = Chances(actual="uniform:0.5:1")
ROUGH = Chances(actual="uniform:0.5:1", fail_jobs=0.01, fail_servers=0.05, repair_s=3600.0)


def problem_of(days: int) -> Problem:
    return online(1, days=days, cluster=MEI2021)


def simpy_queue(problem: Problem, fate: Fate) -> float | None:
    """Seconds of a SimPy queue that schedules: earliest deadline first, top clocks; None: no SimPy.

    It decides as jobs come and processors fall free, as `race` does; servers, clocks and energy are
    not in it.
    """
    try:
        import simpy
    except ImportError:
        return None
    tasks = problem.tasks
    kind = problem.platform.kinds[0]
    every = np.arange(len(tasks))
    points = np.tile(kind.clocks.default, (every.size, 1))
    length_s = (problem.at(every, np.zeros_like(every), points)[0] * fate.work).tolist()
    deadline_s, arrival_s = tasks.deadline_s.tolist(), tasks.arrival_s.tolist()
    waiting: list[tuple[float, int]] = []
    free = problem.platform.processor_count
    done = 0

    def start_next(env: Any) -> None:
        nonlocal free
        while free and waiting:
            free -= 1
            env.process(runs(env, heappop(waiting)[1]))

    def runs(env: Any, job: int) -> Generator[Any, Any, None]:
        nonlocal free, done
        yield env.timeout(length_s[job])
        free, done = free + 1, done + 1
        start_next(env)

    def arrivals(env: Any) -> Generator[Any, Any, None]:
        for job in np.argsort(tasks.arrival_s, kind="stable").tolist():
            if arrival_s[job] > env.now:
                yield env.timeout(arrival_s[job] - env.now)
            heappush(waiting, (deadline_s[job], job))
            start_next(env)

    began = time.perf_counter()
    env = simpy.Environment()
    env.process(arrivals(env))
    env.run()
    assert done == every.size
    return time.perf_counter() - began


def beside_simpy() -> None:
    """Jobs a second with scheduling in it: ours plan, verify nothing, and carry out."""
    print(
        f"{'jobs':>10} {'race':>12} {'late':>12} {'SimPy EDF':>12} {'race/SimPy':>11} {'late':>6}"
    )
    for days in (1, 10):
        problem = problem_of(days)
        fate = draw_fate(problem, VARY, 1)
        taken = {}
        for name in ("race", "late"):
            simulate(problem_of(1), policy(name), chances=VARY)
            began = time.perf_counter()
            simulate(problem, policy(name), chances=VARY, seed=1)
            taken[name] = time.perf_counter() - began
        queue_s = simpy_queue(problem, fate)
        n = len(problem.tasks)
        mine = f"{n:>10,} {n / taken['race']:>10,.0f}/s {n / taken['late']:>10,.0f}/s"
        if queue_s is None:
            print(f"{mine}   SimPy is not installed: pip install 'simpy>=4.1'")
            continue
        ratios = f"{queue_s / taken['race']:>11.2f} {queue_s / taken['late']:>6.2f}"
        print(f"{mine} {n / queue_s:>10,.0f}/s {ratios}")


def grow() -> None:
    print(f"{'jobs':>10} {'events':>10} {'carry out':>12} {'plan too':>12}")
    simulate(problem_of(1), policy("edl"), chances=VARY)
    for days in (1, 10, 60):
        problem, made = problem_of(days), policy("edl")
        began = time.perf_counter()
        promised = plan(problem, made)
        plan_s = time.perf_counter() - began
        fate = draw_fate(problem, VARY, 1)
        began = time.perf_counter()
        ran = carry_out(problem, promised, fate, VARY.retries)
        run_s = time.perf_counter() - began
        alone, both = ran.events / run_s, ran.events / (run_s + plan_s)
        print(f"{len(problem.tasks):>10,} {ran.events:>10,} {alone:>10,.0f}/s {both:>10,.0f}/s")
        print(f"{'':>10} target {TARGET:,}/s: {'met' if both >= TARGET else 'MISSED'}")


def reactive() -> None:
    """A policy that is asked at every event, in plain Python."""
    problem = job_set(1, load=40.0, arrivals_s=20_000.0)
    began = time.perf_counter()
    run = simulate(problem, LiuPolicy("liu"), seed=1)
    spent_s = time.perf_counter() - began
    print(
        f"liu Dynamic, {len(problem.tasks):,} jobs: {run.events / spent_s:,.0f} events/s (plan too)"
    )


def large(jobs: int) -> None:
    days = int(np.ceil(jobs / (2048 * 1.6)))
    problem = problem_of(days)
    began = time.perf_counter()
    run = simulate(problem, policy("edl"), chances=ROUGH, seed=2026)
    spent_s = time.perf_counter() - began
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    verdict = verify(problem, run.realised)
    bill = account(problem, run.realised)
    assert verdict.ok, verdict
    assert not np.any(run.realised.outcomes.status == PENDING)
    retried = int(np.sum(run.realised.segments.attempt > 0))
    print(
        f"{len(problem.tasks):,} jobs, {run.events:,} events in {spent_s:.1f} s,"
        f" peak {peak_gb:.2f} GB; {run.done.size:,} done, {run.failed.size:,} failed"
        f" ({run.late.size:,} late), {run.rejected.size:,} rejected, {retried:,} second attempts;"
        f" {verdict}; {bill.total_j / 1e12:.4f} TJ"
    )


def main() -> None:
    grow()
    beside_simpy()
    reactive()
    for jobs in (250_000, 500_000, 1_000_000):
        subprocess.run([sys.executable, "-m", "benchmarks.simulator", str(jobs)], check=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        large(int(sys.argv[1]))
    else:
        main()
