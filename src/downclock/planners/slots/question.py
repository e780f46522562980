"""From a `Problem` with slots and prices to a slot graph, and back to a `Schedule`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.slots.model import SlotGraph, SlotGraphIndex, SlotPlan, levels
from downclock.planners.slots.order import machines_of
from downclock.power.points import CORE
from downclock.problem.graph import Edges
from downclock.problem.objective import Objective
from downclock.problem.platform import Platform, ServerSpec
from downclock.problem.price import ZonePrices
from downclock.problem.problem import Problem
from downclock.schedule.schedule import ON, Outcomes, PowerSpans, Schedule, Segments
from downclock.units import J_PER_KWH, TOLERANCE, Bools, Floats, Ints

FINEST = 240
"""Most units a slot is divided into; clocks that need more are rounded down to it."""

MOST_SLOTS = 100_000
"""More of them are a slip in ``slot_s``; tables have a row for each."""

COARSEST, LARGEST_TABLES = 12, 3e8
"""Least units of a slot where clocks are rounded, and the work on tables that is not exceeded."""


@dataclass(frozen=True, slots=True, eq=False)
class SlottedQuestion:
    """A slot graph and what is needed to read its answer.

    Attributes:
        graph: the slot graph of the tasks that have work.
        task: their indices in the problem (n,).
        points: operating point of each level (k, 3).
        share: part of each task that a slot at each level really does (n, k).
    """

    graph: SlotGraph
    task: Ints
    points: Floats
    share: Floats

    def levels(self, plan: SlotPlan, tasks: Sequence[int] | None = None) -> list[Ints]:
        """Level of each slot of each (given) task, -1 for off; as `cost_model.levels`.

        Where clocks were rounded down a task may be done sooner: slots after that are off.
        """
        every = range(len(self.graph)) if tasks is None else tasks
        return [
            _until_done(chosen, self.share[i])
            for i, chosen in zip(every, levels(self.graph, plan, tasks), strict=True)
        ]

    def cost(self, first: Ints, every: Sequence[Ints]) -> float:
        """Cost of levels from the first slots (n,) on."""
        graph, total = self.graph, 0.0
        for start, chosen in zip(first, every, strict=True):
            on = np.flatnonzero(chosen >= 0)
            total += float(graph.price[start + on] @ graph.power[chosen[on]])
        return total


def _until_done(level: Ints, share: Floats) -> Ints:
    """Turn slots off after which nothing is left to do."""
    done = np.cumsum(np.where(level >= 0, share[level], 0.0))
    before = np.concatenate([[0.0], done[:-1]])
    return np.where(before >= 1.0 - TOLERANCE, -1, level)


def classes(problem: Problem) -> tuple[tuple[tuple[int, int], ...], Ints]:
    """Classes of equal processors as (kind, zone), and the class of each processor (p,)."""
    platform = problem.platform
    pair = np.column_stack([platform.kind, _like(problem)[platform.zone[platform.server]]])
    found, of = np.unique(pair, axis=0, return_inverse=True)
    return tuple((int(k), int(z)) for k, z in found), np.ravel(of).astype(np.int64)


def _like(problem: Problem) -> Ints:
    """First zone with the same prices as each zone."""
    curves = [_numbers(problem.prices.of(name)) for name in problem.platform.zones]
    return np.array([curves.index(each) for each in curves], dtype=np.int64)


def _numbers(zone: ZonePrices) -> tuple[object, ...]:
    """All numbers of a zone's curves, to compare."""
    curves = (zone.price, zone.carbon, zone.price_forecast, zone.carbon_forecast)
    return tuple(
        curve and (curve.start_s.tobytes(), curve.value.tobytes(), curve.end_s) for curve in curves
    )


def on_machine_class(problem: Problem, kind: int, zone: int) -> Problem:
    """The same problem on processors of one kind in zones with the prices of one only."""
    platform = problem.platform
    mine = (platform.kind == kind) & (_like(problem)[platform.zone[platform.server]] == zone)
    spec = platform.kinds[kind]
    server = ServerSpec(
        "machine", ((spec.name, int(mine.sum())),), zone=platform.zones[zone], initially_on=True
    )
    return replace(problem, platform=Platform.build((spec,), (server,), platform.slot_s))


def objection(problem: Problem) -> str | None:
    """Say why the slot solvers cannot take a problem, or None."""
    platform = problem.platform
    extra: list[Floats | float] = [kind.idle_w for kind in platform.kinds]
    extra += [platform.host_w, platform.shared_w, platform.shared_w_per_clock]
    extra += [platform.wake_j, platform.wake_s, platform.sleep_w]
    if any(np.any(np.asarray(watts) > 0.0) for watts in extra):
        return "counts running power only: idle, host, shared, sleep and wake power must be 0"
    if np.unique(platform.chip).size != platform.processor_count:
        return "needs a clock for every processor, not for whole chips"
    groups = (on_machine_class(problem, *group) for group in classes(problem)[0])
    return next((why for why in map(_class_objection, groups) if why is not None), None)


