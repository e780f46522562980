"""The board of our planner: what each processor does next, when and how long; who wakes when.

Every processor has a queue of tasks that have not started, with planned starts and run times. What
has not started may be taken back. Queues have no gaps, and a server is awake until its last task is
done. Gangs, workflows and tasks that wait for cheap hours have reservations instead (`reserve`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.chains import link, unlink
from downclock.kernels.compiling import inner
from downclock.kernels.least_tree import first_at_most, set_key
from downclock.kernels.records import Records, record
from downclock.planners.cluster.kernels.curves import Curves
from downclock.planners.cluster.kernels.tariff import Tariff
from downclock.units import Floats, Ints

RECENT = 256
"""Arrivals remembered to foresee the load."""

LINGER_S = 86400.0
"""A server that idles for nothing stays awake so long to save a wake."""

PATIENT = 0.9375
"""What is left of what patience was worth after each time that it was worth something."""

WARMER, COOLER = 0.002, 0.1
"""Servers by which more are to stay awake for urgent tasks for each that finds no room, and fewer
for each that stayed in vain: these so many times the part of a task's cost that it idled away."""

LONG_AGO_S = -1e300


class Rules(NamedTuple):
    """Parameters of a policy.

    Attributes:
        late: what has not started may be planned anew; else an arrival is answered for good.
        effort: tasks placed anew at each event on top of the usual ones.
    """

    late: bool
    effort: int


PROCESSOR = record(
    kind=int,
    server=int,
    up=int,  # 0 while it is down
    running=int,  # the task that runs or is about to; -1: none
    begun_s=float,  # when that began
    ready_s=float,  # when it is, was or will be free of what has started
    end_s=float,  # end of all it is to do
    head=int,  # first task that has not started; -1: none
    tail=int,
)
SERVER = record(
    first=int,  # its first processor, and the one after its last
    end=int,
    zone=int,
    server_class=int,  # servers of one number are alike
    wake_s=float,
    wake_j=float,
    awake_w=float,  # power of an awake server where nothing runs, above that of sleep
    sleep_w=float,  # power of a sleeping server, billed until its last task
    linger_s=float,  # how long it stays awake after its last task
    awake=int,
    works=int,  # 0 while it is down
    since_s=float,  # when it began to wake
    last_s=float,  # planned end of its last task
    used_s=float,  # end of the last that has started
    warm=int,  # 1: it stays awake with nothing to do, for tasks that cannot wait for a wake
    base=int,  # 1: it has no planned end, as enough tasks keep coming
    awake_rank=int,  # place among those awake; -1: asleep
    group_first=int,  # its first group of like processors, and the one after its last
    group_end=int,
)
GROUP = record(  # processors of one kind in one server: alike, so they are a count
    server=int,
    kind=int,
    first=int,  # its first processor in ``lanes``, and the one after its last
    end=int,
    up=int,  # processors that work
    used=int,  # processors that run something
    dearer_w=float,  # what a running one carries of host and chip more than where that is least
    head=int,  # first item; -1: none
)
POOL = record(  # groups of one kind, in ``pool_groups``
    first=int,
    end=int,
    classes=int,  # how many kinds of servers they are in
    hint=int,  # server where the last reservation was made
    wake_s=float,  # what its slowest server takes to wake
    awake_s=float,  # when all are awake that have begun to wake
    up=int,  # processors that work
    awake=int,  # those of them on servers that are awake
    express_first=int,  # its first group that keeps room for short tasks
    express=float,  # what it counts, against its price, that a long one takes that: as it is scarce
    hurry=float,  # how much faster than they want new tasks are to run, as room is scarce: 0 to 1
    # of tasks that came lately, each counting less than the next: how many, with what
    seen=float,
    gangs=float,  # processors that they need at once
    work_s=float,  # their run times at the fastest, on all these processors
    needs=float,  # parts of their windows that these are
    at_once=float,  # processors that they need if all their windows are one
    window_s=float,  # their windows
    span_s=float,  # time between them
    last_s=float,  # when the last one came
    slept_s=float,  # when a server fell asleep that no other has been woken for
    patience_j=float,  # what it would have saved lately to stay awake until that costs a wake
    warm=float,  # servers, about, that are to stay awake for tasks that cannot wait for a wake
)
QUEUE = record(head=int, tail=int, count=int)  # waiting tasks of one class, the first to come first
SPAN = record(  # classes of one kind and size of gang
    first=int,  # the first bucket that was ever used, and the one after the last
    end=int,
    count=int,  # tasks
)
ITEM = record(  # a task on a group: it runs there, or has a reservation
    task=int,
    group=int,
    count=int,  # processors
    start_s=float,
    end_s=float,
    runs=int,
    after=int,  # next item of the group, or next free item; -1: none
    before=int,
    more=int,  # next item of the task; -1: none
)
TASK = record(
    arrival_s=float,
    deadline_s=float,
    after=int,  # next task on the same processor, or of the same class of those waiting; -1: none
    before=int,  # the one before; -1: none
    place=int,  # processor of a planned task that has not started; -1: none
    start_s=float,  # planned start
    length_s=float,  # planned run time
    gang=int,  # processors that it needs at once
    booked=int,  # its first item; -1: none
    rank=int,  # its class among those that wait, where gangs have come; -1: it does not
    bound=int,  # 1: it waits for processors of its server to be free; 0: only its start is certain
    waits=int,  # tasks before it that are not done
    status=int,  # a code of `status`
    due_s=float,  # its own deadline; that of its window, ``deadline_s``, may be sooner
    latest_s=float,  # end at the latest so that what follows it can be in time
    leads=int,  # first edge to a task after it; -1: none
    follows=int,  # first edge to a task before it; -1: none
    mark=int,  # its place in the set that is worked on; -1: it is not in it
    blames=int,  # task for which there is no room, why its workflow is refused; -1: itself
)
EDGE = record(  # one task has to end before another starts
    before=int,
    after=int,
    more_before=int,  # next edge to the same later task; -1: none
    more_after=int,  # next edge from the same earlier task; -1: none
)
TALLY = record(
    awake=int,  # servers that are awake
    processors=int,  # processors of these
    queued=int,  # tasks that are planned and have not started
    arrivals=int,  # tasks that came after time 0
    turn=int,  # whose turn it is to be looked at or improved
    since_replan=int,  # events since all was planned anew
    closed=int,  # 1: nothing more comes
    settled=int,  # 1: all was planned together and goes as planned
    unstarted=int,  # 1: tasks may be planned on processors where nothing runs
    priced=int,  # 1: tasks wait for cheap hours
    shared=int,  # 1: gangs have come; tasks have reservations on groups of processors
    items=int,  # items in use or free
    free_item=int,  # first free item; -1: none
    mean_s=float,  # run time that tasks want, on the mean of those that came lately
    # or, without gangs, of those planned together
    wait_weight=float,  # of waiting for a processor: above 0, the sooner is better
    bases=int,  # servers without a planned end, and how many there may be
    most_bases=float,
    worth_j=float,  # what all tasks cost, together, at the run times that they wanted
    weighed=int,  # how many they are, and how many of them could not wait for a wake
    urgent=int,
    coming=float,  # processors that tasks to come keep busy, as far as those may be alone
    idle_share=float,  # part of what a server is kept awake longer that will idle
    starts=int,  # decisions written: starts, switches, refusals
    switches=int,
    refusals=int,
)
START = record(task=int, processor=int, start_s=float, length_s=float)
SWITCH = record(server=int, on=int, at_s=float)
REFUSAL = record(task=int, why=int, earliest_s=float)
"""Records: arrays of them are few arguments to compile, and written to bytes as they are."""


