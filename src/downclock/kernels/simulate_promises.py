"""Carry out promised segments with real run times and faults, one pass in promised order.

A processor keeps the order of its promises. A segment starts when it was promised, or as soon as
its processors, its predecessors and the task's earlier segments are really done. A task ends when
its real work is done; its last promised segment goes on as long as that takes. An attempt that is
lost starts again at once on the same processors and runs in one go.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.compiling import compiled
from downclock.units import Floats, Ints

WAITING, FINISHED, LATE, LOST, ORPHAN = 0, 1, 2, 3, 4
"""How a task ends: not yet; done; done after its deadline; failed in every attempt; not run, as a
predecessor did not finish."""

TASK, ATTEMPT, PROCESSOR, ROW = 0, 1, 2, 3
"""Rows of ``Log.numbers``; ROW is the promised segment it comes from."""

START_S, END_S, SHARE = 0, 1, 2
"""Rows of ``Log.times``."""

PLANNED_START_S, PLANNED_END_S, PLANNED_SHARE, WHOLE_S = 0, 1, 2, 3
"""Rows of ``Promises.times``; WHOLE_S is the estimated time of the whole task at the point."""

LEFT, BUSY_S, FINISH_S = 0, 1, 2
"""Rows of ``Tasks.state``: part still to be done; end of its last segment; when it was done."""

STATUS, TRY, MARK, RESTARTED = 0, 1, 2, 3
"""Rows of ``Tasks.flags``: how it ends; number of the attempt; whether that has a segment; whether
it was lost before."""


class Promises(NamedTuple):
    """Promised segments by start, a gang's rows side by side (m,)."""

    task: Ints
    processor: Ints
    size: Ints  # rows of the bundle that begins here; 0 inside a bundle
    last: Ints  # 1 where no later segment of the task follows
    times: Floats  # (4, m)


class Tasks(NamedTuple):
    """The tasks (n,), what is drawn for them, and what has become of them."""

    deadline_s: Floats
    work: Floats
    breaks: Floats  # (n, attempts) part of its work after which the attempt fails; 2: never
    first: Ints  # (n + 1,) predecessors of task i are before[first[i]:first[i + 1]]
    before: Ints
    state: Floats  # (3, n)
    flags: Ints  # (4, n)


class Machines(NamedTuple):
    """The processors (p,) and when each is down: rows of ``down_s`` (start, usable again)."""

    free_s: Floats
    first: Ints  # (p + 1,)
    down_s: Floats  # (2, d)


class Log(NamedTuple):
    """What really ran, and the real end of each promised row (minus infinity: it never ran)."""

    numbers: Ints  # (4, rows)
    times: Floats  # (3, rows)
    row_end_s: Floats  # (m,)


@compiled
def _slot_up(time_s: float, slot_s: float) -> float:
    if slot_s <= 0.0:
        return time_s
    return np.ceil(time_s / slot_s - 1e-9) * slot_s


@compiled
def _usable(machines: Machines, p: int, time_s: float) -> float:
    """First moment at or after ``time_s`` when processor ``p`` is up."""
    for d in range(machines.first[p], machines.first[p + 1]):
        if machines.down_s[0, d] <= time_s < machines.down_s[1, d]:
            time_s = machines.down_s[1, d]
    return time_s


@compiled
def _next_down(machines: Machines, p: int, start_s: float) -> float:
    for d in range(machines.first[p], machines.first[p + 1]):
        if machines.down_s[0, d] > start_s:
            return machines.down_s[0, d]
    return np.inf


@compiled
def _ready(promises: Promises, tasks: Tasks, machines: Machines, row: int) -> float:
    """When everything a bundle waits for is done; NaN where a predecessor never is."""
    i = promises.task[row]
    ready = max(promises.times[PLANNED_START_S, row], tasks.state[BUSY_S, i])
    for r in range(row, row + promises.size[row]):
        ready = max(ready, machines.free_s[promises.processor[r]])
    for e in range(tasks.first[i], tasks.first[i + 1]):
        j = tasks.before[e]
        if tasks.flags[STATUS, j] != FINISHED:
            return np.nan
        ready = max(ready, tasks.state[FINISH_S, j])
    return ready


@compiled
def _begin(
    promises: Promises, machines: Machines, row: int, ready_s: float, slot_s: float
) -> float:
    """First moment when all processors of a bundle are up together."""
    again = True
    while again:
        again = False
        for r in range(row, row + promises.size[row]):
            up = _slot_up(_usable(machines, promises.processor[r], ready_s), slot_s)
            if up > ready_s:
                ready_s, again = up, True
    return _slot_up(ready_s, slot_s)


@compiled
def _planned_end(
    promises: Promises, tasks: Tasks, row: int, start_s: float, slot_s: float
) -> tuple[float, float]:
    """End and share of a segment if nothing breaks."""
    i = promises.task[row]
    planned = promises.times[PLANNED_END_S, row] - promises.times[PLANNED_START_S, row]
    left, restarted = tasks.state[LEFT, i], tasks.flags[RESTARTED, i] == 1
    if tasks.work[i] == 1.0 and not restarted:
        share = promises.times[PLANNED_SHARE, row]
        if start_s == promises.times[PLANNED_START_S, row]:
            return promises.times[PLANNED_END_S, row], share
        return start_s + planned, share
    whole = promises.times[WHOLE_S, row] * tasks.work[i]
    if restarted or promises.last[row] == 1 or planned >= left * whole * (1.0 - 1e-12):
        return _slot_up(start_s + left * whole, slot_s), left
    return start_s + planned, planned / whole


