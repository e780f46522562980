"""Rules for limits of the site: caps on power, and servers that are down at known times."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from downclock.schedule.account.power_draws import TotalDraw, all_draws, total_draw
from downclock.schedule.schedule import ON, WAKING
from downclock.schedule.verify.parsed_schedule import ParsedSchedule, at_or_before, seconds
from downclock.schedule.verify.verdict import Finding, Violation
from downclock.units import TOLERANCE, Bools, Floats, Ints, slack


def down(parsed: ParsedSchedule) -> Iterator[Finding]:
    """Nothing runs on a server that is down, and it is neither awake nor waking."""
    limits, platform = parsed.problem.platform.limits, parsed.problem.platform
    if not limits.server.size:
        return
    rows, spans = parsed.runs.rows, parsed.spans
    meets = _meets(parsed, platform.server[rows.processor], rows.start_s, rows.end_s)

    def runs(k: int) -> str:
        return f"runs while its server is down until {seconds(limits.to_s[meets[k]])}"

    yield parsed.bad_rows("server-down", meets >= 0, runs)
    during = _meets(parsed, spans.server, spans.start_s, spans.end_s)
    up: Bools = (spans.state == ON) | (spans.state == WAKING)

    def stays(k: int) -> str:
        from_s, to_s = (seconds(each[during[k]]) for each in (limits.from_s, limits.to_s))
        return f"is not asleep while it is down, {from_s} to {to_s}"

    yield parsed.bad_spans("server-down", up & (during >= 0), stays)


def _meets(parsed: ParsedSchedule, server: Ints, start_s: Floats, end_s: Floats) -> Ints:
    """The last downtime of a server that shares time with each interval, or -1 (n,)."""
    limits = parsed.problem.platform.limits
    finite_s = np.minimum(end_s, np.finfo(float).max)
    before = at_or_before(limits.server, limits.from_s, server, finite_s - slack(finite_s))
    shares = np.append(limits.to_s, -np.inf)[before] > start_s + slack(start_s)
    return np.where(shares, before, -1)


def power_cap(parsed: ParsedSchedule) -> Iterator[Finding]:
    """No zone, and not the cluster, draws more than its cap at any time."""
    platform = parsed.problem.platform
    if not platform.limits.has_cap or not np.all(parsed.server_clear):
        return
    draws = all_draws(parsed.problem, parsed.runs.rows, parsed.spans)
    for what, cap_w, servers in platform.limits.caps(platform.zones, platform.zone):
        drawn = total_draw(draws, servers)
        over = np.flatnonzero(drawn.watts > cap_w * (1.0 + TOLERANCE))
        yield Finding("power-cap", over, partial(_above, what, cap_w, drawn))


def _above(what: str, cap_w: float, drawn: TotalDraw, k: int) -> Violation:
    """Put a step above a cap into words."""
    when = f"{seconds(drawn.edge_s[k])} to {seconds(drawn.edge_s[k + 1])}"
    text = f"{what} draws {drawn.watts[k]:.6g} W, {when}; its cap is {cap_w:g} W"
    return Violation("power-cap", text)
