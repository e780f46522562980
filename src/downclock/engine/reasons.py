"""Why a task is refused, in words; one text for every policy."""

from __future__ import annotations

import numpy as np

from downclock.engine.view import View
from downclock.kernels.refusals import NO_ROOM, NO_TIME, NO_WAKE

_WORDS = {
    NO_TIME: "even at full speed",
    NO_ROOM: "as every processor is taken",
    NO_WAKE: "as what is awake is taken, and on a server that must wake",
}

GANG = "needs {} processors at once; this policy plans single ones (known plans gangs)"


def why_refused(
    view: View, task: int, code: int, earliest_s: float, latest_s: float = np.inf
) -> str:
    """Say why a task cannot run, by one of the codes; what has no profile could never end.

    ``latest_s`` is when it has to end, so that what follows it can be in time; for a task without
    a deadline also until when prices are known.
    """
    deadline_s = view.tasks.deadline_s[task]
    if not np.isfinite(earliest_s):
        many = view.tasks.processors[task]
        few = f"needs {many} processors at once, of one kind; too few of them work"
        return why_never(view, task) or few
    why, earliest = _WORDS[code], view.when(earliest_s)
    if latest_s < deadline_s and task in view.edges.before:
        by = f"{view.when(latest_s)}, as late as what follows it allows,"
        return f"cannot end by {by} {why}: earliest {earliest}"
    if np.isinf(deadline_s) and np.isfinite(latest_s):
        return (
            f"has no deadline, and cannot end while prices are known, until {view.when(latest_s)},"
            f" {why}: earliest {earliest}"
        )
    return f"cannot end by its deadline {view.when(deadline_s)} {why}: earliest {earliest}"


def why_never(view: View, task: int) -> str:
    """Say why a task could never run: no profile, or no kind with enough processors; or ""."""
    every, many = np.bincount(view.platform.kind), int(view.tasks.processors[task])
    able = [np.isfinite(view.frontier(k, np.array([task])).t_min_s[0]) for k in range(every.size)]
    most = int(every[able].max(initial=0))
    if most == 0:
        return "no processor of this platform has a profile for it"
    if most < many:
        return f"needs {many} processors at once, of one kind; there are {most}"
    return ""
