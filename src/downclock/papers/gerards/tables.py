"""Table 1 (180 random graphs) and Table 2 (three applications), in both readings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from downclock.papers.gerards import PAPER, published
from downclock.papers.gerards.readings import (
    APPLICATIONS,
    CORRECTED,
    PUBLISHED,
    Reading,
    application,
    data_folder,
    random_graphs,
)
from downclock.papers.rows import Item, Row, Settings, judged, not_run
from downclock.planners.chip.clocks import ChipPower, global_clocks, single_clock
from downclock.planners.chip.lists import list_schedule
from downclock.planners.chip.local import local_clocks
from downclock.planners.chip.model import WorkGraph
from downclock.units import Floats

CORES = tuple(range(2, 13))
_ABSENT = "data absent: set DOWNCLOCK_DATA to a folder that holds stg/"
_SHIFTED = "the printed value belongs to graphs whose tasks have the work of their successor"
_QUICK_CORES = (2, 6, 12)


def ratios(
    graphs: list[WorkGraph], cores: int, static_w: float, *, static_aware: bool = False
) -> Floats:
    """Energy with optimal clocks / with one clock of each graph (n,): LPT, deadline 2W."""
    power = ChipPower(c3=static_w)
    found = np.empty(len(graphs))
    for k, graph in enumerate(graphs):
        omega = list_schedule(graph, cores, "lpt").parallelism(graph)
        deadline = 2.0 * graph.total_work
        single = single_clock(omega, deadline, power, static_aware=static_aware)
        found[k] = global_clocks(omega, deadline, power).energy / single.energy
    return found


def energies(graph: WorkGraph, cores: int) -> tuple[float, float, float]:
    """Energy with one clock, chip-wide clocks and a clock per core: LPT, deadline W, c3 = 0."""
    power, deadline = ChipPower(), graph.total_work
    placed = list_schedule(graph, cores, "lpt")
    omega = placed.parallelism(graph)
    single = single_clock(omega, deadline, power, static_aware=False).energy
    chip = global_clocks(omega, deadline, power).energy
    return single, chip, local_clocks(graph, placed, deadline, power).energy


def table1(reading: Reading) -> Callable[[Settings], list[Row]]:
    """Mean, least and greatest ratio for each number of cores and static power."""
    item = f"table1-{reading.name}"

    def run(settings: Settings) -> list[Row]:
        folder = data_folder()
        graphs = [] if folder is None else [reading.graph(g) for g in random_graphs(folder)]
        rows: list[Row] = []
        for cores in _QUICK_CORES if settings.quick else CORES:
            for label, static_w in reading.c3:
                cell = f"M={cores}, c3={label:g}"
                printed = published.TABLE1[cores][label]
                rows += _cells(item, cell, printed, graphs, cores, static_w)
        return rows

    return run


def _cells(
    item: str,
    cell: str,
    printed: tuple[float, float, float],
    graphs: list[WorkGraph],
    cores: int,
    static_w: float,
) -> list[Row]:
    names = [f"{what}, {cell}" for what in ("mean", "least", "greatest")]
    if not graphs:
        return [
            not_run(PAPER, item, name, value, "", _ABSENT)
            for name, value in zip(names, printed, strict=True)
        ]
    ours = ratios(graphs, cores, static_w)
    found = (float(ours.mean()), float(ours.min()), float(ours.max()))
    return [
        judged(PAPER, item, name, value, mine, "", digits=3, because=_SHIFTED)
        for name, value, mine in zip(names, printed, found, strict=True)
    ]


def table2(reading: Reading) -> Callable[[Settings], list[Row]]:
    """Energies of the three applications."""
    item = f"table2-{reading.name}"

    def run(settings: Settings) -> list[Row]:
        folder = data_folder()
        rows: list[Row] = []
        for name in APPLICATIONS:
            graph = None if folder is None else reading.graph(application(folder, name))
            for cores in _QUICK_CORES if settings.quick else CORES:
                printed = published.TABLE2[name][cores]
                ours = None if graph is None else energies(graph, cores)
                rows += _energy_cells(item, f"{name}, M={cores}", printed, ours)
        return rows

    return run


def _energy_cells(
    item: str,
    cell: str,
    printed: tuple[float, float, float],
    ours: tuple[float, float, float] | None,
) -> list[Row]:
    rows = []
    for k, what in enumerate(("one clock", "chip-wide", "per core")):
        name = f"{what}, {cell}"
        rows.append(
            not_run(PAPER, item, name, printed[k], "J", _ABSENT)
            if ours is None
            else judged(PAPER, item, name, printed[k], ours[k], "J", digits=0, because=_SHIFTED)
        )
    return rows


def fairness(settings: Settings) -> list[Row]:
    """Mean ratio against one clock that knows about static power: the saving of varying it."""
    folder = data_folder()
    if folder is None:
        return [not_run(PAPER, "fairness", "mean", None, "", _ABSENT)]
    graphs = [CORRECTED.graph(g) for g in random_graphs(folder)]
    rows = []
    for cores in (2, 12) if settings.quick else (2, 4, 8, 12):
        mean = float(ratios(graphs, cores, 0.4, static_aware=True).mean())
        why = "the paper compares with one clock that ignores static power only"
        rows.append(
            judged(PAPER, "fairness", f"mean, M={cores}, c3=0.4", None, mean, "", because=why)
        )
    return rows


ITEMS = (
    Item("table1-published", "Table 1, the reading its numbers need", table1(PUBLISHED)),
    Item("table1-corrected", "Table 1, graphs and static power as stated", table1(CORRECTED)),
    Item("table2-published", "Table 2, the reading its numbers need", table2(PUBLISHED)),
    Item("table2-corrected", "Table 2, graphs as they are", table2(CORRECTED)),
    Item("fairness", "Table 1 against one clock that knows about static power", fairness),
)
