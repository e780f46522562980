"""Workflows: who follows whom, and when each task may run so that all of its workflow is in time.

The time until a deadline is shared along the tightest path there, in proportion to the run times
that tasks want; where that is too little, what is above the fastest run times is. A task's window
ends before those of the tasks after it begin, so reservations inside windows keep the order.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.cluster.kernels.board import Cluster, row_of
from downclock.planners.cluster.kernels.curves import energy_j, want_s
from downclock.planners.cluster.kernels.status import DONE, OPEN
from downclock.units import Floats, Ints

LOOSE = 8.0
"""So many times the run time that it wants a task has where no deadline binds."""


@inner
def is_milestone(c: Cluster, i: int) -> bool:
    """Tell whether a task has no work: it is done with the tasks before it."""
    return c.curves.rows.short_s[row_of(c, i, 0)] == 0.0


@inner
def open_before(c: Cluster, i: int) -> int:
    """Return how many tasks before ``i`` are not done."""
    count, e = 0, c.tasks.follows[i]
    while e >= 0:
        count += c.tasks.status[c.edges.before[e]] != DONE
        e = c.edges.more_before[e]
    return count


@inner
def in_order(c: Cluster, found: Ints) -> Ints:
    """Return tasks, each once, so that every one comes after those of them before it."""
    order, m, mark, edges = np.empty(found.size, np.int64), 0, c.tasks.mark, c.edges
    for i in found:
        mark[i] = 0
    for i in found:
        e = c.tasks.follows[i]
        while e >= 0:
            mark[i] += mark[edges.before[e]] >= 0
            e = edges.more_before[e]
    for i in found:
        if mark[i] == 0:
            order[m] = i
            m += 1
    at = 0
    while at < m:
        e = c.tasks.leads[order[at]]
        while e >= 0:
            after = edges.after[e]
            if mark[after] > 0:
                mark[after] -= 1
                if mark[after] == 0:
                    order[m] = after
                    m += 1
            e = edges.more_after[e]
        at += 1
    for i in found:
        mark[i] = -1
    return order


@inner
def _add(c: Cluster, found: Ints, m: int, i: int) -> tuple[Ints, int]:
    """Add a task to a set of ``m`` unless it is in it."""
    if c.tasks.mark[i] >= 0:
        return found, m
    if m == found.size:
        found = np.concatenate((found, np.empty(m, np.int64)))
    found[m], c.tasks.mark[i] = i, m
    return found, m + 1


@inner
def _unmarked(c: Cluster, found: Ints) -> Ints:
    """Return a set in the order of its tasks' numbers; it is worked on no more."""
    for i in found:
        c.tasks.mark[i] = -1
    return np.sort(found)


@inner
def _reached(c: Cluster, seeds: Ints, back: bool) -> Ints:
    """Return tasks and all open ones that follow them, or (``back``) go before them, in order."""
    found, m, at = np.empty(8, np.int64), 0, 0
    for i in seeds:
        found, m = _add(c, found, m, i)
    while at < m:
        e = c.tasks.follows[found[at]] if back else c.tasks.leads[found[at]]
        while e >= 0:
            other = c.edges.before[e] if back else c.edges.after[e]
            if c.tasks.status[other] == OPEN:
                found, m = _add(c, found, m, other)
            e = c.edges.more_before[e] if back else c.edges.more_after[e]
        at += 1
    return in_order(c, _unmarked(c, found[:m]))


@inner
def waits_behind(c: Cluster, i: int) -> Ints:
    """Return task ``i`` and all open tasks that follow it, each after those before it."""
    return _reached(c, np.array([i]), False)


@inner
def waits_before(c: Cluster, tasks: Ints) -> Ints:
    """Return open tasks that tasks which are not follow and that have not started, in order."""
    found = _reached(c, tasks, True)
    return found[(c.tasks.status[found] == OPEN) & (c.tasks.place[found] < 0)]


