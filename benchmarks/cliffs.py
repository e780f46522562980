"""A batch, and the same with one thing changed: how much the gap to the bound changes with it.

    python -m benchmarks.cliffs [batch] [later] [bursts] [kinds] [small] [--seeds FIRST COUNT]

Servers of 16 at load .8 unless said, energy above the per-task bound in per cent (two kinds: of the
better one). Batch: equal servers; one of 15 among 255 of 16; half with a host of 1 W; sizes 8 and
16; sizes 1 to 16; wakes. Later: some tasks come in the following day. Bursts: 100 tasks every hour.
Small: 5 and 10 jobs on 2 x 8, 3 x 4 and 4 x 2 processors with host power. Every plan is verified.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from tests.planners.cluster.known.clusters import own_cluster

from benchmarks.measured import show, verified
from downclock.power.library import Library
from downclock.power.profiles import GpuProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE
from downclock.workloads import mei

FIRST, COUNT = 1840, 6
"""Seeds that had no part in development, and how many."""

USED = 0.8
FREE = mei.Cluster(pairs=4096, turn_on_j=0.0)
RIVALS = ("prompt", "edl", "race", "bin")
DAY_S, HOUR_S = 86400.0, 3600.0


def on(problem: Problem, *servers: tuple[int, int, float]) -> Problem:
    """The problem on other servers: (processors, how many, host power) of each spec."""
    kind = problem.platform.kinds[0]
    specs = [
        ServerSpec(f"s{i}-", ((kind.name, size),), count, host_w=host_w)
        for i, (size, count, host_w) in enumerate(servers)
    ]
    return replace(problem, platform=Platform.build((kind,), tuple(specs)))


def equal(seed: int, cluster: mei.Cluster = FREE) -> Problem:
    """The papers' batch."""
    return mei.offline(seed, utilisation=USED, cluster=cluster)


def batch(seeds: range) -> None:
    """Servers that differ, and wakes."""
    sizes = tuple((size, 30, 0.0) for size in range(1, 17))
    cases: dict[str, Callable[[int], Problem]] = {
        "equal": equal,
        "one of 15": lambda s: on(equal(s), (16, 255, 0.0), (15, 1, 0.0)),
        "half with 1 W host": lambda s: on(equal(s), (16, 128, 0.0), (16, 128, 1.0)),
        "sizes 8 and 16": lambda s: on(equal(s), (16, 128, 0.0), (8, 256, 0.0)),
        "sizes 1 to 16": lambda s: on(equal(s), *sizes),
        "with wakes": lambda s: equal(s, mei.Cluster(pairs=4096)),
    }
    for label, made in cases.items():
        show(label, made, seeds, ("late", "edl"))


def some_later(seed: int, part: float) -> Problem:
    """The batch, but a part of its tasks, at least one, comes some time in the day."""
    problem, rng = equal(seed), np.random.default_rng([seed, 18])
    n = len(problem.tasks)
    arrival_s = np.zeros(n)
    chosen = rng.choice(n, max(1, round(part * n)), replace=False)
    arrival_s[chosen] = rng.uniform(0.0, DAY_S, chosen.size)
    return replace(problem, tasks=_shifted(problem.tasks, arrival_s))


def _shifted(tasks: Tasks, arrival_s: np.ndarray) -> Tasks:
    return replace(tasks, arrival_s=arrival_s, deadline_s=tasks.deadline_s + arrival_s)


def later(seeds: range) -> None:
    """One task of a thousand, of a hundred, of five that comes later."""
    for part in (0.001, 0.01, 0.2):
        show(f"{100 * part:g} % later", lambda s, p=part: some_later(s, p), seeds, ("late", "edl"))


def in_bursts(seed: int, per_server: int) -> Problem:
    """A hundred tasks every hour of a day."""
    cluster = mei.Cluster(per_server=per_server)
    problem = mei.offline(
        seed, utilisation=2400 / (2 * mei.BASE_PAIRS), task_utilisation="online", cluster=cluster
    )
    arrival_s = HOUR_S * np.repeat(np.arange(24.0), 100)
    return replace(problem, tasks=_shifted(problem.tasks, arrival_s))


def bursts(seeds: range) -> None:
    """Every policy on bursts."""
    for size in (4, 8, 16):
        show(f"bursts, l = {size}", lambda s, n=size: in_bursts(s, n), seeds, ("late", *RIVALS))


def two_kinds(seed: int, second: int) -> Problem:
    """The batch where each task has two profiles; ``second`` servers of 256 are of a second kind.

    Its tasks draw .8 to 1.2 of the power there and run .8 to 1.2 as long.
    """
    problem, rng = equal(seed), np.random.default_rng([seed, 19])
    (first,) = problem.library.groups
    assert isinstance(first, GpuProfiles)
    n = len(first)
    power, slow = rng.uniform(0.8, 1.2, (2, n))
    other = replace(
        first, p0_w=first.p0_w * power, gamma_w=first.gamma_w * power, c_w=first.c_w * power,
        d_s=first.d_s * slow, t0_s=first.t0_s * slow,
    )  # fmt: skip
    group, row = np.tile([0, 1], (n, 1)), np.tile(np.arange(n)[:, None], 2)
    library = Library(problem.library.names, ("pair", "other"), (first, other), group, row)
    kinds = [Kind(name, FREE.clocks, FREE.idle_w, clock="locked") for name in library.kinds]
    specs = (
        ServerSpec("s", (("pair", 16),), 256 - second),
        ServerSpec("o", (("other", 16),), second),
    )
    return replace(problem, library=library, platform=Platform.build(kinds, specs))


def kinds(seeds: range) -> None:
    """Two kinds, both plenty or one scarce."""
    for second in (128, 16):
        show(
            f"two kinds, {second} of 256",
            lambda s, m=second: two_kinds(s, m),
            seeds,
            ("late", "edl"),
        )


def small(seeds: range) -> None:
    """Few jobs on a small cluster with host, sleep and wake power: `late` beside the others."""
    for jobs in (5, 10):
        behind = dict.fromkeys(RIVALS, 0)
        for seed in range(seeds.start, seeds.start + 5 * len(seeds)):
            problem = own_cluster(seed, jobs)
            ranks = {spec: _rank(problem, spec) for spec in ("late", *behind)}
            for spec in behind:
                behind[spec] += ranks[spec] < ranks["late"]
        print(f"small, {jobs} jobs: late behind {behind} of {5 * len(seeds)}", flush=True)


def _rank(problem: Problem, spec: str) -> tuple[int, float]:
    schedule, _ = verified(problem, spec)
    done = int(np.sum(schedule.outcomes.status == DONE))
    return -done, round(account(problem, schedule).total_j, 3)


def main() -> None:
    parts = {each.__name__: each for each in (batch, later, bursts, kinds, small)}
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", default=[])
    parser.add_argument("--seeds", nargs=2, type=int, default=(FIRST, COUNT))
    asked = parser.parse_args()
    first, count = asked.seeds
    for name in asked.parts or parts:
        parts[name](range(first, first + count))


if __name__ == "__main__":
    main()
