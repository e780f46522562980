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
from downclock.planners.slots.search import CostSearch
from downclock.planners.slots.stage_bound import StageBound

STEPS = 30
"""Steps of the multipliers for each choice of slots at most."""

DECODE = 4
"""Every so many of them plans are made of what they choose."""

WORK, LEAST = 20_000_000, 150_000
"""Work of all steps in a search of usual length (`CostSearch.step_work`), and of one at least."""

WORTH = 0.003
"""Gap above which it is worth it."""

VAIN, RISE = 0.4, 0.1
"""Part of that work without a better plan that is enough where the bound rose by less than that
part of the gap."""


def hold_joins(search: CostSearch, part: float) -> None:
    """Improve plan and bound of a search by planning the rest with joins held here and there.

    ``part`` is how long the search is, as a part of the usual.
    """
    assert search.best is not None
    left = int(part * WORK / (search.step_work + LEAST))
    if search.gap < WORTH or left < 1:
        return
    if search.joins is not None:
        plan, joins = search.best, search.joins
        held = [int(plan.last[each.before].max()) + 1 for each in joins.chain]
        left -= _hold(search, joins, held, left)[1]
    if search.stages is not None:
        _branch(search, search.stages, left)
        search.stages.climb_below(search.best.cost, lambda: search.late)
        search.raise_bound(search.stages.safe)


def _branch(search: CostSearch, bound: StageBound, most: int) -> None:
    """Try the slots of joins on the paths of a stage bound, cheapest first, with so many steps."""
    assert search.best is not None
    left, vain, least = most, 0, np.inf
    for cost, slots in bound.joins():
        known = search.best.cost
        idle = vain > VAIN * most and cost - bound.value < RISE * (known - bound.value)
        if idle or left <= 0 or cost >= known or search.late or search.gap < WORTH:
            least = min(least, cost)
            break
        search.raise_bound(min(least, cost) - SAFE * (cost + known))
        held, steps = _hold(search, bound.barriers, slots, left)
        least, left = min(least, max(held, cost)), left - steps
        vain = 0 if search.best.cost < known else vain + steps
    if np.isfinite(least):
        search.raise_bound(least - SAFE * (least + search.best.cost))


def _hold(search: CostSearch, joins: Stages, slots: list[int], most: int) -> tuple[float, int]:
    """Plan with joins in some slots; return the bound of such plans, and the steps it took."""
    release, due = search.graph.release.copy(), search.graph.due.copy()
    for barrier, slot in zip(joins.chain, slots, strict=True):
        due[barrier.before] = np.minimum(due[barrier.before], slot - 1)
        release[barrier.after] = np.maximum(release[barrier.after], slot)
    part = search.restricted(release, due)
    if part is None:
        return np.inf, 1
    while part.steps < min(STEPS, most) and not (part.closed or part.late or part.settled):
        part.multiplier_step()
        if part.steps % DECODE == 0:
            part.decode()
    if part.worth_a_proof and not part.closed:
        part.prove_briefly()
    if part.best is not None:
        search.keep(part.best)
    return part.bound, 1 + part.steps
