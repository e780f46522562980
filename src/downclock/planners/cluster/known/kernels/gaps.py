"""What servers do while they run nothing: they idle, or sleep and wake."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import inner
from downclock.planners.cluster.known.kernels.model import Records
from downclock.planners.cluster.known.kernels.tariff import over, rate_at
from downclock.units import Floats, Ints


@inner
def step_at(time_s: Floats, profile: Records, at_s: float) -> int:
    """Return the step of a server's profile that holds a time, from 0; -1: before the first."""
    low, high = -1, profile.steps - 1
    while low < high:
        middle = (low + high + 1) // 2
        if time_s[profile.begin + middle] <= at_s:
            low = middle
        else:
            high = middle - 1
    return low


@inner
def is_busy(used: Ints, profile: Records, step: int) -> bool:
    """Tell whether anything runs during a step; before the first nothing does."""
    return step >= 0 and used[profile.begin + step, used.shape[1] - 1] > 0


@inner
def slept_value(tariff: Floats, server: Records, from_s: float, to_s: float) -> float:
    """Return the value of sleeping from one time to another and being awake then."""
    if to_s - from_s < server.wake_s:
        return np.inf
    if server.wake_s > 0.0:
        wake_w = server.wake_j / server.wake_s
        value = wake_w * over(tariff, server.zone, to_s - server.wake_s, to_s)
    else:
        value = server.wake_j * rate_at(tariff, server.zone, to_s)
    if server.sleep_w > 0.0:
        value += server.sleep_w * over(tariff, server.zone, from_s, to_s - server.wake_s)
    return value


@inner
def is_down(down: Floats, server: Records, from_s: float, to_s: float) -> bool:
    """Tell whether a server is down at some time between two."""
    for i in range(server.down_first, server.down_end):
        if down[i, 0] < to_s and down[i, 1] > from_s:
            return True
    return False


@inner
def gap_value(
    tariff: Floats, down: Floats, server: Records, was_on: bool, from_s: float, to_s: float
) -> float:
    """Return the least value of a time in which a server runs nothing.

    It sleeps where it was not on before or is down; after its last job nothing counts.
    """
    if to_s == np.inf:
        return 0.0
    slept = slept_value(tariff, server, from_s, to_s)
    if not was_on or is_down(down, server, from_s, to_s):
        return slept
    return min(slept, server.up_w * over(tariff, server.zone, from_s, to_s))
