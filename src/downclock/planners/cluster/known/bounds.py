"""How good could it be: bounds on schedules that do the same tasks, and what was proven of them."""

from __future__ import annotations

import numpy as np

from downclock.planners.cluster import price_bound
from downclock.planners.cluster.known.bins_bound import bins_bound, cells_per_bin
from downclock.planners.cluster.known.block_program import block_bound
from downclock.planners.cluster.known.judge import Judged, judged
from downclock.planners.cluster.known.question import (
    ENERGY,
    KnownQuestion,
    ask,
    objection,
)
from downclock.planners.cluster.known.start_bound import start_bound
from downclock.planners.result import PROVEN
from downclock.problem.objective import Objective
from downclock.problem.problem import Problem
from downclock.schedule.schedule import DONE, Schedule
from downclock.units import Bools

BINS, FEWEST, CELLS = 96, 12, 4_000
"""Bins of time, the fewest that say anything, and the most cells of a program."""

COLUMNS, CLOSE = 8_000, 0.01
"""Most columns of the program over starts, at an effort of a second, and the gap it is tried at."""

BLOCKS, CHAINED, A_SECOND = 24, 14, 12
"""Jobs up to which blocks are enumerated, up to which their processors are, and, of these, how many
a second of effort is enough for."""

NODES, SECONDS = 200, 4.0
"""Nodes of the search tree, and seconds, that a second of effort stands for."""


def energy_bound_j(problem: Problem, done: Bools) -> float | None:
    """What the tasks that are done (n,) need at least, as far as that was proven."""
    return _proven(problem).get((ENERGY, done.tobytes()))


def value_bound(problem: Problem, objective: Objective, done: Bools) -> float | None:
    """The same under another objective, at actual prices, negative ones as 0."""
    apart = price_bound.value_bound(problem, objective, done)
    together = _proven(problem).get((objective, done.tobytes()))
    return apart if together is None else max(together, apart or 0.0)


def _proven(problem: Problem) -> dict[tuple[Objective, bytes], float]:
    """Bounds that were proven of a problem, by objective and tasks done."""
    return problem.once("proven", dict)


def _remember(problem: Problem, objective: Objective, done: Bools, bound: float) -> float:
    """The best bound so far."""
    known, key = _proven(problem), (objective, done.tobytes())
    known[key] = max(known.get(key, 0.0), bound)
    return known[key]


def prove(
    problem: Problem, objective: Objective, best: Judged, effort: float
) -> tuple[float, bool]:
    """Return a bound on schedules of the tasks done, and whether more tasks can be done at all.

    It is remembered where plans see the prices of bills.
    """
    asked = ask(problem, objective, best.done)
    more = bool(np.any(~best.done & ~ask(problem, objective).hopeless))
    bound = _bins(asked)
    if asked.task.size and _whole_runs(problem, asked):
        bound = _blocks(asked, best.value, bound, effort)
        if best.value - bound > CLOSE * best.value:
            bound = max(bound, start_bound(asked, columns=int(COLUMNS * effort)))
    bound = min(bound, best.value)
    if objective.foreseen(problem.prices):
        bound = _remember(problem, objective, best.done, bound)
    return bound, more


def prove_plan(
    problem: Problem, objective: Objective | None, schedule: Schedule, effort: float
) -> None:
    """Prove what can be proven of a cluster's plan, at the prices of bills, and remember it."""
    by = objective or ENERGY
    if objection(problem, by) is None and by.foreseen(problem.prices):
        prove(problem, by, judged(problem, by, schedule), effort)
    elif objection(problem, by, actual=True) is None:
        done = schedule.outcomes.status == DONE
        _remember(problem, by, done, _bins(ask(problem, by, done, actual=True)))


def _bins(asked: KnownQuestion) -> float:
    """The bins program, as fine as its size allows."""
    if not asked.task.size:
        return 0.0
    count = min(BINS, int(CELLS / cells_per_bin(asked)))
    return bins_bound(asked, count=count) if count >= FEWEST else 0.0


def _whole_runs(problem: Problem, asked: KnownQuestion) -> bool:
    """Tell whether no job may be interrupted, and a joule is always worth the same."""
    pauses = any(kind.interrupt != "none" for kind in problem.platform.kinds)
    return not pauses and asked.columns.tariff.shape[1] == 1


def _blocks(asked: KnownQuestion, value: float, bound: float, effort: float) -> float:
    """The integer program over blocks, where it is small."""
    count, nodes = asked.task.size, max(1, int(NODES * effort))
    alone = bool(np.all(asked.columns.jobs.gang == 1))
    if count > min(BLOCKS, A_SECOND * effort):
        return bound
    for chained in (False, True):
        if value - bound <= PROVEN * value or (chained and not (alone and count <= CHAINED)):
            break
        found = block_bound(asked, value, seconds=SECONDS * effort, nodes=nodes, chained=chained)
        bound = max(bound, found)
    return bound
