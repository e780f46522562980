"""The optimum of small batches on alike servers with enumerated clocks, with proof (HiGHS).

All tasks are there at time 0, so on each processor they run without gaps in order of deadline
(exchange argument), and a server is awake from its wake to the end of its fullest processor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.highs import solve_integer
from downclock.problem.problem import Problem
from downclock.units import Floats, Ints

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint


@dataclass(frozen=True, slots=True, eq=False)
class ClusterOptimum:
    """Least energy of a batch, what is proven of it, and where tasks run.

    Attributes:
        energy_j: energy of the best schedule found.
        bound_j: no schedule needs less.
        proven: the two are equal within the solver's gap.
        processor, length_s: of each task (n,).
    """

    energy_j: float
    bound_j: float
    proven: bool
    processor: Ints
    length_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Choices:
    """Every (task, processor, clock): a 0-1 variable each (v,), and the server ends after them."""

    task: Ints
    processor: Ints
    time_s: Floats
    energy_j: Floats


def cluster_optimum(problem: Problem, *, time_limit_s: float = 60.0) -> ClusterOptimum:
    """Solve a batch exactly; InvalidInput where the problem is of another shape."""
    from scipy.optimize import Bounds

    _check(problem)
    choices = _choices(problem)
    servers, v = problem.platform.server_count, choices.task.size
    whole = np.concatenate([np.ones(v), np.zeros(servers), np.ones(servers)])
    upper = np.concatenate([np.ones(v), np.full(servers, np.inf), np.ones(servers)])
    found = solve_integer(
        _costs(problem, choices),
        constraints=_rules(problem, choices),
        integrality=whole,
        bounds=Bounds(np.zeros(whole.size), upper),
        options={"time_limit": time_limit_s, "mip_rel_gap": 1e-9},
    )
    if found.x is None:
        raise InvalidInput("no schedule meets every deadline", item=problem.name)
    taken = np.flatnonzero(found.x[:v] > 0.5)
    taken = taken[np.argsort(choices.task[taken])]
    return ClusterOptimum(
        float(found.fun),
        float(found.mip_dual_bound),
        found.status == 0,
        choices.processor[taken],
        choices.time_s[taken],
    )


def _check(problem: Problem) -> None:
    platform = problem.platform
    kinds = np.unique(platform.kind)
    if np.any(problem.tasks.arrival_s) or kinds.size > 1 or len(problem.edges):
        raise InvalidInput("needs independent tasks at time 0 and one kind", item=problem.name)
    if not np.diff(problem.frontier(int(kinds[0])).ladder()[0]).all():
        raise InvalidInput("needs enumerated clocks", item=problem.name)


def _ready_s(problem: Problem) -> Floats:
    return np.where(problem.platform.initially_on, 0.0, problem.platform.wake_s)


def _choices(problem: Problem) -> _Choices:
    platform = problem.platform
    offset, time_s, energy_j = problem.frontier(int(platform.kind[0])).ladder()
    task = np.repeat(np.arange(len(problem.tasks)), np.diff(offset))
    p = platform.processor_count
    return _Choices(
        np.tile(task, p),
        np.repeat(np.arange(p), task.size),
        np.tile(time_s, p),
        np.tile(energy_j, p),
    )


def _costs(problem: Problem, choices: _Choices) -> Floats:
    """Energy less the idle power it replaces; power of awake servers; wakes."""
    platform = problem.platform
    idle_w = platform.idle_w[choices.processor]
    up_w = np.bincount(platform.server, platform.idle_w, platform.server_count) + platform.host_w
    wake_j = np.where(platform.initially_on, 0.0, platform.wake_j)
    return np.concatenate([choices.energy_j - idle_w * choices.time_s, up_w, wake_j])


def _rules(problem: Problem, choices: _Choices) -> list[LinearConstraint]:
    """Each task once; on each processor all up to a deadline end by it; ends and wakes."""
    from scipy.optimize import LinearConstraint

    platform, tasks = problem.platform, problem.tasks
    v, servers = choices.task.size, platform.server_count
    width = v + 2 * servers
    once = np.zeros((len(tasks), width))
    once[choices.task, np.arange(v)] = 1.0
    rows: list[Floats] = []
    limits: list[float] = []
    ready_s = _ready_s(problem)
    for p in range(platform.processor_count):
        j, mine = platform.server[p], choices.processor == p
        for i in np.flatnonzero(np.isfinite(tasks.deadline_s)):
            row = np.zeros(width)
            sooner = mine & (tasks.deadline_s[choices.task] <= tasks.deadline_s[i])
            row[:v][sooner] = choices.time_s[sooner]
            rows.append(row)
            limits.append(float(tasks.deadline_s[i] - ready_s[j]))
        row = np.zeros(width)
        row[:v][mine] = choices.time_s[mine]
        row[v + j] = -1.0
        rows.append(row)
        limits.append(0.0)
        for task in range(len(tasks)):
            row = np.zeros(width)
            row[:v][mine & (choices.task == task)] = 1.0
            row[v + servers + j] = -1.0
            rows.append(row)
            limits.append(0.0)
    return [
        LinearConstraint(once, 1.0, 1.0),
        LinearConstraint(np.array(rows), -np.inf, np.array(limits)),
    ]
