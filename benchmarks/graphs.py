"""Task graphs: list schedules, local clocks, and our search against LPT with optimal clocks.

Run ``python -m benchmarks.graphs [search] [local] [lists] [apps] [optima]`` (all by default). The
graphs of the standard set are read from the folder in ``DOWNCLOCK_DATA`` (or ../shared/data). Times
are processor seconds of one core, after one warm-up call. ``optima`` needs ``pip install ortools``.
"""

from __future__ import annotations

import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from downclock.planners.chip.bounds import global_bound, lemma3_bound, local_bound, weighted_bound
from downclock.planners.chip.clocks import ChipPower, global_clocks, weighted_makespan
from downclock.planners.chip.lists import list_schedule
from downclock.planners.chip.local import local_clocks
from downclock.planners.chip.local_search import search_local
from downclock.planners.chip.model import WorkGraph
from downclock.planners.chip.search import SearchEffort, search
from downclock.problem.graph import Edges
from downclock.workloads.stg import read_stg

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("DOWNCLOCK_DATA", ROOT.parent / "shared" / "data")) / "stg"
TARGET = {2: 0.966, 4: 0.896, 8: 0.901, 12: 0.929}


def layered(n: int, width: int, most_preds: int, seed: int) -> WorkGraph:
    """A graph in layers; every task has 1 to ``most_preds`` predecessors in the 3 layers before."""
    rng = np.random.default_rng(seed)
    after = np.repeat(np.arange(width, n), rng.integers(1, most_preds + 1, n - width))
    layer = after // width
    low = np.maximum(layer - 3, 0) * width
    before = low + (rng.random(after.size) * (layer * width - low)).astype(np.int64)
    pairs = np.unique(np.column_stack([before, after]), axis=0)
    work = rng.integers(1, 20, n).astype(np.float64)
    return WorkGraph.of(work, Edges(pairs[:, 0], pairs[:, 1]))


def erdos(n: int, degree: float, seed: int) -> WorkGraph:
    """A random graph: every earlier task precedes a later one with equal probability."""
    rng = np.random.default_rng(seed)
    before, after = np.triu_indices(n, 1)
    kept = rng.random(before.size) < degree / n
    work = np.ceil(rng.exponential(10.0, n))
    return WorkGraph.of(work, Edges(before[kept], after[kept]))


def stg(path: Path) -> WorkGraph:
    graph = read_stg(path)
    return WorkGraph.of(graph.work, graph.edges)


def timed(work):  # type: ignore[no-untyped-def]
    began = time.process_time()
    answer = work()
    return answer, time.process_time() - began


def lists() -> None:
    print("list schedules of a layered graph with 100,000 tasks, 16 cores")
    graph, seconds = timed(lambda: layered(100_000, 300, 6, 0))
    print(f"  build {seconds:.2f} s, {graph.succ.size} edges")
    for rule in ("lpt", "hlf", "heft"):
        list_schedule(layered(100, 10, 3, 0), 16, rule)
        _, seconds = timed(lambda rule=rule: list_schedule(graph, 16, rule))
        print(f"  {rule:<5} {seconds:.2f} s (limit 5)")


def local() -> None:
    print("optimal clocks per core of an HLF placement, deadline = total work")
    cases = [(f"layered {n}", layered(n, width, 5, 0), m) for n, width, m in SIZES]
    if DATA.is_dir():
        cases = [("fpppp", stg(DATA / "apps" / "fpppp.stg"), m) for m in (2, 8, 12)] + cases
    for name, graph, cores in cases:
        placed = list_schedule(graph, cores, "hlf")
        deadline = graph.total_work
        local_clocks(graph, placed, deadline, ChipPower()) if len(graph) < 500 else None
        found, seconds = timed(
            lambda: local_clocks(graph, placed, deadline, ChipPower())  # noqa: B023
        )
        print(f"  {name:<14} M={cores:<3} {seconds:7.3f} s, residual {found.residual:.1e}")


SIZES = ((1000, 20, 16), (10_000, 20, 16), (10_000, 60, 64))


def compare(graphs: list[WorkGraph], cores: int, how: SearchEffort) -> str:
    """Mean energy ratio to LPT with optimal clocks, proven gap, and processor time."""
    rows = []
    for graph in graphs:
        lpt = weighted_makespan(list_schedule(graph, cores, "lpt").parallelism(graph))
        hlf = weighted_makespan(list_schedule(graph, cores, "hlf").parallelism(graph))
        placed, seconds = timed(lambda: search(graph, cores, how=how))  # noqa: B023
        ours = weighted_makespan(placed.parallelism(graph))
        bound = weighted_bound(graph, cores)
        rows.append(((ours / lpt) ** 3, (hlf / lpt) ** 3, 1.0 - (bound / ours) ** 3, seconds))
    ratio, hlf_ratio, gap, seconds = np.array(rows).T
    return (
        f"M={cores:<3} ours {ratio.mean():.4f} (best {ratio.min():.3f}),"
        f" HLF {hlf_ratio.mean():.4f},"
        f" gap {100 * gap.mean():.2f} % (worst {100 * gap.max():.1f}), proven {(gap < 1e-6).sum()},"
        f" {seconds.mean():.2f} s (most {seconds.max():.2f})"
    )