@inner
def joined(c: Cluster, i: int, status: int) -> Ints:
    """Return tasks of a status that edges join with ``i``, over milestones too, in order."""
    found, m, at = np.empty(8, np.int64), 0, 0
    found, m = _add(c, found, m, i)
    while at < m:
        for back in range(2):
            e = c.tasks.follows[found[at]] if back == 1 else c.tasks.leads[found[at]]
            while e >= 0:
                other = c.edges.before[e] if back == 1 else c.edges.after[e]
                source = c.tasks.status[other] == DONE and is_milestone(c, other)
                if c.tasks.status[other] == status or source:
                    found, m = _add(c, found, m, other)
                e = c.edges.more_before[e] if back == 1 else c.edges.more_after[e]
        at += 1
    found = _unmarked(c, found[:m])
    return in_order(c, found[c.tasks.status[found] == status])


@inner
def planned_end_s(c: Cluster, i: int) -> float:
    """Return when task ``i`` is over at the latest, by what is planned; infinite: it has no place.

    One that waits may take all of its window.
    """
    if c.tasks.status[i] == DONE:
        return 0.0
    if c.tasks.place[i] >= 0:
        return c.items.end_s[c.tasks.booked[i]]
    if c.tasks.booked[i] >= 0:
        return max(c.tasks.deadline_s[i], c.tasks.start_s[i] + c.tasks.length_s[i])
    return c.tasks.deadline_s[i] if is_milestone(c, i) else np.inf


@inner
def opens_s(c: Cluster, i: int, now_s: float) -> float:
    """Return when all tasks before ``i`` that are not worked on are over, by what is planned."""
    begin, e = now_s, c.tasks.follows[i]
    while e >= 0:
        before = c.edges.before[e]
        if c.tasks.mark[before] < 0:
            begin = max(begin, planned_end_s(c, before))
        e = c.edges.more_before[e]
    return begin


@inner
def want_within(c: Cluster, i: int, window_s: float) -> None:
    """Let task ``i`` want the run times, and kinds, that are cheapest in a window so long."""
    rows, kinds = c.curves.rows, c.kinds.shape[1]
    cost = np.full(kinds, np.inf)
    for k in range(kinds):
        row = row_of(c, i, k)
        rows.free_s[row] = rows.free_j[row] = np.inf
        if not rows.short_s[row] < np.inf:
            continue
        most = min(window_s, rows.long_s[row])  # shorter than it wants where it has to hurry
        length = rows.best_s[row] if rows.best_s[row] <= most else want_s(c.curves, row, most)
        if length > 0.0:
            rows.free_s[row], rows.free_j[row] = length, energy_j(c.curves, row, length)
            cost[k] = rows.free_j[row] + c.curves.kinds.price_w[k] * length
    order = np.argsort(cost, kind="mergesort")
    for rank in range(kinds):
        k = order[rank]
        c.kinds[i, rank] = k if cost[k] < np.inf and c.pools.end[k] > c.pools.first[k] else -1


@inner
def _lengths(c: Cluster, i: int) -> tuple[float, float]:
    """Return (run time that task ``i`` wants if nothing binds, its fastest)."""
    wish, fast, least = 0.0, np.inf, np.inf
    for k in range(c.kinds.shape[1]):
        row = row_of(c, i, k)
        short, best = c.curves.rows.short_s[row], c.curves.rows.best_s[row]
        if not short < np.inf or c.pools.end[k] == c.pools.first[k]:
            continue
        fast = min(fast, short)
        if best > 0.0:
            cost = energy_j(c.curves, row, best) + c.curves.kinds.price_w[k] * best
            if cost < least:
                wish, least = best, cost
    return max(wish, fast), fast


@inner
def _latest(c: Cluster, order: Ints, fast_s: Floats) -> None:
    """Note when each task has to end so that what follows it can be in time at its fastest."""
    for a in range(order.size - 1, -1, -1):
        i = order[a]
        latest, e = c.tasks.due_s[i], c.tasks.leads[i]
        while e >= 0:
            after = c.edges.after[e]
            if c.tasks.mark[after] >= 0:
                latest = min(latest, c.tasks.latest_s[after] - fast_s[c.tasks.mark[after]])
            e = c.edges.more_after[e]
        c.tasks.latest_s[i] = latest


