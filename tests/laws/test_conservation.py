"""Conservation: run + shared + idle + host + sleep + wake is the integral of power.

The power function here is written for itself, straight from the words of DESIGN's model: it asks
at one instant what every server, chip and processor does. A sweep over all instants where
anything changes integrates it. It shares no code with the accountant.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from downclock.problem.price import Curve
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.account.bill import PARTS, Boundary
from downclock.schedule.schedule import ASLEEP, DOWN, ON, WAKING, Schedule
from tests.generated import random_problem, random_schedule

BOUNDARIES: tuple[Boundary, ...] = ("last-task", "makespan", 250.0)


@dataclass
class Running:
    """A segment as plain numbers."""

    task: int
    processor: int
    start: float
    end: float
    core: float
    watts: float
    useful: float


@dataclass
class Sweep:
    """Energy by part (servers x parts), by task, and money, clipped money and CO2 in all."""

    parts: list[list[float]]
    tasks: list[float]
    money: float = 0.0
    clipped: float = 0.0
    carbon: float = 0.0


def value_at(curve: Curve | None, time: float) -> float:
    if curve is None:
        return 0.0
    return float(curve.value[bisect_right(curve.start_s.tolist(), time) - 1])


def running(problem: Problem, schedule: Schedule) -> list[Running]:
    s = schedule.segments
    time_s, watts = problem.at(s.task, problem.platform.kind[s.processor], s.points)
    rows = []
    for i in range(len(s)):
        lasted = s.end_s[i] - s.start_s[i]
        useful = 1.0
        if problem.platform.slot_s is not None:
            useful = s.share[i] * time_s[i] * schedule.outcomes.work[s.task[i]] / lasted
        rows.append(
            Running(
                int(s.task[i]), int(s.processor[i]), float(s.start_s[i]), float(s.end_s[i]),
                float(s.core[i]), float(watts[i]), float(min(useful, 1.0)),
            )
        )  # fmt: skip
    return rows


def sweep(problem: Problem, schedule: Schedule, boundary: Boundary) -> Sweep:
    platform = problem.platform
    rows = running(problem, schedule)
    total = Sweep([[0.0] * 6 for _ in range(platform.server_count)], [0.0] * len(problem.tasks))
    for server in range(platform.server_count):
        mine = [row for row in rows if platform.server[row.processor] == server]
        last = max((row.end for row in mine), default=0.0)
        window = {"last-task": last, "makespan": max((r.end for r in rows), default=0.0)}.get(
            str(boundary), boundary if not isinstance(boundary, str) else 0.0
        )
        _sweep_server(problem, schedule, server, mine, max(last, float(window)), total)
    return total


def _sweep_server(
    problem: Problem, schedule: Schedule, server: int, mine: list[Running], window: float,
    total: Sweep,
) -> None:  # fmt: skip
    spans = sorted(
        (start, end, state)
        for which, state, start, end in zip(
            schedule.spans.server.tolist(), schedule.spans.state.tolist(),
            schedule.spans.start_s.tolist(), schedule.spans.end_s.tolist(), strict=True,
        )
        if which == server
    )  # fmt: skip
    closed = [
        (start, window if math.isinf(end) else end, state)
        for start, end, state in spans
        if not (math.isinf(end) and start >= window)
    ]
    prices = problem.prices.of(problem.platform.zones[problem.platform.zone[server]])
    steps = [t for curve in (prices.price, prices.carbon) if curve for t in curve.start_s.tolist()]
    instants = {0.0, window, *(t for a, b, _ in closed for t in (a, b))}
    instants |= {t for row in mine for t in (row.start, row.end)}
    top = max(instants)
    times = sorted(instants | {t for t in steps if t < top})
    for start, end in pairwise(times):
        middle = 0.5 * (start + end)
        watts = _power(problem, server, mine, closed, window, middle, total, end - start)
        _charge(problem, server, middle, watts, end - start, total)
    for at in _impulses(problem, server, closed):
        joules = float(problem.platform.wake_j[server])
        total.parts[server][5] += joules
        _bill(problem, server, at, joules, joules, total)


def _power(
    problem: Problem, server: int, mine: list[Running], spans: list[tuple[float, float, int]],
    window: float, now: float, total: Sweep, seconds: float,
) -> tuple[float, float]:  # fmt: skip
    """Add this instant's energy to the parts; return all watts and those that were wasted."""
    platform = problem.platform
    active = [row for row in mine if row.start <= now < row.end]
    watts = [0.0] * 6
    for row in active:
        watts[0] += row.watts
        total.tasks[row.task] += row.watts * seconds
    for chip in {int(platform.chip[row.processor]) for row in active}:
        core = max(row.core for row in active if platform.chip[row.processor] == chip)
        watts[1] += platform.shared_w[chip] + platform.shared_w_per_clock[chip] * core
    state = _state(problem, server, spans, window, now)
    if state == ON:
        busy = {row.processor for row in active}
        for processor in np.flatnonzero(platform.server == server).tolist():
            if processor not in busy:
                watts[2] += platform.kinds[platform.kind[processor]].idle_w
        watts[3] += platform.host_w[server]
    elif state == ASLEEP:
        watts[4] += platform.sleep_w[server]
    elif state == WAKING:
        watts[5] += platform.wake_j[server] / platform.wake_s[server]
    for part, power in enumerate(watts):
        total.parts[server][part] += power * seconds
    return math.fsum(watts), sum(row.watts * (1.0 - row.useful) for row in active)


