"""Is every task long enough to be seen in its times? Two times closer than `slack` are equal."""

from __future__ import annotations

import numpy as np

from downclock.problem.problem import Problem
from downclock.quantities import MOST
from downclock.units import slack


def refuse_unresolved(problem: Problem) -> None:
    """Refuse a task whose shortest run time is less than what tells two of its times apart.

    Such a task would end when it starts, and no judge could tell whether it ran. So would others
    after one that takes for ever.
    """
    tasks = problem.tasks
    unit_s = np.full(len(problem.library), np.inf)
    for kind in problem.platform.kinds:
        np.minimum(unit_s, problem.library.shortest_s(kind.name, kind.clocks), out=unit_s)
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        time_s = unit_s[tasks.application] * tasks.scale
    endless = np.isfinite(unit_s[tasks.application]) & (time_s > MOST["s"])
    rule = f"makes a run time of more than {MOST['s']:g} s even at the highest clocks"
    tasks.refuse(endless, rule, "scale")

    def said(row: int) -> str:
        least_s, arrival_s = slack(tasks.arrival_s[row]), tasks.arrival_s[row]
        hint = "; count times from an epoch nearby" if least_s > slack(0.0) else ""
        return (
            f"makes a run time of {time_s[row]:.3g} s, which cannot be told from none at"
            f" arrival_s={arrival_s:g} (at least {least_s:.3g} s){hint}"
        )

    tasks.refuse((tasks.scale > 0.0) & (time_s < slack(tasks.arrival_s)), said, "scale")
