"""The board of a list policy: what it believes, and the steps by which that changes.

When each processor is free of all it is to do, which tasks wait there, which servers are awake.
Columns are updated in place and never rebuilt per event. A gang waits on each of its processors
and starts when all of them are free; what waits behind it is told to the world once it starts, so
that tasks may still be put before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.chains import link, unlink
from downclock.kernels.compiling import inlined, inner
from downclock.kernels.ends import ends_by
from downclock.kernels.least_tree import first_at_most, new_trees, set_key
from downclock.kernels.records import Records, filled, record
from downclock.units import Floats, Ints

SOONEST, FIRST, BEST, WORST, FULLEST, LIGHTEST, TIGHTEST, LOOSEST = range(8)
"""Which awake processor a task goes to: in the order of `planners.lists.policy.Fit`."""

COUNTED_S = 60.0
"""A peak load is the greatest, over a processor's tasks, of the work until the task is done over
its deadline; work counts in whole minutes (mei2021's public code)."""

FOR_EVER = 1e300
"""A time that is later than any, but not never."""


PROCESSOR = record(
    kind=int,
    server=int,
    up=int,  # 0 while it is down
    running=int,  # the task that runs; -1: none, or not looked at since it should have ended
    head=int,  # first node that waits there; -1: none
    tail=int,
    gangs=int,  # gangs that wait there
    listed=int,  # 1 while it is on a list of processors to look at
    work_s=float,  # run times of the tasks since its server woke, each in whole minutes
    ready_s=float,  # when that is believed to end
)
SERVER = record(
    first=int,  # its first processor, and the one after its last
    end=int,
    awake=int,
    works=int,  # 0 while it is down
    wake_s=float,
    patience_s=float,  # how long it stays awake when idle
    on_since_s=float,  # when it last began to wake; -1: on from the start
    end_s=float,  # end of its last task
)
TASK = record(
    told_s=float,  # when it is told: not before it arrives, nor before what precedes it
    deadline_s=float,  # less where what follows needs time
    key=float,  # tasks that may start at one moment are placed in this order
    alone=int,  # 1 where it needs a fresh processor
    processors=int,  # that it needs at once; 0: it is not known yet
    node=int,  # first of its nodes in the chains, one for each processor
    start_s=float,  # planned start
    length_s=float,  # planned run time
    end_s=float,  # believed end; infinite: it has no place
    milestone=int,  # 1 where it has no work: done with what precedes it
    waits_for=int,  # tasks before it that are not done
    heir=int,  # first of its edges to tasks that wait for it; -1: none
    told=int,  # 1 where the world knows its row
    row=int,  # of this moment's answer, if it stands there
    cut=int,  # likewise of what is revoked
)
NODE = record(
    task=int,
    lane=int,  # processor that it has, waiting or running
    after=int,  # next that waits on the same processor; -1: none
    before=int,  # the one before; -1: none
    place=int,  # processor that it waits on; -1: none
)
EDGE = record(
    after=int,  # the task that waits
    next=int,  # next edge of the task before; -1: none
)
CURVE = record(
    kinds=int,  # kinds to try, best first; -1: no more. What follows is by kind
    wanted_s=float,  # run time it wants
    shortest_s=float,
    cheapest_s=float,  # run time of least energy
    share=float,  # utilisation: wanted / window
    rung_first=int,  # its enumerated run times in ``rungs``; none: any length
    rung_end=int,
)
PLACED = record(task=int, processor=int, start_s=float, length_s=float, order=int)
REFUSED = record(task=int, why=int, earliest_s=float)


class Board(NamedTuple):
    """Processors and servers (p, s; k kinds).

    The trees are: row k, when each awake processor of kind k is free; row kinds + k, how long each
    sleeping server with a processor of kind k takes to wake; row 2 kinds, when each awake server
    falls asleep if nothing more comes.
    """

    processors: Records  # (p,) of PROCESSOR
    servers: Records  # (s,) of SERVER
    load: Floats  # (p,) of the tasks since its server woke: sum of utilisations, or peak load
    trees: Floats  # (2 k + 1, tree)


class Jobs(NamedTuple):
    """What is known of the tasks (n tasks, k kinds).

    The trees ``due`` hold: when each gang that waits starts; when each task ends that others wait
    for. ``hopes`` are tasks that were refused a place and may still get one, ``lost`` those to
    place anew, ``gangs`` those that wait, all with their number first.
    """

    tasks: Records  # (n,) of TASK
    curves: Records  # (n, k) of CURVE
    rungs: Floats  # (entries,) ascending per task and kind
    nodes: Records  # (nodes,) of NODE, those of a task side by side
    edges: Records  # (edges,) of EDGE
    used: Ints  # (2,) how many nodes and edges are
    due: Floats  # (2, tree)
    hopes: Ints  # (n + 1,)
    lost: Ints
    gangs: Ints


class Rules(NamedTuple):
    """The parts of a list policy as numbers."""

    fit: int
    theta: float
    slot_s: float


class Lists(NamedTuple):
    """Everything that a moment works on; see `Board` and `Jobs`.

    What is decided is written into ``placed`` and what follows, each task once; the entries of
    ``counts`` say how many rows were.
    """

    rules: Rules
    processors: Records
    servers: Records
    load: Floats
    trees: Floats
    tasks: Records
    curves: Records
    rungs: Floats
    nodes: Records
    edges: Records
    used: Ints
    due: Floats
    hopes: Ints
    lost: Ints
    gangs: Ints
    counts: Ints  # (5,) placed, revoked, refused, switched; how often anything was placed
    placed: Records  # of PLACED
    revoked: Ints
    refused: Records  # of REFUSED: task, why and the earliest possible end
    switches: Floats  # (rows, 3) server, 1 on or 0 asleep, when
    scratch: Floats  # (p,)
    late: Ints  # (n,) tasks that would be late, or that may start
    listed: Ints  # (p + 1,) processors to look at, their number first


PLACES, REVOKES, REFUSALS, SWITCHES, WRITES = range(5)
"""Entries of ``Lists.counts``."""

STARTS, ENDS = 0, 1
"""Rows of ``due``."""


def new_board(
    kind: Ints, offset: Ints, kinds: int, wake_s: Floats, patience_s: Floats, on: Ints
) -> Board:
    """Make the board at time 0; servers with ``on`` are awake. Cost k p."""
    processors, servers = kind.size, offset.size - 1
    server = np.repeat(np.arange(servers), np.diff(offset))
    keys = np.full((2 * kinds + 1, processors), np.inf)
    for k in range(kinds):
        mine = kind == k
        keys[k, mine & (on[server] == 1)] = 0.0
        asleep = server[mine & (on[server] == 0)]
        keys[kinds + k, asleep] = wake_s[asleep]
    keys[2 * kinds, :servers][on == 1] = patience_s[on == 1]
    return Board(
        filled(processors, PROCESSOR, kind=kind, server=server, up=1, running=-1, head=-1, tail=-1),
        filled(
            servers, SERVER, first=offset[:-1], end=offset[1:], awake=on, works=1, wake_s=wake_s,
            patience_s=patience_s, on_since_s=-1.0,
        ),
        np.zeros(processors),
        new_trees(keys),
    )  # fmt: skip


@inner
def slot_up(time_s: float, slot_s: float) -> float:
    """Next slot boundary at or after ``time_s`` (the time itself without slots)."""
    if slot_s <= 0.0:
        return time_s
    slots = time_s / slot_s
    return np.ceil(slots - 1e-9 * min(slots, 1.0)) * slot_s


@inlined
def fitting_length(c: Lists, k: int, i: int, room_s: float, theta: float) -> float:
    """Return the run time task ``i`` gets in ``room_s``, or -1.

    Its wanted length if there is room; else, down to ``theta`` times it, all the room (mei2021
    Definition 2) unless less time costs less energy, or the slowest enumerated clock that fits.
    """
    wanted = c.curves.wanted_s[i, k]
    if room_s >= wanted:
        return wanted
    floor = max(theta * wanted, c.curves.shortest_s[i, k])
    if room_s < floor:
        return -1.0
    low, high = c.curves.rung_first[i, k], c.curves.rung_end[i, k]
    if low == high:
        return min(room_s, c.curves.cheapest_s[i, k])
    found = -1.0
    for entry in range(low, high):
        if floor <= c.rungs[entry] <= room_s:
            found = c.rungs[entry]
    return found


@inner
def _switch(c: Lists, j: int, on: float, at_s: float) -> None:
    row = c.counts[SWITCHES]
    c.switches[row, 0], c.switches[row, 1], c.switches[row, 2] = j, on, at_s
    c.counts[SWITCHES] += 1


@inner
def put_out(c: Lists, j: int, asleep_s: float) -> None:
    """Take server ``j`` off the board; it takes ``asleep_s`` to wake (infinite: it cannot)."""
    trees, kind = c.trees, c.processors.kind
    last = trees.shape[0] - 1
    c.servers.awake[j] = 0
    set_key(trees, last, j, np.inf)
    for p in range(c.servers.first[j], c.servers.end[j]):
        set_key(trees, kind[p], p, np.inf)
    for p in range(c.servers.first[j], c.servers.end[j]):
        set_key(trees, last // 2 + kind[p], j, asleep_s)


@inner
def fall_asleep(c: Lists, until_s: float) -> None:
    """Put every server to sleep whose patience ends by ``until_s``.

    At time 0 none does: what is awake from the start may take the first tasks.
    """
    trees = c.trees
    last = trees.shape[0] - 1
    while until_s > 0.0 and trees[last, 1] <= until_s and trees[last, 1] < np.inf:
        off_s = trees[last, 1]
        j = first_at_most(trees, last, off_s)
        _switch(c, j, 0.0, off_s)
        put_out(c, j, c.servers.wake_s[j])


@inner
def wake(c: Lists, j: int, now_s: float) -> None:
    """Begin to wake server ``j``; its processors are free when it is awake."""
    trees, kind = c.trees, c.processors.kind
    last = trees.shape[0] - 1
    ready = now_s + c.servers.wake_s[j]
    c.servers.awake[j], c.servers.on_since_s[j], c.servers.end_s[j] = 1, now_s, ready
    _switch(c, j, 1.0, now_s)
    set_key(trees, last, j, ready + c.servers.patience_s[j])
    for p in range(c.servers.first[j], c.servers.end[j]):
        c.load[p], c.processors.work_s[p] = 0.0, 0.0
        advance(c, p, now_s)  # what it did before is over
        c.processors.ready_s[p] = ready
        if c.processors.up[p] == 1:
            set_key(trees, kind[p], p, ready)
        set_key(trees, last // 2 + kind[p], j, np.inf)


@inlined
def weigh(c: Lists, i: int, p: int, length_s: float) -> None:
    """Add task ``i`` to the load of processor ``p``."""
    c.processors.work_s[p] += slot_up(length_s, COUNTED_S)
    if c.rules.fit >= TIGHTEST:
        c.load[p] = max(c.load[p], c.processors.work_s[p] / c.tasks.deadline_s[i])
    else:
        c.load[p] += c.curves.share[i, c.processors.kind[p]]


@inlined
def busy_until(c: Lists, p: int, end_s: float) -> None:
    """Processor ``p`` is free of all it is to do at ``end_s``, later than before."""
    j = c.processors.server[p]
    set_key(c.trees, c.processors.kind[p], p, end_s)
    if end_s > c.servers.end_s[j]:
        c.servers.end_s[j] = end_s
        set_key(c.trees, c.trees.shape[0] - 1, j, end_s + c.servers.patience_s[j])


@inner
def advance(c: Lists, p: int, now_s: float) -> None:
    """Let what should have started on processor ``p`` by now run; cost: how many did.

    Gangs start by `start_gangs` alone, on all their processors at once.
    """
    while c.processors.head[p] >= 0:
        n = c.processors.head[p]
        i = c.nodes.task[n]
        start_s = c.tasks.start_s[i]
        if start_s > now_s or c.tasks.processors[i] > 1:
            return
        unlink(c.processors, c.nodes, n)
        c.processors.running[p] = i
        c.processors.ready_s[p] = c.tasks.end_s[i]


@inner
def believe_end(c: Lists, i: int, end_s: float) -> None:
    """Task ``i`` is believed to end at ``end_s``; infinite: it has no place."""
    c.tasks.end_s[i] = end_s
    if c.tasks.heir[i] >= 0:
        set_key(c.due, ENDS, i, end_s)


@inlined
def enqueue(c: Lists, p: int, n: int, ahead: int, start_s: float, length_s: float) -> float:
    """Let node ``n`` wait on processor ``p`` behind ``ahead``; -1: as the first; return its end."""
    i = c.nodes.task[n]
    end_s = ends_by(start_s, length_s, c.tasks.deadline_s[i])
    c.tasks.start_s[i], c.tasks.length_s[i] = start_s, length_s
    believe_end(c, i, end_s)
    c.tasks.told[i], c.nodes.lane[n] = 0, p
    link(c.processors, c.nodes, p, n, ahead)
    return end_s


@inner
def waits(c: Lists, i: int) -> bool:
    """Tell whether task ``i`` has a place and has not started."""
    return c.nodes.place[c.tasks.node[i]] >= 0


@inlined
def write(c: Lists, i: int, p: int, start_s: float, length_s: float) -> None:
    """Promise a run; what was promised in this moment before is no longer."""
    row = c.tasks.row[i]
    if row >= c.counts[PLACES] or c.placed.task[row] != i:
        row = c.counts[PLACES]
        c.counts[PLACES] += 1
        c.tasks.row[i], c.placed.task[row] = row, i
    c.placed.processor[row], c.placed.order[row] = p, c.counts[WRITES]
    c.placed.start_s[row], c.placed.length_s[row] = start_s, length_s
    c.counts[WRITES] += 1
    c.tasks.told[i] = 1


@inner
def tell(c: Lists, p: int) -> None:
    """Promise what waits on processor ``p`` before any gang and was not promised yet."""
    n = c.processors.head[p]
    while n >= 0 and c.tasks.processors[c.nodes.task[n]] == 1:
        i = c.nodes.task[n]
        if c.tasks.told[i] == 0:
            write(c, i, p, c.tasks.start_s[i], c.tasks.length_s[i])
        n = c.nodes.after[n]


@inlined
def settle(c: Lists, i: int, p: int, start_s: float, length_s: float, now_s: float) -> None:
    """Let task ``i`` be the last that processor ``p`` is to do."""
    advance(c, p, now_s)
    end_s = enqueue(c, p, c.tasks.node[i], c.processors.tail[p], start_s, length_s)
    weigh(c, i, p, length_s)
    busy_until(c, p, end_s)
    if c.processors.gangs[p] == 0:
        write(c, i, p, start_s, length_s)


@inner
def drop(listed: Ints, i: int) -> bool:
    """Take a number off a list with its length first; False: it is not there."""
    for a in range(1, listed[0] + 1):
        if listed[a] == i:
            listed[a] = listed[listed[0]]
            listed[0] -= 1
            return True
    return False


@inner
def add(listed: Ints, i: int) -> None:
    """Put a number on a list with its length first."""
    listed[0] += 1
    listed[listed[0]] = i
