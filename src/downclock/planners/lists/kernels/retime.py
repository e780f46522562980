"""What waits on a processor: when it begins, what is promised of it, and how it is taken back."""

from __future__ import annotations

import numpy as np

from downclock.kernels.chains import unlink
from downclock.kernels.compiling import inner
from downclock.kernels.ends import ends_by
from downclock.kernels.least_tree import set_key
from downclock.planners.lists.kernels.board import (
    PLACES,
    REVOKES,
    STARTS,
    Lists,
    add,
    advance,
    believe_end,
    drop,
    tell,
    write,
)


@inner
def set_free(c: Lists, p: int, at_s: float, now_s: float) -> None:
    """Say at ``now_s`` that processor ``p`` is free of all it is to do at ``at_s``."""
    j, trees = c.processors.server[p], c.trees
    if c.servers.awake[j] == 0:
        return
    leaf = trees.shape[1] // 2
    set_key(trees, c.processors.kind[p], p, at_s if c.processors.up[p] == 1 else np.inf)
    end = max(c.servers.on_since_s[j], min(c.servers.end_s[j], now_s))
    if c.servers.on_since_s[j] >= 0.0:  # it wakes first, whatever becomes of its processors
        end = max(end, c.servers.on_since_s[j] + c.servers.wake_s[j])
    for q in range(c.servers.first[j], c.servers.end[j]):
        free = trees[c.processors.kind[q], leaf + q]
        end = max(end, free if free < np.inf else 0.0)
        if c.processors.running[q] >= 0:
            end = max(end, c.processors.ready_s[q])
    c.servers.end_s[j] = end
    set_key(trees, trees.shape[0] - 1, j, end + c.servers.patience_s[j])


@inner
def _note(c: Lists, p: int) -> None:
    """Put processor ``p`` on the list of those to look at, once."""
    if c.processors.listed[p] == 0:
        c.processors.listed[p] = 1
        add(c.listed, p)


@inner
def _together_s(c: Lists, i: int, now_s: float) -> float:
    """Return when all processors of gang ``i`` are done with what is before it."""
    at_s = now_s
    for n in range(c.tasks.node[i], c.tasks.node[i] + c.tasks.processors[i]):
        ahead = c.nodes.before[n]
        free_s = c.processors.ready_s[c.nodes.lane[n]]
        at_s = max(at_s, free_s if ahead < 0 else c.tasks.end_s[c.nodes.task[ahead]])
    return at_s


@inner
def _walk(c: Lists, p: int, at_s: float, now_s: float) -> None:
    """Retime what waits on processor ``p`` alone; others of gangs that move are listed."""
    n = c.processors.head[p]
    while n >= 0:
        i = c.nodes.task[n]
        gang = c.tasks.processors[i] > 1
        begin_s = _together_s(c, i, now_s) if gang else at_s
        moved = begin_s != c.tasks.start_s[i]
        c.tasks.start_s[i] = begin_s
        at_s = ends_by(begin_s, c.tasks.length_s[i], c.tasks.deadline_s[i])
        moved = moved or at_s != c.tasks.end_s[i]
        believe_end(c, i, at_s)
        if gang and moved:
            set_key(c.due, STARTS, i, begin_s)
            for m in range(c.tasks.node[i], c.tasks.node[i] + c.tasks.processors[i]):
                _note(c, c.nodes.lane[m])
        n = c.nodes.after[n]
    set_free(c, p, at_s, now_s)


@inner
def retime(c: Lists, p: int, at_s: float, now_s: float) -> None:
    """Let what waits on processor ``p`` follow one after the other from ``at_s`` on.

    And all that waits for gangs which move by it. What waits on a processor is in the order of its
    starts, so this ends.
    """
    c.listed[0] = 0
    c.processors.listed[p] = 1
    _walk(c, p, at_s, now_s)
    c.processors.listed[p] = 0
    while c.listed[0] > 0:
        q = c.listed[c.listed[0]]
        c.listed[0] -= 1
        c.processors.listed[q] = 0
        catch_up(c, q, now_s)
        _walk(c, q, max(now_s, c.processors.ready_s[q]), now_s)


@inner
def catch_up(c: Lists, p: int, now_s: float) -> None:
    """Let what should have started on processor ``p`` before now run."""
    advance(c, p, np.nextafter(now_s, -np.inf))


@inner
def revoke(c: Lists, i: int) -> None:
    """Take back what was promised of task ``i``, in this moment too."""
    c.tasks.told[i] = 0
    row = c.tasks.row[i]
    if row < c.counts[PLACES] and c.placed.task[row] == i:
        c.placed.processor[row] = -1
    row = c.tasks.cut[i]
    if row >= c.counts[REVOKES] or c.revoked[row] != i:
        row = c.counts[REVOKES]
        c.counts[REVOKES] += 1
        c.tasks.cut[i], c.revoked[row] = row, i


@inner
def shifts(c: Lists, p: int, at_s: float, short: bool) -> bool:
    """Tell whether what waits on processor ``p`` is on time from ``at_s``, if need be shortened.

    Gangs are not to be put off.
    """
    k, n = c.processors.kind[p], c.processors.head[p]
    while n >= 0:
        i = c.nodes.task[n]
        if c.tasks.processors[i] > 1:
            return at_s <= c.tasks.start_s[i]
        at_s += c.curves.shortest_s[i, k] if short else c.tasks.length_s[i]
        if at_s > c.tasks.deadline_s[i]:
            return False
        n = c.nodes.after[n]
    return True


@inner
def shorten(c: Lists, p: int) -> None:
    """Run all that waits on processor ``p`` before any gang as fast as can be."""
    k, n = c.processors.kind[p], c.processors.head[p]
    while n >= 0 and c.tasks.processors[c.nodes.task[n]] == 1:
        c.tasks.length_s[c.nodes.task[n]] = c.curves.shortest_s[c.nodes.task[n], k]
        n = c.nodes.after[n]


@inner
def promise_anew(c: Lists, p: int, new: int) -> None:
    """Promise all that waits on ``p`` before any gang anew, in order; ``new`` was not yet."""
    n = c.processors.head[p]
    while n >= 0 and c.tasks.processors[c.nodes.task[n]] == 1:
        i = c.nodes.task[n]
        if i != new:
            revoke(c, i)
        write(c, i, p, c.tasks.start_s[i], c.tasks.length_s[i])
        n = c.nodes.after[n]


@inner
def take_off(c: Lists, i: int, now_s: float) -> None:
    """Take task ``i`` off the processors that it waits on; what is behind it follows."""
    first, end = c.tasks.node[i], c.tasks.node[i] + c.tasks.processors[i]
    for n in range(first, end):
        catch_up(c, c.nodes.lane[n], now_s)
        unlink(c.processors, c.nodes, n)
    if end > first + 1:
        set_key(c.due, STARTS, i, np.inf)
        drop(c.gangs, i)
    for n in range(first, end):
        p = c.nodes.lane[n]
        if end > first + 1:
            c.processors.gangs[p] -= 1
        retime(c, p, max(now_s, c.processors.ready_s[p]), now_s)
        tell(c, p)
    believe_end(c, i, np.inf)


@inner
def put_away(c: Lists, i: int, now_s: float) -> None:
    """Take back task ``i``, which waits; what is behind it on a processor of its own stays."""
    if c.tasks.processors[i] > 1:
        take_off(c, i, now_s)
    else:
        unlink(c.processors, c.nodes, c.tasks.node[i])
    revoke(c, i)
