"""Why tasks are rejected, in the user's units, and the earliest deadline that could be met."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from downclock.problem.problem import Problem
from downclock.quantities import instant, prefixed
from downclock.report.openings import Opening, Openings
from downclock.schedule.schedule import DONE, REJECTED, Schedule
from downclock.units import Bools, slack

LISTED = 200
"""Rejected tasks whose earliest deadline is looked for."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """One task that does not run.

    Attributes:
        task: its row.
        why: in words.
        earliest_s: the earliest deadline that could be met beside the plan; NaN: none is known.
        possible: the same in words.
    """

    task: int
    why: str
    earliest_s: float = np.nan
    possible: str = ""


def rejections(problem: Problem, schedule: Schedule) -> list[Rejection]:
    """Every rejected task with its reason."""
    rows = np.flatnonzero(schedule.outcomes.status == REJECTED)
    if not rows.size:
        return []
    free = Openings(problem, schedule)
    said = [rejection(free, int(task)) for task in rows[:LISTED]]
    reason = schedule.outcomes.reason
    return said + [Rejection(int(task), str(reason[task])) for task in rows[LISTED:]]


def rejection(free: Openings, task: int) -> Rejection:
    """Say why a task was rejected, beside what else is planned."""
    problem, told = free.problem, str(free.schedule.outcomes.reason[task])
    opening = free.earliest(task)
    if opening is None:
        return Rejection(task, _named_orphan(free, task) or told)
    if problem.platform.limits.has_cap:  # that some processor is free later does not help
        return Rejection(task, _why_capped(free, task, opening, told))
    end_s = rounded_up(opening.end_s, problem)
    server = problem.platform.server_name[opening.server]
    possible = f"{instant(end_s, problem.epoch)} on {server}"
    if np.any(problem.edges.before == task):  # its own deadline alone would not help
        possible += ", if what follows it may end later too"
    return Rejection(task, _why(free, task, opening, told), end_s, possible)


def rounded_up(at_s: float, problem: Problem) -> float:
    """The next moment that people can write: a minute of the calendar, or six digits."""
    if problem.epoch is not None:
        return 60.0 * math.ceil(at_s / 60.0 - 1e-9)
    step = 10.0 ** (math.floor(math.log10(at_s)) - 5) if at_s > 0.0 else 1.0
    return step * math.ceil(at_s / step - 1e-9)


def _why(free: Openings, task: int, opening: Opening, told: str) -> str:
    """Say what keeps a task out that some processor could run."""
    problem = free.problem
    deadline_s = float(problem.tasks.deadline_s[task])
    if not np.isfinite(deadline_s) or opening.end_s <= deadline_s + slack(deadline_s):
        followed = np.any(problem.edges.before == task)  # room for it may leave none for them
        return (
            told if followed else f"the policy turned it down, though there is room for it: {told}"
        )
    by = instant(deadline_s, problem.epoch)
    room_s = deadline_s - free.ready_s(task)
    needs = _needs(problem, task, free.ready_s(task))
    fast = [each.kind for each in needs if each.wakes_s + each.runs_s <= room_s]
    slow = [str(each) for each in needs if each.wakes_s + each.runs_s > room_s]
    if not fast:
        return f"{', '.join(slow)} at full speed; its deadline {by} leaves {about(room_s)}"
    many = int(problem.tasks.processors[task])
    which = " or ".join(fast)
    gang = f"{many} {which} are free together" if many > 1 else f"no {which} is free"
    said = f"{'no ' if many > 1 else ''}{gang} long enough before {by}"
    return "; ".join([said, *slow])


def _why_capped(free: Openings, task: int, opening: Opening, told: str) -> str:
    """Say what keeps a task out where power is capped too."""
    problem, deadline_s = free.problem, float(free.problem.tasks.deadline_s[task])
    platform = problem.platform
    caps = platform.limits.caps(platform.zones, platform.zone)
    said = " and ".join(f"{what} may draw {prefixed(cap_w, 'W')}" for what, cap_w, _ in caps)
    too_much_w = _too_much_w(problem, task, caps)
    if too_much_w > 0.0:
        return f"alone and at its slowest {prefixed(too_much_w, 'W')} would be drawn; {said}"
    if np.isfinite(deadline_s) and opening.end_s > deadline_s + slack(deadline_s):
        return f"{_why(free, task, opening, told)}; {said}"
    return f"processors are free in time, but power beside the others is not; {said}"


def _too_much_w(problem: Problem, task: int, caps: list[tuple[str, float, Bools]]) -> float:
    """What a cap's servers draw while the task alone runs at its slowest; 0 where one allows it."""
    platform, many = problem.platform, int(problem.tasks.processors[task])
    awake_w = platform.host_w + np.bincount(platform.server, platform.idle_w) - platform.sleep_w
    alone_w = np.full(platform.server_count, np.inf)
    for k, kind in enumerate(platform.kinds):
        of_kind = problem.frontier(k)
        size = np.bincount(platform.server[platform.kind == k], minlength=platform.server_count)
        if np.isfinite(of_kind.t_max_s[task]):
            slow_w = float(of_kind.e_max_time_j[task] / of_kind.t_max_s[task]) - kind.idle_w
            here = size >= many
            alone_w[here] = np.minimum(alone_w, awake_w + many * slow_w)[here]
    too_much_w = np.full(alone_w.size, np.inf)
    for _, cap_w, held in caps:
        draws_w = alone_w + float(platform.sleep_w[held].sum())
        over = held & (draws_w > cap_w)
        too_much_w[over] = np.minimum(too_much_w, draws_w)[over]
    able = np.isfinite(alone_w)
    every = able.any() and np.all(np.isfinite(too_much_w[able]))
    return float(too_much_w[able].min()) if every else 0.0


def about(seconds: float, least: float = 1.0) -> str:
    """A duration in three digits, in hours and minutes from ``least`` of them on."""
    for size, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= (2.0 if unit == "days" else least) * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{max(seconds, 0.0):.3g} s"


class _Need(NamedTuple):
    """What a task needs on a kind at full speed, where none is awake after waking one."""

    runs_s: float
    wakes_s: float
    kind: str

    def __str__(self) -> str:
        woken = f" after waking for {about(self.wakes_s)}" if self.wakes_s > 0.0 else ""
        return f"{self.kind} would need {about(self.runs_s)}{woken}"


def _needs(problem: Problem, task: int, ready_s: float) -> list[_Need]:
    """What the task needs on each kind that can run it, the fastest first."""
    platform, many = problem.platform, int(problem.tasks.processors[task])
    awake_s = np.where(platform.initially_on, 0.0, platform.wake_s)[platform.server]
    needs = [
        _Need(
            float(problem.frontier(k).t_min_s[task]),
            max(0.0, float(awake_s[platform.kind == k].min()) - ready_s),
            kind.name,
        )
        for k, kind in enumerate(platform.kinds)
        if np.sum(platform.kind == k) >= many
    ]
    return sorted(each for each in needs if np.isfinite(each.runs_s))


def _named_orphan(free: Openings, task: int) -> str:
    """Name the task before this one that is not done, where that is the reason."""
    problem, status = free.problem, free.schedule.outcomes.status
    before = problem.edges.before[problem.edges.after == task]
    lost = before[status[before] != DONE]
    return f"{problem.tasks.name[lost[0]]}, which it waits for, is not done" if lost.size else ""
