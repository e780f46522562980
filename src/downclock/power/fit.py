"""Fit: from measurements to profiles, with the errors of every application.

The model is that of `GpuProfiles` (mei2021 Eq. 1-2). Written as

    time  = t0 + a / core + b / memory          (a = D delta, b = D (1 - delta))
    power = p0 + gamma memory + c volt² core    (volt: the least stable one at that core clock)

both are linear in parameters that may not be negative, so non-negative least squares gives
the best ones at once. Where a clock never varies, its terms cannot be told from the constant
and are merged into it: the reduced model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from downclock.errors import InvalidInput
from downclock.power.library import Basis, Library
from downclock.power.measurements import Measurements
from downclock.power.points import CORE, MEI_LAW, MEMORY, VOLT, ClockTable, VoltageLaw
from downclock.power.profiles import GpuProfiles, MeasuredProfiles, Profiles
from downclock.units import Floats, Ints

Model: TypeAlias = Literal["auto", "gpu", "table"]
Weighting: TypeAlias = Literal["even", "relative"]

FAR = 20.0
"""A default clock so many times below or above all measured ones is taken for a mistake."""

TABLE_ABOVE = 0.10
"""Relative error at the worst point above which ``auto`` keeps the measured table instead."""


@dataclass(frozen=True, slots=True)
class FitReport:
    """How well one application was fitted.

    Attributes:
        application: its name.
        model: ``gpu``, ``gpu-core-only`` (memory clock fixed), ``gpu-memory-only`` (core clock
            fixed) or ``table``.
        points: number of distinct clocks measured.
        time_mape, power_mape: mean relative error over the points (0.01 is 1 %); 0 of a table,
            NaN where there are only as many points as parameters: nothing is left to judge by.
        time_worst, power_worst: relative error at the worst point, likewise.
        note: what a user should know, or empty.
    """

    application: str
    model: str
    points: int
    time_mape: float
    time_worst: float
    power_mape: float
    power_worst: float
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A fitted library, how good it is, and the clocks that were measured.

    Ratios in the library refer to the default clocks of ``clocks``, voltages to its law.
    """

    library: Library
    reports: tuple[FitReport, ...]
    clocks: ClockTable


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """One application's measurements, one row per distinct clock pair."""

    name: str
    source: str
    points: Floats
    time_s: Floats
    power_w: Floats
    repeated: int

    def refusal(self, rule: str) -> InvalidInput:
        return InvalidInput(rule, item=f"application '{self.name}'", source=self.source)


@dataclass(frozen=True, slots=True, eq=False)
class _Curve:
    """Parameters (p0, gamma, c, D, delta, t0), the report on them, as many as points or not."""

    parameters: Floats
    report: FitReport
    exact: bool

    @property
    def worst(self) -> float:
        return max(self.report.time_worst, self.report.power_worst)


def fit(
    measurements: Measurements,
    *,
    kind: str,
    default_core_mhz: float,
    default_memory_mhz: float | None = None,
    law: VoltageLaw = MEI_LAW,
    model: Model = "auto",
    weighting: Weighting = "even",
    table_above: float = TABLE_ABOVE,
) -> Fit:
    """Fit a profile to every application measured on one kind of processor.

    Args:
        measurements: the runs; repeated runs at one clock pair are averaged.
        kind: name of the processor kind.
        default_core_mhz: the clock that a ratio of 1 stands for.
        default_memory_mhz: the same for memory; may be left out where it never varies.
        law: the voltage at a core clock, relative to that at the default clock.
        model: ``gpu`` fits the model whatever its error; ``table`` keeps the measured points;
            ``auto`` fits the model, and keeps the table where its worst error is large.
        weighting: ``even`` minimises squared errors, ``relative`` squared relative errors.
        table_above: what ``auto`` calls large, as a fraction.

    Raises:
        InvalidInput: no clock varies, or there are fewer points than parameters.
    """
    if not len(measurements):
        raise InvalidInput("there is no measurement to fit")
    clocks = _clocks(measurements, default_core_mhz, default_memory_mhz, law)
    runs = tuple(_runs(measurements, clocks))
    curves: list[_Curve | None] = []
    reports: list[FitReport] = []
    for run in runs:
        curve, report = _one(run, model, weighting, table_above)
        curves.append(curve)
        reports.append(report)
    basis = {kind: _basis(measurements, clocks)}
    return Fit(_library(kind, runs, curves, basis), tuple(reports), clocks)


