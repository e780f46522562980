"""What the parallelism of a schedule can be, and what it costs (gerards section 5 and 6.1)."""

from __future__ import annotations

import numpy as np

from downclock.units import Floats


def approximation_ratio(cores: int, alpha: float = 3.0) -> float:
    """Theorem 2: weighted makespan / least one, where the makespan is the least.

    The worst total work is taken without asking whether M cores can do it, as in the paper.
    """
    g = cores ** (1.0 / alpha)
    if cores == 1:
        return 1.0
    length = (alpha - 1.0) * (g - 1.0) / (cores - g)
    return float((cores - 1.0) * length ** (1.0 - 1.0 / alpha) / (alpha * (g - 1.0)))


def best_to_single(length: Floats | float, cores: int, alpha: float = 3.0) -> Floats:
    """Energy of the best parallelism over that of one clock, for makespan / work (Fig. 6).

    ``length`` lies in [1 / cores, 1]; no static power.
    """
    s = np.asarray(length, dtype=np.float64)
    g = cores ** (1.0 / alpha)
    weighted = ((g - 1.0) + s * (cores - g)) / (cores - 1.0)
    return np.asarray(weighted**alpha / s ** (alpha - 1.0))


def largest_saving(cores: int, alpha: float = 3.0) -> float:
    """Greatest fraction saved by clocks that follow the active cores (the peak of Fig. 6).

    The ratio is least where its derivative is zero: ``s (M - g) = (alpha - 1) (g - 1)``.
    """
    g = cores ** (1.0 / alpha)
    s = np.clip((alpha - 1.0) * (g - 1.0) / (cores - g), 1.0 / cores, 1.0)
    return float(1.0 - best_to_single(s, cores, alpha))


def two_core_weighted_makespan(work: float, length: float, alpha: float = 3.0) -> float:
    """S̄ on two cores: it grows with the makespan alone (Lemma 6).

    The paper prints the two coefficients exchanged.
    """
    g = 2.0 ** (1.0 / alpha)
    return float(work * (g - 1.0) + length * (2.0 - g))
