"""How good could it be: bounds on schedules that do the same tasks, and what was proven of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners import per_task
from downclock.planners.cluster import bound as cluster
from downclock.planners.cluster import price_bound
from downclock.planners.cluster.known.bins_bound import bins_bound, cells_per_bin
from downclock.planners.cluster.known.block_program import block_bound
from downclock.planners.cluster.known.judge import Judged, judged
from downclock.planners.cluster.known.kernels.model import Placement
from downclock.planners.cluster.known.question import (
    KnownQuestion,
    ask,
    at_one_price,
    objection,
)
from downclock.planners.cluster.known.start_bound import start_bound
from downclock.planners.result import PROVEN
from downclock.problem.objective import ENERGY, Objective
from downclock.problem.problem import Problem
from downclock.schedule.schedule import DONE, Schedule
from downclock.units import J_PER_KWH, Bools

BINS, FEWEST, CELLS = 96, 12, 4_000
"""Bins of time, the fewest that say anything, and the most cells of a program."""

LEAST_S, SHARE = 1.0, 0.3
"""Seconds that a program may take about, and part of each second of effort that is added."""

BLOCKS, MEMBERS, CHAINED, GROWTH = 12, 240, 90, 0.25
"""Jobs, and pairs of a block and a job it may hold, up to which blocks are enumerated at an effort
of a second; pairs up to which their processors are too; the power of effort the first two grow
with, as integer programs take so much longer when they are a little larger."""

NEARLY = 1e-4
"""A plan within this part of its bound is not asked of the linear programs, which say less."""

NODES = 100
"""Nodes of the search tree of the largest such program that a second stands for."""


def energy_bound_j(problem: Problem, done: Bools) -> float | None:
    """What the tasks that are done (n,) need at least, as far as that was proven."""
    return _proven(problem).get((ENERGY, done.tobytes()))


def value_bound(problem: Problem, objective: Objective, done: Bools) -> float | None:
    """The same under another objective, at actual prices, negative ones as 0."""
    apart = price_bound.value_bound(problem, objective, done)
    together = _proven(problem).get((objective, done.tobytes()))
    if together is not None and objective == ENERGY:
        together /= J_PER_KWH
    return apart if together is None else max(together, apart or 0.0)


def _proven(problem: Problem) -> dict[tuple[Objective, bytes], float]:
    """Bounds that were proven of a problem, by objective and tasks done."""
    return problem.once("proven", dict)


def _remember(problem: Problem, objective: Objective, done: Bools, bound: float) -> float:
    """The best bound so far."""
    known, key = _proven(problem), (objective, done.tobytes())
    known[key] = max(known.get(key, 0.0), bound)
    return known[key]


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """What is proven of a plan.

    Attributes:
        bound: no schedule of the tasks it does is worth less.
        more: more tasks might be done.
        better: a plan that the proof came by; None where there is none.
    """

    bound: float
    more: bool
    better: Placement | None = None


def prove(problem: Problem, objective: Objective, best: Judged, effort: float) -> Proof:
    """Prove what can be proven of a plan, once; it is remembered where plans see bills' prices."""
    asked = ("proof", objective, best.done.tobytes(), best.value, effort)
    return problem.once(asked, lambda: _prove(problem, objective, best, effort))


def _prove(problem: Problem, objective: Objective, best: Judged, effort: float) -> Proof:
    asked = ask(problem, objective, best.done)
    more = bool(np.any(~best.done & ~ask(problem, objective).hopeless))
    seen = objective.foreseen(problem.prices)
    bound = _proven(problem).get((objective, best.done.tobytes()), 0.0) if seen else 0.0
    better, level = None, at_one_price(asked)
    if best.value - bound > PROVEN * best.value and level is not None and _whole_runs(problem):
        bound, better = _blocks(level, best.value, bound, effort)
    if best.value - bound > NEARLY * best.value:
        apart, enough = _apart(problem, objective, best.done), (1.0 - PROVEN) * best.value
        bound = max(bound, _relaxed(problem, asked, effort, apart, enough))
    bound = min(bound, best.value)
    if seen:
        bound = _remember(problem, objective, best.done, bound)
    return Proof(bound, more, better)


