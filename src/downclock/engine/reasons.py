"""Why a task is refused, in words; one text for every policy."""

from __future__ import annotations

import numpy as np

GANG = "needs {} processors at once; this policy plans single processors"


def why_refused(
    deadline_s: float, too_tight: bool, earliest_s: float, latest_s: float | None = None
) -> str:
    """Say why a task cannot run: no profile, no clock fast enough, or no processor free in time.

    ``latest_s`` is when a task without a deadline has to end, as prices are known until then.
    """
    if not np.isfinite(earliest_s):
        return "no processor of this platform has a profile for it"
    why = "even at full speed" if too_tight else "as every processor is taken"
    if np.isinf(deadline_s) and latest_s is not None:
        return (
            f"has no deadline, and cannot end while prices are known, until {latest_s:g} s,"
            f" {why}: earliest {earliest_s:g} s"
        )
    return f"cannot end by its deadline {deadline_s:g} s {why}: earliest {earliest_s:g} s"
