"""A problem as the search sees it: windows, curves, servers and the value of a joule, as columns.

Windows hold what the graph leaves: a task cannot begin before its predecessors can have ended at
full speed, nor end after its successors must begin. Tasks without work are no jobs; edges pass
through them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.cluster.known.curves import curves_of
from downclock.planners.cluster.known.kernels.model import (
    CAP,
    CELLS,
    GROUP,
    JOB,
    KIND,
    SERVER,
    Question,
    Records,
    records,
)
from downclock.planners.cluster.known.windows import Windows, job_edges, windows_of
from downclock.power.frontier import Frontier
from downclock.problem.graph import grouped
from downclock.problem.objective import ENERGY, Objective
from downclock.problem.platform import Platform
from downclock.problem.problem import Problem
from downclock.units import Bools, Floats, Ints

RIPPLE = 0.1
"""Part of the lowest price that others may be above it to count as one."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownQuestion:
    """What is asked of the search.

    Attributes:
        columns: jobs, curves, servers and prices.
        task: task of each job (n,).
        hopeless: tasks that no schedule can do (tasks,): too long for their window, or after one.
        soonest_s: when each could end at the earliest, at full speed and alone (tasks,).
        whole: kinds whose runs are never interrupted (kinds,).
        least_w: least power of each curve at any clock, also those that no plan wants (curves,).
    """

    columns: Question
    task: Ints
    hopeless: Bools
    soonest_s: Floats
    whole: Bools
    least_w: Floats


def objection(
    problem: Problem, objective: Objective = ENERGY, *, actual: bool = False
) -> str | None:
    """Tell why the search cannot plan a problem, or None; ``actual``: bound it at real prices."""
    platform = problem.platform
    if platform.slot_s is not None:
        return "the platform is slotted; this policy plans in continuous time"
    if np.any(np.bincount(platform.chip) > 1):
        return "processors share a clock; this policy sets each clock by itself"
    for column in (platform.shared_w, platform.shared_w_per_clock):
        least, most = _ends_per_server(platform, column)
        if np.any(least != most):
            return "chips of one server differ in shared power"
    try:
        tariff_columns(problem, objective, actual=actual)
    except InvalidInput as error:
        return error.rule if error.source is None else f"{error.source}: {error.rule}"
    return None


def require_known(problem: Problem, objective: Objective) -> None:
    """Refuse a problem that the search cannot plan."""
    doubt = objection(problem, objective)
    if doubt is not None:
        raise InvalidInput(doubt, item=f"problem '{problem.name}'")


def ask(
    problem: Problem, objective: Objective, only: Bools | None = None, *, actual: bool = False
) -> KnownQuestion:
    """Put a problem into columns; with ``only`` (tasks,) as if other tasks were not to be done.

    Prices are forecasts where there are any, unless ``actual``.

    Raises:
        InvalidInput: a price or carbon curve is missing, or ends before the last deadline.
    """
    frontiers = [problem.frontier(k) for k in range(len(problem.platform.kinds))]
    tariff, known_s = tariff_columns(problem, objective, actual=actual)
    windows = windows_of(problem, frontiers, only)
    task = np.flatnonzero(~windows.hopeless & (problem.tasks.scale > 0.0))
    asked = ("curves of known jobs", task.tobytes())
    curves, entries, on_kind, least_w = problem.once(asked, lambda: curves_of(problem, task))
    curve = np.where(np.isfinite(windows.short_s[task]), on_kind, -1)
    capacity = _capacity(problem.platform)
    jobs, before, after = _jobs(problem, task, windows, frontiers)
    jobs.to_s = np.minimum(jobs.to_s, known_s)
    room = np.cumsum(_room(jobs.gang, curve, capacity))
    jobs.held_first, jobs.held_end = np.append(0, room)[:-1], room
    servers, groups, alike = _servers(problem.platform, capacity)
    columns = Question(
        jobs=jobs,
        before=before,
        after=after,
        curve=curve,
        curves=curves,
        entries=entries,
        servers=servers,
        kinds=_kinds(problem.platform, capacity),
        capacity=capacity,
        groups=groups,
        alike=alike,
        tariff=tariff,
        down=_down(problem.platform),
        **_caps(problem.platform, jobs, np.where(curve >= 0, least_w[curve], np.inf).min(axis=1)),
    )
    whole = np.array([kind.interrupt == "none" for kind in problem.platform.kinds])
    return KnownQuestion(columns, task, windows.hopeless, windows.soonest_s, whole, least_w)


