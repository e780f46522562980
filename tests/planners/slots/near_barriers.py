"""Slot graphs with joins that a few tasks run beside."""

from __future__ import annotations

import numpy as np
from benchmarks.slot_graphs import near_barrier_graph

from downclock.planners.slots.model import SlotGraph
from downclock.planners.slots.start import shortest_schedule

UNITS = np.arange(1, 6)
SQUARE = (UNITS / 5) ** 2


def near_barriers(seed: int, *, machines: int, slots: int = 0, tasks: int = 12) -> SlotGraph:
    """Two joins, each with a task or more beside, in a fifth more slots than they need."""
    drawn = near_barrier_graph(stages=3, width=tasks // 4, beside=tasks // 6, seed=seed)
    work = np.maximum(1, drawn.work).astype(np.int64)
    graph = SlotGraph(work, drawn.edges, machines, np.ones(1), UNITS, SQUARE)
    needed = shortest_schedule(graph, tries=20)[1]
    price = np.random.default_rng(seed).uniform(0.2, 1.0, slots or int(1.2 * needed) + 1)
    return SlotGraph(work, drawn.edges, machines, price, UNITS, SQUARE)
