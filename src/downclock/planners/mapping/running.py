"""What every processor runs, at which level: orders as decisions.

Policies of this room say at every moment what each processor does from now on; here that becomes
revoked and placed rows. A row runs until its task is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from downclock.engine.decisions import Decisions, woken
from downclock.engine.facts import (
    ARRIVED,
    CANCELLED,
    DOWN,
    FAILED,
    FINISHED,
    LOST,
    SERVER_DOWN,
    SERVER_UP,
    UP,
    Facts,
)
from downclock.engine.reasons import GANG, why_never, why_refused
from downclock.engine.view import View
from downclock.kernels.refusals import NO_TIME
from downclock.planners.mapping.levels import TaskLevels
from downclock.schedule.schedule import Segments
from downclock.units import Ints

IDLE = -1
LEAST_SHARE = 0.01
"""A row is promised at least this part of its task: how fast it runs is read off it. What is less
ends sooner, as the world knows."""


class Told(NamedTuple):
    """Facts as this room takes them; a server that fails is its processors, ``repaired`` itself."""

    now_s: float
    arrived: list[int]
    finished: list[int]
    lost: list[int]
    ended: list[int]
    down: list[int]
    up: list[int]
    gangs: Ints
    repaired: Ints


class Running(Protocol):
    """What the states of this room have in common."""

    levels: list[TaskLevels]
    runs: list[tuple[int, int]]
    began: bool


def told_of(view: View, facts: Facts) -> Told:
    """Sort facts; of what arrived only single tasks with work count."""
    arrived = facts.tasks(ARRIVED)
    work = arrived[view.tasks.scale[arrived] > 0.0]
    several = view.tasks.processors[work] > 1
    first = view.platform.first_processor

    def processors(single: int, server: int) -> list[int]:
        found: list[int] = facts.places(single).tolist()
        for j in facts.places(server).tolist():
            found += range(int(first[j]), int(first[j + 1]))
        return found

    finished, lost = facts.tasks(FINISHED).tolist(), facts.tasks(LOST).tolist()
    ended = [*facts.tasks(FAILED).tolist(), *facts.tasks(CANCELLED).tolist()]
    down, up = processors(DOWN, SERVER_DOWN), processors(UP, SERVER_UP)
    tasks = work[~several].tolist(), finished, lost, ended
    return Told(facts.now_s, *tasks, down, up, work[several], facts.places(SERVER_UP))


def _changed(
    view: View,
    state: Running,
    before: list[tuple[int, int]],
    left: Callable[[int, int], float],
    now_s: float,
) -> tuple[Ints, Segments]:
    """Tasks to revoke and rows to place, where processors go from (task, level) to others."""
    after, kind = state.runs, view.platform.kind
    moves = [p for p, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    revoked = sorted({before[p][0] for p in moves} - {IDLE})
    rows = []
    for p in moves:
        task, level = after[p]
        if task != IDLE:
            here, share = state.levels[kind[p]], max(left(p, task), LEAST_SHARE)
            end_s = now_s + share * float(here.time_s[task, level])
            rows.append((task, p, now_s, end_s, share, *here.levels.points[level]))
    table = np.array(rows, dtype=np.float64).reshape(-1, 8)
    whole, starts_s, ends_s, shares, points = np.split(table, (2, 3, 4, 5), axis=1)
    task_of, processor = whole.astype(np.int64).T
    columns = starts_s.ravel(), ends_s.ravel(), points, shares.ravel()
    return np.array(revoked, dtype=np.int64), Segments.of(task_of, processor, *columns)


def still_running(runs: list[tuple[int, int]], told: Told) -> list[tuple[int, int]]:
    """What processors run after what was told; one that lost its task runs nothing."""
    ended = {*told.finished, *told.lost, *told.ended}
    return [(IDLE, 0) if task in ended else (task, level) for task, level in runs]


def decided(
    view: View,
    state: Running,
    told: Told,
    before: list[tuple[int, int]],
    refused: Sequence[int],
    *,
    left: Callable[[int, int], float],
) -> Decisions:
    """Put a moment's decisions together; every server is on from the start and after repairs.

    ``before`` is what processors did until now; ``left`` tells which part of a task is left on one.
    """
    wake = told.repaired if state.began else np.arange(view.platform.server_count)
    state.began = True
    revoke, place = _changed(view, state, before, left, told.now_s)
    why = [_why_not(view, state.levels, task, told.now_s) for task in refused]
    sizes = view.tasks.processors[told.gangs]
    why += [why_never(view, t) or GANG.format(n) for t, n in zip(told.gangs, sizes, strict=True)]
    return Decisions(
        place=place,
        revoke=revoke,
        accept=np.array([task for task in told.arrived if task not in refused], dtype=np.int64),
        rejected=np.array([*refused, *told.gangs.tolist()], dtype=np.int64),
        reason=np.array(why, dtype=object),
        power=woken(wake, told.now_s),
    )


def _why_not(view: View, levels: list[TaskLevels], task: int, now_s: float) -> str:
    """Why a job was turned away."""
    there = np.unique(view.platform.kind)
    earliest_s = now_s + min(float(levels[k].time_s[task, -1]) for k in there)
    deadline_s = view.tasks.deadline_s[task]
    if not np.isfinite(earliest_s) or earliest_s > deadline_s:
        return why_refused(view, task, NO_TIME, earliest_s)
    return (
        f"no processor can promise its deadline {view.when(deadline_s)} beside what it has accepted"
    )
