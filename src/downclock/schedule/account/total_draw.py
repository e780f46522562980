"""How much power a schedule draws in all, over time: what a power cap is held against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.problem.problem import Problem
from downclock.schedule.account.power_draws import PowerDraws, power_draws
from downclock.schedule.schedule import PowerSpans, Segments
from downclock.schedule.states import server_states
from downclock.tabular import joined, taken
from downclock.units import Bools, Floats, slack


@dataclass(frozen=True, slots=True, eq=False)
class TotalDraw:
    """Constant power between rising edges: ``watts`` (n,) from ``edge_s`` (n + 1,) on."""

    edge_s: Floats
    watts: Floats

    @property
    def peak_w(self) -> float:
        """Most power at any time."""
        return float(self.watts.max(initial=0.0))


def all_draws(problem: Problem, segments: Segments, spans: PowerSpans) -> list[PowerDraws]:
    """Every draw of every server until the makespan; wakes that take no time draw no power."""
    window_s = np.full(problem.platform.server_count, segments.end_s.max(initial=0.0))
    states, _ = server_states(problem.platform, spans, window_s)
    return power_draws(problem, segments, states)[0]


def total_draw(draws: list[PowerDraws], servers: Bools) -> TotalDraw:
    """The sum of draws of some servers (s,); steps too short to be meant are left out."""
    some = joined([taken(part, servers[part.server]) for part in draws])
    times_s = np.concatenate([[0.0], some.start_s, some.end_s])
    edge_s, place = np.unique(times_s, return_inverse=True)
    steps = np.bincount(place[1:], np.concatenate([some.watts, -some.watts]), edge_s.size)
    level = np.cumsum(steps.astype(np.float64))[:-1]
    meant = np.diff(edge_s) > slack(edge_s[1:])
    first = np.append(edge_s[:-1][meant], edge_s[-1])
    return TotalDraw(first, level[meant])
