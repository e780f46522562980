"""Unequal machines, or machines with their own prices, under a fixed order: still one cut.

Without equal machines an interval alone no longer tells the cost of a task. Once every task has
its machine it does again: the table is that of the machine, and neighbours on a machine are edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from downclock.errors import InvalidInput
from downclock.exact.cost_model import SlotGraph, SlotGraphIndex, SlotPlan, cost_table
from downclock.exact.cost_order import best_intervals, order_edges
from downclock.units import Ints


def best_on_machines(machines: Sequence[SlotGraph], machine: Ints, rank: Ints) -> SlotPlan | None:
    """Cheapest intervals where every task has its machine and its place in the machine's queue.

    Args:
        machines: the graph as each machine sees it: same work, edges and slots, with the price,
            levels and power of that machine.
        machine: machine of each task (n,).
        rank: order of the tasks (n,), least first, that agrees with the edges.

    Returns:
        The plan, or None where that order misses the deadline. Exact where power is convex and
        levels are even on every machine, else a plan priced with the true tables.
    """
    common = machines[0]
    if any(other.slots != common.slots or len(other) != len(common) for other in machines):
        raise InvalidInput("must have the same tasks and slots", item="machines")
    if np.any(rank[common.edges.before] >= rank[common.edges.after]):
        raise InvalidInput("puts a task before its predecessor", item="rank")
    index = SlotGraphIndex.of(replace(common, machines=len(machines)))
    tables = [cost_table(SlotGraphIndex.of(each), common.slots) for each in machines]
    least = np.array([each.least_slots for each in machines])
    every = np.arange(len(common))
    own = replace(
        index,
        row=machine * index.works.size + index.row,
        length=np.ascontiguousarray(least[machine, every]),
    )
    before, after = order_edges(own, machine, rank)
    nowhere = SlotPlan(rank, rank, np.inf)
    return best_intervals(own, np.concatenate(tables), nowhere, before, after)
