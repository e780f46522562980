"""Lower bounds on what independent tasks cost where the value of a joule changes over time.

A task that runs for t at power P(t) within its window costs at least P(t) M(t), with M(t) the cost
of a watt over the cheapest span of that length. P falls and M rises with t, so between two lengths
no run costs less than P at the longer times M at the shorter: cells are halved until that is near
a run that exists (`TIGHTNESS`). Where clocks may change on the way or runs may pause, work is a
fluid that buys time at its price; the bound is the Lagrangian dual over the hull of clocks.
Idle, host, sleep and wake energy cost nothing here, as values are never negative.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from downclock.errors import InvalidInput
from downclock.power.frontier import Frontier
from downclock.problem.objective import Objective
from downclock.problem.platform import Platform
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.problem.problem import Problem
from downclock.units import J_PER_KWH, Bools, Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.cluster.kernels.tariff import Tariff

CELLS, ROUNDS, TIGHTNESS = 12, 14, 2e-4
"""First cells of a task's lengths, most halvings, and how tight the bound is to be."""

CORNERS = 48
"""Lengths that the hull of continuous clocks is made of."""


def tariff_of(problem: Problem, objective: Objective, *, actual: bool = False) -> Tariff:
    """Value of a joule in every zone over time; negative prices count 0.

    Args:
        problem: its prices; forecasts where there are any, unless ``actual``.
        objective: what is weighed.
        actual: use the actual curves.

    Raises:
        InvalidInput: a zone lacks a curve, or it ends before the last deadline; both named.
    """
    used = _used(problem, objective, actual)
    ends_s = min((curve.end_s for curve in used), default=np.inf)
    finite = problem.tasks.deadline_s[np.isfinite(problem.tasks.deadline_s)]
    top = max(float(finite.max(initial=0.0)), float(problem.tasks.arrival_s.max()) + 1.0)
    steps = np.unique(np.concatenate([np.empty(0), *(curve.start_s for curve in used)]))
    if finite.size < len(problem.tasks):  # without a deadline: as long as prices are known
        last = float(steps.max(initial=0.0))
        longest = float(longest_s(problem).sum() + problem.platform.wake_s.max()) + 1.0
        top = max(top, ends_s if np.isfinite(ends_s) else max(top, last) + longest)
    return _rates(problem, objective, steps, top, actual)


class Site(Protocol):
    """What has prices: a problem, or a policy's view of one."""

    @property
    def platform(self) -> Platform:
        """Its zones."""
        ...

    @property
    def prices(self) -> Prices:
        """Their curves."""
        ...


def known_tariff(problem: Site, objective: Objective) -> Tariff:
    """As `tariff_of`, over the whole time that forecasts are known; no task is looked at.

    The last piece reaches on where the curves do.
    """
    used = _used(problem, objective, False)
    steps = np.unique(np.concatenate([np.empty(0), *(curve.start_s for curve in used)]))
    top = known_until_s(problem, objective)
    if not np.isfinite(top):
        last = max(0.0, float(steps.max(initial=0.0)))
        top = last + max(1.0, last / max(steps.size, 1))
    return _rates(problem, objective, steps, top, False)


def known_until_s(problem: Site, objective: Objective) -> float:
    """When the first of the forecasts that count ends; infinite: never."""
    return min((curve.end_s for curve in _used(problem, objective, False)), default=np.inf)


def _rates(problem: Site, objective: Objective, steps: Floats, top: float, actual: bool) -> Tariff:
    """The tariff from 0 to ``top``."""
    from downclock.planners.cluster.kernels.tariff import new_tariff

    edges = np.concatenate([[0.0], steps[(steps > 0.0) & (steps < top)], [top]])
    zones = [problem.prices.of(zone) for zone in problem.platform.zones]
    rate = np.empty((len(zones), edges.size - 1))
    for z, zone in enumerate(zones):
        try:
            rate[z] = objective.per_kwh(zone, edges, actual=actual) / J_PER_KWH
        except InvalidInput as error:
            name = problem.platform.zones[z]
            rule = f"zone '{name}': {error.item} {error.rule}"
            raise InvalidInput(rule, source=error.source) from None
    return new_tariff(edges, rate)


def _used(problem: Site, objective: Objective, actual: bool) -> list[Curve]:
    """The curves that count, of all zones."""
    zones = [problem.prices.of(zone) for zone in problem.platform.zones]
    return [curve for zone in zones for curve in _weighed(zone, objective, actual)]


