"""Destroy and repair (large neighbourhood search) over whole plans, counted in places tried."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.planners.cluster.known.kernels.board import put, take_off
from downclock.planners.cluster.known.kernels.caps import first_over, next_to
from downclock.planners.cluster.known.kernels.destroy import (
    ANYWHERE,
    FAMILY,
    FOR_LOST,
    KIN,
    RIVALS,
    take_some,
)
from downclock.planners.cluster.known.kernels.luck import draw, draw_below
from downclock.planners.cluster.known.kernels.model import Board, Placement, Question, Search
from downclock.planners.cluster.known.kernels.repair import (
    copy_run,
    look_around,
    lose_after,
    settle_all,
    take_out,
)
from downclock.units import Floats, Ints

MOST, WHOLE = 24, 64
"""Jobs that a move takes out at most, and where it is a workflow that moves."""

HEAT = 1.2
"""Worse plans are accepted by up to this many times what a job is worth, at first."""

HURRY = 4.0
"""Parts of a server that a move counts a running processor for beside its own, at most."""

DAWDLE = 2.0
"""Processors' parts of a cap that a move counts a running processor for less, at most."""


@inner
def _keep_best(question: Question, search: Search) -> bool:
    """Remember the plan where it is better than all so far; tell whether it is.

    Where the move began at the best plan, only what it touched is new.
    """
    board, tally = search.board, search.board.tally[0]
    same = tally.lost == tally.best_lost and tally.value < tally.best_value
    if not (tally.lost < tally.best_lost or same):
        return False
    tally.best_lost, tally.best_value = tally.lost, tally.value
    for i in range(tally.touched if tally.at_best else question.jobs.size):
        job = board.waits[i].touched if tally.at_best else i
        copy_run(question, board.place, search.best, job)
    tally.at_best = True
    return True


@inner
def _load(question: Question, search: Search, place: Placement) -> None:
    """Make the plan one that was given or kept."""
    board = search.board
    for job in range(question.jobs.size):
        if board.place.runs[job].kind >= 0:
            take_off(question, board, job)
    board.tally[0].value = 0.0
    for job in range(question.jobs.size):
        copy_run(question, place, board.place, job)
        if place.runs[job].kind >= 0:
            put(question, board, job)


@inner
def _undo(question: Question, search: Search, value: float) -> None:
    """Put everything a move touched back where it was."""
    board, waits = search.board, search.board.waits
    for i in range(board.tally[0].touched):
        if board.place.runs[waits[i].touched].kind >= 0:
            take_off(question, board, waits[i].touched)
    for i in range(board.tally[0].touched):
        job = waits[i].touched
        copy_run(question, search.saved, board.place, job)
        if search.saved.runs[job].kind >= 0:
            put(question, board, job)
    board.tally[0].value = value


@inner
def _end_move(search: Search) -> None:
    waits, tally = search.board.waits, search.board.tally
    for i in range(tally[0].touched):
        waits[waits[i].touched].moving = False
    tally[0].touched = 0
    tally[0].since_s, tally[0].until_s = 0.0, np.inf


@inner
def _sort(order: Ints, key: Floats) -> None:
    """Sort by rising key, in place; equals keep their order. For short lists."""
    for i in range(1, order.size):
        job, mine, j = order[i], key[i], i
        while j > 0 and key[j - 1] > mine:
            order[j], key[j] = order[j - 1], key[j - 1]
            j -= 1
        order[j], key[j] = job, mine


@inner
def _narrow(question: Question, board: Board, order: Ints) -> None:
    """Draw a part of the time that waiting jobs have in which all of them are to run.

    So a workflow moves as one, to another hour. Where they do not fit in it, all time is theirs.
    """
    waits, tally = board.waits, board.tally
    from_s, to_s = np.inf, 0.0
    for i in range(order.size):
        from_s, to_s = min(from_s, waits[order[i]].head_s), max(to_s, waits[order[i]].tail_s)
    part = draw(tally)
    room_s = part * (to_s - from_s)
    if not 0.0 < room_s < np.inf:
        return
    tally[0].since_s = from_s + draw(tally) * (to_s - from_s - room_s)
    tally[0].until_s = tally[0].since_s + room_s
    look_around(question, board, order)
    for i in range(order.size):
        wait = waits[order[i]]
        if wait.head_s + question.jobs[order[i]].shortest_s > wait.tail_s:
            tally[0].since_s, tally[0].until_s = 0.0, np.inf
            look_around(question, board, order)
            return


