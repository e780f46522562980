"""Power that is capped: the most that servers may draw, added up in cells of time.

A cell holds everything that draws at some moment in it, at its fastest clock, so that no moment of
a plan draws more than its cells say. What sleeping servers draw was taken off the cap.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.cluster.known.kernels.gaps import is_busy, is_down, slept_value
from downclock.planners.cluster.known.kernels.lengths import peak_w
from downclock.planners.cluster.known.kernels.luck import draw_below
from downclock.planners.cluster.known.kernels.model import ANCHORS, Board, Question, Records
from downclock.planners.cluster.known.kernels.tariff import over

DRAWS = 12
"""Times at which the draw under a cap changes that are tried within a free time."""

ROUNDING = 1e-9
"""Part of a cap that sums may be above it, and of a cell that a time may be beyond its edge, by
rounding."""


@inner
def _cells(question: Question, board: Board, start_s: float, end_s: float) -> tuple[int, int]:
    """Return the first cell that a time touches, and the one after the last."""
    step_s, most = question.caps[0].step_s, board.draw_w.shape[1]
    first = min(most - 1, max(0, int(start_s / step_s + ROUNDING)))
    last = most if end_s >= step_s * most else int(np.ceil(end_s / step_s - ROUNDING))
    return first, max(first + 1, last)


@inner
def cell_edge_s(question: Question, time_s: float, later: bool) -> float:
    """Return the next edge of a cell, or the last one before a time; without a cap, the time."""
    if not question.caps.size or time_s == np.inf:
        return time_s
    step_s = question.caps[0].step_s
    cells = time_s / step_s
    return step_s * (np.ceil(cells - ROUNDING) if later else np.floor(cells + ROUNDING))


@inner
def _draw_changes(question: Question, board: Board, place: int, cell: int) -> bool:
    """Tell whether a cap on a server has another draw under it than a cell before."""
    for c in range(question.caps.size):
        more_w = abs(board.draw_w[c, cell] - board.draw_w[c, cell - 1])
        if question.capped[c, place] and more_w > ROUNDING * question.caps[c].cap_w:
            return True
    return False


@inner
def list_draws(
    question: Question, board: Board, place: int, since_s: float, until_s: float, count: int
) -> int:
    """Add some times to the anchors at which the draw under a cap changes; return how many."""
    if not question.caps.size:
        return count
    first, end = _cells(question, board, since_s, until_s)
    changes, skip, wait = 0, 1, 0
    for turn in range(2):
        if turn == 1:
            skip = max(1, -(-changes // DRAWS))
            wait = draw_below(board.tally, skip)
        for cell in range(first + 1, end):
            if not _draw_changes(question, board, place, cell):
                continue
            changes += 1
            wait -= turn
            if turn == 1 and wait < 0 and count < ANCHORS:
                board.anchor_s[count] = cell * question.caps[0].step_s
                count, wait = count + 1, skip - 1
    return count


@inner
def run_w(
    question: Question, job: int, kind: int, place: int, start_s: float, end_s: float
) -> float:
    """Return the most that one processor of a job draws on a server, more than idle.

    Never less than that: in a cell that it shares, others may draw while it does not.
    """
    curve, server = question.curves[question.curve[job, kind]], question.servers[place]
    unit_s = (end_s - start_s) / question.jobs[job].scale
    watts = peak_w(question.entries, curve, unit_s, server.shared_w_per_clock)
    return max(0.0, watts + server.shared_w - question.kinds[kind].idle_w)


@inner
def book_run(
    question: Question, board: Board, place: int, watts: float, start_s: float, end_s: float
) -> None:
    """Add what runs on a server for a time."""
    first, end = _cells(question, board, start_s, end_s)
    for c in range(question.caps.size):
        if question.capped[c, place]:
            for cell in range(first, end):
                board.draw_w[c, cell] += watts


@inner
def _awake_w(server: Records) -> float:
    return server.up_w - server.sleep_w


@inner
def _waking_w(server: Records) -> float:
    return server.wake_j / server.wake_s - server.sleep_w if server.wake_s > 0.0 else 0.0


@inner
def _raise(
    question: Question, board: Board, place: int, watts: float, start_s: float, end_s: float
) -> None:
    """Let a server draw at least so much for a time."""
    if not end_s > start_s:
        return
    first, end = _cells(question, board, start_s, end_s)
    for cell in range(first, end):
        more = watts - board.awake_w[place, cell]
        if more > 0.0:
            board.awake_w[place, cell] = watts
            for c in range(question.caps.size):
                if question.capped[c, place]:
                    board.draw_w[c, cell] += more


@inner
def book_server(question: Question, board: Board, place: int) -> None:
    """Work out anew when a server is awake or wakes."""
    for cell in range(board.draw_w.shape[1]):
        for c in range(question.caps.size):
            if question.capped[c, place]:
                board.draw_w[c, cell] -= board.awake_w[place, cell]
        board.awake_w[place, cell] = 0.0
    server, profile = question.servers[place], board.profiles[place]
    last_s, awake = 0.0, server.begins_on
    for step in range(profile.steps):
        at_s, busy = board.time_s[profile.begin + step], is_busy(board.used, profile, step)
        if busy and not is_busy(board.used, profile, step - 1):
            idle = server.up_w * over(question.tariff, server.zone, last_s, at_s)
            slept = slept_value(question.tariff, server, last_s, at_s)
            if awake and slept >= idle and not is_down(question.down, server, last_s, at_s):
                _raise(question, board, place, _awake_w(server), last_s, at_s)
            else:
                _raise(question, board, place, _waking_w(server), at_s - server.wake_s, at_s)
            awake = True
        if busy:
            end_s = board.time_s[profile.begin + step + 1]
            _raise(question, board, place, _awake_w(server), at_s, end_s)
        else:
            last_s = at_s


@inner
def has_power(
    question: Question, board: Board, place: int, watts: float, start_s: float, end_s: float
) -> bool:
    """Tell whether a server may draw so much more for a time, and wake for it."""
    if not question.caps.size:
        return True
    server = question.servers[place]
    woken_s = start_s - server.wake_s
    first, end = _cells(question, board, woken_s, end_s)
    runs_from = _cells(question, board, start_s, end_s)[0]
    for cell in range(first, end):
        mine = _awake_w(server) if cell >= runs_from else _waking_w(server)
        more = max(0.0, mine - board.awake_w[place, cell]) + (watts if cell >= runs_from else 0.0)
        for c in range(question.caps.size):
            limit_w = question.caps[c].cap_w * (1.0 + ROUNDING)
            if question.capped[c, place] and board.draw_w[c, cell] + more > limit_w:
                return False
    return True


@inner
def has_power_together(
    question: Question, board: Board, job: int, kind: int, start_s: float, end_s: float
) -> bool:
    """Tell whether the servers listed for a gang may draw all that it takes, and wake for it."""
    held, count = question.jobs[job].held_first, board.place.runs[job].count
    for c in range(question.caps.size):
        drawn_w = board.draw_w[c].copy()
        limit_w = question.caps[c].cap_w * (1.0 + ROUNDING)
        for i in range(held, held + count):
            place = board.place.held[i]
            if not question.capped[c, place]:
                continue
            server = question.servers[place]
            watts = run_w(question, job, kind, place, start_s, end_s)
            first, end = _cells(question, board, start_s - server.wake_s, end_s)
            runs_from = _cells(question, board, start_s, end_s)[0]
            for cell in range(first, end):
                runs = cell >= runs_from
                mine = _awake_w(server) if runs else _waking_w(server)
                drawn_w[cell] += max(0.0, mine - board.awake_w[place, cell])
                drawn_w[cell] += watts * question.capacity[place, kind] if runs else 0.0
                if drawn_w[cell] > limit_w:
                    return False
    return True


@inner
def first_over(question: Question, board: Board) -> tuple[int, int]:
    """Return a cap and a cell that is above it, or -1 twice."""
    for c in range(question.caps.size):
        limit_w = question.caps[c].cap_w * (1.0 + 2.0 * ROUNDING)
        for cell in range(board.draw_w.shape[1]):
            if board.draw_w[c, cell] > limit_w:
                return c, cell
    return -1, -1


@inner
def next_to(question: Question, board: Board, c: int, cell: int) -> int:
    """Return the job nearest to a cell of those that draw in it under a cap, or -1."""
    runs, jobs, at_s = board.place.runs, question.jobs, (cell + 0.5) * question.caps[0].step_s
    best, least = -1, np.inf
    for job in range(runs.size):
        if runs[job].kind < 0:
            continue
        away_s = max(0.0, runs[job].start_s - at_s, at_s - runs[job].end_s)
        first, end = _cells(question, board, runs[job].start_s, runs[job].end_s)
        for i in range(jobs[job].held_first, jobs[job].held_first + runs[job].count):
            place = board.place.held[i]
            draws = first <= cell < end or board.awake_w[place, cell] > 0.0
            if draws and question.capped[c, place] and away_s < least:
                best, least = job, away_s
    return best
