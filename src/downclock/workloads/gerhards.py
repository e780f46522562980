"""Instances in the manner of gerhards section 5: small graphs, equal machines, a price per slot.

The original graphs (a subset of the Hönig/Schiffmann test bench) are not public. This generator
has the knobs that the test bench names: how many edges there are, how long they reach, and works
of 1 to 10 slots.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from downclock.units import J_PER_KWH, Floats, Names
from downclock.workloads.task_graph import TaskGraph

Meshing: TypeAlias = Literal["low", "middle", "high"]
Reach: TypeAlias = Literal["short", "random", "long"]

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
    pairs: list[tuple[int, int]] = []
    for j in range(1, tasks):
        wanted = min(j, int(random.poisson(EDGES_PER_TASK[meshing])))
        near = max(1, int(np.ceil(REACH[reach] * j)))
        low, high = (0, near) if reach == "long" else (j - near, j)
        pairs += [(i, j) for i in np.unique(random.integers(low, high, wanted)).tolist()]
    work = random.integers(1, 11, tasks).astype(np.float64)
    return graph_of(f"{meshing}-{reach}-{tasks}-{seed}", work, pairs)


def graph_of(name: str, work: Floats, pairs: list[tuple[int, int]]) -> TaskGraph:
    """Tasks of so much work, and edges from the first to the second of each pair."""
    names: Names = np.array([f"t{i}" for i in range(work.size)], dtype=object)
    before, after = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return TaskGraph(name, names, work, Edges(before, after))


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
        watts: power at clock 1.
        alpha: power is s + (1 - s) f^alpha of it; 2 without static power and 3 with it, as in
            section 3, where it is not given.
    """

    count: int
    frequencies: tuple[float, ...] = FREQUENCIES
    static: float = 0.0
    pause: bool = True
    watts: float = 1.0
    alpha: float | None = None

    @property
    def exponent(self) -> float:
        """The alpha that holds."""
        return self.alpha or (3.0 if self.static > 0.0 else 2.0)


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
    curve = Curve(SLOT_S * np.arange(price.size, dtype=np.float64), price, SLOT_S * price.size)
    graph = replace(graph, work=SLOT_S * graph.work)
    machines = replace(machines, watts=J_PER_KWH / SLOT_S)
    prices = Prices((("default", ZonePrices(price=curve)),))
    return slotted_workflow(graph, machines, SLOT_S, deadline_s=SLOT_S * slots, prices=prices)


def slotted_workflow(
    graph: TaskGraph,
    machines: Machines,
    slot_s: float,
    *,
    deadline_s: float | None = None,
    prices: Prices | None = None,
) -> Problem:
    """Ask for a graph, whose work is seconds at clock 1, on machines with slots of any length.

    Without a deadline it is what any list schedule at clock 1 meets (Graham 1969): the longest
    path, and the other work shared by all machines.
    """
    if deadline_s is None:
        deadline_s = slot_s * _surely_enough(graph, machines.count, slot_s)
    one, static, watts = np.ones(1), machines.static, machines.watts
    dynamic_w, static_w = (1.0 - static) * watts * one, static * watts * one
    profile = CpuProfiles(one, dynamic_w, machines.exponent * one, static_w)
    library = Library.of_one_kind(np.array(["work"], dtype=object), "pe", profile)
    interrupt: Interrupt = "pause" if machines.pause else "none"
    clocks = ClockTable(np.array(machines.frequencies), np.ones(1), 1.0, 1.0)
    server = ServerSpec("machine", (("pe", machines.count),), initially_on=True)
    platform = Platform.build((Kind("pe", clocks, interrupt=interrupt),), (server,), slot_s)
    prices = Prices() if prices is None else prices
    return Problem(graph.tasks(deadline_s), library, platform, graph.edges, prices, name=graph.name)


def _surely_enough(graph: TaskGraph, machines: int, slot_s: float) -> int:
    """Slots that a list schedule takes at most, whatever its order."""
    slots = replace(graph, work=np.ceil(graph.work / slot_s - 1e-9))
    path = slots.critical_path
    return int(np.ceil(path + (slots.total_work - path) / machines))
