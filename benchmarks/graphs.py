"""Task graphs: list schedules, local clocks, and our search against LPT with optimal clocks.

Run ``python -m benchmarks.graphs [search] [local] [lists] [apps] [barriers] [large] [makespan]
[optima] [--seed 0]`` (all by default; the seed is the first of the graphs that ``barriers`` and
``makespan`` draw). Graphs of the standard set and workflows are read from the folder in
``DOWNCLOCK_DATA`` (or ../shared/data). Times are processor seconds of one core, after one warm-up
call. ``makespan`` and ``optima`` need ``pip install ortools``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from downclock.planners.chip.bounds import global_bound, lemma3_bound, local_bound, weighted_bound
from downclock.planners.chip.clocks import (
    ChipPower,
    global_clocks,
    makespan,
    single_clock,
    weighted_makespan,
)
from downclock.planners.chip.lists import list_schedule
from downclock.planners.chip.local import local_clocks
from downclock.planners.chip.local_search import search_local
from downclock.planners.chip.model import Placement, WorkGraph
from downclock.planners.chip.search import SearchEffort, search
from downclock.problem.graph import Edges
from downclock.workloads.stg import read_stg
from downclock.workloads.wfformat import read_wfformat

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("DOWNCLOCK_DATA", ROOT.parent / "shared" / "data"))
DATA = SHARED / "stg"
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


def near_barriers(seed: int) -> WorkGraph:
    """Two to five stages of 2 to 40 tasks or chains of two, each closed by a join.

    Beside every join run 1 to 25 tasks, which only the next join waits for. Work is whole where the
    seed is even.
    """
    rng = np.random.default_rng(seed)
    spread = rng.uniform(0.2, 1.0)
    work: list[float] = []
    edges: list[tuple[int, int]] = []

    def tasks(count: int, after: list[int]) -> list[int]:
        drawn = rng.lognormal(2.0, spread, count) if seed % 2 else rng.integers(1, 20, count)
        first = len(work)
        work.extend(drawn.astype(float))
        edges.extend((i, j) for j in range(first, len(work)) for i in after)
        return list(range(first, len(work)))

    join, beside = tasks(1, []), list[int]()
    for _ in range(rng.integers(2, 6)):
        side, middle = tasks(int(rng.integers(1, 26)), join), tasks(int(rng.integers(2, 41)), join)
        if rng.random() < 0.5:
            middle = [j for i in middle for j in tasks(1, [i])]
        join, beside = tasks(1, middle + beside), side
    tasks(1, join + beside)
    before, after = np.array(edges).T
    return WorkGraph.of(np.array(work), Edges(before, after))


def workflows() -> dict[str, WorkGraph]:
    """The ten public workflows by name, or none where the data are absent."""
    paths = sorted((SHARED / "wfformat").glob("*.json"))
    graphs = {path.stem: read_wfformat(path) for path in paths}
    return {name: WorkGraph.of(graph.work, graph.edges) for name, graph in graphs.items()}


def stg(path: Path) -> WorkGraph:
    graph = read_stg(path)
    return WorkGraph.of(graph.work, graph.edges)


def timed(work, *given, **named):  # type: ignore[no-untyped-def]
    began = time.process_time()
    answer = work(*given, **named)
    return answer, time.process_time() - began


def lists() -> None:
    print("list schedules of a layered graph with 100,000 tasks, 16 cores")
    graph, seconds = timed(layered, 100_000, 300, 6, 0)
    print(f"  build {seconds:.2f} s, {graph.succ.size} edges")
    for rule in ("lpt", "hlf", "heft"):
        list_schedule(layered(100, 10, 3, 0), 16, rule)
        _, seconds = timed(list_schedule, graph, 16, rule)
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
        found, seconds = timed(local_clocks, graph, placed, deadline, ChipPower())
        print(f"  {name:<14} M={cores:<3} {seconds:7.3f} s, residual {found.residual:.1e}")


SIZES = ((1000, 20, 16), (10_000, 20, 16), (10_000, 60, 64))


def compare(graphs: list[WorkGraph], cores: int, how: SearchEffort) -> str:
    """Mean energy ratio to LPT with optimal clocks, proven gap, and processor time."""
    rows = []
    for graph in graphs:
        lpt = weighted_makespan(list_schedule(graph, cores, "lpt").parallelism(graph))
        hlf = weighted_makespan(list_schedule(graph, cores, "hlf").parallelism(graph))
        placed, seconds = timed(search, graph, cores, how=how)
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
            placed, a = timed(search, graph, cores)
            chip = global_clocks(placed.parallelism(graph), deadline, power).energy
            (_, own), b = timed(search_local, graph, cores, deadline, power)
            least = global_bound(graph, cores, deadline, power)
            least_local = local_bound(graph, cores, deadline, power)
            print(
                f"  {name:<7} M={cores:<3} global {chip:8.3f} ({least:8.3f}) {a:5.2f} s,"
                f" local {own.energy:8.3f} ({least_local:8.3f}) {b:5.2f} s"
            )
            sys.stdout.flush()


def barriers(seed: int = 0) -> None:
    print(
        "workflows and graphs of near-barriers: certified gap in energy, chip-wide, 2 to 12 cores"
    )
    search(layered(50, 5, 3, 0), 4, how=SearchEffort(effort=0.01))
    drawn = {f"draw {k}": near_barriers(k) for k in range(seed, seed + 100)}
    for name, graphs in {"workflows": workflows(), "near-barriers": drawn}.items():
        rows = []
        for k, (title, graph) in enumerate(graphs.items()):
            for cores in range(2, 13) if name == "workflows" else (2 + k % 11,):
                placed, seconds = timed(search, graph, cores)
                least, more = timed(weighted_bound, graph, cores)
                reached = weighted_makespan(placed.parallelism(graph))
                rows.append(((reached / least) ** 3 - 1.0, seconds, more))
                gap = f"gap {100 * rows[-1][0]:.2f} %, {seconds:.2f} + {more:.2f} s"
                print(f"  {title}, M={cores}: {len(graph)} tasks, {gap}", flush=True)
        if rows:
            gaps, seconds, more = np.array(rows).T
            print(
                f"  {name:<14} {len(rows)} cases: gap {100 * gaps.mean():.2f} %"
                f" (worst {100 * gaps.max():.1f}, {(gaps > 0.1).sum()} above 10),"
                f" search {seconds.mean():.2f} s (most {seconds.max():.2f}), bound most"
                f" {more.max():.2f} s",
                flush=True,
            )


def large() -> None:
    print("a clock per core, layered graphs on 16 cores: first plan, whole search, bound")
    search_local(layered(50, 5, 3, 0), 4, 1000.0, ChipPower(), SearchEffort(effort=0.01))
    local_clocks(layered(50, 5, 3, 0), None, 1000.0, ChipPower(), cores=4, quick=True)
    for n in (1000, 10_000, 100_000):
        graph = layered(n, 20, 5, 0)
        deadline = graph.total_work
        placed, first = timed(list_schedule, graph, 16, "hlf")
        _, more = timed(local_clocks, graph, placed, deadline, ChipPower(), quick=True)
        first += more
        (_, found), seconds = timed(search_local, graph, 16, deadline, ChipPower())
        least, more = timed(local_bound, graph, 16, deadline, ChipPower())
        gap = 100.0 * (found.energy / least - 1.0)
        print(
            f"  {n:>7} tasks: first {first:.2f} s, all {seconds:.2f} s, bound {more:.2f} s,"
            f" gap {gap:.2f} %"
        )
        sys.stdout.flush()


def against_makespan(seed: int = 0) -> None:
    """Least makespan by CP-SAT in the seconds that our search took, with one and optimal clocks."""
    if find_spec("ortools") is None:
        print("makespan: skipped, needs OR-Tools (pip install ortools)")
        return
    graphs = [near_barriers(seed + k) for k in range(0, 60, 2)]
    graphs += [layered(60, 6, 3, seed + k) for k in range(30)]
    ratios = []
    for k, graph in enumerate(graphs):
        cores, deadline, power = 2 + k % 11, graph.total_work, ChipPower()
        began = time.perf_counter()
        placed = search(graph, cores)
        seconds = time.perf_counter() - began  # a busy computer slows both alike
        ours = global_clocks(placed.parallelism(graph), deadline, power).energy
        known = int(makespan(list_schedule(graph, cores, "hlf").parallelism(graph)))
        _, start = shortest(graph, cores, known, max(seconds, 0.5))
        omega = Placement(start, np.zeros(len(graph), np.int64), cores).parallelism(graph)
        one = single_clock(omega, deadline, power, static_aware=True).energy
        ratios.append((one / ours, global_clocks(omega, deadline, power).energy / ours))
    one, best = np.array(ratios).T
    print(
        f"CP-SAT makespan, energy relative to ours on {len(graphs)} graphs: one clock"
        f" {one.mean():.4f} (least {one.min():.6f}), optimal clocks {best.mean():.4f}"
        f" (least {best.min():.6f}), below ours {(best < 1.0 - 1e-9).sum()}"
    )


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
            (length, proven), _ = shortest(graph, 2, length, 60.0)
            least = lemma3_bound(graph.total_work, length, 2, unit=1.0)
            unproven += not proven
        ratios.append((least / lpt) ** 3)
    print(f"optima, M=2: mean ratio {np.mean(ratios):.5f}, {unproven} makespans not proven")


def shortest(
    graph: WorkGraph, cores: int, known: int, seconds: float
) -> tuple[tuple[int, bool], np.ndarray]:
    """Return a lower bound on the makespan by CP-SAT, whether it is the makespan, and starts."""
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
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    starts = [solver.value(s) for s in start] if found else list_schedule(graph, cores).start
    length = round(solver.best_objective_bound)
    return (length, status == cp_model.OPTIMAL), np.array(starts, dtype=float)


SEEDED: dict[str, Callable[[int], None]] = {"barriers": barriers, "makespan": against_makespan}
PARTS: dict[str, Callable[[], None]] = {
    "lists": lists,
    "local": local,
    "search": searches,
    "apps": applications,
    "barriers": barriers,
    "makespan": against_makespan,
    "large": large,
    "optima": optima,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seed", type=int, default=0, help="of the first graph that is drawn")
    given = parser.parse_args()
    for name in given.parts or PARTS:
        if name in SEEDED:
            SEEDED[name](given.seed)
        else:
            PARTS[name]()


if __name__ == "__main__":
    main()
