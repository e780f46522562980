"""Simulate a policy that reacts: one event after the other under a virtual clock."""

from __future__ import annotations

import numpy as np

from downclock.engine.policy import View
from downclock.planners.mapping.reacting import (
    Floor,
    Incident,
    Reactive,
    no_segments,
    on_from_the_start,
    play,
    quotes_of,
    segments_of,
)
from downclock.problem.platform import Platform
from downclock.problem.problem import Problem
from downclock.schedule.schedule import (
    DONE,
    FAILED,
    PENDING,
    REJECTED,
    Outcomes,
    PowerSpans,
    Schedule,
    Segments,
)
from downclock.simulate.chances import Fate
from downclock.simulate.power import Downtimes, realised_spans
from downclock.simulate.promises import CarriedOut, finish_s, histories, late_text
from downclock.units import Ints, Names, slack


def react_to(problem: Problem, policy: Reactive, fate: Fate, retries: int) -> CarriedOut:
    """Run a reactive policy against a fate. Cost: the policy's, plus log(processors) an event."""
    view = View(problem)
    tasks = problem.tasks
    state = policy.begin(view)
    breaks = fate.breaks if np.any(fate.breaks < 1.0) else None
    floor = Floor.of(view, fate.work, breaks, retries)
    work = np.flatnonzero((tasks.scale > 0.0) & (tasks.processors == 1))
    order = work[np.argsort(tasks.arrival_s[work], kind="stable")]
    arrivals = list(zip(tasks.arrival_s[order].tolist(), order.tolist(), strict=True))
    status = np.full(len(tasks), PENDING)
    reason = np.full(len(tasks), "", dtype=object)
    gangs = (tasks.processors > 1) & (tasks.scale > 0.0)
    status[gangs], status[tasks.scale == 0.0] = REJECTED, DONE
    reason[gangs] = "needs several processors at once; this policy plans single ones"
    downtimes = Downtimes.of(fate)
    incidents = _incidents(problem.platform, downtimes)
    events = 0
    quotes = quotes_of(problem, policy, actual=True)
    for facts, orders in play(policy, state, view, floor, arrivals, np.inf, incidents, quotes):
        for task in facts.finished:
            status[task] = DONE
        for task in facts.failed:
            status[task] = FAILED
        for task, why in orders.rejected:
            status[task], reason[task] = REJECTED, why
        events += sum(len(told) for told in facts[1:])
    segments = segments_of(view, floor.log)
    spans = _spans(problem.platform, on_from_the_start(view), downtimes)
    outcomes = _outcomes(problem, status, reason, fate, segments)
    return CarriedOut(Schedule(segments, spans, outcomes, policy.name), events)


def _incidents(platform: Platform, downtimes: Downtimes) -> list[Incident]:
    """Every failure and return; a processor is back when no failure holds it any more."""
    first, start_s, end_s = downtimes.of_processors(platform)
    at: dict[float, tuple[list[int], list[int]]] = {}
    for p in range(platform.processor_count):
        until = -np.inf
        rows = range(first[p], first[p + 1])
        for k, row in enumerate(rows):
            if start_s[row] > until:
                at.setdefault(float(start_s[row]), ([], []))[0].append(p)
            until = max(until, float(end_s[row]))
            following = rows[k + 1] if k + 1 < len(rows) else None
            if following is None or start_s[following] > until:
                at.setdefault(until, ([], []))[1].append(p)
    return [Incident(t, tuple(down), tuple(up)) for t, (down, up) in sorted(at.items())]


def _spans(platform: Platform, promised: PowerSpans, downtimes: Downtimes) -> PowerSpans:
    plan = Schedule(no_segments(), promised, Outcomes.all_done(0))
    return realised_spans(platform, plan, np.empty(0), downtimes)


def _outcomes(
    problem: Problem,
    status: Ints,
    reason: Names,
    fate: Fate,
    segments: Segments,
) -> Outcomes:
    """Late tasks and those that never ended have failed, each with its history."""
    n, deadline_s = len(problem.tasks), problem.tasks.deadline_s
    ended_s = finish_s(segments, n)
    late = (status == DONE) & (ended_s > deadline_s + slack(deadline_s))
    status[late] = FAILED
    for task, told in histories(np.flatnonzero(status == FAILED), segments, late).items():
        reason[task] = told
    for i in np.flatnonzero(late):
        told = late_text(ended_s[i], deadline_s[i])
        reason[i] = f"{told}; {reason[i]}" if reason[i] else told
    stuck = status == PENDING
    status[stuck], reason[stuck] = FAILED, "it was never finished"
    return Outcomes(status, reason, np.where(status == REJECTED, 1.0, fate.work))
