"""Which servers are awake: when they wake, how long they stay, and when they sleep."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.kernels.least_tree import set_key
from downclock.planners.cluster.kernels.board import Cluster

LINGER_S = 86400.0
"""A server that idles for next to nothing stays awake so long to save a wake, at most."""

PATIENT = 0.9375
"""What is left of what patience was worth after each time that it was worth something."""

WARMER, COOLER = 0.002, 0.1
"""Servers by which more are to stay awake for urgent tasks for each that finds no room, and fewer
for each that stayed in vain: these so many times the part of a task's cost that it idled away."""

LONG_AGO_S = -1e300


@inner
def _switch(c: Cluster, j: int, on: int, at_s: float) -> None:
    row = c.tally.switches[0]
    c.switches.server[row], c.switches.on[row], c.switches.at_s[row] = j, on, at_s
    c.tally.switches[0] += 1


@inner
def _kind_of(c: Cluster, j: int) -> int:
    """Return the kind of server ``j``, by its first processor."""
    return c.processors.kind[c.servers.first[j]]


@inner
def _note_idle(c: Cluster, j: int, saved_j: float) -> None:
    """Note what it saves, or would have saved, that server ``j`` stays awake for a while."""
    k = _kind_of(c, j)
    c.pools.patience_j[k] = PATIENT * c.pools.patience_j[k] + saved_j


@inner
def _for_urgent(c: Cluster) -> float:
    """Return the part of a task's mean cost that a server may idle away for urgent ones.

    So many as come before one that can wait for a wake.
    """
    return c.tally.urgent[0] / (c.tally.weighed[0] - c.tally.urgent[0] + 1)


@inner
def lingers_s(c: Cluster, j: int) -> float:
    """Return how long server ``j`` stays awake after its last task.

    Until that has cost what it may save: a wake, where that was worth it lately; and where it stays
    for tasks that cannot wait for a wake, what those lose that find it asleep.
    """
    tally, awake_w, may_save_j = c.tally, c.servers.awake_w[j], 0.0
    if tally.closed[0] == 1 or awake_w <= 0.0:
        return c.servers.linger_s[j]
    if c.pools.patience_j[_kind_of(c, j)] > 0.0:
        may_save_j += c.servers.wake_j[j]
    if c.servers.warm[j] == 1:
        may_save_j += _for_urgent(c) * tally.worth_j[0] / tally.weighed[0]
    return c.servers.linger_s[j] + min(may_save_j / awake_w, LINGER_S)


@inner
def busy(c: Cluster, j: int) -> None:
    """Server ``j`` has something to do, or sleeps: it stays awake for urgent tasks no longer."""
    c.pools.staying[_kind_of(c, j)] -= c.servers.warm[j]
    c.servers.warm[j] = 0


@inner
def runs(c: Cluster, j: int, start_s: float, end_s: float) -> None:
    """Server ``j`` runs a task between two times."""
    busy(c, j)
    used, wake_j = c.servers.used_s[j], c.servers.wake_j[j]
    idling = c.servers.awake_w[j] * (start_s - used)
    if c.servers.since_s[j] < used and 0.0 < idling < wake_j:
        _note_idle(c, j, wake_j - idling)
    c.servers.used_s[j] = max(used, end_s)


@inner
def stays(c: Cluster, j: int, now_s: float) -> bool:
    """Tell whether server ``j``, which has nothing to do, stays awake for urgent tasks."""
    k, up = _kind_of(c, j), 0
    for p in range(c.servers.first[j], c.servers.end[j]):
        up += c.processors.up[p]
    if c.tally.urgent[0] == 0 or c.servers.wake_s[j] <= 0.0 or up == 0:
        return False
    if c.servers.warm[j] == 1:
        c.pools.warm[k] = max(0.0, c.pools.warm[k] - COOLER * min(1.0, _for_urgent(c)))
        busy(c, j)
        return False
    if c.pools.staying[k] < c.pools.warm[k] - 0.5:
        c.servers.warm[j] = 1
        c.pools.staying[k] += 1
    return c.servers.last_s[j] + lingers_s(c, j) > now_s


