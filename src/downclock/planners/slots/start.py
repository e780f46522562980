"""First schedules of a slot graph: list schedules whose tasks are stretched along their paths."""

from __future__ import annotations

import numpy as np

from downclock.kernels.graph_order import longest_from
from downclock.planners.slots.fluid import Fluid
from downclock.planners.slots.kernels.lists import Lengths, Neighbours, listed, slot_windows
from downclock.planners.slots.model import SlotGraph, SlotGraphIndex
from downclock.units import Floats, Ints

GOLDEN = 0.5 * (5.0**0.5 - 1.0)
"""Multiples of it, less whole numbers, spread evenly."""

HALVINGS = 12
"""Steps of the bisections for the slowest schedule that meets the deadlines."""


def path_levels(index: SlotGraphIndex, length: Floats) -> tuple[Floats, Floats]:
    """Longest path before each task, and from each task on with itself (n,)."""
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
    fixed = Lengths(np.zeros(length.size), length, length, np.zeros(1))
    first, _, machine, end = _listed(index, key, fixed, eager)
    return first, machine, end


def _listed(
    index: SlotGraphIndex, key: Floats, slots: Lengths, eager: bool
) -> tuple[Ints, Ints, Ints, int]:
    around = Neighbours(index.pred_at, index.pred, index.succ_at, index.succ, index.bits)
    return listed(key, slots, eager, index.graph.release, around, index.graph.machines)


def _stretch_room(index: SlotGraphIndex) -> tuple[Ints, Floats] | None:
    """Latest last slot of each task, and how often its least length its path leaves it (n,).

    None where a path is longer than its window.
    """
    early, late, fits = index.windows(index.before, index.after)
    if not fits:
        return None
    top, bottom = path_levels(index, index.length.astype(np.float64))
    return late, 1.0 + (late - early + 1 - index.length) / (top + bottom)


def fluid_paced_list(index: SlotGraphIndex, fluid: Fluid) -> tuple[Ints, Ints] | None:
    """First slots and lengths of the slowest list schedule at the pace of fluid work.

    Were work a fluid, every slot would have its best speed. Each task is as long as it takes
    at these speeds, but not longer than its longest path leaves it. Bisection finds the least
    speeds that meet the deadlines. None where even full speed is late.
    """
    graph, least, room = index.graph, index.length, _stretch_room(index)
    if room is None:
        return None
    key = room[0].astype(np.float64)  # by what comes after a task, not by the task itself
    most = np.maximum(least, np.floor(least * room[1])).astype(np.int64)
    cost, steps = fluid.marginals(graph.price), fluid.width.size
    # Steps that cost the same take turns.
    evenly = np.repeat(np.arange(graph.slots) * GOLDEN % 1.0, steps)
    slot, step = np.divmod(np.lexsort((evenly, cost.ravel())), steps)

    def at_pace(count: int) -> tuple[Ints, Ints] | None:
        filled = np.bincount(slot[:count], fluid.width[step[:count]], graph.slots)
        done = np.concatenate([[0.0], np.cumsum(filled)])
        first, length, _, _ = _listed(index, key, Lengths(fluid.work, least, most, done), True)
        return (first, length) if np.all(first + length - 1 <= graph.due) else None

    enough = np.searchsorted(np.cumsum(fluid.width[step]), fluid.need / graph.machines)
    low, high = int(enough), slot.size
    found = at_pace(high)
    for _ in range(HALVINGS if found is not None else 0):
        middle = (low + high) // 2
        better = at_pace(middle)
        if better is None:
            low = middle
        else:
            high, found = middle, better
    return found


def path_stretched(index: SlotGraphIndex) -> tuple[Ints, Ints] | None:
    """First slots and lengths of the longest-stretched list schedule that meets the deadlines.

    Every task is stretched by min(x, what its longest path leaves it), with the greatest x that
    bisection finds. None where even full speed is late.
    """
    room = _stretch_room(index)
    found = None if room is None else _stretched(index, room[1], 1.0)
    if room is None or found is None:
        return None
    low, high = 1.0, float(room[1].max())
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        better = _stretched(index, room[1], middle)
        if better is None:
            high = middle
        else:
            low, found = middle, better
    return found


def _stretched(index: SlotGraphIndex, room: Floats, x: float) -> tuple[Ints, Ints] | None:
    graph, least = index.graph, index.length
    length = np.maximum(least, np.floor(least * np.minimum(x, room))).astype(np.int64)
    _, late, _ = slot_windows(index.before, index.after, length, graph.release, graph.due)
    first, _, _ = list_schedule(index, (late - length).astype(np.float64), length, eager=True)
    return (first, length) if np.all(first + length - 1 <= graph.due) else None


def latest_starts(index: SlotGraphIndex) -> Floats:
    """Latest first slot of each task (n,) that leaves all after it in time at full speed."""
    _, late, _ = index.windows(index.before, index.after)
    return np.asarray(late - index.length + 1, dtype=np.float64)


def shortest_schedule(graph: SlotGraph, *, tries: int = 400, seed: int = 0) -> tuple[Ints, int]:
    """First slots at full speed of the least late list schedule found, and its makespan.

    Where all have one deadline it is the shortest one. Least slack first, then with disturbed
    priorities, eager and not in turns, until a bound is met or ``tries`` are used; deterministic
    for a seed.
    """
    index = SlotGraphIndex.of(graph)
    length, key = index.length, latest_starts(index)
    crowded = -(-int(length.sum()) // graph.machines) + graph.release.min() - 1 - graph.due.max()
    least = max(float((graph.release - key).max()), float(crowded))
    generator = np.random.default_rng(seed)
    best_first, best, makespan = np.zeros(0, dtype=np.int64), np.inf, 0
    for t in range(tries):
        noise = generator.normal(0.0, 0.01 + 4.0 * t / tries, len(graph)) if t else 0.0
        first, _, end = list_schedule(index, key - noise, length, eager=t % 2 == 0)
        late = float((first + length - 1 - graph.due).max())
        if late < best:
            best_first, best, makespan = first, late, int(end)
        if best <= least:
            break
    return best_first, makespan
