"""List scheduling of task graphs on equal cores: orders, levels, greedy and insertion decoders.

A graph is ``work`` (n,) in clock cycles and its edges as two ragged columns: the successors of
task ``i`` are ``succ[succ_at[i]:succ_at[i + 1]]``, its predecessors likewise in ``pred``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from downclock.kernels.compiling import compiled

Array = np.ndarray[Any, np.dtype[Any]]


@compiled
def _sift_up(heap: Array, size: int, item: int) -> int:
    """Push ``item`` on a min-heap of ranks; return the new size."""
    k = size
    while k > 0 and heap[(k - 1) // 2] > item:
        heap[k] = heap[(k - 1) // 2]
        k = (k - 1) // 2
    heap[k] = item
    return size + 1


@compiled
def _sift_down(heap: Array, size: int) -> int:
    """Remove the least rank of a min-heap; return the new size."""
    size -= 1
    item = heap[size]
    k = 0
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= item:
            break
        heap[k] = heap[child]
        k = child
    heap[k] = item
    return size


@compiled
def _release(
    i: int,
    now: float,
    work: Array,
    rank: Array,
    succ_at: Array,
    succ: Array,
    missing: Array,
    start: Array,
    heap: Array,
    size: int,
    stack: Array,
) -> int:
    """Make the successors of a finished task ready; zero-work tasks take no core and no time."""
    stack[0] = i
    depth = 1
    while depth > 0:
        depth -= 1
        i = stack[depth]
        for e in range(succ_at[i], succ_at[i + 1]):
            j = succ[e]
            missing[j] -= 1
            if missing[j] == 0 and work[j] > 0.0:
                size = _sift_up(heap, size, rank[j])
            elif missing[j] == 0:
                start[j] = now
                stack[depth] = j
                depth += 1
    return size


@compiled
def _open_heap(
    work: Array,
    rank: Array,
    pred_at: Array,
    succ_at: Array,
    succ: Array,
    missing: Array,
    start: Array,
    heap: Array,
    stack: Array,
) -> int:
    """Fill the heap with the tasks that are ready at time 0."""
    n = work.size
    size = 0
    for i in range(n):
        missing[i] = pred_at[i + 1] - pred_at[i]
    for i in range(n):
        if pred_at[i + 1] == pred_at[i]:
            if work[i] > 0.0:
                size = _sift_up(heap, size, rank[i])
            else:
                start[i] = 0.0
                size = _release(
                    i, 0.0, work, rank, succ_at, succ, missing, start, heap, size, stack
                )
    return size


@compiled
def greedy_into(
    work: Array,
    rank: Array,
    pred_at: Array,
    succ_at: Array,
    succ: Array,
    task_at: Array,
    start: Array,
    core: Array,
    omega: Array,
    missing: Array,
    heap: Array,
    stack: Array,
    busy_until: Array,
    running: Array,
) -> float:
    """Work-conserving list schedule into ``start``, ``core`` and ``omega``; return the makespan.

    At every completion all tasks that end then release their successors; then the free cores,
    lowest number first, take the ready tasks by rank (0 first). ``task_at`` inverts ``rank``;
    ``omega[m]`` is the number of cycles with exactly ``m`` cores at work. The last five arrays
    are scratch. Zero-work tasks have core -1.
    """
    cores = busy_until.size
    omega[:] = 0.0
    core[:] = -1
    running[:] = -1
    size = _open_heap(work, rank, pred_at, succ_at, succ, missing, start, heap, stack)
    now = 0.0
    active = 0
    while size > 0 or active > 0:
        for c in range(cores):
            if size == 0 or active == cores:
                break
            if running[c] < 0:
                i = task_at[heap[0]]
                size = _sift_down(heap, size)
                running[c] = i
                busy_until[c] = now + work[i]
                start[i] = now
                core[i] = c
                active += 1
        after = np.inf
        for c in range(cores):
            if running[c] >= 0 and busy_until[c] < after:
                after = busy_until[c]
        omega[active] += after - now
        now = after
        for c in range(cores):
            i = running[c]
            if i >= 0 and busy_until[c] <= now:
                running[c] = -1
                active -= 1
                size = _release(
                    i, now, work, rank, succ_at, succ, missing, start, heap, size, stack
                )
    return now


@compiled
def greedy_schedule(
    work: Array, task_at: Array, pred_at: Array, succ_at: Array, succ: Array, cores: int
) -> tuple[Array, Array, Array]:
    """Return (start, core, omega) of the greedy list schedule; ``task_at`` lists tasks by rank."""
    n = work.size
    rank = np.empty(n, np.int64)
    for k in range(n):
        rank[task_at[k]] = k
    start, core, omega = np.zeros(n), np.empty(n, np.int64), np.zeros(cores + 1)
    missing, heap, stack = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n + 1, np.int64)
    busy_until, running = np.zeros(cores), np.empty(cores, np.int64)
    greedy_into(
        work, rank, pred_at, succ_at, succ, task_at, start, core, omega,
        missing, heap, stack, busy_until, running,
    )  # fmt: skip
    return start, core, omega


@compiled
def _gap_on(starts: Array, ends: Array, count: int, ready: float, length: float) -> int:
    """Return the place of the first gap of ``length`` after ``ready`` among sorted slots."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if ends[middle] <= ready:
            low = middle + 1
        else:
            high = middle
    free = ready
    for k in range(low, count):
        if starts[k] - free >= length:
            return k
        free = max(free, ends[k])
    return count


