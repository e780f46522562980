"""A linear program that grows, and what HiGHS makes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from downclock.planners.highs import solve_integer
from downclock.units import Floats, Ints

STEPS, STEPS_A_ROW = 1000, 1
"""Steps that an interior point, and the simplex after it, may take, and more for each row: odd
numbers may send the simplex in circles."""

LARGE = 100.0
"""What the largest cost of a program is at least, when it is solved."""


@dataclass(slots=True)
class Program:
    """A linear program that grows: columns with costs and limits, rows as triples.

    HiGHS takes reduced costs below 1e-7 for none: money and CO2 a joule are less, so small costs
    are solved as large ones (`LARGE`).
    """

    cost: list[Floats] = field(default_factory=list)
    upper: list[Floats] = field(default_factory=list)
    whole: list[Floats] = field(default_factory=list)
    width: int = 0
    row: list[Ints] = field(default_factory=list)
    column: list[Ints] = field(default_factory=list)
    value: list[Floats] = field(default_factory=list)
    least: list[Floats] = field(default_factory=list)
    most: list[Floats] = field(default_factory=list)
    height: int = 0

    def columns(self, cost: Floats, upper: Floats | float = np.inf, *, whole: bool = False) -> Ints:
        """Add columns from 0 to ``upper``; return their numbers, in the shape of ``cost``."""
        self.cost.append(cost.ravel())
        self.upper.append(np.broadcast_to(np.asarray(upper, float), cost.shape).ravel())
        self.whole.append(np.full(cost.size, float(whole)))
        numbers = self.width + np.arange(cost.size).reshape(cost.shape)
        self.width += cost.size
        return numbers

    def rows(self, count: int, least: Floats | float, most: Floats | float = np.inf) -> Ints:
        """Add rows between two limits; return their numbers."""
        self.least.append(np.broadcast_to(np.asarray(least, float), (count,)))
        self.most.append(np.broadcast_to(np.asarray(most, float), (count,)))
        numbers = self.height + np.arange(count)
        self.height += count
        return numbers

    def put(self, row: Ints, column: Ints, value: Floats | float) -> None:
        """Write entries; what is written twice adds up."""
        row, column = np.broadcast_arrays(row, column)
        self.row.append(row.ravel())
        self.column.append(column.ravel())
        self.value.append(np.broadcast_to(np.asarray(value, float), row.shape).ravel())

    def solve(self, *, nodes: int | None = None, interior: bool = False) -> Any:
        """Minimise the cost; the answer of `scipy.optimize.milp`.

        ``interior``: by an interior point, of the program without whole numbers.
        """
        from scipy.optimize import Bounds, LinearConstraint
        from scipy.sparse import csr_array

        cost, upper = np.concatenate(self.cost), np.concatenate(self.upper)
        unit = min(1.0, float(np.abs(cost).max(initial=0.0)) / LARGE) or 1.0
        entries = np.concatenate(self.row), np.concatenate(self.column)
        matrix: Any = csr_array(
            (np.concatenate(self.value), entries), shape=(self.height, self.width)
        )
        least, most = np.concatenate(self.least), np.concatenate(self.most)
        if interior:
            return _in(unit, _by_interior_point(cost / unit, upper, matrix, least, most))
        options: dict[str, float] = {"mip_rel_gap": 1e-7}
        options |= {} if nodes is None else {"node_limit": nodes}
        found = solve_integer(
            cost / unit,
            constraints=LinearConstraint(matrix, least, most),
            integrality=np.concatenate(self.whole),
            bounds=Bounds(0.0, upper),
            options=options,
        )
        return _in(unit, found)


def _in(unit: float, found: Any) -> Any:
    """The answer with its values in a unit."""
    for name in ("fun", "mip_dual_bound"):
        if found.get(name) is not None:
            found[name] *= unit
    return found


def _by_interior_point(
    cost: Floats, upper: Floats, matrix: Any, least: Floats, most: Floats
) -> Any:
    from scipy.optimize import linprog

    equal = least == most
    limits: Any = np.column_stack([np.zeros(upper.size), upper])
    return linprog(
        cost,
        A_ub=-matrix[~equal],
        b_ub=-least[~equal],
        A_eq=matrix[equal],
        b_eq=least[equal],
        bounds=limits,
        method="highs-ipm",
        options={"maxiter": STEPS + STEPS_A_ROW * matrix.shape[0]},
    )
