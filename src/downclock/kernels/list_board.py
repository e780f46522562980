"""The board and the list scheduler: tasks in, placements out, one call for a whole run of events.

The board is what a list policy knows of the platform: when each processor is free and which
servers are awake. It is a bundle of arrays, updated in place and never rebuilt per event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.compiling import compiled
from downclock.kernels.least_tree import first_at_most, least, new_tree, set_key
from downclock.units import Floats, Ints

SOONEST, FIRST, BEST, WORST, LIGHTEST = 0, 1, 2, 3, 4
"""Which awake processor a task goes to: the one free soonest; the first that fits; the fullest
that fits; the one with the least load (sum of utilisations) that ends in time; the least loaded
one whose load stays at most 1."""

PLACED, NO_TIME, NO_ROOM = 0, 1, 2
"""How an attempt to place a task ends: placed; its deadline is too tight for any clock; every
processor is taken for too long."""


class Board(NamedTuple):
    """State of a list policy: plain arrays (p processors, s servers, k kinds)."""

    kind: Ints  # (p,)
    server: Ints  # (p,)
    first: Ints  # (s + 1,) first processor of each server
    wake_s: Floats  # (s,)
    patience_s: Floats  # (s,) how long an idle server stays awake
    free_s: Floats  # (p,) when each processor is free; meaningful where its server is awake
    load: Floats  # (p,) sum of the utilisations of the tasks given to it
    awake: Ints  # (s,)
    on_since_s: Floats  # (s,) when the server last began to wake
    end_s: Floats  # (s,) end of its last task
    free: Floats  # (k, tree) free_s of awake processors of the kind
    asleep: Floats  # (k, tree) 0 for each sleeping server with a processor of the kind
    sleep_at: Floats  # (tree,) when each awake server falls asleep if nothing more comes


class Jobs(NamedTuple):
    """The tasks of one run, in the order they are placed (m tasks, k kinds)."""

    arrival_s: Floats  # (m,)
    deadline_s: Floats  # (m,)
    kinds: Ints  # (m, k) kinds to try, best first; -1: no more
    length_s: Floats  # (k, m) wanted run time
    shortest_s: Floats  # (k, m) least run time
    rung: Ints  # (k, m + 1) first entry of the job's ladder in ``rungs``; empty: any length
    rungs: Floats  # (entries,) run times of enumerated clocks, ascending per job
    alone: Ints  # (m,) 1: give it a fresh processor


class Rules(NamedTuple):
    """The parts of a list policy as numbers."""

    fit: int
    theta: float
    slot_s: float


class Placed(NamedTuple):
    """What became of each job (m,)."""

    status: Ints
    processor: Ints
    start_s: Floats
    length_s: Floats
    earliest_s: Floats  # earliest possible end, where it was not placed


def new_board(
    kind: Ints, first: Ints, kinds: int, wake_s: Floats, patience_s: Floats, on: Ints
) -> Board:
    """Make the board at time 0; servers with ``on`` are awake. Cost p + s log s."""
    servers, processors = first.size - 1, kind.size
    server = np.repeat(np.arange(servers), np.diff(first))
    free, asleep = [], []
    for k in range(kinds):
        mine = kind == k
        free.append(new_tree(np.where(mine & (on[server] == 1), 0.0, np.inf)))
        has = np.zeros(servers, dtype=bool)
        has[server[mine]] = True
        asleep.append(new_tree(np.where(has & (on == 0), 0.0, np.inf)))
    return Board(
        kind,
        server,
        first,
        wake_s,
        patience_s,
        np.zeros(processors),
        np.zeros(processors),
        on.copy(),
        np.zeros(servers),
        np.zeros(servers),
        np.array(free),
        np.array(asleep),
        new_tree(np.where(on == 1, patience_s, np.inf)),
    )


@compiled
def _start(time_s: float, slot_s: float) -> float:
    """Next slot boundary at or after ``time_s`` (the time itself without slots)."""
    if slot_s <= 0.0:
        return time_s
    return np.ceil(time_s / slot_s - 1e-9) * slot_s


@compiled
def fitting_length(jobs: Jobs, k: int, i: int, room_s: float, theta: float) -> float:
    """Return the run time job ``i`` gets in ``room_s``, or -1.

    Its wanted length if there is room; else, down to ``theta`` times it, all the room (mei2021
    Definition 2) or the slowest enumerated clock that fits.
    """
    wanted = jobs.length_s[k, i]
    if room_s >= wanted:
        return wanted
    floor = max(theta * wanted, jobs.shortest_s[k, i])
    if room_s < floor:
        return -1.0
    low, high = jobs.rung[k, i], jobs.rung[k, i + 1]
    if low == high:
        return room_s
    found = low + np.searchsorted(jobs.rungs[low:high], room_s, side="right") - 1
    if found < low or jobs.rungs[found] < floor:
        return -1.0
    return jobs.rungs[found]


@compiled
def _scan(board: Board, k: int, latest_s: float, share: float, fit: int) -> int:
    """Look at every awake processor of the kind; cost p. Returns the best that fits, or -1."""
    best, best_score = -1, np.inf
    for p in range(board.kind.size):
        if board.kind[p] != k or board.awake[board.server[p]] == 0:
            continue
        if fit == LIGHTEST:
            if board.load[p] + share > 1.0 + 1e-12:
                continue
        elif board.free_s[p] > latest_s:
            continue
        score = -board.free_s[p] if fit == BEST else board.load[p]
        if score < best_score:
            best, best_score = p, score
    return best


@compiled
def _choose(board: Board, jobs: Jobs, rules: Rules, k: int, i: int, theta: float) -> int:
    """Return the awake processor that the fit rule prefers for job ``i``, or -1."""
    if rules.fit == SOONEST:
        return least(board.free[k])
    need = max(theta * jobs.length_s[k, i], jobs.shortest_s[k, i])
    latest = jobs.deadline_s[i] - need
    if rules.fit == FIRST:
        return first_at_most(board.free[k], latest)
    return _scan(board, k, latest, _load(jobs, k, i), rules.fit)


@compiled
def fall_asleep(board: Board, until_s: float, spans: Floats, count: int) -> int:
    """Put every server to sleep whose patience ends by ``until_s``; write its (server, on, off)."""
    while board.sleep_at[1] <= until_s and board.sleep_at[1] < np.inf:
        j = least(board.sleep_at)
        spans[count, 0], spans[count, 1] = j, board.on_since_s[j]
        spans[count, 2] = board.sleep_at[board.sleep_at.size // 2 + j]
        count += 1
        board.awake[j] = 0
        set_key(board.sleep_at, j, np.inf)
        for p in range(board.first[j], board.first[j + 1]):
            set_key(board.free[board.kind[p]], p, np.inf)
            set_key(board.asleep[board.kind[p]], j, 0.0)
    return count


@compiled
def wake(board: Board, j: int, now_s: float) -> None:
    """Begin to wake server ``j``; its processors are free when it is awake."""
    ready = now_s + board.wake_s[j]
    board.awake[j] = 1
    board.on_since_s[j] = now_s
    board.end_s[j] = ready
    set_key(board.sleep_at, j, ready + board.patience_s[j])
    for p in range(board.first[j], board.first[j + 1]):
        board.free_s[p] = ready
        board.load[p] = 0.0
        set_key(board.free[board.kind[p]], p, ready)
        set_key(board.asleep[board.kind[p]], j, np.inf)


@compiled
def _first_of_kind(board: Board, j: int, k: int) -> int:
    for p in range(board.first[j], board.first[j + 1]):
        if board.kind[p] == k:
            return p
    return -1


@compiled
def book(board: Board, p: int, end_s: float, load: float) -> None:
    """Book processor ``p`` until ``end_s``."""
    j = board.server[p]
    board.free_s[p] = end_s
    board.load[p] += load
    set_key(board.free[board.kind[p]], p, end_s)
    if end_s > board.end_s[j]:
        board.end_s[j] = end_s
        set_key(board.sleep_at, j, end_s + board.patience_s[j])


@compiled
def seat(board: Board, jobs: Jobs, out: Placed) -> None:
    """Bring placements made on another board onto this one: wake servers, book processors."""
    for i in range(out.status.size):
        p = out.processor[i]
        if out.status[i] != PLACED:
            continue
        if board.awake[board.server[p]] == 0:
            wake(board, board.server[p], jobs.arrival_s[i])
        end = max(out.start_s[i] + out.length_s[i], board.free_s[p])
        book(board, p, end, _load(jobs, board.kind[p], i))


@compiled
def _load(jobs: Jobs, k: int, i: int) -> float:
    """Utilisation of job ``i``: wanted length over the time between arrival and deadline."""
    return jobs.length_s[k, i] / (jobs.deadline_s[i] - jobs.arrival_s[i])


@compiled
def _try_awake(
    board: Board, jobs: Jobs, rules: Rules, k: int, i: int, theta: float, out: Placed
) -> bool:
    """Place job ``i`` on an awake processor of kind ``k`` if it fits."""
    p = _choose(board, jobs, rules, k, i, 1.0)
    if p < 0 and theta < 1.0:
        p = _choose(board, jobs, rules, k, i, theta)
    if p < 0:
        return False
    start = _start(max(jobs.arrival_s[i], board.free_s[p]), rules.slot_s)
    length = fitting_length(jobs, k, i, jobs.deadline_s[i] - start, theta)
    if length < 0.0:
        return False
    out.processor[i], out.start_s[i], out.length_s[i] = p, start, length
    book(board, p, start + length, _load(jobs, k, i))
    return True


@compiled
def _try_fresh(board: Board, jobs: Jobs, rules: Rules, k: int, i: int, out: Placed) -> bool:
    """Place job ``i`` on a processor that was asleep, waking its server."""
    j = first_at_most(board.asleep[k], 0.0)
    if j < 0:
        return False
    now = jobs.arrival_s[i]
    start = _start(now + board.wake_s[j], rules.slot_s)
    length = fitting_length(jobs, k, i, jobs.deadline_s[i] - start, 0.0)
    if length < 0.0:
        return False
    wake(board, j, now)
    p = _first_of_kind(board, j, k)
    out.processor[i], out.start_s[i], out.length_s[i] = p, start, length
    book(board, p, start + length, _load(jobs, k, i))
    return True


@compiled
def _earliest(board: Board, jobs: Jobs, rules: Rules, k: int, i: int) -> float:
    """Earliest possible end of job ``i`` on kind ``k`` as the board stands."""
    now, best = jobs.arrival_s[i], np.inf
    j = first_at_most(board.asleep[k], 0.0)
    if j >= 0:
        best = _start(now + board.wake_s[j], rules.slot_s)
    if board.free[k, 1] < np.inf:
        best = min(best, _start(max(now, board.free[k, 1]), rules.slot_s))
    return best + jobs.shortest_s[k, i]


@compiled
def _place(board: Board, jobs: Jobs, rules: Rules, i: int, out: Placed) -> bool:
    """Try kinds in order of preference; on the last resort any length down to the shortest."""
    for resort in range(2):
        theta = rules.theta if resort == 0 else 0.0
        for rank in range(jobs.kinds.shape[1]):
            k = jobs.kinds[i, rank]
            if k < 0:
                break
            alone = jobs.alone[i] == 1 and resort == 0
            if not alone and _try_awake(board, jobs, rules, k, i, theta, out):
                return True
            if _try_fresh(board, jobs, rules, k, i, out):
                return True
    return False


@compiled
def place_run(
    board: Board, jobs: Jobs, rules: Rules, out: Placed, spans: Floats, until_s: float
) -> int:
    """Place every job of the run, then let servers fall asleep until ``until_s``.

    Cost: m log p, or m p for the fits that scan. Returns the number of rows written to ``spans``.
    """
    count = 0
    for i in range(jobs.arrival_s.size):
        count = fall_asleep(board, jobs.arrival_s[i], spans, count)
        if _place(board, jobs, rules, i, out):
            out.status[i] = PLACED
            continue
        out.status[i], out.earliest_s[i] = NO_TIME, np.inf
        for rank in range(jobs.kinds.shape[1]):
            k = jobs.kinds[i, rank]
            if k >= 0:
                out.earliest_s[i] = min(out.earliest_s[i], _earliest(board, jobs, rules, k, i))
                if jobs.arrival_s[i] + jobs.shortest_s[k, i] <= jobs.deadline_s[i]:
                    out.status[i] = NO_ROOM
    return fall_asleep(board, until_s, spans, count)
