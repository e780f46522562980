"""The page of a converted trace: how much of it, from which columns, assuming what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from downclock.quantities import count, percent
from downclock.report.tables import Page, Table
from downclock.workloads.traces.ledger import MALFORMED, OUTSIDE, Ledger
from downclock.workloads.traces.packing import NAMED, NO_PLACE, PACKED, TAKEN, UNKNOWN
from downclock.workloads.traces.to_problem import Converted


def converted_page(found: Converted) -> Page:
    """What became of the trace's rows, in GPU-hours, and everything that was assumed."""
    trace, ledger, problem = found.trace, found.trace.ledger, found.problem
    records, ran = row_records(ledger), place_records(found)
    tables = (
        Table(("field", "column"), trace.used, "Columns used", text=(0, 1)),
        Table(("rows", "number", ledger.hours), row_cells(ledger), "Rows"),
        Table(("jobs", "number", ledger.hours), _cells(ran), "As it ran"),
    )
    data = {
        "trace": str(ledger.source),
        "format": trace.format.name,
        "problem": problem.name,
        "jobs": len(problem.tasks),
        "servers": problem.platform.server_count,
        "processors": problem.platform.processor_count,
        "covered": ledger.covered,
        "columns": dict(trace.used),
        "rows": records,
        "as_it_ran": ran,
        "malformed": ledger.complaints,
        "assumptions": list(problem.assumptions),
    }
    notes = (*malformed_notes(ledger), *(f"assumed: {line}" for line in problem.assumptions))
    return Page((coverage_line(found),), tables, notes, data, records)


def coverage_line(found: Converted) -> str:
    """Say how much of the trace the problem holds."""
    ledger, problem = found.trace.ledger, found.problem
    left = sum(rows for why, (rows, _) in ledger.dropped.items() if why != OUTSIDE)
    covered = ledger.covered if ledger.covered == 1.0 else min(ledger.covered, 0.9994)
    where = " of the window" if OUTSIDE in ledger.dropped else ""
    return (
        f"{Path(ledger.source).name} ({found.trace.format.name}): {ledger.kept[0]:,} of"
        f" {ledger.kept[0] + left:,} rows{where}, {percent(covered)} of their"
        f" {ledger.hours}, became {count(len(problem.tasks), 'job')} on"
        f" {count(problem.platform.server_count, 'server')}"
        f" ({count(problem.platform.processor_count, 'processor')})"
    )


def malformed_notes(ledger: Ledger) -> tuple[str, ...]:
    """Name the malformed rows; count those that are not named, and those of unknown hours."""
    rows = ledger.dropped.get(MALFORMED, (0, 0.0))[0]
    more = rows - len(ledger.complaints)
    named = tuple(f"malformed: {complaint}" for complaint in ledger.complaints)
    others = [f"malformed: and {more:,} more"] if more > 0 else []
    if ledger.untold:
        rule = f"of unknown {ledger.hours}, which no coverage can count"
        others.append(f"malformed: {count(ledger.untold, 'row')} {rule}")
    return (*named, *others)


def row_records(ledger: Ledger) -> list[dict[str, Any]]:
    """What became of all rows, a record each."""
    listed = {"became jobs": ledger.kept, **ledger.dropped}
    return [
        {"what": what, "rows": rows, "gpu_hours": gpu_s / 3600.0}
        for what, (rows, gpu_s) in listed.items()
    ]


def place_records(found: Converted) -> list[dict[str, Any]]:
    """How jobs got their place as they ran, or why they have none, a record each."""
    how, gpu_s = found.placement.how, found.trace.asked_s
    return [
        {
            "what": what,
            "jobs": int((how == what).sum()),
            "gpu_hours": float(gpu_s[how == what].sum()) / 3600.0,
        }
        for what in (NAMED, PACKED, UNKNOWN, TAKEN, NO_PLACE)
        if np.any(how == what)
    ]


def row_cells(ledger: Ledger) -> tuple[tuple[str, str, str], ...]:
    """What became of all rows, for people."""
    return _cells(row_records(ledger))


def _cells(records: list[dict[str, Any]]) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (what, f"{number:,}", f"{hours:,.1f}")
        for what, number, hours in (each.values() for each in records)
    )
