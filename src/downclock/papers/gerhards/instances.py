"""Our stand-ins for the paper's 128 test cases, and its price schedules.

The 32 graphs of the paper are not public; ours are drawn by `workloads.gerhards.random_graph` with
every mix of its knobs, on 2, 4, 8 and 16 machines, with the shortest list schedule found as the
original schedule S.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from downclock.exact.cost_model import SlotGraph
from downclock.papers.rows import Settings
from downclock.policies.cost_start import shortest_schedule
from downclock.units import Floats, Ints
from downclock.workloads.gerhards import (
    FREQUENCIES,
    alternating_prices,
    flat_prices,
    increasing_prices,
    random_graph,
    repeated_prices,
)

MACHINES = (2, 4, 8, 16)
SIZES = (16, 32)
UNITS = np.arange(1, len(FREQUENCIES) + 1)
SQUARE = np.array(FREQUENCIES) ** 2

NOT_PUBLIC = "other graphs (the paper's are not public), and ours is a certified reference"
ABSENT = "data absent: set DOWNCLOCK_DATA to the folder of public prices"
EPEX_FILE = "prices/epex_de_dayahead_2016-10-19.csv"


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


@cache
def _case(seed: int, size: int, machines: int) -> Case:
    meshing = ("low", "middle", "high")[seed % 3]
    reach = ("short", "random", "long")[seed // 3 % 3]
    drawn = random_graph(size, meshing=meshing, reach=reach, seed=seed)  # type: ignore[arg-type]
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
    day = _epex_day()
    if day is not None:
        found["epex"] = lambda slots: repeated_prices(day, slots)
    return found


def _epex_day() -> Floats | None:
    folder = os.environ.get("DOWNCLOCK_DATA")
    path = None if folder is None else Path(folder) / EPEX_FILE
    if path is None or not path.is_file():
        return None
    with path.open(encoding="utf-8") as file:
        return np.array([float(row["price_eur_per_mwh"]) for row in csv.DictReader(file)])
