"""The board and the list scheduler: tasks in, placements out, one call for a whole run of events.

The board is what a list policy knows of the platform: when each processor is free and which
servers are awake. It is a bundle of few arrays, updated in place and never rebuilt per event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.kernels.least_tree import first_at_most, new_trees, set_key
from downclock.units import Floats, Ints

SOONEST, FIRST, BEST, WORST, FULLEST, LIGHTEST, TIGHTEST, LOOSEST = 0, 1, 2, 3, 4, 5, 6, 7
"""Which awake processor a task goes to: the one free soonest; the first that fits; among those
where it ends in time the one free last, with the least load, with the most load (sum of
utilisations); the least loaded one whose load stays at most 1; among those where it ends in time
the one with the greatest, the least peak load."""

PLACED, NO_TIME, NO_ROOM = 0, 1, 2
"""How an attempt to place a task ends: placed; its deadline is too tight for any clock; every
processor is taken for too long."""

WAKE_S, PATIENCE_S, AWAKE, ON_SINCE_S, END_S = 0, 1, 2, 3, 4
"""Rows of ``Board.servers``: time to wake; how long it stays awake when idle; 1 when awake; when
it last began to wake (-1: on from the start); end of its last task."""

ARRIVAL_S, DEADLINE_S, ALONE = 0, 1, 2
"""Rows of ``Jobs.times``: arrival; deadline; 1 where the job needs a fresh processor."""

WANTED_S, SHORTEST_S, CHEAPEST_S, SHARE = 0, 1, 2, 3
"""Rows of ``Jobs.lengths``: wanted run time; least run time; run time of least energy; utilisation
(wanted / window)."""

STATUS, PROCESSOR, START_S, LENGTH_S, EARLIEST_S = 0, 1, 2, 3, 4
"""Rows of what `place_run` writes: how it went; where; when; how long; and the earliest possible
end where a job was not placed."""


BLOCK = 64
"""Processors that a scan skips at once where none of them is free in time."""

COUNTED_S = 60.0
"""A peak load is the greatest, over a processor's tasks, of the work until the task is done over
its deadline; work counts in whole minutes (mei2021's public code)."""

FOR_EVER = 1e300
"""A time that is later than any, but not never."""


class Board(NamedTuple):
    """State of a list policy: plain arrays (p processors, s servers, k kinds).

    The trees are: row k, when each awake processor of kind k is free; row kinds + k, how
    long each sleeping server with a processor of kind k takes to wake; row 2 kinds, when each
    awake server falls asleep if nothing more comes.
    """

    kind: Ints  # (p,)
    server: Ints  # (p,)
    first: Ints  # (s + 1,) first processor of each server
    servers: Floats  # (5, s)
    load: Floats  # (p,) of the tasks since its server woke: sum of utilisations, or peak load
    work_s: Floats  # (p,) their run times, each in whole minutes
    trees: Floats  # (2 k + 1, tree)


class Jobs(NamedTuple):
    """The tasks of one run, in the order they are placed (m tasks, k kinds)."""

    times: Floats  # (3, m)
    kinds: Ints  # (m, k) kinds to try, best first; -1: no more
    lengths: Floats  # (4, k, m)
    rung: Ints  # (k, m + 1) first entry of the job's ladder in ``rungs``; empty: any length
    rungs: Floats  # (entries,) run times of enumerated clocks, ascending per job


class Rules(NamedTuple):
    """The parts of a list policy as numbers."""

    fit: int
    theta: float
    slot_s: float


def new_board(
    kind: Ints, first: Ints, kinds: int, wake_s: Floats, patience_s: Floats, on: Ints
) -> Board:
    """Make the board at time 0; servers with ``on`` are awake. Cost k p."""
    processors, servers = kind.size, first.size - 1
    server = np.repeat(np.arange(servers), np.diff(first))
    keys = np.full((2 * kinds + 1, processors), np.inf)
    for k in range(kinds):
        mine = kind == k
        keys[k, mine & (on[server] == 1)] = 0.0
        asleep = server[mine & (on[server] == 0)]
        keys[kinds + k, asleep] = wake_s[asleep]
    keys[2 * kinds, :servers][on == 1] = patience_s[on == 1]
    state = np.array([wake_s, patience_s, on, np.full(servers, -1.0), np.zeros(servers)])
    load, work_s = np.zeros(processors), np.zeros(processors)
    return Board(kind, server, first, state, load, work_s, new_trees(keys))


def free_s(board: Board) -> Floats:
    """When each processor is free (p,); infinite where its server is asleep."""
    leaves = board.trees.shape[1] // 2
    return np.asarray(board.trees[board.kind, leaves + np.arange(board.kind.size)])


def next_sleep_s(board: Board) -> float:
    """When the next server falls asleep if nothing more comes."""
    return float(board.trees[-1, 1])


def still_awake(board: Board) -> Floats:
    """Rows (server, on, never off) of the servers that are awake."""
    awake = np.flatnonzero(board.servers[AWAKE] == 1.0)
    since = board.servers[ON_SINCE_S, awake]
    return np.column_stack([awake, since, np.full(awake.size, np.inf)])


@inner
def _slot(time_s: float, slot_s: float) -> float:
    """Next slot boundary at or after ``time_s`` (the time itself without slots)."""
    if slot_s <= 0.0:
        return time_s
    return np.ceil(time_s / slot_s - 1e-9) * slot_s


@inner
def fitting_length(jobs: Jobs, k: int, i: int, room_s: float, theta: float) -> float:
    """Return the run time job ``i`` gets in ``room_s``, or -1.

    Its wanted length if there is room; else, down to ``theta`` times it, all the room (mei2021
    Definition 2) unless less time costs less energy, or the slowest enumerated clock that fits.
    """
    wanted = jobs.lengths[WANTED_S, k, i]
    if room_s >= wanted:
        return wanted
    floor = max(theta * wanted, jobs.lengths[SHORTEST_S, k, i])
    if room_s < floor:
        return -1.0
    low, high = jobs.rung[k, i], jobs.rung[k, i + 1]
    if low == high:
        return min(room_s, jobs.lengths[CHEAPEST_S, k, i])
    found = -1.0
    for entry in range(low, high):
        if floor <= jobs.rungs[entry] <= room_s:
            found = jobs.rungs[entry]
    return found


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


@inner
def _choose(board: Board, jobs: Jobs, rules: Rules, fit: int, k: int, i: int, theta: float) -> int:
    """Return the awake processor that the fit rule prefers for job ``i``, or -1."""
    trees, lengths = board.trees, jobs.lengths
    if fit == SOONEST:
        return first_at_most(trees, k, trees[k, 1])
    need = max(theta * lengths[WANTED_S, k, i], lengths[SHORTEST_S, k, i])
    latest = min(jobs.times[DEADLINE_S, i] - need, FOR_EVER)
    if rules.slot_s > 0.0:
        latest = np.floor(latest / rules.slot_s + 1e-9) * rules.slot_s
    if fit == FIRST:
        return first_at_most(trees, k, latest)
    if fit == LIGHTEST:
        latest = FOR_EVER
    return _scan(trees, board.load, k, latest, lengths[SHARE, k, i], fit)


@inner
def fall_asleep(board: Board, until_s: float, spans: Floats) -> None:
    """Put every server to sleep whose patience ends by ``until_s``; write its (server, on, off).

    At time 0 none does: what is awake from the start may take the first tasks. The first entry
    of ``spans`` counts the rows written after it.
    """
    trees, kind = board.trees, board.kind
    last = trees.shape[0] - 1
    while until_s > 0.0 and trees[last, 1] <= until_s and trees[last, 1] < np.inf:
        off_s = trees[last, 1]
        j = first_at_most(trees, last, off_s)
        spans[0, 0] += 1.0
        row = int(spans[0, 0])
        spans[row, 0], spans[row, 1], spans[row, 2] = j, board.servers[ON_SINCE_S, j], off_s
        board.servers[AWAKE, j] = 0.0
        set_key(trees, last, j, np.inf)
        for p in range(board.first[j], board.first[j + 1]):
            set_key(trees, kind[p], p, np.inf)
            set_key(trees, last // 2 + kind[p], j, board.servers[WAKE_S, j])


@inner
def wake(board: Board, j: int, now_s: float) -> None:
    """Begin to wake server ``j``; its processors are free when it is awake."""
    trees, servers, kind = board.trees, board.servers, board.kind
    last = trees.shape[0] - 1
    ready = now_s + servers[WAKE_S, j]
    servers[AWAKE, j], servers[ON_SINCE_S, j], servers[END_S, j] = 1.0, now_s, ready
    set_key(trees, last, j, ready + servers[PATIENCE_S, j])
    for p in range(board.first[j], board.first[j + 1]):
        board.load[p], board.work_s[p] = 0.0, 0.0
        set_key(trees, kind[p], p, ready)
        set_key(trees, last // 2 + kind[p], j, np.inf)


@inner
def book(board: Board, jobs: Jobs, fit: int, i: int, p: int, end_s: float, length_s: float) -> None:
    """Book processor ``p`` until ``end_s`` for job ``i``."""
    trees, servers, j = board.trees, board.servers, board.server[p]
    board.work_s[p] += _slot(length_s, COUNTED_S)
    if fit >= TIGHTEST:
        board.load[p] = max(board.load[p], board.work_s[p] / jobs.times[DEADLINE_S, i])
    else:
        board.load[p] += jobs.lengths[SHARE, board.kind[p], i]
    set_key(trees, board.kind[p], p, end_s)
    if end_s > servers[END_S, j]:
        servers[END_S, j] = end_s
        set_key(trees, trees.shape[0] - 1, j, end_s + servers[PATIENCE_S, j])


@compiled
def seat(board: Board, jobs: Jobs, fit: int, out: Floats) -> None:
    """Bring placements made on another board onto this one: wake servers, book processors."""
    trees = board.trees
    for i in range(out.shape[1]):
        if out[STATUS, i] != PLACED:
            continue
        p = int(out[PROCESSOR, i])
        k, j = board.kind[p], board.server[p]
        if board.servers[AWAKE, j] == 0.0:
            wake(board, j, jobs.times[ARRIVAL_S, i])
        end = max(out[START_S, i] + out[LENGTH_S, i], trees[k, trees.shape[1] // 2 + p])
        book(board, jobs, fit, i, p, end, out[LENGTH_S, i])


@inner
def _put(
    board: Board, jobs: Jobs, rules: Rules, k: int, i: int, p: int, theta: float, out: Floats
) -> bool:
    """Place job ``i`` on processor ``p`` if it fits there, waking its server if it sleeps."""
    trees, now, j = board.trees, jobs.times[ARRIVAL_S, i], board.server[p]
    free, asleep = trees[k, trees.shape[1] // 2 + p], board.servers[AWAKE, j] == 0.0
    if asleep:
        free = now + board.servers[WAKE_S, j]
    start = _slot(max(now, free), rules.slot_s)
    length = fitting_length(jobs, k, i, jobs.times[DEADLINE_S, i] - start, theta)
    if length < 0.0:
        return False
    if asleep:
        wake(board, j, now)
    out[STATUS, i], out[PROCESSOR, i], out[START_S, i], out[LENGTH_S, i] = PLACED, p, start, length
    book(board, jobs, rules.fit, i, p, start + length, length)
    return True


@inner
def _try_kind(
    board: Board, jobs: Jobs, rules: Rules, k: int, i: int, resort: int, out: Floats
) -> bool:
    """Place job ``i`` on an awake processor of kind ``k``, else on one that is asleep."""
    trees = board.trees
    alone = jobs.times[ALONE, i] == 1.0 and resort == 0
    theta, fit = rules.theta, rules.fit
    if alone or resort == 1:
        fit = SOONEST
        theta = 1.0 - resort
    p = _choose(board, jobs, rules, fit, k, i, 1.0)
    if p < 0 and theta < 1.0:
        p = _choose(board, jobs, rules, fit, k, i, theta)
    if p >= 0 and alone and board.load[p] > 0.0:
        p = -1
    if p >= 0 and _put(board, jobs, rules, k, i, p, theta, out):
        return True
    room = jobs.times[DEADLINE_S, i] - jobs.times[ARRIVAL_S, i]
    j = first_at_most(trees, trees.shape[0] // 2 + k, room - jobs.lengths[WANTED_S, k, i])
    if j < 0:
        j = first_at_most(trees, trees.shape[0] // 2 + k, room - jobs.lengths[SHORTEST_S, k, i])
    if j < 0:
        return False
    p = board.first[j]
    while board.kind[p] != k:
        p += 1
    return _put(board, jobs, rules, k, i, p, 0.0, out)


@inner
def _give_up(board: Board, jobs: Jobs, rules: Rules, i: int, out: Floats) -> None:
    """Say why job ``i`` cannot be placed and when it could end at the earliest."""
    trees, now = board.trees, jobs.times[ARRIVAL_S, i]
    out[STATUS, i], out[EARLIEST_S, i] = NO_TIME, np.inf
    for rank in range(jobs.kinds.shape[1]):
        k = jobs.kinds[i, rank]
        if k < 0:
            break
        free, shortest = trees[k, 1], jobs.lengths[SHORTEST_S, k, i]
        free = min(free, now + trees[trees.shape[0] // 2 + k, 1])
        end = _slot(max(now, free), rules.slot_s) + shortest
        out[EARLIEST_S, i] = min(out[EARLIEST_S, i], end)
        if now + shortest <= jobs.times[DEADLINE_S, i]:
            out[STATUS, i] = NO_ROOM


@compiled
def place_run(
    board: Board, jobs: Jobs, rules: Rules, out: Floats, spans: Floats, until_s: float
) -> None:
    """Place every job of the run, then let servers fall asleep until ``until_s``.

    Kinds are tried in order of preference; on the last resort at any length down to the
    shortest. ``out`` is (5, m); ``spans`` has a row for its count and one for each job and each
    awake server. Cost: m log p, or m p for the fits that scan.
    """
    kinds = jobs.kinds.shape[1]
    for i in range(out.shape[1]):
        fall_asleep(board, jobs.times[ARRIVAL_S, i], spans)
        done = False
        for attempt in range(2 * kinds):
            k = jobs.kinds[i, attempt % kinds]
            if k >= 0 and _try_kind(board, jobs, rules, k, i, attempt // kinds, out):
                done = True
                break
        if not done:
            _give_up(board, jobs, rules, i, out)
    fall_asleep(board, until_s, spans)
