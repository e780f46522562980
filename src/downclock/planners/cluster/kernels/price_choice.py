"""What waiting for cheap hours can save, and how a plan of others is taken over to do so."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from downclock.kernels.compiling import compiled
from downclock.planners.cluster.kernels.curves import Curves
from downclock.planners.cluster.kernels.price_place import wish
from downclock.planners.cluster.kernels.price_plan import (
    Asked,
    Fleet,
    Plan,
    rows_of,
    soonest_s,
    update,
)
from downclock.planners.cluster.kernels.price_spans import Tariff, over

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


@compiled
def shifted(
    asked: Asked, curves: Curves, tariff: Tariff, rows: Ints, width_s: Floats, come_s: Floats,
    until_s: float,
) -> tuple[float, float]:  # fmt: skip
    """Return what tasks cost (at their best hours, at any), if each came at all times ``come_s``.

    A task has ``width_s`` from then on, at most until ``until_s``. At any hour: its best clock at
    the mean of its window and of all sites. Its ``deadline_s`` in ``asked`` is overwritten.
    """
    best, blind, zones = 0.0, 0.0, tariff.rate.shape[0]
    for a in range(rows.size):
        row, i = rows[a], rows[a] % rows_of(curves)
        joules = curves.free_j[row] + curves.price_w[row // rows_of(curves)] * curves.free_s[row]
        for begin in come_s:
            end = min(begin + width_s[a], until_s)
            asked.deadline_s[i] = end
            least, mean = np.inf, 0.0
            for z in range(zones):
                value, _, length = wish(asked, curves, tariff, i, row, z, begin)
                if length > 0.0:
                    least = min(least, value)
                    mean += joules * over(tariff, z, begin, end) / (end - begin) / zones
            if least < np.inf:
                best, blind = best + least, blind + mean
    return best, blind


@compiled
def take_over(fleet: Fleet, tariff: Tariff, plan: Plan, now_s: float) -> None:
    """Let lists of tasks with lengths start as soon as can be, and find the servers' blocks."""
    for p in range(fleet.kind.size):
        at, i = soonest_s(fleet, plan, p, now_s), plan.head[p]
        while i >= 0:
            plan.start_s[i] = at
            at += plan.length_s[i]
            i = plan.after[i]
    for j in range(fleet.zone.size):
        update(fleet, tariff, plan, j, now_s)
