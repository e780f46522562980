"""Carry out a policy that plans anew as tasks really end: reclaim, reserve, overruns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from downclock.engine.policy import View, merged
from downclock.planners.cluster.reserve import Rolling
from downclock.schedule.schedule import DONE, FAILED, REJECTED, Outcomes
from downclock.simulate.chances import Chances, Fate
from downclock.simulate.promises import CarriedOut, finish_s, late_text
from downclock.units import slack


def only_run_times(chances: Chances) -> bool:
    """Tell whether nothing but run times may differ from the plan: no job and no machine fails.

    What may happen decides, not what is drawn: all seeds are carried out in the same way.
    """
    risk = max(chances.fail_jobs, chances.fail_servers, chances.fail_processors)
    return risk == 0.0 and chances.server_life is None and chances.processor_life is None


def roll_out(view: View, policy: Rolling, fate: Fate) -> CarriedOut:
    """Let the policy decide while tasks end as drawn. Cost: the policy's."""
    problem, n = view.problem, len(view.problem.tasks)
    schedule = merged(problem, [policy.roll(view, fate.work)], policy.name)
    status, reason = schedule.outcomes.status.copy(), schedule.outcomes.reason.copy()
    ended_s, deadline_s = finish_s(schedule.segments, n), problem.tasks.deadline_s
    late = np.flatnonzero((status == DONE) & (ended_s > deadline_s + slack(deadline_s)))
    status[late] = FAILED
    for i in late:
        reason[i] = late_text(ended_s[i], deadline_s[i])
    outcomes = Outcomes(status, reason, np.where(status == REJECTED, 1.0, fate.work))
    events = n + 2 * len(schedule.segments) + len(schedule.spans)
    return CarriedOut(replace(schedule, outcomes=outcomes), events)
