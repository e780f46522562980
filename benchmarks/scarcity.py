"""Clusters with too few processors: who turns how many jobs away.

    python -m benchmarks.scarcity [first seed] [sets] [gangs]

Jobs of the papers' ranges arrive over a day on 1 to 16 processors, so many that their run times at
the fastest clocks are the load of all processors; the window of a job is u(.15, .85) full.
Families: sizes, loads, wake times, unequal servers; liu's sets, heavy and online. Per family: jobs
refused in all sets by each policy, and in brackets the processor time refused in per cent; energy
of `late` beside `race` on the sets where both do as many. Every plan is verified.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.measured import verified
from downclock.problem.platform import Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE
from downclock.units import Floats
from downclock.workloads import liu, mei

SPECS = ("late", "race", "edl", "bin")
DAY_S = 86400.0


@dataclass(frozen=True)
class Family:
    """Servers by their sizes, how much comes, and what a wake takes."""

    sizes: tuple[int, ...]
    load: float
    wake_s: float = 0.0

    @property
    def label(self) -> str:
        """How a table names it."""
        wake = f", wake {self.wake_s:g} s" if self.wake_s else ""
        return f"{'+'.join(map(str, self.sizes))} load {self.load:g}{wake}"


FAMILIES = (
    Family((1,), 0.4), Family((1,), 0.8, 120.0), Family((2, 2), 0.6), Family((2, 2), 0.6, 120.0),
    Family((4, 4, 4), 0.7), Family((4, 4, 4), 0.7, 300.0), Family((1, 2, 3, 4), 0.8),
    Family((8, 4, 2, 1, 1), 0.9, 60.0), Family((1,) * 16, 0.9), Family((4,) * 4, 1.0),
    Family((4,) * 4, 1.4), Family((16,), 1.4, 120.0),
)  # fmt: skip
GANGS = (1, 2, 3, 4)


def full_s(problem: Problem) -> Floats:
    """Run times at the fastest clocks of the first kind (n,)."""
    return problem.frontier(0).t_min_s


def drawn(seed: int, family: Family, gangs: bool) -> Problem:
    """One set; with ``gangs``, of up to as many processors as the largest server has."""
    day, rng = mei.online(seed), np.random.default_rng([seed, 95])
    kind = day.platform.kinds[0]
    specs = tuple(
        ServerSpec(f"s{j}-", ((kind.name, size),), 1, wake_s=family.wake_s, wake_j=5400.0 * size)
        for j, size in enumerate(family.sizes)
    )
    n = len(day.tasks)
    fits = [k for k in GANGS if k <= max(family.sizes)]
    gang = rng.choice(fits, n) if gangs else np.ones(n, np.int64)
    run_s = full_s(day)
    most = family.load * DAY_S * sum(family.sizes)
    chosen = rng.permutation(n)
    chosen = np.sort(chosen[: int(np.searchsorted(np.cumsum((gang * run_s)[chosen]), most))])
    window_s = (day.tasks.deadline_s - day.tasks.arrival_s)[chosen]
    arrival_s = np.sort(rng.uniform(0.0, DAY_S, chosen.size))
    tasks = Tasks.of(
        day.tasks.application[chosen], scale=day.tasks.scale[chosen], arrival_s=arrival_s,
        deadline_s=arrival_s + window_s, processors=gang[chosen],
    )  # fmt: skip
    return replace(
        day, tasks=tasks, platform=Platform.build((kind,), specs), name=f"{family.label} {seed}"
    )


def refused(problem: Problem, spec: str) -> tuple[int, float, float]:
    """Jobs that are not done, their part of the processor time in per cent, and the energy."""
    schedule, _ = verified(problem, spec)
    lost = schedule.outcomes.status != DONE
    weight = problem.tasks.processors * full_s(problem)
    part = 100.0 * float(weight[lost].sum() / weight.sum())
    return int(lost.sum()), part, account(problem, schedule).total_j


def show(label: str, problems: list[Problem], specs: tuple[str, ...]) -> None:
    """Print a family."""
    rows = {spec: np.array([refused(each, spec) for each in problems]) for spec in specs}
    same = rows["late"][:, 0] == rows["race"][:, 0]
    beside = rows["late"][same, 2].sum() / rows["race"][same, 2].sum() if np.any(same) else np.nan
    jobs = sum(len(each.tasks) for each in problems)
    found = "  ".join(
        f"{spec} {int(row[:, 0].sum())} ({row[:, 1].mean():.2f} %)" for spec, row in rows.items()
    )
    least = min(row[:, 0].sum() for spec, row in rows.items() if spec != "late")
    worse = "  MORE" if rows["late"][:, 0].sum() > least else ""
    print(f"{label:32s} of {jobs}: {found}  energy {beside:.3f}{worse}", flush=True)


def main() -> None:
    given = [int(word) for word in sys.argv[1:] if word != "gangs"]
    first, sets = (*given, *(9500, 20)[len(given) :])
    gangs = "gangs" in sys.argv
    seeds = range(first, first + sets)
    for family in FAMILIES:
        show(family.label, [drawn(seed, family, gangs) for seed in seeds], SPECS)
    if not gangs:
        sets_of_liu = [liu.job_set(seed, load="heavy", arrivals_s=120.0) for seed in seeds]
        show("liu, heavy, online", sets_of_liu, (*SPECS, "liu"))


if __name__ == "__main__":
    main()
