"""No deadline is missed: policies on a thousand generated sets and more, every plan verified.

    python -m benchmarks.no_misses [papers] [mixed] [--sets 1000] [--seed 0]

Papers: each set of mei2021 is planned by every policy of it; all utilisation ranges, l and theta
take turns. Mixed: 3 to 1,000 jobs on servers that mix GPUs and CPUs, one to three kinds of either
clocks, idle, host and wake power and wake times, load .1 to 1.2, planned online. Ends are
compared with deadlines; of the papers' sets no job may be rejected either.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle

import numpy as np
from tests.generated import FLAVOURS, random_problem

from downclock.engine.play import plan
from downclock.planners.catalog import policy
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.schedule import REJECTED
from downclock.schedule.verify.verify import verify
from downclock.workloads import mei

THETAS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
RIVALS = ("edf-bf", "edf-wf", "lpt-ff", "bin:rho=120", "bin:rho=120,start=load", "race:rho=120")
ONLINE = ("late", "prompt", "race", "edl", "bin")
MOST_JOBS, MOST_LOAD = 1000, 1.2


def specs(theta: float) -> tuple[str, ...]:
    """Policies of mei2021 to try on a set."""
    edl = (f"edl:theta={theta:g},rho=120", f"edl:theta={theta:g},rho=120,start=stream")
    return (*edl, f"edl:theta={theta:g},group=off,grid=0.05", "edl:dvfs=off", *RIVALS)


def papers(first: int, sets: int) -> Iterator[tuple[Problem, str]]:
    """Sets of mei2021 and policies."""
    turns = zip(
        range(first, first + sets), cycle(mei.TASK_UTILISATION), cycle((1, 2, 4, 8, 16)),
        cycle(THETAS), strict=False,
    )  # fmt: skip
    for seed, ranges, per_server, theta in turns:
        cluster = mei.Cluster(pairs=512, per_server=per_server)
        generate = mei.offline if seed % 2 else mei.online
        problem = generate(
            seed, utilisation=0.1, task_utilisation=ranges, cluster=cluster,
            **({} if seed % 2 else {"initial_utilisation": 0.05}),
        )  # fmt: skip
        yield from ((problem, spec) for spec in specs(theta))


def mixed(first: int, sets: int) -> Iterator[tuple[Problem, str]]:
    """Mixed kinds and policies."""
    for seed in range(first, first + sets):
        problem = mixed_kinds(seed)
        yield from ((problem, spec) for spec in ONLINE)


def mixed_kinds(seed: int) -> Problem:
    """A drawn cluster that mixes a CPU with up to two kinds of GPU, and jobs at a drawn load."""
    rng = np.random.default_rng([seed, 20])
    gpus = [name for name in FLAVOURS if not name.startswith("cpu")]
    chosen = rng.choice(gpus, int(rng.integers(1, 3)), replace=False)
    n = round(float(np.exp(rng.uniform(np.log(3), np.log(MOST_JOBS)))))
    drawn = random_problem(
        seed, tasks=n, flavours=(str(rng.choice(["cpu", "cpu-table"])), *map(str, chosen)),
        chip_wide=False, slot_s=None, edges=False, gangs=False, milestones=False, prices=False,
    )  # fmt: skip
    kinds = range(len(drawn.platform.kinds))
    fastest_s = np.min([drawn.frontier(k).t_min_s for k in kinds], axis=0)
    whole_s = fastest_s.sum() / (drawn.platform.processor_count * rng.uniform(0.1, MOST_LOAD))
    arrival_s = np.sort(rng.uniform(0.0, whole_s, n)) * (rng.uniform(size=n) > 0.1)
    tasks = Tasks.of(
        drawn.tasks.application, scale=drawn.tasks.scale, arrival_s=arrival_s,
        deadline_s=arrival_s + fastest_s / rng.uniform(0.1, 0.95, n),
    )  # fmt: skip
    return replace(drawn, tasks=tasks, name=f"mixed-{seed}")


def main() -> int:
    parts = {each.__name__: each for each in (papers, mixed)}
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", default=[])
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked, failed = parser.parse_args(), 0
    for part in asked.parts or parts:
        plans = tasks = late = invalid = rejected = 0
        for problem, spec in parts[part](asked.seed, asked.sets):
            schedule = plan(problem, policy(spec))
            ends = schedule.segments.end_s
            late += int((ends > problem.tasks.deadline_s[schedule.segments.task]).sum())
            invalid += not verify(problem, schedule).ok
            rejected += int(np.sum(schedule.outcomes.status == REJECTED))
            plans, tasks = plans + 1, tasks + len(problem.tasks)
        print(
            f"{part}: {asked.sets:,} sets, {plans:,} plans, {tasks:,} tasks: {late} late, {invalid}"
            f" invalid plans, {rejected} rejected",
            flush=True,
        )
        failed += late + invalid + (rejected if part == "papers" else 0)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
