"""Rules for servers: nothing runs on one that is not on, and waking takes its time.

A server that begins on is on until its first span; other time without a span it is asleep.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from downclock.schedule.schedule import ASLEEP, DOWN, ON, STATES, WAKING
from downclock.schedule.verify.parsed_schedule import (
    ParsedSchedule,
    at_or_before,
    awake,
    latest_earlier,
    seconds,
)
from downclock.schedule.verify.verdict import Finding
from downclock.units import Bools, Floats, Ints, changes, slack


def span_overlap(parsed: ParsedSchedule) -> Iterator[Finding]:
    """A server is in one state at a time."""
    spans = parsed.spans
    before = latest_earlier(spans.server, spans.end_s)
    clash = (before >= 0) & (spans.start_s < spans.end_s[before] - slack(spans.start_s))

    def say(row: int) -> str:
        other = before[row]
        until = seconds(spans.end_s[other])
        mine, theirs = STATES[spans.state[row]], STATES[spans.state[other]]
        return f"{mine}, overlaps its span '{theirs}' that lasts until {until}"

    yield parsed.bad_spans("span-overlap", clash, say)


def awake_while_running(parsed: ParsedSchedule) -> Iterator[Finding]:
    """A server is on, not asleep, waking or down, as long as a segment runs on it."""
    platform, rows, order = parsed.problem.platform, parsed.runs.rows, parsed.runs.by_processor
    server = platform.server[rows.processor[order]]
    start_s, end_s = rows.start_s[order], rows.end_s[order]
    on = awake(parsed)
    place = at_or_before(on.server, on.start_s, server, start_s + slack(start_s))
    until = _end_of(on.end_s, place)
    bad = np.flatnonzero((until < end_s - slack(end_s)) & parsed.server_clear[server])
    moment = np.maximum(start_s[bad], until[bad])
    state = _state(parsed, server[bad], moment)
    for code in (ASLEEP, WAKING, DOWN):
        yield _not_on(parsed, STATES[code], order[bad[state == code]], moment[state == code])


def _not_on(parsed: ParsedSchedule, rule: str, rows: Ints, moment: Floats) -> Finding:
    def say(k: int) -> str:
        return f"runs while its server is {rule} at {seconds(moment[k])}"

    return parsed.bad_rows(rule, np.ones(rows.size, dtype=bool), say, rows)


def _state(parsed: ParsedSchedule, server: Ints, time_s: Floats) -> Ints:
    """State of servers that are known not to be on, just after each time."""
    spans = parsed.spans
    late = time_s + slack(time_s)
    place = at_or_before(spans.server, spans.start_s, server, late)
    covered = np.flatnonzero(_end_of(spans.end_s, place) > late)
    state = np.full(server.size, ASLEEP)
    state[covered] = spans.state[place[covered]]
    return np.where(state == ON, ASLEEP, state)


def _end_of(end_s: Floats, place: Ints) -> Floats:
    """Ends at places; minus infinity where the place is -1."""
    return np.append(end_s, -np.inf)[place]


def waking(parsed: ParsedSchedule) -> Iterator[Finding]:
    """From sleep or down a server wakes for its wake time, then is on; a crash may end it."""
    spans = parsed.spans
    wake_s = parsed.problem.platform.wake_s[spans.server]
    judged = parsed.server_clear[spans.server]
    came_from, goes_to = _neighbours(parsed)

    def found(rule: str, bad: Bools, text: str) -> Finding:
        def say(row: int) -> str:
            before, after = STATES[came_from[row]], STATES[goes_to[row]]
            return text.format(before=before, after=after, wake=seconds(wake_s[row]))

        return parsed.bad_spans(rule, bad, say)

    slow = spans.start_s - wake_s < spans.start_s  # a wake too short for the clock has no span
    unready = (spans.state == ON) & slow & (came_from != ON) & (came_from != WAKING)
    yield found("wake-missing", judged & unready, "on, comes from '{before}' without waking")
    is_waking = judged & (spans.state == WAKING)
    length = spans.end_s - spans.start_s
    off = np.abs(length - wake_s) > slack(spans.start_s)
    cut = (goes_to == DOWN) & (length < wake_s)
    yield found("wake-length", is_waking & off & ~cut, "waking, must take {wake} exactly")
    lost = is_waking & (goes_to != ON) & (goes_to != DOWN)
    yield found("wake-lost", lost, "waking, is followed by '{after}' instead of 'on'")


def _neighbours(parsed: ParsedSchedule) -> tuple[Ints, Ints]:
    """State of the server directly before and directly after each span (n,)."""
    spans = parsed.spans
    n = len(spans)
    came_from, goes_to = np.full(n, ASLEEP), np.full(n, ASLEEP)
    same = spans.server[1:] == spans.server[:-1]
    touches = same & (spans.start_s[1:] <= spans.end_s[:-1] + slack(spans.start_s[1:]))
    came_from[1:][touches] = spans.state[:-1][touches]
    goes_to[:-1][touches] = spans.state[1:][touches]
    came_from[changes(spans.server) & parsed.problem.platform.initially_on[spans.server]] = ON
    return came_from, goes_to