def _class_objection(problem: Problem) -> str | None:
    """Say why equal processors cannot be planned in slots, or None."""
    platform, tasks = problem.platform, problem.tasks
    kind = platform.kinds[0]
    single = np.all(tasks.processors == 1) and np.all(np.isfinite(tasks.deadline_s))
    last = float(np.max(tasks.deadline_s[tasks.scale > 0.0], initial=0.0))
    slots = np.floor(last / (platform.slot_s or 1.0) + TOLERANCE)
    rules: list[tuple[bool, str]] = [
        (platform.slot_s is not None, "needs a platform with time slots (slot_s)"),
        (
            kind.clocks.listed and kind.clocks.knob == "clock",
            "needs kinds with enumerated clocks (core_mhz = [...])",
        ),
        (kind.clock == "free", "needs clocks that may change while a task runs"),
        (kind.interrupt in ("none", "pause"), "needs interrupt 'none' or 'pause'"),
        (bool(single), "needs tasks of one processor with a deadline"),
        (1 <= slots <= MOST_SLOTS, f"needs 1 to {MOST_SLOTS:,} slots up to the last deadline"),
        (
            bool(np.all(problem.runnable()[tasks.scale > 0.0, 0])),
            "needs a profile of every task",
        ),
    ]
    return next((reason for good, reason in rules if not good), None)


def question(
    problem: Problem, objective: Objective, *, actual: bool = False, relaxed: bool = False
) -> SlottedQuestion:
    """Make the slot graph of a problem; prices as policies may know them, negative ones as 0.

    On several classes of processors it is that of the first. With ``actual`` prices are those that
    bills use: nobody can plan with them, but bounds may. Clocks that are no simple fraction are
    rounded down, so that plans keep their promises; ``relaxed`` up, so that bounds hold.

    Raises:
        InvalidInput: a problem the slot model has no words for, or a curve that ends too early.
    """
    actual = actual and not objective.foreseen(problem.prices)
    key = ("slotted question", objective, actual, relaxed)
    return problem.once(key, lambda: _question(problem, objective, actual, relaxed))


def _question(
    problem: Problem, objective: Objective, actual: bool, relaxed: bool
) -> SlottedQuestion:
    reason = objection(problem)
    if reason is not None:
        raise InvalidInput(reason, item=f"problem '{problem.name}'")
    platform, tasks = problem.platform, problem.tasks
    slot_s = float(platform.slot_s or 1.0)
    real = np.flatnonzero(tasks.scale > 0.0)
    points, power_w, speed, time_s = _levels(problem, real)
    full = time_s[:, -1] / slot_s
    units, per_slot = whole_units(
        speed, up=relaxed, finest=_finest(tasks.deadline_s / slot_s, full)
    )
    kept = undominated(units, power_w)
    work = np.ceil(full * speed[-1] * per_slot - 1e-6).astype(np.int64)
    release = np.ceil(tasks.arrival_s[real] / slot_s - TOLERANCE).astype(np.int64)
    due = np.floor(tasks.deadline_s[real] / slot_s + TOLERANCE).astype(np.int64) - 1
    edges_s = slot_s * np.arange(int(due.max()) + 2, dtype=np.float64)
    name = platform.zones[int(platform.zone[0])]
    zone = problem.prices.of(name)
    price = objective.per_kwh(zone, edges_s, actual=actual, name=name) * slot_s / J_PER_KWH
    pause = platform.kinds[0].interrupt == "pause"
    edges = _between(problem, real)
    graph = SlotGraph(
        np.maximum(work, 1), edges, platform.processor_count, price, units[kept], power_w[kept],
        pause, release, due,
    )  # fmt: skip
    return SlottedQuestion(graph, real, points[kept], slot_s / time_s[:, kept])


def _finest(due: Floats, full: Floats) -> int:
    """Units of a slot that keep the tables of some tasks small: due and full speed, in slots."""
    steps = np.unique(full).size * float(due.max(initial=1.0)) ** 2 * float(full.max(initial=1.0))
    return int(np.clip(LARGEST_TABLES / max(steps, 1.0), COARSEST, FINEST))


def whole_units(speed: Floats, *, up: bool = False, finest: int = FINEST) -> tuple[Ints, int]:
    """Units done in a slot at each speed (k,), and units at speed 1.

    Exact where a common denominator up to `FINEST` exists, else rounded down to parts of
    ``finest``, or ``up``.
    """
    parts = [Fraction(float(value)).limit_denominator(FINEST) for value in speed]
    per_slot = lcm(*(part.denominator for part in parts))
    exact = all(abs(float(part) - value) < 1e-9 for part, value in zip(parts, speed, strict=True))
    if not exact or per_slot > FINEST:
        per_slot = finest
    whole = np.ceil(speed * per_slot - 1e-6) if up else np.floor(speed * per_slot + 1e-6)
    return whole.astype(np.int64), per_slot


