"""Unequal machines, or machines with their own prices, under a fixed order: still one cut.

Without equal machines an interval alone no longer tells the cost of a task. Once every task has
its machine it does again: the table is that of the machine, and neighbours on a machine are edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.slots.fluid import SAFE, Fluid
from downclock.planners.slots.kernels.tables import cheapest_held
from downclock.planners.slots.model import SlotGraph, SlotGraphIndex, SlotPlan
from downclock.planners.slots.order import best_intervals, order_edges
from downclock.planners.slots.separable_bound import STEPS
from downclock.units import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class MixedMachines:
    """A graph on machines of several classes: each class has its price, levels and power.

    Attributes:
        graphs: the graph as each class of machine sees it: same tasks, edges and slots.
        machine_class: class of each machine (m,).
        index: the graph's neighbours and windows, for as many machines as there are; its table is
            those of all classes, one after another.
        row: row of each class and task in the table (classes, n).
        least: slots each task needs at least in each class (classes, n).
    """

    graphs: tuple[SlotGraph, ...]
    machine_class: Ints
    index: SlotGraphIndex
    row: Ints
    least: Ints

    @classmethod
    def of(cls, graphs: Sequence[SlotGraph], machine_class: Ints) -> MixedMachines:
        """Make the tables; graphs of other tasks or slots are refused."""
        common = graphs[0]
        if any(other.slots != common.slots or len(other) != len(common) for other in graphs):
            raise InvalidInput("must have the same tasks and slots", item="machines")
        index = SlotGraphIndex.of(replace(common, machines=machine_class.size))
        each = [SlotGraphIndex.of(graph).priced(common.slots) for graph in graphs]
        index = replace(index, table=np.concatenate([one.table for one in each]))
        start = np.concatenate([[0], np.cumsum([len(one.table) for one in each])])
        row = np.array([at + one.row for at, one in zip(start[:-1], each, strict=True)])
        least = np.array([graph.least_slots for graph in graphs])
        return cls(tuple(graphs), machine_class, index, row, least)

    def best(self, machine: Ints, rank: Ints) -> SlotPlan | None:
        """Cheapest intervals for a map and an order (n,); None where they miss a deadline."""
        group, every = self.machine_class[machine], np.arange(machine.size)
        own = replace(
            self.index,
            row=np.ascontiguousarray(self.row[group, every]),
            length=np.ascontiguousarray(self.least[group, every]),
        )
        before, after = order_edges(own, machine, rank)
        return best_intervals(own, SlotPlan(rank, rank, np.inf), before, after)

    def bound(self) -> float:
        """No plan costs less: the separable bound, every task in its window.

        The multipliers are those of fluid work of some worth (see `SeparableBound`), 0 among them.
        """
        soonest = replace(self.index, length=np.ascontiguousarray(self.least.min(axis=0)))
        early, late, fits = soonest.windows(self.index.before, self.index.after)
        if not fits:
            return np.inf
        fluids = [Fluid.of(graph) for graph in self.graphs]
        seen = list(zip(self.graphs, fluids, strict=True))
        # A value of each class is worth as many of the first class as there are for all work.
        ratio = [fluids[0].need / fluid.need for fluid in fluids]
        top = max(
            float(graph.price.max() * fluid.slope.max()) / r
            for (graph, fluid), r in zip(seen, ratio, strict=True)
        )

        def at(worth: float) -> float:
            multiplier = [
                fluid.machine_multipliers(graph.price, worth * r)
                for (graph, fluid), r in zip(seen, ratio, strict=True)
            ]
            return self._separable(multiplier, early, late)

        best, worth, step = max((at(x * top), x * top, top / 8) for x in np.linspace(0.0, 1.0, 9))
        for _ in range(STEPS):
            better, x = max((at(max(x, 0.0)), x) for x in (worth - step, worth + step))
            best, worth, step = (better, x, step) if better > best else (best, worth, 0.5 * step)
        return best

    def _separable(self, multiplier: list[Floats], early: Ints, late: Ints) -> float:
        """Bound at multipliers of the machines of each class (classes of (slots,))."""
        least, promised = np.full(len(self.index.graph), np.inf), 0.0
        for group, (each, row) in enumerate(zip(multiplier, self.row, strict=True)):
            toll = np.concatenate([[0.0], np.cumsum(each)])
            promised += float(np.sum(self.machine_class == group) * toll[-1])
            start, end = cheapest_held(self.index.table[row.min() : row.max() + 1], toll)
            own = row - row.min()
            least = np.minimum(least, np.maximum(start[own, early], end[own, late]))
        total = float(least.sum())
        return total - promised - SAFE * (total + promised)
