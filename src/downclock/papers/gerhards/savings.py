"""Savings of the budget heuristic and of ours over the original schedule: Fig. 2 and section 5."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from downclock.papers.gerhards import PAPER, instances, published
from downclock.papers.rows import Item, Row, Settings, estimate, judged, not_run
from downclock.planners.slots.budget import binary_search, sweep_search
from downclock.planners.slots.solve import solve_slots
from downclock.units import Floats
from downclock.workloads.gerhards import FREQUENCIES

Draw: TypeAlias = Callable[[Settings], Iterator[instances.Case]]
"""Where the cases come from."""

FEW = 32
"""Tasks up to which the search takes its full number of orders."""

EXTENSIONS = (0, 5, 20, 50, 100)
STATIC = 0.4


def compared(
    settings: Settings, curve: str, percent: float, power: Floats, draw: Draw = instances.cases
) -> Floats:
    """Costs (cases, 5): original schedule, sweep, binary, ours, our bound."""
    rows = []
    prices = instances.curves()[curve]
    for case in draw(settings):
        graph = case.slotted(prices, percent, power)
        rounds = 200 if len(graph) <= FEW else 40
        ours = solve_slots(graph, seconds=20.0, rounds=rounds, start=case.first, seed=settings.seed)
        rows.append(
            (
                graph.full_speed_cost(case.first),
                sweep_search(graph, case.first).cost,
                binary_search(graph, case.first).cost,
                ours.cost,
                ours.bound,
            )
        )
    return np.array(rows)


def _saving(costs: Floats, column: int) -> list[float]:
    return list(100.0 * (1.0 - costs[:, column] / costs[:, 0]))


def fig2(settings: Settings) -> list[Row]:
    """Saving over the original schedule by extension, EPEX 2016-10-19."""
    value = published.SAVING_AT_ZERO
    if "epex" not in instances.curves():
        return [not_run(PAPER, "fig2", "sweep, 0 %", value, "%", instances.ABSENT)]
    rows = []
    for percent in EXTENSIONS[:3] if settings.quick else EXTENSIONS:
        costs = compared(settings, "epex", percent, instances.SQUARE)
        printed = value if percent == 0 else None
        for column, name in ((1, "sweep"), (2, "binary"), (3, "ours")):
            mean = estimate(_saving(costs, column), published_sets=published.GRAPHS)
            rows.append(
                judged(PAPER, "fig2", f"{name}, {percent} %", printed if column < 3 else None,
                       mean, "%", digits=1, because=instances.NOT_PUBLIC)
            )  # fmt: skip
    return rows


def static_power(settings: Settings) -> list[Row]:
    """Saving at 20 % extension with power 0.4 + 0.6 f³."""
    curve = "epex" if "epex" in instances.curves() else "flat"
    clock: Floats = np.array(FREQUENCIES)
    costs = compared(settings, curve, 20, STATIC + (1.0 - STATIC) * clock**3)
    rows = []
    for column, name in ((1, "sweep"), (2, "binary"), (3, "ours")):
        mean = estimate(_saving(costs, column), published_sets=published.GRAPHS)
        printed = published.SAVING_STATIC if column < 3 else None
        rows.append(
            judged(PAPER, "static", f"{name}, {curve}, 20 %", printed, mean, "%", digits=0,
                   because=instances.NOT_PUBLIC)
        )  # fmt: skip
    return rows


def losses(settings: Settings) -> list[Row]:
    """How much more than ours the heuristic costs, by curve and extension."""
    return _losses(settings, "losses", instances.cases)


def stg_losses(settings: Settings) -> list[Row]:
    """The same on graphs of the Standard Task Graph set."""
    if next(instances.stg_cases(settings), None) is None:
        return [
            not_run(PAPER, "losses-stg", f"sweep, {curve}, {percent} %", value, "%",
                    instances.NO_STG)
            for (curve, percent), value in published.LOSS.items()
        ]  # fmt: skip
    return _losses(settings, "losses-stg", instances.stg_cases)


def _losses(settings: Settings, item: str, draw: Draw) -> list[Row]:
    rows = []
    for (curve, percent), value in published.LOSS.items():
        if curve not in instances.curves():
            name = f"sweep, {curve}, {percent} %"
            rows.append(not_run(PAPER, item, name, value, "%", instances.ABSENT))
            continue
        costs = compared(settings, curve, percent, instances.SQUARE, draw)
        for column, name in ((1, "sweep"), (2, "binary")):
            over = list(100.0 * (costs[:, column] / costs[:, 3] - 1.0))
            mean = estimate(over, published_sets=published.GRAPHS)
            rows.append(
                judged(PAPER, item, f"{name}, {curve}, {percent} %", value, mean, "%",
                       digits=0, because=instances.NOT_PUBLIC)
            )  # fmt: skip
        gap = float(np.mean(100.0 * (costs[:, 3] / costs[:, 4] - 1.0)))
        rows.append(
            judged(PAPER, item, f"our certified gap, {curve}, {percent} %", None, gap, "%",
                   because="the paper has no bound")
        )  # fmt: skip
    return rows


ITEMS = (
    Item("fig2", "Fig. 2: saving by deadline extension", fig2),
    Item("static", "Section 5: saving with static power", static_power),
    Item("losses", "Section 5: heuristic against the optimum", losses),
    Item("losses-stg", "The same on the Standard Task Graph set", stg_losses),
)
