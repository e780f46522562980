"""Blocks of time in which a server is awake, where prices count.

A server is awake in blocks that hold its tasks; two blocks are one where idling through costs less
than another wake.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.kernels.least_tree import set_key
from downclock.planners.cluster.kernels.board import BLOCKS, Cluster, queue, set_last, unqueue
from downclock.planners.cluster.kernels.tariff import over, rate_at
from downclock.units import Floats


@inner
def wake_value(c: Cluster, j: int, ready_s: float) -> float:
    """Return what it costs to have server ``j`` awake from ``ready_s`` on."""
    begins = max(0.0, ready_s - c.servers.wake_s[j])
    return c.servers.wake_j[j] * rate_at(c.tariff, c.servers.zone[j], begins)


@inner
def stays_up(c: Cluster, j: int, end_s: float, next_s: float) -> bool:
    """Tell whether idling from one block to the next beats sleeping."""
    if next_s - c.servers.wake_s[j] <= end_s:
        return True
    idling = c.servers.awake_w[j] * over(c.tariff, c.servers.zone[j], end_s, next_s)
    return idling <= wake_value(c, j, next_s)


@inner
def _intervals(c: Cluster, j: int, now_s: float, begin: Floats, end: Floats) -> int:
    """Write when server ``j`` runs something, by start; return how many."""
    count = 0
    if c.servers.awake[j] == 1:
        begin[0] = end[0] = now_s
        count = 1
    for p in range(c.servers.first[j], c.servers.end[j]):
        if count > 0 and c.servers.awake[j] == 1:
            end[0] = max(end[0], c.processors.ready_s[p])
        i = c.processors.head[p]
        while i >= 0 and count < begin.size:
            s, e = c.tasks.start_s[i], c.tasks.start_s[i] + c.tasks.length_s[i]
            at = count
            while at > 0 and begin[at - 1] > s:
                begin[at], end[at] = begin[at - 1], end[at - 1]
                at -= 1
            begin[at], end[at] = s, e
            count += 1
            i = c.tasks.after[i]
    return count


@inner
def update(c: Cluster, j: int, now_s: float) -> None:
    """Find the blocks of server ``j`` and when it needs attention."""
    size = 1
    for p in range(c.servers.first[j], c.servers.end[j]):
        i = c.processors.head[p]
        while i >= 0:
            size += 1
            i = c.tasks.after[i]
    begin, end = np.empty(size), np.empty(size)
    count = _intervals(c, j, now_s, begin, end)
    b = -1
    for a in range(count):
        joins = b >= 0 and (
            begin[a] <= c.to_s[j, b] or b == BLOCKS - 1 or stays_up(c, j, c.to_s[j, b], begin[a])
        )
        if joins:
            c.to_s[j, b] = max(c.to_s[j, b], end[a])
        else:
            b += 1
            c.from_s[j, b], c.to_s[j, b] = begin[a], end[a]
    c.servers.blocks[j] = b + 1
    set_attention(c, j, now_s)


@inner
def next_start_s(c: Cluster, p: int) -> float:
    """When the next task of processor ``p`` starts: as planned, but not before it is free."""
    return max(c.tasks.start_s[c.processors.head[p]], c.processors.ready_s[p])


@inner
def set_attention(c: Cluster, j: int, now_s: float) -> None:
    """Note when server ``j`` has to wake, start a task, or may sleep: now, if that is cheaper."""
    first, last = np.inf, -np.inf
    for p in range(c.servers.first[j], c.servers.end[j]):
        last = max(last, c.processors.ready_s[p])
        if c.processors.head[p] >= 0:
            first = min(first, next_start_s(c, p))
    if c.servers.awake[j] == 0:
        at = first - c.servers.wake_s[j] if c.servers.works[j] == 1 else np.inf
    elif last > now_s:
        at = min(first, last)
    elif first < np.inf and stays_up(c, j, now_s, first):
        at = first
    else:
        at = now_s
    set_key(c.attend, 0, j, at)


@inner
def added(c: Cluster, j: int, start_s: float, end_s: float) -> tuple[float, float, float]:
    """Return what a task from ``start_s`` to ``end_s`` adds to server ``j``.

    (cost of a watt over the time it is awake longer, value of wakes added less those saved, end of
    the block it falls into).
    """
    tariff = c.tariff
    z, low, high, inside, wakes, hits = c.servers.zone[j], start_s, end_s, 0.0, 0.0, 0
    left, right, opens = -1.0, np.inf, start_s
    for b in range(c.servers.blocks[j]):
        begin, end = c.from_s[j, b], c.to_s[j, b]
        if end < start_s:
            left = end
        elif begin > end_s:
            right = begin
            break
        else:
            low, high, hits = min(low, begin), max(high, end), hits + 1
            inside += over(tariff, z, begin, end)
            if hits > 1:
                wakes -= wake_value(c, j, begin)
            else:
                opens = begin
    longer = over(tariff, z, low, high) - inside
    if hits == 0 or low < opens:
        if hits > 0:
            wakes -= wake_value(c, j, opens)
        if left >= 0.0 and stays_up(c, j, left, low):
            longer += over(tariff, z, left, low)
        else:
            wakes += wake_value(c, j, low)
    if right < np.inf and longer > 0.0 and stays_up(c, j, high, right):
        longer += over(tariff, z, high, right)
        wakes -= wake_value(c, j, right)
    return longer, wakes, high


@inner
def put_at(c: Cluster, p: int, i: int, start_s: float, length_s: float, now_s: float) -> None:
    """Plan task ``i`` on processor ``p`` at a start of its own."""
    c.tasks.start_s[i], c.tasks.length_s[i] = start_s, length_s
    ahead, at = -1, c.processors.head[p]
    while at >= 0 and c.tasks.start_s[at] < start_s:
        ahead, at = at, c.tasks.after[at]
    queue(c, p, i, ahead)
    changed(c, p, now_s)


@inner
def remove(c: Cluster, i: int, now_s: float) -> int:
    """Take a planned task back; return the processor it was on."""
    p = unqueue(c, i)
    changed(c, p, now_s)
    return p


@inner
def changed(c: Cluster, p: int, now_s: float) -> None:
    """The queue of processor ``p`` is another one: see to its end and to its server."""
    tail = c.processors.tail[p]
    c.processors.end_s[p] = c.processors.ready_s[p]
    if tail >= 0:
        c.processors.end_s[p] = c.tasks.start_s[tail] + c.tasks.length_s[tail]
    if c.tally.priced[0] == 1:
        update(c, c.processors.server[p], now_s)
    else:
        set_last(c, c.processors.server[p])
