"""Policies told real ends, beside a SimPy queue that schedules: `python -m benchmarks.simulator`.

20,000 jobs (or as many as the first argument says) on 8 servers of 4 GPUs, load 0.95 by estimates,
early ends uniform in [0.5, 1]. The rival is an earliest-deadline queue written in SimPy: a job
starts when a GPU is free, and is dropped where it cannot be on time any more. Printed are jobs done
in time, and events a second, in one run. Then time per event, on the processor, with queues of
growing length.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Generator
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any

import numpy as np

from downclock.engine.facts import ARRIVED, Fact, Facts
from downclock.engine.scheduler import Scheduler
from downclock.engine.snapshot import restored, saved
from downclock.engine.world import World
from downclock.planners.catalog import policy
from downclock.problem.problem import Problem
from downclock.simulate.chances import Chances, draw_fate
from downclock.simulate.simulate import simulate
from downclock.workloads import mei

EARLY = Chances(actual="uniform:0.5:1")
SEED = 5


def _clock_s() -> float:
    """What reading the clock takes, to be taken off."""
    began = time.process_time()
    for _ in range(1000):
        time.process_time()
    return (time.process_time() - began) / 1000


CLOCK_S = _clock_s()


def jobs_of(n: int, load: float = 0.95) -> Problem:
    """Jobs of mei2021 with arrivals at an even rate and deadlines 1.5 to 4 run times away."""
    cluster = mei.Cluster(pairs=32, per_server=4)
    day = mei.online(3, utilisation=0.4, initial_utilisation=0.1, cluster=cluster)
    rng = np.random.default_rng(SEED)
    pick = rng.integers(len(day.tasks), size=n)
    tasks = day.tasks
    every = np.arange(len(tasks))
    points = np.tile(day.platform.kinds[0].clocks.default, (every.size, 1))
    run_s = day.at(every, np.zeros_like(every), points)[0][pick]
    arrival_s = np.sort(rng.uniform(0.0, run_s.sum() / 32 / load, n))
    made = replace(
        tasks,
        name=np.array([f"j{i}" for i in range(n)], dtype=object),
        application=tasks.application[pick],
        scale=tasks.scale[pick],
        arrival_s=arrival_s,
        deadline_s=arrival_s + run_s * rng.uniform(1.5, 4.0, n),
        processors=np.ones(n, dtype=np.int64),
    )
    return replace(day, tasks=made, name=f"{n} jobs")


def simpy_queue(problem: Problem) -> tuple[int, float]:
    """Jobs done in time and seconds of a SimPy queue, earliest deadline first, top clocks."""
    import simpy

    tasks, every = problem.tasks, np.arange(len(problem.tasks))
    points = np.tile(problem.platform.kinds[0].clocks.default, (every.size, 1))
    estimate_s = problem.at(every, np.zeros_like(every), points)[0]
    real_s = (estimate_s * draw_fate(problem, EARLY, SEED).work).tolist()
    due_s, arrival_s = tasks.deadline_s.tolist(), tasks.arrival_s.tolist()
    waiting: list[tuple[float, int]] = []
    free, done = problem.platform.processor_count, 0

    def start_next(env: Any) -> None:
        nonlocal free
        while free and waiting:
            job = heappop(waiting)[1]
            if env.now + estimate_s[job] <= due_s[job]:
                free -= 1
                env.process(runs(env, job))

    def runs(env: Any, job: int) -> Generator[Any, Any, None]:
        nonlocal free, done
        yield env.timeout(real_s[job])
        free, done = free + 1, done + 1
        start_next(env)

    def arrivals(env: Any) -> Generator[Any, Any, None]:
        for job in range(every.size):
            if arrival_s[job] > env.now:
                yield env.timeout(arrival_s[job] - env.now)
            heappush(waiting, (due_s[job], job))
            start_next(env)

    began = time.perf_counter()
    env = simpy.Environment()
    env.process(arrivals(env))
    env.run()
    return done, time.perf_counter() - began


def beside_simpy(n: int) -> None:
    problem = jobs_of(n)
    done, seconds = simpy_queue(problem)
    print(f"{problem.name}, early ends, load 0.95: SimPy EDF queue {done} done,", end=" ")
    print(f"{2 * n / seconds:,.0f} events/s")
    for spec in ("race", "edl", "bin", "prompt", "late"):
        simulate(jobs_of(200), policy(spec), chances=EARLY)
        began = time.perf_counter()
        run = simulate(problem, policy(spec), chances=EARLY, seed=SEED)
        seconds = time.perf_counter() - began
        told = f"{run.done.size} done in time, {run.late.size} late"
        print(f"  {spec:8} {told}, {run.events / seconds:,.0f} events/s with the plan")


class Queue:
    """`late` on 32 GPUs with tasks that have time: told of one after the other, and of their ends.

    Attributes:
        taken_s: how long each call took, on the processor.
    """

    def __init__(self, n: int) -> None:
        problem = jobs_of(n)
        rng = np.random.default_rng(SEED)
        due_s = problem.tasks.arrival_s + rng.uniform(1e8, 3e8, n)
        self.problem = replace(problem, tasks=replace(problem.tasks, deadline_s=due_s))
        self.scheduler = Scheduler(self.problem, policy("late"))
        self.world = World(self.problem)
        self.world.told = np.arange(n)
        self.taken_s: list[float] = []

    def arrive(self, job: int, at_s: float) -> None:
        """Let happen what does before ``at_s``, and then a job come."""
        while (next_s := min(self.world.next_s(self.scheduler), self.scheduler.next_s)) < at_s:
            self._handle(next_s, self.world.happens(self.scheduler.book, next_s))
        fresh = self.scheduler.tell(self.problem.tasks, np.array([job]))
        self._handle(at_s, [Fact(ARRIVED, int(fresh[0]))])

    def _handle(self, now_s: float, rows: list[Fact]) -> None:
        began = time.process_time()
        due = now_s >= self.scheduler.call_me_s
        _, started = self.scheduler.handle(Facts(now_s, rows, due=due))
        self.taken_s.append(time.process_time() - began - CLOCK_S)
        self.world.begin(self.scheduler.book, started)


def per_event(queued: int, more: int = 1000) -> None:
    """Time of a call of `late` with so many tasks queued, and of writing its state.

    Jobs come a millisecond apart until they are queued, then as fast as 32 GPUs do them: arrivals
    and ends take turns. Garbage of the imports is frozen, as services do.
    """
    queue = Queue(queued + more)
    gap_s = float(np.mean(queue.problem.frontier(0).t_max_s)) / 32
    queue.arrive(0, 0.0)
    queue.taken_s.clear()  # the first call reads compiled code
    gc.collect()
    gc.freeze()
    for job in range(1, queued):
        queue.arrive(job, 1e-3 * job)
    first = len(queue.taken_s)
    for job in range(queued, queued + more):
        queue.arrive(job, 1e-3 * queued + gap_s * (job - queued))
    taken_ms = 1e3 * np.array(queue.taken_s)
    began = time.process_time()
    restored(queue.problem, policy("late"), saved(queue.scheduler))
    both_s = time.process_time() - began
    gc.unfreeze()
    mean, calls = taken_ms[first:].mean(), taken_ms.size - first
    print(f"late, {queued:,} queued: {mean:.3f} ms a call (of {calls}), worst of all", end=" ")
    print(f"{taken_ms.max():.1f} ms; written and read in {both_s:.2f} s")


def main() -> None:
    beside_simpy(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
    for queued in (100, 1_000, 10_000, 100_000):
        per_event(queued)


if __name__ == "__main__":
    main()
