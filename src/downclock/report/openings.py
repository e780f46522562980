"""Where one more task would fit beside a schedule, everything else staying as it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.problem.problem import Problem
from downclock.schedule.schedule import DONE, Schedule
from downclock.units import Floats, Ints

ONE_TASK = 0
"""The group of windows that a whole gang shares."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The earliest run at full speed that disturbs nothing: a kind, a server of it, and when."""

    kind: int
    server: int
    start_s: float
    end_s: float


class Openings:
    """Free time of every processor beside a schedule; servers stay awake where it is needed."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self.problem, self.schedule = problem, schedule
        self._free = _free_times(problem, schedule)

    def earliest(self, task: int) -> Opening | None:
        """Return the opening of a task that ends first.

        None where there is none, and where it cannot be told from free times alone: processors
        share a clock, time is in slots, or a task before it is not done. No cap is looked at.
        """
        platform = self.problem.platform
        ready_s = self.ready_s(task)
        if platform.slot_s is not None or not np.isfinite(ready_s):
            return None
        if platform.chip_server.size < platform.processor_count:
            return None
        found = [self._on_kind(task, k, ready_s) for k in range(len(platform.kinds))]
        return min((each for each in found if each), key=lambda each: each.end_s, default=None)

    def ready_s(self, task: int) -> float:
        """When the task may start: it is there, and all before it has ended; infinite: never."""
        edges, segments = self.problem.edges, self.schedule.segments
        before = edges.before[edges.after == task]
        if np.any(self.schedule.outcomes.status[before] != DONE):
            return np.inf
        ends = segments.end_s[np.isin(segments.task, before)].max(initial=0.0)
        return max(float(self.problem.tasks.arrival_s[task]), float(ends))

    def _on_kind(self, task: int, kind: int, ready_s: float) -> Opening | None:
        """The earliest on a kind: on one server where one is large enough, else on whole ones."""
        length_s = float(self.problem.frontier(kind).t_min_s[task])
        platform, many = self.problem.platform, int(self.problem.tasks.processors[task])
        mine = platform.kind == kind
        size = np.bincount(platform.server[mine], minlength=platform.server_count)
        if not np.isfinite(length_s) or size.sum() < many:
            return None
        processor, from_s, to_s = self._free
        from_s, last_s = np.maximum(from_s, ready_s), to_s - length_s
        rows = np.flatnonzero(mine[processor] & (from_s <= last_s))
        server = platform.server[processor[rows]]
        windows = (server, from_s[rows], last_s[rows])
        if many == 1:
            where, start_s = server, from_s[rows]
        elif size.max() >= many:
            where, start_s, _ = shared_windows(*windows, np.ones(rows.size, np.int64), many)
        else:
            part = 1.0 / size[server]  # together one: all of a server is free
            where, start_s, end_s = shared_windows(*windows, part, 1.0 - 1e-9)
            together = np.full(where.size, ONE_TASK)
            first = where[np.argmin(start_s)] if where.size else 0
            _, start_s, _ = shared_windows(together, start_s, end_s, size[where], many)
            where = np.full(start_s.size, first)
        if not start_s.size:
            return None
        best = int(np.argmin(start_s))
        start = float(start_s[best])
        return Opening(kind, int(where[best]), start, start + length_s)


def shared_windows(
    group: Ints, from_s: Floats, to_s: Floats, weight: Ints | Floats, need: float
) -> tuple[Ints, Floats, Floats]:
    """Return (group, from, to) of the times in which open windows of a group weigh enough.

    Windows (n,) are closed: where one ends as another begins, both are open.
    """
    at_s, owner = np.concatenate([from_s, to_s]), np.concatenate([group, group])
    closes = np.repeat([0, 1], from_s.size)
    order = np.lexsort((closes, at_s, owner))
    level = np.cumsum(np.concatenate([weight, -weight])[order])
    enough = level >= need
    before = np.concatenate([[False], enough[:-1]])[: enough.size]
    begins, ends = np.flatnonzero(enough & ~before), np.flatnonzero(before & ~enough)
    return owner[order][begins], at_s[order][begins], at_s[order][ends]


def _free_times(problem: Problem, schedule: Schedule) -> tuple[Ints, Floats, Floats]:
    """Return (processor, from, to) of all times in which a processor runs nothing and could."""
    platform, segments, limits = problem.platform, schedule.segments, problem.platform.limits
    server, count = platform.server, platform.processor_count
    every = np.arange(count)
    down = [np.flatnonzero(server == each) for each in limits.server]
    sizes = [rows.size for rows in down]
    wake_s = platform.wake_s[limits.server]
    ready_s = np.where(platform.initially_on, 0.0, platform.wake_s)[server]
    processor = np.concatenate([segments.processor, *down, every]).astype(np.int64)
    begun = np.full(count, -np.inf)  # before anything is planned
    start_s = np.concatenate([segments.start_s, np.repeat(limits.from_s, sizes), begun])
    until_s = np.repeat(limits.to_s + wake_s, sizes)
    end_s = np.concatenate([segments.end_s, until_s, ready_s])
    order = np.lexsort((start_s, processor))
    processor, start_s, end_s = processor[order], start_s[order], end_s[order]
    last = np.append(processor[1:] != processor[:-1], True)
    return processor, end_s, np.where(last, np.inf, np.append(start_s[1:], np.inf))
