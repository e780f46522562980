"""Where a task goes that has lost its place: only what is known at that moment counts."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.simulate.kernels.tables import (
    AWAY,
    BUSY_S,
    LOOK_AHEAD,
    MARK,
    PLANNED_END_S,
    PLANNED_START_S,
    STATUS,
    WAITING,
    Log,
    Machines,
    Promises,
    Tasks,
)
from downclock.simulate.kernels.waits import believed_free, in_time, next_down, slot_up, usable


@inner
def reserved(promises: Promises, tasks: Tasks, machines: Machines, p: int, now_s: float) -> float:
    """When a processor is next promised; minus infinity where a task that has begun holds it."""
    if machines.turn[p, 0] == machines.turn[p, 1]:
        return np.inf
    row = machines.rows[machines.turn[p, 0]]
    i = promises.task[row]
    waits = tasks.flags[STATUS, i] == WAITING and tasks.flags[AWAY, i] == 0
    if (waits and tasks.flags[MARK, i] == 1) or tasks.state[BUSY_S, i] > now_s:
        return -np.inf
    return promises.times[PLANNED_START_S, row]


@inner
def refuge(
    promises: Promises,
    tasks: Tasks,
    machines: Machines,
    log: Log,
    i: int,
    now_s: float,
    slot_s: float,
) -> tuple[int, float]:
    """Processor where a task is to end soonest beside all promises, in time, and its start; or -1.

    Only what is known at ``now_s`` counts: estimated ends of what runs, machines that are down.
    A processor that is busy, or was until now, need not wake.
    """
    best, best_start, best_end = -1, 0.0, np.inf
    for p in range(machines.free_s.size):
        length = tasks.fast_s[i, machines.kind[p]]
        if machines.host[p] == 0 or length == np.inf:
            continue
        if usable(machines, p, now_s) > now_s:
            continue
        awake = machines.logged[p] >= 0 and machines.free_s[p] >= now_s
        start = believed_free(machines, log, p, now_s) if awake else now_s + machines.wake_s[p]
        start = slot_up(start, slot_s)
        end = slot_up(start + length, slot_s)
        if (
            end < best_end
            and in_time(tasks, i, end)
            and end <= reserved(promises, tasks, machines, p, now_s)
        ):
            best, best_start, best_end = p, start, end
    return best, best_start


@inner
def ask_again(machines: Machines, p: int, own: int, there_s: float, now_s: float) -> float:
    """When a task that waits for processor ``p`` asks again, after ``now_s``.

    When ``p`` is really free, or was believed to be, or fails, or the task's own processor is back.
    """
    until = next_down(machines, p, now_s)
    if there_s > now_s:
        until = min(until, there_s)
    if machines.free_s[p] > now_s:
        until = min(until, machines.free_s[p])
    back = usable(machines, own, now_s)
    return min(until, back) if back > now_s else until


@inner
def hope(promises: Promises, tasks: Tasks, machines: Machines, i: int, now_s: float) -> float:
    """When to ask again: a place that is long enough may be free then, in time; infinite: never.

    That is when what runs somewhere ends, which nobody knows before, or where a promise ends.
    """
    soonest = np.inf
    for p in range(machines.free_s.size):
        length = tasks.fast_s[i, machines.kind[p]]
        if machines.host[p] == 0 or length == np.inf:
            continue
        free = machines.free_s[p]
        if now_s < free < soonest and in_time(tasks, i, free + length):
            soonest = free
        first, end = machines.turn[p, 0], machines.turn[p, 1]
        for k in range(first, min(first + LOOK_AHEAD, end)):
            free = promises.times[PLANNED_END_S, machines.rows[k]]
            room = np.inf
            if k + 1 < end:
                room = promises.times[PLANNED_START_S, machines.rows[k + 1]] - free
            if now_s < free < soonest and room >= length and in_time(tasks, i, free + length):
                soonest = free
                break
    return soonest


@inner
def held_until(
    promises: Promises, tasks: Tasks, machines: Machines, row: int, now_s: float
) -> float:
    """When to ask again, as a task that has begun and comes back holds a processor of a bundle."""
    for r in range(row, row + promises.size[row]):
        p = promises.processor[r]
        if reserved(promises, tasks, machines, p, now_s) == -np.inf:
            return promises.times[PLANNED_END_S, machines.rows[machines.turn[p, 0]]]
    return now_s
