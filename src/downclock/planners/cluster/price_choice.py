"""Whether prices are worth waiting for: what it can save against what it costs in idling.

Who waits for cheap hours fills servers in blocks, and the processors of a server do not end
together. Where prices change little that costs more than it saves: the price-blind policy plans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from downclock.engine.policy import View
from downclock.planners.cluster.policy import kinds_of
from downclock.planners.cluster.price_columns import asked_of, curves_for, fleet_of
from downclock.problem.objective import Objective
from downclock.problem.platform import Platform
from downclock.problem.problem import Problem
from downclock.units import Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.cluster.kernels.price_plan import Plan
    from downclock.planners.cluster.kernels.price_spans import Tariff

SAMPLE, TIMES, AHEAD_S = 128, 24, 86400.0
"""Known tasks looked at, times at which each is thought to come, and the span of these times."""

AGAIN, AGAIN_S = 2, 21600.0
"""The question is asked again when so many times as many tasks are known, or after this time."""

TRUST = 2.0 / 3.0
"""Part of the saving that a forecast promises which is believed. Of carbon forecasts made 24 hours
before in Great Britain, January 2024, a tenth to nine tenths came true, by day. Prices known
beforehand keep what they promise."""

MARGIN = 1.25
"""The saving must be so many times the loss: both are estimates, and a change of plans costs."""


class Watch(NamedTuple):
    """The price-blind policy plans for now: its state, tasks seen, when to ask again."""

    calm: Any
    seen: int = 0
    enough: int = 1
    next_s: float = 0.0


def asking(watch: Watch, come_s: Floats) -> int:
    """First of the arrivals (m,), by time, at which to ask whether waiting pays; -1: none."""
    known = watch.seen + np.searchsorted(come_s, come_s, side="right")
    due = np.flatnonzero((known >= watch.enough) | (come_s >= watch.next_s))
    return int(due[0]) if due.size else -1


def asked_again(watch: Watch, calm: Any, before: int, now: int, now_s: float) -> Watch:
    """What is kept after the answer was no: ``before`` tasks came since, ``now`` at ``now_s``."""
    seen = watch.seen + before
    return Watch(calm, seen, AGAIN * (seen + now), now_s + AGAIN_S)


def trust(problem: Problem, objective: Objective) -> float:
    """Part of a promised saving that counts: less where any curve that counts is a forecast."""
    forecasts = [
        (objective.cost and zone.price_forecast) or (objective.carbon and zone.carbon_forecast)
        for _, zone in problem.prices.zones
    ]
    return TRUST if any(forecasts) else 1.0


def pays(
    view: View, tariff: Tariff, trusted: float, latest_s: Floats, until_s: float, now_s: float
) -> bool:
    """Tell whether waiting for cheap hours saves more than it costs, by what is known by now.

    The tasks seen so far stand for those to come. It has to pay for those of the next day, and for
    those until the question is asked again. Of the saving the part ``trusted`` counts.
    """
    from downclock.planners.cluster.kernels.price_choice import shifted

    rows, width_s = _typical(view, latest_s, now_s)
    if rows.size == 0:
        return False
    curves = curves_for(view, True)
    asked = asked_of(view, curves, latest_s.copy())
    length_s, joules = float(curves.free_s[rows].mean()), float(curves.free_j[rows].mean())
    # In a block a processor does what fits into a window, and what was begun before.
    jobs = 1.0 + float(width_s.mean()) / length_s
    lost_j = spread_j(view.problem.platform, fleet_of(view).up_w, length_s)
    for span_s in (AHEAD_S, AGAIN_S):
        ahead_s = min(span_s, max(0.0, until_s - now_s))
        come_s = now_s + ahead_s * (np.arange(TIMES) + 0.5) / TIMES
        best, blind = shifted(asked, curves, tariff, rows, width_s, come_s, until_s)
        if trusted * (blind - best) <= MARGIN * lost_j / (jobs * joules) * blind:
            return False
    return True


def spread_j(platform: Platform, up_w: Floats, length_s: float) -> float:
    """Energy that a processor loses each time its server is awake for a block of tasks.

    Ends of l processors that are even over one run time: the last comes (l - 1) / (2 (l + 1)) of
    it after the mean, and until then they idle. A wake is shared by all. The mean of all servers.
    """
    size = np.diff(platform.first_processor)
    idle_j = up_w * length_s * (size - 1) / (2.0 * (size + 1))
    return float(np.mean((idle_j + platform.wake_j) / size))


def _typical(view: View, latest_s: Floats, now_s: float) -> tuple[Ints, Floats]:
    """Rows of tasks that have come, on the kind that suits them, and how long they may take."""
    tasks, kinds = view.problem.tasks, kinds_of(view)[:, 0]
    able = (kinds >= 0) & (tasks.scale > 0.0) & (tasks.processors == 1)
    known = np.flatnonzero(able & (tasks.arrival_s <= now_s))
    some = known[np.linspace(0, known.size - 1, min(SAMPLE, known.size)).astype(np.int64)]
    return kinds[some] * len(tasks) + some, latest_s[some] - tasks.arrival_s[some]


def taken_over(view: View, tariff: Tariff, calm: Any, now_s: float) -> Plan:
    """The plan of the price-blind policy as one of ours; all of it is planned anew at once."""
    from downclock.planners.cluster.kernels.price_choice import take_over
    from downclock.planners.cluster.kernels.price_plan import SINCE, new_plan

    fleet = fleet_of(view)
    plan = new_plan(fleet, calm.awake, len(view.problem.tasks))
    for name in ("ready_s", "head", "after", "place", "length_s", "since_s"):
        getattr(plan, name)[:] = getattr(calm, name)
    plan.tally[SINCE] = int((plan.place >= 0).sum())
    take_over(fleet, tariff, plan, now_s)
    return plan
