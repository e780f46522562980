"""The fluid relaxation: work as a fluid that any machine does in any slot, at any mix of levels.

It uses the convex envelope of power with "off" included, so what it says holds for every set of
levels, with static power and with or without pausing. Tasks with power curves of their own become
one fluid by the value of a unit of each curve: whatever the values, a slot of a machine does no
more value at a power than the envelope over all curves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners.slots.model import SlotGraph, hull_points
from downclock.units import Floats, Ints

SAFE = 1e-9
"""Part of a bound that is given away to rounding."""

PARTS = 60
"""Parts of the time at most that have a multiplier of work of their own."""

HALVINGS = 50
"""Steps of the bisection for the values of units."""


@dataclass(frozen=True, slots=True, eq=False)
class Fluid:
    """All work of a graph as one fluid, counted in value.

    Attributes:
        value: of a unit of each power curve (curves,); 1 where there is one curve.
        work: value of each task's work (n,).
        width, slope: value that each further step of a machine in a slot adds, and the power that
            a value takes there (steps,); slopes rise.
    """

    value: Floats
    work: Floats
    width: Floats
    slope: Floats

    @classmethod
    def of(cls, graph: SlotGraph) -> Fluid:
        """Make the fluid; unit steps where there is one curve."""
        if len(graph.units) == 1:
            slope = graph.unit_steps()
            return cls(np.ones(1), graph.work.astype(np.float64), np.ones(slope.size), slope)
        value = _values(graph)
        x = np.append(0.0, (value[:, None] * graph.units).ravel())
        y = np.append(0.0, graph.power.ravel())
        by_value = np.lexsort((y, x))
        x, y = x[by_value], y[by_value]
        kept = hull_points(x, y)
        width = np.diff(x[kept])
        return cls(value, value[graph.curve] * graph.work, width, np.diff(y[kept]) / width)

    @property
    def need(self) -> float:
        """Value of all work."""
        return float(self.work.sum())

    def marginals(self, price: Floats) -> Floats:
        """What a value costs in each slot and step (slots, steps)."""
        return np.multiply.outer(price, self.slope)

    def machine_multipliers(self, price: Floats, worth: Floats | float) -> Floats:
        """What a machine gains in each slot (slots,) where a value is worth so much there."""
        gain = np.reshape(worth, (-1, 1)) - self.marginals(price)
        return np.asarray(np.maximum(gain, 0.0) @ self.width)


def _values(graph: SlotGraph) -> Floats:
    """Value of a unit of each curve: what it costs at the mean price, its machine's time included.

    A slot of a machine costs what makes all work just fit.
    """
    price = float(graph.price.mean()) or 1.0
    work = np.bincount(graph.curve, graph.work, len(graph.units))
    room = float(graph.machines * graph.slots)
    least, most = 0.0, price * float(graph.power.max() * graph.units.max())
    for _ in range(HALVINGS):
        machine = 0.5 * (least + most)
        each = (price * graph.power + machine) / graph.units
        units = np.take_along_axis(graph.units, each.argmin(axis=1)[:, None], axis=1)[:, 0]
        least, most = (machine, most) if (work / units).sum() > room else (least, machine)
    each = (price * graph.power + most) / graph.units
    return np.asarray(each.min(axis=1) / each.min(axis=1).max())


def fluid_bound(graph: SlotGraph, fluid: Fluid) -> float:
    """Cost of the cheapest way to do all work if it were a fluid; no schedule costs less."""
    cost = fluid.marginals(graph.price).ravel()
    amount = np.tile(graph.machines * fluid.width, graph.slots)
    order = np.argsort(cost, kind="stable")
    before = np.cumsum(amount[order]) - amount[order]
    taken = np.clip(fluid.need - before, 0.0, amount[order])
    return float(taken @ cost[order] * (1.0 - SAFE))


def work_multipliers(graph: SlotGraph, fluid: Fluid, early: Ints, late: Ints) -> Floats:
    """What one more value of fluid work would cost in each slot (slots,).

    No more can be done by a slot than tasks have that may have started, and no less than those have
    that must have ended. Where fluid work breaks that most the time is split: such a rule holds
    with equality in the best filling.
    """
    most = np.minimum(_at_full_speed(graph, fluid, early), fluid.need)
    behind = _at_full_speed(graph, fluid, graph.slots - 1 - late)[::-1]
    least = np.maximum(fluid.need - behind, 0.0)
    cost, slot_s = fluid.marginals(graph.price), graph.machines * float(fluid.width.sum())
    worth = np.zeros(graph.slots)
    parts, count = [(0, graph.slots, 0.0, fluid.need)], 1
    while parts:
        begin, end, done, target = parts.pop()
        worth[begin:end], filled = _fill(
            cost[begin:end], fluid.width, (target - done) / graph.machines
        )
        reached = done + graph.machines * np.cumsum(filled)[:-1]
        wrong = np.maximum(reached - most[begin + 1 : end], least[begin + 1 : end] - reached)
        if count < PARTS and wrong.max(initial=0.0) > slot_s:
            at = begin + 1 + int(np.argmax(wrong))
            true = float(np.clip(reached[at - begin - 1], least[at], most[at]))
            parts += [(begin, at, done, true), (at, end, true, target)]
            count += 1
    return worth


def _at_full_speed(graph: SlotGraph, fluid: Fluid, first: Ints) -> Floats:
    """Value done before each slot (slots + 1,) if all tasks started in ``first`` at full speed."""
    top, slots = graph.units[graph.curve, -1], graph.slots
    value = fluid.value[graph.curve]
    rate, full = np.zeros(slots + 1), np.minimum(first + graph.work // top, slots)
    np.add.at(rate, first, value * top)
    np.add.at(rate, full, -value * top)
    each = np.cumsum(rate)
    np.add.at(each, full, value * (graph.work % top))
    return np.concatenate([[0.0], np.cumsum(each[:slots])])


def _fill(cost: Floats, width: Floats, amount: float) -> tuple[float, Floats]:
    """Take the cheapest steps (slots, steps): what the last one costs, value of each slot."""
    order = np.argsort(cost, axis=None, kind="stable")
    taken = np.cumsum(np.tile(width, len(cost))[order])
    count = int(np.clip(np.searchsorted(taken, amount * (1.0 - 1e-12)) + 1, 1, order.size))
    slot, step = np.divmod(order[:count], width.size)
    filled = np.zeros(len(cost))
    np.add.at(filled, slot, width[step])
    return float(cost.ravel()[order[count - 1]]), filled