@compiled
def insertion_schedule(
    work: Array, task_at: Array, pred_at: Array, pred: Array, cores: int
) -> tuple[Array, Array]:
    """Return (start, core): each task in turn takes the earliest gap on any core (HEFT).

    ``task_at`` must list predecessors before successors.
    """
    n = work.size
    start, end, core = np.zeros(n), np.zeros(n), np.full(n, -1, np.int64)
    slots = np.full((cores, 16), np.inf)
    until = np.full((cores, 16), np.inf)
    count = np.zeros(cores, np.int64)
    for k in range(n):
        i = task_at[k]
        ready = 0.0
        for e in range(pred_at[i], pred_at[i + 1]):
            ready = max(ready, end[pred[e]])
        start[i], end[i] = ready, ready
        if work[i] <= 0.0:
            continue
        best, place, where = np.inf, 0, 0
        for c in range(cores):
            g = _gap_on(slots[c], until[c], count[c], ready, work[i])
            begin = ready if g == 0 else max(ready, until[c, g - 1])
            if begin < best:
                best, place, where = begin, g, c
            if begin == ready:
                break
        start[i], end[i], core[i] = best, best + work[i], where
        if count[where] == slots.shape[1]:
            wider = np.full((cores, 2 * slots.shape[1]), np.inf)
            wider[:, : slots.shape[1]] = slots
            slots = wider
            wider = np.full((cores, 2 * until.shape[1]), np.inf)
            wider[:, : until.shape[1]] = until
            until = wider
        for g in range(count[where], place, -1):
            slots[where, g] = slots[where, g - 1]
            until[where, g] = until[where, g - 1]
        slots[where, place], until[where, place] = start[i], end[i]
        count[where] += 1
    return start, core


@compiled
def parallelism(start: Array, end: Array, by_start: Array, by_end: Array, cores: int) -> Array:
    """Return ``omega`` (cores + 1,): cycles with exactly m tasks running (gerards section 3.3).

    ``by_start`` and ``by_end`` sort the tasks with positive work. The last entry also counts
    what runs on more than ``cores``.
    """
    omega = np.zeros(cores + 1)
    active, a, b = 0, 0, 0
    now = 0.0
    while b < by_end.size:
        if a < by_start.size and start[by_start[a]] < end[by_end[b]]:
            at = start[by_start[a]]
            omega[min(active, cores)] += at - now
            active += 1
            a += 1
        else:
            at = end[by_end[b]]
            omega[min(active, cores)] += at - now
            active -= 1
            b += 1
        now = at
    return omega


@compiled
def cores_of_intervals(
    start: Array, end: Array, by_start: Array, reach: Array, cores: int
) -> Array:
    """Return a core per task so that none overlap but for rounding; -1 where none is free.

    A free core whose last task precedes the new one anyway (a bit of ``reach``) is best: their
    order on the core then binds nothing. Else the core that is free the longest. ``reach``
    (n, words) may have no words: then only idle time counts.
    """
    core = np.full(start.size, -1, np.int64)
    last = np.full(cores, -1, np.int64)
    one = np.uint64(1)
    for k in range(by_start.size):
        i = by_start[k]
        best, best_score = -1, -np.inf
        for c in range(cores):
            j = last[c]
            idle = start[i] - end[j] if j >= 0 else start[i] + 1.0
            if idle < -1e-12 * start[i]:
                continue
            score = idle
            if j >= 0 and reach.shape[1] > 0 and reach[j, i >> 6] & (one << np.uint64(i & 63)):
                score = 1e18 - idle
            if score > best_score:
                best, best_score = c, score
        if best >= 0:
            core[i] = best
            last[best] = i
    return core
