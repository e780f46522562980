"""Savings of the budget heuristic and of ours over the original schedule: Fig. 2 and section 5.

The paper's 32 graphs are not public, so its numbers cannot be run; its claims are tried on graphs
like them (see `instances`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeAlias

import numpy as np

from downclock.papers.data import absent
from downclock.papers.gerhards import PAPER, instances, published
from downclock.papers.rows import Item, Row, Settings, Where, claimed, estimate, not_run, ours_only
from downclock.planners.slots.budget import binary_search, sweep_search
from downclock.planners.slots.solve import solve_slots
from downclock.units import Floats
from downclock.workloads.gerhards import FREQUENCIES

Draw: TypeAlias = Callable[[Settings], Iterator[instances.Case]]
"""Where the cases come from."""

ROUNDS = 40
"""Orders that ours tries: enough for a proven gap of some hundredths of a percent."""

EXTENSIONS = (0, 5, 10, 15, 20, 30, 50, 75, 100)
SOLVED = (0, 5, 20, 50, 100)
"""Extensions of the heuristic's curve, and those at which ours is run beside it."""

STATIC = 0.4
NAMES = ("sweep", "binary", "ours")


@cache
def compared(
    settings: Settings,
    curve: str,
    percent: float,
    static: float = 0.0,
    draw: Draw = instances.cases,
) -> Floats:
    """Costs (cases, 5): original schedule, sweep, binary, ours, our bound.

    Power is f², or s + (1-s) f³ where a part s of it is static.
    """
    clock: Floats = np.array(FREQUENCIES)
    power = static + (1.0 - static) * clock**3 if static else instances.SQUARE
    rows, prices = [], instances.curves()[curve]
    for case in draw(settings):
        graph = case.slotted(prices, percent, power)
        ours = solve_slots(graph, rounds=ROUNDS, start=case.first, seed=settings.seed)
        theirs = sweep_search(graph, case.first).cost, binary_search(graph, case.first)
        rows.append((graph.full_speed_cost(case.first), *theirs, ours.cost, ours.bound))
    return np.array(rows)


def _savings(where: Where, costs: Floats, words: str) -> list[Row]:
    """Our numbers for what the paper prints of its own graphs."""
    rows = []
    for column, name in enumerate(NAMES, start=1):
        found = estimate(list(100.0 * (1.0 - costs[:, column] / costs[:, 0])), published_sets=128)
        rows.append(ours_only(where, f"saving of {name}, {words}", found, "%", instances.OWN))
    return rows


def fig2(settings: Settings) -> list[Row]:
    """Saving over the original schedule by extension, EPEX 2016-10-19."""
    where = (PAPER, "fig2")
    rows = [
        not_run(where, "saving of the heuristic, 0 %", published.SAVING_AT_ZERO, "%",
                instances.NOT_PUBLIC)
    ]  # fmt: skip
    curve = instances.curves().get("epex")
    if curve is None:
        return [*rows, not_run(where, "shape of the curve", None, "%", absent("prices"))]
    drawn = instances.cases(settings)
    saved = np.array([[_saved(each, curve, percent) for percent in EXTENSIONS] for each in drawn])
    knee = EXTENSIONS.index(published.STEEPER_UNTIL)
    early = (saved[:, knee] - saved[:, 0]) / EXTENSIONS[knee]
    late = (saved[:, -1] - saved[:, knee]) / (EXTENSIONS[-1] - EXTENSIONS[knee])
    rows += [
        claimed(where, "growth up to 20 % of extension less that beyond", ">", 0.0,
                list(early - late), "% per %", instances.OWN),
        claimed(where, "growth from 75 to 100 % of extension", ">", 0.0,
                list(saved[:, -1] - saved[:, -2]), "%", instances.OWN),
    ]  # fmt: skip
    for percent in (0, 20) if settings.quick else SOLVED:
        costs = compared(settings, "epex", percent, draw=instances.cases)
        rows += _savings(where, costs, f"{percent} %")
    return rows


def _saved(case: instances.Case, curve: Callable[[int], Floats], percent: float) -> float:
    """Percent that the sweep saves over the original schedule."""
    graph = case.slotted(curve, percent, instances.SQUARE)
    return 100.0 * (1.0 - sweep_search(graph, case.first).cost / graph.full_speed_cost(case.first))


