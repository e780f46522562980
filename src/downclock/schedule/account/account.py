"""The accountant: the one place that adds joules, money and CO2.

``run + shared + idle + host + sleep + wake`` is the integral of the power function that
`downclock.schedule.account.power_draws` states, over what the boundary leaves in:

- The window of a server is [0, end]. ``"last-task"`` ends it with the server's last segment (a
  server that runs nothing has an empty window), ``"makespan"`` with the schedule's last segment,
  a number at that second, or with the server's last segment where that is later.
- Segments are billed whole. Spans are facts: those with an end are billed whole, those left open
  are closed at the end of the window; time without spans is billed inside the window only.

Every draw is constant, so money is watts times the integral of the price over its time: nothing
is split at price steps. Bills use actual prices, never forecasts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.columns import joined, taken
from downclock.errors import InvalidInput, InvalidSchedule, require_type
from downclock.problem.problem import Problem
from downclock.schedule.account.bill import PARTS, Bill, Boundary
from downclock.schedule.account.meters import Meter, zone_meter
from downclock.schedule.account.power_draws import PowerDraws, power_draws
from downclock.schedule.schedule import STATES, Schedule
from downclock.schedule.states import Wakes, server_states
from downclock.units import TOLERANCE, Bools, Floats, Ints

IDLE, WAKE = PARTS.index("idle"), PARTS.index("wake")


def account(problem: Problem, schedule: Schedule, *, boundary: Boundary = "last-task") -> Bill:
    """Bill a schedule; it is taken at its word, `verify` judges whether it is valid.

    Raises:
        InvalidInput: an unknown or too late boundary, or a price or carbon curve that ends early.
        InvalidSchedule: a segment or span that has no power (unknown task, processor or server,
            a time that is no number, no profile at the point).
    """
    require_type(problem, Problem, "a Problem", field="problem")
    require_type(schedule, Schedule, "a Schedule", field="schedule")
    _check(problem, schedule)
    with np.errstate(over="ignore", invalid="ignore"):
        return _bill(problem, schedule, boundary)


def _bill(problem: Problem, schedule: Schedule, boundary: Boundary) -> Bill:
    """Add everything up; what is too large for a number is refused and not warned about."""
    book = _book(problem, schedule, windows_s(problem, schedule, boundary))
    tasks = len(problem.tasks)
    server_j, task_j = _read(book, tasks, Meter("energy", problem.platform.zones, None))
    if not np.isfinite(server_j.sum()):
        if not isinstance(boundary, str):
            rule = "is so late that the energy until then is too large for a number"
            raise InvalidInput(rule, field="boundary", value=boundary)
        raise InvalidSchedule("its energy is too large for a number: cannot be billed")
    price, carbon = zone_meter(problem, "price"), zone_meter(problem, "carbon")
    server_money, task_money, money_clipped = _settle(book, tasks, price)
    server_carbon, task_carbon, _ = _settle(book, tasks, carbon)
    run = book.draws[0]
    return Bill(
        server_j=server_j,
        task_j=task_j,
        server_money=server_money,
        task_money=task_money,
        money_clipped=money_clipped,
        server_carbon_kg=server_carbon,
        task_carbon_kg=task_carbon,
        waste_j=float(np.sum(run.watts * (run.end_s - run.start_s) * book.waste)),
        wakes=book.wakes.server.size,
        servers_used=np.unique(run.server).size,
        makespan_s=schedule.makespan_s,
        boundary=boundary,
        currency=problem.prices.currency,
        server_name=problem.platform.server_name,
        task_name=problem.tasks.name,
        unpriced=_without_curve(price),
        uncounted=_without_curve(carbon),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Book:
    """All draws of a schedule, by part, and what the meters need to know about them.

    Attributes:
        draws: one table per part, in the order of `PARTS`; run has a row per segment.
        task: task of each run draw.
        waste: fraction of each run draw that did no work.
        wakes: beginnings of wakes; those ``at_once`` cost ``wake_j`` of their server.
        wake_j, zone: per server.
    """

    draws: list[PowerDraws]
    task: Ints
    waste: Floats
    wakes: Wakes
    wake_j: Floats
    zone: Ints


def windows_s(problem: Problem, schedule: Schedule, boundary: Boundary) -> Floats:
    """Return the end of each server's window (servers,)."""
    platform, segments = problem.platform, schedule.segments
    last = np.zeros(platform.server_count)
    np.maximum.at(last, platform.server[segments.processor], segments.end_s)
    if boundary == "last-task":
        return last
    if boundary == "makespan":
        return np.full(last.size, schedule.makespan_s)
    if isinstance(boundary, str) or not 0.0 <= boundary < np.inf:
        rule = "must be 'last-task', 'makespan' or a number of seconds"
        raise InvalidInput(rule, field="boundary", value=boundary)
    return np.maximum(last, boundary)


def _book(problem: Problem, schedule: Schedule, window_s: Floats) -> _Book:
    platform, segments = problem.platform, schedule.segments
    states, wakes = server_states(platform, schedule.spans, window_s)
    draws, time_s = power_draws(problem, segments, states)
    bad = ~np.isfinite(draws[0].watts)
    if np.any(bad):
        row = int(np.argmax(bad))
        raise InvalidSchedule(
            f"segment {row}: task '{problem.tasks.name[segments.task[row]]}' has no power on"
            f" processor {platform.processor_name(int(segments.processor[row]))}"
            f" at core={segments.core[row]:g}, memory={segments.memory[row]:g}"
        )
    waste = _waste(problem, schedule, time_s)
    return _Book(draws, segments.task, waste, wakes, platform.wake_j, platform.zone)


