"""Other clocks for a task: how long and how much energy each would take, and what forbids it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from downclock.power.frontier import Frontier, frontier
from downclock.power.points import ClockRange, Clocks, PowerLimits
from downclock.problem.problem import Problem
from downclock.quantities import duration
from downclock.report.placement import Placement
from downclock.schedule.schedule import Schedule
from downclock.units import Floats, slack

STEP = 0.05
"""One step of a continuous core clock, as a fraction of it."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A clock the task could have, alone on its processor from the same start."""

    name: str
    clock: str
    time_s: float
    energy_j: float
    fits: str

    def record(self) -> dict[str, Any]:
        """Flat values."""
        return {
            "alternative": self.name,
            "clock": self.clock,
            "time_s": self.time_s,
            "energy_j": self.energy_j,
            "possible": self.fits,
        }


def alternatives(problem: Problem, schedule: Schedule, run: Placement) -> Iterator[Alternative]:
    """Yield the plan itself and other clocks on the same processor."""
    yield Alternative("as planned", clock_words(problem, run), run.busy_s, run.energy_j, "yes")
    curve = _frontier(problem, run.task, run.kind, run.work)
    clocks = problem.platform.kinds[run.kind].clocks
    for name, point in (
        ("least energy", curve.cheapest(0.0).points[0]),
        ("default clock", clocks.default),
        ("fastest", curve.at(curve.t_min_s).points[0]),
        ("one step faster", _step(clocks, run.points[0], 1)),
        ("one step slower", _step(clocks, run.points[0], -1)),
        ("until the deadline", _filling(curve, problem.tasks.deadline_s[run.task] - run.start_s)),
        ("until the next task", _filling(curve, _until_next(run))),
    ):
        if point is not None:
            option = _at(problem, run, name, point)
            if np.isfinite(option.energy_j):
                yield option


def other_kinds(problem: Problem, task: int, run: Placement | None) -> Iterator[Alternative]:
    """Yield the cheapest run within arrival and deadline on every other kind."""
    tasks = problem.tasks
    window = float(tasks.deadline_s[task] - tasks.arrival_s[task])
    work = float(tasks.scale[task]) if run is None else run.work
    if work <= 0.0:
        return
    for k, kind in enumerate(problem.platform.kinds):
        if run is not None and k == run.kind:
            continue
        curve = _frontier(problem, task, k, work)
        if not np.isfinite(curve.t_min_s[0]):
            continue
        best = curve.within(window)
        late = not np.isfinite(best.energy_j[0])
        best = curve.at(curve.t_min_s) if late else best
        fits = f"too slow: {duration(window)} until the deadline" if late else "if one is free"
        width = int(tasks.processors[task])
        yield Alternative(
            f"on {kind.name}",
            point_words(kind.clocks, best.points[0]),
            float(best.time_s[0]),
            float(best.energy_j[0]) * width,
            fits,
        )


def clock_words(problem: Problem, run: Placement) -> str:
    """Say a run's clock; the first one where it changes."""
    words = point_words(problem.platform.kinds[run.kind].clocks, run.points[0])
    return words if len(run.points) == 1 else f"{words} at first"


def point_words(clocks: Clocks, point: Floats) -> str:
    """Say a clock in MHz where they are known, else as a ratio to the default."""
    if isinstance(clocks, ClockRange):
        words = f"core {point[0]:.4g}"
        fixed = clocks.memory_max <= clocks.memory_min
        return words if fixed else f"{words}, memory {point[1]:.4g}"
    if isinstance(clocks, PowerLimits):
        return f"limit {point[0] * clocks.default_limit_w:.0f} W"
    words = f"{point[0] * clocks.default_core_mhz:.0f} MHz"
    if np.ptp(clocks.memory_mhz) == 0.0:
        return words
    return f"{words}, memory {point[1] * clocks.default_memory_mhz:.0f} MHz"


def _frontier(problem: Problem, task: int, kind: int, work: float) -> Frontier:
    spec = problem.platform.kinds[kind]
    application = problem.tasks.application[[task]]
    return frontier(problem.library, spec.name, spec.clocks, application, np.array([work]))


def _at(problem: Problem, run: Placement, name: str, point: Floats) -> Alternative:
    spec = problem.platform.kinds[run.kind]
    application = problem.tasks.application[[run.task]]
    time, power = problem.library.at(application, spec.name, point[None, :])
    time_s = float(time[0]) * run.work
    joules = time_s * float(power[0]) * run.width
    fits = _fits(problem, run, run.start_s + time_s)
    return Alternative(name, point_words(spec.clocks, point), time_s, joules, fits)


def _fits(problem: Problem, run: Placement, end_s: float) -> str:
    """Say what an end would break, all else as planned."""
    deadline = float(problem.tasks.deadline_s[run.task])
    if np.isfinite(deadline) and end_s > deadline + 1e3 * slack(deadline):
        return f"no: {duration(end_s - deadline)} after the deadline"
    if run.next is not None and end_s > run.next[1] + 1e3 * slack(run.next[1]):
        name = problem.tasks.name[run.next[0]]
        return f"not without moving {name}, {duration(end_s - run.next[1])} later"
    return "yes"


def _until_next(run: Placement) -> float:
    return np.inf if run.next is None else run.next[1] - run.start_s


def _filling(curve: Frontier, room_s: float) -> Floats | None:
    """Return the point that takes just that long; None where it is too long or too short."""
    if not curve.t_min_s[0] <= room_s <= curve.t_max_s[0]:
        return None
    exact = curve.at(room_s)
    found = exact if exact.feasible[0] else curve.within(room_s)
    return found.points[0] if found.feasible[0] else None


def _step(clocks: Clocks, point: Floats, way: int) -> Floats | None:
    """Return the next core clock up or down, at the same memory clock; None at the end."""
    if isinstance(clocks, ClockRange):
        core = float(np.clip(point[0] * (1.0 + way * STEP), clocks.core_min, clocks.core_max))
        if abs(core - point[0]) <= 1e-9:
            return None
        return np.array([core, point[1], float(clocks.volt(core))])
    same = np.abs(clocks.points[:, 1] - point[1]) <= 1e-9
    beyond = same & (way * (clocks.points[:, 0] - point[0]) > 1e-9)
    if not np.any(beyond):
        return None
    rows = np.flatnonzero(beyond)
    nearest: Floats = clocks.points[rows[np.argmin(np.abs(clocks.points[rows, 0] - point[0]))]]
    return nearest
