"""What came of a run, as a schedule: segments, power spans and how every task ended."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from downclock.engine.decisions import Switches
from downclock.problem.platform import Platform
from downclock.problem.problem import Problem
from downclock.quantities import count, instant
from downclock.schedule.schedule import (
    DONE,
    DOWN,
    FAILED,
    ON,
    PENDING,
    REJECTED,
    WAKING,
    Outcomes,
    PowerSpans,
    Schedule,
    Segments,
)
from downclock.units import Bools, Floats, Ints, Names, changes, slack

OFF, TURNED_ON, WENT_DOWN, REPAIRED = range(4)
"""What happens to a server, by code; a repaired one is asleep."""

NOT_WANTED = "it was cancelled"

DONE_LATE = "done at"
"""How the reason of a task begins that was done, but after its deadline."""


class Ended(NamedTuple):
    """A run that is over; tasks by the number under which they were told.

    Attributes:
        segments: what ran.
        switched: rows (server, what, when) in the order in which it happened (k, 3).
        status, reason, work: of each task (n,), deadlines not looked at yet.
    """

    segments: Segments
    switched: Floats
    status: Ints
    reason: Names
    work: Floats


def schedule_of(problem: Problem, told: Ints, ended: Ended, policy: str) -> Schedule:
    """Turn a run into a schedule of the problem; ``told`` is its task behind each number (n,)."""
    n = len(problem.tasks)
    status, reason, work = np.full(n, PENDING), np.full(n, "", dtype=object), np.ones(n)
    known = told[: ended.status.size]
    status[known], reason[known], work[known] = ended.status, ended.reason, ended.work
    segments = replace(ended.segments, task=told[ended.segments.task])
    _judge(problem, segments, status, reason)
    outcomes = Outcomes(status, reason, np.where(status == REJECTED, 1.0, work))
    return Schedule(segments, spans_of(problem.platform, ended.switched), outcomes, policy)


def _judge(problem: Problem, segments: Segments, status: Ints, reason: Names) -> None:
    """A late task has failed, and so has one that was never finished; each tells its history."""
    deadline_s = problem.tasks.deadline_s
    ended_s = _done_s(problem, segments)
    late = (status == DONE) & (ended_s > deadline_s + slack(deadline_s))
    stuck = status == PENDING
    status[late | stuck], reason[stuck] = FAILED, "it was never finished"
    lost, cut = np.flatnonzero(status == FAILED), reason == NOT_WANTED
    for task, told in histories(lost, segments, late | cut).items():
        before = NOT_WANTED if cut[task] else ""
        if late[task]:
            end, due = (instant(at_s[task], problem.epoch, 9) for at_s in (ended_s, deadline_s))
            before = f"{DONE_LATE} {end}, after its deadline {due}"
        after = told or ("" if before else reason[task])
        reason[task] = "; ".join(part for part in (before, after) if part)


def done_late(outcomes: Outcomes) -> Ints:
    """Tasks that were done, but after their deadline: they count as failed."""
    failed = np.flatnonzero(outcomes.status == FAILED)
    late = [str(reason).startswith(DONE_LATE) for reason in outcomes.reason[failed]]
    return np.array(failed[np.array(late, dtype=bool)])


def _done_s(problem: Problem, segments: Segments) -> Floats:
    """When each task was done (n,); what has no work, with the tasks before it. NaN: never."""
    n, milestone = len(problem.tasks), problem.tasks.scale == 0.0
    ended_s = finish_s(segments, n)
    if np.any(milestone):
        for before, after in problem.edges.in_order(n):
            if milestone[after]:
                ended_s[after] = np.fmax(ended_s[after], ended_s[before])
    return ended_s


def finish_s(segments: Segments, n: int) -> Floats:
    """End of the last segment of each task (n,); NaN where it never ran."""
    ends = np.full(n, -np.inf)
    np.maximum.at(ends, segments.task, segments.end_s)
    return np.where(np.isfinite(ends), ends, np.nan)


def histories(tasks: Ints, segments: Segments, ended: Bools) -> dict[int, str]:
    """Say when each attempt of the given tasks was lost; the last was not where one ``ended``."""
    if not tasks.size:
        return {}
    told: dict[int, dict[int, float]] = {int(i): {} for i in tasks}
    wanted = np.isin(segments.task, tasks)
    rows = zip(segments.task[wanted], segments.attempt[wanted], segments.end_s[wanted], strict=True)
    for task, attempt, end_s in rows:
        ends = told[int(task)]
        ends[int(attempt)] = max(ends.get(int(attempt), 0.0), float(end_s))
    for task, ends in told.items():
        if ended[task] and ends:
            del ends[max(ends)]
    return {task: _history(sorted(ends.values())) for task, ends in told.items()}


def _history(ends: list[float]) -> str:
    if not ends:
        return ""
    return f"lost {count(len(ends), 'attempt')}, at " + ", ".join(f"{e:.6g} s" for e in ends)


def spans_of(platform: Platform, switched: Floats) -> PowerSpans:
    """Spans of a log of switches (k, 3), in the order in which they happened; some never end."""
    first = np.flatnonzero(platform.initially_on)
    server = np.concatenate([first, switched[:, 0].astype(np.int64)])
    what = np.concatenate([np.full(first.size, TURNED_ON), switched[:, 1].astype(np.int64)])
    at_s = np.concatenate([np.full(first.size, -1.0), switched[:, 2]])
    order = np.lexsort((at_s, server))
    server, what, at_s = server[order], what[order], at_s[order]
    end_s = np.full(server.size, np.inf)
    same = server[1:] == server[:-1]
    end_s[:-1][same] = np.maximum(at_s[1:][same], 0.0)
    start_s = np.maximum(at_s, 0.0)
    on = what == TURNED_ON
    ready_s = start_s + np.where(at_s < 0.0, 0.0, platform.wake_s[server])
    slow = ready_s > start_s
    shown = slow | (at_s < 0.0)  # if only for a moment: after a wake, and at the start
    parts = (
        (on & slow & (start_s < end_s), WAKING, start_s, np.minimum(ready_s, end_s)),
        (on & ((ready_s < end_s) | (shown & (ready_s == end_s))), ON, ready_s, end_s),
        ((what == WENT_DOWN) & (start_s < end_s), DOWN, start_s, end_s),
    )
    return PowerSpans(
        np.concatenate([server[rows] for rows, *_ in parts]),
        np.concatenate([np.full(int(rows.sum()), state) for rows, state, *_ in parts]),
        np.concatenate([begin[rows] for rows, _, begin, _ in parts]),
        np.concatenate([end[rows] for rows, *_, end in parts]),
    )


def switches_of(platform: Platform, spans: PowerSpans) -> Switches:
    """When servers are switched on and to sleep so that these spans come about."""
    order = np.lexsort((spans.end_s, spans.start_s, spans.server))
    server, start_s, end_s = spans.server[order], spans.start_s[order], spans.end_s[order]
    state = spans.state[order]
    awake, first = np.isin(state, (ON, WAKING)), changes(server)
    follows = ~first & (start_s == np.append(0.0, end_s[:-1])[: server.size])
    was = np.where(first, platform.initially_on[server], follows & np.roll(awake, 1))
    again = was & (state == WAKING)
    last = awake & np.isfinite(end_s) & ~np.append(follows[1:], False)[: server.size]
    asleep, on = (was & ~awake) | again, (awake & ~was) | again
    return Switches(
        np.concatenate([server[last], server[asleep], server[on]]),
        np.repeat([False, True], [int(last.sum() + asleep.sum()), int(on.sum())]),
        np.concatenate([end_s[last], start_s[asleep], start_s[on]]),
    )
