"""Plans and bounds where joins lie in given slots.

Where joins lie ties all tasks together: moving one moves whole stages, which orders that change
little cannot do, and a bound that mixes their slots is low. With the barriers of a chain held every
task has a window of a stage or some, few edges are left, multipliers of machines are soon the best,
and HiGHS is quick. Slots are tried in the order of the stage bound; what it says of those that are
left, and the bounds of those tried, are a bound of all.
"""

from __future__ import annotations

import numpy as np

from downclock.planners.slots.barriers import Stages
from downclock.planners.slots.fluid import SAFE
from downclock.planners.slots.search import LARGEST_CUT, CostSearch
from downclock.planners.slots.stage_bound import StageBound

STEPS = 30
"""Steps of the multipliers for each choice of slots at most."""

DECODE = 4
"""Every so many of them plans are made of what they choose."""

WORK, LEAST = 1_200_000, 5_000
"""Steps times tasks times slots after which no further choice is tried; what even a few count."""

VAIN, RISE = 0.25, 0.1
"""Part of that work without a better plan that is enough where the bound rose by less than that
part of the gap."""


def hold_joins(search: CostSearch) -> None:
    """Improve plan and bound of a search by planning the rest with joins held here and there."""
    assert search.best is not None
    if search.joins is not None:
        plan, joins = search.best, search.joins
        held = [int(plan.last[each.before].max()) + 1 for each in joins.chain]
        _hold(search, joins, held)
    if search.stages is not None:
        _branch(search, search.stages)
        search.stages.climb_below(search.best.cost, lambda: search.late)
        search.raise_bound(search.stages.safe)


def _branch(search: CostSearch, bound: StageBound) -> None:
    """Try the slots of joins on the paths of a stage bound, cheapest first."""
    assert search.best is not None
    each, work, vain, least = len(search.graph) * search.graph.slots + LEAST, 0, 0, np.inf
    for cost, slots in bound.joins():
        known = search.best.cost
        idle = vain > VAIN * WORK and cost - bound.value < RISE * (known - bound.value)
        if idle or work > WORK or cost >= known or search.late:
            least = min(least, cost - SAFE * (cost + known))
            break
        held, steps = _hold(search, bound.barriers, slots)
        least, more = min(least, max(held, cost)), each * (1 + steps)
        work, vain = work + more, 0 if search.best.cost < known else vain + more
    search.raise_bound(least)


def _hold(search: CostSearch, joins: Stages, slots: list[int]) -> tuple[float, int]:
    """Plan with joins in some slots; return the bound of such plans, and the steps it took."""
    release, due = search.graph.release.copy(), search.graph.due.copy()
    for barrier, slot in zip(joins.chain, slots, strict=True):
        due[barrier.before] = np.minimum(due[barrier.before], slot - 1)
        release[barrier.after] = np.maximum(release[barrier.after], slot)
    part = search.restricted(release, due)
    if part is None:
        return np.inf, 0
    assert part.multipliers is not None
    if part.multipliers.pairs > LARGEST_CUT:
        return 0.0, STEPS
    step = 0
    while step < STEPS and not (part.closed or part.late or part.multipliers.settled):
        part.multiplier_step()
        step += 1
        if step % DECODE == 0:
            part.decode()
    if part.worth_a_proof and not part.closed:
        part.prove_briefly()
    if part.best is not None:
        search.keep(part.best)
    return part.bound, step