@inner
def _tightest(
    c: Cluster, order: Ints, head_s: Floats, wish_s: Floats, fast_s: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return (deadline, wanted and fastest time until then) of the tightest path behind each."""
    until, path, quick = c.tasks.due_s[order], wish_s.copy(), fast_s.copy()
    for a in range(order.size - 1, -1, -1):
        e = c.tasks.leads[order[a]]
        stretch = (until[a] - head_s[a]) / max(path[a], 1e-300)
        while e >= 0:
            b = c.tasks.mark[c.edges.after[e]]
            if b >= 0:
                other = (until[b] - head_s[a]) / max(path[b] + wish_s[a], 1e-300)
                longer = other == stretch and path[b] + wish_s[a] > path[a]
                if other < stretch or longer:
                    stretch, until[a] = other, until[b]
                    path[a], quick[a] = path[b] + wish_s[a], quick[b] + fast_s[a]
            e = c.edges.more_after[e]
    return until, path, quick


@inner
def _share_s(room_s: float, wish_s: float, fast_s: float, path_s: float, quick_s: float) -> float:
    """Return a task's part of the room of a path."""
    if wish_s == 0.0:
        return 0.0
    if room_s == np.inf:
        return LOOSE * wish_s
    if room_s >= path_s:
        return wish_s * room_s / path_s
    if path_s <= quick_s:
        return fast_s
    return fast_s + max(0.0, room_s - quick_s) / (path_s - quick_s) * (wish_s - fast_s)


@inner
def _widen(c: Cluster, order: Ints) -> None:
    """Let windows last until the first of what follows begins; the last until their deadline."""
    for i in order:
        until, e = np.inf, c.tasks.leads[i]
        while e >= 0:
            if c.tasks.mark[c.edges.after[e]] >= 0:
                until = min(until, c.tasks.arrival_s[c.edges.after[e]])
            e = c.edges.more_after[e]
        if not is_milestone(c, i):
            until = min(until, c.tasks.latest_s[i])
            c.tasks.deadline_s[i] = max(c.tasks.deadline_s[i], until)


@inner
def _bring_forward(
    c: Cluster, order: Ints, begin_s: Floats, head_s: Floats, wish_s: Floats
) -> None:
    """Let tasks begin sooner, all in the same part, so that the longest path is in time.

    Which path is the tightest cannot be told by beginnings after the deadline.
    """
    part, first = 1.0, head_s.min()
    for a in range(order.size):
        room, need = c.tasks.due_s[order[a]] - first, head_s[a] + wish_s[a] - first
        if 0.0 < room < need:
            part = min(part, room / need)
    if part < 1.0:
        for a in range(order.size):
            head_s[a] = max(begin_s[a], first + part * (head_s[a] - first))


@inner
def share_time(c: Cluster, order: Ints, now_s: float) -> int:
    """Give tasks that wait, each after those before it, windows from now on.

    Return the first that cannot be in time even at its fastest, or -1.
    """
    m, late = order.size, -1
    begin_s, head_s, wish_s, fast_s = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    for a in range(m):
        c.tasks.mark[order[a]] = a
    for a in range(m):
        wish_s[a], fast_s[a] = _lengths(c, order[a])
        begin_s[a] = head_s[a] = opens_s(c, order[a], now_s)
        e = c.tasks.follows[order[a]]
        while e >= 0:
            b = c.tasks.mark[c.edges.before[e]]
            if b >= 0:
                head_s[a] = max(head_s[a], head_s[b] + wish_s[b])
            e = c.edges.more_before[e]
    _bring_forward(c, order, begin_s, head_s, wish_s)
    _latest(c, order, fast_s)
    until, path, quick = _tightest(c, order, head_s, wish_s, fast_s)
    for a in range(m):
        i, start = order[a], begin_s[a]
        e = c.tasks.follows[i]
        while e >= 0:
            if c.tasks.mark[c.edges.before[e]] >= 0:
                start = max(start, c.tasks.deadline_s[c.edges.before[e]])
            e = c.edges.more_before[e]
        end = start + _share_s(until[a] - start, wish_s[a], fast_s[a], path[a], quick[a])
        end = min(end, c.tasks.latest_s[i])
        if late < 0 and (start == np.inf or end < start + fast_s[a] * (1.0 - 1e-12)):
            late = i
        c.tasks.arrival_s[i], c.tasks.deadline_s[i] = start, max(start, end)
    _widen(c, order)
    for i in order:
        c.tasks.mark[i] = -1
        want_within(c, i, c.tasks.deadline_s[i] - c.tasks.arrival_s[i])
    return late
