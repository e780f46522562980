"""Table 1 (180 random graphs) and Table 2 (three applications), in both readings."""

from __future__ import annotations

from functools import partial

import numpy as np

from downclock.papers.data import absent, data
from downclock.papers.gerards import PAPER, published
from downclock.papers.gerards.readings import (
    APPLICATIONS,
    CORRECTED,
    PUBLISHED,
    Reading,
    application,
    random_graphs,
)
from downclock.papers.rows import (
    Item,
    Reason,
    Row,
    Settings,
    against_itself,
    claimed,
    not_run,
    ours_only,
    printed,
)
from downclock.planners.chip.clocks import ChipPower, global_clocks, single_clock
from downclock.planners.chip.lists import list_schedule
from downclock.planners.chip.local import local_clocks
from downclock.planners.chip.model import WorkGraph
from downclock.units import Floats
from downclock.workloads.task_graph import TaskGraph

CORES = tuple(range(2, 13))
_QUICK_CORES = (2, 6, 12)
SHIFTED = "each task with the work of its successor"


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


def table1(reading: Reading, settings: Settings) -> list[Row]:
    """Mean, least and greatest ratio for each number of cores and static power."""
    folder = data("stg", "rand50")
    drawn = [] if folder is None else random_graphs(folder)
    graphs = {each: [each.graph(g) for g in drawn] for each in (PUBLISHED, CORRECTED)}
    rows: list[Row] = []
    for cores in _QUICK_CORES if settings.quick else CORES:
        for label, _ in reading.c3:
            rows += _cells(reading, cores, label, graphs)
    return rows


def _cells(
    reading: Reading, cores: int, label: float, graphs: dict[Reading, list[WorkGraph]]
) -> list[Row]:
    """Mean, least and greatest of one cell."""
    where = (PAPER, f"table1-{reading.name}")
    names = [f"{what}, M={cores}, c3={label:g}" for what in ("mean", "least", "greatest")]
    values = published.TABLE1[cores][label]
    if not graphs[reading]:
        why = absent("stg/rand50")
        return [not_run(where, n, v, "", why) for n, v in zip(names, values, strict=True)]
    ours = _summary(ratios(graphs[reading], cores, reading.used(label)))
    reasons: list[Reason | None] = [None] * 3
    if reading is CORRECTED:
        theirs = _summary(ratios(graphs[PUBLISHED], cores, PUBLISHED.used(label)))
        words = [SHIFTED] * 3
        if PUBLISHED.used(label) != label:
            words = _apart(graphs, cores, label)
        reasons = [Reason(each, value) for each, value in zip(words, theirs, strict=True)]
    return [
        printed(where, name, value, mine, "", digits=3, reason=why)
        for name, value, mine, why in zip(names, values, ours, reasons, strict=True)
    ]


def _apart(graphs: dict[Reading, list[WorkGraph]], cores: int, label: float) -> list[str]:
    """What either slip does by itself where both are at work."""
    used = PUBLISHED.used(label)
    static = _summary(ratios(graphs[CORRECTED], cores, used))
    shift = _summary(ratios(graphs[PUBLISHED], cores, label))
    return [
        f"c3 = {used:g}, which alone gives {a:.3f}, and {SHIFTED}, which alone gives {b:.3f}"
        for a, b in zip(static, shift, strict=True)
    ]


def _summary(found: Floats) -> tuple[float, float, float]:
    return float(found.mean()), float(found.min()), float(found.max())


def table2(reading: Reading, settings: Settings) -> list[Row]:
    """Energies of the three applications."""
    folder = data("stg", "apps")
    rows: list[Row] = []
    for name in APPLICATIONS:
        graph = None if folder is None else application(folder, name)
        for cores in _QUICK_CORES if settings.quick else CORES:
            rows += _energy_cells(reading, name, cores, graph)
    return rows


def _energy_cells(reading: Reading, name: str, cores: int, graph: TaskGraph | None) -> list[Row]:
    """Energies of one application on so many cores."""
    where, values = (PAPER, f"table2-{reading.name}"), published.TABLE2[name][cores]
    names = [f"{what}, {name}, M={cores}" for what in ("one clock", "chip-wide", "per core")]
    if graph is None:
        why = absent("stg/apps")
        return [not_run(where, n, v, "J", why) for n, v in zip(names, values, strict=True)]
    reasons: list[Reason | None] = [None] * 3
    if reading is CORRECTED:
        reasons = [Reason(SHIFTED, each) for each in energies(PUBLISHED.graph(graph), cores)]
    ours = energies(reading.graph(graph), cores)
    return [
        printed(where, quantity, value, mine, "J", reason=why)
        for quantity, value, mine, why in zip(names, values, ours, reasons, strict=True)
    ]


def claims(_: Settings) -> list[Row]:
    """The savings that abstract and text name, from the printed tables and on the right graphs."""
    where, text = (PAPER, "claims"), published.SAVED
    one, chip, _local = published.TABLE2["fpppp"][12]
    static = [100.0 * (1.0 - published.TABLE1[12][c3][1]) for c3 in (0.0, 0.4)]
    table = "its own Table"
    rows = [
        against_itself(where, "no static power, up to", text["no static power"], static[0], "%",
                       relation=">", note=f"{table} 1"),
        against_itself(where, "static power, up to", text["static power"], static[1], "%",
                       note=f"{table} 1: 1 - 0.289"),
        against_itself(where, "fpppp, M=12, more than", text["fpppp, 12 cores"],
                       100.0 * (1.0 - chip / one), "%", relation=">", note=f"{table} 2"),
    ]  # fmt: skip
    folder, apps = data("stg", "rand50"), data("stg", "apps")
    if folder is None or apps is None:
        return [*rows, not_run(where, "on graphs read rightly", None, "%", absent("stg"))]
    graphs = [CORRECTED.graph(graph) for graph in random_graphs(folder)]
    named = {
        "no static power": 1.0 - ratios(graphs, 12, 0.0).min(),
        "static power": 1.0 - ratios(graphs, 12, 0.4).min(),
    }
    single, wide, _each = energies(CORRECTED.graph(application(apps, "fpppp")), 12)
    named["fpppp, 12 cores"] = 1.0 - wide / single
    return rows + [
        claimed(where, f"{name}, on graphs read rightly", ">", text[name], 100.0 * float(part), "%")
        for name, part in named.items()
    ]


def fairness(settings: Settings) -> list[Row]:
    """Mean ratio against one clock that knows about static power: the saving of varying it."""
    folder = data("stg", "rand50")
    if folder is None:
        return [not_run((PAPER, "fairness"), "mean", None, "", absent("stg/rand50"))]
    graphs = [CORRECTED.graph(graph) for graph in random_graphs(folder)]
    why = "the paper compares with one clock that ignores static power only"
    return [
        ours_only((PAPER, "fairness"), f"mean, M={cores}, c3=0.4",
                  float(ratios(graphs, cores, 0.4, static_aware=True).mean()), "", why)
        for cores in ((2, 12) if settings.quick else (2, 4, 8, 12))
    ]  # fmt: skip


ITEMS = (
    Item("table1-published", "Table 1, the reading its numbers need", partial(table1, PUBLISHED)),
    Item(
        "table1-corrected", "Table 1, graphs and static power as stated", partial(table1, CORRECTED)
    ),
    Item("table2-published", "Table 2, the reading its numbers need", partial(table2, PUBLISHED)),
    Item("table2-corrected", "Table 2, graphs as they are", partial(table2, CORRECTED)),
    Item("claims", "Savings of abstract and text: 28, 30 and 72 %", claims),
    Item("fairness", "Table 1 against one clock that knows about static power", fairness),
)
