"""The search landscape (Fig. 3) and the price schedules (Fig. 4)."""

from __future__ import annotations

import numpy as np

from downclock.papers.gerhards import PAPER, instances
from downclock.papers.rows import Item, Row, Settings, judged
from downclock.planners.slots.budget import binary_search, sweep_search
from downclock.units import Floats

PERCENT = 20.0


def roughness(costs: Floats) -> float:
    """Part of the steps of a landscape that go up, among those where the cost changes."""
    change = np.diff(costs[np.isfinite(costs)])
    moved = change[np.abs(change) > 1e-12]
    return float(np.mean(moved > 0.0)) if moved.size else 0.0


def fig3(settings: Settings) -> list[Row]:
    """How smooth the landscape is, and how near binary search comes to the sweep."""
    curve = "epex" if "epex" in instances.curves() else "flat"
    prices = instances.curves()[curve]
    every, rough, apart = [], [], []
    for case in instances.cases(settings):
        graph = case.slotted(prices, PERCENT, instances.SQUARE)
        sweep, binary = sweep_search(graph, case.first), binary_search(graph, case.first)
        every.append(sweep.costs / graph.full_speed_cost(case.first))
        rough.append(100.0 * roughness(sweep.costs))
        apart.append(100.0 * (binary.cost / sweep.cost - 1.0))
    known = np.ma.masked_invalid(np.array(every)).mean(axis=0)
    mean = known.filled(np.inf)
    at = float(2.0 * (int(np.argmin(mean)) + 1) / mean.size)
    note = "the paper shows a picture and says smooth, very close"
    return [
        judged(PAPER, "fig3", "budget of least mean cost / cost of S", None, at, "ratio",
               because=note),
        judged(PAPER, "fig3", "steps that go up, single cases", None, float(np.mean(rough)), "%",
               because=note),
        judged(PAPER, "fig3", "steps that go up, mean landscape", None, 100.0 * roughness(mean),
               "%", because=note),
        judged(PAPER, "fig3", "binary search above the sweep", None, float(np.mean(apart)), "%",
               because=note),
    ]  # fmt: skip


def fig4(_: Settings) -> list[Row]:
    """First and last values of the price schedules, as the text defines them."""
    found = instances.curves()
    increasing, alternating = found["increasing"](23), found["alternating"](4)
    checks = [
        ("increasing, slot 0", 10.0, increasing[0]),
        ("increasing, slot 19", 10.0, increasing[19]),
        ("increasing, slot 20", 20.0, increasing[20]),
        ("increasing, slot 21", 30.0, increasing[21]),
        ("alternating, slot 2", 5.0, alternating[2]),
        ("alternating, slot 3", 50.0, alternating[3]),
    ]
    return [
        judged(PAPER, "fig4", name, value, float(ours), "price", digits=0)
        for name, value, ours in checks
    ]


ITEMS = (
    Item("fig3", "Fig. 3: search landscape", fig3),
    Item("fig4", "Fig. 4: price schedules", fig4),
)