@inner
def wake(c: Cluster, j: int, now_s: float) -> None:
    """Begin to wake server ``j``."""
    tally = c.tally
    _switch(c, j, 1, now_s)
    k, wake_j = _kind_of(c, j), c.servers.wake_j[j]
    idling = c.servers.awake_w[j] * (now_s - c.pools.slept_s[k])
    if idling < wake_j:
        _note_idle(c, j, 2.0 * wake_j - idling)
        c.pools.slept_s[k] = LONG_AGO_S
    c.servers.awake[j], c.servers.since_s[j] = 1, now_s
    c.servers.awake_rank[j] = tally.awake[0]
    c.awake_servers[tally.awake[0]] = j
    tally.awake[0] += 1
    tally.processors[0] += c.servers.end[j] - c.servers.first[j]
    ready = now_s + c.servers.wake_s[j]
    c.servers.last_s[j] = ready
    set_key(c.attend, 0, j, ready + lingers_s(c, j))
    for p in range(c.servers.first[j], c.servers.end[j]):
        c.processors.ready_s[p] = ready
        if c.processors.head[p] < 0:
            c.processors.end_s[p] = ready
        k = c.processors.kind[p]
        set_key(c.asleep, k, j, np.inf)
        c.pools.awake_s[k] = max(c.pools.awake_s[k], ready)
        c.pools.awake[k] += c.processors.up[p]


@inner
def put_out(c: Cluster, j: int) -> None:
    """Take server ``j`` off those awake."""
    tally = c.tally
    tally.bases[0] -= c.servers.base[j]
    busy(c, j)
    c.servers.awake[j] = c.servers.base[j] = 0
    tally.awake[0] -= 1
    tally.processors[0] -= c.servers.end[j] - c.servers.first[j]
    moved = c.awake_servers[tally.awake[0]]
    c.awake_servers[c.servers.awake_rank[j]] = moved
    c.servers.awake_rank[moved] = c.servers.awake_rank[j]
    c.servers.awake_rank[j] = -1
    set_key(c.attend, 0, j, np.inf)
    for p in range(c.servers.first[j], c.servers.end[j]):
        c.pools.awake[c.processors.kind[p]] -= c.processors.up[p]
    set_asleep(c, j)


@inner
def count_working(c: Cluster) -> None:
    """Count the processors of each kind that work, and those of them that are awake, anew."""
    for k in range(c.pools.up.size):
        c.pools.up[k] = c.pools.awake[k] = 0
    for p in range(c.processors.kind.size):
        j, k = c.processors.server[p], c.processors.kind[p]
        if c.processors.up[p] == 1 and c.servers.works[j] == 1:
            c.pools.up[k] += 1
            c.pools.awake[k] += c.servers.awake[j]


@inner
def set_asleep(c: Cluster, j: int) -> None:
    """Say how long sleeping server ``j`` takes to wake, for every kind it has that works.

    One that is down cannot wake, whatever becomes of its processors meanwhile.
    """
    asleep_s = c.servers.wake_s[j] if c.servers.works[j] == 1 else np.inf
    for p in range(c.servers.first[j], c.servers.end[j]):
        if c.processors.up[p] == 0:
            set_key(c.asleep, c.processors.kind[p], j, np.inf)
    for p in range(c.servers.first[j], c.servers.end[j]):
        if c.processors.up[p] == 1:
            set_key(c.asleep, c.processors.kind[p], j, asleep_s)


@inner
def break_down(c: Cluster, j: int) -> None:
    """Server ``j`` is down: it is off, and cannot wake."""
    c.servers.works[j] = 0
    if c.servers.awake[j] == 1:
        put_out(c, j)
    else:
        set_asleep(c, j)


@inner
def return_asleep(c: Cluster, j: int, now_s: float) -> None:
    """Server ``j`` is back from a repair."""
    c.servers.works[j] = 1
    set_asleep(c, j)
    c.servers.last_s[j] = now_s


@inner
def sleep(c: Cluster, j: int, at_s: float) -> None:
    """Put server ``j`` to sleep; it has nothing to do."""
    _switch(c, j, 0, at_s)
    _note_idle(c, j, -c.servers.wake_j[j])
    c.pools.slept_s[_kind_of(c, j)] = at_s
    put_out(c, j)


@inner
def set_last(c: Cluster, j: int) -> None:
    """Find the planned end of server ``j`` anew."""
    last = c.servers.since_s[j] + c.servers.wake_s[j]
    for q in range(c.servers.first[j], c.servers.end[j]):
        last = max(last, c.processors.end_s[q])
    c.servers.last_s[j] = last
    if c.servers.awake[j] == 1:
        set_key(c.attend, 0, j, last + lingers_s(c, j))


@inner
def set_longer(c: Cluster, j: int, end_s: float) -> None:
    """Keep server ``j`` awake at least until ``end_s``."""
    if end_s > c.servers.last_s[j]:
        c.servers.last_s[j] = end_s
        set_key(c.attend, 0, j, end_s + lingers_s(c, j))
