"""Power over time by part of the bill: the integrand of `account`, as steps to draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.problem.problem import Problem
from downclock.schedule.account.account import windows_s
from downclock.schedule.account.bill import Boundary
from downclock.schedule.account.power_draws import PowerDraws, power_draws
from downclock.schedule.schedule import Schedule
from downclock.schedule.states import States, server_states
from downclock.units import Floats

MOST_STEPS = 8192
"""Steps kept; beyond, equal stretches of time hold their mean power."""


@dataclass(frozen=True, slots=True, eq=False)
class PowerCurve:
    """Constant power between edges.

    Attributes:
        edge_s: rising times (n + 1,).
        watts: power by part between them (n, 6), columns as `PARTS`.
        wake_s, wake_j: wakes that take no time (w,): energy without power.
        states: what every server does when.
        exact: every step is there; else the steps are means over equal stretches.
    """

    edge_s: Floats
    watts: Floats
    wake_s: Floats
    wake_j: Floats
    states: States
    exact: bool


def power_curve(
    problem: Problem,
    schedule: Schedule,
    *,
    boundary: Boundary = "last-task",
    most: int = MOST_STEPS,
) -> PowerCurve:
    """Return the power of a schedule over time; its energy is the bill's."""
    platform = problem.platform
    windows = windows_s(problem, schedule, boundary)
    states, wakes = server_states(platform, schedule.spans, windows)
    draws, _ = power_draws(problem, schedule.segments, states)
    edges = _edges(draws)
    cumulative = np.column_stack([_energy_until(part, edges) for part in draws])
    exact = edges.size - 1 <= most
    if not exact:
        even = np.linspace(edges[0], edges[-1], most + 1)
        columns = [np.interp(even, edges, column) for column in cumulative.T]
        edges, cumulative = even, np.column_stack(columns)
    watts = np.diff(cumulative, axis=0) / np.diff(edges)[:, None]
    rounding = 1e-9 * np.abs(watts).max(initial=0.0)  # of sums that cancel
    watts = np.where(np.abs(watts) <= rounding, 0.0, watts)
    at_once = wakes.server[wakes.at_once]
    instants = wakes.at_s[wakes.at_once]
    return PowerCurve(edges, watts, instants, platform.wake_j[at_once], states, exact)


def _edges(draws: list[PowerDraws]) -> Floats:
    """Return every time at which something changes; a second where nothing ever does."""
    times = [each for part in draws for each in (part.start_s, part.end_s)]
    edges = np.unique(np.concatenate([np.zeros(1), *times]))
    return edges if edges.size > 1 else np.array([0.0, 1.0])


def _energy_until(draws: PowerDraws, edges: Floats) -> Floats:
    """Return what the draws add up to until each edge."""
    steps = np.zeros(edges.size)
    np.add.at(steps, np.searchsorted(edges, draws.start_s), draws.watts)
    np.add.at(steps, np.searchsorted(edges, draws.end_s), -draws.watts)
    watts = np.cumsum(steps)[:-1]
    return np.concatenate([[0.0], np.cumsum(watts * np.diff(edges))])
