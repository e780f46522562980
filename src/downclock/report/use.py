"""How busy the processors of each kind are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.problem.problem import Problem
from downclock.schedule.account.account import windows_s
from downclock.schedule.schedule import ON, Schedule
from downclock.schedule.states import server_states


@dataclass(frozen=True, slots=True)
class Use:
    """Processors of a kind: what part of the time until the makespan they run, and are awake."""

    kind: str
    processors: int
    busy: float
    awake: float


def use_of_kinds(problem: Problem, schedule: Schedule) -> list[Use]:
    """The use of each kind that the platform has."""
    platform, segments = problem.platform, schedule.segments
    states, _ = server_states(platform, schedule.spans, windows_s(problem, schedule, "makespan"))
    on, last_s = states.only(ON), schedule.makespan_s
    lasts_s = np.minimum(on.end_s, last_s) - np.minimum(on.start_s, last_s)
    awake_s = np.bincount(on.server, lasts_s, platform.server_count)[platform.server]
    ran_s = segments.end_s - segments.start_s
    busy_s = np.bincount(segments.processor, ran_s, platform.processor_count)
    found = []
    for k, kind in enumerate(platform.kinds):
        mine = platform.kind == k
        whole_s = float(mine.sum()) * last_s or 1.0
        busy, awake = (float(each[mine].sum()) / whole_s for each in (busy_s, awake_s))
        found.append(Use(kind.name, int(mine.sum()), busy, awake))
    return found
