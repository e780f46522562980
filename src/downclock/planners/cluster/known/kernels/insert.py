"""Where a job costs least: servers × free times × run times, each valued with what it wakes.

On one server a job is tried at the ends of every free time within its window, at the edges of the
server's busy times and at steps of the price and of the draw under a cap, with run times that fill
the room, that pay for the awake server themselves, or that end at such an edge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.cluster.known.kernels.board import awake_added, run_value
from downclock.planners.cluster.known.kernels.caps import has_power, list_draws, run_w
from downclock.planners.cluster.known.kernels.gaps import is_busy, step_at
from downclock.planners.cluster.known.kernels.lengths import ROUNDING, best_length_s, slower_s
from downclock.planners.cluster.known.kernels.luck import draw, draw_below
from downclock.planners.cluster.known.kernels.model import ANCHORS, Board, Question
from downclock.planners.cluster.known.kernels.tariff import piece_of
from downclock.units import Floats

STEPS = 48
"""Steps of a server's profile that one trial looks at; a longer window begins anywhere in it."""

SERVERS = 12
"""Busy servers tried for a job, drawn where there are more."""

TARIFF_STEPS = 6
"""Steps of the price tried within a free time."""

FILL_FROM, PAY_FROM, FILL_TO, PAY_TO, EDGE, SLOW = 0, 1, 2, 3, 4, 7
"""Runs from an anchor on or up to it: that fill the room, or that pay for the awake server (odd);
from `EDGE` on, runs from it that end by one of the next edges; and, where power is capped, the
slowest run from it (`SLOW`) and one that is drawn."""


class Ask(NamedTuple):
    """A job to be placed on one kind of processor."""

    job: int
    kind: int
    from_s: float
    to_s: float
    wake_share: float  # part of what it adds to idling and wakes that it is charged for


class Offer(NamedTuple):
    """The best place so far."""

    cost: float
    kind: int
    server: int
    start_s: float
    end_s: float


@inner
def no_offer() -> Offer:
    """Nothing was found yet."""
    return Offer(np.inf, -1, -1, 0.0, 0.0)


