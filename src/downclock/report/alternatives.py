"""Other clocks for a task: how long and how much energy each would take, and what forbids it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from downclock.power.frontier import Frontier
from downclock.problem.problem import Problem
from downclock.quantities import duration
from downclock.report.awake import AwakeServers
from downclock.report.placement import Placement
from downclock.units import Floats, slack


@dataclass(frozen=True, slots=True)
class Alternative:
    """A clock the task could have, alone on its processor from the same start.

    ``change_j`` is what all would need more than as planned, idle and host power counted; NaN
    where that depends on what else would move.
    """

    name: str
    clock: str
    time_s: float
    energy_j: float
    fits: str
    change_j: float = np.nan

    def record(self) -> dict[str, Any]:
        """Flat values."""
        return {
            "alternative": self.name,
            "clock": self.clock,
            "time_s": self.time_s,
            "energy_j": self.energy_j,
            "change_j": self.change_j if np.isfinite(self.change_j) else None,
            "possible": self.fits,
        }


def alternatives(problem: Problem, run: Placement, awake: AwakeServers) -> Iterator[Alternative]:
    """Yield the plan itself and other clocks on the same processor."""
    yield Alternative("as planned", clock_words(problem, run), run.busy_s, run.energy_j, "yes", 0.0)
    curve = _frontier(problem, run.task, run.kind, run.work)
    clocks = problem.platform.kinds[run.kind].clocks
    until_next = np.inf if run.next is None else run.next[1] - run.start_s
    for name, point in (
        ("least energy", curve.cheapest(0.0).points[0]),
        ("default clock", clocks.default),
        ("fastest", curve.at(curve.t_min_s).points[0]),
        ("one step faster", clocks.step(run.points[0], 1)),
        ("one step slower", clocks.step(run.points[0], -1)),
        ("until the deadline", _filling(curve, problem.tasks.deadline_s[run.task] - run.start_s)),
        ("until the next task", _filling(curve, until_next)),
    ):
        if point is not None:
            option = _at(problem, run, name, point)
            if np.isfinite(option.energy_j):
                more_j = (
                    option.energy_j - run.energy_j + awake.change_j(run.start_s + option.time_s)
                )
                yield replace(option, change_j=more_j) if run.is_one_piece else option


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
        width, have = int(tasks.processors[task]), int(np.sum(problem.platform.kind == k))
        fits = f"too slow: {duration(window)} until the deadline" if late else "if one is free"
        fits = f"no: there are {have}" if have < width else fits
        yield Alternative(
            f"on {kind.name}",
            kind.clocks.words(best.points[0]),
            float(best.time_s[0]),
            float(best.energy_j[0]) * width,
            fits,
        )


def clock_words(problem: Problem, run: Placement) -> str:
    """Say a run's clock; the first one where it changes."""
    words = problem.platform.kinds[run.kind].clocks.words(run.points[0])
    return words if len(run.points) == 1 else f"{words} at first"


def _frontier(problem: Problem, task: int, kind: int, work: float) -> Frontier:
    application = problem.tasks.application[[task]]
    return problem.platform.kinds[kind].frontier(problem.library, application, np.array([work]))


def _at(problem: Problem, run: Placement, name: str, point: Floats) -> Alternative:
    spec = problem.platform.kinds[run.kind]
    application = problem.tasks.application[[run.task]]
    time, power = problem.library.at(application, spec.name, point[None, :])
    time_s = float(time[0]) * run.work
    joules = time_s * float(power[0]) * run.width
    fits = _fits(problem, run, run.start_s + time_s)
    return Alternative(name, spec.clocks.words(point), time_s, joules, fits)


def _fits(problem: Problem, run: Placement, end_s: float) -> str:
    """Say what an end would break, all else as planned."""
    deadline = float(problem.tasks.deadline_s[run.task])
    if np.isfinite(deadline) and end_s > deadline + 1e3 * slack(deadline):
        return f"no: {duration(end_s - deadline)} after the deadline"
    behind = [each for each in (run.next, run.follower) if each is not None]
    task, start_s = min(behind, key=lambda each: each[1], default=(run.task, np.inf))
    if end_s > start_s + 1e3 * slack(start_s):
        return f"not without moving {problem.tasks.name[task]}, {duration(end_s - start_s)} later"
    return "yes"


def _filling(curve: Frontier, room_s: float) -> Floats | None:
    """Return the point that takes just that long; None where it is too long or too short."""
    if not curve.t_min_s[0] <= room_s <= curve.t_max_s[0]:
        return None
    exact = curve.at(room_s)
    found = exact if exact.feasible[0] else curve.within(room_s)
    return found.points[0] if found.feasible[0] else None
