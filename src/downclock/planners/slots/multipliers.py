"""The Lagrangian bound of the machine limit, and what its relaxation chooses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from downclock.planners.slots.fluid import SAFE
from downclock.planners.slots.kernels.bundle import Atoms, add_atoms, next_multipliers
from downclock.planners.slots.kernels.cut import cut
from downclock.planners.slots.kernels.fixing import priced_intervals
from downclock.planners.slots.kernels.lists import window_labels
from downclock.planners.slots.model import SlotGraphIndex, SlotPlan, overlap
from downclock.planners.slots.order import NO_ANCHOR, NO_FLOW, scale_for
from downclock.planners.slots.windows import capacity_windows
from downclock.units import Bools, Floats, Ints

NEAR = 4
"""Slots around the best plan that the small cuts of `CapacityMultipliers` see."""

TRIES = 16
"""How often one step moves the multipliers."""

SETTLED = 1e-7
"""Part of a plan's cost that the bound must still promise to gain."""

SWEEPS = 100
"""Sweeps over the groups for each solution of the model; more where it promises nothing."""

ROOM = 50
"""Choices that are remembered for each group of tasks."""


@dataclass(slots=True)
class CapacityMultipliers:
    """Lagrangian of the machine limit: a multiplier per slot for holding a machine (slots,).

    A minimum cut over all slots but without machines, at any multipliers, less what they promise
    is a lower bound; the best one equals that of the interval linear program. Multipliers move by a
    bundle method: what past cuts chose makes a model of the bound (`kernels.bundle`), and the
    next multipliers are the best in the model that are not far from the best known. A cut over few
    labels, near the plan and what full cuts chose, comes first: often it shows already that the
    model promised too much. Labels that a bound excludes from any plan cheaper than ``upper`` are
    dropped for good.

    Attributes:
        index: the graph, with its (envelope) table.
        multiplier: those of the best ``bound``.
        settled: none are better.
        bundle: the model; it holds the relaxation's solution too.
        relaxed: the intervals of the last full cut, which may overload machines.
    """

    index: SlotGraphIndex
    multiplier: Floats
    bound: float = 0.0
    settled: bool = False
    relaxed: SlotPlan = field(init=False)
    _labels: _Labels = field(init=False)
    _near: Bools = field(init=False)
    bundle: Bundle = field(init=False)
    _value: float = -np.inf
    _pace: float = 0.0
    _nulls: int = 0
    _stale: bool = False
    _finer: int = 0

    def __post_init__(self) -> None:
        index = self.index
        early, late = capacity_windows(index)
        none = np.zeros(len(index.graph), dtype=np.int64)
        self._labels = _Labels(*window_labels(early, late, index.length, none, none, -1, 1))
        self._near = np.zeros(self._labels.lab.size, dtype=bool)
        self.bundle = Bundle.of(index)
        self.relaxed = SlotPlan(early, late, 0.0)

    def step(self, plan: SlotPlan, upper: float, late: Callable[[], bool] = lambda: False) -> None:
        """Move the multipliers; only plans cheaper than ``upper`` are of interest.

        It ends where it is ``late``.
        """
        self._near |= self._labels.around(plan, NEAR)
        if self._pace == 0.0:
            self._begin(upper)
            graph = self.index.graph
            excess = overlap(self.relaxed, graph.slots) - graph.machines
            hope = max(upper - self._value, SETTLED * upper)
            self._pace = hope / max(float(excess @ excess), 1.0)
        few = self._labels.taken(self._near)
        for _ in range(TRIES):
            if self.settled or self.bound >= upper:
                self.settled = True
                return
            if late():
                return
            aim, model = next_multipliers(
                self.bundle.atoms, self.multiplier, self.index.graph.machines, self._pace,
                1e-10 * upper, SWEEPS << 2 * self._finer,
            )  # fmt: skip
            hope = model - self._value
            if hope <= SETTLED * upper:
                self._settle(upper)
                continue
            value, slot, _ = self._cut(few, aim, upper)
            fresh = self.bundle.add(slot)
            if value < self._value + 0.1 * hope and fresh:
                self._null()
                continue
            few = self._full(aim, hope, upper)

    def _begin(self, upper: float) -> None:
        """Cut over all labels at the multipliers in hand."""
        value, slot, residual = self._cut(self._labels, self.multiplier, upper)
        self._took(slot)
        self._value, self.bound = value, max(value, self.bound)
        self._drop(residual, upper - value)

    def _full(self, aim: Floats, hope: float, upper: float) -> _Labels:
        """Cut over all labels; go to the multipliers if they are good. Return the few labels."""
        value, slot, residual = self._cut(self._labels, aim, upper)
        fresh = self._took(slot)
        if value >= self._value + 0.1 * hope:
            self._pace *= 2.0 if value >= self._value + 0.5 * hope else 1.0
            self.multiplier, self._value, self._nulls = aim, value, 0
            self._finer = 0
            self.bound = max(self.bound, value)
            self._drop(residual, upper - value)
        elif fresh:
            self._null()
        else:
            self._settle(upper)
        return self._labels.taken(self._near)

    def _null(self) -> None:
        self._nulls += 1
        if self._nulls % 6 == 0:
            self._pace *= 0.6

    def _settle(self, upper: float) -> None:
        """Solve the model better; then start anew if labels were dropped that the model may use."""
        if self._finer < 2:
            self._finer += 1
            return
        if not self._stale:
            self.settled = True
            return
        self._stale, self._finer = False, 0
        self.bundle.clear()
        self._begin(upper)

    def _took(self, slot: Ints) -> bool:
        """Remember what a full cut chose; tell whether the model did not know it."""
        fresh = self.bundle.add(slot)
        self.relaxed = SlotPlan(slot[0::2].copy(), slot[1::2].copy(), np.nan)
        self._near |= self._labels.around(self.relaxed, 2)
        return fresh > 0

    @property
    def pairs(self) -> int:
        """Pairs of labels of a step: what it costs."""
        few = self._labels.taken(self._near)
        return 4 * self._labels.pairs + 15 * few.pairs

    def interval_values(self, table: Floats, upper: float) -> tuple[Floats, float]:
        """Cost of each task in each interval at the best multipliers of machines and of edges.

        Return (n, slots, slots) by task, first and last slot, infinite where no label allows it,
        and what the multipliers promise: the tasks' least values less the promise are a bound.
        ``table`` is the true one; tasks choose separately, so it need not be convex.
        """
        index, slots = self.index, self.index.graph.slots
        flow = np.zeros((index.before.size, slots))
        self._cut(self._labels, self.multiplier, upper, flow)
        toll = np.concatenate([[0.0], np.cumsum(self.multiplier)])
        start, end = np.zeros((len(index.graph), slots)), np.zeros((len(index.graph), slots))
        # An edge's flow is paid by ends from its slot on, and given back for starts after it.
        np.add.at(end, index.before, np.cumsum(flow, axis=1))
        np.add.at(start[:, 1:], index.after, -np.cumsum(flow, axis=1)[:, :-1])
        start -= toll[:-1]
        end += toll[1:]
        value = priced_intervals(table, index.row, self._labels.at, self._labels.lab, start, end)
        return value, index.graph.machines * float(toll[-1])

    def _cut(
        self, labels: _Labels, multiplier: Floats, upper: float, edge_flow: Floats = NO_FLOW
    ) -> tuple[float, Ints, Floats]:
        index = self.index
        toll = np.concatenate([[0.0], np.cumsum(multiplier)])
        value, label, left = cut(
            index.table, index.row, labels.at, labels.lab, toll, NO_ANCHOR, index.before,
            index.after, scale_for(index.graph, upper or 1.0), edge_flow,
        )  # fmt: skip
        promised = index.graph.machines * toll[-1]
        slot = labels.lab[labels.at[:-1] + label]
        return value - promised - SAFE * (upper + promised), slot, left

    def _drop(self, residual: Floats, gap: float) -> None:
        """Drop labels whose residual term alone exceeds the gap; the cut's own have none."""
        keep: Bools = residual <= gap * (1.0 + 1e-6)
        if gap > 0.0 and np.mean(keep) < 0.9:
            self._labels, self._near = self._labels.taken(keep), self._near[keep]
            self._stale = True