def _weighed(zone: ZonePrices, objective: Objective, actual: bool) -> list[Curve]:
    price = zone.price if actual else zone.expected_price
    carbon = zone.carbon if actual else zone.expected_carbon
    pairs = ((objective.cost, price), (objective.carbon, carbon))
    return [curve for weight, curve in pairs if weight and curve is not None]


def longest_s(problem: Problem) -> Floats:
    """Run time of each task at its slowest, on the slowest kind (n,)."""
    longest = np.zeros(len(problem.tasks))
    for k in range(len(problem.platform.kinds)):
        slow = problem.frontier(k).t_max_s
        longest = np.maximum(longest, np.where(np.isfinite(slow), slow, 0.0))
    return longest


def expected(problem: Problem) -> Problem:
    """The same problem where forecasts are the truth: what policies may look at."""
    zones = tuple(
        (name, ZonePrices(zone.expected_price, zone.expected_carbon))
        for name, zone in problem.prices.zones
    )
    return replace(problem, prices=Prices(zones, problem.prices.currency))


def value_bound(problem: Problem, objective: Objective, done: Bools) -> float | None:
    """What the tasks that are done (n,) cost at least, each in its cheapest hours.

    None where other schedules may run when no price is known.
    """
    key = ("price bound", objective)
    try:
        each = problem.once(key, lambda: price_bound(problem, objective, actual=True))
    except InvalidInput:
        return None
    return float(each[done].sum())


def price_bound(problem: Problem, objective: Objective, *, actual: bool = False) -> Floats:
    """Least value of each task between its arrival and its deadline (n,), over kinds and zones.

    Never above the value of a valid schedule that runs the task, negative prices counted as 0.
    Infinite where no kind can meet the deadline; a gang counts once per processor. Cost: linear in
    the tasks, times the steps of the curve in a task's window.
    """
    tariff = tariff_of(problem, objective, actual=actual)
    tasks, platform = problem.tasks, problem.platform
    to_s = np.minimum(tasks.deadline_s, tariff.edge_s[-1])
    best = np.full(len(tasks), np.inf)
    zone = platform.zone[platform.server]
    for k, kind in enumerate(platform.kinds):
        frontier = problem.frontier(k)
        fits = frontier.t_min_s <= (to_s - tasks.arrival_s) * (1.0 + 1e-12)
        rows = np.flatnonzero(fits & (tasks.scale > 0.0))
        whole = kind.clock == "locked" and kind.interrupt == "none"
        for z in np.unique(zone[platform.kind == k]):
            window = (tasks.arrival_s[rows], to_s[rows])
            bound = _one_run if whole else _fluid
            best[rows] = np.minimum(best[rows], bound(tariff, int(z), frontier, rows, window))
    best[tasks.scale == 0.0] = 0.0
    return np.asarray(best * tasks.processors)


def _one_run(
    tariff: Tariff, z: int, frontier: Frontier, rows: Ints, window: tuple[Floats, Floats]
) -> Floats:
    """One run at one clock."""
    offset, times, joules = frontier.ladder()
    listed = np.diff(offset)[rows] > 0
    bound = np.full(rows.size, np.inf)
    mine = np.flatnonzero(listed)
    bound[mine] = _rungs(tariff, z, (offset, times, joules), rows, mine, window)
    mine = np.flatnonzero(~listed)
    if mine.size:
        inner = (window[0][mine], window[1][mine])
        bound[mine] = _lengths(tariff, z, frontier, rows[mine], inner)
    return bound


def _rungs(
    tariff: Tariff,
    z: int,
    ladder: tuple[Ints, Floats, Floats],
    rows: Ints,
    mine: Ints,
    window: tuple[Floats, Floats],
) -> Floats:
    from downclock.planners.cluster.kernels.tariff import cheapest_spans

    offset, times, joules = ladder
    sizes = np.diff(offset)[rows[mine]]
    task = np.repeat(mine, sizes)
    first = np.repeat(offset[rows[mine]] - (np.cumsum(sizes) - sizes), sizes)
    rung = first + np.arange(task.size)
    fits = times[rung] <= (window[1][task] - window[0][task]) * (1.0 + 1e-12)
    task, rung = task[fits], rung[fits]
    watt = cheapest_spans(tariff, z, window[0][task], window[1][task], times[rung])
    bound = np.full(rows.size, np.inf)
    np.minimum.at(bound, task, joules[rung] / times[rung] * watt)
    return bound[mine]


