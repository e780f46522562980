"""Where a task costs least while a joule is worth the same at all times: at the end of a queue.

Tasks are appended to processors where they add least to the energy of the plan, or go ahead of
what is planned and due later, or wake a server. As room is scarce queues are in order of deadline.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.kernels.ends import ends_by
from downclock.kernels.least_tree import first_at_most, set_key
from downclock.planners.cluster.kernels.awake import lingers_s, set_last, wake
from downclock.planners.cluster.kernels.board import Cluster, is_idle, row_of
from downclock.planners.cluster.kernels.curves import at_slope_s, energy_j, fill_s, want_s
from downclock.planners.cluster.kernels.hurry import calm
from downclock.planners.cluster.kernels.processors import (
    append,
    can_shift,
    note_start,
    put_behind,
    retime,
    room_ahead,
    unqueue,
)
from downclock.power.kernels.models import LADDER

ALL, SAMPLE = 2048, 256
"""Awake processors up to which all are looked at for one task; of more, fewer and fewer in turns,
down to the sample."""

IDLE_NOW_S = 600.0
"""A processor that idles now is preferred as if its gap were this much smaller."""

TIGHT = 0.003
"""Weight of the gap between a task's end and its server's, against idle power."""

FAR = 1024
"""Planned tasks of a processor, at most, that are all moved for one."""

CERTAIN = 0.5
"""Above this idle share, run times are chosen as if nothing more came."""


@inner
def _last_cost(c: Cluster, j: int, k: int, row: int, others_s: float, t: float) -> float:
    """Return energy of a server's last task, less idle power it replaces, plus waking time."""
    if t <= 0.0:
        return np.inf
    kept = c.servers.awake_w[j] * max(others_s, t)
    return energy_j(c.curves, row, t) - c.curves.kinds.idle_w[k] * t + kept


@inner
def _last_length(c: Cluster, p: int, i: int, start_s: float) -> float:
    """Return how long the last task of processor ``p`` should run, with nothing more to come.

    Up to the end of the server's other processors it replaces idling; after that it alone keeps
    the server awake.
    """
    curves = c.curves
    j, k = c.processors.server[p], c.processors.kind[p]
    row, room = row_of(c, i, k), c.tasks.deadline_s[i] - start_s
    others = 0.0
    for q in range(c.servers.first[j], c.servers.end[j]):
        if q != p:
            others = max(others, c.processors.end_s[q] - start_s)
    length = c.tasks.length_s[i]
    inside = fill_s(curves, row, min(room, others))
    beyond = length
    if curves.rows.model[row] != LADDER:
        alone_w = max(0.0, c.servers.awake_w[j] - curves.kinds.idle_w[k])
        beyond = max(at_slope_s(curves, row, -alone_w), others, curves.rows.short_s[row])
        beyond = min(beyond, room, curves.rows.long_s[row])
    least = _last_cost(c, j, k, row, others, length)
    for t in (inside, beyond):
        if t < curves.rows.short_s[row] * (1.0 - 1e-12):
            continue
        cost = _last_cost(c, j, k, row, others, t)
        if cost < least:
            length, least = t, cost
    c.processors.end_s[p] = start_s + length
    c.servers.last_s[j] = start_s + max(others, length)
    set_key(c.attend, 0, j, c.servers.last_s[j] + lingers_s(c, j))
    return length


@inner
def _slower(c: Cluster, p: int, i: int, start_s: float) -> float:
    """Return how long task ``i``, no longer queued, should run where it begins sooner than planned.

    A task that was hurried may slow down if that saves more than keeping its server awake costs
    and the tasks after it still meet their deadlines.
    """
    j, k, length = c.processors.server[p], c.processors.kind[p], c.tasks.length_s[i]
    row = row_of(c, i, k)
    if length >= c.curves.rows.free_s[row]:
        return length
    t = want_s(c.curves, row, c.tasks.deadline_s[i] - start_s)
    if t <= length * (1.0 + 1e-9) or not can_shift(c, p, start_s + t, FAR):
        return length
    end = c.processors.end_s[p] + t - length
    longer = max(0.0, end - c.servers.last_s[j])
    awake = c.tally.idle_share[0] * (c.servers.awake_w[j] - c.curves.kinds.idle_w[k]) * longer
    if energy_j(c.curves, row, length) - energy_j(c.curves, row, t) <= awake:
        return length
    retime(c, p, start_s + t)
    return t


