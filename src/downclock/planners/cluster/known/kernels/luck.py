"""Draws that are the same with and without a compiler (Park and Miller's generator)."""

from __future__ import annotations

from downclock.kernels.compiling import inner
from downclock.planners.cluster.known.kernels.model import Records


@inner
def draw(tally: Records) -> float:
    """Return a number in (0, 1)."""
    tally[0].luck = tally[0].luck * 48271 % 2147483647
    return tally[0].luck / 2147483647.0


@inner
def draw_below(tally: Records, count: int) -> int:
    """Return one of 0, 1, ... count - 1."""
    return min(int(draw(tally) * count), count - 1)