def undominated(units: Ints, power: Floats) -> Ints:
    """Levels, slowest first, that no other one beats: none as quick draws as little.

    Measured levels, and those that differ by less than a unit, may be as quick as each other.
    """
    fastest_first = np.lexsort((power, -units))
    before = np.minimum.accumulate(np.append(np.inf, power[fastest_first]))[:-1]
    return fastest_first[power[fastest_first] < before][::-1]


def _levels(problem: Problem, real: Ints) -> tuple[Floats, Floats, Floats, Floats]:
    """Return points, power and relative speed of the levels, slowest first, and times (n, k)."""
    clocks = problem.platform.kinds[0].clocks
    points = clocks.points[np.argsort(clocks.points[:, CORE], kind="stable")]
    each = np.repeat(real, len(points))
    zero = np.zeros(each.size, dtype=np.int64)
    time_s, power_w = problem.at(each, zero, np.tile(points, (real.size, 1)))
    time_s, power_w = time_s.reshape(real.size, -1), power_w.reshape(real.size, -1)
    speed = time_s[:, -1:] / time_s * points[-1, CORE]
    same: Bools = np.all(np.isclose(power_w, power_w[0], rtol=1e-9), axis=1)
    same &= np.all(np.isclose(speed, speed[0], rtol=1e-9), axis=1)
    if not np.all(same):
        task = problem.tasks.name[real[int(np.argmin(same))]]
        rule = "needs tasks that all draw the same power and slow down alike at every clock"
        raise InvalidInput(rule, item=f"task '{task}'")
    return points, power_w[0], speed[0], time_s


def _between(problem: Problem, real: Ints) -> Edges:
    """Edges among tasks with work; a chain through milestones becomes one edge."""
    n = len(problem.tasks)
    if real.size == n:
        return problem.edges
    place = np.full(n, -1)
    place[real] = np.arange(real.size)
    before: list[set[int]] = [set() for _ in range(n)]
    preds: list[list[int]] = [[] for _ in range(n)]
    for i, j in zip(problem.edges.before.tolist(), problem.edges.after.tolist(), strict=True):
        preds[j].append(i)
    for j in problem.edges.order(n).tolist():
        for i in preds[j]:
            before[j] |= {i} if place[i] >= 0 else before[i]
    rows = [(place[i], place[j]) for j in real.tolist() for i in sorted(before[j])]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return Edges(columns[:, 0], columns[:, 1])


def schedule_of(
    problem: Problem, asked: SlottedQuestion, plan: SlotPlan, policy: str
) -> tuple[Schedule, float]:
    """Write a plan on equal machines as a schedule; return what it costs, too."""
    machine = machines_of(SlotGraphIndex.of(asked.graph), plan)
    every, points = asked.levels(plan), [asked.points] * len(plan.first)
    schedule = written(problem, asked.task, machine, plan, every, points, policy)
    return schedule, asked.cost(plan.first, every)


def written(
    problem: Problem,
    tasks: Ints,
    machine: Ints,
    plan: SlotPlan,
    every: Sequence[Ints],
    points_of: Sequence[Floats],
    policy: str,
) -> Schedule:
    """Write intervals, machines and levels as a schedule: a segment for every run at one level.

    ``every`` are the levels in each task's slots, ``points_of`` its levels' operating points.
    """
    slot_s = float(problem.platform.slot_s or 1.0)
    rows = [
        (i, plan.first[i] + begin, plan.first[i] + end, level)
        for i, chosen in enumerate(every)
        for begin, end, level in _runs(chosen)
    ]
    task, start, end, level = (
        np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)
    )
    points = np.array([points_of[i][k] for i, k in zip(task, level, strict=True)])
    rows_task, processor = tasks[task], machine[task]
    full_s, _ = problem.at(rows_task, problem.platform.kind[processor], points)
    share = (end - start) * slot_s / full_s
    done = np.bincount(task, weights=share, minlength=tasks.size)
    final = np.append(task[1:] != task[:-1], True)
    share[final] -= done[task[final]] - 1.0
    segments = Segments.of(
        rows_task,
        processor,
        np.asarray(start * slot_s, dtype=np.float64),
        np.asarray(end * slot_s, dtype=np.float64),
        points,
        share=share,
    )
    return Schedule(
        segments,
        _spans(problem, segments),
        Outcomes.all_done(len(problem.tasks)),
        policy,
    )


def _runs(level: Ints) -> list[tuple[int, int, int]]:
    """Return (begin, end, level) of runs of equal levels; off is left out."""
    edge = np.flatnonzero(np.diff(level)) + 1
    begin, end = np.append(0, edge), np.append(edge, level.size)
    return [
        (int(a), int(b), int(level[a])) for a, b in zip(begin, end, strict=True) if level[a] >= 0
    ]


def _spans(problem: Problem, segments: Segments) -> PowerSpans:
    """Servers that run anything are on from their first to their last segment."""
    server = problem.platform.server[segments.processor]
    used = np.unique(server)
    start, end = np.full(used.size, np.inf), np.zeros(used.size)
    place = np.searchsorted(used, server)
    np.minimum.at(start, place, segments.start_s)
    np.maximum.at(end, place, segments.end_s)
    return PowerSpans(used, np.full(used.size, ON), start, end)
