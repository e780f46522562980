"""Gangs that no server holds: whole servers, the cheapest that are free together."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.cluster.known.kernels.board import awake_added, run_value
from downclock.planners.cluster.known.kernels.caps import (
    cell_edge_s,
    has_power,
    has_power_together,
    run_w,
)
from downclock.planners.cluster.known.kernels.gaps import is_down, step_at
from downclock.planners.cluster.known.kernels.insert import Ask, Offer
from downclock.planners.cluster.known.kernels.lengths import best_length_s, slower_s
from downclock.planners.cluster.known.kernels.luck import draw_below
from downclock.planners.cluster.known.kernels.model import Board, Question, Records
from downclock.units import Floats, Ints

EDGES = 12
"""Steps of other servers at which a gang on whole servers is tried."""


@inner
def _is_free(
    time_s: Floats, used: Ints, profile: Records, kind: int, start_s: float, end_s: float
) -> bool:
    """Tell whether no processor of a kind is used."""
    step = max(0, step_at(time_s, profile, start_s))
    while step < profile.steps and time_s[profile.begin + step] < end_s:
        if used[profile.begin + step, kind] > 0:
            return False
        step += 1
    return True


@inner
def hold(question: Question, board: Board, ask: Ask, start_s: float, end_s: float) -> float:
    """List the cheapest free servers as those of the job; return their cost, or infinity."""
    board.tally[0].trials += 1
    tariff, time_s, used, entries = question.tariff, board.time_s, board.used, question.entries
    curve, scale = question.curves[question.curve[ask.job, ask.kind]], question.jobs[ask.job].scale
    idle_w, down = question.kinds[ask.kind].idle_w, question.down
    cost = np.empty(question.servers.size)
    for place in range(cost.size):
        cost[place] = np.inf
        server, profile = question.servers[place], board.profiles[place]
        size = question.capacity[place, ask.kind]
        late = server.begins_on or start_s >= server.wake_s
        late = late and not is_down(down, server, start_s, end_s)
        more_w = size * run_w(question, ask.job, ask.kind, place, start_s, end_s)
        late = late and has_power(question, board, place, more_w, start_s, end_s)
        if size > 0 and late and _is_free(time_s, used, profile, ask.kind, start_s, end_s):
            run = run_value(tariff, server, idle_w, entries, curve, scale, start_s, end_s)
            awake = awake_added(tariff, down, server, profile, time_s, used, start_s, end_s)
            cost[place] = run + ask.wake_share * awake / size
    left, count, total = question.jobs[ask.job].gang, 0, 0.0
    while left > 0:
        best = 0
        for place in range(cost.size):
            if cost[place] < cost[best]:
                best = place
        if cost[best] == np.inf:
            return np.inf
        mine = min(left, question.capacity[best, ask.kind])
        board.place.held[question.jobs[ask.job].held_first + count] = best
        total += mine * cost[best]
        left -= mine
        count += 1
        cost[best] = np.inf
    board.place.runs[ask.job].count = count
    if not has_power_together(question, board, ask.job, ask.kind, start_s, end_s):
        return np.inf
    return total


@inner
def best_span(question: Question, board: Board, ask: Ask, offer: Offer) -> Offer:
    """Try a gang on whole servers at the ends of its window and at steps of other servers."""
    curve, scale = question.curves[question.curve[ask.job, ask.kind]], question.jobs[ask.job].scale
    entries, idle_w = question.entries, question.kinds[ask.kind].idle_w
    host_w = question.servers[0].up_w / question.kinds[ask.kind].largest
    for trial in range(2 + (EDGES if board.tally[0].busy > 0 else 0)):
        anchor_s = ask.from_s if trial == 0 else ask.to_s
        if trial > 1:
            server = board.profiles[draw_below(board.tally, board.tally[0].busy)].busy_server
            step = draw_below(board.tally, board.profiles[server].steps)
            anchor_s = board.time_s[board.profiles[server].begin + step]
        for choice in range(8 if question.caps.size else 6):
            begins, way = choice % 2 == 0, choice // 2
            at_s = anchor_s if trial < 2 else cell_edge_s(question, anchor_s, begins)
            room_s = ask.to_s - at_s if begins else at_s - ask.from_s
            if not ask.from_s <= at_s <= ask.to_s or not room_s > 0.0:
                continue
            if not begins and at_s == np.inf:
                continue
            price_w = (ask.wake_share * host_w if way == 1 else 0.0) - idle_w
            if way < 2:
                length_s = best_length_s(entries, curve, scale, room_s, price_w)
            else:  # the fastest, or where power is capped the slowest
                length_s = slower_s(entries, curve, scale, room_s, way - 2.0)
            if length_s <= 0.0:
                continue
            start_s = at_s if begins else max(ask.from_s, at_s - length_s)
            end_s = min(ask.to_s, at_s + length_s) if begins else at_s
            cost = hold(question, board, ask, start_s, end_s)
            if cost < offer.cost:
                offer = Offer(cost, ask.kind, -1, start_s, end_s)
    return offer
