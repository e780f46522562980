"""Local search for a mapping: which processor and level each job gets.

Jobs stand in order of their deadlines. A processor runs its jobs in that order, except that one
job per processor may already run and comes first. Options of job i are the entries
``first[i]:first[i + 1]`` of the option columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.units import Floats, Ints

LATE_COST = 1e9
"""Cost of a second of lateness: above any energy."""

TIME_S, COST_J, HOPED_S = 0, 1, 2
"""Rows of ``Options.amount``: worst-case time, cost, and the time to expect."""


class Options(NamedTuple):
    """What each job may do (n jobs, e entries)."""

    first: Ints  # (n + 1,)
    processor: Ints  # (e,)
    amount: Floats  # (3, e)
    due_s: Floats  # (n,) time left to the deadline, ascending
    leads: Ints  # (n,) 1 where the job runs already and cannot be put back


@compiled
def lateness_and_cost(
    options: Options, choice: Ints, on_w: float, work: Floats
) -> tuple[float, float]:
    """Return total lateness and cost (energy, and ``on_w`` until the last processor is done).

    Lateness is that of worst cases, the last end that to expect. ``work`` (2, processors) is room
    to add up.
    """
    work[:] = 0.0
    late, cost = 0.0, 0.0
    for i in range(choice.size):
        e = choice[i]
        p = options.processor[e]
        cost += options.amount[COST_J, e]
        work[1, p] += options.amount[HOPED_S, e]
        if options.leads[i] == 1:
            work[0, p] += options.amount[TIME_S, e]
            late += max(0.0, work[0, p] - options.due_s[i])
    for i in range(choice.size):
        e = choice[i]
        if options.leads[i] == 0:
            p = options.processor[e]
            work[0, p] += options.amount[TIME_S, e]
            late += max(0.0, work[0, p] - options.due_s[i])
    return late, cost + on_w * work[1].max()


@inner
def _total(options: Options, choice: Ints, on_w: float, work: Floats) -> float:
    late, cost = lateness_and_cost(options, choice, on_w, work)
    if late > 1e-9:
        return LATE_COST * (1.0 + late) + cost
    return cost


@inner
def _improve_one(options: Options, choice: Ints, on_w: float, work: Floats, best: float) -> float:
    """Give each job its best option, one by one."""
    for i in range(choice.size):
        kept = choice[i]
        for e in range(options.first[i], options.first[i + 1]):
            choice[i] = e
            total = _total(options, choice, on_w, work)
            if total < best - 1e-12 * abs(best):
                best, kept = total, e
        choice[i] = kept
    return best


@inner
def _improve_two(options: Options, choice: Ints, on_w: float, work: Floats, best: float) -> float:
    """Change two jobs at once, the first change of the pair that helps is kept."""
    for i in range(choice.size):
        for j in range(i + 1, choice.size):
            kept_i, kept_j = choice[i], choice[j]
            for e in range(options.first[i], options.first[i + 1]):
                for f in range(options.first[j], options.first[j + 1]):
                    choice[i], choice[j] = e, f
                    total = _total(options, choice, on_w, work)
                    if total < best - 1e-12 * abs(best):
                        best, kept_i, kept_j = total, e, f
            choice[i], choice[j] = kept_i, kept_j
    return best


@compiled
def search(
    options: Options, choice: Ints, on_w: float, processors: int, pairs: int, passes: int
) -> tuple[float, float]:
    """Improve ``choice`` in place until no single change (and no pair, if asked) helps.

    At most ``passes`` times over all jobs. Returns lateness and cost. Cost of a pass: n² options,
    with pairs n³ options².
    """
    work = np.zeros((2, processors))
    best = _total(options, choice, on_w, work)
    for _ in range(passes):
        before = best
        best = _improve_one(options, choice, on_w, work, best)
        if best < before:
            continue
        if pairs == 1:
            best = _improve_two(options, choice, on_w, work, best)
        if best >= before:
            break
    return lateness_and_cost(options, choice, on_w, work)
