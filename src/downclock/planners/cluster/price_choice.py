"""Whether prices are worth waiting for: what it can save against what it costs in idling.

Who waits for cheap hours chooses from fewer tasks, and the processors of a server do not end
together. Where prices change little that costs more than it saves: tasks are planned as if prices
did not change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downclock.engine.view import View
from downclock.planners.cluster.board import Board
from downclock.planners.cluster.columns import CurveTables, awake_w
from downclock.planners.cluster.price_bound import known_tariff, known_until_s
from downclock.problem.objective import Objective
from downclock.problem.platform import Platform
from downclock.problem.price import Prices
from downclock.units import Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.cluster.kernels.tariff import Tariff

SAMPLE, TIMES, AHEAD_S = 128, 24, 86400.0
"""Known tasks looked at, times at which each is thought to come, and the span of these times."""

AGAIN, SOON, AGAIN_S = 2.0, 1.02, 21600.0
"""The question is asked again when so many times as many tasks are known, or after this time. While
tasks wait it is whether room has become scarce, and asked much sooner: what waits takes room."""

TRUST = 2.0 / 3.0
"""Part of the saving that a forecast promises which is believed. Of carbon forecasts made 24 hours
before in Great Britain, January 2024, a tenth to nine tenths came true, by day. Prices known
beforehand keep what they promise."""

MARGINS = ((AHEAD_S, 1.25), (AGAIN_S, 1.0))
"""The saving must be so many times the loss: both are estimates, and a change of plans costs. Until
the question is asked again it must only not be less."""

FITTED, UNFILLED = 0.014, 0.25
"""What waiting costs: this part of all energy, as run times are fitted to what servers leave free;
and this part of what processors idle that end apart, as others fill the rest."""

ROOMY, SCARCE = 0.4, 0.55
"""Part of the processors that must be busy up to which jobs begin to wait, as more come; and from
which on nothing waits: jobs that come later would find cheap hours full and be rejected."""

TIE = 1e-3
"""Weight of energy where it costs nothing, as a part of its mean value: no burning for nothing."""


class PriceWatch(NamedTuple):
    """When to ask whether waiting pays: while ``asks``, at so many tasks or from a time on."""

    asks: bool
    enough: float = 1.0
    next_s: float = 0.0

    def is_due(self, seen: int, now_s: float) -> bool:
        """Tell whether to ask now, ``seen`` tasks being known."""
        return self.asks and (seen >= self.enough or now_s >= self.next_s)

    def after(self, seen: int, now_s: float, *, waits: bool) -> PriceWatch:
        """What is kept after an answer."""
        return PriceWatch(True, (SOON if waits else AGAIN) * seen, now_s + AGAIN_S)


class Rates(NamedTuple):
    """A tariff with a little weight on energy, and whether a joule is worth the same anywhere."""

    tariff: Tariff
    is_flat: bool


def tariff_for(view: View, objective: Objective | None) -> Rates:
    """What a joule is worth, as far as forecasts go; computed once."""
    return view.once(("tariff", str(objective)), lambda: _rates(view, objective))


def _rates(view: View, objective: Objective | None) -> Rates:
    from downclock.planners.cluster.kernels.tariff import new_tariff

    if objective is None:
        zones = len(view.platform.zones)
        return Rates(new_tariff(np.array([0.0, 1.0]), np.ones((zones, 1))), True)
    plain = known_tariff(view, objective)
    mean = plain.past[:, -1].mean() / plain.edge_s[-1]
    tied = new_tariff(plain.edge_s, plain.rate + TIE * mean)
    return Rates(tied, bool(np.all(plain.rate == plain.rate[0, 0])))


def latest_s(
    view: View, objective: Objective | None, tasks: Ints, arrival_s: Floats, work_s: float
) -> tuple[Floats, float]:
    """When tasks (m,), told at these times, must end; without a deadline where prices do.

    Where a joule is worth the same at all times a deadline is just that.
    Where the last price holds for ever such a task has time for all that has arrived by then to
    run one after the other: ``work_s`` for those before, returned with these added.
    """
    deadline_s = view.tasks.deadline_s[tasks].copy()
    if objective is None:
        return deadline_s, work_s
    until_s = known_until_s(view, objective)
    if np.isfinite(until_s):
        return np.minimum(deadline_s, until_s), work_s
    if tariff_for(view, objective).is_flat:
        return deadline_s, work_s
    longest = np.zeros(tasks.size)
    for k in range(len(view.platform.kinds)):
        slow = view.frontier(k, tasks).t_max_s
        longest = np.maximum(longest, np.where(np.isfinite(slow), slow, 0.0))
    done_s = work_s + np.cumsum(longest)
    known = np.searchsorted(arrival_s, arrival_s, side="right") - 1
    spare_s = done_s[known] + view.platform.wake_s.max() + 1.0
    last_s = float(tariff_for(view, objective).tariff.edge_s[-2])
    stand_in = np.maximum(arrival_s, last_s) + spare_s
    return np.where(np.isfinite(deadline_s), deadline_s, stand_in), float(done_s[-1])


def trust(prices: Prices, objective: Objective) -> float:
    """Part of a promised saving that counts: less where any curve that counts is a forecast."""
    forecasts = [
        (objective.cost and zone.price_forecast) or (objective.carbon and zone.carbon_forecast)
        for _, zone in prices.zones
    ]
    return TRUST if any(forecasts) else 1.0


def pays(
    view: View, objective: Objective, curves: CurveTables, board: Board, known: Ints, now_s: float
) -> bool:
    """Tell whether waiting for cheap hours saves more than it costs, by what is known by now.

    The tasks seen so far stand for those to come. It has to pay for those of the next day, and for
    those until the question is asked again. Of the saving the part that is trusted counts.
    """
    from downclock.planners.cluster.kernels.price_choice import shifted

    rows, width_s = _typical(view, board, known)
    if rows.size == 0 or must_be_busy(view, curves, board, known, now_s) > ROOMY:
        return False
    until_s, tariff = known_until_s(view, objective), tariff_for(view, objective).tariff
    length_s, joules = (float(curves.rows[name][rows].mean()) for name in ("free_s", "free_j"))
    # In a block a processor does what fits into a window, and what was begun before.
    jobs = 1.0 + float(width_s.mean()) / length_s
    spread = UNFILLED * spread_j(view.platform, awake_w(view.platform), length_s)
    lost_j = spread + FITTED * jobs * joules
    tables = curves.for_kernels()
    for span_s, margin in MARGINS:
        ahead_s = min(span_s, max(0.0, until_s - now_s))
        come_s = now_s + ahead_s * (np.arange(TIMES) + 0.5) / TIMES
        best, blind = shifted(tables, tariff, rows, width_s, come_s, until_s)
        saved = trust(view.prices, objective) * (blind - best)
        if saved * jobs * joules <= margin * lost_j * blind:
            return False
    return True


def spread_j(platform: Platform, awake_w: Floats, length_s: float) -> float:
    """Energy that a processor loses each time its server is awake for a block of tasks.

    Ends of l processors that are even over one run time: the last comes (l - 1) / (2 (l + 1)) of
    it after the mean, and until then they idle. A wake is shared by all. The mean of all servers.
    """
    size = np.diff(platform.first_processor)
    idle_j = awake_w * length_s * (size - 1) / (2.0 * (size + 1))
    return float(np.mean((idle_j + platform.wake_j) / size))


def must_be_busy(view: View, curves: CurveTables, board: Board, known: Ints, now_s: float) -> float:
    """Part of all processors that tasks of the last day need, spread over their windows, at most.

    Each at full speed on the kind that suits it.
    """
    tasks = board.tasks[known]
    recent = (board.kinds[known, 0] >= 0) & (tasks["deadline_s"] > now_s - AHEAD_S)
    some, tasks = known[recent], tasks[recent]
    short_s = curves.rows["short_s"][some * board.kinds.shape[1] + board.kinds[some, 0]]
    room_s = np.maximum(tasks["deadline_s"] - tasks["arrival_s"], np.maximum(short_s, 1e-9))
    part = tasks["gang"] * short_s / room_s
    at_s = np.concatenate([tasks["deadline_s"], tasks["arrival_s"]])
    step = np.concatenate([-part, part])
    busy = np.cumsum(step[np.lexsort((step, at_s))])
    return float(busy.max(initial=0.0)) / view.platform.processor_count


def _typical(view: View, board: Board, known: Ints) -> tuple[Ints, Floats]:
    """Rows of tasks that have come, on the kind that suits them, and how long they may take."""
    able = known[(board.kinds[known, 0] >= 0) & (view.tasks.scale[known] > 0.0)]
    some = able[np.linspace(0, able.size - 1, min(SAMPLE, able.size)).astype(np.int64)]
    rows = some * board.kinds.shape[1] + board.kinds[some, 0]
    return rows, board.tasks["deadline_s"][some] - board.tasks["arrival_s"][some]
