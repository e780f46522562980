"""A trace as it ran: its own starts, run times and nodes as a schedule that can be judged.

Jobs run at default clocks. Servers are on from time 0 (those that begin asleep wake first) until no
job is submitted any more, and longer until the last of their own jobs has ended: that is what
clusters without power saving do, and what came later is not on these jobs' bill.
"""

from __future__ import annotations

import numpy as np

from downclock.problem.platform import Platform
from downclock.problem.problem import Problem
from downclock.schedule.schedule import (
    AS_IT_RAN,
    DONE,
    ON,
    REJECTED,
    WAKING,
    Outcomes,
    PowerSpans,
    Schedule,
    Segments,
)
from downclock.units import Floats
from downclock.workloads.traces.packing import NO_PLACE
from downclock.workloads.traces.to_problem import Converted


def as_it_ran(found: Converted) -> Schedule:
    """Return the trace as a schedule of its problem.

    A job that found no place on the given cluster counts as rejected; one that ended after its
    deadline is left as it was, and `verify` says so.
    """
    problem, placement = found.problem, found.placement
    job, processor = placement.job, placement.processor
    platform = problem.platform
    kind = platform.kind[processor]
    points = np.array([each.clocks.default for each in platform.kinds]).reshape(-1, 3)[kind]
    start_s = (found.trace.start_s - found.zero_s)[job]
    run_s, _ = problem.at(job, kind, points)
    segments = Segments.of(job, processor, start_s, start_s + run_s, points)
    status = np.where(placement.placed, DONE, REJECTED)
    reason = np.where(placement.placed, "", NO_PLACE).astype(object)
    outcomes = Outcomes(status, reason, np.ones(status.size))
    end_s = np.full(platform.server_count, last_submission_s(problem))
    np.maximum.at(end_s, platform.server[processor], segments.end_s)
    return Schedule(segments, _always_on(platform, end_s), outcomes, AS_IT_RAN)


def last_submission_s(problem: Problem) -> float:
    """When the last job came: until then every server counts, whatever runs on it."""
    return float(problem.tasks.arrival_s.max(initial=0.0))


def _always_on(platform: Platform, end_s: Floats) -> PowerSpans:
    """All servers on until their end, after a wake where they begin asleep."""
    ready_s = np.where(platform.initially_on, 0.0, platform.wake_s)
    wakes = ready_s < end_s  # a server that counts for less time than that stays asleep
    waking, on = np.flatnonzero(wakes & (ready_s > 0.0)), np.flatnonzero(wakes)
    return PowerSpans(
        np.concatenate([waking, on]),
        np.concatenate([np.full(waking.size, WAKING), np.full(on.size, ON)]),
        np.concatenate([np.zeros(waking.size), ready_s[on]]),
        np.concatenate([ready_s[waking], end_s[on]]),
    )