@compiled
def _stop(
    promises: Promises,
    tasks: Tasks,
    machines: Machines,
    row: int,
    start_s: float,
    end_s: float,
    slot_s: float,
) -> tuple[float, float]:
    """When a segment breaks before its end, and the end of what is logged; infinite if not.

    A job that fails holds its slot; a machine that goes down ends the slot before.
    """
    i = promises.task[row]
    stop, cut = np.inf, np.inf
    at = tasks.breaks[i, min(tasks.flags[TRY, i], tasks.breaks.shape[1] - 1)]
    done = 1.0 - tasks.state[LEFT, i]
    if at <= 1.0:
        stop = start_s + max(at - done, 0.0) * promises.times[WHOLE_S, row] * tasks.work[i]
        cut = _slot_up(stop, slot_s)
    for r in range(row, row + promises.size[row]):
        down = _next_down(machines, promises.processor[r], start_s)
        if down < cut:
            stop, cut = down, down
            if slot_s > 0.0:
                cut = np.floor(down / slot_s + 1e-9) * slot_s
    if stop < end_s:
        return stop, min(cut, end_s)
    return np.inf, np.inf


@compiled
def _write(
    promises: Promises,
    tasks: Tasks,
    machines: Machines,
    log: Log,
    row: int,
    start_s: float,
    end_s: float,
    share: float,
    count: int,
) -> int:
    """Log a bundle's segments and keep its processors busy until their end."""
    i = promises.task[row]
    for r in range(row, row + promises.size[row]):
        p = promises.processor[r]
        machines.free_s[p] = end_s
        log.row_end_s[r] = end_s
        log.numbers[TASK, count], log.numbers[ATTEMPT, count] = i, tasks.flags[TRY, i]
        log.numbers[PROCESSOR, count], log.numbers[ROW, count] = p, r
        log.times[START_S, count], log.times[END_S, count] = start_s, end_s
        log.times[SHARE, count] = share
        count += 1
    tasks.state[BUSY_S, i] = end_s
    tasks.flags[MARK, i] = 1
    return count


@compiled
def _lose(tasks: Tasks, i: int, retries: int) -> bool:
    """Count a lost attempt; tell whether another one is allowed."""
    if tasks.flags[MARK, i] == 1:
        tasks.flags[TRY, i] += 1
        tasks.flags[MARK, i] = 0
    tasks.state[LEFT, i] = 1.0
    tasks.flags[RESTARTED, i] = 1
    if tasks.flags[TRY, i] > retries:
        tasks.flags[STATUS, i] = LOST
        return False
    return True


@compiled
def _succeed(promises: Promises, tasks: Tasks, row: int, end_s: float, share: float) -> None:
    """Book the share of a segment that ran to its end."""
    i = promises.task[row]
    restarted = tasks.flags[RESTARTED, i] == 1
    left = tasks.state[LEFT, i] - share
    if left <= 1e-12 or promises.last[row] == 1 or restarted:
        tasks.state[LEFT, i], tasks.state[FINISH_S, i] = 0.0, end_s
        limit = tasks.deadline_s[i]
        on_time = end_s <= limit + 1e-9 * max(1.0, abs(limit))
        tasks.flags[STATUS, i] = FINISHED if on_time else LATE
    else:
        tasks.state[LEFT, i] = left


@compiled
def _carry_out(
    promises: Promises,
    tasks: Tasks,
    machines: Machines,
    log: Log,
    row: int,
    ready_s: float,
    slot_s: float,
    retries: int,
    count: int,
) -> int:
    """Run one bundle until it is done or given up."""
    i = promises.task[row]
    while True:
        start = _begin(promises, machines, row, ready_s, slot_s)
        end, share = _planned_end(promises, tasks, row, start, slot_s)
        stop, cut = _stop(promises, tasks, machines, row, start, end, slot_s)
        if stop == np.inf:
            count = _write(promises, tasks, machines, log, row, start, end, share, count)
            _succeed(promises, tasks, row, end, share)
            return count
        if cut > start:
            part = (cut - start) / (promises.times[WHOLE_S, row] * tasks.work[i])
            count = _write(promises, tasks, machines, log, row, start, cut, part, count)
        if not _lose(tasks, i, retries):
            return count
        ready_s = max(stop, cut)


@compiled
def carry_out(
    promises: Promises, tasks: Tasks, machines: Machines, log: Log, slot_s: float, retries: int
) -> int:
    """Run every promise; returns the number of segments in the log. Cost: linear.

    ``slot_s`` is 0 where time is continuous.
    """
    count = 0
    for row in range(promises.task.size):
        i = promises.task[row]
        if promises.size[row] == 0 or tasks.flags[STATUS, i] != WAITING:
            continue
        ready = _ready(promises, tasks, machines, row)
        if np.isnan(ready):
            tasks.flags[STATUS, i] = ORPHAN
            continue
        count = _carry_out(promises, tasks, machines, log, row, ready, slot_s, retries, count)
    return count
