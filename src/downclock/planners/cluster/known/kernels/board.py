"""The plan so far: putting jobs on servers and taking them off, and what awake servers cost.

Processors of one kind on one server are a count: intervals that never need more than there are can
always be given processors, each in the order of starts. A server that runs nothing idles or sleeps
until it runs again, whichever costs less.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.cluster.known.kernels.caps import book_run, book_server, run_w
from downclock.planners.cluster.known.kernels.gaps import gap_value, is_busy, step_at
from downclock.planners.cluster.known.kernels.lengths import run_j
from downclock.planners.cluster.known.kernels.model import Board, Question, Records
from downclock.planners.cluster.known.kernels.tariff import over
from downclock.units import Floats, Ints


@inner
def _copy_step(board: Board, source: int, target: int) -> None:
    board.time_s[target] = board.time_s[source]
    for kind in range(board.used.shape[1]):
        board.used[target, kind] = board.used[source, kind]


@inner
def _compact(board: Board) -> None:
    """Move the profiles together, each with room to double."""
    time_s, used, profiles = board.time_s.copy(), board.used.copy(), board.profiles
    end = 0
    for server in range(profiles.begin.size):
        old, size = profiles[server].begin, profiles[server].steps
        profiles[server].begin, profiles[server].room = end, 2 * size + 4
        for i in range(size):
            board.time_s[end + i] = time_s[old + i]
            for kind in range(used.shape[1]):
                board.used[end + i, kind] = used[old + i, kind]
        end += profiles[server].room
    board.tally[0].pool_end = end


@inner
def _make_room(board: Board, server: int) -> None:
    """See to it that a profile can take one more step."""
    profiles = board.profiles
    size = profiles[server].steps
    if size < profiles[server].room:
        return
    room = 2 * size + 4
    if board.tally[0].pool_end + room > board.time_s.size:
        _compact(board)
        return
    old, new = profiles[server].begin, board.tally[0].pool_end
    for i in range(size):
        _copy_step(board, old + i, new + i)
    profiles[server].begin, profiles[server].room = new, room
    board.tally[0].pool_end = new + room


@inner
def _split(board: Board, server: int, time_s: float) -> int:
    """Return the step that begins at a time, made where there is none."""
    step = step_at(board.time_s, board.profiles[server], time_s)
    if step >= 0 and board.time_s[board.profiles[server].begin + step] == time_s:
        return step
    _make_room(board, server)
    begin = board.profiles[server].begin
    for i in range(begin + board.profiles[server].steps, begin + step + 1, -1):
        _copy_step(board, i - 1, i)
    here = begin + step + 1
    board.time_s[here] = time_s
    for kind in range(board.used.shape[1]):
        board.used[here, kind] = board.used[here - 1, kind] if step >= 0 else 0
    board.profiles[server].steps += 1
    return step + 1


@inner
def _join(board: Board, server: int, step: int) -> None:
    """Drop a step that changes nothing."""
    profiles = board.profiles
    here = profiles[server].begin + step
    for kind in range(board.used.shape[1]):
        before = board.used[here - 1, kind] if step > 0 else 0
        if board.used[here, kind] != before:
            return
    profiles[server].steps -= 1
    for i in range(here, profiles[server].begin + profiles[server].steps):
        _copy_step(board, i + 1, i)


@inner
def _book(
    board: Board, server: int, kind: int, start_s: float, end_s: float, processors: int
) -> None:
    """Use so many more processors of a server for a time (fewer where negative)."""
    first, last = -1, -1
    for turn in range(2):
        step = _split(board, server, start_s if turn == 0 else end_s)
        first, last = (step, step) if turn == 0 else (first, step)
    begin, every = board.profiles[server].begin, board.used.shape[1] - 1
    for i in range(begin + first, begin + last):
        board.used[i, kind] += processors
        board.used[i, every] += processors
    for turn in range(2):
        _join(board, server, last if turn == 0 else first)
    _list_busy(board, server)


@inner
def _list_busy(board: Board, server: int) -> None:
    """Keep the list of servers that hold a job."""
    profiles, tally = board.profiles, board.tally
    place = profiles[server].busy_place
    if (place >= 0) == (profiles[server].steps > 0):
        return
    if place < 0:
        profiles[server].busy_place = tally[0].busy
        profiles[tally[0].busy].busy_server = server
        tally[0].busy += 1
        return
    tally[0].busy -= 1
    last = profiles[tally[0].busy].busy_server
    profiles[place].busy_server, profiles[last].busy_place = last, place
    profiles[server].busy_place = -1


@inner
def awake_added(
    tariff: Floats,
    down: Floats,
    server: Records,
    profile: Records,
    time_s: Floats,
    used: Ints,
    start_s: float,
    end_s: float,
) -> float:
    """Return what it adds to a server's idling, sleep and wakes that it runs for a time."""
    step = step_at(time_s, profile, start_s)
    while is_busy(used, profile, step):
        step += 1
    value = 0.0
    while step < profile.steps:
        from_s = time_s[profile.begin + step] if step >= 0 else 0.0
        to_s = time_s[profile.begin + step + 1] if step + 1 < profile.steps else np.inf
        if from_s >= end_s and step >= 0:
            break
        was_on = step >= 0 or server.begins_on
        left, right = max(from_s, start_s), min(to_s, end_s)
        value += server.up_w * over(tariff, server.zone, left, right)
        for part in range(3):  # the old idle time, and what is left of it before and after
            if part == 0:
                value -= gap_value(tariff, down, server, was_on, from_s, to_s)
            elif part == 1 and (step < 0 or left > from_s):
                value += gap_value(tariff, down, server, was_on, from_s, left)
            elif part == 2 and right < to_s:
                value += gap_value(tariff, down, server, True, right, to_s)
        step += 1
        while step < profile.steps and is_busy(used, profile, step):
            step += 1
    return value


