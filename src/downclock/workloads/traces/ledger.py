"""What became of a trace's rows: kept, left out and why, malformed and where; in GPU-hours too."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from downclock.errors import InvalidInput

MALFORMED = "malformed"
OUTSIDE = "outside the window"
"""Why rows are left out that nobody asked about: they do not count against the coverage."""

STEP, NEVER_STARTED = "is a step of a job", "never started"
AGAIN = "says again what an earlier row says"
"""Why rows are left out that are no jobs, or did not run: they have no GPU-hours."""

LISTED = 20
"""Malformed rows that are named; the others are counted."""


@dataclass(slots=True)
class Ledger:
    """Counts the rows of one file.

    Attributes:
        source: the file.
        strict: the first malformed row is an error.
        unit: what the numbers of its rows count.
        counted: what counts as a job's processors; GPU-seconds below are of those.
        kept: (rows, GPU-seconds) that became jobs.
        dropped: the same of rows left out, by reason.
        complaints: the first malformed rows, a sentence each.
        untold: malformed rows that do not tell what they ran for.
    """

    source: str | Path
    strict: bool = False
    unit: str = "line"
    counted: str = "gpus"
    kept: tuple[int, float] = (0, 0.0)
    dropped: dict[str, tuple[int, float]] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    untold: int = 0

    def drop(self, reason: str, gpu_s: float = 0.0, *, rows: int = 1) -> None:
        """Count rows that are left out; what they ran for as far as it is known."""
        before, total_s = self.dropped.get(reason, (0, 0.0))
        known_s = gpu_s if gpu_s > 0.0 and reason not in (STEP, NEVER_STARTED, AGAIN) else 0.0
        self.dropped[reason] = before + rows, total_s + known_s

    def without(self, reason: str, gpu_s: float, *, rows: int) -> Ledger:
        """Return the ledger where rows that were kept are left out after all."""
        kept = self.kept[0] - rows, self.kept[1] - gpu_s
        other = replace(self, kept=kept, dropped=dict(self.dropped))
        other.drop(reason, gpu_s, rows=rows)
        return other

    def malformed(
        self,
        number: int,
        rule: str,
        field: str | None = None,
        value: Any = ...,
        *,
        gpu_s: float = 0.0,
        always: bool = False,
    ) -> None:
        """Count a row that cannot be understood; name it if among the first few, or ``always``.

        Raises:
            InvalidInput: the reading is strict.
        """
        lines = self.unit == "line"
        where: Any = {"line": number} if lines else {"item": f"{self.unit} {number}"}
        error = InvalidInput(rule, field=field, value=value, source=self.source, **where)
        if self.strict:
            raise error
        self.drop(MALFORMED, gpu_s)
        self.untold += not gpu_s > 0.0
        if always or len(self.complaints) < LISTED:
            self.complaints.append(str(error))

    @property
    def hours(self) -> str:
        """What its hours are of, in words."""
        return {"nodes": "node-hours", "cpus": "CPU-hours"}.get(self.counted, "GPU-hours")

    @property
    def covered(self) -> float:
        """Part of what jobs asked about are known to have run for that became jobs.

        In GPU-hours that they asked for; rows outside the window were not asked about, steps are
        no jobs, and of a malformed row counts what it says.
        """
        left_s = sum(gpu_s for why, (_, gpu_s) in self.dropped.items() if why != OUTSIDE)
        total_s = self.kept[1] + left_s
        return self.kept[1] / total_s if total_s > 0.0 else 1.0
