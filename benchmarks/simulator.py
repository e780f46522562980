"""Events a second of the simulator, memory, and SimPy beside it: `python -m benchmarks.simulator`.

Days of mei2021's online tasks, EDL, actual run times uniform in [0.5, 1] of the estimate. "Carry
out" is the simulator alone, "plan too" includes planning. SimPy runs the same model where it is
installed: a process per processor that keeps the order of its promises. Then up to a million jobs
with 1 % of attempts and 5 % of servers failing, each size in a fresh process, whose peak memory is
printed. Times are wall clock.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Generator
from typing import Any

import numpy as np

from downclock.engine.engine import plan
from downclock.planners.catalog import policy
from downclock.planners.mapping.policy import LiuPolicy
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.schedule import PENDING, Schedule
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


def with_simpy(problem: Problem, promised: Schedule, fate: Fate) -> float | None:
    """Seconds SimPy takes for the same promises, or None where it is not installed."""
    try:
        import simpy
    except ImportError:
        return None
    s = promised.segments
    order = np.lexsort((s.start_s, s.processor))
    rows = zip(
        s.processor[order].tolist(),
        s.start_s[order].tolist(),
        ((s.end_s - s.start_s) * fate.work[s.task])[order].tolist(),
        strict=True,
    )
    queues: dict[int, list[tuple[float, float]]] = {}
    for p, start_s, length_s in rows:
        queues.setdefault(p, []).append((start_s, length_s))
    ended: list[float] = []

    def processor(env: Any, jobs: list[tuple[float, float]]) -> Generator[Any, Any, None]:
        for start_s, length_s in jobs:
            if start_s > env.now:
                yield env.timeout(start_s - env.now)
            yield env.timeout(length_s)
            ended.append(env.now)

    def arrivals(env: Any, at_s: list[float]) -> Generator[Any, Any, None]:
        for moment in at_s:
            yield env.timeout(moment - env.now)

    began = time.perf_counter()
    env = simpy.Environment()
    env.process(arrivals(env, np.sort(problem.tasks.arrival_s).tolist()))
    for jobs in queues.values():
        env.process(processor(env, jobs))
    env.run()
    assert len(ended) == len(s)
    return time.perf_counter() - began


def grow() -> None:
    print(
        f"{'jobs':>10} {'events':>10} {'carry out':>12} {'plan too':>12} {'SimPy':>12} {'ratio':>7}"
    )
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
        simpy_s = with_simpy(problem, promised, fate)
        beside = "no SimPy" if simpy_s is None else f"{ran.events / simpy_s:,.0f}/s"
        ratio = "" if simpy_s is None else f"{simpy_s / run_s:.1f}"
        print(
            f"{len(problem.tasks):>10,} {ran.events:>10,} {alone:>10,.0f}/s {both:>10,.0f}/s"
            f" {beside:>12} {ratio:>7}"
        )
        if simpy_s is None:
            print(f"{'':>10} SimPy is not installed: pip install 'simpy>=4.1'")
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
    reactive()
    for jobs in (250_000, 500_000, 1_000_000):
        subprocess.run([sys.executable, "-m", "benchmarks.simulator", str(jobs)], check=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        large(int(sys.argv[1]))
    else:
        main()
