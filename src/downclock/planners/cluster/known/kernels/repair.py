"""Placing jobs that wait, in an order; in a workflow between what is placed around them."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.cluster.known.kernels.board import put, take_off
from downclock.planners.cluster.known.kernels.caps import first_over
from downclock.planners.cluster.known.kernels.insert import Ask, Offer, best_place, no_offer
from downclock.planners.cluster.known.kernels.model import Board, Placement, Question, Search
from downclock.planners.cluster.known.kernels.span import best_span, hold
from downclock.units import Ints


@inner
def copy_run(question: Question, source: Placement, target: Placement, job: int) -> None:
    """Copy where one job runs."""
    target.runs[job].kind, target.runs[job].count = source.runs[job].kind, source.runs[job].count
    target.runs[job].start_s, target.runs[job].end_s = (
        source.runs[job].start_s,
        source.runs[job].end_s,
    )
    first = question.jobs[job].held_first
    for i in range(first, first + source.runs[job].count):
        target.held[i] = source.held[i]


@inner
def take_out(question: Question, search: Search, job: int, wait: bool) -> None:
    """Take a job off, remembered once a move; it waits to be placed, or is lost."""
    board = search.board
    if not board.waits[job].moving:
        board.waits[job].moving = True
        board.waits[board.tally[0].touched].touched = job
        board.tally[0].touched += 1
        copy_run(question, board.place, search.saved, job)
    if board.place.runs[job].kind >= 0:
        take_off(question, board, job)
    board.waits[job].pending = wait


@inner
def _head_s(question: Question, board: Board, job: int) -> float:
    """Return the earliest start after what is before a job; infinite where that is lost."""
    jobs, runs, waits = question.jobs, board.place.runs, board.waits
    head_s = max(jobs[job].from_s, board.tally[0].since_s)
    for i in range(jobs[job].before_first, jobs[job].before_end):
        other = question.before[i]
        if runs[other].kind >= 0:
            head_s = max(head_s, runs[other].end_s)
        elif waits[other].pending:
            head_s = max(head_s, waits[other].head_s + jobs[other].shortest_s)
        else:
            return np.inf
    return head_s


@inner
def _look_after(question: Question, board: Board, job: int) -> None:
    """Set the latest end of a waiting job before what is after it, and how long its path is."""
    jobs, runs, waits = question.jobs, board.place.runs, board.waits
    tail_s, path_s = min(jobs[job].to_s, board.tally[0].until_s), 0.0
    for i in range(jobs[job].after_first, jobs[job].after_end):
        other = question.after[i]
        if runs[other].kind >= 0:
            tail_s = min(tail_s, runs[other].start_s)
        elif waits[other].pending:
            tail_s = min(tail_s, waits[other].tail_s - jobs[other].shortest_s)
            path_s = max(path_s, waits[other].path_s)
    waits[job].tail_s, waits[job].path_s = tail_s, path_s + jobs[job].natural_s


@inner
def look_around(question: Question, board: Board, order: Ints) -> None:
    """Work out windows of waiting jobs, given by topological rank."""
    for i in range(order.size):
        board.waits[order[i]].head_s = _head_s(question, board, order[i])
    for i in range(order.size - 1, -1, -1):
        _look_after(question, board, order[i])


@inner
def _find_place(
    question: Question, board: Board, job: int, soft_s: float, wake_share: float
) -> Offer:
    """Return the best place of a job that ends by a time, or else by its latest end."""
    jobs, waits, offer = question.jobs, board.waits, no_offer()
    for turn in range(2):
        to_s = soft_s if turn == 0 else waits[job].tail_s
        if offer.kind >= 0 or (turn == 1 and soft_s == to_s):
            break
        for kind in range(question.kinds.size):
            if question.curve[job, kind] >= 0:
                ask = Ask(job, kind, waits[job].head_s, to_s, wake_share)
                if jobs[job].gang <= question.kinds[kind].largest:
                    offer = best_place(question, board, ask, offer)
                else:
                    offer = best_span(question, board, ask, offer)
    return offer


@inner
def _settle(question: Question, search: Search, job: int, wake_share: float) -> None:
    """Place a waiting job, or lose it and what is placed after it.

    What waits after it is left a part of the time until the latest end, by natural length.
    """
    jobs, board = question.jobs, search.board
    runs, waits = board.place.runs, board.waits
    waits[job].head_s = _head_s(question, board, job)
    waits[job].pending = False
    shortest_s, natural_s, path_s = jobs[job].shortest_s, jobs[job].natural_s, waits[job].path_s
    spare_s = waits[job].tail_s - waits[job].head_s - shortest_s
    offer = no_offer()
    if spare_s >= -1e-12 * shortest_s:
        soft_s = waits[job].tail_s
        if path_s > natural_s and soft_s < np.inf:
            soft_s = waits[job].head_s + shortest_s + spare_s * natural_s / path_s
        offer = _find_place(question, board, job, soft_s, wake_share)
    if offer.kind < 0:
        lose_after(question, search, job)
        return
    if offer.server >= 0:
        board.place.held[jobs[job].held_first] = offer.server
        runs[job].count = 1
    else:
        ask = Ask(job, offer.kind, offer.start_s, offer.end_s, wake_share)
        hold(question, board, ask, offer.start_s, offer.end_s)
    runs[job].kind, runs[job].start_s, runs[job].end_s = offer.kind, offer.start_s, offer.end_s
    put(question, board, job)
    if first_over(question, board)[0] >= 0:  # what it keeps awake draws too
        take_off(question, board, job)
        lose_after(question, search, job)


@inner
def lose_after(question: Question, search: Search, job: int) -> None:
    """Take off every placed job that comes after a lost one."""
    jobs, runs = question.jobs, search.board.place.runs
    if jobs[job].after_first == jobs[job].after_end:
        return
    stack = np.empty(jobs.size, np.int64)
    stack[0], depth = job, 1
    while depth > 0:
        depth -= 1
        here = stack[depth]
        for i in range(jobs[here].after_first, jobs[here].after_end):
            other = question.after[i]
            if runs[other].kind >= 0:
                take_out(question, search, other, False)
                stack[depth] = other
                depth += 1


@inner
def settle_all(question: Question, search: Search, order: Ints, wake_share: float) -> None:
    """Place waiting jobs in an order that keeps edges."""
    for i in range(order.size):
        if search.board.waits[order[i]].pending:
            _settle(question, search, order[i], wake_share)
