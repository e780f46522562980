"""A schedule: segments, power spans and outcomes. Everything else is computed from it.

- A **segment** says which part of which task ran where, when and at which clock.
- A **power span** says when a server was on, waking, asleep or down. A server is in its initial
  state (on or asleep) from time 0 to its first span; any other time without a span it sleeps.
- An **outcome** says how each task ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from downclock.columns import Columns, html_table, taken
from downclock.units import Floats, Ints, Names, as_column

ON, WAKING, ASLEEP, DOWN = 0, 1, 2, 3
STATES = ("on", "waking", "asleep", "down")
"""Power states of a server, by code."""

DONE, REJECTED, FAILED, PENDING = 0, 1, 2, 3
STATUSES = ("done", "rejected", "failed", "pending")
"""How a task ended, by code."""

AS_IT_RAN = "as-it-ran"
"""In place of a policy: a trace's own starts and processors."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Segments(Columns):
    """Rows (n,) of work done; a gang is one row per processor, equal but for the processor.

    Attributes:
        task, processor: indices into the problem.
        attempt: 0 for the first try; only the last attempt's shares count as work done.
        start_s, end_s: when.
        core, memory, volt: the operating point (see `points`).
        share: fraction of the task done here, whatever the kind.
    """

    task: Ints
    attempt: Ints
    processor: Ints
    start_s: Floats
    end_s: Floats
    core: Floats
    memory: Floats
    volt: Floats
    share: Floats

    def __post_init__(self) -> None:
        _as_columns(self, ints=("task", "attempt", "processor"))

    def __len__(self) -> int:
        return self.task.size

    @property
    def points(self) -> Floats:
        """Operating points (n, 3)."""
        return np.column_stack([self.core, self.memory, self.volt])

    @classmethod
    def of(
        cls,
        task: Ints,
        processor: Ints,
        start_s: Floats,
        end_s: Floats,
        points: Floats,
        share: Floats | float = 1.0,
        attempt: Ints | int = 0,
    ) -> Segments:
        """Make segments from point rows (n, 3); whole tasks and first attempts by default."""
        n = len(task)
        attempts, shares = np.zeros(n, dtype=np.int64) + attempt, np.zeros(n) + share
        core, memory, volt = points.T
        return cls(task, attempts, processor, start_s, end_s, core, memory, volt, shares)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PowerSpans(Columns):
    """Power states of servers, rows (n,); ``end_s`` may be infinite: the boundary closes it."""

    server: Ints
    state: Ints
    start_s: Floats
    end_s: Floats

    def __post_init__(self) -> None:
        _as_columns(self, ints=("server", "state"))

    def _words(self) -> Mapping[str, Sequence[str]]:
        return {"state": STATES}

    def __len__(self) -> int:
        return self.server.size

    def only(self, *states: int) -> PowerSpans:
        """The rows in these states."""
        return taken(self, np.isin(self.state, states))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Outcomes(Columns):
    """How each task of the problem ended, a row per task (n,).

    Attributes:
        status: DONE, REJECTED, FAILED or PENDING.
        reason: why, where it is not done; empty otherwise.
        work: actual work / estimated work; 1 in plans.
    """

    status: Ints
    reason: Names
    work: Floats

    def __post_init__(self) -> None:
        _as_columns(self, ints=("status",), names=("reason",))

    def _words(self) -> Mapping[str, Sequence[str]]:
        return {"status": STATUSES}

    @classmethod
    def all_done(cls, n: int) -> Outcomes:
        """Every task done, as estimated."""
        return cls(np.full(n, DONE), np.full(n, "", dtype=object), np.ones(n))

    def __len__(self) -> int:
        return self.status.size

    def counts(self) -> dict[str, int]:
        """Number of tasks by status."""
        return {name: int(np.sum(self.status == code)) for code, name in enumerate(STATUSES)}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Schedule:
    """The answer to a problem."""

    segments: Segments
    spans: PowerSpans
    outcomes: Outcomes
    policy: str = ""

    @property
    def makespan_s(self) -> float:
        """End of the last segment; 0 where nothing runs."""
        return float(self.segments.end_s.max(initial=0.0))

    def __repr__(self) -> str:
        counts = self.outcomes.counts()
        ends = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        by = f" by {self.policy}" if self.policy else ""
        return (
            f"Schedule{by}: {ends}; {len(self.segments)} segments, {len(self.spans)} power spans,"
            f" makespan {self.makespan_s:g} s"
        )

    def _repr_html_(self) -> str:
        counts = self.outcomes.counts()
        rows = {
            **{f"tasks {status}": f"{count}" for status, count in counts.items() if count},
            "segments": f"{len(self.segments)}",
            "power spans": f"{len(self.spans)}",
            "makespan": f"{self.makespan_s:g} s",
        }
        return html_table(rows.items(), caption=f"Schedule by {self.policy}")


def _as_columns(
    table: Segments | PowerSpans | Outcomes, ints: tuple[str, ...], names: tuple[str, ...] = ()
) -> None:
    for name in table.__slots__:
        kind: type = np.int64 if name in ints else np.float64
        kind = object if name in names else kind
        column: NDArray[Any] = as_column(getattr(table, name), kind)
        object.__setattr__(table, name, column)