def static_power(settings: Settings) -> list[Row]:
    """Saving at 20 % extension with power 0.4 + 0.6 f³."""
    where = (PAPER, "static")
    rows = [
        not_run(where, "saving of the heuristic, 20 %", published.SAVING_STATIC, "%",
                instances.NOT_PUBLIC)
    ]  # fmt: skip
    if "epex" not in instances.curves():
        return [*rows, not_run(where, "our savings, epex, 20 %", None, "%", absent("prices"))]
    costs = compared(settings, "epex", 20, STATIC)
    return [*rows, *_savings(where, costs, "epex, 20 %")]


def losses(settings: Settings) -> list[Row]:
    """How much more than ours the heuristic costs, by curve and extension."""
    where = (PAPER, "losses")
    rows = [
        not_run(where, f"heuristic above the program, {curve}, {percent} %", value, "%",
                instances.NOT_PUBLIC)
        for (curve, percent), value in published.LOSS.items()
    ]  # fmt: skip
    for name, value in published.LOSS_BY_TIMEOUT.items():
        quantity = f"heuristic above the program after {name}, epex, 20 %"
        rows.append(not_run(where, quantity, value, "%", instances.NO_CPLEX))
    for quantity, figure in (
        ("cases that time out after 4 hours", published.TIMED_OUT),
        ("the program does notably worse at 50 % of extension", None),
    ):
        rows.append(not_run(where, quantity, figure, "% of cases", instances.NO_CPLEX))
    over, found = _losses(settings, "losses", instances.cases, instances.OWN)
    worst = list(over["alternating", 5] - over["flat", 5])
    return [
        *rows,
        claimed(where, "sweep above ours: alternating less flat prices, 5 %", ">", 0.0, worst, "%",
                instances.OWN),
        *found,
    ]  # fmt: skip


def stg_losses(settings: Settings) -> list[Row]:
    """The same on graphs of the Standard Task Graph set."""
    if next(instances.stg_cases(settings), None) is None:
        why = absent("stg/rand50")
        return [not_run((PAPER, "losses-stg"), "heuristic above ours", None, "%", why)]
    return _losses(settings, "losses-stg", instances.stg_cases, "Standard Task Graph set, n=50")[1]


def _losses(
    settings: Settings, item: str, draw: Draw, note: str
) -> tuple[dict[tuple[str, int], Floats], list[Row]]:
    """Percent that the sweep costs more than ours, case by case, and the rows about it."""
    rows: list[Row] = []
    over: dict[tuple[str, int], Floats] = {}
    where = (PAPER, item)
    for curve, percent in published.LOSS:
        words = f"{curve}, {percent} %"
        if curve not in instances.curves():
            rows.append(not_run(where, f"sweep above ours, {words}", None, "%", absent("prices")))
            continue
        costs = compared(settings, curve, percent, draw=draw)
        for column, name in ((1, "sweep"), (2, "binary")):
            more = 100.0 * (costs[:, column] / costs[:, 3] - 1.0)
            over.setdefault((curve, percent), more)
            mean = estimate(list(more), published_sets=128)
            rows.append(ours_only(where, f"{name} above ours, {words}", mean, "%", note))
        gap = float(np.mean(100.0 * (costs[:, 3] / costs[:, 4] - 1.0)))
        rows.append(ours_only(where, f"our certified gap, {words}", gap, "%", note))
    return over, rows


def speed(settings: Settings) -> list[Row]:
    """How long the heuristic takes: a thousand budgets, and where the saving comes from."""
    where = (PAPER, "speed")
    prices = instances.curves().get("epex", instances.curves()["flat"])
    taken = []
    for case in instances.cases(settings):
        graph = case.slotted(prices, 20.0, instances.SQUARE)
        sweep_search(graph, case.first, steps=2)
        start = time.process_time()
        sweep_search(graph, case.first)
        taken.append(time.process_time() - start)
    return [
        claimed(where, "seconds of the sweep, 95 of 100 cases below", "<", published.SECONDS,
                round(float(np.percentile(taken, 95)), 2), "s"),
        not_run(where, "part of the saving from each task's last slot, 'notable'", None, "%",
                "the text does not say how the last slot runs otherwise; its Eq. 3 is another one"),
    ]  # fmt: skip


ITEMS = (
    Item("fig2", "Fig. 2: saving by deadline extension", fig2),
    Item("static", "Section 5: saving with static power", static_power),
    Item("losses", "Section 5, prices of Fig. 4: heuristic against the optimum", losses),
    Item("losses-stg", "The same on the Standard Task Graph set", stg_losses),
    Item("speed", "Section 5: time of the heuristic, last slots", speed),
)
