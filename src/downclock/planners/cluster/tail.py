"""The tail of a batch: a server that is at work as long as deadlines allow.

As long as a server is full it costs nothing to run a task later. So where more may come, one server
gets tasks that can wait, each after most of the time for which it can: who comes meanwhile finds a
server awake with tasks that have not started, and shares it, instead of keeping one awake alone.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np

from downclock.planners.cluster.search import Batch, Search
from downclock.units import Floats, Ints

SLACK = 0.8
"""Part of the time until its latest start after which a task of the tail starts: what is left lets
it make way for others."""

WORTH = 0.1
"""What it is worth that tasks wait a second longer, against the power of a server that idles."""


def tail_of(batch: Batch, kind: int, tasks: Ints, places: Ints, most_j: float) -> Ints:
    """Return the processor of each of ``tasks`` (m,) that is in the tail; -1: it is not.

    ``places`` are the processors of a server of this kind. The tail ends where that is best, and
    costs at most ``most_j`` more than its tasks would on a server that is full.
    """
    j, size = int(batch.server[places[0]]), places.size
    wanted_s = np.minimum(batch.free_s[tasks, kind], batch.due_s[tasks])
    chain, start_s = _chains(batch.due_s[tasks] - wanted_s, wanted_s, batch.ready_s[places])
    best, least_j = np.full(tasks.size, -1), np.inf
    for last_s in np.unique(start_s[chain >= 0])[-3 * size :]:
        kept = np.where(start_s <= last_s, chain, -1)
        for tried in (kept, _matched(kept, start_s, wanted_s)):
            mine = tried >= 0
            place = np.full(batch.task.size, -1)
            place[tasks[mine]] = places[tried[mine]]
            over_j = Search(batch, place).cost_j - _full_j(batch, kind, tasks[mine], j)
            value_j = over_j - WORTH * batch.awake_w[j] * last_s
            if over_j <= most_j and value_j < least_j:
                best, least_j = place[tasks], value_j
    return best


def _chains(latest_s: Floats, wanted_s: Floats, ready_s: Floats) -> tuple[Ints, Floats]:
    """Return (processor, start) of tasks (m,) by their latest starts; -1: it is left out.

    Whichever processor is free first gets the task that can wait just so long.
    """
    order, ends = np.argsort(latest_s, kind="stable"), ready_s.copy()
    left, keys = order.tolist(), latest_s[order].tolist()
    chain, start_s = np.full(latest_s.size, -1), np.full(latest_s.size, np.inf)
    while left:
        p = int(np.argmin(ends))
        at = bisect_left(keys, ends[p] / SLACK)
        if at == len(left):
            break
        del keys[at]
        i = left.pop(at)
        chain[i], start_s[i] = p, ends[p]
        ends[p] += wanted_s[i]
    return chain, start_s


def _matched(chain: Ints, start_s: Floats, wanted_s: Floats) -> Ints:
    """Exchange the last tasks of processors: the longest goes where there is most time."""
    there = np.flatnonzero(chain >= 0)
    there = there[np.lexsort((start_s[there], chain[there]))]
    last = there[np.append(chain[there][1:] != chain[there][:-1], True)]
    found, room = chain.copy(), last[np.argsort(start_s[last], kind="stable")]
    found[last[np.argsort(-wanted_s[last], kind="stable")]] = chain[room]
    return found


def _full_j(batch: Batch, kind: int, tasks: Ints, j: int) -> float:
    """What tasks cost on a server ``j`` that is full."""
    rows: Any = batch.curves.rows[batch.row[tasks, kind]]
    lane_w = batch.awake_w[j] / batch.size[j] - batch.curves.kinds["idle_w"][kind]
    return float(np.sum(rows["free_j"] + lane_w * rows["free_s"]))
