"""How far our policies are from the bound, on task sets they were not developed on.

    python -m benchmarks.own_policy offline online week speed exact a100 effort uncertainty

Prints one row per setting: mean gap to the per-task bound in per cent, worst set, seconds. Every
schedule is verified. Turn-on energy is charged per pair; `offline` charges none (mei2021 Eq. 6).
"""

from __future__ import annotations

import csv
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.planners.cluster.optimum import cluster_optimum

from benchmarks.measured import verified
from downclock.engine.play import plan
from downclock.papers.liu.a100 import measured_a100
from downclock.planners.catalog import policy
from downclock.planners.cluster.bound import cluster_bound_j
from downclock.planners.per_task import per_task_bound_j
from downclock.power.fit import Fit
from downclock.power.library import Library
from downclock.power.points import MEI_LAW, ClockTable
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.verify.verify import verify
from downclock.simulate.chances import Chances, draw_fate
from downclock.simulate.simulate import simulate
from downclock.units import Floats
from downclock.workloads import mei

RIVALS = ("race", "static-cap", "edl", "bin")
SEEDS = range(800, 812)
EIGHT_CLOCKS = ClockTable(
    np.tile([600.0, 800.0, 1000.0, 1100.0], 2),
    np.repeat([700.0, 1000.0], 4),
    1000.0,
    1000.0,
    MEI_LAW,
)
"""Four core clocks by two memory clocks, MHz, and the default pair."""
THETAS = (1, 0.95, 0.9, 0.85, 0.8, 0.7, 0.5)
PAPERS = [
    f"edl:theta={theta},rho={rho},start={start}"
    for theta in THETAS
    for rho in (0, 120)
    for start in ("batch", "stream")
]
PAPERS += [
    f"{name}:rho={rho}" for name in ("bin", "edf-bf", "edf-wf", "lpt-ff") for rho in (0, 120)
]
"""The papers' policies with 36 settings; the best is picked set by set, in hindsight."""


def planned(problem: Problem, spec: str) -> tuple[float, float]:
    """Return the energy of a policy's schedule and the seconds to plan it."""
    schedule, seconds = verified(problem, spec, whole=True)
    return float(account(problem, schedule).server_j.sum()), seconds


def gap(problem: Problem, spec: str) -> tuple[float, float, float]:
    """Return (gap %, gap to the tighter bound %, seconds)."""
    energy, seconds = planned(problem, spec)
    task_j = per_task_bound_j(problem)
    tighter_j = cluster_bound_j(problem)
    return 100 * (energy / float(task_j.sum()) - 1), 100 * (energy / tighter_j - 1), seconds


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


def effort() -> None:
    """What search at each replan gains, on the papers' day."""
    for size in (4, 16):
        sets = [mei.online(s, cluster=mei.Cluster(per_server=size)) for s in SEEDS]
        for seconds in (0, 1, 5):
            spec = f"late:effort={seconds}"
            show(f"1 day l={size} {spec}", [gap(p, spec) for p in sets])


def uncertainty() -> None:
    """Reclaim, plans as promised, and misses against reserve: gap to the clairvoyant bound, %."""
    for size in (1, 4, 16):
        sets = [mei.online(s, cluster=mei.Cluster(per_server=size)) for s in SEEDS]
        for spec in ("late", "prompt"):
            rows = [_reclaimed(p, spec, s) for p, s in zip(sets, SEEDS, strict=True)]
            mean = np.mean(rows, axis=0)
            print(f"u(0.5,1) l={size} {spec} reclaim {mean[0]:.2f} promised {mean[1]:.2f}")
        for reserve in (0.0, 0.05, 0.1, 0.15, 0.2, 0.3):
            rows = [_reserved(p, reserve, s) for p, s in zip(sets, SEEDS, strict=True)]
            mean = np.mean(rows, axis=0)
            print(
                f"u(0.8,1.2) l={size} late:reserve={reserve} gap {mean[0]:.2f} % missed"
                f" {mean[1]:.2f} % rejected {mean[2]:.2f} %",
                flush=True,
            )


def _clairvoyant_j(problem: Problem, work: Floats) -> float:
    """No schedule needs less, even if it knew every run time beforehand."""
    real = replace(problem.tasks, scale=problem.tasks.scale * work)
    return float(per_task_bound_j(replace(problem, tasks=real)).sum())


def _reclaimed(problem: Problem, spec: str, seed: int) -> tuple[float, float]:
    """Return the gaps of the run and of its plan, as if every task took its estimate."""
    chances = Chances("uniform:0.5:1")
    fate = draw_fate(problem, chances, seed)
    run = simulate(problem, policy(spec), chances=chances, seed=seed)
    bound = _clairvoyant_j(problem, fate.work)
    for schedule in (run.realised, run.promised):
        if not verify(problem, schedule).ok or run.late.size:
            raise SystemExit(f"{problem.name} {spec}: invalid or late")
    first, second = (
        100 * (float(account(problem, s).server_j.sum()) / bound - 1)
        for s in (run.realised, run.promised)
    )
    return first, second


