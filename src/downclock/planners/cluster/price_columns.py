"""The columns that the price kernels work on, and their answers as decisions."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from downclock.engine.policy import Decisions, View
from downclock.planners.cluster.columns import curves_of, up_w
from downclock.planners.cluster.policy import power_spans
from downclock.planners.cluster.price_bound import longest_s
from downclock.planners.lists.lengths import OneClock
from downclock.problem.problem import Problem
from downclock.schedule.schedule import Segments
from downclock.units import Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.cluster.kernels.curves import Curves
    from downclock.planners.cluster.kernels.price_plan import Asked, Fleet, Written

LENGTHS = 24
"""Lengths that are tried of each task on continuous clocks."""


def fleet_of(view: View) -> Fleet:
    """The platform as arrays; computed once."""

    def compute() -> Fleet:
        from downclock.planners.cluster.kernels.price_plan import Fleet

        platform = view.problem.platform
        first = platform.first_processor
        kinds = [tuple(platform.kind[a:b]) for a, b in pairwise(first)]
        power = up_w(platform)
        numbers: dict[object, int] = {}
        columns = zip(kinds, platform.zone, platform.wake_s, platform.wake_j, power, strict=True)
        like = [numbers.setdefault(key, len(numbers)) for key in columns]
        return Fleet(
            platform.kind, platform.server, first, platform.zone.astype(np.int64),
            np.array(like, dtype=np.int64), platform.wake_s, platform.wake_j, power,
        )  # fmt: skip

    return view.once("price fleet", compute)


def curves_for(view: View, dvfs: bool) -> Curves:
    """Energy-time curves; without DVFS a single length a task."""
    curves = curves_of(view)
    return curves if dvfs else view.once("price clock", lambda: _one_length(view, curves))


def _one_length(view: View, curves: Curves) -> Curves:
    from downclock.power.kernels.models import LADDER, NOWHERE

    n, kinds = len(view.problem.tasks), len(view.problem.platform.kinds)
    every, clock = np.arange(n), OneClock()
    time, energy = np.full((kinds, n), np.inf), np.full((kinds, n), np.inf)
    for k in range(kinds):
        wanted = clock.wanted(view, k)
        good = np.flatnonzero(np.isfinite(wanted))
        points = clock.points(view, k, every[good], wanted[good])
        _, power = view.problem.at(every[good], np.full(good.size, k), points)
        time[k, good], energy[k, good] = wanted[good], power * wanted[good]
    time_s, energy_j = time.ravel(), energy.ravel()
    model = np.where(np.isfinite(time_s), LADDER, NOWHERE)
    first, calm = np.arange(time_s.size + 1), np.arange(time_s.size)
    return curves._replace(
        model=model, first=first, rung_s=time_s, rung_j=energy_j, calm=calm, short_s=time_s,
        free_s=time_s, free_j=energy_j, long_s=time_s,
    )  # fmt: skip


def latest_s(problem: Problem, until_s: float, last_s: float) -> Floats:
    """When each task must end (n,); without a deadline where prices do, ``until_s``.

    Where the last price holds for ever, from ``last_s`` on, such a task has time for all that has
    arrived by then to run one after the other: later tasks are not looked at.
    """
    tasks = problem.tasks
    if np.isfinite(until_s):
        return np.minimum(tasks.deadline_s, until_s)
    order = np.argsort(tasks.arrival_s, kind="stable")
    work_s = np.cumsum(longest_s(problem)[order])
    known = np.searchsorted(tasks.arrival_s[order], tasks.arrival_s, side="right") - 1
    spare_s = work_s[known] + problem.platform.wake_s.max() + 1.0
    stand_in = np.maximum(tasks.arrival_s, last_s) + spare_s
    return np.where(np.isfinite(tasks.deadline_s), tasks.deadline_s, stand_in)


def asked_of(view: View, curves: Curves, latest_s: Floats) -> Asked:
    """The tasks as arrays."""
    from downclock.planners.cluster.kernels.price_plan import Asked

    tasks = view.problem.tasks
    first, try_s, try_j = view.once(("price lengths", id(curves)), lambda: _lengths(curves))
    return Asked(
        tasks.arrival_s, latest_s, np.zeros(len(tasks), np.int64), first, try_s, try_j
    )  # fmt: skip


def _lengths(curves: Curves) -> tuple[Ints, Floats, Floats]:
    """Lengths to try of each row: all of a ladder, else from the shortest to the longest."""
    from downclock.planners.cluster.kernels.price_run import energies
    from downclock.power.kernels.models import CPU, GPU

    smooth = ((curves.model == GPU) | (curves.model == CPU)) & np.isfinite(curves.short_s)
    sizes = np.where(smooth, LENGTHS, np.diff(curves.first))
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    try_s, try_j = np.empty(first[-1]), np.empty(first[-1])
    rows = np.flatnonzero(smooth)
    short = curves.short_s[rows]
    long = np.where(np.isfinite(curves.long_s[rows]), curves.long_s[rows], 4.0 * short)
    ratio = np.maximum(long / short, 1.0)
    grid = (short[:, None] * ratio[:, None] ** np.linspace(0.0, 1.0, LENGTHS)).ravel()
    where = (first[rows][:, None] + np.arange(LENGTHS)).ravel()
    try_s[where] = grid
    try_j[where] = energies(curves, np.repeat(rows, LENGTHS), grid)
    listed = np.repeat(~smooth, sizes)
    kept = np.repeat(~smooth, np.diff(curves.first)) if curves.rung_s.size else np.empty(0, bool)
    try_s[listed], try_j[listed] = curves.rung_s[kept], curves.rung_j[kept]
    return first, try_s, try_j


def decided(
    view: View, asked: Asked, out: Written, arrived: Ints, clock: OneClock | None
) -> Decisions:
    """Turn what a kernel wrote into decisions."""
    platform, tasks = view.problem.platform, view.problem.tasks
    points, kind = np.ones((out.task.size, 3)), platform.kind[out.processor]
    for k in range(len(platform.kinds)):
        mine = np.flatnonzero(kind == k)
        if mine.size and clock is None:
            points[mine] = view.frontier(k).at(out.length_s[mine], out.task[mine]).points
        elif mine.size and clock is not None:
            points[mine] = clock.points(view, k, out.task[mine], out.length_s[mine])
    end_s = np.minimum(out.start_s + out.length_s, tasks.deadline_s[out.task])
    place = Segments.of(out.task, out.processor, out.start_s, end_s, points)
    lost = np.flatnonzero(asked.status)
    gangs = arrived[(tasks.processors[arrived] > 1) & (tasks.scale[arrived] > 0.0)]
    reasons = [_reason(view, int(i), float(asked.deadline_s[i])) for i in lost]
    reasons += [
        f"needs {count} processors at once; this policy plans single processors"
        for count in tasks.processors[gangs]
    ]
    rejected = np.concatenate([lost, gangs])
    return Decisions(place, power_spans(platform, out.span), rejected, np.array(reasons, object))


def _reason(view: View, task: int, latest_s: float) -> str:
    tasks, platform = view.problem.tasks, view.problem.platform
    shortest = np.array([view.frontier(k).t_min_s[task] for k in range(len(platform.kinds))])
    run_s = shortest[platform.kind]
    if not np.isfinite(run_s.min()):
        return "no processor of this platform has a profile for it"
    earliest = float(tasks.arrival_s[task] + run_s.min())
    woken = float(tasks.arrival_s[task] + (run_s + platform.wake_s[platform.server]).min())
    if earliest > latest_s:
        why = f"even at full speed: earliest {earliest:g} s"
    elif woken > latest_s:
        why = f"as what is awake is taken, and on a server that must wake: earliest {woken:g} s"
    else:
        why = "as every processor is taken"
    if np.isfinite(tasks.deadline_s[task]):
        return f"cannot end by its deadline {latest_s:g} s {why}"
    return f"has no deadline, and cannot end while prices are known, until {latest_s:g} s, {why}"
