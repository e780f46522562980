"""Gangs on the board of a list policy: several processors of one kind at once.

On one server where one holds it, else on whole servers. A gang takes the earliest time at which
enough processors are free together for as long as it runs, between what waits there already too:
conservative backfilling, where nothing that was promised is put off.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.chains import unlink
from downclock.kernels.compiling import inner
from downclock.kernels.least_tree import first_at_most, set_key
from downclock.planners.lists.kernels.board import (
    BEST,
    FIRST,
    FULLEST,
    SOONEST,
    STARTS,
    TIGHTEST,
    Lists,
    add,
    advance,
    busy_until,
    drop,
    enqueue,
    fitting_length,
    slot_up,
    tell,
    wake,
    weigh,
    write,
)

TRIES = 64
"""Times at which processors may be free together that are looked at."""

SEVERAL, NONE = -2, -1
"""In place of a server: several whole ones; none."""


@inner
def _follower(c: Lists, p: int, start_s: float, length_s: float) -> int:
    """Return the first node on processor ``p`` that starts after such a run; -1: none."""
    n = c.processors.head[p]
    while n >= 0 and start_s + length_s > c.tasks.start_s[c.nodes.task[n]]:
        n = c.nodes.after[n]
    return n


@inner
def opening_s(c: Lists, p: int, from_s: float, length_s: float) -> float:
    """Return when processor ``p`` is free for so long, from a time on; infinite: it is not on."""
    free_s = c.trees[c.processors.kind[p], c.trees.shape[1] // 2 + p]
    if c.processors.gangs[p] == 0 or free_s == np.inf:
        return max(from_s, free_s)
    at_s, n = max(from_s, c.processors.ready_s[p]), c.processors.head[p]
    while n >= 0:
        i = c.nodes.task[n]
        if at_s + length_s <= c.tasks.start_s[i]:
            return at_s
        at_s = max(at_s, c.tasks.end_s[i])
        n = c.nodes.after[n]
    return at_s


@inner
def insert(c: Lists, n: int, p: int, start_s: float, length_s: float) -> None:
    """Let node ``n`` wait on processor ``p`` where its time comes, nothing else moved."""
    follower = _follower(c, p, start_s, length_s)
    ahead = c.processors.tail[p] if follower < 0 else c.nodes.before[follower]
    end_s = enqueue(c, p, n, ahead, start_s, length_s)
    weigh(c, c.nodes.task[n], p, length_s)
    if follower < 0:
        busy_until(c, p, end_s)


@inner
def _usable(c: Lists, p: int, k: int) -> bool:
    return c.processors.kind[p] == k and c.processors.up[p] == 1


@inner
def _size(c: Lists, j: int, k: int) -> int:
    """Return how many processors of kind ``k`` server ``j`` has that are not down."""
    count = 0
    if c.servers.works[j] == 1:
        for p in range(c.servers.first[j], c.servers.end[j]):
            count += 1 if _usable(c, p, k) else 0
    return count


@inner
def _nth_opening_s(c: Lists, j: int, k: int, m: int, from_s: float, length_s: float) -> float:
    """Return when the ``m``-th processor of kind ``k`` of server ``j`` has an opening."""
    found = 0
    for p in range(c.servers.first[j], c.servers.end[j]):
        if not _usable(c, p, k):
            continue
        at_s, a = opening_s(c, p, from_s, length_s), found
        while a > 0 and c.scratch[a - 1] > at_s:
            c.scratch[a] = c.scratch[a - 1]
            a -= 1
        c.scratch[a] = at_s
        found += 1
    return c.scratch[m - 1] if found >= m else np.inf


@inner
def server_opening_s(c: Lists, j: int, k: int, m: int, from_s: float, length_s: float) -> float:
    """Return when ``m`` processors of a server are free together for so long; infinite: never."""
    at_s = slot_up(from_s, c.rules.slot_s)
    for _ in range(TRIES):
        later_s = slot_up(_nth_opening_s(c, j, k, m, at_s, length_s), c.rules.slot_s)
        if later_s <= at_s:
            return at_s
        at_s = later_s
        if at_s == np.inf:
            break
    return np.inf


@inner
def _idle(c: Lists, j: int, k: int, at_s: float) -> int:
    """Return how many processors of a server have nothing to do from a time on."""
    count = 0
    for p in range(c.servers.first[j], c.servers.end[j]):
        free_s = c.trees[c.processors.kind[p], c.trees.shape[1] // 2 + p]
        count += 1 if _usable(c, p, k) and free_s <= at_s else 0
    return count


@inner
def _score(c: Lists, fit: int, j: int, k: int, start_s: float) -> float:
    """Return how little a fit rule likes a server: by start, or by the sum of loads there."""
    if fit == FIRST:
        return float(j)
    if fit in (SOONEST, BEST):
        return start_s if fit == SOONEST else -start_s
    total = 0.0
    for p in range(c.servers.first[j], c.servers.end[j]):
        total += c.load[p] if c.processors.kind[p] == k else 0.0
    return -total if fit in (FULLEST, TIGHTEST) else total


@inner
def _awake(
    c: Lists, fit: int, k: int, m: int, length_s: float, latest_s: float, now_s: float
) -> tuple[int, float]:
    """Return the awake server that the fit rule prefers and the start there, by ``latest_s``.

    Among equal ones it is the one with the fewest idle processors.
    """
    best, start_s, least, spare = NONE, np.inf, np.inf, 0
    for j in range(c.servers.first.size):
        if c.servers.awake[j] == 0 or c.servers.end[j] - c.servers.first[j] < m:
            continue
        at_s = server_opening_s(c, j, k, m, now_s, length_s)
        if at_s > latest_s or at_s == np.inf:
            continue
        score, idle = _score(c, fit, j, k, at_s), _idle(c, j, k, at_s)
        if best < 0 or score < least or (score == least and idle < spare):
            best, start_s, least, spare = j, at_s, score, idle
    return best, start_s


@inner
def _asleep(c: Lists, k: int, m: int, latest_s: float, now_s: float) -> tuple[int, float]:
    """Return the smallest sleeping server that holds a gang and is awake by ``latest_s``."""
    best, least = NONE, 0
    for j in range(c.servers.first.size):
        if c.servers.awake[j] == 1 or now_s + c.servers.wake_s[j] > latest_s:
            continue
        size = _size(c, j, k)
        if size >= m and (best < 0 or size < least):
            best, least = j, size
    start_s = np.inf
    if best >= 0:
        start_s = slot_up(now_s + c.servers.wake_s[best], c.rules.slot_s)
    return (best, start_s) if start_s <= latest_s else (NONE, np.inf)


@inner
def _whole_s(c: Lists, j: int, k: int, from_s: float, length_s: float, now_s: float) -> float:
    """Return when all processors of a server are free together, waking it where it sleeps."""
    size = _size(c, j, k)
    if size == 0:
        return np.inf
    if c.servers.awake[j] == 1:
        return server_opening_s(c, j, k, size, from_s, length_s)
    return slot_up(max(from_s, now_s + c.servers.wake_s[j]), c.rules.slot_s)


@inner
def _enough_s(
    c: Lists, k: int, m: int, from_s: float, length_s: float, asleep: bool, now_s: float
) -> float:
    """Return when whole servers with ``m`` processors are free one by one, from a time on."""
    at_s = np.full(c.servers.first.size, np.inf)
    for j in range(at_s.size):
        if asleep or c.servers.awake[j] == 1:
            at_s[j] = _whole_s(c, j, k, from_s, length_s, now_s)
    for j in np.argsort(at_s):
        m -= _size(c, j, k) if at_s[j] < np.inf else 0
        if m <= 0:
            return at_s[j]
    return np.inf


@inner
def _several(
    c: Lists, k: int, m: int, length_s: float, asleep: bool, now_s: float
) -> tuple[int, float]:
    """Return when whole servers with ``m`` processors are free together."""
    at_s = now_s
    for _ in range(TRIES):
        later_s = _enough_s(c, k, m, at_s, length_s, asleep, now_s)
        if later_s == np.inf:
            break
        if later_s <= at_s:
            return SEVERAL, at_s
        at_s = later_s
    return NONE, np.inf


@inner
def _held(c: Lists, k: int, m: int) -> bool:
    """Tell whether any server that works holds ``m`` processors of kind ``k``."""
    for j in range(c.servers.first.size):
        if c.servers.end[j] - c.servers.first[j] >= m and _size(c, j, k) >= m:
            return True
    return False


@inner
def offer(
    c: Lists, fit: int, k: int, i: int, length_s: float, latest_s: float, asleep: bool, now_s: float
) -> tuple[int, float]:
    """Return where a gang could run and from when on, by ``latest_s``; or NONE.

    On servers that are awake; if ``asleep`` those that are not are woken for it.
    """
    m = c.tasks.processors[i]
    if not _held(c, k, m):
        where, start_s = _several(c, k, m, length_s, asleep, now_s)
        return (where, start_s) if start_s <= latest_s else (NONE, np.inf)
    if asleep:
        return _asleep(c, k, m, latest_s, now_s)
    return _awake(c, fit, k, m, length_s, latest_s, now_s)


@inner
def _take(c: Lists, n: int, end: int, j: int, k: int, start_s: float, now_s: float) -> None:
    """Let nodes ``n`` to ``end`` of a gang wait on processors of server ``j``.

    Of those that are free then the ones that are free last: the others can be used until then.
    """
    offset, length_s = c.servers.first[j], c.tasks.length_s[c.nodes.task[n]]
    for p in range(offset, c.servers.end[j]):
        c.scratch[p - offset] = -1.0
        if _usable(c, p, k) and opening_s(c, p, start_s, length_s) <= start_s:
            c.scratch[p - offset] = opening_s(c, p, now_s, length_s)
    for node in range(n, end):
        best = offset
        for p in range(offset, c.servers.end[j]):
            if c.scratch[p - offset] > c.scratch[best - offset]:
                best = p
        c.scratch[best - offset] = -1.0
        insert(c, node, best, start_s, length_s)
        c.processors.gangs[best] += 1


@inner
def seat(
    c: Lists, i: int, k: int, where: int, start_s: float, length_s: float, now_s: float
) -> None:
    """Let gang ``i`` wait where it was offered a place."""
    n, end = c.tasks.node[i], c.tasks.node[i] + c.tasks.processors[i]
    c.tasks.length_s[i] = length_s
    if where >= 0:
        if c.servers.awake[where] == 0:
            wake(c, where, now_s)
        _take(c, n, end, where, k, start_s, now_s)
        n = end
    for sleeping in range(2):  # those that are awake first
        for j in range(c.servers.first.size):
            if n == end or (c.servers.awake[j] == 0) != (sleeping == 1):
                continue
            if _whole_s(c, j, k, start_s, length_s, now_s) <= start_s:
                if c.servers.awake[j] == 0:
                    wake(c, j, now_s)
                upto = min(end, n + _size(c, j, k))
                _take(c, n, upto, j, k, start_s, now_s)
                n = upto
    set_key(c.due, STARTS, i, start_s)
    add(c.gangs, i)


@inner
def _length_there(
    c: Lists, k: int, i: int, where: int, start_s: float, least_s: float, theta: float
) -> float:
    """Return the run time of a gang that has to be shortened; -1: none fits."""
    length_s = fitting_length(c, k, i, c.tasks.deadline_s[i] - start_s, theta)
    if length_s > least_s and where >= 0 and c.servers.awake[where] == 1:
        m = c.tasks.processors[i]
        if server_opening_s(c, where, k, m, start_s, length_s) > start_s:
            length_s = -1.0
    elif length_s > least_s and where == SEVERAL:
        length_s = -1.0
    if length_s < 0.0 and least_s == c.curves.shortest_s[i, k]:
        return least_s
    return length_s


@inner
def _try_gang(c: Lists, k: int, i: int, theta: float, asleep: bool, now_s: float) -> bool:
    """Place a gang at the length it wants, else at one as short as ``theta`` allows."""
    wanted_s, shortest_s = c.curves.wanted_s[i, k], c.curves.shortest_s[i, k]
    for short in range(2 if theta < 1.0 else 1):
        length_s = wanted_s if short == 0 else max(theta * wanted_s, shortest_s)
        fit = SOONEST if theta == 0.0 else c.rules.fit
        latest_s = c.tasks.deadline_s[i] - length_s
        where, start_s = offer(c, fit, k, i, length_s, latest_s, asleep, now_s)
        if where == NONE:
            continue
        if short == 1:
            length_s = _length_there(c, k, i, where, start_s, length_s, theta)
        if length_s > 0.0:
            seat(c, i, k, where, start_s, length_s, now_s)
            return True
    return False


@inner
def place_gang(c: Lists, k: int, i: int, resort: int, now_s: float) -> bool:
    """Place a gang on servers of kind ``k`` that are awake, else on such that are asleep."""
    if _try_gang(c, k, i, c.rules.theta if resort == 0 else 0.0, False, now_s):
        return True
    return resort == 0 and _try_gang(c, k, i, 0.0, True, now_s)


@inner
def soonest_gang(c: Lists, k: int, i: int, now_s: float) -> tuple[int, float]:
    """Return where gang ``i`` could start soonest on kind ``k`` at its fastest, deadline or not."""
    length_s = c.curves.shortest_s[i, k]
    where, start_s = offer(c, SOONEST, k, i, length_s, np.inf, False, now_s)
    other, at_s = offer(c, SOONEST, k, i, length_s, np.inf, True, now_s)
    return (where, start_s) if start_s <= at_s else (other, at_s)


@inner
def hole(c: Lists, k: int, i: int, before_s: float, now_s: float) -> int:
    """Return a processor where single task ``i`` can run before a gang, and start sooner; or -1."""
    best, length_s = -1, c.curves.wanted_s[i, k]
    if c.rules.slot_s > 0.0:
        return best
    for p in range(c.processors.kind.size):
        if c.processors.gangs[p] == 0 or c.processors.kind[p] != k:
            continue
        at_s = opening_s(c, p, now_s, length_s)
        if at_s < before_s and c.tasks.deadline_s[i] - at_s >= length_s:
            best, before_s = p, at_s
    return best


@inner
def start_gangs(c: Lists, now_s: float) -> None:
    """Let gangs run that should have started by now, and promise what waits behind them."""
    while c.due[STARTS, 1] <= now_s and c.due[STARTS, 1] < np.inf:
        i = first_at_most(c.due, STARTS, c.due[STARTS, 1])
        set_key(c.due, STARTS, i, np.inf)
        drop(c.gangs, i)
        start_s, first = c.tasks.start_s[i], c.tasks.node[i]
        write(c, i, c.nodes.lane[first], start_s, c.tasks.length_s[i])
        for n in range(first, first + c.tasks.processors[i]):
            p = c.nodes.lane[n]
            advance(c, p, start_s)
            unlink(c.processors, c.nodes, n)
            c.processors.gangs[p] -= 1
            c.processors.running[p] = i
            c.processors.ready_s[p] = c.tasks.end_s[i]
            tell(c, p)
