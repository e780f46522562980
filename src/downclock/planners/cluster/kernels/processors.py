"""What each processor is to do, one task after another, and when."""

from __future__ import annotations

import numpy as np

from downclock.kernels.chains import link, unlink
from downclock.kernels.compiling import inner
from downclock.planners.cluster.kernels.awake import busy, runs, set_last, set_longer
from downclock.planners.cluster.kernels.board import Cluster


@inner
def note_start(c: Cluster, i: int, p: int, start_s: float, length_s: float) -> None:
    """Write down that task ``i`` runs on processor ``p``."""
    m = c.tally.starts[0]
    c.starts.task[m], c.starts.processor[m] = i, p
    c.starts.start_s[m], c.starts.length_s[m] = start_s, length_s
    c.tally.starts[0] += 1
    runs(c, c.processors.server[p], start_s, start_s + length_s)


@inner
def queue(c: Cluster, p: int, i: int, ahead: int) -> None:
    """Put task ``i`` into the queue of processor ``p`` behind ``ahead``; -1: as the first."""
    busy(c, c.processors.server[p])
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
    set_longer(c, c.processors.server[p], c.processors.end_s[p])


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
