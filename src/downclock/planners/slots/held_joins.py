"""Plans and bounds where joins lie in given slots.

Where joins lie ties all tasks together: moving one moves whole stages, which orders that change
little cannot do, and a bound that mixes their slots is low. With the barriers of a chain held every
task has a window of a stage or some, few edges are left, multipliers of machines are soon the best,
and HiGHS is quick. Slots are tried in the order of the stage bound; what it says of those that are
left, and the bounds of those tried, are a bound of all. Where multipliers see more than the stage
bound does, joins are held in boxes of slots, which are split until no cheaper plan is in them.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from downclock.planners.slots.barriers import Stages
from downclock.planners.slots.fluid import SAFE
from downclock.planners.slots.search import CostSearch
from downclock.planners.slots.stage_bound import StageBound
from downclock.planners.slots.stage_paths import Box
from downclock.units import Floats, Ints

STEPS = 30
"""Steps of the multipliers for each choice of slots at most."""

DECODE = 4
"""Every so many of them plans are made of what they choose."""

WORK, LEAST = 40_000_000, 15
"""Work of all steps in a search of usual length (pairs of labels, as the cuts see them), and what
one takes besides for each pair of tasks."""

PROOF, IN_VAIN = 500_000, 8_000_000
"""What work HiGHS takes, about: little where it finds the best plan."""

PATHS = 0.5
"""Part of that work for single slots; the rest is for boxes."""

WORTH, BOXES = 0.003, 0.015
"""Gap above which it is worth it, and worth it to split boxes."""

VAIN, RISE = 0.4, 0.1
"""Part of that work without a better plan that is enough where the bound rose by less than that
part of the gap."""

FAR = 2.0
"""So many times as far from the plan as the stage bound multipliers are of no use in a box."""


def hold_here(search: CostSearch, part: float) -> int:
    """Improve the best plan of a search with its joins held; return what work is left.

    ``part`` is how long the search is, as a part of the usual.
    """
    left, joins = int(part * WORK), search.joins
    if joins is None or search.best is None or search.gap < WORTH:
        return left
    last = search.best.last
    held = np.array([last[each.before].max() + 1 for each in joins.chain])
    return left - _hold(search, joins, held, left)[1]


def hold_elsewhere(search: CostSearch, most: int) -> None:
    """Improve plan and bound with joins held where the stage bound says, with so much work."""
    stages = search.stages
    if stages is None or search.best is None or search.gap < WORTH:
        return
    left = most - _follow(search, stages, int(PATHS * most))
    stages.climb_below(search.best.cost, lambda: search.late)
    search.raise_bound(stages.safe)
    _split(search, stages, left)


def _follow(search: CostSearch, bound: StageBound, most: int) -> int:
    """Hold joins on the paths of a stage bound, cheapest first; return the work it took."""
    assert search.best is not None
    left, vain, least = most, 0, np.inf
    for cost, slots in bound.joins():
        known = search.best.cost
        idle = vain > VAIN * most and cost - bound.value < RISE * (known - bound.value)
        if idle or left <= 0 or cost >= known or search.late or search.gap < WORTH:
            least = min(least, cost)
            break
        search.raise_bound(min(least, cost) - SAFE * (cost + known))
        held, work = _hold(search, bound.barriers, slots, left)
        least, left = min(least, max(held, cost)), left - work
        vain = 0 if search.best.cost < known else vain + work
    if np.isfinite(least):
        search.raise_bound(least - SAFE * (least + search.best.cost))
    return most - left


def _split(search: CostSearch, bound: StageBound, left: int) -> None:
    """Hold joins in boxes of slots, the least bound first, and split them, with so much work."""
    assert search.best is not None
    least, count, boxes = search.best.cost, 0, list[tuple[float, int, Box]]()
    parts: list[Box] | None = [bound.everywhere]
    while parts is not None:
        for part in parts:
            box = bound.within(part, search.best.cost)
            if box is not None:
                heappush(boxes, (box.cost, count, box))
                count += 1
        if not boxes:
            break
        cost, _, box = heappop(boxes)
        search.raise_bound(min(least, cost) - SAFE * (cost + search.best.cost))
        parts, held, work = _parts(search, bound, box, left)
        least, left = min(least, held), left - work
    search.raise_bound(least - SAFE * (least + search.best.cost))


def _parts(
    search: CostSearch, bound: StageBound, box: Box, left: int
) -> tuple[list[Box] | None, float, int]:
    """Bound a box: its halves where plans may be in it, what others in it cost, and the work.

    None where it is not worth it to go on: its cost is then that of all that is left.
    """
    assert search.best is not None
    known = search.best.cost
    if left <= 0 or box.cost >= known or search.late or search.gap < BOXES:
        return None, box.cost, 0
    if box.size == 0:
        held, work = _hold(search, bound.barriers, box.low, left)
        return [], max(held, box.cost), work
    part = _restricted(search, bound.barriers, box.low, box.high, box.multiplier)
    if part is None or part.multipliers is None:
        return [], np.inf, LEAST * len(search.graph) ** 2
    far = FAR * (known - box.cost)
    work = _climb(part, left, far)
    _keep(search, part)
    if known - part.bound > far:
        return None, box.cost, work
    if part.closed:
        return [], part.bound, work
    return box.halves(part.bound, part.multipliers.multiplier), np.inf, work


def _hold(search: CostSearch, joins: Stages, slots: Ints, most: int) -> tuple[float, int]:
    """Plan with joins in some slots; return the bound of such plans, and the work it took."""
    part, least = _restricted(search, joins, slots, slots), LEAST * len(search.graph) ** 2
    if part is None:
        return np.inf, least
    work = least + _climb(part, most)
    if part.worth_a_proof and not part.closed:
        part.prove_briefly()
        work += PROOF if part.closed else IN_VAIN
    _keep(search, part)
    return part.bound, work


def _restricted(
    search: CostSearch, joins: Stages, low: Ints, high: Ints, multiplier: Floats | None = None
) -> CostSearch | None:
    """Search with joins from a first to a last slot (k,); None where nothing fits."""
    release, due = search.graph.release.copy(), search.graph.due.copy()
    for barrier, first, last in zip(joins.chain, low, high, strict=True):
        due[barrier.before] = np.minimum(due[barrier.before], last - 1)
        release[barrier.after] = np.maximum(release[barrier.after], first)
    return search.restricted(release, due, multiplier)


def _climb(part: CostSearch, most: int, far: float = np.inf) -> int:
    """Move multipliers until they settle or are too ``far`` from the plan; return the work."""
    assert part.multipliers is not None
    assert part.best is not None
    work, each = 0, LEAST * len(part.graph) ** 2 + part.multipliers.pairs
    while part.steps < STEPS and work < most and not (part.closed or part.late or part.settled):
        part.multiplier_step()
        work += each
        if part.steps % DECODE == 0:
            part.decode()
            if part.best.cost - part.bound > far:
                break
    return work


def _keep(search: CostSearch, part: CostSearch) -> None:
    if part.best is not None:
        search.keep(part.best)
