"""What a watt costs over time: constant rates between steps.

A tariff is one array (1 + 2 zones, pieces): where each piece begins, then for each zone the value
of a joule in it and that of a watt from the first piece to it. What everything calls takes arrays
and records, not tuples of them: taking one out of a tuple counts a reference, which costs more
than most of these functions do.
"""

from __future__ import annotations

from downclock.kernels.compiling import inner
from downclock.units import Floats


@inner
def piece_of(tariff: Floats, time_s: float) -> int:
    """Return the piece that holds a time; the first and last reach beyond their ends."""
    low, high = 0, tariff.shape[1] - 1
    while low < high:
        middle = (low + high + 1) // 2
        if tariff[0, middle] <= time_s:
            low = middle
        else:
            high = middle - 1
    return low


@inner
def rate_at(tariff: Floats, zone: int, time_s: float) -> float:
    """Return what a joule costs at a time."""
    return tariff[1 + 2 * zone, piece_of(tariff, time_s)]


@inner
def spent(tariff: Floats, zone: int, time_s: float) -> float:
    """Return what a watt has cost from the first piece to a time."""
    piece = piece_of(tariff, time_s)
    since_s = time_s - tariff[0, piece]
    return tariff[2 + 2 * zone, piece] + since_s * tariff[1 + 2 * zone, piece]


@inner
def over(tariff: Floats, zone: int, start_s: float, end_s: float) -> float:
    """Return what a watt costs between two times."""
    if tariff.shape[1] == 1:
        return (end_s - start_s) * tariff[1 + 2 * zone, 0]
    return spent(tariff, zone, end_s) - spent(tariff, zone, start_s)
