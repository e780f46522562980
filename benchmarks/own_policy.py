"""How far our policies are from the bound, on task sets they were not developed on.

    python -m benchmarks.own_policy offline online week speed

Prints one row per setting: mean gap to the per-task bound in per cent, worst set, seconds. Every
schedule is verified. Turn-on energy is charged per pair; `offline` charges none (mei2021 Eq. 6).
"""

from __future__ import annotations

import sys
import time

import numpy as np

from downclock.engine.engine import plan
from downclock.exact.bounds import per_task_bound_j
from downclock.exact.cluster_bound import cluster_bound_j
from downclock.policies.catalog import policy
from downclock.problem.problem import Problem
from downclock.schedule.account import account
from downclock.schedule.verify import verify
from downclock.workloads import mei

SEEDS = range(600, 612)
PAPERS = [f"edl:theta={theta},rho={rho}" for theta in (1, 0.9, 0.8, 0.5) for rho in (0, 120)]
PAPERS += ["edl:start=stream", "edl:start=stream,theta=0.8", "bin", "bin:rho=120"]


def gap(problem: Problem, spec: str) -> tuple[float, float, float]:
    """Return (gap %, gap to the tighter bound %, seconds)."""
    begin = time.perf_counter()
    schedule = plan(problem, policy(spec))
    seconds = time.perf_counter() - begin
    verdict = verify(problem, schedule)
    if not verdict.ok or np.any(schedule.outcomes.status):
        raise SystemExit(f"{problem.name} {spec}: {verdict}")
    energy = float(account(problem, schedule).server_j.sum())
    bound = float(per_task_bound_j(problem).sum())
    return 100 * (energy / bound - 1), 100 * (energy / cluster_bound_j(problem) - 1), seconds


def show(label: str, rows: list[tuple[float, float, float]]) -> None:
    mean, worst = np.mean(rows, axis=0), np.max(rows, axis=0)
    print(
        f"{label:42s} {mean[0]:8.4f} worst {worst[0]:8.4f} tighter {mean[1]:8.4f} {mean[2]:6.2f} s",
        flush=True,
    )


def online(days: int = 1, seeds: range = SEEDS, sizes: tuple[int, ...] = (1, 2, 4, 8, 16)) -> None:
    spreads = ("online", "offline", "text") if days == 1 else ("online",)
    for spread in spreads:
        for size in sizes:
            cluster = mei.Cluster(per_server=size)
            sets = [
                mei.online(seed, cluster=cluster, days=days, task_utilisation=spread)
                for seed in seeds
            ]
            rows = {spec: [gap(p, spec) for p in sets] for spec in ("late", "prompt")}
            for spec, found in rows.items():
                show(f"{days} day(s) u {mei.TASK_UTILISATION[spread]} l={size} {spec}", found)
            if spread == "online" and days == 1:
                rivals = np.array([[gap(p, spec)[0] for spec in PAPERS] for p in sets]).min(axis=1)
                ahead = sum(row[0] < best for row, best in zip(rows["late"], rivals, strict=True))
                print(
                    f"  best of the papers' {rivals.mean():.3f}; late ahead on {ahead}/{len(sets)}"
                )


def offline() -> None:
    for utilisation in (0.2, 0.8, 1.6):
        cluster = mei.Cluster(turn_on_j=0.0)
        sets = [mei.offline(s, utilisation=utilisation, cluster=cluster) for s in SEEDS]
        show(f"offline U={utilisation} l=16 late", [gap(p, "late") for p in sets])


def week() -> None:
    online(days=7, seeds=range(600, 602), sizes=(16,))


def speed() -> None:
    for pairs, utilisation in ((2048, 1.6), (20_480, 16.0), (102_400, 80.0)):
        problem = mei.online(
            600,
            utilisation=utilisation,
            initial_utilisation=utilisation / 4,
            days=1 if pairs < 100_000 else 6,
            cluster=mei.Cluster(pairs=pairs),
        )
        for spec in ("late", "prompt"):
            begin = time.perf_counter()
            schedule = plan(problem, policy(spec))
            seconds = time.perf_counter() - begin
            print(
                f"{len(problem.tasks)} tasks {pairs} pairs {spec} {seconds:.1f} s",
                len(schedule.segments),
                flush=True,
            )


def main() -> None:
    for name in sys.argv[1:] or ["offline", "online", "week", "speed"]:
        globals()[name]()


if __name__ == "__main__":
    main()
