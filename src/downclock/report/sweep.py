"""The page and the figure of a sweep: means and paired differences with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from downclock.quantities import count, duration, energy, percent
from downclock.report.figures import new_figure
from downclock.report.tables import Page, Table
from downclock.study.mean import CONFIDENCE, Mean
from downclock.study.sweep.run import DONE
from downclock.study.sweep.summary import Cell
from downclock.study.sweep.sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#2b7f86", "#d2603a", "#a189b4", "#d8ae58", "#34559f", "#7db3ac", "#8d949b")


def sweep_page(sweep: Sweep) -> Page:
    """A row for every combination, means over its seeds; below, all problems together."""
    cells = sweep.summary.cells
    tables = [_cells_table(sweep)]
    if sweep.summary.overall:
        tables.append(_overall_table(sweep))
    notes = [
        f"{spec}: {count(len(why), 'run')} {status}, the first: {why[0]}"
        for (status, spec), why in sweep.without_figures().items()
    ]
    left_out = sum(cell.other_tasks for cell in cells)
    if left_out:
        notes.append(f"{count(left_out, 'pair')} left out of differences: other tasks were run")
    records = [_record(cell, sweep) for cell in cells]
    overall = [
        {"spec": spec, **_difference(mean), "other_tasks": other}
        for spec, mean, other in sweep.summary.overall
    ]
    data = {
        "name": sweep.grid.name,
        "runs": len(sweep.rows),
        "baseline": sweep.grid.baseline,
        "metric": sweep.summary.metric,
        "confidence": CONFIDENCE,
        "cells": records,
        "overall": overall,
        "without_figures": [
            {"status": status, "spec": spec, "runs": len(why), "reason": why[0]}
            for (status, spec), why in sweep.without_figures().items()
        ],
    }
    return Page((_line(sweep),), tuple(tables), tuple(notes), data, records)


def _line(sweep: Sweep) -> str:
    done = sum(row["status"] == DONE for row in sweep.rows)
    work_s = sum(float(row["seconds"]) for row in sweep.rows)
    kept = f", {sweep.kept:,} kept from before" if sweep.kept else ""
    return (
        f"{sweep.grid.name}: {count(len(sweep.rows), 'run')}, {done:,} done{kept},"
        f" {duration(work_s)} of work; means and {100 * CONFIDENCE:g} % intervals over seeds"
    )


def _cells_table(sweep: Sweep) -> Table:
    shown = "energy" if sweep.summary.metric == "total_j" else "objective"
    rows = tuple(
        (
            _label(sweep, cell, None),
            f"{cell.value.count:,}",
            energy(cell.value.value) if shown == "energy" else f"{cell.value.value:.5g}",
            _part(cell.value.half / cell.value.value if cell.value.value else np.nan),
            *_difference_cells(cell.difference),
        )
        for cell in sweep.summary.cells
    )
    return Table(("policy", "runs", shown, "±", f"to {sweep.grid.baseline}", "±"), rows)


def _overall_table(sweep: Sweep) -> Table:
    head = ("policy", "pairs", f"to {sweep.grid.baseline}", "±")
    rows = tuple(
        (spec, f"{mean.count:,}", *_difference_cells(mean))
        for spec, mean, _ in sweep.summary.overall
    )
    return Table(head, rows, "All problems and parameters")


def _difference_cells(mean: Mean | None) -> tuple[str, str]:
    if mean is None or not mean.count:
        return "", ""
    sign = "+" if mean.value > 0.0 else ""
    return sign + percent(mean.value), _part(mean.half)


def _part(fraction: float) -> str:
    return percent(fraction) if np.isfinite(fraction) else ""


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _record(cell: Cell, sweep: Sweep) -> dict[str, Any]:
    metric = sweep.summary.metric
    return {
        "problem": cell.problem,
        "policy": cell.policy,
        "spec": cell.spec,
        **{name: cell.axes.get(name) for name in sweep.grid.axes},
        "runs": cell.value.count,
        metric: cell.value.value,
        f"{metric}_half": cell.value.half,
        **_difference(cell.difference),
        "other_tasks": cell.other_tasks,
    }


def _difference(mean: Mean | None) -> dict[str, Any]:
    values = (None,) * 3 if mean is None else (mean.value, mean.half, mean.count)
    return dict(zip(("difference", "difference_half", "pairs"), values, strict=True))


def sweep_figure(sweep: Sweep) -> Figure:
    """Values along the first axis of numbers; without one, differences to the baseline."""
    axis = next((name for name in sweep.grid.axes if _numeric(sweep, name)), None)
    return _differences(sweep) if axis is None else _along(sweep, axis)


def _numeric(sweep: Sweep, name: str) -> bool:
    values = [cell.axes[name] for cell in sweep.summary.cells if cell.axes.get(name) is not None]
    return len(set(values)) > 1 and all(isinstance(value, int | float) for value in values)


def _along(sweep: Sweep, axis: str) -> Figure:
    """Draw a line for every policy and combination of the other axes."""
    energy_unit = 1e6 if sweep.summary.metric == "total_j" else 1.0
    lines: dict[str, list[Cell]] = {}
    for cell in sweep.summary.cells:
        if cell.axes.get(axis) is not None:
            lines.setdefault(_label(sweep, cell, axis), []).append(cell)
    figure, axes = new_figure(height=4.4)
    for k, (label, cells) in enumerate(lines.items()):
        ordered = sorted(cells, key=lambda cell: float(cell.axes[axis]))
        at = [float(cell.axes[axis]) for cell in ordered]
        value = np.array([cell.value.value for cell in ordered]) / energy_unit
        half = np.nan_to_num([cell.value.half for cell in ordered]) / energy_unit
        axes.errorbar(
            at, value, half, marker="o", ms=3.0, capsize=2.0, lw=1.2,
            color=COLOURS[k % len(COLOURS)], label=label,
        )  # fmt: skip
    axes.set_xlabel(axis.replace("_", " "))
    axes.set_ylabel("energy (MJ)" if sweep.summary.metric == "total_j" else "objective")
    axes.set_title(sweep.grid.name)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    return figure


def _differences(sweep: Sweep) -> Figure:
    """Draw the difference of every policy to the baseline, with its interval."""
    cells = [cell for cell in sweep.summary.cells if cell.difference and cell.difference.count]
    figure, axes = new_figure(height=1.4 + 0.3 * max(1, len(cells)))
    value = [100.0 * cell.difference.value for cell in cells if cell.difference]
    half = [100.0 * cell.difference.half for cell in cells if cell.difference]
    at = np.arange(len(cells))
    axes.errorbar(value, at, xerr=np.nan_to_num(half), fmt="o", capsize=2.0, color=COLOURS[0])
    axes.axvline(0.0, color="#1e2328", lw=1.0, ls="--")
    axes.set_yticks(at, [_label(sweep, cell, None) for cell in cells])
    axes.invert_yaxis()
    axes.set_xlabel(f"difference to {sweep.grid.baseline} (%)")
    axes.set_title(sweep.grid.name)
    return figure


def _label(sweep: Sweep, cell: Cell, axis: str | None) -> str:
    """Name a cell by what tells it from others, without the axis it lies along."""
    several = len({each.problem for each in sweep.summary.cells}) > 1
    told = [n for n in sweep.grid.axes if n != axis and cell.axes.get(n) is not None]
    others = [f"{name} {_word(cell.axes[name])}" for name in told]
    return ", ".join([cell.policy, *([cell.problem] if several else []), *others])
