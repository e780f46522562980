"""Moving a task: to another processor, or to a time when electricity is cheaper or cleaner."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from downclock.problem.price import Curve
from downclock.problem.problem import Problem
from downclock.quantities import count, duration, energy, money, prefixed
from downclock.report.placement import Placement
from downclock.schedule.account.account import windows_s
from downclock.schedule.schedule import ON, Schedule
from downclock.schedule.states import server_states
from downclock.units import J_PER_KWH, Bools, Floats


def moves(problem: Problem, schedule: Schedule, run: Placement) -> Iterator[str]:
    """Yield a sentence for each way to move the task as it is, with its clock."""
    yield from _elsewhere(problem, schedule, run)
    yield from _another_time(problem, schedule, run)


def _elsewhere(problem: Problem, schedule: Schedule, run: Placement) -> Iterator[str]:
    """Count processors of the kind that are free for the whole run, by how awake they are."""
    platform, segments = problem.platform, schedule.segments
    overlaps = (segments.start_s < run.end_s) & (segments.end_s > run.start_s)
    free = platform.kind == run.kind
    free[segments.processor[overlaps]] = False
    free[run.processors] = False
    room = np.bincount(platform.server[free], minlength=platform.server_count)
    if run.width > 1:
        room[platform.server[run.processors]] = 0  # its own server is no other one
        largest = int(np.bincount(platform.server[platform.kind == run.kind]).max())
        free &= (room >= min(run.width, largest))[platform.server]
    awake = _awake(problem, schedule, run)
    warm, cold = free & awake[platform.server], free & ~awake[platform.server]
    if warm.any():
        yield f"{_told(problem, run, warm)} for the whole run, awake: moving there costs nothing"
    if cold.any():
        server = np.unique(platform.server[cold])
        cheapest = int(server[np.argmin(platform.wake_j[server])])
        idle_w = float(platform.idle_w[platform.server == cheapest].sum())
        idle_w += float(platform.host_w[cheapest]) - float(platform.idle_w[run.processors].sum())
        extra = platform.wake_j[cheapest] + max(0.0, idle_w) * (run.end_s - run.start_s)
        yield (
            f"{_told(problem, run, cold)}, but asleep: {energy(float(extra))} for waking"
            f" {platform.server_name[cheapest]}, its host and its idle power meanwhile"
        )
    if not free.any():
        what = "other processor" if run.width == 1 else f"server with {run.width} processors"
        yield f"no {what} of the same kind free for the whole run"


def _told(problem: Problem, run: Placement, free: Bools) -> str:
    """Say what is free: processors, or servers with enough of them for a gang."""
    platform = problem.platform
    server = np.unique(platform.server[free])
    if run.width > 1:
        room = f"{count(server.size, 'other server')} (such as {platform.server_name[server[0]]})"
        return f"{room} with {run.width} processors of the same kind free"
    one = platform.processor_name(int(np.flatnonzero(free)[0]))
    many = count(int(free.sum()), "processor")
    return f"{many} of the same kind (such as {one}) free"


def _awake(problem: Problem, schedule: Schedule, run: Placement) -> Bools:
    """Tell which servers are on during the whole run (servers,)."""
    platform = problem.platform
    states, _ = server_states(platform, schedule.spans, windows_s(problem, schedule, "last-task"))
    on = states.only(ON)
    covers = (on.start_s <= run.start_s + 1e-9) & (on.end_s >= run.end_s - 1e-9)
    return np.isin(np.arange(platform.server_count), on.server[covers])


def _another_time(problem: Problem, schedule: Schedule, run: Placement) -> Iterator[str]:
    zone = problem.platform.zones[problem.platform.zone[problem.platform.server[run.processor]]]
    curves = problem.prices.of(zone)
    tasks, lasts_s = problem.tasks, run.end_s - run.start_s
    first = float(tasks.arrival_s[run.task])
    last = float(min(tasks.deadline_s[run.task], schedule.makespan_s)) - lasts_s
    mean_w = run.energy_j / run.busy_s if run.busy_s > 0.0 else 0.0
    told: tuple[tuple[str, Curve | None, Callable[[float], str]], ...] = (
        ("money", curves.price, lambda amount: money(amount, problem.prices.currency)),
        ("CO2", curves.carbon, lambda grams: prefixed(grams, "g CO2")),
    )
    for what, curve, words in told:
        if curve is None or last < first:
            continue
        found = _best_start(curve, first, last, lasts_s)
        if found is None or not curve.covers(run.start_s, run.end_s):
            continue
        factor = mean_w * run.busy_s / lasts_s / J_PER_KWH if lasts_s > 0.0 else 0.0
        now = float(curve.integral(np.array([run.start_s]), np.array([run.end_s]))[0]) * factor
        best = found[1] * factor
        said = f"{words(best)} instead of {words(now)}"
        if best < now - 1e-9 * max(1.0, abs(now)):
            yield f"started at {duration(found[0])} the same run would take {said}"
        else:
            yield f"no other start before the deadline takes less {what}: {said}"


def _best_start(
    curve: Curve, first: float, last: float, lasts_s: float
) -> tuple[float, float] | None:
    """Return the start with the least integral; it is at a step or ends at one."""
    steps = np.append(curve.start_s, curve.end_s if np.isfinite(curve.end_s) else curve.start_s[-1])
    starts: Floats = np.concatenate([[first, last], steps, steps - lasts_s])
    low, high = max(first, float(curve.start_s[0])), min(last, curve.end_s - lasts_s)
    starts = np.unique(starts[(starts >= low) & (starts <= high)])
    if starts.size == 0:
        return None
    value = curve.integral(starts, np.minimum(starts + lasts_s, curve.end_s))
    best = int(np.argmin(value))
    return float(starts[best]), float(value[best])