def _one(
    runs: _Runs, model: Model, weighting: Weighting, table_above: float
) -> tuple[_Curve | None, FitReport]:
    """Return the fitted curve (None where the table is kept) and the report."""
    if model == "table":
        return None, _table_report(runs, "")
    curve = _curve(runs, weighting)
    if model == "auto" and curve.worst > table_above:
        why = (
            f"measured table kept: the model {curve.report.model} is off by more than"
            f" {100 * table_above:g} % at some clock"
        )
        return None, _table_report(runs, why)
    return curve, _interpolated(curve.report) if curve.exact else curve.report


def _interpolated(report: FitReport) -> FitReport:
    note = "as many clocks as parameters: interpolated, so the error is unknown"
    told = f"{report.note}; {note}" if report.note else note
    nan = float("nan")
    return FitReport(report.application, report.model, report.points, nan, nan, nan, nan, told)


def _clocks(
    measurements: Measurements, core_mhz: float, memory_mhz: float | None, law: VoltageLaw
) -> ClockTable:
    """Return every clock pair that was measured; a memory clock nobody recorded counts as 1."""
    memory = measurements.memory_mhz
    seen = np.unique(memory[~np.isnan(memory)])
    if memory_mhz is None and seen.size > 1:
        raise InvalidInput(
            "is needed: the memory clock varies", item="fit", field="default_memory_mhz"
        )
    if memory_mhz is None:
        memory_mhz = float(seen[0]) if seen.size else 1.0
    pairs = np.column_stack([measurements.core_mhz, _known(memory, memory_mhz)])
    core, memory = np.unique(pairs, axis=0).T
    _refuse_other_unit("default_core_mhz", core_mhz, core)
    _refuse_other_unit("default_memory_mhz", memory_mhz, memory)
    return ClockTable(core, memory, core_mhz, memory_mhz, law)


def _refuse_other_unit(field: str, default_mhz: float, clocks_mhz: Floats) -> None:
    """Refuse a default clock far from every measured one: it is probably in another unit."""
    low, high = float(clocks_mhz.min()), float(clocks_mhz.max())
    if 0.0 < default_mhz < low / FAR or default_mhz > high * FAR:
        rule = f"is far from the measured clocks, {low:g} to {high:g} MHz"
        raise InvalidInput(rule, item="fit", field=field, value=default_mhz)


def _basis(measurements: Measurements, clocks: ClockTable) -> Basis:
    """Return what the profiles refer to; a memory clock that nobody recorded is not known."""
    known = not np.all(np.isnan(measurements.memory_mhz))
    memory_mhz = float(clocks.default_memory_mhz) if known else None
    return Basis(clocks.law, float(clocks.default_core_mhz), memory_mhz)


def _known(memory_mhz: Floats, default: float) -> Floats:
    return np.where(np.isnan(memory_mhz), default, memory_mhz)


def _runs(measurements: Measurements, clocks: ClockTable) -> Iterator[_Runs]:
    """Yield the applications in order of appearance, repeated clock pairs averaged."""
    core = measurements.core_mhz
    memory = _known(measurements.memory_mhz, clocks.default_memory_mhz)
    order: dict[str, list[int]] = {}
    for row, name in enumerate(measurements.application):
        order.setdefault(name, []).append(row)
    point_of = {
        pair: k for k, pair in enumerate(zip(clocks.core_mhz, clocks.memory_mhz, strict=True))
    }
    for name, listed in order.items():
        rows = np.array(listed)
        pair = np.array([point_of[core[row], memory[row]] for row in listed])
        distinct, place, count = np.unique(pair, return_inverse=True, return_counts=True)
        yield _Runs(
            name,
            measurements.source_of(rows),
            clocks.points[distinct],
            np.bincount(place, measurements.time_s[rows]) / count,
            np.bincount(place, measurements.power_w[rows]) / count,
            int(np.sum(count > 1)),
        )


