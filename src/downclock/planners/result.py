"""What a solver answers: a schedule, what it costs, and how far from optimal it can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from downclock.schedule.schedule import Schedule

Status: TypeAlias = Literal["optimal", "feasible", "infeasible"]

PROVEN = 1e-6
"""Relative gap below which a schedule counts as optimal."""


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """A schedule with its proof.

    Attributes:
        schedule: the schedule; where nothing fits, one that rejects every task.
        objective: what it costs, in ``unit``; energy in joules unless the solver says otherwise.
        bound: no schedule costs less.
        status: optimal (proven), feasible, or infeasible.
        method: what found it, and how.
        unit: of objective and bound; empty for a weighted sum of several units.
    """

    schedule: Schedule
    objective: float
    bound: float
    status: Status
    method: str = ""
    unit: str = "J"

    @property
    def gap(self) -> float:
        """How much of the objective might be saved at most, relative."""
        if self.objective <= 0.0:
            return 0.0
        return max(0.0, (self.objective - self.bound) / self.objective)

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"{self.status}: {self.objective:.6g}{unit}, bound {self.bound:.6g}{unit},"
            f" gap {100.0 * self.gap:.2f} % ({self.method})"
        )


def status_of(objective: float, bound: float) -> Status:
    """Tell whether the gap is closed."""
    return "optimal" if objective - bound <= PROVEN * max(abs(objective), 1e-300) else "feasible"


def without_rounding(bound: float, objective: float) -> float:
    """The bound; where it exceeds what a schedule costs by rounding only, that cost.

    A bound further above a schedule is wrong, and is left for everyone to see.
    """
    return min(bound, objective) if bound <= objective + PROVEN * abs(objective) else bound