def searches() -> None:
    how = SearchEffort()
    search(layered(50, 5, 3, 0), 4, how=SearchEffort(effort=0.01))
    print("search, mean energy / energy of LPT with optimal chip-wide clocks")
    if DATA.is_dir():
        graphs = [stg(path) for path in sorted((DATA / "rand50").glob("*.stg"))]
        for cores, target in TARGET.items():
            print(f"  standard set ({len(graphs)}) {compare(graphs, cores, how)} target {target}")
            sys.stdout.flush()
    others = {
        "layered 100": [layered(100, 8, 4, seed) for seed in range(10)],
        "random 30": [erdos(30, 3.0, seed) for seed in range(10)],
        "random 200": [erdos(200, 4.0, seed) for seed in range(5)],
    }
    for name, graphs in others.items():
        for cores in (4, 8):
            print(f"  {name:<18} {compare(graphs, cores, how)}")
            sys.stdout.flush()


def applications() -> None:
    if not DATA.is_dir():
        print("applications: data absent")
        return
    power = ChipPower()
    print("applications, deadline = total work, J: ours (bound), processor seconds")
    for name in ("robot", "sparse", "fpppp"):
        graph = stg(DATA / "apps" / f"{name}.stg")
        for cores in (4, 8, 12):
            deadline = graph.total_work
            placed, a = timed(lambda: search(graph, cores))  # noqa: B023
            chip = global_clocks(placed.parallelism(graph), deadline, power).energy
            (_, own), b = timed(lambda: search_local(graph, cores, deadline, power))  # noqa: B023
            least = global_bound(graph, cores, deadline, power, time_limit_s=60.0)
            least_local = local_bound(graph, cores, deadline, power)
            print(
                f"  {name:<7} M={cores:<3} global {chip:8.3f} ({least:8.3f}) {a:5.2f} s,"
                f" local {own.energy:8.3f} ({least_local:8.3f}) {b:5.2f} s"
            )
            sys.stdout.flush()


def optima() -> None:
    """The best mean ratio there is on two cores, where only the makespan counts (Lemma 6)."""
    if find_spec("ortools") is None:
        print("optima: skipped, needs OR-Tools (pip install ortools)")
        return
    if not DATA.is_dir():
        print("optima: data absent")
        return
    ratios, unproven = [], 0
    for path in sorted((DATA / "rand50").glob("*.stg")):
        graph = stg(path)
        lpt = weighted_makespan(list_schedule(graph, 2, "lpt").parallelism(graph))
        omega = search(graph, 2).parallelism(graph)
        least, length = weighted_bound(graph, 2), int(omega[1:].sum())
        if weighted_makespan(omega) > least * (1.0 + 1e-9):
            length, proven = shortest(graph, 2, length)
            least = lemma3_bound(graph.total_work, length, 2, unit=1.0)
            unproven += not proven
        ratios.append((least / lpt) ** 3)
    print(f"optima, M=2: mean ratio {np.mean(ratios):.5f}, {unproven} makespans not proven")


def shortest(graph: WorkGraph, cores: int, known: int) -> tuple[int, bool]:
    """Return a lower bound on the makespan by CP-SAT, and whether it is the makespan."""
    from ortools.sat.python import cp_model

    model, work = cp_model.CpModel(), graph.work.astype(int)
    start = [model.new_int_var(0, known, "") for _ in work]
    runs = [
        model.new_fixed_size_interval_var(s, int(w), "") for s, w in zip(start, work, strict=True)
    ]
    model.add_cumulative(runs, [1] * len(runs), cores)
    for i, j in zip(graph.before, graph.succ, strict=True):
        model.add(start[j] >= start[i] + int(work[i]))
    end = model.new_int_var(0, known, "")
    for s, w in zip(start, work, strict=True):
        model.add(end >= s + int(w))
    model.minimize(end)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = 60.0
    status = solver.solve(model)
    return round(solver.best_objective_bound), status == cp_model.OPTIMAL


PARTS = {"lists": lists, "local": local, "search": searches, "apps": applications, "optima": optima}


def main() -> None:
    for name in sys.argv[1:] or list(PARTS):
        PARTS[name]()


if __name__ == "__main__":
    main()
