"""Exact mapping of jobs to processors and levels: one level a job, earliest deadline first.

For jobs that are all there, the order on a processor is that of the deadlines, so a mapping is
feasible when, for every processor and deadline, the jobs due by then fit. That is a linear
constraint in binary choices; HiGHS solves it through SciPy. The search of `replan` is measured
by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from downclock.planners.highs import solve_integer
from downclock.units import Floats, Ints

Status: TypeAlias = Literal["optimal", "feasible", "infeasible", "unknown"]


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """What each of n jobs may do on m processors, entries (e,).

    Attributes:
        job, processor: of each entry.
        time_s, cost_j: what the entry takes.
        due_s: time left to each job's deadline (n,).
        leads: (n,) True where a job already runs and cannot be put back: it goes first.
        processors: m.
        on_w: power that is drawn until the last processor is done; 0: a fixed horizon.
    """

    job: Ints
    processor: Ints
    time_s: Floats
    cost_j: Floats
    due_s: Floats
    leads: Any
    processors: int
    on_w: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class MappingResult:
    """The answer: entry chosen for each job (n,), objective and proven bound."""

    entry: Ints
    objective_j: float
    bound_j: float
    status: Status

    @property
    def gap(self) -> float:
        """(objective - bound) / objective."""
        if not np.isfinite(self.objective_j) or self.objective_j == 0.0:
            return 0.0 if self.objective_j == self.bound_j else np.inf
        return max(0.0, (self.objective_j - self.bound_j) / abs(self.objective_j))


def solve_mapping(choices: Choices, *, gap: float = 0.002, limit_s: float = 5.0) -> MappingResult:
    """Minimise the cost to within ``gap`` or as far as ``limit_s`` allows."""
    from scipy.optimize import Bounds, LinearConstraint

    e, n = choices.job.size, choices.due_s.size
    makespan = choices.on_w > 0.0
    cost = np.append(choices.cost_j, choices.on_w) if makespan else choices.cost_j
    rows, limits = _deadlines(choices)
    once = np.zeros((n, e))
    once[choices.job, np.arange(e)] = 1.0
    total = np.zeros((choices.processors, e))
    total[choices.processor, np.arange(e)] = choices.time_s
    constraints = [
        LinearConstraint(_wide(once, makespan), 1.0, 1.0),
        LinearConstraint(_wide(rows, makespan), -np.inf, limits),
    ]
    if makespan:
        spans = np.hstack([total, -np.ones((choices.processors, 1))])
        constraints.append(LinearConstraint(spans, -np.inf, 0.0))
    found = solve_integer(
        cost,
        constraints=constraints,
        integrality=(np.arange(cost.size) < e).astype(np.int64),
        bounds=Bounds(0.0, np.append(np.ones(e), np.inf) if makespan else 1.0),
        options={"mip_rel_gap": gap, "time_limit": limit_s},
    )
    return _result(found, choices)


def _wide(table: Floats, makespan: bool) -> Floats:
    return np.hstack([table, np.zeros((table.shape[0], 1))]) if makespan else table


def _deadlines(choices: Choices) -> tuple[Floats, Floats]:
    """A row per (processor, deadline): the time of all jobs that must be done by then."""
    due, lead = choices.due_s[choices.job], np.asarray(choices.leads)[choices.job]
    ends = np.unique(choices.due_s[np.isfinite(choices.due_s)])
    rows, limits = [], []
    for p in range(choices.processors):
        here = choices.processor == p
        for end in ends:
            waits = np.any(here & (due == end) & ~lead)
            mine = here & ((due <= end) | lead) if waits else here & lead & (due == end)
            if np.any(mine):
                rows.append(np.where(mine, choices.time_s, 0.0))
                limits.append(end * (1.0 - 1e-12))
    if not rows:
        return np.zeros((1, choices.job.size)), np.array([np.inf])
    return np.array(rows), np.array(limits)


def _result(found: Any, choices: Choices) -> MappingResult:
    n = choices.due_s.size
    if found.x is None:
        status: Status = "infeasible" if found.status == 2 else "unknown"
        return MappingResult(np.full(n, -1), np.inf, np.inf, status)
    entry = np.full(n, -1)
    picked = np.flatnonzero(found.x[: choices.job.size] > 0.5)
    entry[choices.job[picked]] = picked
    spans = np.bincount(choices.processor[entry], choices.time_s[entry], choices.processors)
    objective = float(choices.cost_j[entry].sum() + choices.on_w * spans.max())
    bound = min(float(found.mip_dual_bound), objective)
    return MappingResult(entry, objective, bound, "optimal" if found.status == 0 else "feasible")
