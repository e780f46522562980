"""Problems and worlds of the golden test; every import that may move is here.

A problem's place in the order chooses its worlds: add new ones at the end only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
from benchmarks.slot_graphs import structured_graph

from downclock import ClockTable, Curve, Platform, Prices, Problem, Schedule, ServerSpec, ZonePrices
from downclock.engine.policy import Policy
from downclock.problem.graph import Edges
from downclock.simulate.chances import Chances
from downclock.simulate.simulate import simulate
from downclock.workloads import liu, mei
from downclock.workloads.chip import chip_problem
from downclock.workloads.gerhards import (
    SLOT_S,
    Machines,
    alternating_prices,
    flat_prices,
    increasing_prices,
    random_graph,
    slotted_problem,
)
from tests.generated import random_problem

WORLDS = ("shorter", "lognormal", "jobs", "servers", "rough")
"""What may differ from the plan; see `chances_of`."""

OWN = {
    "liu": ("liu", "replan"),
    "chip": ("graph",),
    "slots": ("least-cost",),
    "priced": ("thrifty",),
}
"""Families that a policy is made for: it meets every world on them; else one of them."""

PLAIN = {"edges": False, "slot_s": None, "chip_wide": False}
"""Problems that most policies take: independent tasks, no slots, a clock for each processor."""


@cache
def problems() -> dict[str, Problem]:
    """Every problem by its name, which begins with its family."""
    made = [
        *_whole(), *_levels(), *_batches(), *_mei(), *_liu(), *_chips(), *_slots(), *_priced(),
        *_large(), *_workflows(),
    ]  # fmt: skip
    named = {problem.name: problem for problem in made}
    assert len(named) == len(made)
    return named


def worlds_of(spec: str, name: str) -> tuple[str, ...]:
    """Worlds in which a spec meets a problem besides the noiseless plan."""
    family, entry = name.partition("-")[0], spec.partition(":")[0]
    if entry in OWN.get(family, ()):
        return WORLDS
    return (WORLDS[list(problems()).index(name) % len(WORLDS)],)


def realised(problem: Problem, policy: Policy, world: str) -> Schedule:
    """What becomes of a problem in a world."""
    return simulate(problem, policy, chances=chances_of(problem, world), seed=1).realised


def chances_of(problem: Problem, world: str) -> Chances:
    """Chances of a world; lives and repairs are as long as the problem makes sensible."""
    ends = problem.tasks.deadline_s[np.isfinite(problem.tasks.deadline_s)]
    end_s = float(ends.max(initial=300.0))
    life, repair_s = f"exponential:{0.5 * end_s:.2g}", float(f"{0.05 * end_s:.2g}")
    return {
        "shorter": Chances(actual="uniform:0.5:1"),
        "lognormal": Chances(actual="lognormal:1:0.5"),
        "jobs": Chances(fail_jobs=0.2, retries=2),
        "servers": Chances(server_life=life, repair_s=repair_s),
        "rough": Chances(
            "uniform:0.6:1.3",
            fail_jobs=0.1,
            fail_servers=0.3,
            repair_s=repair_s,
            processor_life=life,
        ),
    }[world]


def _whole() -> Iterator[Problem]:
    """The whole model: kinds, wake times, host power, gangs, milestones; any graph and slots."""
    for seed in range(14):
        some = True if seed % 3 == 0 else None
        wake_s = 0.0 if seed % 4 == 1 else None
        drawn = random_problem(
            seed, tasks=12 + 2 * seed, gangs=some, milestones=some, wake_s=wake_s, **PLAIN
        )
        yield replace(drawn, name=f"whole-{seed}")
    for seed in range(20, 24):
        yield replace(random_problem(seed), name=f"anything-{seed}")


def _levels() -> Iterator[Problem]:
    """Enumerated clocks on servers that are on, with deadlines."""
    for seed, flavours in enumerate(
        (("cpu-table",), ("gpu-table",), ("cpu-table", "gpu-table"), ("gpu-table", "cpu"))
    ):
        drawn = random_problem(
            100 + seed, tasks=14, flavours=flavours, initially_on=True, deadlines=True, **PLAIN
        )
        yield replace(drawn, name=f"levels-{seed}")


def _batches() -> Iterator[Problem]:
    """All tasks at time 0, on unequal servers."""
    for seed in range(6):
        drawn = random_problem(200 + seed, tasks=10 + 5 * seed, deadlines=seed % 3 > 0, **PLAIN)
        yield replace(_at_once(drawn), name=f"batch-{seed}")


def _at_once(problem: Problem) -> Problem:
    return replace(problem, tasks=replace(problem.tasks, arrival_s=np.zeros(len(problem.tasks))))


def _mei() -> Iterator[Problem]:
    """The papers' sets on servers of several sizes; some of a few hundred tasks."""
    sizes = (1, 2, 4, 8, 16)
    for seed, used in enumerate((0.01, 0.015, 0.26)):
        cluster = mei.Cluster(pairs=512, per_server=(4, 16, 2)[seed])
        drawn = mei.offline(seed, utilisation=used, task_utilisation="text", cluster=cluster)
        yield replace(drawn, name=f"mei-offline-{seed}")
    for seed, used in enumerate((0.015, 0.02, 0.03, 0.02, 0.1, 0.15, 0.05)):
        cluster = mei.Cluster(pairs=128 if used < 0.03 else 512, per_server=sizes[(seed + 1) % 5])
        reading = ("text", "online", "offline")[seed % 3]
        drawn = mei.online(
            seed,
            utilisation=used,
            initial_utilisation=0.01,
            task_utilisation=reading,
            cluster=cluster,
        )
        yield replace(drawn, name=f"mei-online-{seed}")
    cluster = replace(mei.MEI2017, pairs=64, per_server=4, turn_on_per="server")
    drawn = mei.online(7, utilisation=0.03, initial_utilisation=0.01, cluster=cluster)
    yield replace(drawn, name="mei-2017")


