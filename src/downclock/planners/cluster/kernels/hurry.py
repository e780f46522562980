"""Hurry while room is scarce: tasks that come want shorter run times, so that more find room.

On a small cluster one task that runs slowly may be why the next has no place. So tasks hurry, and
wait less, by the chance that one that comes finds all processors taken even if all are at their
fastest: none on a large cluster that is not full, much where processors are few. Besides, each time
there is no room for a task that could be in time on its own, those that come after it hurry, less
and less.
"""

from __future__ import annotations

import math

import numpy as np

from downclock.kernels.compiling import inner
from downclock.kernels.least_tree import LARGEST
from downclock.planners.cluster.kernels.awake import WARMER
from downclock.planners.cluster.kernels.board import Cluster, row_of
from downclock.planners.cluster.kernels.curves import at_slope_s, energy_j, want_s, wanted_j

SMALL = 8.0
"""Processors of a kind up to which one task without room means that all are to hurry."""

FADES = 0.995
"""What is left of the hurry after each task that comes."""

LATELY = 64.0
"""Tasks that count as having come lately."""

USUAL = 0.45
"""Part of its window that a task needs at its fastest where its chance to find no room is that of
finding all processors taken; one that needs less can wait longer for room."""

EXPECTED = 0.5
"""Part of the processors that is taken to be busy before tasks have come for a usual window."""

WARY, RESTLESS, MOST = 20.0, 10.0, 0.7
"""How much tasks hurry, and how much less they wait, for the chance that one finds no room; and how
much they hurry at most for a mere chance."""

ONLY = 7.0
"""What a second of a run costs more, against its power, for the square of the chance that all
processors but its own are taken: on a single one whoever comes meanwhile finds no room. As a price
it hurries those most that save least by running longer."""


@inner
def note_no_room(c: Cluster, i: int, now_s: float) -> None:
    """Note that there is no room for task ``i`` beside what is planned.

    One that no processors could run in time, or that could only not wait for a server to wake, is
    not a sign that room is scarce.
    """
    k = c.kinds[i, 0]
    if k < 0 or c.tasks.gang[i] > c.pools.up[k]:
        return
    wake_s = c.asleep[k, 1] if c.asleep[k, 1] <= LARGEST else 0.0
    short, room = c.curves.rows.short_s[row_of(c, i, k)], c.tasks.deadline_s[i] - now_s
    if wake_s + short > room:
        if short <= room:
            most = float(c.pools.end[k] - c.pools.first[k])
            c.pools.warm[k] = min(most, c.pools.warm[k] + WARMER)
        return
    c.pools.hurry[k] = min(1.0, c.pools.hurry[k] + min(1.0, SMALL / max(c.pools.up[k], 1)))


@inner
def _note_arrival(c: Cluster, i: int, k: int, now_s: float) -> None:
    """Count task ``i`` among those that came lately."""
    pools, left = c.pools, 1.0 - 1.0 / LATELY
    gang, short = float(c.tasks.gang[i]), c.curves.rows.short_s[row_of(c, i, k)]
    window = c.tasks.deadline_s[i] - now_s
    need = min(1.0, short / max(window, 1e-9))
    pools.seen[k] = left * pools.seen[k] + 1.0
    pools.gangs[k] = left * pools.gangs[k] + gang
    pools.work_s[k] = left * pools.work_s[k] + gang * short
    pools.needs[k] = left * pools.needs[k] + need
    pools.at_once[k] = left * pools.at_once[k] + gang * need
    pools.window_s[k] = left * pools.window_s[k] + window
    pools.span_s[k] = left * pools.span_s[k] + now_s - pools.last_s[k]
    pools.last_s[k] = now_s
    worth = gang * wanted_j(c.curves, row_of(c, i, k))
    if worth < 1e300:
        c.tally.worth_j[0] += worth
        c.tally.weighed[0] += 1
        c.tally.urgent[0] += short <= window < pools.wake_s[k] + short


@inner
def crowding(c: Cluster, k: int, but: float) -> float:
    """Return the chance that a task finds all processors of kind ``k`` taken for too long.

    All ``but`` so many.

    Erlang's loss formula in its normal approximation, less where windows leave time to wait. None
    where nothing more comes. Processors are counted in gangs of the usual size; how many are busy
    is the work that came lately over that time, and what is expected over a usual window before.
    It is at most what those tasks need at once: a long one is spread over its own window.
    """
    pools = c.pools
    if c.tally.closed[0] == 1 or pools.seen[k] == 0.0:
        return 0.0
    usual, usual_s = pools.gangs[k] / pools.seen[k], pools.window_s[k] / pools.seen[k]
    tight = pools.needs[k] / pools.seen[k] / USUAL
    time_s = max(pools.span_s[k] + usual_s, 1e-9)
    before = EXPECTED * pools.up[k] * usual_s / time_s
    busy = (min(pools.work_s[k] / time_s, pools.at_once[k]) + before) / usual
    all_of = max(0.0, pools.up[k] / usual - but)
    root = math.sqrt(max(busy, 1e-9))
    z = (all_of - busy) / root
    below = 0.5 * (1.0 + math.erf(z / math.sqrt(2.0)))
    taken = 1.0
    if below > 1e-9:
        taken = min(1.0, math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) / below / root)
    return min(1.0, taken * tight)


@inner
def calm(c: Cluster, k: int) -> float:
    """Return how much tasks may wait on kind ``k``: 1 where there is room, 0 where it is scarce."""
    return 1.0 - max(c.pools.hurry[k], min(1.0, RESTLESS * crowding(c, k, 0.0)))


@inner
def hasten(c: Cluster, i: int, now_s: float) -> None:
    """Let task ``i``, which has come, want a run time that leaves more room."""
    pool = max(c.kinds[i, 0], 0)
    hurry, price = c.pools.hurry[pool], 0.0
    c.pools.hurry[pool] = FADES * hurry if hurry > 0.01 else 0.0
    if c.kinds[i, 0] < 0:
        return
    if c.tasks.deadline_s[i] < np.inf:
        if c.tasks.follows[i] < 0:  # workflows share their time themselves
            _note_arrival(c, i, pool, now_s)
        chance = min(MOST, WARY * crowding(c, pool, 0.0))
        hurry, price = max(hurry, chance), ONLY * crowding(c, pool, 1.0) ** 2
    for k in range(c.kinds.shape[1]):
        row, rows = row_of(c, i, k), c.curves.rows
        free = rows.free_s[row]
        if max(hurry, price) <= 0.01 or not free < 1e300:
            continue
        fast = rows.short_s[row]
        most = free - hurry * (free - fast)
        if price > 0.01:
            most = min(most, at_slope_s(c.curves, row, -price * rows.free_j[row] / free))
        length = want_s(c.curves, row, max(fast, most))
        if 0.0 < length < free:
            rows.free_s[row] = rows.long_s[row] = length
            rows.free_j[row] = energy_j(c.curves, row, length)
