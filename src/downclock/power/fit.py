"""Fit: from measurements to profiles, with the errors of every application.

Clocks are fitted with the GPU model (`downclock.power.curve_fit`) where it is good enough, else
their measured table is kept; power limits are always kept as measured levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from downclock.errors import InvalidInput
from downclock.power.curve_fit import Curve, Weighting, fit_curve, held_out
from downclock.power.library import Basis, Library
from downclock.power.measurements import Measurements
from downclock.power.points import (
    CORE,
    LAWS,
    MEI_LAW,
    MEMORY,
    ClockTable,
    PowerLimits,
    VoltageLaw,
)
from downclock.power.profiles import GpuProfiles, MeasuredProfiles, Profiles
from downclock.power.runs import HOLDS_FOR, Runs, runs_of
from downclock.quantities import percent
from downclock.units import TOLERANCE, Floats

Model: TypeAlias = Literal["auto", "gpu", "table"]

FAR = 20.0
"""A default clock so many times below or above all measured ones is taken for a mistake."""

TABLE_ABOVE = 0.10
"""Relative error above which a curve misses a point."""

MISSES = 0.10
"""Part of its points that a curve may miss; with more, ``auto`` keeps the measured table."""

LEAST_CLOCKS = 3
"""Core clocks that a range must have for the model to be fitted in it alone."""

NOTES = {
    "gpu": "",
    "gpu-core-only": "memory clock fixed: its share of time and power is part of the constants",
    "gpu-memory-only": "core clock fixed: its share of time and power is part of the constants",
}
"""What a user should know of a model."""


@dataclass(frozen=True, slots=True)
class FitReport:
    """How well one application was fitted.

    Attributes:
        application: its name.
        model: ``gpu``, ``gpu-core-only`` (memory clock fixed), ``gpu-memory-only`` (core clock
            fixed) or ``table``.
        points: number of distinct settings it was fitted to.
        time_mape, power_mape: mean relative error over the points (0.01 is 1 %); 0 of a table,
            NaN where there are only as many points as parameters: nothing is left to judge by.
        time_worst, power_worst: relative error at the worst point, likewise.
        time_held_out, power_held_out: mean relative error at clocks left out of the fit, each in
            its turn; NaN where the others are too few, and of a table.
        note: what a user should know, or empty.
    """

    application: str
    model: str
    points: int
    time_mape: float = 0.0
    time_worst: float = 0.0
    power_mape: float = 0.0
    power_worst: float = 0.0
    time_held_out: float = np.nan
    power_held_out: float = np.nan
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A fitted library, how good it is, and the settings at which it holds.

    Ratios in the library refer to the defaults of ``clocks``, voltages to its law. ``notes`` say
    what was chosen for the whole kind: the law, the range of clocks.
    """

    library: Library
    reports: tuple[FitReport, ...]
    clocks: ClockTable | PowerLimits
    notes: tuple[str, ...] = ()