@inner
def run_value(
    tariff: Floats,
    server: Records,
    idle_w: float,
    entries: Records,
    curve: Records,
    scale: float,
    start_s: float,
    end_s: float,
) -> float:
    """Return what one processor of a job costs, less the idling it replaces."""
    length_s = end_s - start_s
    joules = run_j(entries, curve, scale, length_s, server.shared_w_per_clock)
    watts = joules / length_s + server.shared_w - idle_w
    return watts * over(tariff, server.zone, start_s, end_s)


@inner
def _book_draw(question: Question, board: Board, job: int, sign: float) -> None:
    """Add what a job draws, or take it off; its servers are booked already."""
    run, left = board.place.runs[job], question.jobs[job].gang
    for i in range(question.jobs[job].held_first, question.jobs[job].held_first + run.count):
        place = board.place.held[i]
        mine = min(left, question.capacity[place, run.kind])
        watts = mine * run_w(question, job, run.kind, place, run.start_s, run.end_s)
        book_run(question, board, place, sign * watts, run.start_s, run.end_s)
        book_server(question, board, place)
        left -= mine


@inner
def put(question: Question, board: Board, job: int) -> None:
    """Book the servers that a job is said to run on."""
    jobs, tariff, time_s, used = question.jobs, question.tariff, board.time_s, board.used
    run, curve = (
        board.place.runs[job],
        question.curves[question.curve[job, board.place.runs[job].kind]],
    )
    idle_w, scale = question.kinds[run.kind].idle_w, jobs[job].scale
    left, worth, awake = jobs[job].gang, 0.0, 0.0
    for i in range(jobs[job].held_first, jobs[job].held_first + run.count):
        place = board.place.held[i]
        server, size = question.servers[place], question.capacity[place, run.kind]
        mine = min(left, size)
        worth += mine * run_value(
            tariff, server, idle_w, question.entries, curve, scale, run.start_s, run.end_s
        )
        awake += awake_added(
            tariff,
            question.down,
            server,
            board.profiles[place],
            time_s,
            used,
            run.start_s,
            run.end_s,
        )
        _book(board, place, run.kind, run.start_s, run.end_s, size if run.count > 1 else mine)
        left -= mine
    run.worth = worth
    if question.caps.size:
        _book_draw(question, board, job, 1.0)
    board.tally[0].value += worth + awake
    board.tally[0].lost -= 1


@inner
def take_off(question: Question, board: Board, job: int) -> None:
    """Take a placed job off its servers; its list of servers stays."""
    jobs, run, awake = question.jobs, board.place.runs[job], 0.0
    for i in range(jobs[job].held_first, jobs[job].held_first + run.count):
        place = board.place.held[i]
        booked = jobs[job].gang if run.count == 1 else question.capacity[place, run.kind]
        _book(board, place, run.kind, run.start_s, run.end_s, -booked)
        awake += awake_added(
            question.tariff,
            question.down,
            question.servers[place],
            board.profiles[place],
            board.time_s,
            board.used,
            run.start_s,
            run.end_s,
        )
    if question.caps.size:
        _book_draw(question, board, job, -1.0)
    board.tally[0].value -= run.worth + awake
    board.tally[0].lost += 1
    run.kind = -1
