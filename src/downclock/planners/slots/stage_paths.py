"""Paths from barrier to barrier: their costs at some multipliers, and slots barriers may lie in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from downclock.units import Floats, Ints


@dataclass(slots=True, eq=False)
class Relaxed:
    """What stages and tasks beside choose at some multipliers.

    Attributes:
        constant: part of the value that no arc has.
        arcs: cost of the arcs of each stage, tasks beside included (begins, ends).
        beside: the part of it that tasks beside have.
        fore, back: least cost up to each slot of each barrier, and from it on.
        load: machines that tasks beside hold beyond the room for them (stages, slots).
        times: how often each task beside is run (d,).
    """

    constant: float
    arcs: list[Floats]
    beside: list[Floats]
    fore: list[Floats]
    back: list[Floats]
    load: Floats
    times: Floats

    @property
    def value(self) -> float:
        """The bound."""
        return self.constant + float(self.fore[-1][-1])

    def through(self, stage: int) -> Floats:
        """Least cost of a path through each arc of a stage, the constant left out."""
        return self.fore[stage][:, None] + self.arcs[stage] + self.back[stage + 1]

    def path(self) -> list[tuple[int, int]]:
        """Begin and end of each stage on the cheapest path, as places in its arcs."""
        _, places = next(self.paths())
        return list(pairwise(places))

    def paths(self) -> Iterator[tuple[float, list[int]]]:
        """Costs of all paths, cheapest first, and the places of their barriers, both ends too."""
        heap = [(float(self.back[0][0]), 0.0, [0])]
        while heap:
            total, paid, places = heappop(heap)
            stage = len(places) - 1
            if stage == len(self.arcs):
                yield total, places
                continue
            costs = paid + self.arcs[stage][places[-1]]
            totals = costs + self.back[stage + 1]
            for end in np.flatnonzero(np.isfinite(totals)):
                heappush(heap, (float(totals[end]), float(costs[end]), [*places, int(end)]))


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """Slots for barriers to lie in.

    Attributes:
        cost: what plans with barriers there cost at least.
        low, high: first and last slot of each barrier (k,).
        multiplier: of machines, where some are known that are good there (slots,).
    """

    cost: float
    low: Ints
    high: Ints
    multiplier: Floats | None = None

    @property
    def size(self) -> int:
        """Slots from first to last, of all barriers."""
        return int((self.high - self.low).sum())

    def halves(self, cost: float, multiplier: Floats) -> list[Box]:
        """Split the slots of the barrier that has the most."""
        wide = int(np.argmax(self.high - self.low))
        middle = (self.low[wide] + self.high[wide]) // 2
        low, high = self.low.copy(), self.high.copy()
        low[wide], high[wide] = middle + 1, middle
        cost = max(cost, self.cost)
        return [Box(cost, self.low, high, multiplier), Box(cost, low, self.high, multiplier)]


def shortest(arcs: list[Floats]) -> tuple[list[Floats], list[Floats]]:
    """Least cost up to each slot of each barrier, and from it on, over arcs of all stages."""
    fore, back = [np.zeros(arcs[0].shape[0])], [np.zeros(arcs[-1].shape[1])]
    for each in arcs:
        fore.append(np.min(fore[-1][:, None] + each, axis=0))
    for each in reversed(arcs):
        back.append(np.min(each + back[-1], axis=1))
    return fore, back[::-1]
