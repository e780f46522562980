"""Simulated runs beside the plan: energy, punctuality and what failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from downclock.problem.price import Prices
from downclock.problem.problem import Problem
from downclock.quantities import count, duration, energy
from downclock.report.tables import Page, Table
from downclock.schedule.account.account import account
from downclock.schedule.account.bill import Bill, Boundary
from downclock.schedule.schedule import DONE, Schedule
from downclock.schedule.verify.verify import require_valid
from downclock.simulate.simulate import Run


def simulated_page(runs: Sequence[Run], boundary: Boundary = "last-task") -> Page:
    """Verify and bill every run; a row each, and their mean.

    Raises:
        InvalidSchedule: a promised or realised schedule breaks a rule; that is a bug.
    """
    problem, promised = runs[0].problem, runs[0].promised
    require_valid(problem, promised)
    plan_j = joules(problem, promised, boundary).total_j
    records = [_record(run, boundary) for run in runs]
    done = int(np.sum(promised.outcomes.status == DONE))
    lines = (
        f"{promised.policy} on {problem!r}",
        f"promised: {energy(plan_j)}, {done} of {count(len(problem.tasks), 'task')} done,"
        f" makespan {duration(promised.makespan_s)}",
    )
    data = {
        "problem": problem.name,
        "policy": promised.policy,
        "boundary": boundary,
        "promised": {"energy_j": plan_j, "done": done, "makespan_s": promised.makespan_s},
        "runs": [
            {**record, "failures": _failures(run)}
            for record, run in zip(records, runs, strict=True)
        ],
    }
    return Page(lines=lines, tables=(_table(records, plan_j),), data=data, records=records)


def joules(problem: Problem, schedule: Schedule, boundary: Boundary) -> Bill:
    """Bill a schedule without prices: a run may end after the last hour that has one."""
    return account(replace(problem, prices=Prices()), schedule, boundary=boundary)


def _record(run: Run, boundary: Boundary) -> dict[str, Any]:
    require_valid(run.problem, run.realised)
    bill = joules(run.problem, run.realised, boundary)
    late = run.late.size
    return {
        "seed": run.seed,
        "energy_j": bill.total_j,
        "done": run.done.size,
        "late": late,
        "failed": run.failed.size - late,
        "rejected": run.rejected.size,
        "lost_attempts": _lost_attempts(run.realised),
        "wakes": bill.wakes,
        "makespan_s": run.realised.makespan_s,
        "events": run.events,
    }


def _lost_attempts(schedule: Schedule) -> int:
    """Attempts that came to nothing."""
    segments = schedule.segments
    tries = np.unique(np.column_stack([segments.task, segments.attempt]), axis=0)
    ended = np.unique(segments.task[schedule.outcomes.status[segments.task] == DONE]).size
    late = np.array([str(r).startswith("done at") for r in schedule.outcomes.reason], dtype=bool)
    return len(tries) - ended - int(late.sum())


def _failures(run: Run) -> list[dict[str, str]]:
    outcomes, names = run.realised.outcomes, run.problem.tasks.name
    return [{"task": str(names[i]), "reason": str(outcomes.reason[i])} for i in run.failed]


def _table(records: Sequence[dict[str, Any]], plan_j: float) -> Table:
    rows: list[tuple[str, ...] | None] = [_row(str(r["seed"]), r, plan_j) for r in records]
    if len(records) > 1:
        mean = {key: float(np.mean([r[key] for r in records])) for key in records[0]}
        rows += [None, _row("mean", mean, plan_j)]
    head = ("seed", "energy", "/ plan", "done", "late", "failed", "rejected", "lost tries")
    return Table((*head, "makespan"), tuple(rows))


def _row(name: str, r: dict[str, Any], plan_j: float) -> tuple[str, ...]:
    ratio = f"{r['energy_j'] / plan_j:.4f}" if plan_j > 0.0 else "none"
    keys = ("done", "late", "failed", "rejected", "lost_attempts")
    numbers = (f"{r[k]:,}" if isinstance(r[k], int) else f"{r[k]:,.1f}" for k in keys)
    return (name, energy(r["energy_j"]), ratio, *numbers, duration(r["makespan_s"]))
