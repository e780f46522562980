"""Our stand-ins for the paper's 128 test cases, and its price schedules.

The 32 graphs of the paper are not public. Ours are drawn by `workloads.gerhards.random_graph` with
every mix of its knobs; others are the graphs of 50 tasks of the Standard Task Graph set (Tobita and
Kasahara 2002), read where DOWNCLOCK_DATA names them. All are put on 2, 4, 8 and 16 machines, with
the shortest list schedule found as the original schedule S.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from downclock.papers.data import data
from downclock.papers.rows import Settings
from downclock.planners.slots.model import SlotGraph
from downclock.planners.slots.start import shortest_schedule
from downclock.tabular import read_csv
from downclock.units import Floats, Ints
from downclock.workloads.gerhards import (
    FREQUENCIES,
    alternating_prices,
    flat_prices,
    increasing_prices,
    random_graph,
    repeated_prices,
)
from downclock.workloads.stg import read_stg
from downclock.workloads.task_graph import TaskGraph

MACHINES = (2, 4, 8, 16)
SIZES = (16, 32)
UNITS = np.arange(1, len(FREQUENCIES) + 1)
SQUARE = np.array(FREQUENCIES) ** 2

NOT_PUBLIC = (
    "the paper's 32 graphs are not public, nor is their source, Hönig and Schiffmann's bench"
)
NO_CPLEX = "the paper's graphs are not public, and its solver, CPLEX 12.7, is not free"
OWN = "graphs drawn with every mix of knobs, n = 16 and 32 on 2 to 16 machines"
STRIDE = 37
"""Step through the Standard Task Graph set: its files are sorted by how they were drawn."""

EPEX_FILE = "epex_de_dayahead_2016-10-19.csv"


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A graph, its machines and the original schedule: first slots (n,) and makespan."""

    work: Ints
    graph: SlotGraph
    first: Ints
    makespan: int

    def slotted(self, curve: Callable[[int], Floats], percent: float, power: Floats) -> SlotGraph:
        """The question at an extension of the makespan; prices are scaled to a maximum of 1."""
        slots = int(np.floor(self.makespan * (1.0 + percent / 100.0) + 1e-9))
        price = curve(slots)
        return SlotGraph(
            self.work, self.graph.edges, self.graph.machines, price / price.max(), UNITS, power
        )


def cases(settings: Settings) -> Iterator[Case]:
    """All cases of all seeds; small graphs only where ``quick``."""
    for seed in settings.seeds:
        for size in (12,) if settings.quick else SIZES:
            for machines in MACHINES:
                yield _case(seed, size, machines)


def stg_cases(settings: Settings) -> Iterator[Case]:
    """Graphs of the Standard Task Graph set, as many as there are seeds; none without the files.

    They are spread over the set; one graph on two numbers of machines where ``quick``.
    """
    folder = data("stg", "rand50")
    paths = [] if folder is None else sorted(folder.glob("*.stg"))
    chosen = [seed * STRIDE % len(paths) for seed in settings.seeds] if paths else []
    for at in dict.fromkeys(chosen[:1] if settings.quick else chosen):
        for machines in (2, 8) if settings.quick else MACHINES:
            yield _placed(read_stg(paths[at]), machines, 0)


@cache
def _case(seed: int, size: int, machines: int) -> Case:
    meshing = ("low", "middle", "high")[seed % 3]
    reach = ("short", "random", "long")[seed // 3 % 3]
    drawn = random_graph(size, meshing=meshing, reach=reach, seed=seed)  # type: ignore[arg-type]
    return _placed(drawn, machines, seed)


def _placed(drawn: TaskGraph, machines: int, seed: int) -> Case:
    """Put a graph on machines, and look for its shortest schedule."""
    work = (UNITS[-1] * drawn.work).astype(np.int64)
    graph = SlotGraph(work, drawn.edges, machines, np.ones(1), UNITS, SQUARE)
    first, makespan = shortest_schedule(graph, seed=seed)
    return Case(work, graph, first, makespan)


def curves() -> dict[str, Callable[[int], Floats]]:
    """Price schedules by name; EPEX only where its file is at hand."""
    found: dict[str, Callable[[int], Floats]] = {
        "flat": flat_prices,
        "increasing": increasing_prices,
        "alternating": alternating_prices,
    }
    path = data("prices", EPEX_FILE)
    if path is not None:
        found["epex"] = partial(repeated_prices, read_csv(path).floats("price_eur_per_mwh"))
    return found
