"""Tasks that wait, by class: the kind that they prefer, size of gang and length.

What fills a hole well is as long as the hole, so a hole is offered tasks of classes near its own
length first, and few of many; within a class those that came first.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.cluster.kernels.board import Cluster, row_of
from downclock.units import Floats, Ints

BUCKETS, MIDDLE, STEP = 512, 128, float(np.log(1.05))
"""Classes of lengths: each 5 % longer than the one before; the middle one begins at a second."""

WIDTHS = 16
"""Classes of gangs: up to 1, 2, 4, 8, ... processors."""

EACH = 64
"""Tasks looked at of one class."""


@inner
def _bucket_of(length_s: float) -> int:
    """Return the class of a length."""
    if not length_s < np.inf:
        return BUCKETS - 1
    if length_s <= 0.0:
        return 0
    return int(min(max(np.floor(np.log(length_s) / STEP) + MIDDLE, 0.0), BUCKETS - 1.0))


@inner
def _width_of(gang: int) -> int:
    """Return the class of a gang."""
    width, most = 0, 1
    while most < gang and width < WIDTHS - 1:
        width, most = width + 1, 2 * most
    return width


@inner
def wait(c: Cluster, i: int) -> None:
    """Count task ``i`` among those that wait."""
    if c.tasks.rank[i] >= 0:
        return
    kind = max(c.kinds[i, 0], 0)
    row = row_of(c, i, kind)
    bucket = _bucket_of(min(c.curves.rows.free_s[row], c.curves.rows.long_s[row]))
    span = kind * WIDTHS + _width_of(c.tasks.gang[i])
    c.spans.first[span] = min(c.spans.first[span], bucket)
    c.spans.end[span] = max(c.spans.end[span], bucket + 1)
    c.spans.count[span] += 1
    q = span * BUCKETS + bucket
    c.tasks.rank[i] = q
    for k in range(c.kinds.shape[1]):
        if c.curves.rows.short_s[row_of(c, i, k)] < np.inf:
            c.mates[kind, k] = 1
    _append(c, q, i)


@inner
def _append(c: Cluster, q: int, i: int) -> None:
    last = c.queues.tail[q]
    c.tasks.before[i], c.tasks.after[i] = last, -1
    if last >= 0:
        c.tasks.after[last] = i
    else:
        c.queues.head[q] = i
    c.queues.tail[q] = i
    c.queues.count[q] += 1
    c.tally.queued[0] += 1


@inner
def wait_no_more(c: Cluster, i: int) -> None:
    """Take task ``i`` off those that wait."""
    q = c.tasks.rank[i]
    if q < 0:
        return
    before, after = c.tasks.before[i], c.tasks.after[i]
    if before >= 0:
        c.tasks.after[before] = after
    else:
        c.queues.head[q] = after
    if after >= 0:
        c.tasks.before[after] = before
    else:
        c.queues.tail[q] = before
    c.tasks.rank[i] = c.tasks.before[i] = c.tasks.after[i] = -1
    c.queues.count[q] -= 1
    c.spans.count[q // BUCKETS] -= 1
    c.tally.queued[0] -= 1


@inner
def _spans_for(c: Cluster, k: int, free: int) -> Ints:
    """Return the classes of kind and gang in which tasks wait that may run on ``free`` of ``k``."""
    found, m, widths = np.empty(c.spans.count.size, np.int64), 0, _width_of(free) + 1
    for kind in range(c.kinds.shape[1]):
        if c.mates[kind, k] == 1:
            for span in range(kind * WIDTHS, kind * WIDTHS + widths):
                if c.spans.count[span] > 0:
                    found[m] = span
                    m += 1
    return found[:m]


@inner
def candidates(c: Cluster, k: int, free: int, length_s: float, most: int) -> Ints:
    """Return up to ``most`` waiting tasks for ``free`` processors of kind ``k``.

    Those first whose length is nearest to that of the hole.
    """
    found, m, spans = np.empty(most, np.int64), 0, _spans_for(c, k, free)
    low, high, middle = BUCKETS, 0, _bucket_of(length_s)
    for span in spans:
        low, high = min(low, c.spans.first[span]), max(high, c.spans.end[span])
    for step in range(2 * BUCKETS):
        bucket = middle + (step + 1) // 2 if step % 2 == 1 else middle - step // 2
        if middle + step // 2 >= high and middle - step // 2 < low:
            break
        if bucket < low or bucket >= high:
            continue
        for span in spans:
            i, seen = c.queues.head[span * BUCKETS + bucket], 0
            while i >= 0 and seen < EACH:
                if c.tasks.gang[i] <= free and c.tasks.waits[i] == 0:
                    if m == most:
                        return found
                    found[m] = i
                    m += 1
                seen += 1
                i = c.tasks.after[i]
    return found[:m]


@inner
def usual_lengths(c: Cluster, k: int, free: int, count: int) -> Floats:
    """Return lengths of what waits for kind ``k``, from short to long: ``count`` quantiles."""
    spans, amount, total = _spans_for(c, k, free), np.zeros(BUCKETS, np.int64), 0
    for span in spans:
        total += c.spans.count[span]
        for bucket in range(c.spans.first[span], c.spans.end[span]):
            amount[bucket] += c.queues.count[span * BUCKETS + bucket]
    found, m, so_far = np.empty(min(count, total)), 0, 0
    for bucket in range(BUCKETS):
        so_far += amount[bucket]
        while m < found.size and so_far * found.size > m * total + total // 2:
            found[m] = np.exp((bucket - MIDDLE + 0.5) * STEP)
            m += 1
    return found[:m]


@inner
def all_waiting(c: Cluster, pools: Ints) -> Ints:
    """Return all tasks that wait and may run on one of the kinds marked in ``pools`` (k,)."""
    found, m = np.empty(c.tally.queued[0], np.int64), 0
    for span in range(c.spans.count.size):
        if c.spans.count[span] == 0 or not np.any(c.mates[span // WIDTHS] * pools > 0):
            continue
        for bucket in range(c.spans.first[span], c.spans.end[span]):
            i = c.queues.head[span * BUCKETS + bucket]
            while i >= 0:
                found[m] = i
                m += 1
                i = c.tasks.after[i]
    return found[:m]


SOME = 8
"""Tasks of one class that are asked how urgent they are."""


@inner
def most_urgent(c: Cluster, k: int, free: int) -> int:
    """Return a waiting task that is due first among those that ``free`` of ``k`` can run; or -1."""
    best, least = -1, np.inf
    for span in _spans_for(c, k, free):
        for bucket in range(c.spans.first[span], c.spans.end[span]):
            i, seen = c.queues.head[span * BUCKETS + bucket], 0
            while i >= 0 and seen < SOME:
                able = c.tasks.gang[i] <= free and c.tasks.waits[i] == 0
                short = c.curves.rows.short_s[row_of(c, i, k)]
                if able and short < np.inf and c.tasks.start_s[i] < least:
                    best, least = i, c.tasks.start_s[i]
                seen += 1
                i = c.tasks.after[i]
    return best


@inner
def most_urgent_wide(c: Cluster, k: int, most: int) -> int:
    """Return the gang due first of those that wait for several servers of ``k``, or -1.

    It needs at most ``most`` processors.
    """
    best, least = -1, np.inf
    for span in _spans_for(c, k, most):
        if span % WIDTHS < _width_of(c.curves.kinds.largest[k]):
            continue
        for bucket in range(c.spans.first[span], c.spans.end[span]):
            i, seen = c.queues.head[span * BUCKETS + bucket], 0
            while i >= 0 and seen < SOME:
                gang, kind = c.tasks.gang[i], c.groups.kind[c.items.group[c.tasks.booked[i]]]
                able = c.curves.kinds.largest[k] < gang <= most and c.tasks.waits[i] == 0
                if able and kind == k and c.tasks.start_s[i] < least:
                    best, least = i, c.tasks.start_s[i]
                seen += 1
                i = c.tasks.after[i]
    return best
