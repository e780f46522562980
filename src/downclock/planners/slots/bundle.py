"""The model of the Lagrangian bound that `CapacityMultipliers` climbs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners.slots.model import SlotGraphIndex
from downclock.units import Floats, Ints

ROOM = 50
"""Choices that are remembered for each group of tasks."""


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """Choices of intervals by past cuts, for each group of tasks that edges connect.

    Attributes:
        index, table: the graph and its table.
        group: group of each task (n,).
        cost, weight, size: cost and weight of the choices of each group (groups, ROOM), and how
            many there are (groups,).
        load: machines held in each slot by each choice (groups, ROOM, slots).
        chosen: first and last slot of each task in the choices of its group (ROOM, n, 2).
    """

    index: SlotGraphIndex
    table: Floats
    group: Ints
    cost: Floats
    load: Floats
    chosen: Ints
    weight: Floats
    size: Ints

    @classmethod
    def of(cls, index: SlotGraphIndex, table: Floats) -> Bundle:
        """Make an empty model."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        n = len(index.graph)
        near = coo_array((np.ones(index.before.size), (index.before, index.after)), shape=(n, n))
        count, group = connected_components(near, directed=False)
        every = (count, ROOM)
        return cls(
            index,
            table,
            group.astype(np.int64),
            np.zeros(every),
            np.zeros((*every, index.graph.slots)),
            np.zeros((ROOM, n, 2), dtype=np.int64),
            np.zeros(every),
            np.zeros(count, dtype=np.int64),
        )

    def clear(self) -> None:
        """Forget every choice."""
        self.size[:] = 0
        self.weight[:] = 0.0

    def add(self, slot: Ints) -> int:
        """Remember what a cut chose: first and last slots in turns (2n,); count what is new."""
        from downclock.planners.slots.kernels.bundle import add_atoms

        first, last = np.ascontiguousarray(slot[0::2]), np.ascontiguousarray(slot[1::2])
        return int(
            add_atoms(
                self.table, self.index.row, self.group, first, last,
                self.cost, self.load, self.chosen, self.weight, self.size,
            )
        )  # fmt: skip

    def next_multipliers(
        self, centre: Floats, pace: float, close: float, sweeps: int
    ) -> tuple[Floats, float]:
        """Best multipliers of the model that are not far from ``centre``, and the model there."""
        from downclock.planners.slots.kernels.bundle import next_multipliers

        return next_multipliers(
            self.cost, self.load, self.weight, self.size, centre, self.index.graph.machines,
            pace, close, sweeps,
        )  # fmt: skip

    def average(self) -> Floats:
        """First and last slot of each task (n, 2) in the solution of the relaxation.

        The weights of the choices make it: each group is in each of its choices in part.
        """
        share = self.weight[self.group].T[:, :, None]
        return np.asarray((share * self.chosen).sum(axis=0))

    def sample(self, random: np.random.Generator) -> Ints:
        """First and last slot of each task (n, 2) in one choice of its group, by its weight."""
        point = random.random(self.size.size)[:, None]
        pick = (np.cumsum(self.weight, axis=1) < point).sum(axis=1)
        pick = np.minimum(pick, self.size - 1)[self.group]
        return np.asarray(self.chosen[pick, np.arange(pick.size)])
