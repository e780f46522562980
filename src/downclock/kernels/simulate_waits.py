"""When things may begin: slots, processors that are down, predecessors."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.kernels.simulate_tables import (
    AWAY,
    BUSY_S,
    FINISH_S,
    FINISHED,
    STATUS,
    TURN_S,
    Machines,
    Promises,
    Tasks,
)


@inner
def slot_up(time_s: float, slot_s: float) -> float:
    """Beginning of the next slot, or the time itself where there are none."""
    if slot_s <= 0.0:
        return time_s
    return np.ceil(time_s / slot_s - 1e-9) * slot_s


@inner
def slot_down(time_s: float, slot_s: float) -> float:
    """Beginning of the slot that a time lies in, or the time itself where there are none."""
    if slot_s <= 0.0:
        return time_s
    return np.floor(time_s / slot_s + 1e-9) * slot_s


@inner
def usable(machines: Machines, p: int, time_s: float) -> float:
    """First moment at or after ``time_s`` when processor ``p`` is up."""
    for d in range(machines.first[p], machines.first[p + 1]):
        if machines.down_s[0, d] <= time_s < machines.down_s[1, d]:
            time_s = machines.down_s[1, d]
    return time_s


@inner
def next_down(machines: Machines, p: int, start_s: float) -> float:
    """When processor ``p`` goes down next, after ``start_s``; infinite: never."""
    for d in range(machines.first[p], machines.first[p + 1]):
        if machines.down_s[0, d] > start_s:
            return machines.down_s[0, d]
    return np.inf


@inner
def bundle_ready(
    promises: Promises, tasks: Tasks, machines: Machines, row: int, now_s: float
) -> float:
    """When everything a bundle waits for is done, from ``now_s`` on."""
    i = promises.task[row]
    ready = max(now_s, tasks.state[BUSY_S, i])
    for r in range(row, row + promises.size[row]):
        ready = max(ready, machines.free_s[promises.processor[r]])
    for e in range(tasks.first[i], tasks.first[i + 1]):
        ready = max(ready, tasks.state[FINISH_S, tasks.before[e]])
    return ready


@inner
def predecessors_turn(tasks: Tasks, i: int) -> float:
    """When the last predecessor in the queue has its turn; NaN where one never finishes.

    Minus infinity where none is in the queue.
    """
    turn = -np.inf
    for e in range(tasks.first[i], tasks.first[i + 1]):
        j = tasks.before[e]
        if tasks.flags[AWAY, j] == 1:
            turn = max(turn, tasks.state[TURN_S, j])
        elif tasks.flags[STATUS, j] != FINISHED:
            return np.nan
    return turn


@inner
def predecessors_done(tasks: Tasks, i: int) -> float:
    """When the predecessors were done."""
    done = -np.inf
    for e in range(tasks.first[i], tasks.first[i + 1]):
        done = max(done, tasks.state[FINISH_S, tasks.before[e]])
    return done


@inner
def bundle_begin(
    promises: Promises, machines: Machines, row: int, ready_s: float, slot_s: float
) -> float:
    """First moment when all processors of a bundle are up together."""
    again = True
    while again:
        again = False
        for r in range(row, row + promises.size[row]):
            up = slot_up(usable(machines, promises.processor[r], ready_s), slot_s)
            if up > ready_s:
                ready_s, again = up, True
    return slot_up(ready_s, slot_s)
