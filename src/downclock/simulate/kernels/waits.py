"""When things may begin: slots, processors that are down, predecessors."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.simulate.kernels.tables import (
    AWAY,
    BEFORE,
    BUSY_S,
    END_S,
    ESTIMATE_S,
    FINISH_S,
    FINISHED,
    LONGER,
    ROW,
    START_S,
    STATUS,
    TURN_S,
    Log,
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
def in_time(tasks: Tasks, i: int, end_s: float) -> bool:
    """Tell whether an end meets the deadline of task ``i``."""
    limit = tasks.deadline_s[i]
    return end_s <= limit + 1e-9 * max(1.0, abs(limit))


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
def believed_free(machines: Machines, log: Log, p: int, now_s: float) -> float:
    """When processor ``p`` will be free, as far as is known at ``now_s``; at least that.

    What runs is believed to take its estimate, or a little longer where it is overdue; what should
    have begun follows it. Real ends, and attempts that are lost later, are in the log and unknown.
    """
    free, row, length = now_s, -1, 0.0
    waiting, k = 0.0, machines.logged[p]
    if machines.free_s[p] <= now_s:
        return now_s
    while k >= 0:
        start, same = log.times[START_S, k], log.numbers[ROW, k] == row
        if start <= now_s:
            if log.times[END_S, k] > now_s:
                free = start + log.times[ESTIMATE_S, k]
                if free <= now_s:
                    free = now_s + LONGER * (now_s - start)
                waiting -= length if same else 0.0
            break
        waiting -= length if same else 0.0
        row, length = log.numbers[ROW, k], log.times[ESTIMATE_S, k]
        waiting += length
        k = log.numbers[BEFORE, k]
    return free + max(waiting, 0.0)


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