def at_one_price(asked: KnownQuestion) -> KnownQuestion | None:
    """The question at the lowest price of each zone; None where prices change by more than a bit.

    What is only known for one price then holds nearly: no cliff where prices begin to change.
    """
    tariff = asked.columns.tariff
    low, high = tariff[1::2].min(axis=1), tariff[1::2].max(axis=1)
    if np.any(high - low > RIPPLE * np.abs(low)):
        return None
    flat = np.zeros((len(tariff), 1))
    flat[1::2, 0] = low
    return replace(asked, columns=asked.columns._replace(tariff=flat))


def lead_of(question: Question) -> Records:
    """A server of each group of equal ones."""
    return question.servers[question.alike[question.groups.first]]


def sizes_of(question: Question) -> Ints:
    """Processors of each kind on a server of each group (g, k)."""
    return np.asarray(question.capacity[question.alike[question.groups.first]])


def tariff_columns(
    problem: Problem, objective: Objective, *, actual: bool = False
) -> tuple[Floats, float]:
    """Value of a joule (see `kernels.tariff`) and until when it is known.

    Where energy is asked for, a joule is worth 1 everywhere.
    """
    from downclock.planners.cluster.price_bound import tariff_of

    zones = len(problem.platform.zones)
    if objective == ENERGY:
        return np.array([[0.0], *([[1.0], [0.0]] * zones)]), np.inf
    known = tariff_of(problem, objective, actual=actual)
    columns = np.empty((1 + 2 * zones, known.rate.shape[1]))
    columns[0], columns[1::2], columns[2::2] = known.edge_s[:-1], known.rate, known.past[:, :-1]
    return columns, float(known.edge_s[-1])


def _jobs(
    problem: Problem, task: Ints, windows: Windows, frontiers: list[Frontier]
) -> tuple[Records, Ints, Ints]:
    """The jobs, and what is before and after them."""
    ends = job_edges(problem, task)
    order = problem.edges.order(len(problem.tasks))
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    before_first, before = grouped(task.size, ends[1], ends[0])
    after_first, after = grouped(task.size, ends[0], ends[1])
    jobs = records(
        JOB,
        task.size,
        from_s=windows.from_s[task],
        to_s=windows.to_s[task],
        gang=problem.tasks.processors[task],
        scale=problem.tasks.scale[task],
        shortest_s=windows.short_s[task].min(axis=1, initial=np.inf),
        natural_s=_natural_s(problem, task, windows, frontiers),
        rank=rank[task],
        before_first=before_first[:-1],
        before_end=before_first[1:],
        after_first=after_first[:-1],
        after_end=after_first[1:],
    )
    return jobs, before, after


def _natural_s(problem: Problem, task: Ints, windows: Windows, frontiers: list[Frontier]) -> Floats:
    """Run time of least energy with a processor's part of its host, on the best kind (n,)."""
    platform = problem.platform
    part_w = (platform.host_w / np.diff(platform.first_processor))[platform.server]
    best, least = np.zeros(task.size), np.full(task.size, np.inf)
    for k, of_kind in enumerate(frontiers):
        price_w = float(part_w[platform.kind == k].min(initial=np.inf))
        if not np.isfinite(price_w):
            continue
        found = of_kind.cheapest(price_w, task)
        cost = found.energy_j + price_w * found.time_s
        better = np.isfinite(windows.short_s[task, k]) & (cost < least)
        best[better], least[better] = found.time_s[better], cost[better]
    return np.minimum(best, windows.to_s[task] - windows.from_s[task])


