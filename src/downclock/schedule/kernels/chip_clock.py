"""When a chip's processors run, and at which highest clock: one sweep over starts and ends."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled
from downclock.units import Floats, Ints


@compiled
def busy_pieces(
    time_s: Floats, change: Ints, chip: Ints, processor: Ints, core: Floats, first: Ints
) -> tuple[Ints, Floats, Floats, Floats]:
    """Return the pieces (chip, start, end, highest core clock) in which any processor runs.

    Events (n,) are sorted by chip, time and change (-1 ends, +1 starts); chip ``c`` has the
    processors ``first[c]`` to ``first[c + 1] - 1``. Cost: events times processors of a chip.
    """
    n = time_s.size
    piece_chip = np.empty(n, dtype=np.int64)
    start, end, clock = np.empty(n), np.empty(n), np.empty(n)
    running = np.zeros(first[-1], dtype=np.int64)
    own = np.zeros(first[-1])
    count, since, now = 0, 0.0, -1.0
    for i in range(n):
        p, c = processor[i], chip[i]
        running[p] += change[i]
        if change[i] > 0:
            own[p] = core[i]
        highest = -1.0
        for q in range(first[c], first[c + 1]):
            if running[q] > 0 and own[q] > highest:
                highest = own[q]
        if highest != now:
            if now >= 0.0 and time_s[i] > since:
                piece_chip[count], clock[count] = c, now
                start[count], end[count] = since, time_s[i]
                count += 1
            since, now = time_s[i], highest
    return piece_chip[:count], start[:count], end[:count], clock[:count]
