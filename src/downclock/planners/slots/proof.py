"""Prove a plan optimal, or find the better one: multipliers, reduced-cost fixing, HiGHS.

Machine multipliers give a bound and, from the residuals of their cut, what every single interval
costs at least. Intervals dearer than the plan in hand are dropped; what is left is usually a small
interval program.
"""

from __future__ import annotations

import time

import numpy as np

from downclock.planners.slots.fluid import SAFE
from downclock.planners.slots.kernels.fixing import fix_intervals
from downclock.planners.slots.model import SlotGraphIndex, SlotPlan
from downclock.planners.slots.multipliers import CapacityMultipliers
from downclock.planners.slots.program import ANY_NODES, Columns, ProgramAnswer, solve_intervals
from downclock.units import Floats, Ints

FIRST = 3e-5
"""How far above the bound, as a part of it, plans are looked for first."""

SLOW, FAST, EASY = 1.8, 3.5, 3
"""Growth of that part; the fast one where the last question took so few nodes."""


def surviving(
    multipliers: CapacityMultipliers, upper: float, table: Floats
) -> tuple[Columns, float]:
    """Columns that a plan cheaper than ``upper`` may use, and a bound on such plans.

    ``table`` is the true cost table; the multipliers may have been found on its envelope.
    """
    index, far = multipliers.index, _longest_between(multipliers.index)
    value, promised = multipliers.interval_values(table, upper)
    bound = fix_intervals(value, far, promised, upper + SAFE * (upper + promised))
    task, first, last = np.nonzero(np.isfinite(value))
    cost = table[index.row[task], first, last - first]
    return Columns(task, first, last, cost), bound - SAFE * (upper + promised)


def _longest_between(index: SlotGraphIndex) -> Ints:
    """Return (n, n): least slots between the end of i and the start of j; -1 where unordered."""
    n = len(index.graph)
    far = np.full((n, n), -1, dtype=np.int64)
    for i, j in zip(index.before[::-1], index.after[::-1], strict=True):
        far[i, j] = max(far[i, j], 0)
        beyond = np.where(far[j] >= 0, far[j] + index.length[j], -1)
        np.maximum(far[i], beyond, out=far[i])
    return far


def prove(
    multipliers: CapacityMultipliers,
    table: Floats,
    plan: SlotPlan,
    bound: float,
    below: float,
    *,
    seconds: float = np.inf,
    nodes: int = ANY_NODES,
    largest: int = 200_000,
) -> tuple[SlotPlan, float]:
    """Return the best plan and a bound; they meet where optimality is proven within the limits.

    Most plans in hand are worse than the bound is wrong. So it is asked first whether there is a
    plan just above the bound, with the few columns such a plan may use; if there is none the
    bound has risen, and it is asked for plans somewhat dearer, up to ``below``: what any plan
    better than the one in hand costs at most.
    """
    part, begun, asked, guess = FIRST, time.perf_counter(), 0, -np.inf
    growth = SLOW
    while bound < below and guess < below:
        guess = min(below, multipliers.bound + part * max(below, plan.cost))
        part *= growth
        if guess <= bound:
            continue
        columns, least = surviving(multipliers, guess, table)
        bound = max(bound, min(least, guess))
        left = seconds - (time.perf_counter() - begun)
        if len(columns) > largest or left <= 0.0:
            break
        if len(columns) <= 1.1 * asked and guess < below:
            continue
        asked = len(columns)
        answer = solve_intervals(
            multipliers.index.graph, columns, seconds=left, nodes=nodes, most=guess
        )
        plan = _better(plan, columns, answer)
        # Plans with dropped columns cost at least the guess.
        bound = max(bound, min(answer.bound * (1.0 - SAFE), guess))
        if not answer.proven:
            break
        nodes -= min(answer.nodes, nodes - 1)
        growth = FAST if answer.nodes <= EASY else SLOW
        bound = max(bound, min(guess, plan.cost) * (1.0 - 1e-7))
        below = min(below, plan.cost)
    return plan, min(bound, plan.cost)


def _better(plan: SlotPlan, columns: Columns, answer: ProgramAnswer) -> SlotPlan:
    if answer.chosen is None:
        return plan
    first, last = columns.first[answer.chosen], columns.last[answer.chosen]
    found = SlotPlan(first, last, float(columns.cost[answer.chosen].sum()))
    return found if found.cost < plan.cost else plan