def fit(
    measurements: Measurements,
    *,
    kind: str,
    default_core_mhz: float | None = None,
    default_memory_mhz: float | None = None,
    default_power_limit_w: float | None = None,
    law: VoltageLaw | Literal["auto"] = MEI_LAW,
    model: Model = "auto",
    weighting: Weighting = "even",
    table_above: float = TABLE_ABOVE,
    clocks_mhz: tuple[float, float] | None = None,
) -> Fit:
    """Fit a profile to every application measured on one kind of processor.

    Args:
        measurements: the runs; of repeated runs at one setting the median counts.
        kind: name of the processor kind.
        default_core_mhz: the clock that a ratio of 1 stands for; needed where clocks were set.
        default_memory_mhz: the same for memory; may be left out where it never varies.
        default_power_limit_w: the same for power limits; the greatest by default.
        law: the voltage at a core clock, relative to that at the default clock; ``auto``: the one
            with the least error at clocks that were left out.
        model: ``gpu`` fits the model whatever its error; ``table`` keeps the measured points;
            ``auto`` fits the model, and keeps the table where its error is large at more than
            one clock in ten.
        weighting: ``even`` minimises squared errors, ``relative`` squared relative errors.
        table_above: what ``auto`` calls large, as a fraction.
        clocks_mhz: fit core clocks from ... to ... only. By default all of them, or those from
            which up the model can hold (see `Runs.least_core`).

    Raises:
        InvalidInput: no clock varies, or there are fewer points than parameters.
    """
    if not len(measurements):
        raise InvalidInput("there is no measurement to fit")
    if not np.all(np.isnan(measurements.power_limit_w)):
        return _levels(measurements, kind, default_power_limit_w, model)
    if default_core_mhz is None:
        raise InvalidInput("is needed", item="fit", field="default_core_mhz")
    if clocks_mhz is not None:
        measurements = _between(measurements, *clocks_mhz)
    first = MEI_LAW if law == "auto" else law
    clocks = _clocks(measurements, default_core_mhz, default_memory_mhz, first)
    measured = tuple(runs_of(measurements, clocks))
    used: tuple[Runs, ...] = measured
    notes: tuple[str, ...] = ()
    if clocks_mhz is None and model != "table":
        used, clocks, notes = _where_it_holds(measured, clocks)
    if law == "auto" and model != "table":
        clocks, said = _best_law(used, clocks, weighting)
        notes += said
    used = tuple(run.at(clocks) for run in used)
    fitted = [
        _one(run, whole, model, weighting, table_above)
        for run, whole in zip(used, measured, strict=True)
    ]
    curves, reports = [curve for curve, _ in fitted], tuple(report for _, report in fitted)
    basis = _basis(measurements, clocks)
    return Fit(_library(kind, measured, curves, basis), reports, clocks, notes)


def _one(
    runs: Runs, measured: Runs, model: Model, weighting: Weighting, table_above: float
) -> tuple[Curve | None, FitReport]:
    """Return the fitted curve (None where the table is kept) and the report."""
    if model == "table":
        return None, _table_report(measured, "")
    if len(runs.points) < LEAST_CLOCKS <= len(measured.points):
        return None, _table_report(measured, "measured table kept: too few clocks in the range")
    curve = fit_curve(runs, weighting)
    if model == "auto" and curve.far_off(table_above) > MISSES:
        why = (
            f"measured table kept: the model {curve.model} is off by more than"
            f" {100 * table_above:g} % at more than one clock in ten"
        )
        return None, _table_report(measured, why)
    return curve, _curve_report(runs, curve, weighting)


def _curve_report(runs: Runs, curve: Curve, weighting: Weighting) -> FitReport:
    note = "as many clocks as parameters: interpolated, so the error is unknown"
    said = _noted(runs, NOTES[curve.model], note if curve.exact else "")
    errors = *curve.errors, *held_out(runs, weighting)
    return FitReport(runs.name, curve.model, len(runs.points), *errors, said)


def _table_report(runs: Runs, why: str) -> FitReport:
    return FitReport(runs.name, "table", len(runs.points), note=_noted(runs, why))


def _noted(runs: Runs, *notes: str) -> str:
    said = [f"median of repeated runs at {runs.repeated} clocks"] if runs.repeated else []
    return "; ".join([note for note in notes if note] + said)


def _levels(measurements: Measurements, kind: str, default_w: float | None, model: Model) -> Fit:
    """Keep runs at power limits as measured levels."""
    if model == "gpu":
        rule = "is for clocks: what a power limit does is kept as measured levels"
        raise InvalidInput(rule, item="fit", field="model", value=model)
    if np.any(np.isnan(measurements.power_limit_w)):
        rule = "cannot be fitted together: some rows have a power limit, others clocks"
        raise InvalidInput(rule, item="measurements", source=", ".join(measurements.sources))
    limits = np.unique(measurements.power_limit_w)
    default_w = float(limits[-1]) if default_w is None else default_w
    _refuse_other_unit("default_power_limit_w", default_w, limits, "limits", "W")
    levels = PowerLimits(limits, default_w)
    runs = tuple(runs_of(measurements, levels))
    basis = Basis(default_power_limit_w=default_w, power_limit_w=tuple(limits.tolist()))
    reports = tuple(_table_report(run, "power limits: kept as measured levels") for run in runs)
    return Fit(_library(kind, runs, [None] * len(runs), basis), reports, levels)


def _between(measurements: Measurements, low_mhz: float, high_mhz: float) -> Measurements:
    inside = (measurements.core_mhz >= low_mhz) & (measurements.core_mhz <= high_mhz)
    if not inside.any():
        core = measurements.core_mhz
        rule = f"holds none of the measured clocks, {core.min():g} to {core.max():g} MHz"
        raise InvalidInput(rule, item="fit", field="clocks", value=f"{low_mhz:g}-{high_mhz:g}")
    return measurements.take(inside)


