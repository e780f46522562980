"""Carry out promised segments with real run times and faults, one pass in promised order.

A processor keeps the order of its promises. A segment starts when it was promised, or as soon as
its processors, its predecessors and the task's earlier segments are really done. A task ends when
its real work is done; its last promised segment goes on as long as that takes. An attempt that is
lost starts again at once on the same processors and runs in one go.

A task whose processor is down moves to another one that can still make it: where it fits before
what is promised there, at the fastest clock, ending soonest. That is judged by estimates: real
ends and failures are known when they come. It starts when the place is really free, and until then
it asks again as things change. Where there is none it waits for the repair or for the next room
that is promised. Such tasks stand in a queue and get their turn between the promises, by time.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.simulate.kernels.refuge import ask_again, held_until, hope, refuge
from downclock.simulate.kernels.tables import (
    ATTEMPT,
    AWAY,
    BEFORE,
    BUSY_S,
    END_S,
    ESTIMATE_S,
    FINISH_S,
    FINISHED,
    GUEST,
    LATE,
    LEFT,
    LOST,
    MARK,
    ORPHAN,
    PLANNED_END_S,
    PLANNED_SHARE,
    PLANNED_START_S,
    PROCESSOR,
    RESTARTED,
    ROW,
    SHARE,
    START_S,
    STATUS,
    TASK,
    TRY,
    TURN_S,
    WAITING,
    WHOLE_S,
    Log,
    Machines,
    Promises,
    Queue,
    Tasks,
)
from downclock.simulate.kernels.waits import (
    believed_free,
    bundle_begin,
    bundle_ready,
    in_time,
    next_down,
    predecessors_done,
    predecessors_turn,
    slot_down,
    slot_up,
    usable,
)


@inner
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
        return slot_up(start_s + left * whole, slot_s), left
    return start_s + planned, planned / whole


@inner
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
    left = tasks.state[LEFT, i]
    whole = promises.times[WHOLE_S, row] * tasks.work[i]
    stop, cut = _break(tasks, i, start_s, whole, slot_s)
    for r in range(row, row + promises.size[row]):
        down = next_down(machines, promises.processor[r], start_s)
        if down < cut:
            stop, cut = down, slot_down(down, slot_s)
    return _cut(stop, cut, start_s + left * whole, end_s, slot_s)


@inner
def _break(
    tasks: Tasks, i: int, start_s: float, whole_s: float, slot_s: float
) -> tuple[float, float]:
    """When the present attempt fails by itself, and the end of its slot; infinite if not."""
    at = tasks.breaks[i, min(tasks.flags[TRY, i], tasks.breaks.shape[1] - 1)]
    if at > 1.0:
        return np.inf, np.inf
    stop = start_s + max(at - (1.0 - tasks.state[LEFT, i]), 0.0) * whole_s
    return stop, slot_up(stop, slot_s)


@inner
def _cut(
    stop_s: float, cut_s: float, done_s: float, end_s: float, slot_s: float
) -> tuple[float, float]:
    """Where a segment that breaks ends; a last slot that is not full is left out."""
    if stop_s >= end_s:
        return np.inf, np.inf
    return stop_s, cut_s if cut_s <= done_s else slot_down(stop_s, slot_s)


@inner
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
    estimate = promises.times[PLANNED_END_S, row] - promises.times[PLANNED_START_S, row]
    if tasks.flags[RESTARTED, i] == 1:
        estimate = tasks.state[LEFT, i] * promises.times[WHOLE_S, row]
    for r in range(row, row + promises.size[row]):
        log.row_end_s[r] = end_s
        p = promises.processor[r]
        log.times[ESTIMATE_S, count] = estimate
        count = _note(promises, tasks, machines, log, r, p, 0, start_s, end_s, share, count)
    return count


@inner
def _note(
    promises: Promises,
    tasks: Tasks,
    machines: Machines,
    log: Log,
    row: int,
    p: int,
    guest: int,
    start_s: float,
    end_s: float,
    share: float,
    count: int,
) -> int:
    """Log one segment."""
    i = promises.task[row]
    machines.free_s[p] = end_s
    log.numbers[BEFORE, count], machines.logged[p] = machines.logged[p], count
    log.numbers[TASK, count], log.numbers[ATTEMPT, count] = i, tasks.flags[TRY, i]
    log.numbers[PROCESSOR, count], log.numbers[ROW, count] = p, row
    log.numbers[GUEST, count] = guest
    log.times[START_S, count], log.times[END_S, count] = start_s, end_s
    log.times[SHARE, count] = share
    tasks.state[BUSY_S, i] = end_s
    tasks.flags[MARK, i] = 1
    return count + 1


@inner
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


@inner
def _finish(tasks: Tasks, i: int, end_s: float) -> None:
    tasks.state[LEFT, i], tasks.state[FINISH_S, i] = 0.0, end_s
    tasks.flags[STATUS, i] = FINISHED if in_time(tasks, i, end_s) else LATE


@inner
def _succeed(promises: Promises, tasks: Tasks, row: int, end_s: float, share: float) -> None:
    """Book the share of a segment that ran to its end."""
    i = promises.task[row]
    restarted = tasks.flags[RESTARTED, i] == 1
    left = tasks.state[LEFT, i] - share
    if left <= 1e-12 or promises.last[row] == 1 or restarted:
        _finish(tasks, i, end_s)
    else:
        tasks.state[LEFT, i] = left


@inner
def _forgot(promises: Promises, tasks: Tasks, machines: Machines, row: int, now_s: float) -> bool:
    """Tell whether a processor of a task that has begun was down since its last segment."""
    i = promises.task[row]
    if tasks.flags[MARK, i] == 0 or tasks.state[LEFT, i] == 1.0:
        return False
    for r in range(row, row + promises.size[row]):
        p = promises.processor[r]
        for d in range(machines.first[p], machines.first[p + 1]):
            if tasks.state[BUSY_S, i] <= machines.down_s[0, d] <= now_s:
                return True
    return False


@inner
def _carry_out(
    promises: Promises,
    tasks: Tasks,
    machines: Machines,
    queue: Queue,
    log: Log,
    row: int,
    ready_s: float,
    slot_s: float,
    retries: int,
    count: int,
) -> int:
    """Run one bundle until it is done or given up, or stands in the queue."""
    i = promises.task[row]
    while True:
        start = bundle_begin(promises, machines, row, ready_s, slot_s)
        if _forgot(promises, tasks, machines, row, start) and not _lose(tasks, i, retries):
            return count
        wished = slot_up(ready_s, slot_s)
        if start > wished and tasks.movable[i] == 1:
            _enqueue(promises, tasks, queue, row, wished)
            return count
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


@inner
def _enqueue(promises: Promises, tasks: Tasks, queue: Queue, row: int, time_s: float) -> None:
    """Let a task wait for its turn at ``time_s``."""
    k = queue.length[0]
    queue.time_s[k], queue.row[k] = time_s, row
    queue.length[0] += 1
    i = promises.task[row]
    tasks.flags[AWAY, i], tasks.flags[RESTARTED, i] = 1, 1
    tasks.state[TURN_S, i] = time_s


@inner
def _soonest(queue: Queue) -> int:
    """Position of the next task in the queue, -1: it is empty. Cost: its length."""
    best = -1
    for k in range(queue.length[0]):
        first = best < 0 or queue.time_s[k] < queue.time_s[best]
        if first or (queue.time_s[k] == queue.time_s[best] and queue.row[k] < queue.row[best]):
            best = k
    return best


@inner
def _visit(
    promises: Promises,
    tasks: Tasks,
    machines: Machines,
    queue: Queue,
    log: Log,
    row: int,
    p: int,
    start_s: float,
    slot_s: float,
    retries: int,
    count: int,
) -> int:
    """Run a whole task on another processor until it is done or that breaks, too."""
    i = promises.task[row]
    whole = tasks.fast_s[i, machines.kind[p]] * tasks.work[i]
    end = slot_up(start_s + whole, slot_s)
    stop, cut = _break(tasks, i, start_s, whole, slot_s)
    down = next_down(machines, p, start_s)
    if down < cut:
        stop, cut = down, slot_down(down, slot_s)
    stop, cut = _cut(stop, cut, start_s + whole, end, slot_s)
    if stop == np.inf:
        count = _note(promises, tasks, machines, log, row, p, 1, start_s, end, 1.0, count)
        _finish(tasks, i, end)
        return count
    if cut > start_s:
        share = (cut - start_s) / whole
        count = _note(promises, tasks, machines, log, row, p, 1, start_s, cut, share, count)
    if _lose(tasks, i, retries):
        _enqueue(promises, tasks, queue, row, max(stop, cut))
    return count


@inner
def _settle(
    promises: Promises,
    tasks: Tasks,
    machines: Machines,
    queue: Queue,
    log: Log,
    k: int,
    slot_s: float,
    retries: int,
    count: int,
) -> int:
    """Give the task at position ``k`` of the queue a place: elsewhere, or its own again."""
    now, row = queue.time_s[k], queue.row[k]
    last = queue.length[0] - 1
    queue.time_s[k], queue.row[k] = queue.time_s[last], queue.row[last]
    queue.length[0] = last
    i, own = promises.task[row], promises.processor[row]
    tasks.flags[AWAY, i] = 0
    if tasks.state[LEFT, i] < 1.0 and not _lose(tasks, i, retries):
        return count
    waits, done = predecessors_turn(tasks, i), predecessors_done(tasks, i)
    if np.isnan(waits):
        tasks.flags[STATUS, i] = ORPHAN
        return count
    up = usable(machines, own, now)
    if waits >= now or done > now:
        _enqueue(promises, tasks, queue, row, max(waits, done))
        return count
    start = slot_up(believed_free(machines, log, own, now), slot_s)
    kept = up == now and in_time(tasks, i, start + promises.times[WHOLE_S, row])
    p, there = -1, now
    if tasks.movable[i] == 1 and not kept:
        p, there = refuge(promises, tasks, machines, log, i, now, slot_s)
        if p >= 0 and machines.free_s[p] <= now and there < next_down(machines, p, now):
            return _visit(
                promises, tasks, machines, queue, log, row, p, there, slot_s, retries, count
            )
    if p >= 0:
        until = ask_again(machines, p, own, there, now)
        until = min(until, hope(promises, tasks, machines, i, now))
    elif tasks.movable[i] == 1 and up > now:
        until = min(up, hope(promises, tasks, machines, i, now))
    else:
        until = held_until(promises, tasks, machines, row, now)
    if until > now:
        _enqueue(promises, tasks, queue, row, until)
        return count
    ready = bundle_ready(promises, tasks, machines, row, now)
    return _carry_out(promises, tasks, machines, queue, log, row, ready, slot_s, retries, count)


@compiled
def carry_out(
    promises: Promises,
    tasks: Tasks,
    machines: Machines,
    queue: Queue,
    log: Log,
    slot_s: float,
    retries: int,
) -> int:
    """Run every promise; returns the number of segments in the log.

    ``slot_s`` is 0 where time is continuous. Cost: linear, and for each task that loses its place
    the processors and the length of the queue.
    """
    count, row, k = 0, 0, -1
    while row < promises.task.size or k >= 0:
        start = promises.times[PLANNED_START_S, row] if row < promises.task.size else np.inf
        if k >= 0 and queue.time_s[k] <= start:
            count = _settle(promises, tasks, machines, queue, log, k, slot_s, retries, count)
            k = _soonest(queue)
            continue
        size = promises.size[row]
        for r in range(row, row + size):
            machines.turn[promises.processor[r], 0] += 1
        i = promises.task[row]
        row += 1
        if size == 0 or tasks.flags[STATUS, i] != WAITING or tasks.flags[AWAY, i] == 1:
            continue
        waits, before = predecessors_turn(tasks, i), queue.length[0]
        if np.isnan(waits):
            tasks.flags[STATUS, i] = ORPHAN
        elif waits > -np.inf:
            _enqueue(promises, tasks, queue, row - 1, max(waits, start))
        else:
            ready = bundle_ready(promises, tasks, machines, row - 1, start)
            count = _carry_out(
                promises, tasks, machines, queue, log, row - 1, ready, slot_s, retries, count
            )
        if queue.length[0] > before:
            k = _soonest(queue)
    return count
