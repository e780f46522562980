"""What every server does when: spans as given, open ones closed, and the time without spans.

Spans are facts. A span with an end is taken whole, wherever it lies. A span left open ends where
the server's window ends, and is nothing if it starts there or later. Time without a span counts
only inside the window [0, end of the window]: a server that is initially on is on until its
first span, any other such time is sleep.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.problem.platform import Platform
from downclock.schedule.schedule import ASLEEP, ON, WAKING, PowerSpans
from downclock.units import Bools, Floats, Ints, slack


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """States of servers, rows (n,) by server, then start; all ends are finite."""

    server: Ints
    state: Ints
    start_s: Floats
    end_s: Floats

    def only(self, *states: int) -> States:
        """The rows in these states."""
        rows = np.isin(self.state, states)
        return States(self.server[rows], self.state[rows], self.start_s[rows], self.end_s[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Wakes:
    """Beginnings of wakes, rows (n,): which server, when, and whether its energy comes at once.

    A wake begins with a waking span, or with an on span straight from sleep or from down. Its
    energy is spread over the waking span, or comes at once where there is none or ``wake_s`` is 0.
    """

    server: Ints
    at_s: Floats
    at_once: Bools


def server_states(platform: Platform, spans: PowerSpans, window_s: Floats) -> tuple[States, Wakes]:
    """Return the states and wakes of all servers whose windows end at ``window_s`` (servers,)."""
    kept = np.isfinite(spans.end_s) | (spans.start_s < window_s[spans.server])
    order = np.flatnonzero(kept)
    order = order[np.lexsort((spans.start_s[order], spans.server[order]))]
    server, state, start = spans.server[order], spans.state[order], spans.start_s[order]
    end = np.where(np.isfinite(spans.end_s[order]), spans.end_s[order], window_s[server])
    given = States(server, state, start, end)
    implied = _implied(platform, given, window_s)
    return _merged(given, implied), _wakes(platform, given)


def _implied(platform: Platform, given: States, window_s: Floats) -> States:
    """Return the states of the time without spans, inside the windows."""
    servers = np.arange(platform.server_count)
    server = np.concatenate([given.server, servers])
    start = np.zeros(server.size)
    end = np.concatenate([given.start_s, window_s])
    initial = np.ones(server.size, dtype=bool)
    follows = _follows(given)
    start[: given.server.size][follows] = given.end_s[np.flatnonzero(follows) - 1]
    initial[: given.server.size] = ~follows
    last = np.searchsorted(given.server, servers, side="right") - 1
    has_span = last >= np.searchsorted(given.server, servers)
    start[given.server.size :][has_span] = given.end_s[last[has_span]]
    initial[given.server.size :] = ~has_span
    state = np.where(initial & platform.initially_on[server], ON, ASLEEP)
    return States(server, state, start, np.minimum(end, window_s[server]))


def _merged(given: States, implied: States) -> States:
    """Return both tables as one, without rows that last no time."""
    server = np.concatenate([given.server, implied.server])
    start = np.concatenate([given.start_s, implied.start_s])
    end = np.concatenate([given.end_s, implied.end_s])
    state = np.concatenate([given.state, implied.state])
    rows = np.flatnonzero(end > start)
    rows = rows[np.lexsort((start[rows], server[rows]))]
    return States(server[rows], state[rows], start[rows], end[rows])


def _wakes(platform: Platform, given: States) -> Wakes:
    before = np.where(platform.initially_on[given.server], ON, ASLEEP)
    follows = np.flatnonzero(_follows(given))
    touches = given.end_s[follows - 1] >= given.start_s[follows] - slack(given.start_s[follows])
    before[follows] = np.where(touches, given.state[follows - 1], ASLEEP)
    waking = (given.state == WAKING) & (before != WAKING)
    straight = (given.state == ON) & (before != ON) & (before != WAKING)
    rows = np.flatnonzero(waking | straight)
    server = given.server[rows]
    return Wakes(server, given.start_s[rows], straight[rows] | (platform.wake_s[server] == 0.0))


def _follows(given: States) -> Bools:
    """Tell which rows come after another row of the same server."""
    follows = np.zeros(given.server.size, dtype=bool)
    follows[1:] = given.server[1:] == given.server[:-1]
    return follows
