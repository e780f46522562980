"""Real workflows with measured GPUs and real prices on one small cluster: everything at once.

Six workflow instances (WfCommons) whose tasks are drawn from 25 measured A100 applications, on
4 × 4 GPUs with host, idle and wake energy, arriving over eight hours with deadlines of their own,
under day-ahead prices. What one could do by hand stands beside: a window for each task, slack
shared along paths in proportion to natural length, and a policy for single jobs (`by_hand`). With
``--online`` policies that hear of a workflow when it comes are compared instead.

Data are read from the folder that DOWNCLOCK_DATA names (else ../shared/data).
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import downclock as dc
from benchmarks.price_clusters import from_day, week
from downclock.papers.mei2021.single_task import measured_a100
from downclock.planners.catalog import with_objective
from downclock.power.fit import Fit
from downclock.problem.graph import Edges
from downclock.problem.objective import parse_objective
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.price import Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.study.baselines import chosen_policy
from downclock.study.planned import Judge
from downclock.units import Floats
from downclock.workloads.wfformat import read_wfformat

HOUR_S = 3600.0

WORKFLOWS = (
    "1000genome-chameleon-2ch-100k-001",
    "bacass-dirt02-001",
    "epigenomics-chameleon-hep-1seq-100k-001",
    "helloworld-forkjoin-10-chameleon",
    "sarek-dirt02-001",
    "srasearch-chameleon-10a-001",
)

ONLINE = ("race", "edl", "late", "prompt", "thrifty")
BY_HAND = ("race", "late", "prompt", "thrifty", "edl", "static-cap")


def folder() -> Path:
    """Where the data are."""
    found = Path(os.environ.get("DOWNCLOCK_DATA", "../shared/data"))
    if not (found / "wfformat").exists():
        raise SystemExit(f"skipped: no {found}; name the folder of the data in DOWNCLOCK_DATA")
    return found


def workflow_day(seed: int, measured: Fit) -> Problem:
    """Six workflows of 4 to 12 GPU-hours each that arrive over eight hours."""
    rng = np.random.default_rng([seed, 404])
    library, clocks = measured.library, measured.clocks
    parts: list[tuple[Floats, ...]] = []
    before, after, count = [], [], 0
    for arrival_s, name in zip(
        rng.uniform(0.0, 8 * HOUR_S, len(WORKFLOWS)), WORKFLOWS, strict=True
    ):
        graph = read_wfformat(folder() / "wfformat" / f"{name}.json")
        application = rng.integers(len(library), size=len(graph))
        unit_s, _ = library.at(application, "a100", np.tile(clocks.default, (len(graph), 1)))
        length_s = graph.work / graph.total_work * rng.uniform(4.0, 12.0) * HOUR_S
        path_s = graph.critical_path / graph.total_work * length_s.sum()
        room_s = rng.uniform(1.5, 3.0) * max(path_s, length_s.sum() / 8)
        ends = np.full(len(graph), arrival_s + room_s)
        parts.append((application, length_s / unit_s, np.full(len(graph), arrival_s), ends))
        before.append(graph.edges.before + count)
        after.append(graph.edges.after + count)
        count += len(graph)
    application, scale, arrival_s, deadline_s = (
        np.concatenate(each) for each in zip(*parts, strict=True)
    )
    tasks = Tasks.of(
        application.astype(int), deadline_s=deadline_s, arrival_s=arrival_s, scale=scale
    )
    kind = Kind("a100", clocks, idle_w=50.0, clock="locked")
    server = ServerSpec("s", (("a100", 4),), 4, host_w=400.0, wake_j=1e5, wake_s=60.0)
    price = from_day(week("de"), int(rng.integers(3)))
    return Problem(
        tasks, library, Platform.build((kind,), (server,)),
        Edges(np.concatenate(before), np.concatenate(after)),
        Prices((("default", ZonePrices(price)),)), name=f"workflows-{seed}",
    )  # fmt: skip


def by_hand(problem: Problem) -> Problem:
    """The same without edges: each task has a window of its own, and windows follow each other."""
    tasks, n = problem.tasks, len(problem.tasks)
    natural_s = np.where(tasks.scale > 0.0, problem.frontier(0).cheapest(100.0).time_s, 0.0)
    head_s, tail_s = np.zeros(n), np.zeros(n)
    order = problem.edges.order(n)
    ends = list(zip(problem.edges.before.tolist(), problem.edges.after.tolist(), strict=True))
    rank = np.argsort(order)
    for a, b in sorted(ends, key=lambda pair: rank[pair[0]]):
        head_s[b] = max(head_s[b], head_s[a] + natural_s[a])
    for a, b in sorted(ends, key=lambda pair: -rank[pair[1]]):
        tail_s[a] = max(tail_s[a], tail_s[b] + natural_s[b])
    path_s = np.maximum(head_s + natural_s + tail_s, 1e-9)
    room_s = tasks.deadline_s - tasks.arrival_s
    windows = replace(
        tasks,
        arrival_s=tasks.arrival_s + room_s * head_s / path_s,
        deadline_s=tasks.arrival_s + room_s * (head_s + natural_s) / path_s,
    )
    return replace(problem, tasks=windows, edges=Edges())


def best_by_hand(problem: Problem) -> tuple[int, float, str]:
    """Tasks lost, money and name of the best workaround."""
    apart, found = by_hand(problem), []
    for name in BY_HAND:
        chosen = dc.policy(with_objective(name, "cost"))
        plan = Judge.of(apart, objective=parse_objective("cost")).planned(chosen)
        found.append((len(problem.tasks) - plan.done, float(plan.bill.money or 0.0), name))
    return min(found)


def online(problem: Problem) -> None:
    """Print what policies make of the day that learn of workflows when they come."""
    judge, parts = Judge.of(problem, objective=parse_objective("cost")), []
    for name in ONLINE:
        start = time.process_time()
        plan = judge.planned(dc.policy(with_objective(name, "cost")))
        seconds = time.process_time() - start
        money, joules = float(plan.bill.money or 0.0), plan.bill.total_j
        parts.append(
            f"{name} {len(problem.tasks) - plan.done} lost {money:.4f} {joules / 1e6:.2f} MJ"
            f" ({seconds:.1f} s)"
        )
    print(f"{problem.name}: " + "; ".join(parts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--days", type=int, default=6)
    parser.add_argument("--seed", type=int, default=9000, help="the first day's")
    parser.add_argument("--effort", type=float, default=5.0)
    parser.add_argument("--online", action="store_true")
    asked = parser.parse_args()
    measured = measured_a100(folder() / "dvfs" / "a100")
    if asked.online:
        for seed in range(asked.seed, asked.seed + asked.days):
            online(workflow_day(seed, measured))
        return
    saved, gaps = [], []
    for seed in range(asked.seed, asked.seed + asked.days):
        problem = workflow_day(seed, measured)
        lost, money, name = best_by_hand(problem)
        start = time.process_time()
        chosen = chosen_policy(problem, objective="cost", effort=asked.effort)
        judge = Judge.of(problem, objective=parse_objective("cost"))
        plan = judge.planned(chosen, prove=True)
        seconds, cost = time.process_time() - start, float(plan.bill.money or 0.0)
        gap = plan.value.gap if plan.value else np.nan
        saved.append(1.0 - cost / money)
        gaps.append(gap)
        print(
            f"day {seed}: {plan.done} of {len(problem.tasks)} done for {cost:.4f} by {plan.policy}"
            f" in {seconds:.1f} s, gap {100 * gap:.1f} %; {100 * saved[-1]:.1f} % below the best by"
            f" hand, {money:.4f} ({name}, {lost} lost)",
            flush=True,
        )
    print(f"mean: {100 * np.mean(saved):.1f} % below by hand, gap {100 * np.mean(gaps):.1f} %")


if __name__ == "__main__":
    main()