class Cluster(NamedTuple):
    """Everything that a moment works on (p processors, s servers, k kinds, n tasks)."""

    rules: Rules
    processors: Records  # (p,) of PROCESSOR
    servers: Records  # (s,) of SERVER
    tasks: Records  # (n,) of TASK
    kinds: Ints  # (n, k) kinds a task can run on in time, the cheapest first; -1: no more
    curves: Curves
    tariff: Tariff
    tally: Records  # (1,) of TALLY
    awake_servers: Ints  # (s,) the first ``tally.awake`` are awake
    busy: Floats  # (1, tree over p) when what runs ends or should have; infinite: nothing runs
    asleep: Floats  # (k, tree over s) how long a sleeping server with the kind takes to wake
    attend: Floats  # (1, tree over s) when something is to be done about a server
    arrival_history: Floats  # (2, RECENT) when tasks came and how long they run
    groups: Records  # of GROUP
    lanes: Ints  # (p,) processors, group by group
    items: Records  # of ITEM
    pools: Records  # (k,) of POOL
    pool_groups: Ints  # groups, kind by kind
    holes: Floats  # (k, tree over groups) processors of awake servers that are free, times -1
    freeing: Floats  # (k, tree over groups) when the next run on awake servers should end
    queues: Records  # of QUEUE: tasks that wait, by class (`queues`), where gangs have come
    spans: Records  # of SPAN
    edges: Records  # of EDGE
    mates: Ints  # (k, k) 1: tasks that prefer a kind can run on the other, too
    starts: Records  # room for decisions: (m,) of START
    switches: Records  # of SWITCH
    refusals: Records  # of REFUSAL