def _where_it_holds(
    runs: tuple[Runs, ...], clocks: ClockTable
) -> tuple[tuple[Runs, ...], ClockTable, tuple[str, ...]]:
    """Leave out the low core clocks at which the model cannot hold for most applications."""
    cores = np.sort([run.least_core for run in runs])
    least = cores[int(np.ceil(HOLDS_FOR * cores.size)) - 1] - TOLERANCE
    inside = clocks.points[:, CORE] >= least
    if inside.all() or np.unique(clocks.core_mhz[inside]).size < LEAST_CLOCKS:
        return runs, clocks, ()
    columns = {name: getattr(clocks, name)[inside] for name in ("core_mhz", "memory_mhz")}
    kept = replace(clocks, **columns)
    low, high = kept.core_mhz.min(), kept.core_mhz.max()
    note = (
        f"fitted over {low:g} to {high:g} MHz: below, time rises faster than 1 / clock, which the"
        f" model cannot follow (--clocks {clocks.core_mhz.min():g}- fits all)"
    )
    return tuple(run.take(run.points[:, CORE] >= least) for run in runs), kept, (note,)


def _best_law(
    runs: tuple[Runs, ...], clocks: ClockTable, weighting: Weighting
) -> tuple[ClockTable, tuple[str, ...]]:
    """Choose the law whose power is nearest to the measured one at clocks left out."""
    tables = {name: replace(clocks, law=law) for name, law in LAWS.items()}
    errors = {
        name: np.array([held_out(run.at(table), weighting)[1] for run in runs])
        for name, table in tables.items()
    }
    told = ~np.isnan(errors["mei"])
    if not told.any():
        return tables["mei"], ("voltage law mei: too few clocks to tell it from others",)
    error = {name: float(each[told].mean()) for name, each in errors.items()}
    best = min(error, key=lambda name: error[name])
    others = ", ".join(f"{name} {percent(error[name])}" for name in error if name != best)
    note = f"voltage law {best}: held-out power error {percent(error[best])} ({others})"
    return tables[best], (note,)


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
    known = np.where(np.isnan(memory), memory_mhz, memory)
    core, memory = np.unique(np.column_stack([measurements.core_mhz, known]), axis=0).T
    _refuse_other_unit("default_core_mhz", core_mhz, core)
    _refuse_other_unit("default_memory_mhz", memory_mhz, memory)
    return ClockTable(core, memory, core_mhz, memory_mhz, law)


def _refuse_other_unit(
    field: str, default: float, measured: Floats, what: str = "clocks", unit: str = "MHz"
) -> None:
    """Refuse a default far from everything measured: it is probably in another unit."""
    low, high = float(measured.min()), float(measured.max())
    if 0.0 < default < low / FAR or default > high * FAR:
        rule = f"is far from the measured {what}, {low:g} to {high:g} {unit}"
        raise InvalidInput(rule, item="fit", field=field, value=default)


def _basis(measurements: Measurements, clocks: ClockTable) -> Basis:
    """Return what the profiles refer to; a memory clock that nobody recorded is not known."""
    known = not np.all(np.isnan(measurements.memory_mhz))
    return Basis(
        clocks.law,
        float(clocks.default_core_mhz),
        float(clocks.default_memory_mhz) if known else None,
        core_mhz=tuple(np.unique(clocks.core_mhz).tolist()),
        memory_mhz=tuple(np.unique(clocks.memory_mhz).tolist()) if known else (),
    )


def _library(
    kind: str, runs: tuple[Runs, ...], curves: Sequence[Curve | None], basis: Basis
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
    return Library(names, (kind,), tuple(groups), group[:, None], row[:, None], {kind: basis})


def _tables(runs: list[Runs]) -> MeasuredProfiles:
    points = np.concatenate([run.points for run in runs])
    return MeasuredProfiles(
        np.concatenate([[0], np.cumsum([len(run.points) for run in runs])]),
        points[:, CORE],
        points[:, MEMORY],
        np.concatenate([run.time_s for run in runs]),
        np.concatenate([run.power_w for run in runs]),
    )
