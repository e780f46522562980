"""A mean and how well it is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its confidence interval, Student's.

    Attributes:
        value: NaN of no values.
        half: half the interval's width; NaN of fewer than two values.
        count: of how many.
    """

    value: float
    half: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Mean:
        """The mean of values that were drawn independently."""
        from scipy.special import stdtrit

        drawn = np.fromiter(values, dtype=np.float64)
        if drawn.size < 2:
            return cls(float(drawn[0]) if drawn.size else np.nan, np.nan, drawn.size)
        error = float(drawn.std(ddof=1)) / np.sqrt(drawn.size)
        quantile = float(stdtrit(drawn.size - 1, 0.5 + CONFIDENCE / 2.0))
        return cls(float(drawn.mean()), float(quantile * error), drawn.size)