@inner
def first_of(trees: Floats) -> int:
    """Return the leaf of the least key of the first tree."""
    return first_at_most(trees, 0, trees[0, 1])


@inner
def row_of(c: Cluster, i: int, k: int) -> int:
    """Return the row of a task on a kind."""
    return i * c.kinds.shape[1] + k


@inner
def is_idle(c: Cluster, p: int) -> bool:
    """Tell whether nothing runs on processor ``p``."""
    return c.busy[0, c.busy.shape[1] // 2 + p] == np.inf


@inner
def _switch(c: Cluster, j: int, on: int, at_s: float) -> None:
    row = c.tally.switches[0]
    c.switches.server[row], c.switches.on[row], c.switches.at_s[row] = j, on, at_s
    c.tally.switches[0] += 1


@inner
def _note_idle(c: Cluster, j: int, saved_j: float) -> None:
    """Note what it saves, or would have saved, that server ``j`` stays awake for a while."""
    k = c.processors.kind[c.servers.first[j]]
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
    if c.pools.patience_j[c.processors.kind[c.servers.first[j]]] > 0.0:
        may_save_j += c.servers.wake_j[j]
    if c.servers.warm[j] == 1:
        may_save_j += _for_urgent(c) * tally.worth_j[0] / tally.weighed[0]
    return c.servers.linger_s[j] + may_save_j / awake_w


@inner
def _staying(c: Cluster, k: int, most: float) -> int:
    """Count servers that stay awake for urgent tasks of kind ``k``, up to ``most``."""
    count = 0
    for a in range(c.tally.awake[0]):
        j = c.awake_servers[a]
        count += c.servers.warm[j] == 1 and c.processors.kind[c.servers.first[j]] == k
        if count >= most:
            break
    return count


@inner
def stays(c: Cluster, j: int, now_s: float) -> bool:
    """Tell whether server ``j``, which has nothing to do, stays awake for urgent tasks."""
    k, up = c.processors.kind[c.servers.first[j]], 0
    for p in range(c.servers.first[j], c.servers.end[j]):
        up += c.processors.up[p]
    if c.tally.urgent[0] == 0 or c.servers.wake_s[j] <= 0.0 or up == 0:
        return False
    if c.servers.warm[j] == 1:
        c.pools.warm[k] = max(0.0, c.pools.warm[k] - COOLER * min(1.0, _for_urgent(c)))
        c.servers.warm[j] = 0
        return False
    most = c.pools.warm[k] - 0.5
    c.servers.warm[j] = most > 0.0 and _staying(c, k, most) < most
    return c.servers.last_s[j] + lingers_s(c, j) > now_s


@inner
def note_start(c: Cluster, i: int, p: int, start_s: float, length_s: float) -> None:
    """Write down that task ``i`` runs on processor ``p``."""
    m, j = c.tally.starts[0], c.processors.server[p]
    c.starts.task[m], c.starts.processor[m] = i, p
    c.starts.start_s[m], c.starts.length_s[m] = start_s, length_s
    c.tally.starts[0] += 1
    c.servers.warm[j] = 0
    used, wake_j = c.servers.used_s[j], c.servers.wake_j[j]
    idling = c.servers.awake_w[j] * (start_s - used)
    if c.servers.since_s[j] < used and 0.0 < idling < wake_j:
        _note_idle(c, j, wake_j - idling)
    c.servers.used_s[j] = max(used, start_s + length_s)


@inner
def wake(c: Cluster, j: int, now_s: float) -> None:
    """Begin to wake server ``j``."""
    tally = c.tally
    _switch(c, j, 1, now_s)
    k, wake_j = c.processors.kind[c.servers.first[j]], c.servers.wake_j[j]
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
    c.servers.awake[j] = c.servers.base[j] = c.servers.warm[j] = 0
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
def sleep(c: Cluster, j: int, at_s: float) -> None:
    """Put server ``j`` to sleep; it has nothing to do."""
    _switch(c, j, 0, at_s)
    _note_idle(c, j, -c.servers.wake_j[j])
    c.pools.slept_s[c.processors.kind[c.servers.first[j]]] = at_s
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
def _longer(c: Cluster, j: int, end_s: float) -> None:
    """Keep server ``j`` awake at least until ``end_s``."""
    if end_s > c.servers.last_s[j]:
        c.servers.last_s[j] = end_s
        set_key(c.attend, 0, j, end_s + lingers_s(c, j))


@inner
def queue(c: Cluster, p: int, i: int, ahead: int) -> None:
    """Put task ``i`` into the queue of processor ``p`` behind ``ahead``; -1: as the first."""
    c.servers.warm[c.processors.server[p]] = 0
    link(c.processors, c.tasks, p, i, ahead)
    c.tally.queued[0] += 1


@inner
def unqueue(c: Cluster, i: int) -> int:
    """Take task ``i`` out of its queue; return the processor."""
    c.tally.queued[0] -= 1
    return unlink(c.processors, c.tasks, i)


@inner
def append(c: Cluster, p: int, i: int, length_s: float, now_s: float) -> None:
    """Put task ``i`` at the end of what processor ``p`` is to do."""
    c.tasks.start_s[i] = max(now_s, c.processors.end_s[p])
    c.tasks.length_s[i] = length_s
    queue(c, p, i, c.processors.tail[p])
    c.processors.end_s[p] = c.tasks.start_s[i] + length_s
    _longer(c, c.processors.server[p], c.processors.end_s[p])


@inner
def room_ahead(c: Cluster, p: int, i: int, from_s: float, most: int) -> tuple[int, float, float]:
    """Return (the planned task of processor ``p`` behind which task ``i`` goes, its start, room).

    That is ahead of the first that is due later (-1: as the next); so long it can run that neither
    it nor what follows is late. None where more than ``most`` are planned there.
    """
    tasks, behind, a = c.tasks, -1, c.processors.head[p]
    due = tasks.deadline_s[i]
    while a >= 0 and most >= 0 and tasks.deadline_s[a] <= due and from_s < due:
        from_s, most, behind = from_s + tasks.length_s[a], most - 1, a
        a = tasks.after[a]
    room, end = due - from_s, from_s
    while a >= 0 and most >= 0 and room > 0.0:
        end, most = end + tasks.length_s[a], most - 1
        room = min(room, tasks.deadline_s[a] - end)
        a = tasks.after[a]
    return behind, from_s, room if most >= 0 else -1.0


@inner
def put_behind(c: Cluster, p: int, i: int, length_s: float, behind: int, now_s: float) -> None:
    """Plan task ``i`` on processor ``p`` behind task ``behind``, ahead of the rest; -1: of all."""
    c.tasks.length_s[i] = length_s
    queue(c, p, i, behind)
    retime(c, p, max(now_s, c.processors.ready_s[p]))  # what waits on an idle one begins now


@inner
def take_back(c: Cluster, p: int) -> int:
    """Remove the last planned task of processor ``p`` that has not started, and return it."""
    i = c.processors.tail[p]
    unqueue(c, i)
    c.processors.end_s[p] = (
        c.tasks.start_s[i] if c.processors.head[p] >= 0 else c.processors.ready_s[p]
    )
    set_last(c, c.processors.server[p])
    return i


@inner
def retime(c: Cluster, p: int, ready_s: float) -> None:
    """Let processor ``p`` be free at ``ready_s``; what is planned there moves with it."""
    end, i = ready_s, c.processors.head[p]
    while i >= 0:
        c.tasks.start_s[i] = end
        end += c.tasks.length_s[i]
        i = c.tasks.after[i]
    c.processors.ready_s[p], c.processors.end_s[p] = ready_s, end
    set_last(c, c.processors.server[p])


@inner
def changed(c: Cluster, p: int) -> None:
    """The queue of processor ``p`` is another one: see to its end and to its server."""
    tail = c.processors.tail[p]
    c.processors.end_s[p] = c.processors.ready_s[p]
    if tail >= 0:
        c.processors.end_s[p] = c.tasks.start_s[tail] + c.tasks.length_s[tail]
    set_last(c, c.processors.server[p])


@inner
def can_shift(c: Cluster, p: int, start_s: float, most: int) -> bool:
    """Tell whether the planned tasks of processor ``p`` meet their deadlines from ``start_s``.

    Also False where there are more than ``most`` of them.
    """
    at, i = start_s, c.processors.head[p]
    while i >= 0:
        at, most = at + c.tasks.length_s[i], most - 1
        if at > c.tasks.deadline_s[i] or most < 0:
            return False
        i = c.tasks.after[i]
    return True


@inner
def soonest_s(c: Cluster, p: int, now_s: float) -> float:
    """Return when processor ``p`` could start something at the earliest; infinite: it is down."""
    j = c.processors.server[p]
    if c.processors.up[p] == 0 or c.servers.works[j] == 0:
        return np.inf
    ready = c.processors.ready_s[p] if c.servers.awake[j] == 1 else now_s + c.servers.wake_s[j]
    return max(now_s, ready)