@dataclass(frozen=True, slots=True, eq=False)
class _Labels:
    """Labels of all variables, ragged (see `planners.slots.kernels.cut`)."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """The model: choices of intervals by past cuts, for each group of tasks that edges connect.

    Attributes:
        index: the graph, with its table.
        group: group of each task (n,).
        atoms: what they chose.
    """

    index: SlotGraphIndex
    group: Ints
    atoms: Atoms

    @classmethod
    def of(cls, index: SlotGraphIndex) -> Bundle:
        """Make an empty model."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        n = len(index.graph)
        near = coo_array((np.ones(index.before.size), (index.before, index.after)), shape=(n, n))
        count, group = connected_components(near, directed=False)
        atoms = Atoms(
            np.zeros((count, ROOM)), np.zeros((count, ROOM)),
            np.zeros((count, ROOM, index.graph.slots)), np.zeros((ROOM, n, 2), dtype=np.int64),
            np.zeros(count, dtype=np.int64),
        )  # fmt: skip
        return cls(index, group.astype(np.int64), atoms)

    def clear(self) -> None:
        """Forget every choice."""
        self.atoms.size[:] = 0
        self.atoms.weight[:] = 0.0

    def add(self, slot: Ints) -> int:
        """Remember what a cut chose: first and last slots in turns (2n,); count what is new."""
        first, last = np.ascontiguousarray(slot[0::2]), np.ascontiguousarray(slot[1::2])
        index = self.index
        return int(add_atoms(index.table, index.row, self.group, first, last, self.atoms))

    def average(self) -> Floats:
        """First and last slot of each task (n, 2) in the solution of the relaxation.

        The weights of the choices make it: each group is in each of its choices in part.
        """
        share = self.atoms.weight[self.group].T[:, :, None]
        return np.asarray((share * self.atoms.chosen).sum(axis=0))

    def sample(self, random: np.random.Generator) -> Ints:
        """First and last slot of each task (n, 2) in one choice of its group, by its weight."""
        point = random.random(self.atoms.size.size)[:, None]
        pick = (np.cumsum(self.atoms.weight, axis=1) < point).sum(axis=1)
        pick = np.minimum(pick, self.atoms.size - 1)[self.group]
        return np.asarray(self.atoms.chosen[pick, np.arange(pick.size)])
