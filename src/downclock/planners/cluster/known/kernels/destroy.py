"""Which jobs a move takes out: neighbours in place, in time, in a workflow, or from anywhere."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.cluster.known.kernels.gaps import is_busy, step_at
from downclock.planners.cluster.known.kernels.luck import draw, draw_below
from downclock.planners.cluster.known.kernels.model import Board, Question, Search
from downclock.planners.cluster.known.kernels.repair import take_out
from downclock.units import Ints

BESIDE, BLOCK, MEANWHILE, ANYWHERE, KIN, FAMILY, RIVALS, FOR_LOST = 0, 1, 2, 3, 4, 5, 6, 7
"""Around a job on its server; what its server runs until it idles; at its time on any server; from
anywhere; along a path through its workflow, or nearest in it; where it, or a lost job, could run.
"""

LONG_DRAWS = 3
"""Jobs of workflows drawn where the longest of them is wanted."""


@inner
def _drawn(board: Board, placed: bool) -> int:
    """Return a job that is placed, or one that is not, drawn; -1: none was found."""
    runs = board.place.runs
    first = draw_below(board.tally, runs.size)
    for i in range(runs.size):
        job = (first + i) % runs.size
        if (runs[job].kind >= 0) == placed:
            return job
    return -1


@inner
def _server_for(question: Question, board: Board, job: int) -> int:
    """Return a server of a placed job, or one that a lost job could run on."""
    runs = board.place.runs
    if runs[job].kind >= 0:
        pick = draw_below(board.tally, runs[job].count)
        return board.place.held[question.jobs[job].held_first + pick]
    first = draw_below(board.tally, question.servers.size)
    for i in range(question.servers.size):
        server = (first + i) % question.servers.size
        for kind in range(question.kinds.size):
            if question.curve[job, kind] >= 0 and question.capacity[server, kind] > 0:
                return server
    return first


@inner
def _time_around(
    question: Question, board: Board, job: int, server: int, way: int
) -> tuple[float, float]:
    """Return the time in which a way looks for neighbours of a job."""
    runs = board.place.runs
    start_s, end_s = runs[job].start_s, runs[job].end_s
    if way >= RIVALS:
        return question.jobs[job].from_s, question.jobs[job].to_s
    if way == BESIDE:
        reach_s = (end_s - start_s) * (0.1 + 3.0 * draw(board.tally))
        return start_s - reach_s, end_s + reach_s
    if way == BLOCK:
        time_s, used, profile = board.time_s, board.used, board.profiles[server]
        first = last = step_at(time_s, profile, start_s)
        while is_busy(used, profile, first - 1):
            first -= 1
        while is_busy(used, profile, last):
            last += 1
        return time_s[profile.begin + first], time_s[profile.begin + last]
    return start_s, end_s


@inner
def _is_on(question: Question, board: Board, job: int, server: int) -> bool:
    """Tell whether a placed job holds a server, or any (-1)."""
    first = question.jobs[job].held_first
    for i in range(first, first + board.place.runs[job].count):
        if server < 0 or board.place.held[i] == server:
            return True
    return False


@inner
def _list_near(
    question: Question, board: Board, server: int, start_s: float, end_s: float, near: Ints
) -> int:
    """List the jobs that run on a server at some time between two; return how many."""
    runs, count = board.place.runs, 0
    for job in range(runs.size):
        meets = runs[job].end_s > start_s and runs[job].start_s < end_s
        if runs[job].kind >= 0 and meets and _is_on(question, board, job, server):
            near[count] = job
            count += 1
    return count


@inner
def _list_kin(question: Question, board: Board, job: int, most: int, near: Ints) -> int:
    """Walk along edges from a job; return how many jobs were passed."""
    jobs, count = question.jobs, 0
    for _ in range(most):
        near[count] = job
        count += 1
        ahead = jobs[job].after_end - jobs[job].after_first
        behind = jobs[job].before_end - jobs[job].before_first
        if ahead + behind == 0:
            break
        pick = draw_below(board.tally, ahead + behind)
        if pick < ahead:
            job = question.after[jobs[job].after_first + pick]
        else:
            job = question.before[jobs[job].before_first + pick - ahead]
    return count


@inner
def _list_family(question: Question, job: int, most: int, near: Ints) -> int:
    """List a job and the nearest to it along edges, up to so many; return how many."""
    jobs, count, here = question.jobs, 1, 0
    near[0] = job
    while here < count < most:
        behind = jobs[near[here]].before_end - jobs[near[here]].before_first
        ahead = jobs[near[here]].after_end - jobs[near[here]].after_first
        for i in range(behind + ahead):
            other = (
                question.before[jobs[near[here]].before_first + i]
                if i < behind
                else question.after[jobs[near[here]].after_first + i - behind]
            )
            new = count < most
            for j in range(count):
                new = new and near[j] != other
            if new:
                near[count] = other
                count += 1
        here += 1
    return count


@inner
def _seed_of(question: Question, board: Board, way: int) -> int:
    """Draw the job around which others are taken out; -1: none was found.

    Most jobs of a workflow are short, and the long ones are what it costs.
    """
    job = _drawn(board, way != FOR_LOST)
    if way == FOR_LOST or job < 0 or not question.before.size or draw(board.tally) < 0.5:
        return job
    for _ in range(LONG_DRAWS - 1):
        other = _drawn(board, True)
        if question.jobs[other].natural_s > question.jobs[job].natural_s:
            job = other
    return job


@inner
def take_some(question: Question, search: Search, way: int, most: int) -> None:
    """Take out at most so many jobs in one of the ways."""
    board = search.board
    job = _seed_of(question, board, way)
    if job < 0:
        return
    near = np.empty(board.waits.size + most, np.int64)
    if way == ANYWHERE:
        count = most
        for i in range(most):
            near[i] = _drawn(board, True)
    elif way == KIN:
        count = _list_kin(question, board, job, most, near)
    elif way == FAMILY:
        count = _list_family(question, job, most, near)
    else:
        server = _server_for(question, board, job)
        start_s, end_s = _time_around(question, board, job, server, way)
        where = -1 if way in (MEANWHILE, RIVALS) else server
        count = _list_near(question, board, where, start_s, end_s, near)
    left = count
    for i in range(min(most, count) + 1):
        taken = job if i == 0 else -1
        if i > 0:
            pick = draw_below(board.tally, left)
            left -= 1
            taken = near[pick]
            near[pick] = near[left]
        if i == 0 or board.place.runs[taken].kind >= 0:
            take_out(question, search, taken, True)
