"""When runs end: the one rule for rounding, and what to believe of one that is overdue."""

from __future__ import annotations

from downclock.kernels.compiling import inner

LONGER = 0.1
"""A task that is overdue is believed to take this part of its run time so far longer."""


@inner
def ends_by(start_s: float, length_s: float, deadline_s: float) -> float:
    """Return the end of a run; what exceeds the deadline by rounding is not late."""
    end = start_s + length_s
    if end > deadline_s and end <= deadline_s + 1e-9 * max(1.0, abs(deadline_s)):
        return deadline_s
    return end


@inner
def overdue_until_s(begun_s: float, now_s: float) -> float:
    """Return when a task that should have ended may end; later than now, however short it is."""
    return now_s + max(LONGER * (now_s - begun_s), 1e-9 * max(1.0, abs(now_s)))
