"""Lower bounds on the cost of any schedule of a slot graph.

All use the convex envelope of power with "off" included, so they hold for every set of levels,
with static power and with or without pausing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from downclock.exact.cost_model import SlotGraph, SlotGraphIndex, SlotPlan, overlap
from downclock.exact.cost_order import PRECISION
from downclock.exact.cost_windows import capacity_windows
from downclock.units import Bools, Floats, Ints

NEAR = 4
"""Slots around the best plan that the small cuts of `CapacityPrices` see."""

SAFE = 1e-9
"""Part of a bound that is given away to rounding."""


def aggregate_bound(graph: SlotGraph) -> tuple[float, Floats]:
    """Cheapest way to do all work if it were one liquid; also a price of a machine per slot.

    Water-filling: the cheapest unit steps of all slots and machines. The second value (slots,)
    is what one more machine would save, a start for `CapacityPrices`.
    """
    step = graph.unit_steps()
    value = np.multiply.outer(graph.price, step)
    rows = np.sort(value, axis=None)
    need = int(graph.work.sum())
    full, rest = divmod(need, graph.machines)
    if full >= rows.size:
        full, rest = rows.size - 1, graph.machines
    bound = graph.machines * rows[:full].sum() + rest * rows[full]
    mu = rows[full]
    return float(bound * (1.0 - SAFE)), np.maximum(mu - value, 0.0).sum(axis=1)


@dataclass(slots=True)
class CapacityPrices:
    """Lagrangian of the machine limit: a price per slot for holding a machine (slots,).

    Every step ends with one minimum cut over all slots but without machines. Its value plus what
    the prices promise is a lower bound; the best one equals that of the interval linear program.
    Before it, the prices move along cuts over few labels: those near the best plan and near what
    earlier full cuts chose. Labels that a bound excludes from any plan cheaper than ``upper`` are
    dropped for good.

    Attributes:
        index, table: the graph and its (envelope) table.
        tight: windows count machines too (`capacity_windows`): better bounds where the deadline
            is near, but orders of less variety.
        price: the prices of the last full cut; ``best_price`` those of the best ``bound``.
        relaxed: the intervals of the last full cut, which may overload machines.
    """

    index: SlotGraphIndex
    table: Floats
    price: Floats
    bound: float = 0.0
    tight: bool = False
    best_price: Floats = field(init=False)
    relaxed: SlotPlan = field(init=False)
    _labels: _Labels = field(init=False)
    _near: Bools = field(init=False)
    _pace: float = 1.0
    _steps: int = 0

    def __post_init__(self) -> None:
        from downclock.kernels.cost_lists import window_labels

        index = self.index
        early, late, _ = index.windows(index.before, index.after)
        if self.tight:
            early, late = capacity_windows(index)
        none = np.zeros(len(index.graph), dtype=np.int64)
        self._labels = _Labels(*window_labels(early, late, index.length, none, none, -1, 1))
        self._near = np.zeros(self._labels.lab.size, dtype=bool)
        self.best_price = self.price
        self.relaxed = SlotPlan(early, late, 0.0)

    def step(self, plan: SlotPlan, inner: int = 15) -> None:
        """Move the prices along small cuts, then take the bound of one full cut."""
        upper = plan.cost
        self._near |= self._labels.around(plan, NEAR)
        if self._steps > 0:
            self.price = self._inner(self.best_price, upper, inner)
        self._steps += 1
        value, slot, residual, _, _ = self._cut(self._labels, self.price, upper)
        self.relaxed = SlotPlan(slot[0::2].copy(), slot[1::2].copy(), np.nan)
        self._near |= self._labels.around(self.relaxed, 2)
        if value > self.bound:
            self.bound, self.best_price = value, self.price
        self._drop(residual, upper - value)

    def _inner(self, price: Floats, upper: float, steps: int) -> Floats:
        """Deflected Polyak steps on the few labels; return the best prices found."""
        few, graph = self._labels.taken(self._near), self.index.graph
        best, best_price = -np.inf, price
        direction, stale, pace = np.zeros_like(price), 0, self._pace
        for _ in range(steps):
            value, slot, _, _, _ = self._cut(few, price, upper)
            if value > best:
                best, best_price, stale = value, price, 0
            else:
                stale += 1
            if upper - best <= 1e-8 * upper:
                break
            if stale >= 4:
                pace, stale, price = 0.5 * pace, 0, best_price
                direction = np.zeros_like(price)
            load = overlap(SlotPlan(slot[0::2], slot[1::2], np.nan), graph.slots)
            excess = (load - graph.machines).astype(np.float64)
            direction, price = _moved(price, direction, excess, pace * (upper - value))
        self._pace = max(0.1, min(1.0, 1.3 * pace))
        return best_price

    @property
    def pairs(self) -> int:
        """Pairs of labels of a step: what it costs."""
        few = self._labels.taken(self._near)
        return self._labels.pairs + 15 * few.pairs

    def residuals(self, upper: float) -> tuple[float, tuple[Ints, Ints, Floats, Ints, Floats]]:
        """Cut once more at the best prices; return the bound, the labels and their residuals."""
        labels = self._labels
        value, _, left, arcs, over = self._cut(labels, self.best_price, upper)
        return value, (labels.at, labels.lab, left, arcs, over)

    def _cut(
        self, labels: _Labels, price: Floats, upper: float
    ) -> tuple[float, Ints, Floats, Ints, Floats]:
        from downclock.kernels.cost_cut import cut

        index = self.index
        toll = np.concatenate([[0.0], np.cumsum(price)])
        value, label, left, arcs, over = cut(
            self.table, index.row, labels.at, labels.lab, toll, index.before, index.after,
            PRECISION / (upper or 1.0),
        )  # fmt: skip
        promised = index.graph.machines * toll[-1]
        slot = labels.lab[labels.at[:-1] + label]
        return value - promised - SAFE * (upper + promised), slot, left, arcs, over

    def _drop(self, residual: Floats, gap: float) -> None:
        """Drop labels whose residual term alone exceeds the gap; the cut's own have none."""
        keep: Bools = residual <= gap * (1.0 + 1e-6)
        if gap > 0.0 and np.mean(keep) < 0.9:
            self._labels, self._near = self._labels.taken(keep), self._near[keep]