def prove_plan(
    problem: Problem, objective: Objective | None, schedule: Schedule, effort: float
) -> None:
    """Prove what can be proven of a cluster's plan, at the prices of bills, and remember it."""
    by = objective or ENERGY
    if objection(problem, by) is None and by.foreseen(problem.prices):
        prove(problem, by, judged(problem, by, schedule), effort)
    elif objection(problem, by, actual=True) is None:
        done = schedule.outcomes.status == DONE
        asked = ask(problem, by, done, actual=True)
        apart = _apart(problem, by, done)
        _remember(problem, by, done, _relaxed(problem, asked, effort, apart))


def _relaxed(
    problem: Problem, asked: KnownQuestion, effort: float, apart: float, enough: float = np.inf
) -> float:
    """Linear programs: over bins where prices do not change; over starts where no job may pause.

    The second takes most of the time, and of single jobs says no more than they do ``apart`` where
    the first does not (in 50 of 50 drawn days).
    """
    if not asked.task.size:
        return 0.0
    flat = asked.columns.tariff.shape[1] == 1
    bound = _bins(asked) if flat else 0.0
    if _whole_runs(problem) and bound < enough:
        in_vain = flat and 0.0 < bound <= apart and _single(problem, asked)
        bound = bound if in_vain else max(bound, start_bound(asked, seconds=_seconds(effort)))
    return bound if bound or flat else _bins(asked)


def _apart(problem: Problem, objective: Objective, done: Bools) -> float:
    """What is known at once of tasks that are done (n,)."""
    if objective == ENERGY:
        alone_j = per_task.energy_bound_j(problem, done)
        return max(alone_j, cluster.energy_bound_j(problem, done) or 0.0)
    return price_bound.value_bound(problem, objective, done) or 0.0


def _single(problem: Problem, asked: KnownQuestion) -> bool:
    """Tell whether jobs neither follow each other nor run on several processors, and no cap is."""
    free = not len(problem.edges) and not problem.platform.limits
    return free and bool(np.all(asked.columns.jobs.gang == 1))


def _bins(asked: KnownQuestion) -> float:
    """The bins program, as fine as its size allows."""
    count = min(BINS, int(CELLS / cells_per_bin(asked)))
    return bins_bound(asked, count=count) if count >= FEWEST else 0.0


def _whole_runs(problem: Problem) -> bool:
    """Tell whether no job may be interrupted."""
    return all(kind.interrupt == "none" for kind in problem.platform.kinds)


def is_small(problem: Problem, asked: KnownQuestion, effort: float) -> bool:
    """Tell whether an integer program can better a plan, not only prove it."""
    able = at_one_price(asked) is not None and _whole_runs(problem)
    return able and _enumerates(asked, effort) and _chains(asked)


def _enumerates(asked: KnownQuestion, effort: float) -> bool:
    """Tell whether there are so few jobs that blocks can be enumerated."""
    times = min(effort, float(effort**GROWTH))
    return 0 < asked.task.size <= BLOCKS * times and _members(asked) <= MEMBERS * times


def _chains(asked: KnownQuestion) -> bool:
    """Tell whether processors of blocks can be enumerated: single jobs, few blocks."""
    return _members(asked) <= CHAINED and bool(np.all(asked.columns.jobs.gang == 1))


def _members(asked: KnownQuestion) -> int:
    """Pairs of a block and a job it may hold, at most."""
    count = int(asked.task.size)
    return count * (count + 1) // 2 * int(asked.columns.groups.size)


def _blocks(
    asked: KnownQuestion, value: float, bound: float, effort: float
) -> tuple[float, Placement | None]:
    """The integer program over blocks, where it is small; a plan where that is better."""
    better = None
    if not _enumerates(asked, effort):
        return bound, None
    nodes = int(NODES * _seconds(effort) * MEMBERS / _members(asked))
    for chained in (False, True):
        if value - bound <= PROVEN * value or (chained and not _chains(asked)):
            break
        found, better = block_bound(asked, value, nodes=nodes, chained=chained)
        bound = max(bound, found)
    return bound, better


def _seconds(effort: float) -> float:
    """About how long a program may take."""
    return LEAST_S + SHARE * effort