def _lengths(
    tariff: Tariff, z: int, frontier: Frontier, rows: Ints, window: tuple[Floats, Floats]
) -> Floats:
    """Halve cells of lengths (see the module's text)."""
    from downclock.planners.cluster.kernels.tariff import cheapest_spans

    def look(task: Ints, length: Floats) -> tuple[Floats, Floats]:
        joules = frontier.at(length, rows[task]).energy_j
        watt = cheapest_spans(tariff, z, window[0][task], window[1][task], length)
        return np.where(np.isfinite(joules), joules, 0.0) / length, watt

    short = frontier.t_min_s[rows]
    long = np.maximum(short, np.minimum(frontier.t_max_s[rows], window[1] - window[0]))
    part = np.linspace(0.0, 1.0, CELLS + 1)
    grid = short[:, None] * (long / short)[:, None] ** part
    grid[:, -1] = long
    every = np.repeat(np.arange(rows.size), CELLS + 1)
    power, watt = (x.reshape(grid.shape) for x in look(every, grid.ravel()))
    upper = (power * watt).min(axis=1)
    task = np.repeat(np.arange(rows.size), CELLS)
    cell = (grid[:, :-1], grid[:, 1:], watt[:, :-1], power[:, 1:])
    low, high, low_watt, high_power = (x.ravel() for x in cell)
    bound = upper.copy()
    for turn in range(ROUNDS + 1):
        lower = low_watt * high_power
        open_cells = lower < upper[task] * (1.0 - TIGHTNESS)
        done = ~open_cells if turn < ROUNDS else np.ones_like(open_cells)
        np.minimum.at(bound, task[done], lower[done])
        task, low, high = task[~done], low[~done], high[~done]
        low_watt, high_power = low_watt[~done], high_power[~done]
        if task.size == 0:
            break
        middle = np.sqrt(low * high)
        power_m, watt_m = look(task, middle)
        np.minimum.at(upper, task, power_m * watt_m)
        task, low, high = np.tile(task, 2), np.append(low, middle), np.append(middle, high)
        low_watt, high_power = np.append(low_watt, watt_m), np.append(power_m, high_power)
    return np.asarray(np.minimum(bound, upper))


def _fluid(
    tariff: Tariff, z: int, frontier: Frontier, rows: Ints, window: tuple[Floats, Floats]
) -> Floats:
    """Clocks change and runs pause as they like."""
    from downclock.planners.cluster.kernels.tariff import relaxed_bounds

    offset, times, joules = frontier.ladder()
    sizes, speeds, powers = np.zeros(rows.size, np.int64), [], []
    for i, row in enumerate(rows):
        if offset[row + 1] > offset[row]:
            t, e = times[offset[row] : offset[row + 1]], joules[offset[row] : offset[row + 1]]
            speed, power = 1.0 / t, e / t
        else:
            speed, power = _hull(frontier, int(row))
        sizes[i] = speed.size
        speeds.append(speed)
        powers.append(power)
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if not rows.size:
        return np.empty(0)
    return relaxed_bounds(tariff, z, *window, first, np.concatenate(speeds), np.concatenate(powers))


def _hull(frontier: Frontier, row: int) -> tuple[Floats, Floats]:
    """Corners (speed, power) below the curve of continuous clocks.

    Energy is convex in time, so power is convex in speed, and a chord drawn on beyond its ends
    stays below the curve: neighbouring chords meet in a corner that no clock is below.
    """
    short, long = frontier.t_min_s[row], frontier.t_max_s[row]
    if not long > short * (1.0 + 1e-9):
        return np.array([1.0 / short]), np.array([frontier.e_min_time_j[row] / short])
    t = short * (long / short) ** np.linspace(1.0, 0.0, CORNERS)
    t[0], t[-1] = long, short
    e = frontier.at(t, np.full(CORNERS, row)).energy_j
    x, y = 1.0 / t, e / t
    slope = np.diff(y) / np.diff(x)
    left, right = slope[:-2], slope[2:]
    steeper = right - left > 1e-9 * np.abs(right)
    at = (y[2:-1] - y[1:-2] + left * x[1:-2] - right * x[2:-1]) / np.where(
        steeper, left - right, 1.0
    )
    at = np.where(steeper, np.clip(at, x[1:-2], x[2:-1]), x[1:-2])
    corner = y[1:-2] + left * (at - x[1:-2])
    first, last = y[1] - slope[1] * (x[1] - x[0]), y[-2] + slope[-2] * (x[-1] - x[-2])
    speed = np.concatenate([x[:1], at, x[-1:]])
    power = np.concatenate([[first], corner, [last]])
    return speed, np.maximum(np.minimum(power, np.interp(speed, x, y)), 0.0)