@dataclass(frozen=True, slots=True, eq=False)
class _Labels:
    """Labels of all variables, ragged (see `kernels.cost_cut`)."""

    at: Ints
    lab: Ints

    @property
    def owner(self) -> Ints:
        return np.repeat(np.arange(self.at.size - 1), np.diff(self.at))

    @property
    def pairs(self) -> int:
        size = np.diff(self.at)
        return int(size[0::2] @ size[1::2])

    def taken(self, keep: Bools) -> _Labels:
        kept = np.bincount(self.owner[keep], minlength=self.at.size - 1)
        return _Labels(np.concatenate([[0], np.cumsum(kept)]).astype(np.int64), self.lab[keep])

    def around(self, plan: SlotPlan, reach: int) -> Bools:
        """Mark labels up to ``reach`` slots from a plan's first and last slots."""
        slot = np.column_stack([plan.first, plan.last]).ravel()
        return np.asarray(np.abs(self.lab - slot[self.owner]) <= reach)


def _moved(price: Floats, direction: Floats, excess: Floats, gap: float) -> tuple[Floats, Floats]:
    """Return the new direction (deflected so as not to turn back) and the new prices."""
    excess = np.where((price <= 0.0) & (excess < 0.0), 0.0, excess)
    size = float(direction @ direction)
    turn = max(0.0, -1.5 * float(direction @ excess) / size) if size else 0.0
    direction = excess + min(turn, 1.0) * direction
    size = float(direction @ direction)
    if size > 0.0:
        price = np.maximum(price + max(gap, 0.0) / size * direction, 0.0)
    return direction, price
