"""Which task takes which interval: an assignment of least cost.

A cut finds the best intervals for an order of tasks; here the intervals stay and tasks change
places. Tasks of which none precedes another directly may take any interval between their
predecessors and their successors, so that the best exchange of all of them at once is a linear
assignment. Cheap slots go to tasks that gain most from them.
"""

from __future__ import annotations

import numpy as np

from downclock.planners.slots.model import SlotGraphIndex, SlotPlan
from downclock.units import Floats, Ints

MOST = 200
"""Tasks that change places at once at most; they follow each other in the plan."""


def reassigned(index: SlotGraphIndex, plan: SlotPlan, random: np.random.Generator) -> SlotPlan:
    """Exchange the intervals of some tasks for the better; the same plan where nothing is gained.

    Which tasks may move is drawn: no two of them are joined by an edge.
    """
    from scipy.optimize import linear_sum_assignment

    some = _apart(index, plan, random)
    cost = _costs(index, plan, some)
    _, chosen = linear_sum_assignment(cost)
    place = np.arange(some.size)
    if cost[place, chosen].sum() >= cost[place, place].sum() * (1.0 - 1e-9):
        return plan
    first, last = plan.first.copy(), plan.last.copy()
    first[some], last[some] = plan.first[some[chosen]], plan.last[some[chosen]]
    return index.plan(first, last)


def _apart(index: SlotGraphIndex, plan: SlotPlan, random: np.random.Generator) -> Ints:
    """Draw tasks without edges between them, from a stretch of the plan.

    Half of the time those with few edges go first: joins then stay, and most others may move.
    """
    n = len(index.graph)
    rank = random.random(n)
    if random.random() < 0.5:
        rank *= np.bincount(index.before, minlength=n) + np.bincount(index.after, minlength=n)
    stretch = np.argsort(plan.first, kind="stable")
    begin = int(random.integers(0, max(n - MOST, 0) + 1))
    stretch = stretch[begin : begin + MOST]
    taken, beside = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    for i in stretch[np.argsort(rank[stretch], kind="stable")]:
        if not beside[i]:
            taken[i] = True
            beside[index.pred[index.pred_at[i] : index.pred_at[i + 1]]] = True
            beside[index.succ[index.succ_at[i] : index.succ_at[i + 1]]] = True
    return np.flatnonzero(taken)


def _costs(index: SlotGraphIndex, plan: SlotPlan, some: Ints) -> Floats:
    """Cost of each of some tasks in the interval of each other (k, k); infinite where it may not.

    The plan's own are finite, so there is always an assignment.
    """
    low, high = index.graph.release.copy(), index.graph.due.copy()
    np.maximum.at(low, index.after, plan.last[index.before] + 1)
    np.minimum.at(high, index.before, plan.first[index.after] - 1)
    first, last = plan.first[some], plan.last[some]
    length = last - first + 1
    fits = (first >= low[some, None]) & (last <= high[some, None])
    fits &= length >= index.length[some, None]
    cost = index.table[index.row[some, None], first, np.minimum(length, index.table.shape[2]) - 1]
    return np.where(fits, cost, np.inf)
