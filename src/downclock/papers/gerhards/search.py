"""The search landscape (Fig. 3), and the two searches against each other."""

from __future__ import annotations

import numpy as np

from downclock.papers.data import absent
from downclock.papers.gerhards import PAPER, instances, published
from downclock.papers.rows import Item, Row, Settings, claimed, not_run, ours_only
from downclock.planners.slots.budget import binary_search, sweep_search
from downclock.units import Floats

EXTENSIONS = (0.0, 5.0, 20.0)


def roughness(costs: Floats) -> float:
    """Percent of the steps of a landscape that go up, among those where the cost changes."""
    change = np.diff(costs[np.isfinite(costs)])
    moved = change[np.abs(change) > 1e-12]
    return 100.0 * float(np.mean(moved > 0.0)) if moved.size else 0.0


def fig3(settings: Settings) -> list[Row]:
    """How smooth the landscape is, and how near binary search comes to the sweep."""
    prices = instances.curves().get("epex")
    if prices is None:
        why = absent("prices")
        return [not_run((PAPER, "fig3"), "binary search above the sweep", None, "%", why)]
    every, rough, apart = [], [], []
    for percent in EXTENSIONS:
        for case in instances.cases(settings):
            graph = case.slotted(prices, percent, instances.SQUARE)
            sweep, binary = sweep_search(graph, case.first), binary_search(graph, case.first)
            apart.append(100.0 * (binary / sweep.cost - 1.0))
            if percent == EXTENSIONS[-1]:
                every.append(sweep.costs / graph.full_speed_cost(case.first))
                rough.append(roughness(sweep.costs))
    mean = np.ma.masked_invalid(np.array(every)).mean(axis=0).filled(np.inf)
    at = float(2.0 * (int(np.argmin(mean)) + 1) / mean.size)
    return [*_searches(np.array(apart)), *_landscape(at, rough, roughness(mean))]


def _searches(apart: Floats) -> list[Row]:
    """The two searches "did always return results very close to each other"."""
    where, limit = (PAPER, "fig3"), published.VERY_CLOSE
    words = f"{apart.size} cases, extensions of 0, 5 and 20 %; very close: within {limit:g} %"
    far = 100.0 * float(np.mean(np.abs(apart) > limit))
    worst = float(apart.max())
    return [
        claimed(where, "binary search above the sweep, at worst", "<", limit, worst, "%", words),
        ours_only(where, "binary search above the sweep, mean", float(apart.mean()), "%", words),
        ours_only(where, "cases in which the two are further apart", far, "% of cases", words),
    ]


def _landscape(at: float, rough: list[float], mean: float) -> list[Row]:
    """The landscape of a thousand budgets at 20 %: "quite smooth"."""
    where, note = (PAPER, "fig3"), "the paper shows a picture; of the budgets where cost changes"
    return [
        ours_only(where, "budget of least mean cost / cost of S", at, "ratio"),
        ours_only(where, "steps that go up, single cases", float(np.mean(rough)), "%", note),
        ours_only(where, "steps that go up, mean landscape", mean, "%", note),
    ]


ITEMS = (Item("fig3", "Fig. 3: search landscape, and search against search", fig3),)