def _curve(runs: _Runs, weighting: Weighting) -> _Curve:
    """Fit the model, or the reduced one where a clock is fixed."""
    core, memory, volt = (runs.points[:, k] for k in (CORE, MEMORY, VOLT))
    varies = np.array([np.unique(core).size > 1, np.unique(memory).size > 1])
    if not varies.any():
        raise runs.refusal("no clock varies, so nothing can be fitted")
    wanted = 1 + int(varies.sum())
    if len(runs.points) < wanted:
        rule = f"has {len(runs.points)} distinct clocks, the model has {wanted} parameters"
        raise runs.refusal(rule)
    ones = np.ones_like(core)
    time_terms = np.column_stack([ones, 1.0 / core, 1.0 / memory])
    power_terms = np.column_stack([ones, volt**2 * core, memory])
    used = np.flatnonzero(np.concatenate([[True], varies]))
    t0, a, b = _non_negative(runs, time_terms, used, runs.time_s, weighting)
    p0, c, gamma = _non_negative(runs, power_terms, used, runs.power_w, weighting)
    d = a + b
    parameters = np.array([p0, gamma, c, d, a / d if d > 0.0 else 1.0, t0])
    time, power = GpuProfiles(*parameters).at(np.zeros(len(core), dtype=np.int64), runs.points)
    report = _curve_report(runs, varies, time, power)
    return _Curve(parameters, report, len(runs.points) == wanted)


def _non_negative(
    runs: _Runs, terms: Floats, used: Ints, measured: Floats, weighting: Weighting
) -> Floats:
    """Return the coefficients (one per term, 0 where unused) of the best non-negative sum."""
    from scipy.optimize import nnls

    if np.linalg.matrix_rank(terms[:, used], tol=1e-9 * np.abs(terms).max()) < used.size:
        raise runs.refusal("its clocks vary together: their effects cannot be told apart")
    # Divided by the measurement's size because nnls stops at an absolute tolerance.
    size = measured if weighting == "relative" else np.full(measured.size, measured.mean())
    coefficients = np.zeros(terms.shape[1])
    coefficients[used] = nnls(terms[:, used] / size[:, None], measured / size)[0]
    return coefficients


def _curve_report(runs: _Runs, varies: Floats, time: Floats, power: Floats) -> FitReport:
    notes = {
        (True, True): ("gpu", ""),
        (True, False): (
            "gpu-core-only",
            "memory clock fixed: its share of time and power is part of the constants",
        ),
        (False, True): (
            "gpu-memory-only",
            "core clock fixed: its share of time and power is part of the constants",
        ),
    }
    model, note = notes[bool(varies[0]), bool(varies[1])]
    return _report(runs, model, note, time, power)


def _table_report(runs: _Runs, why: str) -> FitReport:
    return _report(runs, "table", why, runs.time_s, runs.power_w)


def _report(runs: _Runs, model: str, note: str, time: Floats, power: Floats) -> FitReport:
    if runs.repeated:
        note += f"{'; ' if note else ''}repeated runs averaged at {runs.repeated} clocks"
    time_error = np.abs(time / runs.time_s - 1.0)
    power_error = np.abs(power / runs.power_w - 1.0)
    return FitReport(
        runs.name,
        model,
        len(runs.points),
        float(time_error.mean()),
        float(time_error.max()),
        float(power_error.mean()),
        float(power_error.max()),
        note,
    )


def _library(
    kind: str,
    runs: tuple[_Runs, ...],
    curves: list[_Curve | None],
    basis: Mapping[str, Basis],
) -> Library:
    """Return the applications, fitted ones in one group and tables in another."""
    fitted = [curve.parameters for curve in curves if curve is not None]
    kept = [run for run, curve in zip(runs, curves, strict=True) if curve is None]
    groups: list[Profiles] = []
    if fitted:
        groups.append(GpuProfiles(*np.array(fitted).T))
    if kept:
        groups.append(_tables(kept))
    is_table = np.array([curve is None for curve in curves])
    group = np.where(is_table, len(groups) - 1, 0)
    row = np.where(is_table, np.cumsum(is_table), np.cumsum(~is_table)) - 1
    names = np.array([run.name for run in runs], dtype=object)
    return Library(names, (kind,), tuple(groups), group[:, None], row[:, None], basis)


def _tables(runs: list[_Runs]) -> MeasuredProfiles:
    points = np.concatenate([run.points for run in runs])
    return MeasuredProfiles(
        np.concatenate([[0], np.cumsum([len(run.points) for run in runs])]),
        points[:, CORE],
        points[:, MEMORY],
        np.concatenate([run.time_s for run in runs]),
        np.concatenate([run.power_w for run in runs]),
    )
