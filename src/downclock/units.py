"""Units and the one tolerance.

Names carry their unit: ``_s`` seconds, ``_j`` joules, ``_w`` watts, ``_mhz`` megahertz,
``_per_kwh``; no suffix means a ratio to the default clock. Times are seconds after the
problem's epoch.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Names: TypeAlias = NDArray[np.object_]
Array: TypeAlias = NDArray[Any]

TOLERANCE = 1e-9
"""Two numbers are equal when they differ by at most this times max(1, their size)."""

J_PER_KWH = 3.6e6


def slack(size: Floats | float) -> Floats:
    """Return the difference that is still nothing for numbers of this size."""
    return TOLERANCE * np.maximum(1.0, np.abs(size))


def as_column(values: object, dtype: type) -> NDArray[Any]:
    """Return values as a contiguous column that kernels of one signature take.

    What files are read into may be locked; a locked array would compile every kernel anew.
    """
    column: NDArray[Any] = np.ascontiguousarray(values, dtype=dtype)
    return column if column.flags.writeable else column.copy()


def ranges(first: Ints, count: Ints) -> Ints:
    """Return the numbers from each ``first`` on, so many of each, one range after the other."""
    return np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())


def changes(values: Ints) -> Bools:
    """Mark the rows (n,) that differ from the one before; the first does."""
    changed = np.ones(values.size, dtype=bool)
    changed[1:] = values[1:] != values[:-1]
    return changed
