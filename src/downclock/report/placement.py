"""Where and when a task runs in a schedule, and its neighbours on the processor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from downclock.problem.problem import Problem
from downclock.schedule.schedule import Schedule
from downclock.units import Floats, Ints, slack


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """The last attempt of a task.

    Attributes:
        task, processor, kind: the task, its first processor and that one's kind.
        processors: all that run it together (w,), ascending.
        start_s, end_s: first start and last end.
        busy_s: time it runs, without gaps.
        energy_j: run energy of the attempt, all processors.
        points: its operating points in turn (k, 3), repeats left out.
        work: units of work, as they turned out.
        previous, next: (task, end or start) of the nearest neighbours on its processors, or None.
        follower: (task, start) of the first that waits for it, or None.
    """

    task: int
    processor: int
    kind: int
    processors: Ints
    start_s: float
    end_s: float
    busy_s: float
    energy_j: float
    points: Floats
    work: float
    previous: tuple[int, float] | None
    next: tuple[int, float] | None
    follower: tuple[int, float] | None

    @property
    def width(self) -> int:
        """Processors that run it together."""
        return int(self.processors.size)

    @property
    def is_one_piece(self) -> bool:
        """Whether it runs without a pause."""
        return bool(abs(self.end_s - self.start_s - self.busy_s) <= 1e3 * slack(self.end_s))

    def where(self, problem: Problem) -> str:
        """Its processor, or how many of which servers."""
        platform = problem.platform
        if self.width == 1:
            return platform.processor_name(self.processor)
        servers = dict.fromkeys(platform.server_name[platform.server[self.processors]])
        return f"{self.width} processors of {', '.join(map(str, servers))}"

    def record(self, problem: Problem) -> dict[str, Any]:
        """Plain values."""
        return {
            "processor": problem.platform.processor_name(self.processor),
            "where": self.where(problem),
            "kind": problem.platform.kinds[self.kind].name,
            "processors": self.width,
            "start_s": self.start_s,
            "end_s": self.end_s,
            "busy_s": self.busy_s,
            "energy_j": self.energy_j,
            "points": self.points.tolist(),
        }


def placement(problem: Problem, schedule: Schedule, task: int) -> Placement | None:
    """Return where a task runs; None where it has no segment."""
    segments, platform = schedule.segments, problem.platform
    mine = np.flatnonzero(segments.task == task)
    if mine.size == 0:
        return None
    mine = mine[segments.attempt[mine] == segments.attempt[mine].max()]
    mine = mine[np.lexsort((segments.processor[mine], segments.start_s[mine]))]
    first = mine[0]
    start_s, processor = float(segments.start_s[first]), int(segments.processor[first])
    kind = int(platform.kind[processor])
    kinds = platform.kind[segments.processor[mine]]
    _, watts = problem.at(segments.task[mine], kinds, segments.points[mine])
    lasts_s = segments.end_s[mine] - segments.start_s[mine]
    together = segments.processor[mine[segments.start_s[mine] == start_s]]
    width = together.size
    end_s = float(segments.end_s[mine].max())
    points = segments.points[mine][::width]
    changes = np.concatenate([[True], np.any(np.diff(points, axis=0) != 0.0, axis=1)])
    work = float(problem.tasks.scale[task] * schedule.outcomes.work[task])
    return Placement(
        task,
        processor,
        kind,
        together,
        start_s,
        end_s,
        float(lasts_s.sum()) / width,
        float((watts * lasts_s).sum()),
        points[changes],
        work,
        _neighbour(schedule, task, together, start_s, before=True),
        _neighbour(schedule, task, together, end_s, before=False),
        _follower(problem, schedule, task),
    )


def _follower(problem: Problem, schedule: Schedule, task: int) -> tuple[int, float] | None:
    """Return (task, start) of what runs first of the tasks after a task."""
    segments, edges = schedule.segments, problem.edges
    rows = np.flatnonzero(np.isin(segments.task, edges.after[edges.before == task]))
    if not rows.size:
        return None
    row = rows[np.argmin(segments.start_s[rows])]
    return int(segments.task[row]), float(segments.start_s[row])


def _neighbour(
    schedule: Schedule, task: int, processors: Ints, at_s: float, *, before: bool
) -> tuple[int, float] | None:
    """Return (task, time) of what runs last before, or first after, a time on processors."""
    segments = schedule.segments
    there = np.isin(segments.processor, processors) & (segments.task != task)
    time_s, sign = (segments.end_s, 1.0) if before else (segments.start_s, -1.0)
    rows = np.flatnonzero(there & (sign * (time_s - at_s) <= 1e-9))
    if not rows.size:
        return None
    row = rows[np.argmax(sign * time_s[rows])]
    return int(segments.task[row]), float(time_s[row])
