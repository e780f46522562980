"""First schedules of a slot graph: list schedules whose tasks are stretched along their paths."""

from __future__ import annotations

import numpy as np

from downclock.planners.slots.model import SlotGraph, SlotGraphIndex
from downclock.units import Floats, Ints

GOLDEN = 0.5 * (5.0**0.5 - 1.0)
"""Multiples of it, less whole numbers, spread evenly."""


def path_levels(index: SlotGraphIndex, length: Floats) -> tuple[Floats, Floats]:
    """Longest path before each task, and from each task on with itself (n,)."""
    from downclock.kernels.graph_order import longest_from

    backwards = np.ascontiguousarray(index.order[::-1])
    bottom = longest_from(length, index.order, index.succ_at, index.succ)
    top = longest_from(length, backwards, index.pred_at, index.pred) - length
    return top, bottom


def list_schedule(
    index: SlotGraphIndex, key: Floats, length: Ints, *, eager: bool = False
) -> tuple[Ints, Ints, int]:
    """First slot and machine of each task (n,), and the end; the least key goes first.

    Where ``eager`` no machine waits for a task while another could run on it.
    """
    first, _, machine, end = _listed(index, key, length, length, np.zeros(1), eager=eager)
    return first, machine, end


def _listed(
    index: SlotGraphIndex, key: Floats, least: Ints, most: Ints, done: Floats, *, eager: bool
) -> tuple[Ints, Ints, Ints, int]:
    from downclock.planners.slots.kernels.lists import listed

    graph = index.graph
    return listed(
        key, graph.work, least, most, done, eager, graph.release, index.pred_at,
        index.pred, index.succ_at, index.succ, index.bits, graph.machines,
    )  # fmt: skip


def fluid_paced_list(index: SlotGraphIndex, tries: int = 12) -> tuple[Ints, Ints] | None:
    """First slots and lengths of the slowest list schedule at the pace of liquid work.

    Were work one liquid, every slot would have its best speed. Each task is as long as it takes
    at these speeds, but not longer than its longest path leaves it. Bisection finds the least
    speeds that meet the deadline. None where even full speed is late.
    """
    graph, least = index.graph, index.length
    top, bottom = path_levels(index, least.astype(np.float64))
    room = (graph.due + 1) / (top + bottom)
    most = np.maximum(least, np.floor(least * room)).astype(np.int64)
    value = np.multiply.outer(graph.price, graph.unit_steps())
    # Steps that cost the same take turns.
    evenly = np.repeat(np.arange(graph.slots) * GOLDEN % 1.0, value.shape[1])
    cheapest = np.lexsort((evenly, value.ravel())) // value.shape[1]
    key = graph.due + 1.0 + least - bottom  # by what comes after a task, not by the task itself

    def at_pace(units: int) -> tuple[Ints, Ints] | None:
        done = np.cumsum(np.bincount(cheapest[:units], minlength=graph.slots)).astype(np.float64)
        done = np.concatenate([[0.0], done])
        first, length, _, _ = _listed(index, key, least, most, done, eager=True)
        return (first, length) if np.all(first + length - 1 <= graph.due) else None

    low, high = int(graph.work.sum()) // graph.machines, cheapest.size
    found = at_pace(high)
    for _ in range(tries if found is not None else 0):
        middle = (low + high) // 2
        better = at_pace(middle)
        if better is None:
            low = middle
        else:
            high, found = middle, better
    return found


def path_stretched(index: SlotGraphIndex, tries: int = 12) -> tuple[Ints, Ints] | None:
    """First slots and lengths of the longest-stretched list schedule that meets the deadline.

    Every task is stretched by min(x, deadline / longest path through it), with the greatest x
    that bisection finds. None where even full speed is late.
    """
    least = index.length
    low, high = 1.0, float(index.graph.slots)
    found = _stretched(index, 1.0)
    if found is None:
        return None
    top, bottom = path_levels(index, least.astype(np.float64))
    high = float(index.graph.slots / max(1.0, (top + bottom).min()))
    for _ in range(tries):
        middle = 0.5 * (low + high)
        better = _stretched(index, middle)
        if better is None:
            high = middle
        else:
            low, found = middle, better
    return found


def _stretched(index: SlotGraphIndex, x: float) -> tuple[Ints, Ints] | None:
    graph, least = index.graph, index.length
    top, bottom = path_levels(index, least.astype(np.float64))
    room = (graph.due + 1) / (top + bottom)
    length = np.maximum(least, np.floor(least * np.minimum(x, room))).astype(np.int64)
    _, after = path_levels(index, length.astype(np.float64))
    key = graph.due + 1.0 - after
    first, _, _ = list_schedule(index, key, length, eager=True)
    return (first, length) if np.all(first + length - 1 <= graph.due) else None


def shortest_schedule(graph: SlotGraph, *, tries: int = 400, seed: int = 0) -> tuple[Ints, int]:
    """First slots at full speed of the shortest list schedule found, and its makespan.

    Highest level first, then with disturbed priorities, eager and not in turns, until a bound is
    met or ``tries`` are used; deterministic for a seed.
    """
    index = SlotGraphIndex.of(graph)
    length = index.length
    _, bottom = path_levels(index, length.astype(np.float64))
    least = max(float(bottom.max()), -(-int(length.sum()) // graph.machines))
    generator = np.random.default_rng(seed)
    best_first, best = np.zeros(0, dtype=np.int64), 1 << 60
    for t in range(tries):
        noise = generator.normal(0.0, 0.01 + 4.0 * t / tries, len(graph)) if t else 0.0
        first, _, end = list_schedule(index, -(bottom + noise), length, eager=t % 2 == 0)
        if end < best:
            best_first, best = first, int(end)
        if best <= least:
            break
    return best_first, best