def _reserved(problem: Problem, reserve: float, seed: int) -> tuple[float, float, float]:
    """Return the gap, and the tasks missed and rejected, per cent."""
    chances = Chances("uniform:0.8:1.2")
    run = simulate(problem, policy(f"late:reserve={reserve}"), chances=chances, seed=seed)
    if not verify(problem, run.realised).ok:
        raise SystemExit(f"{problem.name}: invalid")
    bound = _clairvoyant_j(problem, draw_fate(problem, chances, seed).work)
    energy = float(account(problem, run.realised).server_j.sum())
    share = 100.0 / len(problem.tasks)
    return 100 * (energy / bound - 1), share * run.late.size, share * run.rejected.size


def offline() -> None:
    for utilisation in (0.2, 0.8, 1.6):
        cluster = mei.Cluster(turn_on_j=0.0)
        sets = [mei.offline(s, utilisation=utilisation, cluster=cluster) for s in SEEDS]
        show(f"offline U={utilisation} l=16 late", [gap(p, "late") for p in sets])


def week() -> None:
    online(days=7, seeds=range(800, 802), sizes=(16,))


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


def exact() -> None:
    """Batches small enough to prove their optimum: how far `late` is above it, per cent."""
    gaps: list[float] = []
    seeds = range(1600, 1800)
    for seed in seeds:
        problem = _small_batch(seed)
        best = cluster_optimum(problem, time_limit_s=30.0)
        energy, _ = planned(problem, "late")
        if energy < max(best.bound_j, cluster_bound_j(problem)) * (1 - 1e-9):
            raise SystemExit(f"{problem.name}: {energy} J is below a bound")
        if best.proven:
            gaps.append(100 * (energy / best.energy_j - 1))
    print(
        f"{len(gaps)} of {len(seeds)} optima proven; late above them: mean {np.mean(gaps):.3f},"
        f" median {np.median(gaps):.3f}, worst {np.max(gaps):.2f} %"
    )


def _small_batch(seed: int) -> Problem:
    """Return 2 to 8 tasks at time 0 for two servers of two GPUs with eight clocks."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    names = np.array([f"a{i}" for i in range(n)], dtype=object)
    library = Library.of_one_kind(names, "gpu", mei.printed_profiles(rng, n))
    kind = Kind("gpu", EIGHT_CLOCKS, idle_w=float(rng.uniform(0, 60)), clock="locked")
    server = ServerSpec("s", (("gpu", 2),), count=2, wake_j=float(rng.uniform(0, 5000)))
    scale = rng.uniform(10, 50, n)
    tasks = Tasks.of(np.arange(n), deadline_s=5 * scale * rng.uniform(2.5, 8, n), scale=scale)
    return Problem(tasks, library, Platform.build((kind,), (server,)), name=f"batch-{seed}")


def a100() -> None:
    """Measured A100 tables (61 clocks), lengths as in the Philly trace, servers of eight."""
    folder = Path(os.environ.get("DOWNCLOCK_DATA", "../shared/data"))
    found = measured_a100(folder)
    with (folder / "traces" / "philly" / "philly_jobs_elasticflow_pollux.csv").open() as lines:
        philly_s = np.array([float(row["duration"]) for row in csv.DictReader(lines)])
    philly_s = philly_s[(philly_s >= 30.0) & (philly_s <= 12 * 3600.0)]
    wins, saved = 0, []
    for seed in range(800, 820):
        problem = _a100_day(np.random.default_rng(seed), found, philly_s)
        gaps = {spec: gap(problem, spec)[0] for spec in ("late", *RIVALS)}
        best = min(gaps[spec] for spec in RIVALS)
        wins += gaps["late"] < best
        saved.append(100 - 100 * (100 + gaps["late"]) / (100 + gaps["static-cap"]))
        print(seed, {spec: round(value, 3) for spec, value in gaps.items()}, flush=True)
    print(f"late ahead of all on {wins}/20; saves {np.mean(saved):.2f} % against the static cap")


def _a100_day(rng: np.random.Generator, found: Fit, philly_s: Floats) -> Problem:
    """Return 800 tasks over a day; deadlines by u(0.1, 0.9) of the default run time."""
    n, library = 800, found.library
    application = rng.integers(len(library), size=n)
    unit_s, _ = library.at(application, "a100", np.tile(found.clocks.default, (n, 1)))
    length_s = rng.choice(philly_s, n)
    arrival_s = np.sort(rng.uniform(0.0, 86400.0, n))
    arrival_s[: n // 8] = 0.0
    kind = Kind("a100", found.clocks, idle_w=50.0, clock="locked")
    server = ServerSpec("s", (("a100", 8),), count=100, wake_j=8 * 5400.0)
    tasks = Tasks.of(
        application,
        deadline_s=arrival_s + length_s / rng.uniform(0.1, 0.9, n),
        arrival_s=arrival_s,
        scale=length_s / unit_s,
    )
    return Problem(tasks, library, Platform.build((kind,), (server,)), name="a100-day")


def main() -> None:
    for name in sys.argv[1:] or ["offline", "online", "week", "speed", "exact"]:
        globals()[name]()


if __name__ == "__main__":
    main()
