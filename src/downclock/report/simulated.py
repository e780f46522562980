"""Pages of simulated runs beside the plan, and of misses against reserve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from downclock.problem.problem import Problem
from downclock.quantities import count, duration, energy
from downclock.report.summary import ON_BOTH
from downclock.report.tables import Page, Table
from downclock.schedule.schedule import DONE
from downclock.study.simulated import ReserveRow, SimulatedRuns, exactly


def simulated_page(runs: SimulatedRuns) -> Page:
    """A row a run, and their mean."""
    problem, promised = runs.problem, runs.promised
    records = [asdict(row) for row in runs.rows]
    done = int(np.sum(promised.outcomes.status == DONE))
    lines = (
        f"{promised.policy} on {problem!r}",
        f"promised: {energy(runs.promised_j)}, {done} of {count(len(problem.tasks), 'task')} done,"
        f" makespan {duration(promised.makespan_s)}",
    )
    makespan_s = promised.makespan_s
    data = {
        "problem": problem.name,
        "policy": promised.policy,
        "boundary": runs.boundary,
        "promised": {"energy_j": runs.promised_j, "done": done, "makespan_s": makespan_s},
        "runs": [
            {**record, "failures": [{"task": task, "reason": why} for task, why in failures]}
            for record, failures in zip(records, runs.failures, strict=True)
        ],
    }
    table = _runs_table(records, runs.promised_j)
    same = all(row.same_tasks for row in runs.rows)
    notes = (
        ()
        if same
        else (f"{ON_BOTH} the run did other tasks than the plan: the energies do not compare",)
    )
    return Page(lines=lines, tables=(table,), notes=notes, data=data, records=records)


def reserve_page(
    problem: Problem, spec: str, seeds: Sequence[int], rows: Sequence[ReserveRow]
) -> Page:
    """A row a reserve, all of them met by the same fates."""
    records = [asdict(row) for row in rows]
    lines = (f"{spec} on {problem!r}, {count(len(seeds), 'run')} each",)
    data = {"problem": problem.name, "policy": spec, "seeds": list(seeds), "reserves": records}
    return Page(lines=lines, tables=(_reserve_table(rows),), data=data, records=records)


def _runs_table(records: Sequence[dict[str, Any]], plan_j: float) -> Table:
    rows: list[tuple[str, ...] | None] = [_row(str(r["seed"]), r, plan_j) for r in records]
    if len(records) > 1:
        mean = {key: float(np.mean([r[key] for r in records])) for key in records[0]}
        rows += [None, _row("mean", mean, plan_j)]
    head = ("seed", "energy", "/ plan", "done", "late", "failed", "rejected", "lost tries")
    return Table((*head, "makespan"), tuple(rows))


def _row(name: str, r: dict[str, Any], plan_j: float) -> tuple[str, ...]:
    keys = ("done", "late", "failed", "rejected", "lost_attempts")
    numbers = (f"{r[k]:,}" if isinstance(r[k], int) else f"{r[k]:,.1f}" for k in keys)
    mark = "" if r["same_tasks"] == 1 else f" {ON_BOTH}"
    ran = energy(r["energy_j"]), _ratio(r["energy_j"], plan_j) + mark
    return (name, *ran, *numbers, duration(r["makespan_s"]))


def _reserve_table(rows: Sequence[ReserveRow]) -> Table:
    first = rows[0].energy_per_task_j
    columns: list[tuple[str, Callable[[ReserveRow], str]]] = [
        ("reserve", lambda row: exactly(row.reserve)),
        ("missed", lambda row: f"{100 * row.missed_share:.2f} %"),
        ("late tasks", lambda row: f"{row.missed:,.1f}"),
        ("rejected", lambda row: f"{row.rejected:,.1f}"),
        ("energy", lambda row: energy(row.energy_j)),
        ("per task / first", lambda row: _ratio(row.energy_per_task_j, first)),
    ]
    return Table.of(rows, columns)


def _ratio(amount: float, of: float) -> str:
    return f"{amount / of:.4f}" if of > 0.0 else "none"