@inner
def start(c: Cluster, p: int, i: int, start_s: float, length_s: float) -> None:
    """Let task ``i``, which is in no queue, run on processor ``p``."""
    note_start(c, i, p, start_s, length_s)
    c.processors.running[p], c.processors.begun_s[p], c.tasks.length_s[i] = i, start_s, length_s
    c.processors.ready_s[p] = ends_by(start_s, length_s, c.tasks.deadline_s[i])
    set_key(c.busy, 0, p, c.processors.ready_s[p])


@inner
def begin(c: Cluster, p: int, now_s: float) -> None:
    """Start the next task of processor ``p``, which is free."""
    i = c.processors.head[p]
    if i < 0 or c.processors.up[p] == 0:
        return
    start_s = max(now_s, c.processors.ready_s[p])
    unqueue(c, i)
    length = c.tasks.length_s[i]
    if c.tally.settled[0] == 0:
        length = _slower(c, p, i, start_s)
        c.tasks.length_s[i] = length
        if c.processors.head[p] < 0 and c.tally.idle_share[0] > CERTAIN:
            length = _last_length(c, p, i, start_s)
    start(c, p, i, start_s, length)
    if (
        c.processors.head[p] < 0 and c.processors.end_s[p] != c.processors.ready_s[p]
    ):  # no server sleeps before its task
        c.processors.end_s[p] = c.processors.ready_s[p]
        set_last(c, c.processors.server[p])


