"""Prove a plan optimal, or find the better one: prices, reduced-cost fixing, HiGHS.

Prices for machines give a bound and, from the residuals of their cut, what every single interval
costs at least. Intervals dearer than the plan in hand are dropped; what is left is usually a small
interval program.
"""

from __future__ import annotations

import numpy as np

from downclock.exact.cost_bounds import SAFE, CapacityPrices
from downclock.exact.cost_model import SlotGraphIndex, SlotPlan
from downclock.exact.cost_program import Columns, solve_intervals
from downclock.units import Floats


def surviving(prices: CapacityPrices, upper: float, table: Floats) -> Columns:
    """Columns that a plan cheaper than ``upper`` may use, by the best prices known.

    ``table`` is the true cost table; the prices may have been found on its envelope.
    """
    from downclock.kernels.cost_cut import surviving_intervals

    value, answer = prices.residuals(upper)
    gap = upper - value + SAFE * upper
    index = prices.index
    rows = surviving_intervals(prices.table, index.row, *answer, gap)
    task, first, last = (np.ascontiguousarray(column) for column in rows.T)
    cost = table[index.row[task], first, last - first]
    real = np.isfinite(cost)
    return Columns(task[real], first[real], last[real], cost[real])


def prove(
    index: SlotGraphIndex,
    prices: CapacityPrices,
    table: Floats,
    plan: SlotPlan,
    *,
    seconds: float,
    largest: int = 200_000,
) -> tuple[SlotPlan, float]:
    """Return the best plan and a bound; they meet where optimality is proven in time."""
    columns = surviving(prices, plan.cost, table)
    if len(columns) > largest:
        return plan, prices.bound
    answer = solve_intervals(index.graph, columns, seconds=seconds)
    # Plans with dropped columns cost at least the plan in hand.
    bound = max(prices.bound, min(answer.bound * (1.0 - SAFE), plan.cost))
    if answer.chosen is None:
        return plan, bound
    first, last = columns.first[answer.chosen], columns.last[answer.chosen]
    found = SlotPlan(first, last, float(columns.cost[answer.chosen].sum()))
    if answer.proven:
        bound = max(bound, min(found.cost, plan.cost) * (1.0 - 1e-7))
    return (found if found.cost < plan.cost else plan), bound
