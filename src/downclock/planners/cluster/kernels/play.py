"""One moment, on queues or on reservations, and the loop that plays a run of moments."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.kernels.ends import ends_by
from downclock.kernels.least_tree import first_at_most, set_key
from downclock.planners.cluster.kernels.board import Cluster
from downclock.planners.cluster.kernels.flat import CERTAIN
from downclock.planners.cluster.kernels.moment import FREED, queued_moment
from downclock.planners.cluster.kernels.outlook import is_sparse
from downclock.planners.cluster.kernels.shared_moment import shared_moment
from downclock.units import Floats, Ints

MANY, TIMES = 8, 2
"""Tasks that come at one moment are planned together with all that waits if they are so many, and
so many times the awake processors and the tasks that wait."""


@inner
def _moment(c: Cluster, told: Ints, arrived: Ints, now_s: float) -> None:
    if c.tally.shared[0] > 0:
        shared_moment(c, told, arrived, now_s)
    else:
        queued_moment(c, told, arrived, now_s)


@compiled
def moment(c: Cluster, told: Ints, arrived: Ints, now_s: float) -> None:
    """Do everything that happens at ``now_s``; see `moment` for the codes in ``told`` (m, 3)."""
    _moment(c, told, arrived, now_s)


@inner
def _real_end_s(c: Cluster, m: int, work: Floats, reserve: float) -> float:
    """When the ``m``-th start really ends: only the loop may know."""
    i, start_s = c.starts.task[m], c.starts.start_s[m]
    end = ends_by(start_s, c.starts.length_s[m] / (1.0 + reserve), c.tasks.deadline_s[i])
    return end if work[i] == 1.0 else start_s + (end - start_s) * work[i]


@compiled
def is_full(c: Cluster) -> bool:
    """Tell whether a moment may need more room for decisions than is left."""
    starts = c.tally.starts[0] + c.processors.kind.size
    switches = c.tally.switches[0] + 2 * c.servers.zone.size + 2
    return starts > c.starts.task.size or switches > c.switches.server.size


@compiled
def is_crowd(c: Cluster, count: int) -> bool:
    """Tell whether ``count`` tasks that come now are to be planned together with all that waits.

    So many that little else counts; or few that come to such a plan, if no others are foreseen.
    """
    tally = c.tally
    if not c.rules.late or tally.shared[0] > 0 or count == 0:
        return False
    if tally.settled[0] == 1 and tally.idle_share[0] > CERTAIN and count < MANY:
        return True
    return count >= max(MANY, TIMES * (tally.processors[0] + tally.queued[0]))


@inner
def _next_s(c: Cluster, ends: Floats, arrived: Ints, at: int) -> float:
    """Return when something happens next: a task comes or ends, or is overdue; a server is due."""
    comes = np.inf if at >= arrived.size else c.tasks.arrival_s[arrived[at]]
    return min(comes, ends[0, 1], c.busy[0, 1], c.attend[0, 1])


@inner
def _come_by(c: Cluster, arrived: Ints, at: int, now_s: float) -> int:
    """Return how many of ``arrived`` have come, of which ``at`` had before."""
    while at < arrived.size and c.tasks.arrival_s[arrived[at]] <= now_s:
        at += 1
    return at


@inner
def _tell_ends(c: Cluster, ends: Floats, told: Ints, now_s: float) -> int:
    """Tell of every task that has really ended; return how many have."""
    m = 0
    while ends[0, 1] <= now_s:
        p = first_at_most(ends, 0, now_s)
        set_key(ends, 0, p, np.inf)
        told[m, 0], told[m, 1], told[m, 2] = FREED, c.processors.running[p], p
        m += 1
    return m


@inner
def _many_come(c: Cluster, arrived: Ints, at: int, now_s: float) -> bool:
    """Tell whether the tasks of ``arrived`` from ``at`` on that come now are a crowd."""
    return is_crowd(c, _come_by(c, arrived, at, now_s) - at)


@inner
def _few_come(c: Cluster, arrived: Ints, at: int, now_s: float) -> bool:
    """Tell whether so few tasks come that they had better wait for each other from now on."""
    return is_sparse(c, _come_by(c, arrived, at, now_s) - at, now_s)


@compiled
def run(
    c: Cluster, work: Floats, reserve: float, ends: Floats, arrived: Ints, until_s: float
) -> int:
    """Play moments while tasks arrive and end, in which nothing else can happen.

    ``work`` is actual / estimated work, ``ends`` a tree over the processors with the real end of
    what runs (1, tree). Stops before ``until_s``, where many tasks come at once (`is_crowd`) or
    few at all (`is_sparse`), or where the room for decisions may not do; returns how many of
    ``arrived`` have come.
    """
    at, told = 0, np.empty((c.processors.kind.size, 3), np.int64)
    while True:
        now, first = _next_s(c, ends, arrived, at), at
        if now == np.inf or now >= until_s:
            return at
        if is_full(c) or _many_come(c, arrived, at, now) or _few_come(c, arrived, at, now):
            return at
        m, at = _tell_ends(c, ends, told, now), _come_by(c, arrived, at, now)
        before = c.tally.starts[0]
        _moment(c, told[:m], arrived[first:at], now)
        for row in range(before, c.tally.starts[0]):
            lead = c.tasks.place[c.starts.task[row]]  # of a gang one processor tells of its end
            if c.tally.shared[0] == 0 or lead == c.starts.processor[row]:
                set_key(ends, 0, c.starts.processor[row], _real_end_s(c, row, work, reserve))
