"""List scheduling of task graphs on equal cores: orders, levels, greedy and insertion decoders."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.units import Array


class Graph(NamedTuple):
    """Tasks and their edges as ragged columns, both ways."""

    work: Array  # (n,) in clock cycles
    succ_at: Array  # successors of task i are succ[succ_at[i]:succ_at[i + 1]]
    succ: Array
    pred_at: Array  # predecessors likewise
    pred: Array


class Ready(NamedTuple):
    """Tasks that wait for others, and a heap of those that do not."""

    rank: Array  # (n,) ready tasks are taken by it, 0 first
    missing: Array  # (n,) predecessors that have not ended
    heap: Array  # (n,) ranks of ready tasks
    stack: Array  # (n + 1,) tasks without work that end as soon as they are ready


class Placed(NamedTuple):
    """A list schedule."""

    start: Array  # (n,)
    core: Array  # (n,) -1 for tasks without work
    omega: Array  # (cores + 1,) cycles with exactly m cores at work
    busy_until: Array  # (cores,)
    running: Array  # (cores,) the task, or -1


@inner
def _sift_up(heap: Array, size: int, item: int) -> int:
    """Push ``item`` on a min-heap of ranks; return the new size."""
    k = size
    while k > 0 and heap[(k - 1) // 2] > item:
        heap[k] = heap[(k - 1) // 2]
        k = (k - 1) // 2
    heap[k] = item
    return size + 1


@inner
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


@inner
def _release(graph: Graph, ready: Ready, start: Array, i: int, now: float, size: int) -> int:
    """Make the successors of a finished task ready; zero-work tasks take no core and no time."""
    ready.stack[0] = i
    depth = 1
    while depth > 0:
        depth -= 1
        i = ready.stack[depth]
        for e in range(graph.succ_at[i], graph.succ_at[i + 1]):
            j = graph.succ[e]
            ready.missing[j] -= 1
            if ready.missing[j] == 0 and graph.work[j] > 0.0:
                size = _sift_up(ready.heap, size, ready.rank[j])
            elif ready.missing[j] == 0:
                start[j] = now
                ready.stack[depth] = j
                depth += 1
    return size


@inner
def _open_heap(graph: Graph, ready: Ready, start: Array) -> int:
    """Fill the heap with the tasks that are ready at time 0."""
    n = graph.work.size
    size = 0
    for i in range(n):
        ready.missing[i] = graph.pred_at[i + 1] - graph.pred_at[i]
    for i in range(n):
        if graph.pred_at[i + 1] == graph.pred_at[i]:
            if graph.work[i] > 0.0:
                size = _sift_up(ready.heap, size, ready.rank[i])
            else:
                start[i] = 0.0
                size = _release(graph, ready, start, i, 0.0, size)
    return size


@inner
def greedy_room(task_at: Array, cores: int) -> tuple[Ready, Placed]:
    """Room for a greedy list schedule; ``task_at`` (n,) lists tasks by rank."""
    n = task_at.size
    rank = np.empty(n, np.int64)
    for k in range(n):
        rank[task_at[k]] = k
    missing, heap, stack = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n + 1, np.int64)
    start, core, omega = np.zeros(n), np.empty(n, np.int64), np.zeros(cores + 1)
    busy_until, running = np.zeros(cores), np.empty(cores, np.int64)
    return Ready(rank, missing, heap, stack), Placed(start, core, omega, busy_until, running)


@inner
def greedy_into(graph: Graph, task_at: Array, ready: Ready, placed: Placed) -> float:
    """Work-conserving list schedule into ``placed``; return the makespan.

    At every completion all tasks that end then release their successors; then the free cores,
    lowest number first, take the ready tasks by rank (0 first). ``task_at`` inverts the rank.
    """
    work, start, busy_until, running = graph.work, placed.start, placed.busy_until, placed.running
    cores = busy_until.size
    placed.omega[:] = 0.0
    placed.core[:] = -1
    running[:] = -1
    size = _open_heap(graph, ready, start)
    now = 0.0
    active = 0
    while size > 0 or active > 0:
        for c in range(cores):
            if size == 0 or active == cores:
                break
            if running[c] < 0:
                i = task_at[ready.heap[0]]
                size = _sift_down(ready.heap, size)
                running[c] = i
                busy_until[c] = now + work[i]
                start[i] = now
                placed.core[i] = c
                active += 1
        after = np.inf
        for c in range(cores):
            if running[c] >= 0 and busy_until[c] < after:
                after = busy_until[c]
        placed.omega[active] += after - now
        now = after
        for c in range(cores):
            i = running[c]
            if i >= 0 and busy_until[c] <= now:
                running[c] = -1
                active -= 1
                size = _release(graph, ready, start, i, now, size)
    return now


@compiled
def greedy_schedule(graph: Graph, task_at: Array, cores: int) -> tuple[Array, Array]:
    """Return (start, core) of the greedy list schedule; ``task_at`` lists tasks by rank."""
    ready, placed = greedy_room(task_at, cores)
    greedy_into(graph, task_at, ready, placed)
    return placed.start, placed.core


@inner
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
def insertion_schedule(graph: Graph, task_at: Array, cores: int) -> tuple[Array, Array]:
    """Return (start, core): each task in turn takes the earliest gap on any core (HEFT).

    ``task_at`` must list predecessors before successors.
    """
    work, n = graph.work, graph.work.size
    start, end, core = np.zeros(n), np.zeros(n), np.full(n, -1, np.int64)
    busy = np.full((2, cores, 16), np.inf)  # starts and ends
    count = np.zeros(cores, np.int64)
    for k in range(n):
        i = task_at[k]
        ready = 0.0
        for e in range(graph.pred_at[i], graph.pred_at[i + 1]):
            ready = max(ready, end[graph.pred[e]])
        start[i], end[i] = ready, ready
        if work[i] <= 0.0:
            continue
        best, place, where = np.inf, 0, 0
        for c in range(cores):
            g = _gap_on(busy[0, c], busy[1, c], count[c], ready, work[i])
            begin = ready if g == 0 else max(ready, busy[1, c, g - 1])
            if begin < best:
                best, place, where = begin, g, c
            if begin == ready:
                break
        start[i], end[i], core[i] = best, best + work[i], where
        if count[where] == busy.shape[2]:
            wider = np.full((2, cores, 2 * busy.shape[2]), np.inf)
            wider[:, :, : busy.shape[2]] = busy
            busy = wider
        for g in range(count[where], place, -1):
            busy[:, where, g] = busy[:, where, g - 1]
        busy[0, where, place], busy[1, where, place] = start[i], end[i]
        count[where] += 1
    return start, core


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
