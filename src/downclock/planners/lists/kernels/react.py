"""What a list policy does when the world is not as promised: ends, overruns, failures, repairs.

A processor that is free sooner takes up what waits there, then a task that was refused a place and
still can be on time, then one that waits elsewhere. What is overdue is believed to take a little
longer. What has lost its place gets another one; accepted is accepted.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.kernels.least_tree import set_key
from downclock.planners.lists.kernels.board import (
    REVOKES,
    Answer,
    Board,
    Jobs,
    Queue,
    Rules,
    advance,
    ends_by,
    fall_asleep,
    place,
    put_out,
    refuse,
    settle,
    wake,
    write,
)
from downclock.units import Ints

LONGER = 0.1
"""A task that is overdue is believed to take this part of its run time so far longer."""

LOOK = 1024
"""Processors looked at for a task that could start on a free one."""

FREED, OVER, GONE, RETURNED, CUT, MOVED, SERVER_GONE, SERVER_BACK, CHANGED = range(9)
"""What a moment is told: (task, processor) is done there; does not end as believed; a processor is
down; is back; a task is no longer wanted; was lost; a server is down; is back; a task has another
deadline."""


@inner
def _set_free(board: Board, p: int, at_s: float, now_s: float) -> None:
    """Say at ``now_s`` that processor ``p`` is free of all it is to do at ``at_s``."""
    j, trees = board.server[p], board.trees
    if board.awake[j] == 0:
        return
    leaf = trees.shape[1] // 2
    set_key(trees, board.kind[p], p, at_s if board.up[p] == 1 else np.inf)
    end = max(board.on_since_s[j], min(board.end_s[j], now_s))
    for q in range(board.processor_offset[j], board.processor_offset[j + 1]):
        free = trees[board.kind[q], leaf + q]
        end = max(end, free if free < np.inf else 0.0)
        if board.running[q] >= 0:
            end = max(end, board.ready_s[q])
    board.end_s[j] = end
    set_key(trees, trees.shape[0] - 1, j, end + board.patience_s[j])


@inner
def _retime(board: Board, queue: Queue, jobs: Jobs, p: int, at_s: float) -> None:
    """Let what waits on processor ``p`` follow one after the other from ``at_s`` on."""
    now_s, i = at_s, board.head[p]
    while i >= 0:
        queue.start_s[i] = at_s
        at_s = ends_by(at_s, queue.length_s[i], jobs.deadline_s[i])
        i = queue.after[i]
    _set_free(board, p, at_s, now_s)


@inner
def _unlink(board: Board, queue: Queue, i: int) -> int:
    """Take task ``i`` out of the queue it waits in; return the processor."""
    p, before, after = queue.place[i], queue.before[i], queue.after[i]
    if before < 0:
        board.head[p] = after
    else:
        queue.after[before] = after
    if after < 0:
        board.tail[p] = before
    else:
        queue.before[after] = before
    queue.place[i] = -1
    return p


@inner
def _revoke(answer: Answer, i: int) -> None:
    answer.revoked[answer.counts[REVOKES]] = i
    answer.counts[REVOKES] += 1


@inner
def _free_at(board: Board, p: int, now_s: float) -> float:
    """Return when what runs on processor ``p`` is believed to end."""
    return max(now_s, board.ready_s[p])


@inner
def _shifts(board: Board, queue: Queue, jobs: Jobs, p: int, at_s: float, short: bool) -> bool:
    """Tell whether what waits on processor ``p`` is on time from ``at_s``, if need be shortened."""
    k, i = board.kind[p], board.head[p]
    while i >= 0:
        at_s += jobs.shortest_s[i, k] if short else queue.length_s[i]
        if at_s > jobs.deadline_s[i]:
            return False
        i = queue.after[i]
    return True


@inner
def _shorten(board: Board, queue: Queue, jobs: Jobs, p: int) -> None:
    """Run all that waits on processor ``p`` as fast as can be."""
    k, i = board.kind[p], board.head[p]
    while i >= 0:
        queue.length_s[i] = jobs.shortest_s[i, k]
        i = queue.after[i]


@inner
def _promise_anew(board: Board, queue: Queue, p: int, new: int, answer: Answer) -> None:
    """Promise all that waits on processor ``p`` anew, in order; ``new`` was not promised yet."""
    i = board.head[p]
    while i >= 0:
        if i != new:
            _revoke(answer, i)
        write(answer, i, p, queue.start_s[i], queue.length_s[i])
        i = queue.after[i]


@inner
def _start_now(board: Board, queue: Queue, p: int, i: int, length_s: float, now_s: float) -> None:
    """Put task ``i`` ahead of all that waits on processor ``p``."""
    queue.place[i], queue.start_s[i], queue.length_s[i] = p, now_s, length_s
    queue.before[i], queue.after[i] = -1, board.head[p]
    if board.head[p] < 0:
        board.tail[p] = i
    else:
        queue.before[board.head[p]] = i
    board.head[p] = i


@inner
def _take_hopeful(
    board: Board, queue: Queue, jobs: Jobs, hopes: Ints, p: int, now_s: float, answer: Answer
) -> bool:
    """Start a task on the free processor ``p`` that had no place: of those in time, by deadline.

    What waits there must still be on time, if need be at its fastest.
    """
    k, best = board.kind[p], -1
    for a in range(1, hopes[0] + 1):
        i = hopes[a]
        end = now_s + jobs.shortest_s[i, k]
        sooner = best < 0 or jobs.deadline_s[i] < jobs.deadline_s[hopes[best]]
        if not sooner or end == np.inf or end > jobs.deadline_s[i]:
            continue
        if _shifts(board, queue, jobs, p, end, True):
            best = a
    if best < 0:
        return False
    i = hopes[best]
    hopes[best] = hopes[hopes[0]]
    hopes[0] -= 1
    length = jobs.shortest_s[i, k]
    if not _shifts(board, queue, jobs, p, now_s + length, False):
        _shorten(board, queue, jobs, p)
    _start_now(board, queue, p, i, length, now_s)
    _retime(board, queue, jobs, p, now_s)
    _promise_anew(board, queue, p, i, answer)
    return True


@inner
def _take_waiting(
    board: Board, queue: Queue, jobs: Jobs, p: int, now_s: float, answer: Answer
) -> None:
    """Start a task on the idle processor ``p`` that is next elsewhere: the earliest deadline."""
    best, k = -1, board.kind[p]
    for a in range(min(board.kind.size, LOOK)):
        q = (p + a) % board.kind.size
        i = board.head[q]
        if i < 0 or board.kind[q] != k or queue.start_s[i] <= now_s:
            continue
        if best < 0 or jobs.deadline_s[i] < jobs.deadline_s[best]:
            best = i
    if best < 0 or now_s + queue.length_s[best] > jobs.deadline_s[best]:
        return
    q = _unlink(board, queue, best)
    _retime(board, queue, jobs, q, _free_at(board, q, now_s))
    _revoke(answer, best)
    _start_now(board, queue, p, best, queue.length_s[best], now_s)
    _retime(board, queue, jobs, p, now_s)
    write(answer, best, p, now_s, queue.length_s[best])


@inner
def _is_running(board: Board, queue: Queue, jobs: Jobs, p: int, i: int) -> None:
    """Catch up with processor ``p``, where task ``i`` was at work up to now."""
    while board.running[p] != i and board.head[p] >= 0:
        advance(board, queue, jobs, p, queue.start_s[board.head[p]])


@inner
def _freed(
    board: Board, queue: Queue, jobs: Jobs, hopes: Ints, p: int, i: int, now_s: float,
    answer: Answer,
) -> None:  # fmt: skip
    """Processor ``p`` has nothing to run any more: what is next begins now, or as believed."""
    _is_running(board, queue, jobs, p, i)
    believed = board.ready_s[p] == now_s
    board.running[p], board.ready_s[p] = -1, now_s
    if believed or board.up[p] == 0 or board.works[board.server[p]] == 0:
        advance(board, queue, jobs, p, now_s)
        return
    _retime(board, queue, jobs, p, now_s)
    if hopes[0] > 0:
        _take_hopeful(board, queue, jobs, hopes, p, now_s, answer)
    if board.head[p] < 0:
        _take_waiting(board, queue, jobs, p, now_s, answer)
    advance(board, queue, jobs, p, now_s)


@inner
def _overdue(
    board: Board, queue: Queue, jobs: Jobs, rules: Rules, p: int, i: int, now_s: float,
    answer: Answer,
) -> None:  # fmt: skip
    """Believe that what runs takes longer; what cannot wait so long hurries or goes elsewhere."""
    _is_running(board, queue, jobs, p, i)
    if board.running[p] != i:
        return
    longer = LONGER * (now_s - board.began_s[p])
    board.ready_s[p] = now_s + max(longer, 1e-9 * max(1.0, abs(now_s)))  # however short the task
    hurries = not _shifts(board, queue, jobs, p, board.ready_s[p], False)
    if hurries:
        _shorten(board, queue, jobs, p)
    _retime(board, queue, jobs, p, board.ready_s[p])
    if hurries:
        _promise_anew(board, queue, p, -1, answer)
    for late in _take_late(board, queue, jobs, p, answer):
        again(board, queue, jobs, rules, late, now_s, answer)


@inner
def _take_late(board: Board, queue: Queue, jobs: Jobs, p: int, answer: Answer) -> Ints:
    """Take what waits on processor ``p`` and would be late off it; return it in order."""
    late, count, i = np.empty(board.kind.size + queue.place.size, np.int64), 0, board.head[p]
    while i >= 0:
        after = queue.after[i]
        if queue.start_s[i] + queue.length_s[i] > jobs.deadline_s[i]:
            late[count] = i
            count += 1
        i = after
    for a in range(count):
        _unlink(board, queue, late[a])
        _revoke(answer, late[a])
    if count > 0:
        _retime(board, queue, jobs, p, board.ready_s[p])
    return late[:count]


@inner
def again(
    board: Board, queue: Queue, jobs: Jobs, rules: Rules, i: int, now_s: float, answer: Answer
) -> bool:
    """Place an accepted task anew; where it cannot be on time, where it ends first.

    False: nothing works that could run it.
    """
    if place(board, queue, jobs, rules, i, now_s, answer):
        return True
    best, least, start = -1, np.inf, 0.0
    leaf = board.trees.shape[1] // 2
    for p in range(board.kind.size):
        j, k = board.server[p], board.kind[p]
        if board.up[p] == 0 or board.works[j] == 0:
            continue
        free = board.trees[k, leaf + p] if board.awake[j] == 1 else now_s + board.wake_s[j]
        end = max(now_s, free) + jobs.shortest_s[i, k]
        if end < least:
            best, least, start = p, end, max(now_s, free)
    if best < 0:
        return False
    if board.awake[board.server[best]] == 0:
        wake(board, board.server[best], now_s, answer)
    length = jobs.shortest_s[i, board.kind[best]]
    settle(board, queue, jobs, rules, i, best, start, length, now_s, answer)
    return True


@inner
def _evict(
    board: Board, queue: Queue, jobs: Jobs, p: int, lost: Ints, now_s: float, answer: Answer
) -> None:
    """Take all that waits off processor ``p``, which is down; it is placed anew in this moment.

    What has started is told to be lost.
    """
    while board.head[p] >= 0 and queue.start_s[board.head[p]] < now_s:
        advance(board, queue, jobs, p, queue.start_s[board.head[p]])
    board.running[p] = -1
    while board.head[p] >= 0:
        i = board.head[p]
        _unlink(board, queue, i)
        _revoke(answer, i)
        lost[0] += 1
        lost[lost[0]] = i


@inner
def _machine(
    board: Board, queue: Queue, jobs: Jobs, what: int, at: int, lost: Ints, now_s: float,
    answer: Answer,
) -> None:  # fmt: skip
    """Take note of a processor or a server that is down or back."""
    if what == GONE:
        board.up[at] = 0
        _evict(board, queue, jobs, at, lost, now_s, answer)
        _set_free(board, at, np.inf, now_s)
    elif what == RETURNED:
        j = board.server[at]
        ready = max(now_s, board.on_since_s[j] + board.wake_s[j]) if board.awake[j] == 1 else now_s
        board.up[at], board.ready_s[at] = 1, ready
        _set_free(board, at, ready, now_s)
    elif what == SERVER_GONE:
        board.works[at] = 0
        for p in range(board.processor_offset[at], board.processor_offset[at + 1]):
            _evict(board, queue, jobs, p, lost, now_s, answer)
        put_out(board, at, np.inf)
    else:
        board.works[at] = 1
        put_out(board, at, board.wake_s[at])


@inner
def _drop(listed: Ints, i: int) -> bool:
    """Take task ``i`` off a list with its number first; False: it is not there."""
    for a in range(1, listed[0] + 1):
        if listed[a] == i:
            listed[a] = listed[listed[0]]
            listed[0] -= 1
            return True
    return False


@inner
def _leave(
    board: Board, queue: Queue, jobs: Jobs, hopes: Ints, i: int, p: int, now_s: float,
    answer: Answer,
) -> None:  # fmt: skip
    """Task ``i`` is no longer wanted, wherever it is."""
    if _drop(hopes, i):
        return
    if queue.place[i] >= 0 and queue.start_s[i] > now_s:
        q = _unlink(board, queue, i)
        _retime(board, queue, jobs, q, _free_at(board, q, now_s))
    elif p >= 0:
        _freed(board, queue, jobs, hopes, p, i, now_s, answer)


@inner
def _follow(
    board: Board, queue: Queue, jobs: Jobs, rules: Rules, told: Ints, hopes: Ints, lost: Ints,
    now_s: float, answer: Answer,
) -> None:  # fmt: skip
    """Take note of what happened; what has lost its place is listed in ``lost``."""
    for a in range(told.shape[0]):
        what, i, at = told[a, 0], told[a, 1], told[a, 2]
        if what == FREED:
            _freed(board, queue, jobs, hopes, at, i, now_s, answer)
        elif what == OVER:
            _overdue(board, queue, jobs, rules, at, i, now_s, answer)
        elif what == CUT:
            if not _drop(lost, i):
                _leave(board, queue, jobs, hopes, i, at, now_s, answer)
        elif what in (MOVED, CHANGED):
            waits = queue.place[i] >= 0 and (what == MOVED or queue.start_s[i] > now_s)
            if waits:
                _leave(board, queue, jobs, hopes, i, -1, now_s, answer)
                _revoke(answer, i)
            if waits or what == MOVED:
                _drop(lost, i)  # once is enough
                lost[0] += 1
                lost[lost[0]] = i
        else:
            _machine(board, queue, jobs, what, at, lost, now_s, answer)


@compiled
def moment(
    board: Board, queue: Queue, jobs: Jobs, rules: Rules, told: Ints, hopes: Ints, lost: Ints,
    arrived: Ints, now_s: float, answer: Answer,
) -> None:  # fmt: skip
    """Do everything that happens at one moment.

    ``told`` has rows (what, task, processor or server); ``hopes`` the tasks that were refused a
    place and may still get one, and ``lost`` those to place anew, both with their number first.
    Cost: log p a fact, p where a processor is left idle.
    """
    _follow(board, queue, jobs, rules, told, hopes, lost, now_s, answer)
    kept = 0
    for a in range(1, lost[0] + 1):
        if not again(board, queue, jobs, rules, lost[a], now_s, answer):
            kept += 1
            lost[kept] = lost[a]
    lost[0] = kept
    fall_asleep(board, now_s, answer)
    for a in range(arrived.size):
        i = arrived[a]
        if not place(board, queue, jobs, rules, i, now_s, answer):
            refuse(board, jobs, rules, i, now_s, answer)
