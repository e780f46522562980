"""Misses against reserve: what it costs to plan for run times that exceed their estimates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.catalog import policy, with_parameter
from downclock.problem.problem import Problem
from downclock.quantities import count, energy
from downclock.report.simulated import joules
from downclock.report.tables import Page, Table
from downclock.schedule.account.bill import Boundary
from downclock.schedule.verify.verify import require_valid
from downclock.simulate.chances import Chances
from downclock.simulate.simulate import Run, simulate_many


def reserves_of(text: str) -> tuple[float, ...]:
    """Read a list of reserves such as ``0,0.1,0.2``."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        rule = "must be numbers with commas between, such as 0,0.1,0.2"
        raise InvalidInput(rule, field="reserve", value=text) from None


def reserve_page(
    problem: Problem,
    spec: str,
    reserves: Sequence[float],
    *,
    chances: Chances,
    seeds: tuple[int, ...],
    boundary: Boundary = "last-task",
    progress: Callable[[str, int, int], None] | None = None,
) -> Page:
    """Simulate a policy with each reserve against the same fates; a row each.

    A larger reserve may turn more tasks away, so energies are compared by the task that was
    carried out, on time or late.

    Raises:
        InvalidInput: the policy has no reserve.
        InvalidSchedule: a realised schedule breaks a rule; that is a bug.
    """
    records = []
    for k, reserve in enumerate(reserves):
        if progress is not None:
            progress(f"reserve {_exactly(reserve)}", k, len(reserves))
        made = policy(with_parameter(spec, "reserve", _exactly(reserve)))
        runs = simulate_many(problem, made, chances=chances, seeds=seeds)
        records.append({"reserve": reserve, **_record(runs, boundary)})
    lines = (f"{spec} on {problem!r}, {count(len(seeds), 'run')} each",)
    data = {"problem": problem.name, "policy": spec, "seeds": list(seeds), "reserves": records}
    return Page(lines=lines, tables=(_table(records),), data=data, records=records)


def _exactly(reserve: float) -> str:
    """The reserve in as few digits as tell it from all others."""
    short = f"{reserve:g}"
    return short if float(short) == reserve else repr(reserve)


def _record(runs: Sequence[Run], boundary: Boundary) -> dict[str, Any]:
    for run in runs:
        require_valid(run.problem, run.realised)
    late = sum(run.late.size for run in runs)
    accepted = sum(len(run.problem.tasks) - run.rejected.size for run in runs)
    bills = [joules(run.problem, run.realised, boundary).total_j for run in runs]
    ran = sum(run.done.size + run.late.size for run in runs)
    return {
        "missed": late / len(runs),
        "missed_share": late / accepted if accepted else 0.0,
        "rejected": float(np.mean([run.rejected.size for run in runs])),
        "failed": float(np.mean([run.failed.size - run.late.size for run in runs])),
        "energy_j": float(np.mean(bills)),
        "energy_per_task_j": float(np.sum(bills)) / ran if ran else 0.0,
    }


def _table(records: Sequence[dict[str, Any]]) -> Table:
    first = records[0]["energy_per_task_j"]
    rows = tuple(
        (
            _exactly(r["reserve"]),
            f"{100 * r['missed_share']:.2f} %",
            f"{r['missed']:,.1f}",
            f"{r['rejected']:,.1f}",
            energy(r["energy_j"]),
            f"{r['energy_per_task_j'] / first:.4f}" if first > 0.0 else "none",
        )
        for r in records
    )
    head = ("reserve", "missed", "late tasks", "rejected", "energy", "per task / first")
    return Table(head, rows)
