"""Instances in the manner of gerhards section 5: small graphs, equal machines, a price per slot.

The original graphs (a subset of the Hönig/Schiffmann test bench) are not public. This generator
has the knobs that the test bench names: how many edges there are, how long they reach, and works
of 1 to 10 slots; the structured families are for stress.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from downclock.errors import InvalidInput
from downclock.power.library import Library
from downclock.power.points import ClockTable
from downclock.power.profiles import CpuProfiles
from downclock.problem.graph import Edges
from downclock.problem.platform import Interrupt, Kind, Platform, ServerSpec
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.units import J_PER_KWH, Floats, Names
from downclock.workloads.task_graph import TaskGraph

Meshing: TypeAlias = Literal["low", "middle", "high"]
Reach: TypeAlias = Literal["short", "random", "long"]
Family: TypeAlias = Literal["fork-join", "layered", "out-tree", "chains", "independent"]

EDGES_PER_TASK = {"low": 1.0, "middle": 1.8, "high": 3.0}
REACH = {"short": 0.15, "random": 1.0, "long": 0.5}
"""Part of the earlier tasks that an edge may come from; "long" takes the farther half."""

FREQUENCIES = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Clocks besides off; the paper prints none, this is the set of our measurements."""

SLOT_S = 3600.0


def random_graph(
    tasks: int, *, meshing: Meshing = "middle", reach: Reach = "random", seed: int = 0
) -> TaskGraph:
    """Draw a graph with works of 1..10 slots; the same seed gives the same graph."""
    random = np.random.default_rng(seed)
    before: list[int] = []
    after: list[int] = []
    for j in range(1, tasks):
        wanted = min(j, int(random.poisson(EDGES_PER_TASK[meshing])))
        near = max(1, int(np.ceil(REACH[reach] * j)))
        low, high = (0, near) if reach == "long" else (j - near, j)
        for i in np.unique(random.integers(low, high, wanted)):
            before.append(int(i))
            after.append(j)
    work = random.integers(1, 11, tasks).astype(np.float64)
    return _graph(f"{meshing}-{reach}-{tasks}-{seed}", work, before, after)


def structured_graph(family: Family, tasks: int, *, width: int = 8, seed: int = 0) -> TaskGraph:
    """Draw a graph of a known shape; ``width`` tasks side by side where that has a meaning."""
    random = np.random.default_rng(seed)
    work = random.integers(1, 11, tasks).astype(np.float64)
    pairs: list[tuple[int, int]] = []
    if family == "fork-join":
        pairs = _fork_join(tasks, width)
    elif family == "layered":
        layers = [range(a, min(a + width, tasks)) for a in range(0, tasks, width)]
        for upper, lower in pairwise(layers):
            pairs += [(i, j) for j in lower for i in upper if random.random() < 0.4]
    elif family == "out-tree":
        pairs = [
            (int(random.integers(max(0, (j - 1) // 3), (j + 1) // 2)), j) for j in range(1, tasks)
        ]
    elif family == "chains":
        pairs = [(j - width, j) for j in range(width, tasks)]
    return _graph(f"{family}-{tasks}-{seed}", work, [p[0] for p in pairs], [p[1] for p in pairs])


def _fork_join(tasks: int, width: int) -> list[tuple[int, int]]:
    """Return edges: every (width + 1)-th task is a barrier between ``width`` parallel ones."""
    pairs: list[tuple[int, int]] = []
    for j in range(1, tasks):
        barrier = j - j % (width + 1)
        if j == barrier:
            pairs += [(i, j) for i in range(j - width, j)]
        else:
            pairs.append((barrier, j))
    return pairs


def _graph(name: str, work: Floats, before: list[int], after: list[int]) -> TaskGraph:
    names: Names = np.array([f"t{i}" for i in range(work.size)], dtype=object)
    edges = Edges(np.array(before, dtype=np.int64), np.array(after, dtype=np.int64))
    return TaskGraph(name, names, work, edges)


def flat_prices(slots: int) -> Floats:
    """The same price in every slot."""
    return np.ones(slots)


def increasing_prices(slots: int, *, level: float = 10.0, hold: int = 20) -> Floats:
    """Flat for 20 slots, then 10 more in every further slot (gerhards Fig. 4)."""
    return np.asarray(level * np.maximum(1.0, np.arange(slots) - hold + 2.0))


def alternating_prices(slots: int, *, low: float = 5.0, high: float = 50.0) -> Floats:
    """5, 50, 5, 50, ... (gerhards Fig. 4)."""
    return np.where(np.arange(slots) % 2 == 0, low, high).astype(np.float64)


def repeated_prices(day: Floats, slots: int) -> Floats:
    """A day's (or week's) values again and again, as the paper repeats 2016-10-19."""
    return np.resize(np.asarray(day, dtype=np.float64), slots)


@dataclass(frozen=True, slots=True)
class Machines:
    """The platform of the paper.

    Attributes:
        count: equal machines.
        frequencies: clocks besides off, rising, the last one 1.
        static: part s of the power at clock 1 that does not depend on the clock.
        pause: a task may stay off on its machine for a slot.
    """

    count: int
    frequencies: tuple[float, ...] = FREQUENCIES
    static: float = 0.0
    pause: bool = True

    @property
    def exponent(self) -> float:
        """power(f) is f² without static power and s + (1 - s) f³ with it (section 3)."""
        return 3.0 if self.static > 0.0 else 2.0


def slotted_problem(
    graph: TaskGraph, machines: Machines, price: Floats, *, deadline_slots: int | None = None
) -> Problem:
    """Ask for a graph by a deadline in slots; ``price`` (slots,) is per kWh, a slot is an hour.

    Power at clock 1 is 1000 W, so that a slot at clock 1 costs the price itself. Negative prices
    are kept: bills use them, plans count them as 0.
    """
    slots = price.size if deadline_slots is None else deadline_slots
    if price.size < slots:
        raise InvalidInput(f"has {price.size} slots, and {slots} are needed", item="price")
    watts = J_PER_KWH / SLOT_S
    one, static = np.ones(1), machines.static
    profile = CpuProfiles(
        one, (1.0 - static) * watts * one, machines.exponent * one, static * watts * one
    )
    interrupt: Interrupt = "pause" if machines.pause else "none"
    clocks = ClockTable(np.array(machines.frequencies), np.ones(1), 1.0, 1.0)
    curve = Curve(SLOT_S * np.arange(price.size, dtype=np.float64), price, SLOT_S * price.size)
    n = len(graph)
    tasks = Tasks.of(
        np.zeros(n, dtype=np.int64),
        deadline_s=np.full(n, SLOT_S * slots),
        scale=SLOT_S * graph.work,
        name=graph.task,
    )
    return Problem(
        tasks,
        Library.of_one_kind(np.array(["work"], dtype=object), "pe", profile),
        Platform.build(
            (Kind("pe", clocks, interrupt=interrupt),),
            (ServerSpec("machine", (("pe", machines.count),), initially_on=True),),
            SLOT_S,
        ),
        graph.edges,
        Prices((("default", ZonePrices(price=curve)),)),
        name=graph.name,
    )
