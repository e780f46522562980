"""Lower bounds on the cost of any schedule of a slot graph.

All use the convex envelope of power with "off" included, so they hold for every set of levels,
with static power and with or without pausing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from downclock.exact.cost_model import SlotGraph, SlotGraphIndex, SlotPlan, overlap
from downclock.exact.cost_order import PRECISION
from downclock.units import Bools, Floats, Ints

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

    Every step is one minimum cut without machines. Its value plus what the prices promise is a
    lower bound; the best bound equals that of the interval linear program. Labels that a bound
    excludes from any plan cheaper than ``upper`` are dropped, so that later cuts are smaller.

    Attributes:
        index, table: the graph and its (envelope) table.
        price: the present prices; ``best_price`` those of the best ``bound``.
        relaxed: the intervals of the last cut, which may overload machines.
    """

    index: SlotGraphIndex
    table: Floats
    price: Floats
    bound: float = 0.0
    best_price: Floats = field(init=False)
    relaxed: SlotPlan = field(init=False)
    _at: Ints = field(init=False)
    _lab: Ints = field(init=False)
    _label: Ints = field(init=False)
    _direction: Floats = field(init=False)
    _pace: float = 1.0
    _stale: int = 0

    def __post_init__(self) -> None:
        from downclock.kernels.cost_lists import window_labels

        index = self.index
        early, late, _ = index.windows(index.before, index.after)
        none = np.zeros(len(index.graph), dtype=np.int64)
        self._at, self._lab = window_labels(early, late, index.length, none, none, -1, 1)
        self.best_price = self.price
        self._direction = np.zeros_like(self.price)
        self.relaxed = SlotPlan(early, late, 0.0)

    def step(self, upper: float) -> None:
        """Cut at the present prices, keep the bound, move the prices (Polyak, deflected)."""
        value, residual = self._cut(upper)
        graph = self.index.graph
        self.relaxed = self._intervals()
        if value > self.bound:
            gain = value - self.bound
            self.bound, self.best_price = value, self.price
            self._stale = 0 if gain > 0.02 * (upper - value) else self._stale + 1
        else:
            self._stale += 1
        self._drop(residual, upper - value)
        excess = (overlap(self.relaxed, graph.slots) - graph.machines).astype(np.float64)
        if self._stale >= 8:
            self._pace, self._stale = 0.6 * self._pace, 0
            self.price = self.best_price
        self._move(excess, upper - value)

    def _move(self, excess: Floats, gap: float) -> None:
        excess = np.where((self.price <= 0.0) & (excess < 0.0), 0.0, excess)
        size = float(self._direction @ self._direction)
        turn = max(0.0, -1.5 * float(self._direction @ excess) / size) if size else 0.0
        self._direction = excess + min(turn, 1.0) * self._direction
        size = float(self._direction @ self._direction)
        if size > 0.0:
            pace = self._pace * max(gap, 0.0) / size
            self.price = np.maximum(self.price + pace * self._direction, 0.0)

    def _cut(self, upper: float) -> tuple[float, Floats]:
        from downclock.kernels.cost_cut import cut

        index = self.index
        toll = np.concatenate([[0.0], np.cumsum(self.price)])
        scale = PRECISION / upper
        value, label, residual, _, _ = cut(
            self.table, index.row, self._at, self._lab, toll, index.before, index.after, scale
        )
        self._label = self._lab[self._at[:-1] + label]
        value -= index.graph.machines * toll[-1]
        return value - SAFE * (upper + index.graph.machines * toll[-1]), residual

    @property
    def pairs(self) -> int:
        """Pairs of labels left: what a cut costs."""
        size = np.diff(self._at)
        return int(size[0::2] @ size[1::2])

    def residuals(self, upper: float) -> tuple[float, tuple[Ints, Ints, Floats, Ints, Floats]]:
        """Cut once more at the best prices; return the bound and (labels and) residuals."""
        from downclock.kernels.cost_cut import cut

        index = self.index
        toll = np.concatenate([[0.0], np.cumsum(self.best_price)])
        value, _, left, arcs, over = cut(
            self.table, index.row, self._at, self._lab, toll, index.before, index.after,
            PRECISION / upper,
        )  # fmt: skip
        value -= index.graph.machines * toll[-1]
        return value - SAFE * upper, (self._at, self._lab, left, arcs, over)

    def _intervals(self) -> SlotPlan:
        return SlotPlan(self._label[0::2].copy(), self._label[1::2].copy(), np.nan)

    def _drop(self, residual: Floats, gap: float) -> None:
        """Drop labels whose residual term alone exceeds the gap; the cut's own have none."""
        keep: Bools = residual <= gap * (1.0 + 1e-6)
        if gap > 0.0 and np.mean(keep) < 0.9:
            owner = np.repeat(np.arange(self._at.size - 1), np.diff(self._at))
            self._lab = self._lab[keep]
            kept = np.bincount(owner[keep], minlength=self._at.size - 1)
            self._at = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
