"""The board of our planner: what each processor does next, when and how long; who wakes when.

Every processor has a queue of tasks that have not started, with planned starts and run times. What
has not started may be taken back. Queues have no gaps, and a server is awake until its last task is
done. Gangs, workflows and tasks that wait for cheap hours have reservations instead (`reserve`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.compiling import inner
from downclock.kernels.least_tree import first_at_most
from downclock.kernels.records import Records, record
from downclock.planners.cluster.kernels.curves import Curves
from downclock.planners.cluster.kernels.tariff import Tariff
from downclock.units import Floats, Ints

RECENT = 256
"""Arrivals remembered to foresee the load."""


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
    staying=int,  # those that do
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
