"""The cheapest intervals for a fixed order on every machine: one minimum cut.

With convex power the cost table is Monge, so that the problem is submodular in first and last
slots and the cut is exact. With other power functions costs are exact at the plan in hand and never
too low elsewhere: the cut finds no worse plan, and its answer is priced with the true table.
"""

from __future__ import annotations

import numpy as np

from downclock.planners.slots.kernels.cut import NEVER, cut
from downclock.planners.slots.kernels.lists import coloured, machine_edges, window_labels
from downclock.planners.slots.model import SlotGraph, SlotGraphIndex, SlotPlan
from downclock.units import Ints

PRECISION = float(1 << 36)
"""What the cost of a plan is scaled to; capacities are whole numbers."""

ROOM = float(1 << 43)
"""What the dearest intervals of all tasks are scaled to at most."""

NO_FLOW = np.zeros((0, 0))
NO_ANCHOR = np.zeros(0, dtype=np.int64)


def machines_of(index: SlotGraphIndex, plan: SlotPlan) -> Ints:
    """Place intervals on machines; neighbours that the graph orders anyway cost no freedom."""
    by_first = np.argsort(plan.first, kind="stable")
    return coloured(plan.first, plan.last, by_first, index.bits, index.graph.machines)


def order_edges(index: SlotGraphIndex, machine: Ints, first: Ints) -> tuple[Ints, Ints]:
    """Edges of the graph and between neighbours on machines, listed by first slot."""
    by_first = np.argsort(first, kind="stable")
    rows = machine_edges(machine, by_first, index.bits, index.graph.machines)
    before = np.concatenate([index.before, rows[:, 0]])
    after = np.concatenate([index.after, rows[:, 1]])
    by_time = np.argsort(first[before], kind="stable")
    return before[by_time], after[by_time]


def best_intervals(
    index: SlotGraphIndex,
    plan: SlotPlan,
    before: Ints,
    after: Ints,
    *,
    reach: int = -1,
    stride: int = 1,
) -> SlotPlan | None:
    """Cheapest intervals under all edges; None where they cannot be met.

    Edges must be listed by a topological order. With ``reach`` >= 0 only slots up to ``reach``
    strides from the plan are tried; None may then only mean that these are too few.
    """
    early, late, fits = index.windows(before, after)
    if not fits:
        return None
    at, lab = window_labels(early, late, index.length, plan.first, plan.last, reach, stride)
    toll = np.zeros(index.graph.slots + 1)
    known = bool(np.isfinite(plan.cost))
    scale = scale_for(index.graph, plan.cost) if known else PRECISION / _most(index)
    whole = index.graph.pause or index.table.shape[2] >= index.graph.slots
    anchored = known and not (index.monge and whole)
    anchor = _nearest(at, lab, plan) if anchored else NO_ANCHOR
    value, label, _ = cut(
        index.table, index.row, at, lab, toll, anchor, before, after, scale, NO_FLOW
    )
    if not value < 0.5 * NEVER / scale:
        return None
    slot = lab[at[:-1] + label]
    return index.plan(slot[0::2].copy(), slot[1::2].copy())


def scale_for(graph: SlotGraph, cost: float) -> float:
    """Scale of capacities for plans of about a cost; no sum of terms comes near `NEVER`."""
    longest = graph.least_slots if graph.pause else graph.least_slots + graph.slots
    dearest = float(graph.price.max() * graph.power.max() * longest.sum())
    return min(PRECISION / max(cost, 1e-300), ROOM / max(dearest, 1e-300))


def _nearest(at: Ints, lab: Ints, plan: SlotPlan) -> Ints:
    """Label of each variable that is nearest to the plan (2n,)."""
    slot = np.column_stack([plan.first, plan.last]).ravel()
    far = np.abs(lab - np.repeat(slot, np.diff(at)))
    order = np.lexsort((far, np.repeat(np.arange(slot.size), np.diff(at))))
    return np.asarray(order[at[:-1]] - at[:-1])


def _most(index: SlotGraphIndex) -> float:
    """Return a cost that no plan exceeds."""
    finite = np.where(np.isfinite(index.table), index.table, 0.0).max(axis=(1, 2))
    return float(finite[index.row].sum()) or 1.0
