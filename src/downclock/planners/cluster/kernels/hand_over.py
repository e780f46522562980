"""A gang of several servers takes over those that have nothing to do any more.

It waits, with its own reservation on servers that sleep; on servers that would go to sleep it saves
their next wakes, and its start is only pulled forward.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.cluster.kernels.accept import reserve_whole, whole_servers
from downclock.planners.cluster.kernels.board import Cluster
from downclock.planners.cluster.kernels.holes import LOOK
from downclock.planners.cluster.kernels.opening import start_wide
from downclock.planners.cluster.kernels.queues import most_urgent_wide
from downclock.planners.cluster.kernels.reserve import (
    leaves_at_most,
    natural_s,
    take_off,
)
from downclock.units import Ints


@inner
def _idle_servers(c: Cluster, g: int) -> Ints:
    """Return servers that are awake and run nothing on as many processors as group ``g`` has."""
    k = c.groups.kind[g]
    found, m = np.empty(LOOK, np.int64), 0
    for other in leaves_at_most(c.holes, k, -float(c.groups.up[g]), g, c.groups.up.size, LOOK):
        if c.groups.used[other] == 0:
            found[m] = c.groups.server[other]
            m += 1
    return found[:m]


@inner
def _is_dearer(c: Cluster, i: int, chosen: Ints) -> bool:
    """Tell whether gang ``i`` carries more of hosts and chips on chosen groups than reserved."""
    more, left, a = 0.0, c.tasks.gang[i], c.tasks.booked[i]
    for g in chosen:
        more += min(left, c.groups.up[g]) * c.groups.dearer_w[g]
        left -= c.groups.up[g]
    while a >= 0:
        more -= c.items.count[a] * c.groups.dearer_w[c.items.group[a]]
        a = c.items.more[a]
    return more > 1e-9


@inner
def hand_over(c: Cluster, j: int, now_s: float) -> bool:
    """Start a waiting gang on server ``j``, which has nothing to do, and others; False: none."""
    if c.tally.priced[0] == 1:
        return False
    for g in range(c.servers.group_first[j], c.servers.group_end[j]):
        k = c.groups.kind[g]
        if c.groups.up[g] == 0:
            continue
        servers = _idle_servers(c, g)
        idle = servers.size * c.groups.up[g]
        i = most_urgent_wide(c, k, idle)
        if i < 0:
            continue
        length = natural_s(c, i, k, now_s)
        if length <= 0.0 or now_s > c.tasks.start_s[i]:
            continue
        chosen = whole_servers(c, i, k, now_s, length, now_s, servers)
        if chosen.size > 0 and not _is_dearer(c, i, chosen):
            take_off(c, i)
            reserve_whole(c, i, chosen, now_s, length)
            start_wide(c, i, now_s)
            return True
    return False
