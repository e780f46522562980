"""Bounds by counting: more tasks in one piece than cores, so some core runs several of them.

Of ``k M + r`` tasks on M cores, the r cores with most of them run at least ``(k + 1) r``: with
fewer, the last of the r would run at most k, and so would all others. So the r busiest cores have
at least the work of the ``(k + 1) r`` shortest. For r = 1 that is a least makespan; for any r it
limits how long few cores are active (`busiest`). Of ``M + r`` tasks, either one core runs three, or
r cores run two; the longest pair is shortest where the shortest task goes with the longest.
"""

from __future__ import annotations

import numpy as np

from downclock.units import Floats

_TIMES = 12
"""Heads and tails tried as least ones of a crowd, evenly over their order."""


def busiest(work: Floats, cores: int) -> Floats:
    """Least total work of the r busiest cores (M,), r = 1..M."""
    work = np.sort(work)[::-1]
    until = np.append(0.0, np.cumsum(work))
    least = np.zeros(cores)
    for r in range(1, cores + 1):
        k = np.arange((work.size - r) // cores + 1)
        end = k * cores + r
        least[r - 1] = (until[end] - until[end - (k + 1) * r]).max(initial=0.0)
    return least


def crowded(head: Floats, work: Floats, tail: Floats, cores: int) -> float:
    """Least length of a schedule of tasks with heads and tails, by counting them."""
    best = 0.0
    if work.size <= cores:
        return best
    for least_head in some(head, _TIMES):
        late = head >= least_head
        for least_tail in some(tail[late], _TIMES):
            counted = work[late & (tail >= least_tail)]
            if counted.size > cores:
                best = max(best, least_head + _longest_core(counted, cores) + least_tail)
    return float(best)


def _longest_core(work: Floats, cores: int) -> float:
    """Least of the longest core's work."""
    work = np.sort(work)[::-1]
    best = busiest(work, cores)[0]
    for r in range(2, min(cores, work.size - cores) + 1):
        pairs = work[cores - r : cores] + work[cores : cores + r][::-1]
        best = max(best, min(float(pairs.max()), float(work[cores + r - 3 : cores + r].sum())))
    return float(best)


def some(times: Floats, most: int) -> Floats:
    """At most so many of the times, evenly over their order."""
    known = np.unique(times)
    if known.size <= most:
        return known
    return known[np.linspace(0, known.size - 1, most).astype(np.int64)]