def _liu() -> Iterator[Problem]:
    """One CPU and one GPU: all families and loads; batches and arrivals."""
    boxes = (liu.Box(), liu.Box(system_w=40.0), liu.Box(locked=True), liu.Box(gpu=liu.HD_5770_FAST))
    loads = ("light", "medium", "heavy")
    for seed in range(8):
        family = list(liu.FAMILIES)[seed % 4]
        arrivals_s = 60.0 * (seed % 3)
        drawn = liu.job_set(
            seed,
            load=loads[seed % 3],
            family=family,
            box=boxes[(seed + seed // 4) % 4],
            arrivals_s=arrivals_s,
        )
        yield replace(drawn, name=f"liu-{seed}")


def _chips() -> Iterator[Problem]:
    """Graphs on one chip: one clock for all cores, then a clock for each."""
    levels = ClockTable(np.array([0.5, 1.0, 1.5, 2.0]), np.ones(1), 1.0, 1.0)
    for seed in range(11):
        wide = seed < 5
        graph = random_graph(6 + seed % 6, seed=seed)
        deadline_s = (0.5 + 0.1 * (seed % 4)) * graph.work.sum()
        wanted = {"clocks": levels} if seed in (4, 9) else {}
        static = 0.3 * (seed % 3)
        drawn = chip_problem(
            graph, 1 + seed % 5, deadline_s, c2=0.2, c3=static, chip_wide=wide, **wanted
        )
        yield replace(drawn, name=f"chip-{'wide' if wide else 'local'}-{seed}")
    graph = structured_graph("fork-join", 20, width=4, seed=1)
    yield replace(chip_problem(graph, 4, graph.work.sum(), c3=0.1), name="chip-wide-fork-join")


def _slots() -> Iterator[Problem]:
    """Graphs in slots under prices: equal machines, then two zones; one cannot be met.

    Prices are known for longer than the deadline, as what comes late has to be billed too; those
    of the first problem are not.
    """
    kinds_of_prices = (flat_prices, increasing_prices, alternating_prices)
    for seed in range(9):
        graph = random_graph(4 + seed, seed=seed)
        slots = int(graph.work.sum())
        prices = kinds_of_prices[seed % 3]((4 if seed else 1) * slots)
        machines = Machines(2 + seed % 3, static=0.2 * (seed % 2), pause=seed % 4 > 0)
        drawn = slotted_problem(graph, machines, prices, deadline_slots=slots)
        yield replace(drawn, name=f"slots-{seed}")
    yield replace(_two_zones(), name="slots-zones")
    graph = random_graph(10, seed=30)
    hopeless = slotted_problem(graph, Machines(1), flat_prices(int(graph.work.sum()) - 1))
    yield replace(hopeless, name="slots-hopeless")


def _two_zones() -> Problem:
    graph = random_graph(8, meshing="low", seed=4)
    slots = int(graph.work.sum())
    rising = np.linspace(10.0, 100.0, 4 * slots)
    problem = slotted_problem(graph, Machines(1), rising, deadline_slots=slots)
    servers = tuple(
        ServerSpec(zone, (("pe", count),), zone=zone, initially_on=True)
        for zone, count in (("north", 1), ("south", 2))
    )
    start_s = SLOT_S * np.arange(rising.size)
    zones = tuple(
        (zone, ZonePrices(price=Curve(start_s, price, SLOT_S * rising.size)))
        for zone, price in (("north", rising[::-1]), ("south", rising))
    )
    platform = Platform.build(problem.platform.kinds, servers, SLOT_S)
    return replace(problem, platform=platform, prices=Prices(zones))


def _priced() -> Iterator[Problem]:
    """The whole model with prices; every fourth a batch on servers that are on."""
    for seed in range(10):
        drawn = random_problem(seed, tasks=12 + 3 * seed, prices=True, **PLAIN)
        if seed % 4 == 3:
            on = np.ones(drawn.platform.server_count, dtype=bool)
            drawn = replace(_at_once(drawn), platform=replace(drawn.platform, initially_on=on))
        yield replace(drawn, name=f"priced-{seed}")


def _large() -> Iterator[Problem]:
    """Many tasks of several kinds, more than the servers can do in time; two more chips."""
    flavours = ("gpu-wide", "cpu-table", "measured")
    drawn = random_problem(300, tasks=320, flavours=flavours, deadlines=True, **PLAIN)
    yield replace(drawn, name="large-mixed")
    drawn = random_problem(301, tasks=80, deadlines=True, gangs=False, **PLAIN)
    tasks = drawn.tasks
    hurried = tasks.arrival_s + 0.2 * (tasks.deadline_s - tasks.arrival_s)
    yield replace(drawn, tasks=replace(tasks, deadline_s=hurried), name="overload-mixed")
    cluster = mei.Cluster(pairs=2, per_server=2)
    drawn = mei.online(302, utilisation=0.02, initial_utilisation=0.01, cluster=cluster)
    yield replace(drawn, name="overload-mei")
    drawn = random_problem(303, tasks=150, prices=True, deadlines=True, **PLAIN)
    yield replace(drawn, name="large-priced")
    for seed in (40, 41):
        graph = random_graph(5, seed=seed)
        drawn = chip_problem(graph, 2, 0.7 * graph.work.sum(), c3=0.1, chip_wide=False)
        yield replace(drawn, name=f"chip-local-{seed}")


def _workflows() -> Iterator[Problem]:
    """Graphs on clusters: with gangs, milestones and prices; then diamonds that come whole."""
    for seed in range(5):
        some = seed % 2 == 0
        drawn = random_problem(
            400 + seed, tasks=14 + 4 * seed, gangs=some, milestones=some, prices=True,
            **(PLAIN | {"edges": True}),
        )  # fmt: skip
        yield replace(drawn, name=f"workflows-{seed}")
    drawn = random_problem(405, tasks=60, deadlines=True, gangs=False, milestones=False, **PLAIN)
    first = np.arange(0, 60, 4)
    before = np.concatenate([first, first, first + 1, first + 2])
    after = np.concatenate([first + 1, first + 2, first + 3, first + 3])
    arrival_s = np.repeat(np.sort(drawn.tasks.arrival_s)[first], 4)
    tasks = replace(drawn.tasks, arrival_s=arrival_s, deadline_s=arrival_s + 1200.0)
    yield replace(drawn, tasks=tasks, edges=Edges(before, after), name="workflows-diamonds")