def _room(gang: Ints, curve: Ints, capacity: Ints) -> Ints:
    """Servers that each job may need (n,): one, or enough of the smallest for a large gang."""
    room = np.ones(gang.size, np.int64)
    for k in range(capacity.shape[1]):
        sizes = capacity[:, k][capacity[:, k] > 0]
        wide = (curve[:, k] >= 0) & (gang > sizes.max(initial=0))
        if sizes.size:
            most = np.minimum(sizes.size, -(-gang[wide] // sizes.min()))
            room[wide] = np.maximum(room[wide], most)
    return room


def _capacity(platform: Platform) -> Ints:
    """Processors of each kind on each server (s, k)."""
    kinds, servers = len(platform.kinds), platform.server_count
    cell = platform.server * kinds + platform.kind
    return np.bincount(cell, minlength=servers * kinds).reshape(servers, kinds).astype(np.int64)


def _kinds(platform: Platform, capacity: Ints) -> Records:
    return records(
        KIND,
        len(platform.kinds),
        idle_w=[kind.idle_w for kind in platform.kinds],
        largest=capacity.max(axis=0),
        migrates=[kind.interrupt == "migrate" for kind in platform.kinds],
    )


def _servers(platform: Platform, capacity: Ints) -> tuple[Records, Records, Ints]:
    """The servers, groups of equal ones, and the servers by group."""
    idle_w = np.bincount(platform.server, platform.idle_w, platform.server_count)
    every = np.arange(platform.server_count)
    columns = {
        "up_w": platform.host_w + idle_w,
        "sleep_w": platform.sleep_w,
        "wake_j": platform.wake_j,
        "wake_s": platform.wake_s,
        "shared_w": _ends_per_server(platform, platform.shared_w)[0],
        "shared_w_per_clock": _ends_per_server(platform, platform.shared_w_per_clock)[0],
        "begins_on": platform.initially_on,
        "zone": platform.zone,
    }
    alone = np.where(np.isin(every, platform.limits.server), every, -1)  # a group of its own
    table = np.column_stack([capacity, *columns.values(), alone])
    group = np.unique(table, axis=0, return_inverse=True)[1].reshape(-1)
    first, alike = grouped(int(group.max()) + 1, group, every)
    groups = records(GROUP, first.size - 1, first=first[:-1], end=first[1:])
    down = [np.searchsorted(platform.limits.server, every, side) for side in ("left", "right")]
    servers = records(
        SERVER, platform.server_count, **columns, down_first=down[0], down_end=down[1]
    )
    return servers, groups, alike


def _down(platform: Platform) -> Floats:
    """From when to when servers can run nothing (d, 2): they are down, and have to wake then."""
    limits = platform.limits
    ready_s = limits.to_s + platform.wake_s[limits.server]
    return np.column_stack([limits.from_s, ready_s])


def _caps(platform: Platform, jobs: Records, least_w: Floats) -> dict[str, Any]:
    """Caps on power, less what sleeping servers draw, and the servers they hold for.

    Jobs without a deadline have four times what they take where all processors, or all power if
    that is capped everywhere, are in use; or twice what they take one after the other, if less.
    """
    limits = platform.limits.caps(platform.zones, platform.zone)
    servers = np.array([each[2] for each in limits], np.bool_).reshape(-1, platform.server_count)
    cap_w = np.array([each[1] for each in limits]) - servers @ platform.sleep_w
    most_w = float(cap_w.sum()) if servers.any(axis=0).all() else np.inf
    most_w = float(cap_w[servers.all(axis=1)].min(initial=most_w))
    endless = np.isinf(jobs.to_s)
    taken_s, gang = jobs.natural_s[endless], jobs.gang[endless]
    drawn_w = np.where(np.isfinite(least_w), least_w, 0.0)[endless] * gang
    parts = [gang / platform.processor_count, *([drawn_w / most_w] if most_w > 0.0 else [])]
    end_s = float(np.where(endless, jobs.from_s, jobs.to_s).max(initial=1.0))
    end_s += min(2.0 * taken_s.sum(), 4.0 * max(float(taken_s @ each) for each in parts))
    return {
        "caps": records(CAP, cap_w.size, cap_w=cap_w, step_s=end_s / CELLS),
        "capped": servers,
    }


def _ends_per_server(platform: Platform, per_chip: Floats) -> tuple[Floats, Floats]:
    """Least and most of a column of chips on each server (s,)."""
    first = np.searchsorted(platform.chip_server, np.arange(platform.server_count))
    return np.minimum.reduceat(per_chip, first), np.maximum.reduceat(per_chip, first)
