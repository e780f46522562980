"""All tasks at once: balanced chains on a given number of processors."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from downclock.kernels.compiling import compiled
from downclock.kernels.least_tree import first_at_most, set_key
from downclock.planners.cluster.kernels.curves import Curves, energy_j, want_s

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


@compiled
def balance(
    curves: Curves,
    deadline_s: Floats,
    order: Ints,
    k: int,
    ends: Floats,
    opened: int,
    most: int,
    chain: Ints,
) -> tuple[float, int, int]:
    """Give each task, in order, to the processor free soonest.

    ``ends`` is a tree over ``most`` processors (1, tree): 0 for the first ``opened``, else
    infinite. A task that would have to be shortened opens another processor, if one is left.
    Writes ``chain`` (processor of each task; -1: no room); returns (energy above the tasks' best,
    processors opened, tasks without room).
    """
    kinds = curves.box.shape[0]
    extra, lost = 0.0, 0
    for a in range(order.size):
        i = order[a]
        row = i * kinds + k
        p, start = first_at_most(ends, 0, ends[0, 1]), ends[0, 1]
        if deadline_s[i] - start < curves.rows.free_s[row] and opened < most:
            p, start = opened, 0.0
            opened += 1
        t = want_s(curves, row, deadline_s[i] - start)
        if t < 0.0:
            lost += 1
            continue
        if t < curves.rows.free_s[row]:
            extra += energy_j(curves, row, t) - curves.rows.free_j[row]
        chain[i] = p
        set_key(ends, 0, p, start + t)
    return extra, opened, lost