@inner
def _anchors(
    question: Question, board: Board, place: int, since_s: float, until_s: float
) -> tuple[int, int]:
    """List times at which a run may begin or end; return how many, and how many of them are edges.

    First the free time itself, then edges of busy times within it, rising; then steps of the price,
    and of the draw under a cap.
    """
    tariff, profile = question.tariff, board.profiles[place]
    anchor_s, time_s, used, count = board.anchor_s, board.time_s, board.used, 2
    anchor_s[0], anchor_s[1] = since_s, until_s
    step = step_at(time_s, profile, since_s) + 1
    while step < profile.steps and count < ANCHORS // 2:
        edge_s = time_s[profile.begin + step]
        if edge_s >= until_s:
            break
        if is_busy(used, profile, step) != is_busy(used, profile, step - 1):
            anchor_s[count] = edge_s
            count += 1
        step += 1
    edges = count
    if tariff.shape[1] > 1:
        piece, last = piece_of(tariff, since_s) + 1, piece_of(tariff, until_s)
        skip = max(1, (last - piece + 1) // TARIFF_STEPS)
        piece += draw_below(board.tally, skip)
        while piece <= last and tariff[0, piece] < until_s and count < ANCHORS:
            anchor_s[count] = tariff[0, piece]
            count += 1
            piece += skip
    return list_draws(question, board, place, since_s, until_s, count), edges


@inner
def _limit_s(
    anchors_s: Floats, edges: int, anchor_s: float, choice: int, since_s: float, until_s: float
) -> float:
    """Return the time that a run may reach from an anchor by a choice; itself: there is none."""
    if choice < FILL_TO or choice >= SLOW:
        return until_s
    if choice < EDGE:
        return since_s if anchor_s < np.inf else anchor_s
    for i in range(2, edges):
        if anchors_s[i] > anchor_s:
            return anchors_s[min(i + choice - EDGE, edges - 1)]
    return anchor_s


@inner
def _draws_too_much(
    question: Question, board: Board, ask: Ask, place: int, start_s: float, end_s: float
) -> bool:
    """Tell whether a run would take the cluster or a zone above its cap."""
    if not question.caps.size:
        return False
    watts = run_w(question, ask.job, ask.kind, place, start_s, end_s)
    watts *= question.jobs[ask.job].gang
    return not has_power(question, board, place, watts, start_s, end_s)


@inner
def _within(
    question: Question,
    board: Board,
    ask: Ask,
    offer: Offer,
    place: int,
    since_s: float,
    until_s: float,
) -> Offer:
    """Try a job within a time in which processors are free, around downtimes of the server."""
    server, down = question.servers[place], question.down
    for i in range(server.down_first, server.down_end):
        if down[i, 1] > since_s and down[i, 0] < until_s:
            offer = _between(question, board, ask, offer, place, since_s, down[i, 0])
            since_s = down[i, 1]
    return _between(question, board, ask, offer, place, since_s, until_s)


@inner
def _between(
    question: Question,
    board: Board,
    ask: Ask,
    offer: Offer,
    place: int,
    since_s: float,
    until_s: float,
) -> Offer:
    """Try a job everywhere within a time in which the processors it needs are free."""
    tariff, entries, server = question.tariff, question.entries, question.servers[place]
    curve, job = question.curves[question.curve[ask.job, ask.kind]], question.jobs[ask.job]
    if until_s - since_s < entries[curve.first].time_s * job.scale * (1.0 - ROUNDING):
        return offer
    profile, time_s, used = board.profiles[place], board.time_s, board.used
    idle_w, gang = question.kinds[ask.kind].idle_w - board.tally[0].hurry_w, job.gang
    trials = 0
    host_w = ask.wake_share * server.up_w / gang
    count, edges = _anchors(question, board, place, since_s, until_s)
    anchors_s = board.anchor_s
    for i in range(count):
        for choice in range(SLOW + (2 if question.caps.size else 0)):
            anchor_s = anchors_s[i]
            limit_s = _limit_s(anchors_s, edges, anchor_s, choice, since_s, until_s)
            room_s = abs(limit_s - anchor_s)
            if not room_s > 0.0:
                continue
            price_w = server.shared_w - idle_w + (host_w if choice % 2 and choice < EDGE else 0.0)
            if choice < SLOW:
                length_s = best_length_s(entries, curve, job.scale, room_s, price_w)
            else:
                part = 1.0 if choice == SLOW else draw(board.tally)
                length_s = slower_s(entries, curve, job.scale, room_s, part)
            if length_s <= 0.0:
                continue
            back = FILL_TO <= choice < EDGE
            other_s = anchor_s - length_s if back else anchor_s + length_s
            if length_s >= room_s * (1.0 - ROUNDING):
                other_s = limit_s  # to the last digit: what it touches must not overlap it
            start_s, end_s = (other_s, anchor_s) if back else (anchor_s, other_s)
            trials += 1
            cost = gang * run_value(
                tariff, server, idle_w, entries, curve, job.scale, start_s, end_s
            )
            if cost < offer.cost:
                awake = awake_added(
                    tariff, question.down, server, profile, time_s, used, start_s, end_s
                )
                cost += ask.wake_share * awake
                if cost < offer.cost and not _draws_too_much(
                    question, board, ask, place, start_s, end_s
                ):
                    offer = Offer(cost, ask.kind, place, start_s, end_s)
    board.tally[0].trials += trials
    return offer


@inner
def _on_server(question: Question, board: Board, ask: Ask, offer: Offer, place: int) -> Offer:
    """Try a job on one server, in every time in which enough processors are free."""
    from_s, server, profile = ask.from_s, question.servers[place], board.profiles[place]
    time_s, used, begin = board.time_s, board.used, board.profiles[place].begin
    if not server.begins_on:
        from_s = max(from_s, server.wake_s)
    most = question.capacity[place, ask.kind] - question.jobs[ask.job].gang
    step, last = step_at(time_s, profile, from_s), step_at(time_s, profile, ask.to_s)
    if last - step > STEPS:
        step += draw_below(board.tally, last - step - STEPS + 1)
        last = step + STEPS
        from_s = max(from_s, time_s[begin + step]) if step >= 0 else from_s
    to_s = ask.to_s if last + 1 >= profile.steps else min(ask.to_s, time_s[begin + last + 1])
    since_s = from_s
    while step <= last + 1:
        here_s = to_s if step > last else from_s if step < 0 else time_s[begin + step]
        taken = step > last or (step >= 0 and used[begin + step, ask.kind] > most)
        if taken and since_s >= 0.0:
            offer = _within(question, board, ask, offer, place, since_s, here_s)
            since_s = -1.0
        elif not taken and since_s < 0.0:
            since_s = here_s
        step += 1
    return offer


@inner
def _empty_of(question: Question, board: Board, group: int) -> int:
    """Return a server of a group of equal ones that holds nothing, or -1; a few are looked at."""
    first, end = question.groups[group].first, question.groups[group].end
    look = draw_below(board.tally, end - first) if end - first > SERVERS else 0
    for i in range(min(end - first, SERVERS)):
        server = question.alike[first + (look + i) % (end - first)]
        if board.profiles[server].steps == 0:
            return server
    return -1


@inner
def best_place(question: Question, board: Board, ask: Ask, offer: Offer) -> Offer:
    """Try a job that fits on one server on busy servers, and on an empty one of each group."""
    gang, busy = question.jobs[ask.job].gang, board.tally[0].busy
    first = draw_below(board.tally, busy) if busy > SERVERS else 0
    tried = 0
    for i in range(busy + question.groups.first.size):
        if i < busy:
            server = board.profiles[(first + i) % busy].busy_server
            if tried >= SERVERS:
                continue
        else:
            server = _empty_of(question, board, i - busy)
        if server >= 0 and question.capacity[server, ask.kind] >= gang:
            offer = _on_server(question, board, ask, offer, server)
            tried += 1
    return offer