@inner
def _order(question: Question, search: Search, narrow: bool) -> Ints:
    """Return the waiting jobs in an order to place them that keeps edges."""
    jobs, board = question.jobs, search.board
    waits = board.waits
    order = np.empty(board.tally[0].touched, np.int64)
    key = np.empty(order.size)
    for i in range(order.size):
        order[i] = waits[i].touched
        key[i] = jobs[order[i]].rank
    if question.before.size:
        _sort(order, key)
    look_around(question, board, order)
    if narrow:
        _narrow(question, board, order)
    way, lean = draw_below(board.tally, 4), draw(board.tally)
    for i in range(order.size):
        job = order[i]
        if question.before.size:
            key[i] = lean * waits[job].head_s + (1.0 - lean) * min(waits[job].tail_s, 1e12)
        elif way == 0:
            key[i] = jobs[job].to_s - jobs[job].natural_s
        elif way == 1:
            key[i] = -jobs[job].natural_s * jobs[job].gang
        elif way == 2:
            key[i] = jobs[job].from_s
        else:
            key[i] = draw(board.tally)
    _sort(order, key)
    return order


@inner
def _way(question: Question, search: Search) -> int:
    """Draw a way to take out jobs."""
    tally = search.board.tally
    if tally[0].lost > 0 and draw(tally) < 0.5:
        return FOR_LOST
    if question.before.size and draw(tally) < 0.45:
        return KIN if draw(tally) < 0.5 else FAMILY
    if question.tariff.shape[1] > 1 and draw(tally) < 0.3:
        return RIVALS
    return draw_below(tally, ANYWHERE + 1)


@inner
def _awake_w(question: Question) -> float:
    """Return what a processor's part of an awake server draws, on average."""
    return question.servers.up_w.sum() / question.capacity.sum()


@inner
def _hurry_w(question: Question, lean: float) -> float:
    """Return what a move counts a running processor for, by how it leans (-1 to 1).

    Where cheap hours are scarce who runs fast leaves room, where power is who runs slowly does.
    """
    if lean > 0.0:
        return lean * HURRY * _awake_w(question) if question.tariff.shape[1] > 1 else 0.0
    if not question.caps.size:
        return 0.0
    return lean * DAWDLE * question.caps[0].cap_w / question.capacity.sum()


@inner
def _usual_part(question: Question) -> float:
    """Return the part of all work that a job has, one drawn by its work: many are next to none."""
    total, squares = 0.0, 0.0
    for job in range(question.jobs.size):
        work = question.jobs[job].natural_s * question.jobs[job].gang
        total += work
        squares += work * work
    return squares / (total * total) if total > 0.0 else 1.0


@inner
def _move(question: Question, search: Search, slack: float) -> None:
    """Take some jobs out and place them anew; keep it where it costs little more than before.

    While jobs are lost, room is made for them: then nothing that costs more is kept.
    """
    tally = search.board.tally
    value, lost = tally[0].value, tally[0].lost
    part, way = draw(tally), _way(question, search)
    most = int(part * part * min(WHOLE if way == FAMILY else MOST, question.jobs.size))
    take_some(question, search, way, most)
    wake_share = draw(tally) if draw(tally) < 0.5 else 1.0
    if question.tariff.shape[1] > 1 or question.caps.size:
        lean = 2.0 * draw(tally) - 1.0
        scarce = lost > 0 and question.caps.size > 0
        tally[0].hurry_w = _hurry_w(question, -abs(lean) if scarce else lean)
    order = _order(question, search, way == FAMILY and draw(tally) < 0.5)
    settle_all(question, search, order, wake_share)
    more = slack if lost == 0 else 0.0
    same = tally[0].lost == lost and tally[0].value <= value + more
    if (tally[0].lost < lost or same) and first_over(question, search.board)[0] < 0:
        tally[0].at_best = _keep_best(question, search)
    else:
        _undo(question, search, value)
    _end_move(search)


@inner
def _shed(question: Question, search: Search) -> None:
    """Lose jobs until no cell is above its cap: cells say more than a given plan draws."""
    c, cell = first_over(question, search.board)
    while c >= 0:
        job = next_to(question, search.board, c, cell)
        if job < 0:
            return
        take_out(question, search, job, False)
        lose_after(question, search, job)
        c, cell = first_over(question, search.board)


@inner
def _begin_with(question: Question, search: Search, place: Placement, order: Ints) -> None:
    """Make the plan one that was given, with what it lacks placed in an order that keeps edges."""
    _load(question, search, place)
    _shed(question, search)
    search.board.tally[0].hurry_w = 0.0
    for job in range(question.jobs.size):
        if search.board.place.runs[job].kind < 0:
            take_out(question, search, job, True)
    look_around(question, search.board, order)
    settle_all(question, search, order, 0.5)
    search.board.tally[0].at_best = False
    _keep_best(question, search)
    _end_move(search)


@compiled
def search_on(
    question: Question, search: Search, place: Placement, order: Ints, trials: int, cooled: float
) -> None:
    """Search until so many more places were tried.

    Where an order is given, from a plan on, completed in that order; else from where it was left.
    Worse plans are accepted the less, the nearer ``cooled`` is to 1.
    """
    tally = search.board.tally
    if order.size:
        _begin_with(question, search, place, order)
    begun = tally[0].trials
    heat = HEAT * abs(tally[0].best_value) * _usual_part(question) * (1.0 - cooled) ** 2
    while tally[0].trials - begun < trials:
        _move(question, search, heat * draw(tally))
        tally[0].trials += 1
