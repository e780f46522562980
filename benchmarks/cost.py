"""Cost of task graphs under prices: quality, certificates, proofs and scale.

    python -m benchmarks.cost --part small --graphs 2 --proof 20
    python -m benchmarks.cost --part exact

Parts: ``small`` (quality and certificates up to 32 tasks), ``exact`` (proofs), ``tiny`` (printed
and corrected program, brute force and ours on 200 cases), ``levels`` (uneven clocks and static
power), ``large`` (1,000 tasks on every curve), ``huge`` (10,000), ``barrier`` (fork-join) and
``near-barrier`` (public workflows and 100 graphs of joins with 1 to 25 tasks beside, on 2 to 12
machines).
Seconds are CPU seconds of one thread, so that a busy computer does not change the picture. Real
curves and workflows are read from the folder that DOWNCLOCK_DATA names (else ../shared/data); it is
said where they are left out.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from tests.planners.slots.tiny import brute_force, tiny_graph

from benchmarks.slot_graphs import near_barrier_graph, structured_graph
from downclock.planners.slots.budget import sweep_search
from downclock.planners.slots.model import SlotGraph
from downclock.planners.slots.printed import solve_program
from downclock.planners.slots.question import as_slot_question
from downclock.planners.slots.solve import ROUNDS, SlotResult, solve_slots
from downclock.planners.slots.start import shortest_schedule
from downclock.problem.objective import Objective
from downclock.units import Floats, Ints
from downclock.workloads.gerhards import (
    Machines,
    Meshing,
    alternating_prices,
    flat_prices,
    increasing_prices,
    random_graph,
    repeated_prices,
    slotted_workflow,
)
from downclock.workloads.task_graph import TaskGraph
from downclock.workloads.wfformat import read_wfformat

PARTS = ("small", "exact", "tiny", "levels", "large", "huge", "barrier", "near-barrier")
SLOTS = 40
"""Slots that a workflow needs at least at full speed."""
ANY = 1 << 30
"""So many orders that time ends a search."""
UNITS = np.arange(1, 6)
POWER = (UNITS / 5) ** 2
FILES = {
    "epex-2016": ("epex_de_dayahead_2016-10-19.csv", "price_eur_per_mwh"),
    "de-2024": ("de_lu_dayahead_2024-06-10_to_16.csv", "price_eur_per_mwh"),
    "de-carbon": ("de_carbon_intensity_2024-06-10_to_16.csv", "gco2eq_per_kwh_direct"),
    "gb-carbon": ("gb_carbon_intensity_2024-01-08_to_14.csv", "actual_gco2_per_kwh"),
}


@cache
def public(part: str) -> Path:
    """A folder of the public data; once a word about it where it is not there."""
    found = Path(os.environ.get("DOWNCLOCK_DATA", "../shared/data"), part)
    if not found.exists():
        print(f"left out: no {found}; name the folder of the data in DOWNCLOCK_DATA", flush=True)
    return found


def curves() -> dict[str, Callable[[int], Floats]]:
    found: dict[str, Callable[[int], Floats]] = {
        "flat": flat_prices,
        "increasing": increasing_prices,
        "alternating": alternating_prices,
    }
    for name, (file, column) in FILES.items() if public("prices").exists() else ():
        with (public("prices") / file).open(encoding="utf-8") as rows:
            values = np.array([float(row[column]) for row in csv.DictReader(rows)])
        found[name] = partial(repeated_prices, np.maximum(values, 0.0))
    return found


def slotted(
    graph: TaskGraph,
    machines: int,
    percent: float,
    curve: Callable[[int], Floats],
    tries: int = 400,
) -> tuple[SlotGraph, Ints]:
    work = (UNITS[-1] * graph.work).astype(np.int64)
    at_full_speed = SlotGraph(work, graph.edges, machines, np.ones(1), UNITS, POWER)
    first, makespan = shortest_schedule(at_full_speed, tries=tries)
    slots = int(makespan * (1.0 + percent / 100.0) + 1e-9)
    return SlotGraph(work, graph.edges, machines, curve(slots), UNITS, POWER), first


def solved(graph: SlotGraph, first: Ints, seconds: float, proof: float = 0.0) -> SlotResult:
    return solve_slots(
        graph,
        seconds=seconds,
        rounds=ANY,
        proof_s=proof,
        start=first,
        clock=time.process_time,
    )


def small(graphs: int, proof: float, seed: int) -> None:
    """Up to 32 tasks: above the best known after 1 s, certificate after 2 s, proofs."""
    rows = []
    for k, (name, curve) in enumerate(curves().items()):
        for g in range(graphs):
            for size in (8, 16, 24, 32):
                for machines in (2, 4, 8, 16):
                    if machines > size // 2:
                        continue
                    drawn, percent = _drawn(seed + 1000 * k + 10 * g + size, size, machines)
                    rows.append((name, size, *measured(drawn, machines, percent, curve, proof)))
        report(name, [row for row in rows if row[0] == name])
    for size in (8, 16, 24, 32):
        report(f"n={size}", [row for row in rows if row[1] == size])
    report("all", rows)


def measured(
    drawn: TaskGraph, machines: int, percent: float, curve: Callable[[int], Floats], proof: float
) -> tuple[float, ...]:
    graph, first = slotted(drawn, machines, percent, curve)
    one, two = solved(graph, first, 1.0), solved(graph, first, 2.0)
    best = solved(graph, first, 2.0, proof) if proof and two.status != "optimal" else two
    reference = min(one.cost, two.cost, best.cost)
    return (
        one.cost / reference - 1.0,
        two.gap,
        one.first_s,
        float(best.status == "optimal"),
        sweep_search(graph, first).cost / reference - 1.0,
        two.seconds,
    )


def report(name: str, rows: list[tuple]) -> None:  # type: ignore[type-arg]
    value = np.array([row[2:] for row in rows], dtype=float)
    above, gap, first_s, proven, heuristic, _ = value.T
    print(
        f"{name:12s} {len(rows):4d} cases: after 1 s {100 * above.mean():.3f} % above best"
        f" (worst {100 * above.max():.3f}); certificate after 2 s {100 * gap.mean():.3f} %"
        f" (worst {100 * gap.max():.2f}); first plan {first_s.max():.3f} s;"
        f" proven {100 * proven.mean():.0f} %; budget heuristic +{100 * heuristic.mean():.0f} %",
        flush=True,
    )


def exact(graphs: int, seconds: float, seed: int, stretch: float) -> None:
    """Share of random graphs proven optimal in time: 8 and 16 tasks in 5 s, 32 in ``seconds``.

    The search is limited by CPU time, HiGHS by the wall clock; on a busy computer ``stretch``
    gives it so many seconds for each of its own. Only CPU time decides what was in time.
    """
    for size, limit in ((8, 5.0), (16, 5.0), (32, seconds)):
        rows = []
        for k, (name, curve) in enumerate(curves().items()):
            for g in range(graphs):
                for machines in (2, 4, 8, 16):
                    if machines <= size // 2:
                        drawn, percent = _drawn(seed + 1000 * k + 10 * g + size, size, machines)
                        rows.append(
                            (name, *_proven(drawn, machines, percent, curve, limit, stretch))
                        )
        slots = [row[5] for row in rows]
        timed = [row for row in rows if row[1] and row[2] <= limit]
        worst = max(row[4] for row in rows)
        print(
            f"{size} tasks, {min(slots)} to {max(slots)} slots, {len(rows)} cases: proven in"
            f" {limit:g} s: {100 * len(timed) / len(rows):.0f} % (CPU);"
            f" median {np.median([row[2] for row in rows]):.1f} s CPU,"
            f" most {max(row[2] for row in rows):.1f} s CPU,"
            f" {max(row[3] for row in rows):.1f} s wall; widest gap {100 * worst:.3f} %",
            flush=True,
        )
        for row in rows:
            if not row[1] or row[2] > limit:
                print("   open:", *row, flush=True)


def _proven(
    drawn: TaskGraph,
    machines: int,
    percent: float,
    curve: Callable[[int], Floats],
    limit: float,
    stretch: float,
) -> tuple[bool, float, float, float, int]:
    """Return (proven, CPU seconds, wall seconds, gap, slots)."""
    graph, first = slotted(drawn, machines, percent, curve)
    cpu, wall = time.process_time(), time.perf_counter()
    search = min(1.5, 0.1 * limit)
    found = solved(graph, first, search, stretch * (limit - search))
    return (
        found.status == "optimal",
        time.process_time() - cpu,
        time.perf_counter() - wall,
        found.gap,
        graph.slots,
    )


def _drawn(draw: int, size: int, machines: int) -> tuple[TaskGraph, float]:
    """Return the graph of a draw and its extension: meshing, reach and extension take turns."""
    meshing = ("low", "middle", "high")[draw % 3]
    reach = ("short", "random", "long")[draw // 3 % 3]
    drawn = random_graph(size, meshing=meshing, reach=reach, seed=draw)  # type: ignore[arg-type]
    return drawn, (5, 20, 50)[(draw + machines) % 3]


def tiny(cases: int, seed: int) -> None:
    """Ours, brute force and the corrected program on tiny graphs; how the printed one fails."""
    agree = infeasible = broken = torn = cheaper = 0
    for draw in range(seed, seed + cases):
        graph = tiny_graph(draw)
        best = brute_force(graph)
        ours = solve_slots(graph, rounds=60, proof_s=10.0)
        corrected, printed = solve_program(graph, "corrected"), solve_program(graph, "printed")
        if np.isinf(best):
            same = ours.status == corrected.status == "infeasible"
        else:
            same = ours.status == "optimal" and max(
                abs(ours.cost - best), abs(corrected.cost - best)
            ) <= 1e-6 * max(best, 1.0)
            infeasible += printed.status == "infeasible"
        agree += same
        if not same:
            print("   differs:", draw, best, ours.cost, ours.status, corrected.cost)
        broken += printed.broken_edges(graph) > 0
        torn += printed.gaps() > 0
        cheaper += printed.cost < best - 1e-9
    print(
        f"{cases} tiny graphs from seed {seed}: brute force = ours (proven) = corrected program on"
        f" {agree}; the printed program has no solution where there is one on {infeasible}, breaks"
        f" an edge on {broken}, tears a task apart on {torn}, is below the optimum on {cheaper}",
        flush=True,
    )


def levels(cases: int, proof: float, seed: int) -> None:
    """Uneven clocks, static power, no pauses: certificate after 2 s, and above the best known."""
    sets = {
        "4 uneven, f^2": (np.array([2, 5, 7, 10]), 2, 0.0, True),
        "3 uneven, f^3": (np.array([4, 7, 10]), 3, 0.0, True),
        "static 0.1": (UNITS, 3, 0.1, True),
        "static 0.4": (UNITS, 3, 0.4, True),
        "no pause": (UNITS, 2, 0.0, False),
    }
    curve = curves().get("epex-2016", alternating_prices)
    for name, (units, exponent, static, pause) in sets.items():
        rows = []
        for draw in range(seed, seed + cases):
            for size, machines in ((16, 2), (16, 4), (32, 4), (32, 8)):
                drawn, percent = _drawn(draw, size, machines)
                graph, first = slotted(drawn, machines, percent, curve)
                other = replace(
                    graph,
                    work=graph.work * units[-1] // UNITS[-1],
                    units=units,
                    power=static + (1.0 - static) * (units / units[-1]) ** exponent,
                    pause=pause,
                )
                two = solved(other, first, 2.0)
                best = two if two.status == "optimal" else solved(other, first, 2.0, proof)
                above = two.cost / min(two.cost, best.cost) - 1.0
                rows.append((two.gap, above, best.status == "optimal"))
        gap, above, proven = np.array(rows, dtype=float).T
        print(
            f"{name:14s} {len(rows)} cases: certificate after 2 s {100 * gap.mean():.2f} %"
            f" (worst {100 * gap.max():.2f}); above best {100 * above.mean():.3f} %"
            f" (worst {100 * above.max():.2f}); proven in {proof:g} s {100 * proven.mean():.0f} %",
            flush=True,
        )


def large(
    tasks: int,
    machines: int,
    seconds: float,
    family: str,
    seed: int,
    curve: str = "epex-2016",
    meshing: Meshing = "low",
) -> None:
    """Print certified gaps over time of one big graph."""
    drawn = (
        random_graph(tasks, meshing=meshing, seed=seed)
        if family == "random"
        else structured_graph(family, tasks, width=8 if tasks < 500 else 50, seed=seed)  # type: ignore[arg-type]
    )
    known = curves()
    curve = curve if curve in known else "alternating"
    graph, first = slotted(drawn, machines, 20.0, known[curve], tries=3)
    steps = [s for s in (0.5, 1.0, 2.0, 5.0, 20.0) if s < seconds]
    tried = [solved(graph, first, s) for s in (*steps, seconds)]
    line = ", ".join(f"{100 * each.gap:.2f} % in {each.seconds:.1f} s" for each in tried)
    found = tried[-1]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{curve}, {family} {meshing if family == 'random' else ''} {tasks} tasks x"
        f" {graph.slots} slots, {machines} machines: {line};"
        f" first plan {found.first_s:.2f} s; {found.seconds:.1f} s, {memory:.0f} MB",
        flush=True,
    )


def near_barriers(seed: int, rounds: int, draws: int) -> None:
    """Certified gaps on workflows and on joins with tasks beside, after so many orders."""
    rows, known = [], curves()
    for path in sorted(public("wfformat").glob("*.json")):
        graph = read_wfformat(path)
        for machines in range(2, 13):
            curve = ("epex-2016", "de-2024")[machines % 2]
            rows.append(certified(path.stem, graph, machines, 20.0, curve, rounds))
        summed(path.stem, rows[-11:])
    if rows:
        summed("workflows", rows)
    drawn = []
    for draw in range(seed, seed + draws):
        random = np.random.default_rng(draw)
        stages, width, beside = (int(random.integers(*span)) for span in ((2, 8), (4, 40), (1, 26)))
        graph = near_barrier_graph(stages=stages, width=width, beside=beside, seed=draw)
        name, percent = list(known)[draw % len(known)], (5.0, 20.0, 50.0)[draw % 3]
        drawn.append(certified(f"draw {draw}", graph, 2 + draw % 11, percent, name, rounds))
    summed("near-barriers", drawn)


def certified(
    name: str, graph: TaskGraph, machines: int, percent: float, curve: str, rounds: int
) -> tuple[float, float, int]:
    """Return the gap, CPU seconds and the tasks of a graph that needs `SLOTS` slots at least."""
    slot_s = max(graph.critical_path, graph.total_work / machines) / SLOTS
    problem = slotted_workflow(graph, Machines(machines), slot_s)
    plain = as_slot_question(problem, Objective(energy=1.0)).graph
    first, makespan = shortest_schedule(plain, tries=50)
    none = np.empty(0, dtype=np.int64)
    price = curves()[curve](int(makespan * (1.0 + percent / 100.0) + 1e-9))
    begun = time.process_time()
    priced = replace(plain, price=price, release=none, due=none)
    found = solve_slots(priced, start=first, rounds=rounds)
    seconds = time.process_time() - begun
    print(
        f"  {name}, {curve}, {percent:g} %, M={machines}: {len(plain)} tasks x {priced.slots}"
        f" slots, gap {100 * found.gap:.2f} %, {seconds:.1f} s",
        flush=True,
    )
    return found.gap, seconds, len(plain)


def summed(name: str, rows: list[tuple[float, float, int]]) -> None:
    gap, seconds, tasks = np.array(rows).T
    print(
        f"{name:40s} {len(rows):3d} cases, {tasks.min():.0f} to {tasks.max():.0f} tasks: certified"
        f" gap {100 * gap.mean():.2f} % (worst {100 * gap.max():.2f} %, above 5 %:"
        f" {100 * np.mean(gap > 0.05):.0f} % of cases); {np.median(seconds):.1f} s"
        f" (most {seconds.max():.1f} s)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="orders, for near-barrier")
    parser.add_argument("--draws", type=int, default=100, help="graphs, for near-barrier")
    parser.add_argument("--graphs", type=int, default=1, help="graphs per curve, size, machines")
    parser.add_argument("--proof", type=float, default=20.0, help="seconds for each proof")
    parser.add_argument("--seed", type=int, default=7000)
    parser.add_argument("--stretch", type=float, default=1.0, help="wall seconds per CPU second")
    parser.add_argument("--part", choices=PARTS, default="small")
    given = parser.parse_args()
    for tasks in (8, 120):  # compile
        solved(*slotted(random_graph(tasks), 2, 20.0, flat_prices), 0.5, 0.1)
    if given.part == "small":
        small(given.graphs, given.proof, given.seed)
    elif given.part == "exact":
        exact(given.graphs, given.proof, given.seed, given.stretch)
    elif given.part == "tiny":
        tiny(200, given.seed)
    elif given.part == "levels":
        levels(4 * given.graphs, given.proof, given.seed)
    elif given.part == "large":
        for seed in range(given.seed, given.seed + given.graphs):
            for name in curves():
                large(1000, 6, 5.0, "random", seed, name, "low")
                large(1000, 6, 5.0, "random", seed, name, "high")
                large(1000, 16, 5.0, "random", seed, name, "middle")
                large(1000, 16, 5.0, "layered", seed, name)
    elif given.part == "near-barrier":
        near_barriers(given.seed, given.rounds, given.draws)
    elif given.part == "huge":
        large(10_000, 64, 20.0, "random", given.seed)
    else:
        for machines in (3, 4):
            large(40, machines, 2.0, "fork-join", given.seed)
            large(91, machines, 2.0, "fork-join", given.seed)


if __name__ == "__main__":
    main()
