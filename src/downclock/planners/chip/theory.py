"""What the parallelism of a schedule can be, and what it costs (gerards section 5 and 6.1)."""

from __future__ import annotations

import numpy as np

from downclock.errors import InvalidInput
from downclock.units import Floats


def best_parallelism(work: float, length: float, cores: int) -> Floats:
    """ω (M + 1,) of least weighted makespan for a total work and makespan (Lemma 3).

    As much as possible on all cores, the rest alone.
    """
    _check(work, length, cores)
    omega = np.zeros(cores + 1)
    if cores == 1:
        omega[1] = work
        return omega
    omega[1] = (cores * length - work) / (cores - 1)
    omega[cores] += (work - length) / (cores - 1)
    return omega


def worst_parallelism(work: float, length: float, cores: int) -> Floats:
    """ω (M + 1,) of greatest weighted makespan: evenly on k and k + 1 cores (Lemma 4)."""
    _check(work, length, cores)
    k = max(int(np.ceil(work / length - 1.0 - 1e-12)), 0)
    omega = np.zeros(max(cores, k + 1) + 1)
    omega[k] += length * (k + 1) - work
    omega[k + 1] += work - k * length
    omega[0] = 0.0
    return omega[: cores + 1]


def independent_tasks(omega: Floats) -> Floats:
    """Work (M,) of independent tasks whose best schedule has this parallelism (Lemma 5).

    Task n runs alone on core n and has ``Σ ω_m, m >= n`` cycles; entry 0 of ω is ignored.
    """
    return np.cumsum(omega[:0:-1])[::-1].copy()


def approximation_ratio(cores: int, alpha: float = 3.0, beta: float = 1.0) -> float:
    """Theorem 2: weighted makespan / least one, where the makespan is beta times the least.

    The worst total work is taken without asking whether M cores can do it, as in the paper.
    """
    g = cores ** (1.0 / alpha)
    if cores == 1:
        return float(beta ** (1.0 - 1.0 / alpha))
    length = (alpha - 1.0) * (g - 1.0) / (cores - g)
    ratio = (cores - 1.0) * length ** (1.0 - 1.0 / alpha) / (alpha * (g - 1.0))
    return float(ratio * beta ** (1.0 - 1.0 / alpha))


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


def _check(work: float, length: float, cores: int) -> None:
    if not (length > 0.0 and length * (1.0 - 1e-12) <= work <= cores * length * (1.0 + 1e-12)):
        raise InvalidInput(
            f"must lie between the makespan {length} and {cores} times it",
            field="work",
            value=work,
        )
