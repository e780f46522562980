"""The budget heuristic of gerhards section 4: sweep and binary search over one budget.

It keeps machines and order of a given schedule at full speed, gives every slot the same budget,
and runs each task as fast as its slots' remaining budget allows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.planners.slots.kernels.budget import map_by_budget
from downclock.planners.slots.model import SlotGraph, SlotGraphIndex, SlotPlan
from downclock.planners.slots.order import machines_of, order_edges
from downclock.units import Floats, Ints

SIGMA = 2.0
"""B = sigma times the cost of the given schedule."""

STEPS = 1000


class Sweep(NamedTuple):
    """Best cost found, that of the given schedule where no budget does better; all costs."""

    cost: float
    costs: Floats


def sweep_search(graph: SlotGraph, start: Ints, *, steps: int = STEPS) -> Sweep:
    """Try ``steps`` equal steps of the budget up to sigma times the cost of S."""
    own, arguments = graph.full_speed_cost(start), _arguments(graph, start)
    budgets = SIGMA * own * np.arange(1, steps + 1) / steps
    costs = np.array([map_by_budget(each, *arguments)[0] for each in budgets / graph.slots])
    return Sweep(min(own, float(costs.min())), costs)


def binary_search(graph: SlotGraph, start: Ints) -> float:
    """Halve the budgets between 0 and sigma times the cost of S until they meet; the best cost.

    A middle budget that is feasible and cheaper than the best so far becomes the upper end,
    any other one the lower end (the paper does not print the rule; this is our reading).
    """
    own, arguments = graph.full_speed_cost(start), _arguments(graph, start)
    low, high, best = 0.0, SIGMA * own, own
    while high - low > 1e-4 * own:
        middle = 0.5 * (low + high)
        cost, _, _ = map_by_budget(middle / graph.slots, *arguments)
        if cost < best:
            best, high = cost, middle
        else:
            low = middle
    return float(best)


def _arguments(graph: SlotGraph, start: Ints):  # type: ignore[no-untyped-def]
    """Return what the mapper needs besides the budget: S with its order, and the slots."""
    index = SlotGraphIndex.of(graph)
    given = SlotPlan(start, start + index.length - 1, np.nan)
    before, after = order_edges(index, machines_of(index, given), start)
    return start, before, after, graph.work, graph.price, graph.units[0], graph.power[0]
