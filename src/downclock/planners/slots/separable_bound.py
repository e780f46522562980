"""A bound where every task chooses its interval apart from all others, at prices of machines.

It is quick at any size: tasks of equal work share their table. The prices come from work as one
liquid that is poured onto the machines no sooner and no later than paths allow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners.slots.bounds import SAFE
from downclock.planners.slots.model import (
    SlotGraph,
    SlotGraphIndex,
    SlotPlan,
    interval_costs,
    overlap,
)
from downclock.units import Floats, Ints

STEPS = 12
"""Steps towards the best worth of work; half as wide after each that fails."""

PARTS = 60
"""Parts of the time at most that have a worth of work of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class SeparableBound:
    """The bound and what it is made of.

    It sees two things that liquid work does not: tasks begin and end with whole slots, and they
    have windows, as something comes before and after them.

    Attributes:
        bound: no schedule costs less.
        price: of a machine in each slot (slots,).
        least: what each task costs at least at these prices (n,).
    """

    bound: float
    price: Floats
    least: Floats

    @classmethod
    def of(cls, index: SlotGraphIndex, table: Floats) -> SeparableBound:
        """Find the best worth of work by ever smaller steps; ``table`` may be cut at a length."""
        graph = index.graph
        early, late, fits = index.windows(index.before, index.after)
        if not fits:
            early, late = np.zeros_like(early), np.full_like(late, graph.slots - 1)
        worth = worth_of_work(graph, early, late)
        best, factor, step = cls._at(index, table, worth, early, late), 1.0, 0.08
        for _ in range(STEPS):
            near = [
                (cls._at(index, table, x * worth, early, late), x)
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
        cls, index: SlotGraphIndex, table: Floats, worth: Floats, early: Ints, late: Ints
    ) -> SeparableBound:
        """Bound where a unit of work is worth so much in each slot (slots,)."""
        from downclock.planners.slots.kernels.tables import cheapest_held

        graph = index.graph
        price = machine_prices(graph, worth)
        toll = np.concatenate([[0.0], np.cumsum(price)])
        start, end = cheapest_held(table, toll)
        least = np.maximum(start[index.row, early], end[index.row, late])
        if table.shape[2] < graph.slots:
            # A longer interval than the table holds pauses in all slots but one a unit.
            paused = np.concatenate([[0.0], np.cumsum(np.sort(price))])
            slots = np.maximum(table.shape[2] + 1 - graph.work, 0)
            least = np.minimum(least, worth.min() * graph.work + paused[slots])
        promised = graph.machines * float(toll[-1])
        bound = float(least.sum()) - promised
        if not np.isfinite(bound):  # a task is longer than all slots: nothing is said
            return cls(0.0, price, least)
        return cls(bound - SAFE * (bound + 2.0 * promised), price, least)

    def losses(self, index: SlotGraphIndex, table: Floats, plan: SlotPlan) -> tuple[Floats, Floats]:
        """Split what a plan costs above the bound among tasks (n,) and idle machines (slots,)."""
        graph = index.graph
        toll = np.concatenate([[0.0], np.cumsum(self.price)])
        held = toll[plan.last + 1] - toll[plan.first]
        by_task = interval_costs(index, table, plan.first, plan.last) + held
        idle = graph.machines - overlap(plan, graph.slots)
        return by_task - self.least, self.price * idle


def machine_prices(graph: SlotGraph, worth: Floats) -> Floats:
    """What a machine gains in each slot (slots,) where a unit of work is worth so much."""
    value = np.multiply.outer(graph.price, graph.unit_steps())
    return np.asarray(np.maximum(worth[:, None] - value, 0.0).sum(axis=1))


def worth_of_work(graph: SlotGraph, early: Ints, late: Ints) -> Floats:
    """What one more unit of liquid work would cost in each slot (slots,).

    No more can be done by a slot than tasks have that may have started, and no less than those have
    that must have ended. Where liquid work breaks that most the time is split: such a rule holds
    with equality in the best filling.
    """
    most = np.minimum(_at_full_speed(graph, early), graph.work.sum())
    behind = _at_full_speed(graph, graph.slots - 1 - late)[::-1]
    least = np.maximum(graph.work.sum() - behind, 0.0)
    value = np.multiply.outer(graph.price, graph.unit_steps())
    worth = np.zeros(graph.slots)
    parts, count = [(0, graph.slots, 0.0, float(graph.work.sum()))], 1
    while parts:
        begin, end, done, goal = parts.pop()
        worth[begin:end], filled = _fill(value[begin:end], (goal - done) / graph.machines)
        reached = done + graph.machines * np.cumsum(filled)[:-1]
        wrong = np.maximum(reached - most[begin + 1 : end], least[begin + 1 : end] - reached)
        if count < PARTS and wrong.max(initial=0.0) > graph.machines * value.shape[1]:
            at = begin + 1 + int(np.argmax(wrong))
            true = float(np.clip(reached[at - begin - 1], least[at], most[at]))
            parts += [(begin, at, done, true), (at, end, true, goal)]
            count += 1
    return worth


def _at_full_speed(graph: SlotGraph, first: Ints) -> Floats:
    """Units done before each slot (slots + 1,) if all tasks started in ``first`` at full speed."""
    top, slots = int(graph.units[-1]), graph.slots
    rate, whole = np.zeros(slots + 1), np.minimum(first + graph.work // top, slots)
    np.add.at(rate, first, top)
    np.add.at(rate, whole, -top)
    each = np.cumsum(rate)
    np.add.at(each, whole, graph.work % top)
    return np.concatenate([[0.0], np.cumsum(each[:slots])])


def _fill(value: Floats, units: float) -> tuple[float, Floats]:
    """Take the cheapest unit steps (slots, steps): what the last one costs, units of each slot."""
    order = np.argsort(value, axis=None, kind="stable")
    count = int(np.clip(np.ceil(units), 0, order.size))
    filled = np.bincount(order[:count] // value.shape[1], minlength=len(value))
    return float(value.ravel()[order[max(count - 1, 0)]]), filled.astype(np.float64)
