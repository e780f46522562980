"""Reservations: every accepted task has processors of a server, or of several, at a certain time.

Processors of one kind in one server are alike, so a task takes a number of them. A reservation is
feasible with all others, and a start is only pulled forward: so no accepted task is late. A gang
that no server holds takes servers whole, but for what it leaves of the last.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.kernels.ends import ends_by
from downclock.kernels.least_tree import LARGEST, set_key
from downclock.planners.cluster.kernels.awake import lingers_s
from downclock.planners.cluster.kernels.board import Cluster, row_of
from downclock.planners.cluster.kernels.curves import want_s
from downclock.planners.cluster.kernels.processors import note_start
from downclock.planners.cluster.kernels.queues import wait, wait_no_more
from downclock.units import Floats, Ints

NEVER = -1.0
"""No such time."""

FEW_ROWS = 48
"""Rows of a profile up to which moving them one by one is the fastest way to sort them."""


@inner
def book(c: Cluster, i: int, g: int, count: int, start_s: float, end_s: float) -> None:
    """Give task ``i`` processors of group ``g``."""
    items, tally = c.items, c.tally
    a = tally.free_item[0]
    if a >= 0:
        tally.free_item[0] = items.after[a]
    else:
        a = tally.items[0]
        tally.items[0] += 1
    after = c.groups.head[g]
    items.task[a], items.group[a], items.count[a], items.runs[a] = i, g, count, 0
    items.start_s[a], items.end_s[a] = start_s, end_s
    items.before[a], items.after[a], items.more[a] = -1, after, c.tasks.booked[i]
    if after >= 0:
        items.before[after] = a
    c.groups.head[g] = c.tasks.booked[i] = a


@inner
def unbook(c: Cluster, i: int) -> None:
    """Take all processors of task ``i`` back."""
    items, a = c.items, c.tasks.booked[i]
    while a >= 0:
        more, after, before, g = items.more[a], items.after[a], items.before[a], items.group[a]
        if before >= 0:
            items.after[before] = after
        else:
            c.groups.head[g] = after
        if after >= 0:
            items.before[after] = before
        if items.runs[a] == 1:
            c.groups.used[g] -= items.count[a]
        items.after[a] = c.tally.free_item[0]
        c.tally.free_item[0] = a
        a = more
    c.tasks.booked[i] = -1


@inner
def profile(c: Cluster, g: int, but: int, from_s: float) -> tuple[Floats, Ints]:
    """Return (times, processors of group ``g`` in use from each on), the first at ``from_s``.

    Task ``but`` is left out.
    """
    items, count = c.items, 0
    a = c.groups.head[g]
    while a >= 0:
        count += items.end_s[a] > from_s and items.task[a] != but
        a = items.after[a]
    times, change, m = np.empty(2 * count + 1), np.zeros(2 * count + 1, np.int64), 1
    times[0] = from_s
    a = c.groups.head[g]
    while a >= 0:
        if items.end_s[a] > from_s and items.task[a] != but:
            times[m], change[m] = max(items.start_s[a], from_s), items.count[a]
            times[m + 1], change[m + 1] = items.end_s[a], -items.count[a]
            m += 2
        a = items.after[a]
    _sort(times, change)
    return _merged(times, change)


@inner
def _sort(times: Floats, change: Ints) -> None:
    """Sort rows by time, those of one time as they came; few rows are nearly in order."""
    if times.size > FEW_ROWS:
        order = np.argsort(times, kind="mergesort")
        times[:], change[:] = times[order], change[order]
        return
    for a in range(1, times.size):
        at, by, b = times[a], change[a], a
        while b > 0 and times[b - 1] > at:
            times[b], change[b] = times[b - 1], change[b - 1]
            b -= 1
        times[b], change[b] = at, by


@inner
def _merged(times: Floats, change: Ints) -> tuple[Floats, Ints]:
    """Sum changes up, one row a time."""
    used, m, total = np.empty(times.size, np.int64), 0, 0
    for a in range(times.size):
        total += change[a]
        if a + 1 < times.size and times[a + 1] == times[a]:
            continue
        times[m], used[m] = times[a], total
        m += 1
    return times[:m], used[:m]


@inner
def free_until_s(c: Cluster, g: int, i: int, k: int, start_s: float, until_s: float) -> float:
    """Return until when ``k`` processors of a group are free for task ``i`` from a start on."""
    times, used = profile(c, g, i, start_s)
    for a in range(times.size):
        if times[a] >= until_s:
            break
        if used[a] + k > c.groups.up[g]:
            return times[a]
    return until_s


@inner
def free_ends_s(c: Cluster, g: int, start_s: float, most: int) -> Floats:
    """Return until when 0, 1, ... ``most`` processors of a group are free (most + 1,)."""
    ends = np.full(most + 1, np.inf)
    times, used = profile(c, g, -1, start_s)
    for a in range(times.size):
        for k in range(max(c.groups.up[g] - used[a], -1) + 1, most + 1):
            ends[k] = min(ends[k], times[a])
    return ends


@inner
def soonest_start_s(
    c: Cluster, g: int, i: int, length_s: float, from_s: float, to_s: float
) -> float:
    """Return the earliest start at which a group can run task ``i`` so long, or `NEVER`."""
    k = c.tasks.gang[i]
    if k > c.groups.up[g]:
        return NEVER
    times, used = profile(c, g, i, from_s)
    start = from_s
    for a in range(times.size):
        if times[a] >= start + length_s:
            break
        if used[a] + k > c.groups.up[g]:
            start = times[a + 1]  # the last row has nothing in use
            if start > to_s:
                return NEVER
    return start


@inner
def latest_start_s(
    c: Cluster, g: int, i: int, length_s: float, from_s: float, to_s: float
) -> float:
    """Return the latest start at which a group can run task ``i`` so long, or `NEVER`."""
    k = c.tasks.gang[i]
    if k > c.groups.up[g]:
        return NEVER
    times, used = profile(c, g, i, from_s)
    start = to_s
    for a in range(times.size - 1, -1, -1):
        if times[a] >= start + length_s:
            continue
        if a + 1 < times.size and times[a + 1] <= start:
            break
        if used[a] + k > c.groups.up[g]:
            start = times[a] - length_s
            if start < from_s:
                return NEVER
    return start


@inner
def ready_s(c: Cluster, j: int, now_s: float) -> float:
    """Return when server ``j`` can start something at the earliest."""
    if c.servers.awake[j] == 1:
        return max(now_s, c.servers.since_s[j] + c.servers.wake_s[j])
    return now_s + c.servers.wake_s[j]


@inner
def _next_at_most(trees: Floats, row: int, limit: float, leaf: int) -> int:
    """Return the first leaf from ``leaf`` on with a key of at most ``limit``, or -1."""
    size = trees.shape[1] // 2
    node = size + leaf
    while not trees[row, node] <= limit:
        while node % 2 == 1:  # all below its parent lies behind
            node //= 2
            if node <= 1:
                return -1
        node += 1
    while node < size:
        node *= 2
        if not trees[row, node] <= limit:
            node += 1
    return node - size


@inner
def leaves_at_most(
    trees: Floats, row: int, limit: float, begin: int, count: int, most: int
) -> Ints:
    """Return up to ``most`` of ``count`` leaves with a key of at most ``limit``, in turns."""
    found, m = np.empty(min(most, count), np.int64), 0
    leaf, wrapped = _next_at_most(trees, row, limit, begin), False
    while m < found.size:
        if leaf < 0 or leaf >= count:
            if wrapped:
                break
            leaf, wrapped = _next_at_most(trees, row, limit, 0), True
            continue
        if wrapped and leaf >= begin:
            break
        found[m] = leaf
        m += 1
        leaf = _next_at_most(trees, row, limit, leaf + 1) if leaf + 1 < count else -1
    return found[:m]


@inner
def sleeping_servers(c: Cluster, k: int, begin: int, most: int) -> Ints:
    """Return up to ``most`` sleeping servers with kind ``k``, in turns from a server on."""
    return leaves_at_most(c.asleep, k, LARGEST, begin, c.servers.zone.size, most)


@inner
def lane_w(c: Cluster, j: int) -> float:
    """Return what a processor of awake server ``j`` costs while nothing runs, host included."""
    return c.servers.awake_w[j] / (c.servers.end[j] - c.servers.first[j])


@inner
def beside(c: Cluster, j: int, gang: int) -> float:
    """Return how many processors server ``j`` has beside a gang, for each one of it."""
    return (c.servers.end[j] - c.servers.first[j]) / gang - 1.0


@inner
def group_of(c: Cluster, j: int, k: int) -> int:
    """Return the processors of kind ``k`` of server ``j``; -1: it has none."""
    for g in range(c.servers.group_first[j], c.servers.group_end[j]):
        if c.groups.kind[g] == k:
            return int(g)
    return -1


@inner
def is_wide(c: Cluster, i: int, k: int) -> bool:
    """Tell whether no server has enough processors of kind ``k`` for task ``i``."""
    return c.tasks.gang[i] > c.curves.kinds.largest[k]


@inner
def is_express(c: Cluster, g: int, length_s: float) -> bool:
    """Tell whether group ``g`` keeps its room for shorter tasks than this, as room is scarce."""
    k = c.groups.kind[g]
    scarce = c.pools.express[k] > 0.0 and g >= c.pools.express_first[k]
    return scarce and length_s > c.tally.mean_s[0]


@inner
def _note(c: Cluster, g: int, awake: bool) -> float:
    """Note what group ``g`` has free and when more will be; return its first reserved start."""
    first, end, a = np.inf, np.inf, c.groups.head[g]
    while a >= 0:
        if c.items.runs[a] == 0:
            first = min(first, c.items.start_s[a])
        else:
            end = min(end, c.items.end_s[a])
        a = c.items.after[a]
    free = c.groups.up[g] - c.groups.used[g]
    set_key(c.holes, c.groups.kind[g], g, -float(free) if awake and free > 0 else np.inf)
    set_key(c.freeing, c.groups.kind[g], g, end if awake else np.inf)
    return first


@inner
def set_attention(c: Cluster, j: int) -> None:
    """Note when server ``j`` has to wake or start something; or, idle, may sleep."""
    first, used, last = np.inf, 0, c.servers.since_s[j] + c.servers.wake_s[j]
    awake = c.servers.works[j] == 1 and c.servers.awake[j] == 1
    for g in range(c.servers.group_first[j], c.servers.group_end[j]):
        used += c.groups.used[g]
        first = min(first, _note(c, g, awake))
    if c.servers.works[j] == 0:
        first = np.inf
    elif c.servers.awake[j] == 0:
        first -= c.servers.wake_s[j]
    elif used == 0:
        first = min(first, max(last, c.servers.last_s[j]) + lingers_s(c, j))
    set_key(c.attend, 0, j, first)


@inner
def attend_to(c: Cluster, i: int) -> None:
    """Note when the servers of task ``i`` need attention."""
    a = c.tasks.booked[i]
    while a >= 0:
        set_attention(c, c.groups.server[c.items.group[a]])
        a = c.items.more[a]


@inner
def take_off(c: Cluster, i: int) -> None:
    """Take the reservation of task ``i`` back; it waits no more."""
    a, m = c.tasks.booked[i], 0
    while a >= 0:
        m += 1
        a = c.items.more[a]
    servers, a = np.empty(m, np.int64), c.tasks.booked[i]
    for b in range(m):
        servers[b] = c.groups.server[c.items.group[a]]
        a = c.items.more[a]
    unbook(c, i)
    wait_no_more(c, i)
    for b in range(m):
        set_attention(c, servers[b])


@inner
def reserve_at(c: Cluster, i: int, g: int, start_s: float, length_s: float, bound: int) -> None:
    """Reserve processors of one group for task ``i``, which has none."""
    c.tasks.start_s[i], c.tasks.length_s[i], c.tasks.bound[i] = start_s, length_s, bound
    book(c, i, g, c.tasks.gang[i], start_s, start_s + length_s)
    wait(c, i)
    j = c.groups.server[g]
    if bound == 1 and start_s + length_s > c.servers.last_s[j]:
        c.servers.last_s[j] = start_s + length_s
    set_attention(c, j)


@inner
def launch(c: Cluster, i: int, start_s: float, length_s: float) -> None:
    """Let task ``i`` run on the processors that it has reserved; they are free."""
    end, lead = ends_by(start_s, length_s, c.tasks.deadline_s[i]), -1
    a = c.tasks.booked[i]
    while a >= 0:
        g, left = c.items.group[a], c.items.count[a]
        for lane in range(c.groups.first[g], c.groups.end[g]):
            p = c.lanes[lane]
            if left == 0 or c.processors.running[p] >= 0 or c.processors.up[p] == 0:
                continue
            left -= 1
            lead = p if lead < 0 else lead
            _run_on(c, i, p, start_s, length_s, end)
        c.items.start_s[a], c.items.end_s[a], c.items.runs[a] = start_s, end, 1
        c.groups.used[g] += c.items.count[a]
        j = c.groups.server[g]
        c.servers.last_s[j] = max(c.servers.last_s[j], end)
        a = c.items.more[a]
    wait_no_more(c, i)
    c.tasks.place[i], c.tasks.start_s[i], c.tasks.length_s[i] = lead, start_s, length_s
    set_key(c.busy, 0, lead, end)
    attend_to(c, i)


@inner
def _run_on(c: Cluster, i: int, p: int, start_s: float, length_s: float, end_s: float) -> None:
    note_start(c, i, p, start_s, length_s)
    c.processors.running[p], c.processors.begun_s[p] = i, start_s
    c.processors.ready_s[p] = end_s


@inner
def release(c: Cluster, i: int) -> None:
    """Task ``i`` runs no more: its processors are free."""
    if c.tasks.place[i] < 0:
        return
    set_key(c.busy, 0, c.tasks.place[i], np.inf)
    c.tasks.place[i] = -1
    a = c.tasks.booked[i]
    while a >= 0:
        g = c.items.group[a]
        for lane in range(c.groups.first[g], c.groups.end[g]):
            if c.processors.running[c.lanes[lane]] == i:
                c.processors.running[c.lanes[lane]] = -1
        a = c.items.more[a]
    take_off(c, i)


@inner
def wanted_s(c: Cluster, row: int, room_s: float) -> float:
    """Return the cheapest run time of a row of at most ``room_s``, or -1.

    The fastest where none was in time when the task came; -1 too where it cannot run at all.
    """
    if c.curves.rows.free_s[row] < np.inf:
        return want_s(c.curves, row, room_s)
    short = c.curves.rows.short_s[row]
    return short if short < np.inf and room_s >= short * (1.0 - 1e-12) else -1.0


@inner
def natural_s(c: Cluster, i: int, k: int, start_s: float) -> float:
    """Return the run time that task ``i`` wants on kind ``k`` from ``start_s`` on, or -1."""
    return wanted_s(c, row_of(c, i, k), c.tasks.deadline_s[i] - start_s)
