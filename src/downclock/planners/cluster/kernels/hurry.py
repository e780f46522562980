"""Hurry while room is scarce: tasks that come want shorter run times, so that more find room.

On a small cluster one task that runs slowly may be why the next has no place. Each time there is no
room for a task that could be in time on its own, those that come after it hurry, less and less. On
the only processor of a kind all that have a deadline do.
"""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.cluster.kernels.board import Cluster, row_of
from downclock.planners.cluster.kernels.curves import energy_j, want_s

SMALL = 8.0
"""Processors of a kind up to which one task without room means that all are to hurry."""

LONE = 0.5
"""How much tasks with a deadline hurry at least on the only processor of a kind."""

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
def _is_alone(c: Cluster, k: int) -> bool:
    """Tell whether there is one processor of a kind."""
    first = c.pools.first[k]
    g = c.pool_groups[first]
    return c.pools.end[k] - first == 1 and c.groups.end[g] - c.groups.first[g] == 1


@inner
def _hurry(c: Cluster, i: int, k: int, hurry: float) -> float:
    """Return how much task ``i`` hurries on kind ``k``: as all do, and more on a lone processor."""
    lone = _is_alone(c, k) and c.tasks.deadline_s[i] < np.inf
    return max(hurry, LONE) if lone else hurry


@inner
def hasten(c: Cluster, i: int) -> None:
    """Let task ``i``, which has come, want a run time that leaves more room."""
    pool = max(c.kinds[i, 0], 0)
    common = c.pools.hurry[pool]
    c.pools.hurry[pool] = FADES * common if common > 0.01 else 0.0
    for k in range(c.kinds.shape[1]):
        row, rows, hurry = row_of(c, i, k), c.curves.rows, _hurry(c, i, k, common)
        free = rows.free_s[row]
        if hurry <= 0.01 or c.kinds[i, 0] < 0 or not free < 1e300:
            continue
        length = want_s(
            c.curves, row, max(rows.short_s[row], free - hurry * (free - rows.short_s[row]))
        )
        if 0.0 < length < free:
            rows.free_s[row] = rows.long_s[row] = length
            rows.free_j[row] = energy_j(c.curves, row, length)
