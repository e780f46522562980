"""Is every task long enough to be seen in its times? Two times closer than `slack` are equal."""

from __future__ import annotations

import numpy as np

from downclock.errors import InvalidInput
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
    if np.any(endless):
        rule = f"makes a run time of more than {MOST['s']:g} s even at the highest clocks"
        raise _complaint(problem, int(np.argmax(endless)), rule)
    blurred = (tasks.scale > 0.0) & (time_s < slack(tasks.arrival_s))
    if not np.any(blurred):
        return
    row = int(np.argmax(blurred))
    least_s, arrival_s = slack(tasks.arrival_s[row]), tasks.arrival_s[row]
    hint = "; count times from an epoch nearby" if least_s > slack(0.0) else ""
    rule = (
        f"makes a run time of {time_s[row]:.3g} s, which cannot be told from none at"
        f" arrival_s={arrival_s:g} (at least {least_s:.3g} s){hint}"
    )
    raise _complaint(problem, row, rule)


def _complaint(problem: Problem, row: int, rule: str) -> InvalidInput:
    tasks = problem.tasks
    item, scale = f"task '{tasks.name[row]}'", float(tasks.scale[row])
    return InvalidInput(rule, item=item, field="scale", value=scale, row=row)