def _waste(problem: Problem, schedule: Schedule, time_s: Floats) -> Floats:
    """Return the fraction of each segment after its work was done: only where slots force it."""
    segments = schedule.segments
    if problem.platform.slot_s is None:
        return np.zeros(len(segments))
    needed_s = segments.share * time_s * schedule.outcomes.work[segments.task]
    lasted_s = segments.end_s - segments.start_s
    with np.errstate(divide="ignore", invalid="ignore"):
        waste = np.where(lasted_s > 0.0, 1.0 - needed_s / lasted_s, 0.0)
    return np.where(waste > TOLERANCE, np.minimum(waste, 1.0), 0.0)


def _settle(
    book: _Book, tasks: int, meter: Meter | None
) -> tuple[Floats, Floats, float] | tuple[None, None, None]:
    """Return a meter's reading by server and part, by task, and in all without negative values."""
    if meter is None:
        return None, None, None
    every = joined(book.draws)
    meter.require(book.zone[every.server], every.start_s, every.end_s)
    table, by_task = _read(book, tasks, meter)
    if not meter.may_earn:
        return table, by_task, float(table.sum())
    clipped, _ = _read(book, tasks, meter.clipped())
    return table, by_task, float(clipped.sum())


def _read(book: _Book, tasks: int, meter: Meter) -> tuple[Floats, Floats]:
    """Return a meter's reading by server and part (servers, 6), and by task (tasks,)."""
    servers = book.zone.size
    table = np.empty((servers, len(PARTS)))
    run = _amounts(book, book.draws[0], meter)
    _forbid_gain_from_waste(book, meter, run)
    table[:, 0] = _sums(book.draws[0].server, run, servers)
    for part, draws in enumerate(book.draws[1:], start=1):
        amounts = _amounts(book, draws, meter)
        table[:, part] = _sums(draws.server, amounts, servers)
        if part == IDLE:
            # A difference that is only rounding of the amounts it was made of is none.
            gross = _sums(draws.server, np.abs(amounts), servers)
            table[np.abs(table[:, part]) <= 1e-12 * gross, part] = 0.0
    server, at_s = book.wakes.server[book.wakes.at_once], book.wakes.at_s[book.wakes.at_once]
    impulses = book.wake_j[server] * meter.at(book.zone[server], at_s)
    table[:, WAKE] += _sums(server, impulses, servers)
    return table, _sums(book.task, run, tasks)


def _amounts(book: _Book, draws: PowerDraws, meter: Meter) -> Floats:
    return draws.watts * meter.over(book.zone[draws.server], draws.start_s, draws.end_s)


def _forbid_gain_from_waste(book: _Book, meter: Meter, amounts: Floats) -> None:
    """Charge the wasted fraction of each segment at the clipped meter: waste never earns."""
    rows = np.flatnonzero(book.waste > 0.0)
    if rows.size == 0 or not meter.may_earn:
        return
    run, waste = book.draws[0], book.waste[rows]
    clipped = _amounts(book, taken(run, rows), meter.clipped())
    amounts[rows] = (1.0 - waste) * amounts[rows] + waste * clipped


def _sums(index: Ints, amounts: Floats, count: int) -> Floats:
    return np.bincount(index, weights=amounts, minlength=count).astype(np.float64)


def _without_curve(meter: Meter | None) -> tuple[str, ...]:
    if meter is None or meter.curves is None:
        return ()
    return tuple(z for z, curve in zip(meter.zones, meter.curves, strict=True) if curve is None)


def _check(problem: Problem, schedule: Schedule) -> None:
    """Refuse rows that no bill could read; the first one is named."""
    segments, spans, platform = schedule.segments, schedule.spans, problem.platform
    rules = [
        ("segment", "task", _within(segments.task, len(problem.tasks))),
        ("segment", "processor", _within(segments.processor, platform.processor_count)),
        ("segment", "core", np.isfinite(segments.core) & (segments.core > 0.0)),
        ("segment", "memory", np.isfinite(segments.memory) & (segments.memory > 0.0)),
        ("segment", "start_s", np.isfinite(segments.start_s)),
        ("segment", "end_s", np.isfinite(segments.end_s) & (segments.end_s >= segments.start_s)),
        ("span", "server", _within(spans.server, platform.server_count)),
        ("span", "state", _within(spans.state, len(STATES))),
        ("span", "start_s", np.isfinite(spans.start_s)),
        ("span", "end_s", spans.end_s >= spans.start_s),
    ]
    for table, field, good in rules:
        if not np.all(good):
            row = int(np.argmin(good))
            rows = segments if table == "segment" else spans
            value, start_s = getattr(rows, field)[row], rows.start_s[row]
            backwards = field == "end_s" and value < start_s
            rest = f": it is before start_s={start_s}" if backwards else ""
            raise InvalidSchedule(f"{table} {row}: {field}={value} cannot be billed{rest}")
    if len(schedule.outcomes) != len(problem.tasks):
        raise InvalidSchedule(
            f"outcomes has {len(schedule.outcomes)} rows for {len(problem.tasks)} tasks"
        )


def _within(index: Ints, count: int) -> Bools:
    return (index >= 0) & (index < count)