def _state(
    problem: Problem, server: int, spans: list[tuple[float, float, int]], window: float, now: float
) -> int:
    for start, end, state in spans:
        if start <= now < end:
            return state
    if now >= window:
        return DOWN
    first = min((start for start, _, _ in spans), default=math.inf)
    return ON if problem.platform.initially_on[server] and now < first else ASLEEP


def _impulses(problem: Problem, server: int, spans: list[tuple[float, float, int]]) -> list[float]:
    """Times at which the server is on straight after sleeping or being down."""
    found = []
    for start, _, state in spans:
        before = [s for a, b, s in spans if a < start and abs(b - start) < 1e-6]
        first = not any(a < start for a, _, _ in spans)
        was_on = (before and before[0] in (ON, WAKING)) or (
            first and problem.platform.initially_on[server]
        )
        if state == ON and not was_on:
            found.append(start)
    return found


def _charge(
    problem: Problem, server: int, now: float, watts: tuple[float, float], seconds: float,
    total: Sweep,
) -> None:  # fmt: skip
    _bill(problem, server, now, watts[0] * seconds, (watts[0] - watts[1]) * seconds, total)


def _bill(
    problem: Problem, server: int, now: float, joules: float, useful: float, total: Sweep
) -> None:
    prices = problem.prices.of(problem.platform.zones[problem.platform.zone[server]])
    price, carbon = value_at(prices.price, now), value_at(prices.carbon, now)
    total.money += (price * useful + max(price, 0.0) * (joules - useful)) / 3.6e6
    total.clipped += max(price, 0.0) * joules / 3.6e6
    total.carbon += carbon * joules / 3.6e6 / 1000.0


def close(left: float, right: float, size: float) -> bool:
    return abs(left - right) <= 1e-9 * max(size, 1e-9)


@pytest.mark.parametrize("block", range(10))
def test_parts_add_up_to_the_integral_of_power(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        problem = random_problem(seed)
        schedule = random_schedule(problem, seed)
        boundary = BOUNDARIES[seed % 3]
        bill, swept = (
            account(problem, schedule, boundary=boundary),
            sweep(problem, schedule, boundary),
        )
        total = math.fsum(map(math.fsum, swept.parts))
        assert close(bill.total_j, total, total), seed
        for part, name in enumerate(PARTS):
            assert close(bill.energy_j[name], sum(row[part] for row in swept.parts), total), seed
        np.testing.assert_allclose(bill.server_j, swept.parts, rtol=1e-9, atol=1e-9 * total)
        np.testing.assert_allclose(bill.task_j, swept.tasks, rtol=1e-9, atol=1e-9 * total)
        assert close(float(bill.task_j.sum()), bill.energy_j["run"], total), seed


@pytest.mark.parametrize("block", range(5))
def test_money_and_carbon_are_the_integral_of_price_times_power(block: int) -> None:
    for seed in range(2000 + 40 * block, 2040 + 40 * block):
        problem = random_problem(seed, prices=True)
        schedule = random_schedule(problem, seed)
        boundary = BOUNDARIES[seed % 3]
        bill, swept = (
            account(problem, schedule, boundary=boundary),
            sweep(problem, schedule, boundary),
        )
        assert bill.money is not None
        assert bill.money_clipped is not None
        assert bill.carbon_kg is not None
        assert bill.server_money is not None
        size = swept.clipped + 1e-12
        assert close(bill.money, swept.money, size), seed
        assert close(bill.money_clipped, swept.clipped, size), seed
        assert close(bill.carbon_kg, swept.carbon, swept.carbon), seed
        assert close(float(bill.server_money.sum()), bill.money, size), seed
