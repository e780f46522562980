"""What every server does when: spans as given, open ones closed, and the time without spans.

Spans are facts. A span with an end is taken whole, wherever it lies. A span left open ends where
the server's window ends, and is nothing if it starts there or later. Time without a span counts
only inside the window [0, end of the window]: a server that is initially on is on until its
first span, any other such time is sleep.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from downclock.columns import joined, taken
from downclock.problem.platform import Platform
from downclock.schedule.schedule import ASLEEP, ON, WAKING, PowerSpans
from downclock.units import Bools, Floats, Ints, changes, slack

States: TypeAlias = PowerSpans
"""States of servers: rows (n,) by server, then start; all ends are finite."""


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
    order = order[np.lexsort((spans.end_s[order], spans.start_s[order], spans.server[order]))]
    given = taken(spans, order)
    closed_s = np.where(np.isfinite(given.end_s), given.end_s, window_s[given.server])
    given = replace(given, end_s=closed_s)
    every = joined([given, _implied(platform, given, window_s)])
    rows = np.flatnonzero(every.end_s > every.start_s)
    rows = rows[np.lexsort((every.start_s[rows], every.server[rows]))]
    return taken(every, rows), _wakes(platform, given)


def _implied(platform: Platform, given: States, window_s: Floats) -> States:
    """Return the states of the time without spans, inside the windows."""
    servers = np.arange(platform.server_count)
    server = np.concatenate([given.server, servers])
    start = np.zeros(server.size)
    end = np.concatenate([given.start_s, window_s])
    initial = np.ones(server.size, dtype=bool)
    follows = ~changes(given.server)
    start[: given.server.size][follows] = given.end_s[np.flatnonzero(follows) - 1]
    initial[: given.server.size] = ~follows
    last = np.searchsorted(given.server, servers, side="right") - 1
    has_span = last >= np.searchsorted(given.server, servers)
    start[given.server.size :][has_span] = given.end_s[last[has_span]]
    initial[given.server.size :] = ~has_span
    state = np.where(initial & platform.initially_on[server], ON, ASLEEP)
    return States(server, state, start, np.minimum(end, window_s[server]))


def _wakes(platform: Platform, given: States) -> Wakes:
    before = np.where(platform.initially_on[given.server], ON, ASLEEP)
    follows = np.flatnonzero(~changes(given.server))
    touches = given.end_s[follows - 1] >= given.start_s[follows] - slack(given.start_s[follows])
    before[follows] = np.where(touches, given.state[follows - 1], ASLEEP)
    waking = (given.state == WAKING) & (before != WAKING)
    straight = (given.state == ON) & (before != ON) & (before != WAKING)
    rows = np.flatnonzero(waking | straight)
    server = given.server[rows]
    return Wakes(server, given.start_s[rows], straight[rows] | (platform.wake_s[server] == 0.0))


def place_among(
    server: Ints, time_s: Floats, which: Ints, at_s: Floats, *, side: Literal["left", "right"]
) -> Ints:
    """Where servers and times go among rows sorted by both, as `np.searchsorted` says it.

    Complex numbers sort by real, then imaginary part: one exact search over both keys.
    """
    rows, asked = np.empty(server.size, np.complex128), np.empty(which.size, np.complex128)
    rows.real, rows.imag = server, time_s
    asked.real, asked.imag = which, at_s
    return np.searchsorted(rows, asked, side=side)
