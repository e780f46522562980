"""The model of the Lagrangian bound that `CapacityMultipliers` climbs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners.slots.kernels.bundle import Atoms, add_atoms
from downclock.planners.slots.model import SlotGraphIndex
from downclock.units import Floats, Ints

ROOM = 50
"""Choices that are remembered for each group of tasks."""


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """Choices of intervals by past cuts, for each group of tasks that edges connect.

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
