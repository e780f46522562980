"""The board of a list policy and how a task is placed on it.

The board is what the policy believes: when each processor is free of all it is to do, which tasks
wait there, which servers are awake. Columns are updated in place and never rebuilt per event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.kernels.least_tree import first_at_most, new_trees, set_key
from downclock.kernels.refusals import NO_ROOM, NO_TIME
from downclock.units import Floats, Ints

SOONEST, FIRST, BEST, WORST, FULLEST, LIGHTEST, TIGHTEST, LOOSEST = range(8)
"""Which awake processor a task goes to: the one free soonest; the first that fits; among those
where it ends in time the one free last, with the least load, with the most load (sum of
utilisations); the least loaded one whose load stays at most 1; among those where it ends in time
the one with the greatest, the least peak load."""

BLOCK = 64
"""Processors that a scan skips at once where none of them is free in time."""

COUNTED_S = 60.0
"""A peak load is the greatest, over a processor's tasks, of the work until the task is done over
its deadline; work counts in whole minutes (mei2021's public code)."""

FOR_EVER = 1e300
"""A time that is later than any, but not never."""


class Board(NamedTuple):
    """Processors and servers (p, s; k kinds).

    The trees are: row k, when each awake processor of kind k is free; row kinds + k, how long each
    sleeping server with a processor of kind k takes to wake; row 2 kinds, when each awake server
    falls asleep if nothing more comes.
    """

    kind: Ints  # (p,)
    server: Ints  # (p,)
    processor_offset: Ints  # (s + 1,) first processor of each server
    wake_s: Floats  # (s,)
    patience_s: Floats  # (s,) how long it stays awake when idle
    awake: Ints  # (s,)
    works: Ints  # (s,) 0 while it is down
    on_since_s: Floats  # (s,) when it last began to wake; -1: on from the start
    end_s: Floats  # (s,) end of its last task
    load: Floats  # (p,) of the tasks since its server woke: sum of utilisations, or peak load
    work_s: Floats  # (p,) their run times, each in whole minutes
    up: Ints  # (p,) 0 while it is down
    running: Ints  # (p,) the task that runs; -1: none, or not looked at since it should have ended
    began_s: Floats  # (p,) when that began
    ready_s: Floats  # (p,) when that is believed to end
    head: Ints  # (p,) first task that waits there; -1: none
    tail: Ints  # (p,)
    trees: Floats  # (2 k + 1, tree)


class Queue(NamedTuple):
    """Tasks that wait on processors, in order (n tasks)."""

    after: Ints  # next on the same processor; -1: none
    before: Ints  # the one before; -1: none
    place: Ints  # processor; -1: none
    start_s: Floats  # planned start
    length_s: Floats  # planned run time


class Jobs(NamedTuple):
    """What is known of the tasks (n tasks, k kinds)."""

    arrival_s: Floats  # (n,)
    deadline_s: Floats  # (n,)
    alone: Ints  # (n,) 1 where the task needs a fresh processor
    kinds: Ints  # (n, k) kinds to try, best first; -1: no more
    wanted_s: Floats  # (n, k) run time it wants
    shortest_s: Floats  # (n, k)
    cheapest_s: Floats  # (n, k) run time of least energy
    share: Floats  # (n, k) utilisation: wanted / window
    rung_first: Ints  # (n, k) its enumerated run times in ``rungs``; none: any length
    rung_end: Ints  # (n, k)
    rungs: Floats  # (entries,) ascending per task and kind


class Rules(NamedTuple):
    """The parts of a list policy as numbers."""

    fit: int
    theta: float
    slot_s: float


class Answer(NamedTuple):
    """What is decided: room for rows; the first entries of ``counts`` say how many were written."""

    counts: Ints  # (4,) placed, revoked, refused, switched
    task: Ints  # placed: task, processor, start and run time
    processor: Ints
    start_s: Floats
    length_s: Floats
    revoked: Ints
    refused: Ints  # refused: task, why and the earliest possible end
    why: Ints
    earliest_s: Floats
    switch: Floats  # (rows, 3) server, 1 on or 0 asleep, when


PLACES, REVOKES, REFUSALS, SWITCHES = range(4)
"""Entries of ``Answer.counts``."""


def new_board(
    kind: Ints, offset: Ints, kinds: int, wake_s: Floats, patience_s: Floats, on: Ints
) -> Board:
    """Make the board at time 0; servers with ``on`` are awake. Cost k p."""
    processors, servers = kind.size, offset.size - 1
    server = np.repeat(np.arange(servers), np.diff(offset))
    keys = np.full((2 * kinds + 1, processors), np.inf)
    for k in range(kinds):
        mine = kind == k
        keys[k, mine & (on[server] == 1)] = 0.0
        asleep = server[mine & (on[server] == 0)]
        keys[kinds + k, asleep] = wake_s[asleep]
    keys[2 * kinds, :servers][on == 1] = patience_s[on == 1]
    return Board(
        kind=kind,
        server=server,
        processor_offset=offset,
        wake_s=wake_s,
        patience_s=patience_s,
        awake=on.copy(),
        works=np.ones(servers, np.int64),
        on_since_s=np.full(servers, -1.0),
        end_s=np.zeros(servers),
        load=np.zeros(processors),
        work_s=np.zeros(processors),
        up=np.ones(processors, np.int64),
        running=np.full(processors, -1),
        began_s=np.zeros(processors),
        ready_s=np.zeros(processors),
        head=np.full(processors, -1),
        tail=np.full(processors, -1),
        trees=new_trees(keys),
    )


def free_s(board: Board) -> Floats:
    """When each processor is free (p,); infinite where its server is asleep."""
    leaves = board.trees.shape[1] // 2
    return np.asarray(board.trees[board.kind, leaves + np.arange(board.kind.size)])


@inner
def _slot(time_s: float, slot_s: float) -> float:
    """Next slot boundary at or after ``time_s`` (the time itself without slots)."""
    if slot_s <= 0.0:
        return time_s
    return np.ceil(time_s / slot_s - 1e-9) * slot_s


@inner
def fitting_length(jobs: Jobs, k: int, i: int, room_s: float, theta: float) -> float:
    """Return the run time task ``i`` gets in ``room_s``, or -1.

    Its wanted length if there is room; else, down to ``theta`` times it, all the room (mei2021
    Definition 2) unless less time costs less energy, or the slowest enumerated clock that fits.
    """
    wanted = jobs.wanted_s[i, k]
    if room_s >= wanted:
        return wanted
    floor = max(theta * wanted, jobs.shortest_s[i, k])
    if room_s < floor:
        return -1.0
    low, high = jobs.rung_first[i, k], jobs.rung_end[i, k]
    if low == high:
        return min(room_s, jobs.cheapest_s[i, k])
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
    """Return the awake processor that the fit rule prefers for task ``i``, or -1."""
    trees = board.trees
    if fit == SOONEST:
        return first_at_most(trees, k, trees[k, 1])
    need = max(theta * jobs.wanted_s[i, k], jobs.shortest_s[i, k])
    latest = min(jobs.deadline_s[i] - need, FOR_EVER)
    if rules.slot_s > 0.0:
        latest = np.floor(latest / rules.slot_s + 1e-9) * rules.slot_s
    if fit == FIRST:
        return first_at_most(trees, k, latest)
    if fit == LIGHTEST:
        latest = FOR_EVER
    return _scan(trees, board.load, k, latest, jobs.share[i, k], fit)


@inner
def _switch(answer: Answer, j: int, on: float, at_s: float) -> None:
    row = answer.counts[SWITCHES]
    answer.switch[row, 0], answer.switch[row, 1], answer.switch[row, 2] = j, on, at_s
    answer.counts[SWITCHES] += 1


@inner
def put_out(board: Board, j: int, asleep_s: float) -> None:
    """Take server ``j`` off the board; it takes ``asleep_s`` to wake (infinite: it cannot)."""
    trees, kind = board.trees, board.kind
    last = trees.shape[0] - 1
    board.awake[j] = 0
    set_key(trees, last, j, np.inf)
    for p in range(board.processor_offset[j], board.processor_offset[j + 1]):
        set_key(trees, kind[p], p, np.inf)
    for p in range(board.processor_offset[j], board.processor_offset[j + 1]):
        set_key(trees, last // 2 + kind[p], j, asleep_s)


@inner
def fall_asleep(board: Board, until_s: float, answer: Answer) -> None:
    """Put every server to sleep whose patience ends by ``until_s``.

    At time 0 none does: what is awake from the start may take the first tasks.
    """
    trees = board.trees
    last = trees.shape[0] - 1
    while until_s > 0.0 and trees[last, 1] <= until_s and trees[last, 1] < np.inf:
        off_s = trees[last, 1]
        j = first_at_most(trees, last, off_s)
        _switch(answer, j, 0.0, off_s)
        put_out(board, j, board.wake_s[j])


@inner
def wake(board: Board, j: int, now_s: float, answer: Answer) -> None:
    """Begin to wake server ``j``; its processors are free when it is awake."""
    trees, kind = board.trees, board.kind
    last = trees.shape[0] - 1
    ready = now_s + board.wake_s[j]
    board.awake[j], board.on_since_s[j], board.end_s[j] = 1, now_s, ready
    _switch(answer, j, 1.0, now_s)
    set_key(trees, last, j, ready + board.patience_s[j])
    for p in range(board.processor_offset[j], board.processor_offset[j + 1]):
        board.load[p], board.work_s[p] = 0.0, 0.0
        board.ready_s[p] = ready
        if board.up[p] == 1:
            set_key(trees, kind[p], p, ready)
        set_key(trees, last // 2 + kind[p], j, np.inf)


@inner
def book(board: Board, jobs: Jobs, fit: int, i: int, p: int, end_s: float, length_s: float) -> None:
    """Book processor ``p`` until ``end_s`` for task ``i``."""
    j = board.server[p]
    board.work_s[p] += _slot(length_s, COUNTED_S)
    if fit >= TIGHTEST:
        board.load[p] = max(board.load[p], board.work_s[p] / jobs.deadline_s[i])
    else:
        board.load[p] += jobs.share[i, board.kind[p]]
    set_key(board.trees, board.kind[p], p, end_s)
    if end_s > board.end_s[j]:
        board.end_s[j] = end_s
        set_key(board.trees, board.trees.shape[0] - 1, j, end_s + board.patience_s[j])


@inner
def ends_by(start_s: float, length_s: float, deadline_s: float) -> float:
    """Return the end of a run; what exceeds the deadline by rounding is not late."""
    end = start_s + length_s
    if end > deadline_s and end <= deadline_s + 1e-9 * max(1.0, abs(deadline_s)):
        return deadline_s
    return end


@inner
def advance(board: Board, queue: Queue, jobs: Jobs, p: int, now_s: float) -> None:
    """Let what should have started on processor ``p`` by now run; cost: how many did."""
    while board.head[p] >= 0 and queue.start_s[board.head[p]] <= now_s:
        i = board.head[p]
        board.head[p] = queue.after[i]
        if board.head[p] < 0:
            board.tail[p] = -1
        else:
            queue.before[board.head[p]] = -1
        queue.place[i] = -1
        board.running[p], board.began_s[p] = i, queue.start_s[i]
        board.ready_s[p] = ends_by(queue.start_s[i], queue.length_s[i], jobs.deadline_s[i])


@inner
def enqueue(board: Board, queue: Queue, p: int, i: int, start_s: float, length_s: float) -> None:
    """Let task ``i`` wait at the end of the queue of processor ``p``."""
    queue.place[i], queue.start_s[i], queue.length_s[i] = p, start_s, length_s
    queue.after[i], queue.before[i] = -1, board.tail[p]
    if board.tail[p] < 0:
        board.head[p] = i
    else:
        queue.after[board.tail[p]] = i
    board.tail[p] = i


@inner
def write(answer: Answer, i: int, p: int, start_s: float, length_s: float) -> None:
    """Promise a run."""
    row = answer.counts[PLACES]
    answer.task[row], answer.processor[row] = i, p
    answer.start_s[row], answer.length_s[row] = start_s, length_s
    answer.counts[PLACES] += 1


@inner
def _put(
    board: Board, queue: Queue, jobs: Jobs, rules: Rules, k: int, i: int, p: int, theta: float,
    now_s: float, answer: Answer,
) -> bool:  # fmt: skip
    """Place task ``i`` on processor ``p`` if it fits there, waking its server if it sleeps."""
    trees, j = board.trees, board.server[p]
    free, asleep = trees[k, trees.shape[1] // 2 + p], board.awake[j] == 0
    if asleep:
        free = now_s + board.wake_s[j]
    start = _slot(max(now_s, free), rules.slot_s)
    length = fitting_length(jobs, k, i, jobs.deadline_s[i] - start, theta)
    if length < 0.0:
        return False
    if asleep:
        wake(board, j, now_s, answer)
    settle(board, queue, jobs, rules, i, p, start, length, now_s, answer)
    return True


@inner
def settle(
    board: Board, queue: Queue, jobs: Jobs, rules: Rules, i: int, p: int, start_s: float,
    length_s: float, now_s: float, answer: Answer,
) -> None:  # fmt: skip
    """Let task ``i`` be the last that processor ``p`` is to do."""
    advance(board, queue, jobs, p, now_s)
    enqueue(board, queue, p, i, start_s, length_s)
    end = ends_by(start_s, length_s, jobs.deadline_s[i])
    book(board, jobs, rules.fit, i, p, end, length_s)
    write(answer, i, p, start_s, length_s)


@inner
def _first_up(board: Board, j: int, k: int) -> int:
    """Return a processor of kind ``k`` of server ``j`` that is not down, or -1."""
    for p in range(board.processor_offset[j], board.processor_offset[j + 1]):
        if board.kind[p] == k and board.up[p] == 1:
            return p
    return -1


@inner
def _try_kind(
    board: Board, queue: Queue, jobs: Jobs, rules: Rules, k: int, i: int, resort: int,
    now_s: float, answer: Answer,
) -> bool:  # fmt: skip
    """Place task ``i`` on an awake processor of kind ``k``, else on one that is asleep."""
    trees = board.trees
    alone = jobs.alone[i] == 1 and resort == 0
    theta, fit = rules.theta, rules.fit
    if alone or resort == 1:
        fit = SOONEST
        theta = 1.0 - resort
    p = _choose(board, jobs, rules, fit, k, i, 1.0)
    if p < 0 and theta < 1.0:
        p = _choose(board, jobs, rules, fit, k, i, theta)
    if p >= 0 and alone and board.load[p] > 0.0:
        p = -1
    if p >= 0 and _put(board, queue, jobs, rules, k, i, p, theta, now_s, answer):
        return True
    room = jobs.deadline_s[i] - now_s
    j = first_at_most(trees, trees.shape[0] // 2 + k, room - jobs.wanted_s[i, k])
    if j < 0:
        j = first_at_most(trees, trees.shape[0] // 2 + k, room - jobs.shortest_s[i, k])
    if j < 0:
        return False
    p = _first_up(board, j, k)
    return p >= 0 and _put(board, queue, jobs, rules, k, i, p, 0.0, now_s, answer)


@inner
def place(
    board: Board, queue: Queue, jobs: Jobs, rules: Rules, i: int, now_s: float, answer: Answer
) -> bool:
    """Place task ``i``; kinds in order of preference, on the last resort at any length."""
    kinds = jobs.kinds.shape[1]
    for attempt in range(2 * kinds):
        k = jobs.kinds[i, attempt % kinds]
        if k >= 0 and _try_kind(
            board, queue, jobs, rules, k, i, attempt // kinds, now_s, answer
        ):  # fmt: skip
            return True
    return False


@inner
def refuse(board: Board, jobs: Jobs, rules: Rules, i: int, now_s: float, answer: Answer) -> None:
    """Say why task ``i`` cannot be placed and when it could end at the earliest."""
    trees, row = board.trees, answer.counts[REFUSALS]
    answer.counts[REFUSALS] += 1
    answer.refused[row], answer.why[row], answer.earliest_s[row] = i, NO_TIME, np.inf
    for rank in range(jobs.kinds.shape[1]):
        k = jobs.kinds[i, rank]
        if k < 0:
            break
        free, shortest = trees[k, 1], jobs.shortest_s[i, k]
        free = min(free, now_s + trees[trees.shape[0] // 2 + k, 1])
        end = _slot(max(now_s, free), rules.slot_s) + shortest
        answer.earliest_s[row] = min(answer.earliest_s[row], end)
        if now_s + shortest <= jobs.deadline_s[i]:
            answer.why[row] = NO_ROOM


@compiled
def place_run(
    board: Board, queue: Queue, jobs: Jobs, rules: Rules, tasks: Ints, until_s: float,
    answer: Answer,
) -> None:  # fmt: skip
    """Place tasks as they arrive, in this order, then let servers fall asleep until ``until_s``.

    Cost: m log p, or m p for the fits that scan.
    """
    for a in range(tasks.size):
        i = tasks[a]
        now = jobs.arrival_s[i]
        fall_asleep(board, now, answer)
        if not place(board, queue, jobs, rules, i, now, answer):
            refuse(board, jobs, rules, i, now, answer)
    fall_asleep(board, until_s, answer)


@compiled
def take_seats(
    board: Board, queue: Queue, jobs: Jobs, rules: Rules, task: Ints, processor: Ints,
    start_s: Floats, length_s: Floats, answer: Answer,
) -> None:  # fmt: skip
    """Bring placements made on another board at time 0 onto this one."""
    for a in range(task.size):
        i, p = task[a], processor[a]
        if board.awake[board.server[p]] == 0:
            wake(board, board.server[p], 0.0, answer)
        settle(board, queue, jobs, rules, i, p, start_s[a], length_s[a], 0.0, answer)
