"""Simulated runs beside the plan, and what a reserve buys: verified, billed and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.catalog import policy, with_parameter
from downclock.planners.portfolio import Progress
from downclock.problem.price import Prices
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.account.bill import Bill, Boundary
from downclock.schedule.schedule import DONE, Schedule
from downclock.schedule.verify.verify import require_valid
from downclock.simulate.chances import Chances
from downclock.simulate.simulate import Run, simulate_many


@dataclass(frozen=True, slots=True)
class RunRow:
    """One simulated run: energy, how tasks ended, and attempts that came to nothing.

    ``same_tasks``: those that were promised are done, on time or late, and no others.
    """

    seed: int
    energy_j: float
    done: int
    late: int
    failed: int
    rejected: int
    lost_attempts: int
    wakes: int
    makespan_s: float
    events: int
    same_tasks: bool


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedRuns:
    """Several fates of one plan.

    Attributes:
        problem: what was asked.
        promised: the plan, and ``promised_j`` its energy.
        boundary: where the energy window of a server ends.
        rows: one a run.
        failures: (task, reason) of each run.
    """

    problem: Problem
    promised: Schedule
    promised_j: float
    boundary: Boundary
    rows: tuple[RunRow, ...]
    failures: tuple[tuple[tuple[str, str], ...], ...]


@dataclass(frozen=True, slots=True)
class ReserveRow:
    """Means over the runs with one reserve; missed counts late tasks, as a share of accepted."""

    reserve: float
    missed: float
    missed_share: float
    rejected: float
    failed: float
    energy_j: float
    energy_per_task_j: float


def judged_runs(runs: Sequence[Run], boundary: Boundary = "last-task") -> SimulatedRuns:
    """Verify and bill every run of one plan.

    Raises:
        InvalidSchedule: a promised or realised schedule breaks a rule; that is a bug.
    """
    problem, promised = runs[0].problem, runs[0].promised
    names = problem.tasks.name
    require_valid(problem, promised)
    promised_j = _bill(problem, promised, boundary).total_j
    rows = tuple(_row(run, boundary) for run in runs)
    failures = tuple(
        tuple((str(names[i]), str(run.realised.outcomes.reason[i])) for i in run.failed)
        for run in runs
    )
    return SimulatedRuns(problem, promised, promised_j, boundary, rows, failures)


def reserve_curve(
    problem: Problem,
    spec: str,
    reserves: Sequence[float],
    *,
    chances: Chances,
    seeds: tuple[int, ...],
    boundary: Boundary = "last-task",
    progress: Progress | None = None,
) -> list[ReserveRow]:
    """Simulate a policy with each reserve against the same fates.

    A larger reserve may turn more tasks away, so energies are compared by the task that was
    carried out, on time or late.

    Raises:
        InvalidInput: the policy has no reserve.
        InvalidSchedule: a realised schedule breaks a rule; that is a bug.
    """
    rows = []
    for k, reserve in enumerate(reserves):
        if progress is not None:
            progress(f"reserve {exactly(reserve)}", k, len(reserves))
        made = policy(with_parameter(spec, "reserve", exactly(reserve)))
        runs = simulate_many(problem, made, chances=chances, seeds=seeds)
        rows.append(_reserve_row(reserve, runs, boundary))
    return rows


def reserves_of(text: str) -> tuple[float, ...]:
    """Read a list of reserves such as ``0,0.1,0.2``."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        rule = "must be numbers with commas between, such as 0,0.1,0.2"
        raise InvalidInput(rule, field="reserve", value=text) from None


def exactly(reserve: float) -> str:
    """The reserve in as few digits as tell it from all others."""
    short = f"{reserve:g}"
    return short if float(short) == reserve else repr(reserve)


def _reserve_row(reserve: float, runs: Sequence[Run], boundary: Boundary) -> ReserveRow:
    rows = [_row(run, boundary) for run in runs]
    late, accepted = sum(r.late for r in rows), sum(len(run.problem.tasks) for run in runs)
    accepted -= sum(r.rejected for r in rows)
    joules = [r.energy_j for r in rows]
    ran = sum(r.done + r.late for r in rows)
    return ReserveRow(
        reserve=reserve,
        missed=late / len(runs),
        missed_share=late / accepted if accepted else 0.0,
        rejected=float(np.mean([r.rejected for r in rows])),
        failed=float(np.mean([r.failed for r in rows])),
        energy_j=float(np.mean(joules)),
        energy_per_task_j=float(np.sum(joules)) / ran if ran else 0.0,
    )


def _row(run: Run, boundary: Boundary) -> RunRow:
    require_valid(run.problem, run.realised, realised=True)
    bill, late = _bill(run.problem, run.realised, boundary), int(run.late.size)
    promised = np.flatnonzero(run.promised.outcomes.status == DONE)
    return RunRow(
        seed=run.seed,
        energy_j=bill.total_j,
        done=int(run.done.size),
        late=late,
        failed=int(run.failed.size) - late,
        rejected=int(run.rejected.size),
        lost_attempts=_lost_attempts(run.realised, late),
        wakes=bill.wakes,
        makespan_s=run.realised.makespan_s,
        events=run.events,
        same_tasks=np.array_equal(promised, np.union1d(run.done, run.late)),
    )


def _bill(problem: Problem, schedule: Schedule, boundary: Boundary) -> Bill:
    """Bill a schedule without prices: a run may end after the last hour that has one."""
    return account(replace(problem, prices=Prices()), schedule, boundary=boundary)


def _lost_attempts(schedule: Schedule, late: int) -> int:
    """Attempts that came to nothing; the last one of a task that was done, if late, did not."""
    segments, outcomes = schedule.segments, schedule.outcomes
    tries = np.zeros((len(outcomes), int(segments.attempt.max(initial=0)) + 1), dtype=bool)
    tries[segments.task, segments.attempt] = True
    ended = int(np.sum(tries.any(axis=1) & (outcomes.status == DONE)))
    return int(tries.sum()) - ended - late
