"""Why a task is refused, in words; one text for every policy."""

from __future__ import annotations

import numpy as np

from downclock.kernels.refusals import NO_ROOM, NO_TIME, NO_WAKE

_WORDS = {
    NO_TIME: "even at full speed",
    NO_ROOM: "as every processor is taken",
    NO_WAKE: "as what is awake is taken, and on a server that must wake",
}

GANG = "needs {} processors at once; this policy plans single processors"


def why_refused(
    deadline_s: float, code: int, earliest_s: float, latest_s: float | None = None
) -> str:
    """Say why a task cannot run, by one of the codes; what has no profile could never end.

    ``latest_s`` is when a task without a deadline has to end, as prices are known until then.
    """
    if not np.isfinite(earliest_s):
        return "no processor of this platform has a profile for it"
    why = _WORDS[code]
    if np.isinf(deadline_s) and latest_s is not None:
        return (
            f"has no deadline, and cannot end while prices are known, until {latest_s:g} s,"
            f" {why}: earliest {earliest_s:g} s"
        )
    return f"cannot end by its deadline {deadline_s:g} s {why}: earliest {earliest_s:g} s"
