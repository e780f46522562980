"""How a list policy places a task: by its fit on what is awake, else on what is asleep."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled, inlined, inner
from downclock.kernels.least_tree import first_at_most, set_key
from downclock.kernels.records import Records
from downclock.kernels.refusals import NO_ROOM, NO_TIME
from downclock.planners.lists.kernels.board import (
    BEST,
    ENDS,
    FIRST,
    FOR_EVER,
    FULLEST,
    LIGHTEST,
    REFUSALS,
    SOONEST,
    STARTS,
    TIGHTEST,
    Lists,
    believe_end,
    fall_asleep,
    fitting_length,
    settle,
    slot_up,
    tell,
    wake,
)
from downclock.planners.lists.kernels.gangs import (
    hole,
    insert,
    opening_s,
    place_gang,
    soonest_gang,
    start_gangs,
)
from downclock.units import Floats, Ints

BLOCK = 64
"""Processors that a scan skips at once where none of them is free in time."""


@inner
def _scan(trees: Floats, load: Floats, k: int, latest_s: float, share: float, fit: int) -> int:
    """Look at the processors of the kind free by ``latest_s``; cost p, blocks without any skipped.

    Returns the one the fit prefers, or -1.
    """
    best, best_score, p = -1, np.inf, 0
    leaves = trees.shape[1] // 2
    while p < load.size:
        if p % BLOCK == 0 and leaves >= BLOCK and trees[k, (leaves + p) // BLOCK] > latest_s:
            p += BLOCK
            continue
        free, score = trees[k, leaves + p], load[p]
        if free <= latest_s and (fit != LIGHTEST or score + share <= 1.0 + 1e-12):
            if fit == BEST:
                score = -free
            elif fit in (FULLEST, TIGHTEST):
                score = -score
            if score < best_score:
                best, best_score = p, score
        p += 1
    return best


@inlined
def _choose(c: Lists, fit: int, k: int, i: int, theta: float) -> int:
    """Return the awake processor that the fit rule prefers for task ``i``, or -1."""
    trees = c.trees
    if fit == SOONEST:
        return first_at_most(trees, k, trees[k, 1])
    need = max(theta * c.curves.wanted_s[i, k], c.curves.shortest_s[i, k])
    latest = min(c.tasks.deadline_s[i] - need, FOR_EVER)
    if c.rules.slot_s > 0.0:
        latest = np.floor(latest / c.rules.slot_s + 1e-9) * c.rules.slot_s
    if fit == FIRST:
        return first_at_most(trees, k, latest)
    if fit == LIGHTEST:
        latest = FOR_EVER
    return _scan(trees, c.load, k, latest, c.curves.share[i, k], fit)


@inner
def _put(c: Lists, k: int, i: int, p: int, theta: float, now_s: float) -> bool:
    """Place task ``i`` on processor ``p`` if it fits there, waking its server if it sleeps."""
    trees, j = c.trees, c.processors.server[p]
    free, asleep = trees[k, trees.shape[1] // 2 + p], c.servers.awake[j] == 0
    if asleep:
        free = now_s + c.servers.wake_s[j]
    start = slot_up(max(now_s, free), c.rules.slot_s)
    length = fitting_length(c, k, i, c.tasks.deadline_s[i] - start, theta)
    if length < 0.0:
        return False
    if asleep:
        wake(c, j, now_s)
    settle(c, i, p, start, length, now_s)
    return True


@inner
def _first_up(c: Lists, j: int, k: int) -> int:
    """Return a processor of kind ``k`` of server ``j`` that is not down, or -1."""
    for p in range(c.servers.first[j], c.servers.end[j]):
        if c.processors.kind[p] == k and c.processors.up[p] == 1:
            return p
    return -1


@inner
def _fill_hole(c: Lists, k: int, i: int, p: int, now_s: float) -> bool:
    """Place task ``i`` before a gang that waits, if it starts sooner there than on ``p``."""
    before_s = np.inf
    if p >= 0:
        before_s = max(now_s, c.trees[k, c.trees.shape[1] // 2 + p])
    q = hole(c, k, i, before_s, now_s)
    if q < 0:
        return False
    length_s = c.curves.wanted_s[i, k]
    insert(c, c.tasks.node[i], q, opening_s(c, q, now_s, length_s), length_s)
    tell(c, q)
    return True


@inlined
def _try_kind(c: Lists, k: int, i: int, resort: int, now_s: float) -> bool:
    """Place task ``i`` on an awake processor of kind ``k``, else on one that is asleep."""
    trees = c.trees
    alone = c.tasks.alone[i] == 1 and resort == 0
    theta, fit = c.rules.theta, c.rules.fit
    if alone or resort == 1:
        fit = SOONEST
        theta = 1.0 - resort
    p = _choose(c, fit, k, i, 1.0)
    if p < 0 and theta < 1.0:
        p = _choose(c, fit, k, i, theta)
    if p >= 0 and alone and c.load[p] > 0.0:
        p = -1
    if c.gangs[0] > 0 and not alone and _fill_hole(c, k, i, p, now_s):
        return True
    if p >= 0 and _put(c, k, i, p, theta, now_s):
        return True
    room = c.tasks.deadline_s[i] - now_s
    j = first_at_most(trees, trees.shape[0] // 2 + k, room - c.curves.wanted_s[i, k])
    if j < 0:
        j = first_at_most(trees, trees.shape[0] // 2 + k, room - c.curves.shortest_s[i, k])
    if j < 0:
        return False
    p = _first_up(c, j, k)
    return p >= 0 and _put(c, k, i, p, 0.0, now_s)


@inner
def place(c: Lists, i: int, now_s: float) -> bool:
    """Place task ``i``; kinds in order of preference, on the last resort at any length."""
    kinds = c.curves.kinds.shape[1]
    for attempt in range(2 * kinds):
        k = c.curves.kinds[i, attempt % kinds]
        if k < 0:
            continue
        if c.tasks.processors[i] > 1:
            placed = place_gang(c, k, i, attempt // kinds, now_s)
        else:
            placed = _try_kind(c, k, i, attempt // kinds, now_s)
        if placed:
            return True
    return False


@inner
def refuse(c: Lists, i: int, now_s: float) -> None:
    """Say why task ``i`` cannot be placed and when it could end at the earliest."""
    trees, row = c.trees, c.counts[REFUSALS]
    c.counts[REFUSALS] += 1
    c.refused.task[row], c.refused.why[row], c.refused.earliest_s[row] = i, NO_TIME, np.inf
    for rank in range(c.curves.kinds.shape[1]):
        k = c.curves.kinds[i, rank]
        if k < 0:
            break
        free, shortest = trees[k, 1], c.curves.shortest_s[i, k]
        free = min(free, now_s + trees[trees.shape[0] // 2 + k, 1])
        if c.tasks.processors[i] > 1:
            free = soonest_gang(c, k, i, now_s)[1]
        end = slot_up(max(now_s, free), c.rules.slot_s) + shortest
        c.refused.earliest_s[row] = min(c.refused.earliest_s[row], end)
        if now_s + shortest <= c.tasks.deadline_s[i]:
            c.refused.why[row] = NO_ROOM


@inner
def _hand_on(c: Lists, i: int, now_s: float, ready: int) -> int:
    """Task ``i`` is done: list what waited for it alone, behind ``ready`` others; return how many.

    What is told later is placed then; a milestone is done at once.
    """
    edge = c.tasks.heir[i]
    c.tasks.heir[i] = -1
    while edge >= 0:
        after, edge = c.edges.after[edge], c.edges.next[edge]
        c.tasks.waits_for[after] -= 1
        if c.tasks.waits_for[after] > 0:
            continue
        if c.tasks.milestone[after] == 1:
            believe_end(c, after, max(now_s, c.tasks.told_s[after]))
        elif c.tasks.told_s[after] < now_s:
            c.late[ready] = after
            ready += 1
    return ready


@inner
def _release(c: Lists, now_s: float) -> None:
    """Place tasks for which everything before them is done by now, in the order of their keys."""
    ready = 0
    while c.due[ENDS, 1] <= now_s and c.due[ENDS, 1] < np.inf:
        i = first_at_most(c.due, ENDS, c.due[ENDS, 1])
        set_key(c.due, ENDS, i, np.inf)
        ready = _hand_on(c, i, now_s, ready)
    if ready == 0:
        return
    tasks = np.sort(c.late[:ready])
    for a in np.argsort(c.tasks.key[tasks], kind="mergesort"):
        place_or_refuse(c, tasks[a], now_s)


@inner
def release_and_sleep(c: Lists, now_s: float) -> None:
    """Release tasks, then let servers fall asleep; one that would now may still take them."""
    if c.due[ENDS, 1] <= now_s and c.due[ENDS, 1] < np.inf:
        fall_asleep(c, np.nextafter(now_s, 0.0))
        _release(c, now_s)
    fall_asleep(c, now_s)


@inner
def place_or_refuse(c: Lists, i: int, now_s: float) -> None:
    """Place task ``i`` unless something before it is not done."""
    if c.tasks.waits_for[i] == 0 and not place(c, i, now_s):
        refuse(c, i, now_s)


@inner
def _pass(c: Lists, until_s: float) -> None:
    """Let time pass up to a moment, with all that happens then but arrivals."""
    while c.due[ENDS, 1] < until_s:
        now_s = c.due[ENDS, 1]
        start_gangs(c, now_s)
        release_and_sleep(c, now_s)
    if c.due[STARTS, 1] <= until_s:
        start_gangs(c, until_s)
    if c.due[ENDS, 1] <= until_s or c.trees[-1, 1] <= until_s:
        release_and_sleep(c, until_s)


@compiled
def place_run(c: Lists, tasks: Ints, until_s: float) -> None:
    """Place tasks as they are told, in this order, then let time pass until ``until_s``.

    Cost: m log p, or m p for gangs and the fits that scan.
    """
    moment_s = -np.inf
    for a in range(tasks.size):
        now_s = c.tasks.told_s[tasks[a]]
        if now_s > moment_s:
            _pass(c, now_s)
            moment_s = now_s
        place_or_refuse(c, tasks[a], now_s)
    _pass(c, until_s)


@compiled
def take_seats(c: Lists, rows: Records) -> None:
    """Bring rows of PLACED that were made on another board at time 0 onto this one."""
    for a in range(rows.task.size):
        i, p = rows.task[a], rows.processor[a]
        if c.servers.awake[c.processors.server[p]] == 0:
            wake(c, c.processors.server[p], 0.0)
        settle(c, i, p, rows.start_s[a], rows.length_s[a], 0.0)
