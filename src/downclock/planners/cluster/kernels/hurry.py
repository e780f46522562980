"""Hurry while room is scarce: tasks that come want shorter run times, so that more find room.

On a small cluster one task that runs slowly may be why the next has no place. Each time there is no
room for a task that could be in time on its own, those that come after it hurry, less and less.
"""

from __future__ import annotations

from downclock.kernels.compiling import inner
from downclock.planners.cluster.kernels.board import Cluster, row_of
from downclock.planners.cluster.kernels.curves import energy_j, want_s

SMALL = 8.0
"""Processors of a kind up to which one task without room means that all are to hurry."""

FADES = 0.995
"""What is left of the hurry after each task that comes."""


@inner
def note_no_room(c: Cluster, i: int, now_s: float) -> None:
    """Note that there is no room for task ``i`` beside what is planned."""
    k, count = max(c.kinds[i, 0], 0), 0
    if now_s + c.curves.rows.short_s[row_of(c, i, k)] > c.tasks.deadline_s[i]:
        return
    for at in range(c.pools.first[k], c.pools.end[k]):
        count += c.groups.up[c.pool_groups[at]]
    c.pools.hurry[k] = min(1.0, c.pools.hurry[k] + min(1.0, SMALL / max(count, 1)))


@inner
def hasten(c: Cluster, i: int) -> None:
    """Let task ``i``, which has come, want a run time that leaves more room."""
    pool = max(c.kinds[i, 0], 0)
    hurry = c.pools.hurry[pool]
    c.pools.hurry[pool] = FADES * hurry if hurry > 0.01 else 0.0
    if hurry <= 0.01:
        return
    for k in range(c.kinds.shape[1]):
        row, rows = row_of(c, i, k), c.curves.rows
        free = rows.free_s[row]
        if c.kinds[i, 0] < 0 or not free < 1e300:
            continue
        length = want_s(
            c.curves, row, max(rows.short_s[row], free - hurry * (free - rows.short_s[row]))
        )
        if 0.0 < length < free:
            rows.free_s[row] = rows.long_s[row] = length
            rows.free_j[row] = energy_j(c.curves, row, length)
