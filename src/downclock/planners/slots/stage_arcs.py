"""Arcs of a stage in which every task chooses its interval, at multipliers of the arc's own.

As a fluid a stage fills every slot; its tasks cannot, as they begin and end with whole slots. In
an arc (the slots between two barriers) machines have a multiplier for each slot. They start from a
worth of fluid work and climb by subgradients; whatever they are, the arc costs no less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners.slots.kernels.stages import (
    Climb,
    Room,
    StageTasks,
    climb_arcs,
    worth_multipliers,
)
from downclock.units import Bools, Floats, Ints

FIRST_TRIES, TRIES = 60, 10
"""Steps of the multipliers of an arc at first, and whenever others have moved."""

FIRST_SCALE = 0.5
"""Part of the way to the target that a first step goes."""


@dataclass(slots=True, eq=False)
class StageArcs:
    """Some arcs of a stage.

    Attributes:
        table: cost of tasks in intervals (rows, slots, lengths).
        tasks: of the stage, equal ones together.
        machines, rented: of all, and those of them that tasks beside may use.
        arcs: first slot and end of each (k, 2).
        at: their places in the table of all arcs of the stage (k, 2).
        climb: their multipliers.
        value: cost of the stage's work in each arc, less what its spare machines are worth (k,).
        spare: machines that its tasks leave to others on average (k, slots).
    """

    table: Floats
    tasks: StageTasks
    machines: int
    rented: int
    arcs: Ints
    at: Ints
    climb: Climb
    value: Floats
    spare: Floats
    fresh: bool = True

    @classmethod
    def of(
        cls, table: Floats, worth: tuple[Floats, Floats], tasks: StageTasks, room: Room,
        at: Ints, arcs: Ints,
    ) -> StageArcs:  # fmt: skip
        """Begin with the multipliers of a worth of work: its marginal costs, and their widths."""
        k = len(arcs)
        multiplier = worth_multipliers(table, tasks, room, *worth, arcs)
        climb = Climb(multiplier, np.full(k, FIRST_SCALE), np.zeros(k))
        value, spare = np.full(k, -np.inf), np.zeros(multiplier.shape)
        return cls(table, tasks, room.machines, room.rented, arcs, at, climb, value, spare)

    @property
    def work(self) -> int:
        """Operations of one step in all arcs, about."""
        return int(operations(self.tasks, self.arcs).sum())

    def raise_to(self, arcs: Floats, room: Floats, most: Floats) -> Floats:
        """Return the costs of all arcs of the stage (begins, ends), raised where these cost more.

        ``room`` (slots,) is what others pay for a machine; ``most`` (begins, ends) is what arcs
        may cost on paths that are not too dear.
        """
        place = tuple(self.at.T)
        self.climb.target[:] = most[place]
        self.value, self.spare = climb_arcs(
            self.table, self.tasks, Room(self.machines, self.rented, room), self.arcs, self.climb,
            FIRST_TRIES if self.fresh else TRIES,
        )  # fmt: skip
        self.fresh = False
        raised = arcs.copy()
        raised[place] = np.maximum(arcs[place], self.value)
        return raised

    def keep(self, alive: Bools) -> None:
        """Forget arcs that no cheap path uses; ``alive`` (begins, ends)."""
        left = alive[tuple(self.at.T)]
        if not np.all(left):
            self.arcs, self.at = np.ascontiguousarray(self.arcs[left]), self.at[left]
            self.climb = Climb(*(each[left] for each in self.climb))
            self.value, self.spare = self.value[left], self.spare[left]

    def spare_in(self, begin: int, end: int, fluid: float) -> Floats | None:
        """Machines that are spare in an arc (slots,); None where a ``fluid`` costs as much."""
        found = np.flatnonzero((self.at[:, 0] == begin) & (self.at[:, 1] == end))
        if found.size and self.value[found[0]] > fluid:
            return np.asarray(self.spare[found[0]])
        return None


def operations(tasks: StageTasks, arcs: Ints) -> Ints:
    """Operations to let every task choose in each of some arcs (k,), about."""
    return np.asarray(tasks.row.size * (arcs[:, 1] - arcs[:, 0]) ** 2 // 2)
