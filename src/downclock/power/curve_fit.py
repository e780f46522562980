"""One application's curve: the GPU model fitted to its runs, and how well it foretells others.

The model is that of `GpuProfiles` (mei2021 Eq. 1-2). Written as

    time  = t0 + a / core + b / memory          (a = D delta, b = D (1 - delta))
    power = p0 + gamma memory + c volt² core    (volt: the least stable one at that core clock)

both are linear in parameters that may not be negative, so non-negative least squares gives
the best ones at once. Where a clock never varies, its terms cannot be told from the constant
and are merged into it: the reduced model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from downclock.power.points import CORE, MEMORY, VOLT
from downclock.power.profiles import GpuProfiles
from downclock.power.runs import Runs
from downclock.units import Bools, Floats, Ints

Weighting: TypeAlias = Literal["even", "relative"]

FOLDS = 10
"""Into at most so many groups of neighbouring clocks runs are parted to hold one out."""

MODELS = {(True, True): "gpu", (True, False): "gpu-core-only", (False, True): "gpu-memory-only"}
"""Name of the model by which clocks vary: (core, memory)."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Parameters (p0, gamma, c, D, delta, t0), which model they are of, and relative errors.

    Attributes:
        time_error, power_error: at every measured setting.
        exact: there are as many settings as parameters.
    """

    parameters: Floats
    model: str
    time_error: Floats
    power_error: Floats
    exact: bool

    @property
    def errors(self) -> tuple[float, float, float, float]:
        """Mean and worst of time, mean and worst of power; NaN where nothing is left to judge."""
        if self.exact:
            return (np.nan,) * 4
        time, power = self.time_error, self.power_error
        return float(time.mean()), float(time.max()), float(power.mean()), float(power.max())

    def far_off(self, above: float) -> float:
        """Return the part of settings at which time or power is off by more than ``above``."""
        return float(max(np.mean(self.time_error > above), np.mean(self.power_error > above)))


def fit_curve(runs: Runs, weighting: Weighting) -> Curve:
    """Fit the model, or the reduced one where a clock is fixed."""
    varies = _varies(runs)
    if not varies.any():
        raise runs.refusal("no clock varies, so nothing can be fitted")
    wanted = 1 + int(varies.sum())
    if len(runs.points) < wanted:
        rule = f"has {len(runs.points)} distinct clocks, the model has {wanted} parameters"
        raise runs.refusal(rule)
    parameters = _parameters(runs, varies, weighting)
    if parameters is None:
        raise runs.refusal("its clocks vary together: their effects cannot be told apart")
    model = MODELS[bool(varies[0]), bool(varies[1])]
    return Curve(parameters, model, *_errors(parameters, runs), len(runs.points) == wanted)


def held_out(runs: Runs, weighting: Weighting) -> tuple[float, float]:
    """Return the mean relative errors of time and power at clocks that were left out.

    Each group of neighbouring core clocks (memory clocks, where the core's never varies) is left
    out once and foretold by a fit of the others. NaN where the others are too few.
    """
    varies = _varies(runs)
    clock = runs.points[:, CORE if varies[0] else MEMORY]
    levels = np.unique(clock)
    if levels.size == 1:
        return np.nan, np.nan
    group = (np.searchsorted(levels, clock) * min(FOLDS, levels.size)) // levels.size
    time_error, power_error = np.full(clock.size, np.nan), np.full(clock.size, np.nan)
    for fold in np.unique(group):
        out = group == fold
        parameters = _parameters(runs.take(~out), varies, weighting)
        if parameters is not None:
            time_error[out], power_error[out] = _errors(parameters, runs.take(out))
    return float(time_error.mean()), float(power_error.mean())


def _varies(runs: Runs) -> Bools:
    return np.array([np.unique(runs.points[:, k]).size > 1 for k in (CORE, MEMORY)])


def _errors(parameters: Floats, runs: Runs) -> tuple[Floats, Floats]:
    rows = np.zeros(len(runs.points), dtype=np.int64)
    time_s, power_w = GpuProfiles(*parameters).at(rows, runs.points)
    return np.abs(time_s / runs.time_s - 1.0), np.abs(power_w / runs.power_w - 1.0)


def _parameters(runs: Runs, varies: Bools, weighting: Weighting) -> Floats | None:
    """Return (p0, gamma, c, D, delta, t0); None where the runs do not determine them."""
    core, memory, volt = (runs.points[:, k] for k in (CORE, MEMORY, VOLT))
    ones = np.ones_like(core)
    used = np.flatnonzero(np.concatenate([[True], varies]))
    time_terms = np.column_stack([ones, 1.0 / core, 1.0 / memory])
    power_terms = np.column_stack([ones, volt**2 * core, memory])
    time = _non_negative(time_terms, used, runs.time_s, weighting)
    power = _non_negative(power_terms, used, runs.power_w, weighting)
    if time is None or power is None:
        return None
    (t0, a, b), (p0, c, gamma) = time, power
    d = a + b
    return np.array([p0, gamma, c, d, a / d if d > 0.0 else 1.0, t0])


def _non_negative(
    terms: Floats, used: Ints, measured: Floats, weighting: Weighting
) -> Floats | None:
    """Return the coefficients (one per term, 0 where unused) of the best non-negative sum."""
    from scipy.optimize import nnls

    enough = np.linalg.matrix_rank(terms[:, used], tol=1e-9 * np.abs(terms).max()) == used.size
    if not enough:
        return None
    # Divided by the measurement's size because nnls stops at an absolute tolerance.
    size = measured if weighting == "relative" else np.full(measured.size, measured.mean())
    coefficients = np.zeros(terms.shape[1])
    coefficients[used] = nnls(terms[:, used] / size[:, None], measured / size)[0]
    return coefficients
