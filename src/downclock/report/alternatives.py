"""Other clocks for a task: how long and how much energy each would take, and what forbids it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from downclock.power.frontier import Frontier
from downclock.problem.problem import Problem
from downclock.quantities import duration
from downclock.report.placement import Placement
from downclock.schedule.account.account import windows_s
from downclock.schedule.schedule import ON, Schedule
from downclock.schedule.states import States, server_states
from downclock.units import Floats, slack


@dataclass(frozen=True, slots=True)
class Alternative:
    """A clock the task could have, alone on its processor from the same start.

    ``change_j`` is what all would need more than as planned, idle and host power counted; NaN
    where that depends on what else would move.
    """

    alternative: str
    clock: str
    time_s: float
    energy_j: float
    change_j: float
    possible: str


def alternatives(problem: Problem, schedule: Schedule, run: Placement) -> Iterator[Alternative]:
    """Yield the plan itself and other clocks on the same processor."""
    besides_j = _besides(problem, schedule, run)
    yield Alternative("as planned", clock_words(problem, run), run.busy_s, run.energy_j, 0.0, "yes")
    curve = frontier_of(problem, run.task, run.kind, run.work)
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
                more_j = option.energy_j - run.energy_j + besides_j(run.start_s + option.time_s)
                yield replace(option, change_j=more_j) if run.is_one_piece else option


def _besides(problem: Problem, schedule: Schedule, run: Placement) -> Callable[[float], float]:
    """Return what an end at another time costs besides the run: what idles, hosts kept awake."""
    platform, segments = problem.platform, schedule.segments
    server = platform.server[segments.processor]
    mine = np.unique(platform.server[run.processors])
    window_s = windows_s(problem, schedule, "last-task")
    states, _ = server_states(platform, schedule.spans, window_s)
    begin_s, sleep_s = np.array([_awake(states, each, run) for each in mine]).T
    others = [segments.end_s[(server == each) & (segments.task != run.task)] for each in mine]
    ends = zip(others, begin_s, sleep_s, strict=True)
    others_s = np.array([s[(s > a) & (s <= b)].max(initial=a) for s, a, b in ends])
    idle_w = np.bincount(platform.server, platform.idle_w, platform.server_count)[mine]
    asleep_w = np.where(sleep_s < window_s[mine] - slack(sleep_s), platform.sleep_w[mine], 0.0)
    awake_w = platform.host_w[mine] + idle_w - asleep_w
    own_w = float(platform.idle_w[run.processors].sum())
    needed_s = np.maximum(others_s, run.end_s)
    at_once = np.abs(sleep_s - needed_s) <= 1e3 * slack(needed_s)  # it sleeps when all have ended

    def change_j(end_s: float) -> float:
        later = np.maximum(np.where(at_once, others_s, sleep_s), end_s)
        return float(((later - sleep_s) * awake_w).sum()) - own_w * (end_s - run.end_s)

    return change_j


def _awake(states: States, server: int, run: Placement) -> tuple[float, float]:
    """From when to when a server is awake around a run; the run's own times where it is not."""
    on = states.only(ON)
    rows = np.flatnonzero((on.server == server) & (on.start_s <= run.start_s + slack(run.start_s)))
    if not rows.size:
        return run.start_s, run.end_s
    return float(on.start_s[rows[-1]]), max(float(on.end_s[rows[-1]]), run.end_s)


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
        curve = frontier_of(problem, task, k, work)
        if not np.isfinite(curve.t_min_s[0]):
            continue
        best = curve.within(window)
        late = not np.isfinite(best.energy_j[0])
        best = curve.at(curve.t_min_s) if late else best
        width, have = int(tasks.processors[task]), int(np.sum(problem.platform.kind == k))
        possible = f"too slow: {duration(window)} until the deadline" if late else "if one is free"
        possible = f"no: needs {width}, there are {have}" if have < width else possible
        clock, time_s = kind.clocks.words(best.points[0]), float(best.time_s[0])
        energy_j = float(best.energy_j[0]) * width
        yield Alternative(f"on {kind.name}", clock, time_s, energy_j, np.nan, possible)


def clock_words(problem: Problem, run: Placement) -> str:
    """Say a run's clock; the first one where it changes."""
    words = problem.platform.kinds[run.kind].clocks.words(run.points[0])
    return words if len(run.points) == 1 else f"{words} at first"


def frontier_of(problem: Problem, task: int, kind: int, work: float) -> Frontier:
    """The energy-time frontier of a task on a kind, for so much work."""
    application = problem.tasks.application[[task]]
    return problem.platform.kinds[kind].frontier(problem.library, application, np.array([work]))


def _at(problem: Problem, run: Placement, name: str, point: Floats) -> Alternative:
    spec = problem.platform.kinds[run.kind]
    application = problem.tasks.application[[run.task]]
    time, power = problem.library.at(application, spec.name, point[None, :])
    time_s = float(time[0]) * run.work
    joules = time_s * float(power[0]) * run.width
    possible = _possible(problem, run, run.start_s + time_s)
    return Alternative(name, spec.clocks.words(point), time_s, joules, np.nan, possible)


def _possible(problem: Problem, run: Placement, end_s: float) -> str:
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