@inner
def in_window(c: Cluster) -> int:
    """Return how many awake servers are looked at for one task."""
    awake = c.tally.processors[0]
    if awake <= ALL:
        return c.tally.awake[0]
    return max(1, c.tally.awake[0] * max(SAMPLE, ALL * ALL // awake) // awake)


@inner
def _alone_s(c: Cluster, row: int, most_s: float, alone_w: float) -> float:
    """Return how long a task should run, at most, that alone keeps a server awake."""
    return min(most_s, max(at_slope_s(c.curves, row, -alone_w), c.curves.rows.short_s[row]))


@inner
def _idle_beside(c: Cluster, j: int, k: int, free_s: float, now_s: float) -> float:
    """Return the part of time added to server ``j`` by a task of kind ``k`` that will idle.

    A queue on a kind that is free later than the others of its server shows that those who come do
    not fill these: the more so the further it is behind, against the run time ``free_s``.
    """
    idle_share, servers = c.tally.idle_share[0], c.servers
    if servers.group_end[j] - servers.group_first[j] == 1:
        return idle_share
    mine, soonest = np.inf, np.inf
    for p in range(servers.first[j], servers.end[j]):
        if c.processors.up[p] == 1:
            ends = max(now_s, c.processors.end_s[p])
            soonest = min(soonest, ends)
            if c.processors.kind[p] == k:
                mine = min(mine, ends)
    if mine == np.inf:
        return idle_share
    return max(idle_share, (mine - soonest) / max(mine - soonest + free_s, 1e-9))


@inner
def best_end(c: Cluster, i: int, k: int, new: bool, now_s: float) -> tuple[int, float, float]:
    """Return (processor, cost, length) of the cheapest queue to end, of those awake; -1: none.

    The cost: energy above the task's best; waking time added to the server, as far as it will
    idle; and a little for the gap to the server's end, so that the tightest fit wins. A ``new``
    task that would keep a server awake hurries, where no others are foreseen.
    """
    curves, row = c.curves, row_of(c, i, k)
    deadline, short = c.tasks.deadline_s[i], curves.rows.short_s[row]
    free, free_j = curves.rows.free_s[row], curves.rows.free_j[row]
    smooth = curves.rows.model[row] != LADDER  # any run time: no need to ask which fits
    idle_share, idle_w = c.tally.idle_share[0], curves.kinds.idle_w[k]
    gap_w, wait_weight = TIGHT * idle_w, c.tally.wait_weight[0]
    kind, up = c.processors.kind, c.processors.up
    end_s, last_s = c.processors.end_s, c.servers.last_s
    best, least, length, alone_w, hurried = -1, np.inf, -1.0, -1.0, free
    servers, looked = c.tally.awake[0], in_window(c)
    turn = c.tally.turn[0] % servers if looked < servers else 0
    for a in range(looked):
        j = c.awake_servers[turn + a if turn + a < servers else turn + a - servers]
        last, beside = last_s[j], _idle_beside(c, j, k, free, now_s)
        longer_w = -beside * (c.servers.awake_w[j] - idle_w)
        if new and idle_share > CERTAIN and longer_w != -alone_w:
            alone_w = -longer_w
            hurried = _alone_s(c, row, free, alone_w)
        for p in range(c.servers.first[j], c.servers.end[j]):
            ends = end_s[p]
            start_s = max(now_s, ends)
            room = deadline - start_s
            if room < short or kind[p] != k or up[p] == 0:
                continue
            if start_s + free > last:  # it would keep the server awake
                room = min(room, max(hurried, last - start_s))
            t = min(room, free) if smooth else want_s(curves, row, room)
            gap = last - start_s - t
            cost = gap_w * gap if gap >= 0.0 else longer_w * gap
            cost += gap_w * (wait_weight * (start_s - now_s) if start_s == ends else -IDLE_NOW_S)
            if cost < least and t < free:
                cost += energy_j(curves, row, t) - free_j
            if cost < least and t > 0.0:
                best, least, length = p, cost, t
    c.tally.turn[0] += looked
    return best, least, length


@inner
def _fresh(c: Cluster, i: int, k: int, now_s: float) -> tuple[int, float, float]:
    """Return (server, cost, length) of waking a server for task ``i``; -1: none is left.

    The less it costs the scarcer room is: one that sleeps while tasks wait is room lost.
    """
    curves, row = c.curves, row_of(c, i, k)
    room = c.tasks.deadline_s[i] - now_s
    j = first_at_most(c.asleep, k, room - curves.rows.free_s[row])
    if j < 0:
        j = first_at_most(c.asleep, k, room - curves.rows.short_s[row])
    if j < 0:
        return -1, np.inf, -1.0
    length = want_s(curves, row, room - c.servers.wake_s[j])
    if length < 0.0:
        return -1, np.inf, -1.0
    alone_w = c.tally.idle_share[0] * max(0.0, c.servers.awake_w[j] - curves.kinds.idle_w[k])
    if c.tally.idle_share[0] > CERTAIN:
        length = _alone_s(c, row, length, alone_w)
    cost = energy_j(curves, row, length) - curves.rows.free_j[row] + c.servers.wake_j[j]
    cost += c.servers.sleep_w[j] * max(0.0, now_s - c.servers.last_s[j])
    return j, (cost + alone_w * length) * calm(c, k), length


@inner
def _best_ahead(c: Cluster, i: int, k: int, now_s: float) -> tuple[int, float, float]:
    """Return (processor, cost, length) of the cheapest place ahead of planned tasks; -1: none."""
    curves, row = c.curves, row_of(c, i, k)
    best, least, length = -1, np.inf, -1.0
    for a in range(in_window(c)):
        j = c.awake_servers[a]
        for p in range(c.servers.first[j], c.servers.end[j]):
            if c.processors.kind[p] != k or c.processors.head[p] < 0 or c.processors.up[p] == 0:
                continue
            start_s = max(now_s, c.processors.ready_s[p])
            if c.tasks.deadline_s[i] - start_s < curves.rows.short_s[row]:
                continue
            t = want_s(curves, row, room_ahead(c, p, i, start_s, FAR)[2])
            if t < 0.0:
                continue
            added = max(0.0, c.processors.end_s[p] + t - c.servers.last_s[j])
            cost = c.tally.idle_share[0] * (c.servers.awake_w[j] - curves.kinds.idle_w[k]) * added
            if cost < least and t < curves.rows.free_s[row]:
                cost += energy_j(curves, row, t) - curves.rows.free_j[row]
            if cost < least:
                best, least, length = p, cost, t
    return best, least, length


@inner
def _overtakes(c: Cluster, i: int, other: int, calm_part: float) -> bool:
    """Tell whether task ``i`` is due so much sooner that it goes first, as room is scarce."""
    sooner_s = c.tasks.deadline_s[other] - c.tasks.deadline_s[i]
    return (1.0 - calm_part) * sooner_s > calm_part * c.tasks.length_s[i]


@inner
def put_in_order(c: Cluster, p: int, i: int, length_s: float, now_s: float) -> None:
    """Plan task ``i`` on processor ``p``: last, or, as room is scarce, ahead of those due later.

    None is late for that: the last that is overtaken ends when task ``i`` would have.
    """
    append(c, p, i, length_s, now_s)
    last = c.tasks.before[i]
    if not c.rules.late or last < 0 or c.processors.end_s[p] > c.tasks.deadline_s[i]:
        return
    calm_part, behind, most = calm(c, c.processors.kind[p]), last, FAR
    while behind >= 0 and most > 0 and _overtakes(c, i, behind, calm_part):
        behind, most = c.tasks.before[behind], most - 1
    if behind != last:
        unqueue(c, i)
        put_behind(c, p, i, length_s, behind, now_s)


@inner
def dearer_j(c: Cluster, i: int, k: int) -> float:
    """Return what task ``i`` costs more on kind ``k`` than on the one where it costs least."""
    rows = c.curves.rows
    return rows.free_j[row_of(c, i, k)] - rows.free_j[row_of(c, i, max(c.kinds[i, 0], 0))]


@inner
def _filled_j(c: Cluster, p: int, length_s: float, now_s: float) -> float:
    """Return the idle power that a task replaces at the end of what processor ``p`` is to do."""
    start_s = max(now_s, c.processors.end_s[p])
    inside_s = min(length_s, max(0.0, c.servers.last_s[c.processors.server[p]] - start_s))
    return c.tally.idle_share[0] * c.curves.kinds.idle_w[c.processors.kind[p]] * inside_s


@inner
def cheapest_end(c: Cluster, i: int, now_s: float) -> tuple[int, float]:
    """Return (processor, length) of the cheapest queue to end for a task that is placed anew.

    Of all kinds; -1: none.
    """
    best, least, length = -1, np.inf, -1.0
    for rank in range(c.kinds.shape[1]):
        k = c.kinds[i, rank]
        if k < 0:
            break
        p, cost, t = best_end(c, i, k, False, now_s)
        if p < 0:
            continue
        cost += dearer_j(c, i, k) - _filled_j(c, p, t, now_s)
        if cost < least:
            best, least, length = p, cost, t
    return best, length


@inner
def _first_up(c: Cluster, j: int, k: int) -> int:
    for p in range(c.servers.first[j], c.servers.end[j]):
        if c.processors.kind[p] == k and c.processors.up[p] == 1:
            return p
    return -1


@inner
def _cheapest(c: Cluster, i: int, now_s: float) -> tuple[int, float, int, bool]:
    """Return (processor, length, server to wake or -1, whether ahead of what is planned there).

    Over all kinds; processor -1: nowhere in time.
    """
    best, least, length, fresh, ahead = -1, np.inf, -1.0, -1, False
    for rank in range(c.kinds.shape[1]):
        k = c.kinds[i, rank]
        if k < 0:
            break
        more = dearer_j(c, i, k)
        p, cost, t = best_end(c, i, k, True, now_s)
        if p >= 0 and cost + more < least:
            best, least, length, fresh, ahead = p, cost + more, t, -1, False
        j, cost, t = _fresh(c, i, k, now_s)
        if j >= 0 and cost + more < least:
            best, least, length, fresh, ahead = _first_up(c, j, k), cost + more, t, j, False
        if c.rules.late and (best < 0 or fresh >= 0):
            p, cost, t = _best_ahead(c, i, k, now_s)
            if p >= 0 and cost + more < least:
                best, least, length, fresh, ahead = p, cost + more, t, -1, True
    return best, length, fresh, ahead


@inner
def place_flat(c: Cluster, i: int, now_s: float) -> bool:
    """Place task ``i`` where it costs least; False: nowhere in time."""
    p, length, fresh, ahead = _cheapest(c, i, now_s)
    if p < 0:
        return False
    if fresh >= 0:
        wake(c, fresh, now_s)
    if ahead:
        behind = room_ahead(c, p, i, max(now_s, c.processors.ready_s[p]), FAR)[0]
        put_behind(c, p, i, length, behind, now_s)
    else:
        put_in_order(c, p, i, length, now_s)
    if is_idle(c, p):
        begin(c, p, now_s)
    return True
