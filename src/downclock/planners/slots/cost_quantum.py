"""Which costs are possible at all: whole multiples of a quantum, where prices are round numbers.

A bound that leaves less than one quantum below a plan proves the plan optimal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners.slots.model import SlotGraph
from downclock.units import Floats

FINEST = 1e-7
"""Quanta below this part of the dearest slot are of no use."""

LOOSE = 0.02
"""Part of a quantum that is left to rounding."""


@dataclass(frozen=True, slots=True)
class CostQuantum:
    """Every plan costs ``base`` plus whole quanta; a quantum of 0 says nothing."""

    base: float
    quantum: float

    @classmethod
    def of(cls, graph: SlotGraph) -> CostQuantum:
        """Find the greatest quantum.

        For even levels of one convex curve a plan is a choice of as many unit steps as there is
        work, so only differences of steps count; else it is a sum of slots at some power.
        """
        need = int(graph.work.sum())
        if graph.monge and graph.pause and len(graph.units) == 1:
            value = np.unique(np.multiply.outer(graph.price, graph.unit_steps()))
            base = need * float(value[0])
            return cls(base, _divisor(value[1:] - value[0], need))
        return cls(0.0, _divisor(np.unique(np.multiply.outer(graph.price, graph.power)), need))

    def least_from(self, bound: float) -> float:
        """Least possible cost that is not below a bound."""
        if self.quantum <= 0.0:
            return bound
        steps = np.ceil((bound - self.base) / self.quantum - LOOSE)
        return max(bound, float(self.base + steps * self.quantum) * (1.0 - 1e-12))

    def below(self, cost: float) -> float:
        """What a cheaper plan than one of ``cost`` costs at most."""
        return cost - 0.5 * self.quantum


def _divisor(value: Floats, terms: int) -> float:
    """Greatest common divisor of numbers up to rounding; 0 where it is too fine."""
    value = value[value > 0.0]
    if not value.size:
        return 0.0
    most = float(value.max())
    common = 0.0
    for each in value:
        common = _common(float(each), common, 1e-10 * most)
        if 0.0 < common < FINEST * most:
            return 0.0
    common = most / round(most / common)
    wrong = np.abs(value / common - np.round(value / common)).max()
    return common if wrong * terms < 0.5 * LOOSE else 0.0


def _common(a: float, b: float, small: float) -> float:
    while b > small:
        a, b = b, a - b * round(a / b)
        b = abs(b)
    return a
