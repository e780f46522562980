"""Who draws how much power when: a schedule as constant draws, by part of the bill.

Power at any time (the model, in one place):

- run: each running processor, its profile's power at the point; gross, it replaces idle;
- shared: ``shared_w + shared_w_per_clock * core`` once per chip while any of its processors
  runs, at the highest core clock among them (gerards: c3 + c2 f);
- idle: ``idle_w`` of each processor that does not run, on servers that are on;
- host: ``host_w`` of servers that are on (liu: system power);
- sleep: ``sleep_w`` of sleeping servers;
- wake: ``wake_j`` evenly over ``wake_s``, or at once where a wake takes no time.

A waking server draws its wake power only, a server that is down nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.columns import joined, taken
from downclock.problem.platform import Platform
from downclock.problem.problem import Problem
from downclock.schedule.kernels.chip_clock import busy_pieces
from downclock.schedule.schedule import ASLEEP, ON, WAKING, PowerSpans, Segments
from downclock.schedule.states import States, place_among, server_states
from downclock.units import Bools, Floats, Ints, ranges, slack


@dataclass(frozen=True, slots=True, eq=False)
class PowerDraws:
    """Constant draws, rows (n,): a server, from when to when, how many watts.

    Watts may be negative: a processor's idle power is drawn while its server is on, and taken
    back while it runs.
    """

    server: Ints
    start_s: Floats
    end_s: Floats
    watts: Floats


def power_draws(
    problem: Problem, segments: Segments, states: States
) -> tuple[list[PowerDraws], Floats]:
    """Return the draws of each part of the bill, in its order; run has a row per segment.

    Also the time that a whole task takes at each segment's point (n,).
    """
    platform = problem.platform
    time_s, watts = problem.at(segments.task, platform.kind[segments.processor], segments.points)
    server = platform.server[segments.processor]
    run = PowerDraws(server, segments.start_s, segments.end_s, watts)
    shared, idle = _shared_draws(platform, segments), _idle_draws(platform, segments, states)
    with np.errstate(divide="ignore", invalid="ignore"):
        wake_w = np.where(platform.wake_s > 0.0, platform.wake_j / platform.wake_s, 0.0)
    # Wakes that come at once are not among these.
    in_state = ((ON, platform.host_w), (ASLEEP, platform.sleep_w), (WAKING, wake_w))
    servers = [_state_draws(states, state, drawn_w) for state, drawn_w in in_state]
    return [run, shared, idle, *servers], time_s


def _shared_draws(platform: Platform, segments: Segments) -> PowerDraws:
    """Return what chips add while any of their processors runs."""
    chip = platform.chip[segments.processor]
    shares = (platform.shared_w + platform.shared_w_per_clock > 0.0)[chip]
    alone = np.bincount(platform.chip, minlength=platform.chip_server.size)[chip] == 1
    single = np.flatnonzero(shares & alone)
    several = np.flatnonzero(shares & ~alone & (segments.end_s > segments.start_s))
    alone_pieces = (
        each[single] for each in (chip, segments.start_s, segments.end_s, segments.core)
    )
    pieces = zip(alone_pieces, _busy_pieces(platform, segments, several), strict=True)
    chips, start_s, end_s, core = (np.concatenate(both) for both in pieces)
    watts = platform.shared_w[chips] + platform.shared_w_per_clock[chips] * core
    return PowerDraws(platform.chip_server[chips], start_s, end_s, watts)


def _busy_pieces(
    platform: Platform, segments: Segments, rows: Ints
) -> tuple[Ints, Floats, Floats, Floats]:
    """Return (chip, start, end, highest core) of the busy time of chips with many processors."""
    if rows.size == 0:
        none = np.empty(0)
        return np.empty(0, dtype=np.int64), none, none, none
    processor = np.tile(segments.processor[rows], 2)
    time_s = np.concatenate([segments.start_s[rows], segments.end_s[rows]])
    change = np.repeat(np.array([1, -1], dtype=np.int64), rows.size)
    chip, core = platform.chip[processor], np.tile(segments.core[rows], 2)
    order = np.lexsort((change, time_s, chip))
    first = np.searchsorted(platform.chip, np.arange(platform.chip_server.size + 1))
    return busy_pieces(
        time_s[order], change[order], chip[order], processor[order], core[order], first
    )


def _idle_draws(platform: Platform, segments: Segments, states: States) -> PowerDraws:
    """Return idle power of all processors while on, less that of the running ones."""
    idle_w = platform.idle_w
    on = states.only(ON)
    per_server = np.bincount(platform.server, weights=idle_w, minlength=platform.server_count)
    whole = _state_draws(states, ON, per_server.astype(np.float64))
    rows = np.flatnonzero(idle_w[segments.processor] > 0.0)
    server = platform.server[segments.processor[rows]]
    start, end = segments.start_s[rows], segments.end_s[rows]
    segment, piece = _overlaps(on, server, start, end)
    taken_back = PowerDraws(
        server[segment],
        np.maximum(on.start_s[piece], start[segment]),
        np.minimum(on.end_s[piece], end[segment]),
        -idle_w[segments.processor[rows[segment]]],
    )
    return joined([whole, taken_back])


def _state_draws(states: States, state: int, watts: Floats) -> PowerDraws:
    """Return a draw of ``watts`` (servers,) for the time in one state; none where it is 0.

    Leaving out what draws nothing lets a price curve end before the last sleep does.
    """
    server = states.server
    rows = np.flatnonzero((states.state == state) & (watts[server] > 0.0))
    return PowerDraws(server[rows], states.start_s[rows], states.end_s[rows], watts[server[rows]])


def _overlaps(on: States, server: Ints, start_s: Floats, end_s: Floats) -> tuple[Ints, Ints]:
    """Return every pair (interval, row of ``on``) of one server that share time."""
    low = place_among(on.server, on.end_s, server, start_s, side="right")
    high = place_among(on.server, on.start_s, server, end_s, side="left")
    count = np.maximum(high - low, 0)
    return np.repeat(np.arange(server.size), count), ranges(low, count)


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
