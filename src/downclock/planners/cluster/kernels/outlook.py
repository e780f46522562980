"""What is still to come: how many processors it keeps busy, and what follows from that.

While enough tasks come and wait, some servers need no planned end: whoever waits takes a processor
that is free, at the run time that it wants, and nothing is lost. Once tasks stay away all have
one. Where few come at all, they had better wait for each other.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.planners.cluster.kernels.board import RECENT, Cluster
from downclock.planners.cluster.kernels.hurry import calm
from downclock.planners.cluster.kernels.replan import FEW, POWER, needed

LATELY, QUIET = 64, 8.0
"""Arrivals by which the usual time between two is known; so many times that without one, and it is
less and less likely that more come."""

LONELY, COMPANY = 0.5, 2.0
"""Tasks wait for each other where they keep so many processors busy, at least, and so many times
all but one of a server's, at most: with less they do not meet, with more they do anyway."""

BASE, EXPRESS = 0.25, 3.0
"""Part of what comes, at most, that servers without a planned end have; and what it counts, against
the price of its time, that a long task takes room for short ones where room is scarce."""


@inner
def _usual_size(c: Cluster) -> float:
    """Return how many processors a server has."""
    return c.processors.kind.size / c.servers.zone.size


@inner
def _likely(c: Cluster, now_s: float) -> float:
    """Return how likely it is that tasks still come, by how long none has."""
    arrivals, seen = c.tally.arrivals[0], min(c.tally.arrivals[0], LATELY)
    if seen < 2:
        return 1.0
    last = c.arrival_history[0, (arrivals - 1) % RECENT]
    usual = (last - c.arrival_history[0, (arrivals - seen) % RECENT]) / (seen - 1)
    return np.exp(min(0.0, 1.0 - (now_s - last) / (QUIET * usual))) if usual > 0.0 else 1.0


@inner
def foresee(c: Cluster, now_s: float) -> None:
    """Note how much comes, how many servers need no planned end, and where room is scarce."""
    tally, size = c.tally, _usual_size(c)
    busy = needed(c, 0, now_s) * _likely(c, now_s) if tally.closed[0] == 0 else 0.0
    tally.most_bases[0] = tally.coming[0] = 0.0
    company = (busy + tally.queued[0]) / max(tally.processors[0], size)
    tally.idle_share[0] = max(0.0, 1.0 - company) ** POWER
    if busy < np.inf and tally.priced[0] == 0:  # else nothing to go by; or tasks that are held back
        tally.coming[0] = tally.idle_share[0] * busy
        tally.most_bases[0] = min(BASE * busy, float(tally.queued[0])) / size
    for k in range(c.pools.up.size):
        c.pools.express[k] = EXPRESS * (1.0 - calm(c, k))


@inner
def _came(c: Cluster, now_s: float) -> float:
    """Return how many processors those that came lately kept busy on the mean."""
    arrivals, work = c.tally.arrivals[0], 0.0
    for m in range(min(arrivals, RECENT)):
        work += c.arrival_history[1, m]
    since = c.arrival_history[0, arrivals % RECENT] if arrivals > RECENT else 0.0
    return work / max(now_s - since, 1e-9)


@inner
def _least_calm(c: Cluster) -> float:
    """Return how much tasks may wait on the kind where room is scarcest."""
    least = 1.0
    for k in range(c.pools.up.size):
        least = min(least, calm(c, k))
    return least


@compiled
def is_sparse(c: Cluster, count: int, now_s: float) -> bool:
    """Tell whether so few tasks come, ``count`` of them now, that they had better wait.

    As room is scarce they do not: queues are in order of deadline then.
    """
    tally = c.tally
    if not c.rules.late or tally.priced[0] == 1 or tally.shared[0] > 0 or tally.queued[0] > 0:
        return False
    if count == 0 or count >= FEW or _came(c, now_s) < LONELY:
        return False
    return needed(c, count, now_s) < COMPANY * (_usual_size(c) - 1.0) * _least_calm(c)
