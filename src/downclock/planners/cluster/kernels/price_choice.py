"""What waiting for cheap hours can save."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled
from downclock.planners.cluster.kernels.curves import Curves, wanted_j
from downclock.planners.cluster.kernels.prices import wish
from downclock.planners.cluster.kernels.tariff import Tariff, over
from downclock.units import Floats, Ints


@compiled
def shifted(
    curves: Curves, tariff: Tariff, rows: Ints, width_s: Floats, come_s: Floats, until_s: float
) -> tuple[float, float]:
    """Return what tasks cost (at their best hours, at any), if each came at all times ``come_s``.

    A task has ``width_s`` from then on, at most until ``until_s``. At any hour: its best clock at
    the mean of its window and of all sites.
    """
    best, blind, zones = 0.0, 0.0, tariff.rate.shape[0]
    for a in range(rows.size):
        row = rows[a]
        joules = wanted_j(curves, row)
        for begin in come_s:
            end = min(begin + width_s[a], until_s)
            least, mean = np.inf, 0.0
            for z in range(zones):
                value, _, length = wish(curves, tariff, row, z, begin, end)
                if length > 0.0:
                    least = min(least, value)
                    mean += joules * over(tariff, z, begin, end) / (end - begin) / zones
            if least < np.inf:
                best, blind = best + least, blind + mean
    return best, blind
