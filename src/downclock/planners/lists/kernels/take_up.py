"""What a free processor takes up: what had no place, a gang, or what waits elsewhere."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.lists.kernels.board import (
    Lists,
    drop,
    enqueue,
    fitting_length,
    waits,
    write,
)
from downclock.planners.lists.kernels.gangs import seat
from downclock.planners.lists.kernels.retime import (
    promise_anew,
    retime,
    revoke,
    shifts,
    shorten,
    take_off,
)
from downclock.units import Ints

LOOK = 1024
"""Processors looked at for a task that could start on a free one."""


@inner
def take_hopeful(c: Lists, p: int, now_s: float) -> bool:
    """Start a task on the free processor ``p`` that had no place: of those in time, by deadline.

    What waits there must still be on time, if need be at its fastest.
    """
    k, best = c.processors.kind[p], -1
    for a in range(1, c.hopes[0] + 1):
        i = c.hopes[a]
        end = now_s + c.curves.shortest_s[i, k]
        sooner = best < 0 or c.tasks.deadline_s[i] < c.tasks.deadline_s[c.hopes[best]]
        if not sooner or end == np.inf or end > c.tasks.deadline_s[i]:
            continue
        if c.tasks.processors[i] == 1 and shifts(c, p, end, True):
            best = a
    if best < 0:
        return False
    i = c.hopes[best]
    drop(c.hopes, i)
    length = c.curves.shortest_s[i, k]
    if not shifts(c, p, now_s + length, False):
        shorten(c, p)
    enqueue(c, p, c.tasks.node[i], -1, now_s, length)
    retime(c, p, now_s, now_s)
    promise_anew(c, p, i)
    return True


@inner
def take_waiting(c: Lists, p: int, now_s: float) -> None:
    """Start a task on the idle processor ``p`` that is next elsewhere: the earliest deadline."""
    best, k = -1, c.processors.kind[p]
    for a in range(min(c.processors.kind.size, LOOK)):
        q = (p + a) % c.processors.kind.size
        n = c.processors.head[q]
        if n < 0 or c.processors.kind[q] != k:
            continue
        i = c.nodes.task[n]
        if c.tasks.start_s[i] <= now_s or c.tasks.processors[i] > 1:
            continue
        if best < 0 or c.tasks.deadline_s[i] < c.tasks.deadline_s[best]:
            best = i
    if best < 0 or now_s + c.tasks.length_s[best] > c.tasks.deadline_s[best]:
        return
    length_s = c.tasks.length_s[best]
    take_off(c, best, now_s)
    revoke(c, best)
    enqueue(c, p, c.tasks.node[best], -1, now_s, length_s)
    retime(c, p, now_s, now_s)
    write(c, best, p, now_s, length_s)


@inner
def _idle(c: Lists, p: int, k: int, now_s: float) -> bool:
    """Tell whether processor ``p`` has nothing to do."""
    free_s = c.trees[c.processors.kind[p], c.trees.shape[1] // 2 + p]
    return c.processors.kind[p] == k and free_s <= now_s and c.processors.head[p] < 0


@inner
def _next_gang(c: Lists, listed: Ints, k: int, most: int, now_s: float) -> int:
    """Return the gang on a list that could start now on ``most`` processors; or -1.

    Of those on time that would start later, or never, the one with the earliest deadline.
    """
    best = -1
    for a in range(1, listed[0] + 1):
        i = listed[a]
        if not 1 < c.tasks.processors[i] <= most or c.tasks.start_s[i] <= now_s:
            continue
        end_s = now_s + c.curves.shortest_s[i, k]
        if end_s == np.inf or end_s > c.tasks.deadline_s[i]:
            continue
        if best < 0 or c.tasks.deadline_s[i] < c.tasks.deadline_s[best]:
            best = i
    return best


@inner
def take_gang(c: Lists, p: int, now_s: float) -> None:
    """Start a gang on the server of the idle processor ``p`` that had no place, or a later one."""
    j, k, most = c.processors.server[p], c.processors.kind[p], 0
    for q in range(c.servers.first[j], c.servers.end[j]):
        most += 1 if _idle(c, q, k, now_s) else 0
    i = _next_gang(c, c.hopes, k, most, now_s)
    if i < 0:
        i = _next_gang(c, c.gangs, k, most, now_s)
    if i < 0:
        return
    length_s = fitting_length(c, k, i, c.tasks.deadline_s[i] - now_s, 0.0)
    if length_s < 0.0:
        return
    if waits(c, i):
        take_off(c, i, now_s)
    drop(c.hopes, i)
    seat(c, i, k, j, now_s, length_s, now_s)
