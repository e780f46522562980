"""The separable bound: at multipliers of machines every task chooses its interval by itself.

It is quick at any size: tasks of equal work share their table. The multipliers come from the
fluid relaxation, where work fills the machines no sooner and no later than paths allow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners.slots.fluid import SAFE, Fluid, work_multipliers
from downclock.planners.slots.kernels.tables import cheapest_held
from downclock.planners.slots.model import SlotGraphIndex, SlotPlan, overlap
from downclock.units import Floats, Ints

STEPS = 12
"""Steps towards the best worth of work; half as wide after each that fails."""


@dataclass(frozen=True, slots=True, eq=False)
class SeparableBound:
    """The bound and what it is made of.

    It sees two things that the fluid relaxation does not: tasks begin and end with whole slots,
    and they have windows, as something comes before and after them.

    Attributes:
        bound: no schedule costs less.
        multiplier: of a machine in each slot (slots,).
        least: what each task costs at least at these multipliers (n,).
    """

    bound: float
    multiplier: Floats
    least: Floats

    @classmethod
    def of(cls, index: SlotGraphIndex, fluid: Fluid) -> SeparableBound:
        """Find the best worth of work by ever smaller steps; the table may be cut at a length."""
        graph = index.graph
        early, late, fits = index.windows(index.before, index.after)
        if not fits:
            early, late = np.zeros_like(early), np.full_like(late, graph.slots - 1)
        worth = work_multipliers(graph, fluid, early, late)
        best, factor, step = cls._at(index, fluid, worth, early, late), 1.0, 0.08
        for _ in range(STEPS):
            near = [
                (cls._at(index, fluid, x * worth, early, late), x)
                for x in (factor - step, factor + step)
            ]
            better, x = max(near, key=lambda pair: pair[0].bound)
            if better.bound > best.bound:
                best, factor = better, x
            else:
                step *= 0.5
        return best

    @classmethod
    def _at(
        cls, index: SlotGraphIndex, fluid: Fluid, worth: Floats, early: Ints, late: Ints
    ) -> SeparableBound:
        """Bound where a value of work is worth so much in each slot (slots,)."""
        graph, longest = index.graph, index.table.shape[2]
        multiplier = fluid.machine_multipliers(graph.price, worth)
        toll = np.concatenate([[0.0], np.cumsum(multiplier)])
        start, end = cheapest_held(index.table, toll)
        least = np.maximum(start[index.row, early], end[index.row, late])
        if longest < graph.slots:
            # A longer interval than the table holds pauses in all slots but one a unit.
            paused = np.concatenate([[0.0], np.cumsum(np.sort(multiplier))])
            slots = np.maximum(longest + 1 - graph.work, 0)
            least = np.minimum(least, worth.min() * fluid.work + paused[slots])
        promised = graph.machines * float(toll[-1])
        bound = float(least.sum()) - promised
        if not np.isfinite(bound):  # a task is longer than all slots: nothing is said
            return cls(0.0, multiplier, least)
        return cls(bound - SAFE * (bound + 2.0 * promised), multiplier, least)

    def losses(self, index: SlotGraphIndex, plan: SlotPlan) -> tuple[Floats, Floats]:
        """Split what a plan costs above the bound among tasks (n,) and idle machines (slots,)."""
        graph = index.graph
        toll = np.concatenate([[0.0], np.cumsum(self.multiplier)])
        held = toll[plan.last + 1] - toll[plan.first]
        by_task = index.costs(plan.first, plan.last) + held
        idle = graph.machines - overlap(plan, graph.slots)
        return by_task - self.least, self.multiplier * idle
