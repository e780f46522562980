"""How good could it be: the best bound on schedules that do the same tasks."""

from __future__ import annotations

import numpy as np

from downclock.planners.cluster.bins_bound import bins_bound, cells_per_bin
from downclock.planners.cluster.block_program import block_bound
from downclock.planners.cluster.bound import cluster_bound_j
from downclock.planners.cluster.known.judge import Judged
from downclock.planners.cluster.known.question import ENERGY, KnownQuestion, ask
from downclock.planners.cluster.price_bound import price_bound
from downclock.planners.per_task import per_task_bound_j
from downclock.planners.result import PROVEN
from downclock.problem.objective import Objective
from downclock.problem.problem import Problem

BINS, FEWEST, CELLS = (96, 24), 12, 60_000
"""Bins of time to try, the fewest that say anything, and the most cells of a program."""

BLOCKS, CHAINED = 24, 14
"""Jobs up to which blocks are enumerated, and up to which their processors are."""

NODES, SECONDS = 200, 60.0
"""Nodes of the search tree that a second of effort stands for; no proof takes much longer."""


def certified(
    problem: Problem, objective: Objective, best: Judged, effort: float
) -> tuple[float, bool]:
    """Return a bound on schedules of the tasks done, and whether more tasks can be done at all."""
    asked = ask(problem, objective, best.done)
    hopeless = ask(problem, objective).hopeless
    bound = _per_task(problem, objective, best)
    if not asked.task.size:
        return bound, bool(np.any(~best.done & ~hopeless))
    most = int(CELLS / cells_per_bin(asked))
    for count in BINS:
        if min(count, most) >= FEWEST:
            bound = max(bound, bins_bound(asked, count=min(count, most)))
    bound = max(bound, _blocks(problem, asked, best.value, bound, effort))
    return min(bound, best.value), bool(np.any(~best.done & ~hopeless))


def _per_task(problem: Problem, objective: Objective, best: Judged) -> float:
    """The sum over tasks apart, or with the idling and wakes that all of them need."""
    if objective != ENERGY:
        return float(price_bound(problem, objective)[best.done].sum())
    each = per_task_bound_j(problem)
    alone = float(each[best.done].sum())
    if np.array_equal(best.done, np.isfinite(each)):
        return max(alone, cluster_bound_j(problem, each))
    return alone


def _blocks(
    problem: Problem, asked: KnownQuestion, value: float, bound: float, effort: float
) -> float:
    """The integer program over blocks, where it holds and is small."""
    count, nodes = asked.task.size, max(1, int(NODES * effort))
    pauses = any(kind.interrupt != "none" for kind in problem.platform.kinds)
    if pauses or asked.columns.tariff.shape[1] > 1 or count > BLOCKS or value <= 0.0:
        return 0.0
    for chained in (False, True):
        alone = bool(np.all(asked.columns.jobs.gang == 1))
        if value - bound <= PROVEN * value or (chained and not (alone and count <= CHAINED)):
            break
        found = block_bound(asked, value, seconds=SECONDS, nodes=nodes, chained=chained)
        bound = max(bound, found)
    return bound
