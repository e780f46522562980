"""From a `Problem` with slots and prices to a slot graph, and back to a `Schedule`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.objections import not_limited
from downclock.planners.slots.model import SlotGraph, SlotPlan, levels
from downclock.power.points import CORE
from downclock.problem.graph import Edges
from downclock.problem.objective import Objective
from downclock.problem.platform import Platform, ServerSpec
from downclock.problem.price import ZonePrices
from downclock.problem.problem import Problem
from downclock.schedule.schedule import ON, Outcomes, PowerSpans, Schedule, Segments
from downclock.units import J_PER_KWH, TOLERANCE, Floats, Ints

FINEST = 240
"""Most units a slot is divided into; clocks that need more are rounded down to it."""

MOST_SLOTS = 100_000
"""More of them are a slip in ``slot_s``; tables have a row for each."""

MOST_STEPS = 5e9
"""Slots × slots of the longest interval × work of the longest task: some minutes of counting."""

COARSEST, LARGEST_TABLES = 12, 3e8
"""Least units of a slot where clocks are rounded, and the work on tables that is not exceeded."""


@dataclass(frozen=True, slots=True, eq=False)
class SlottedQuestion:
    """A slot graph and what is needed to read its answer.

    Attributes:
        graph: the slot graph of the tasks that have work.
        task: their indices in the problem (n,).
        points: operating point of each level of each power curve (curves, k, 3).
        share: part of each task that a slot at each level really does (n, k).
    """

    graph: SlotGraph
    task: Ints
    points: Floats
    share: Floats

    def levels(self, plan: SlotPlan, task: int) -> Ints:
        """Level of each slot of a task, -1 for off; as `model.levels`.

        Where clocks were rounded down a task may be done sooner: slots after that are off.
        """
        level = levels(self.graph, plan, task)
        done = np.cumsum(np.where(level >= 0, self.share[task, level], 0.0))
        before = np.concatenate([[0.0], done[:-1]])
        return np.where(before >= 1.0 - 0.5 * TOLERANCE, -1, level)

    def cost(self, plan: SlotPlan, task: int, level: Ints) -> float:
        """Cost of levels in the slots of a task's interval."""
        graph, on = self.graph, np.flatnonzero(level >= 0)
        power = graph.power[graph.curve[task], level[on]]
        return float(graph.price[plan.first[task] + on] @ power)


def classes(problem: Problem) -> tuple[tuple[tuple[int, int], ...], Ints]:
    """Classes of equal processors as (kind, zone), and the class of each processor (p,)."""
    platform = problem.platform
    pair = np.column_stack([platform.kind, _price_class(problem)[platform.zone[platform.server]]])
    found, of = np.unique(pair, axis=0, return_inverse=True)
    return tuple((int(k), int(z)) for k, z in found), np.ravel(of).astype(np.int64)


def _price_class(problem: Problem) -> Ints:
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
    mine = (platform.kind == kind) & (_price_class(problem)[platform.zone[platform.server]] == zone)
    spec = platform.kinds[kind]
    server = ServerSpec(
        "machine", ((spec.name, int(mine.sum())),), zone=platform.zones[zone], initially_on=True
    )
    return replace(problem, platform=Platform.build((spec,), (server,), platform.slot_s))


def objection(problem: Problem) -> str | None:
    """Say why the slot solvers cannot take a problem, and who can; None where they can."""
    platform, limited = problem.platform, not_limited(problem)
    if limited is not None:
        return limited
    extra = {"idle_w": np.array([kind.idle_w for kind in platform.kinds])}
    for field in ("host_w", "shared_w", "shared_w_per_clock", "sleep_w", "wake_j", "wake_s"):
        extra[field] = getattr(platform, field)
    drawn = [field for field, values in extra.items() if np.any(values > 0.0)]
    if drawn:
        return (
            f"counts running power only, and {' and '.join(drawn)} must be 0 for it; where servers"
            " idle and sleep, known plans by prices in continuous time (leave slot_s out)"
        )
    if np.unique(platform.chip).size != platform.processor_count:
        return "needs a clock for every processor, not for whole chips"
    groups = (on_machine_class(problem, *group) for group in classes(problem)[0])
    return next((why for why in map(_class_objection, groups) if why is not None), None)


def _class_objection(problem: Problem) -> str | None:
    """Say why equal processors cannot be planned in slots, or None."""
    platform, tasks = problem.platform, problem.tasks
    kind = platform.kinds[0]
    single = np.all(tasks.processors == 1) and np.all(np.isfinite(tasks.deadline_s))
    real, listed = tasks.scale > 0.0, kind.clocks.listed and kind.clocks.knob == "clock"
    last = float(np.max(tasks.deadline_s[real], initial=0.0))
    slots = np.floor(last / (platform.slot_s or 1.0) + TOLERANCE)
    rules: list[tuple[bool, str]] = [
        (platform.slot_s is not None, "needs a platform with time slots (slot_s)"),
        (listed, "needs kinds with enumerated clocks (core_mhz = [...])"),
        (kind.clock == "free", "needs clocks that may change while a task runs"),
        (kind.interrupt in ("none", "pause"), "needs interrupt 'none' or 'pause'"),
        (bool(single), "needs tasks of one processor with a deadline"),
        (slots >= 1, "cannot end a task in time: no slot ends by the last deadline"),
        (slots <= MOST_SLOTS, f"needs at most {MOST_SLOTS:,} slots up to the last deadline"),
        (bool(np.all(problem.runnable()[real, 0])), "needs a profile of every task"),
    ]
    return next((reason for good, reason in rules if not good), None) or _too_fine(problem, slots)


def _too_fine(problem: Problem, slots: float) -> str | None:
    """Say that costs of all intervals take too long to tell, where slots are that short."""
    shortest_s = problem.frontier(0).t_min_s[problem.tasks.scale > 0.0]
    longest = min(slots, shortest_s.max(initial=0.0) / float(problem.platform.slot_s or 1.0))
    if slots * min(slots, 4.0 * longest) * longest <= MOST_STEPS:
        return None
    return (
        f"needs longer slots: there are {slots:,.0f}, and a task that takes {longest:,.0f} of them"
    )


def as_slot_question(
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
    platform, slot_s = problem.platform, float(problem.platform.slot_s or 1.0)
    real = np.flatnonzero(problem.tasks.scale > 0.0)
    curve, work, share, (units, power_w, points) = _power_curves(problem, real, slot_s, up=relaxed)
    release, due = _windows(problem, slot_s)
    edges_s = slot_s * np.arange(max(int(due[real].max()), 0) + 2, dtype=np.float64)
    name = platform.zones[int(platform.zone[0])]
    zone = problem.prices.of(name)
    edges, pause = _between(problem, real), platform.kinds[0].interrupt == "pause"
    price = objective.per_kwh(zone, edges_s, actual=actual, name=name) * slot_s / J_PER_KWH
    asked = work, edges, platform.processor_count, price, units, power_w, pause
    graph = SlotGraph(*asked, release[real], due[real], curve)
    return SlottedQuestion(graph, real, points, share)


def _windows(problem: Problem, slot_s: float) -> tuple[Ints, Ints]:
    """First and last slot of each task (n,); milestones hand theirs on to what they tie."""
    tasks = problem.tasks
    release = np.ceil(tasks.arrival_s / slot_s - TOLERANCE).astype(np.int64)
    due = np.floor(tasks.deadline_s / slot_s + TOLERANCE).astype(np.int64) - 1
    if np.all(tasks.scale > 0.0):
        return release, due
    along = list(problem.edges.in_order(len(tasks)))
    for i, j in along:
        if tasks.scale[i] == 0.0:
            release[j] = max(release[j], release[i])
    for i, j in reversed(along):
        if tasks.scale[j] == 0.0:
            due[i] = min(due[i], due[j])
    return release, due


def _power_curves(
    problem: Problem, real: Ints, slot_s: float, *, up: bool
) -> tuple[Ints, Ints, Floats, tuple[Ints, Floats, Floats]]:
    """Return how quick and how hungry levels are for the applications of some tasks (n,).

    Curve and work of each task (n,) and the part of it that a slot at each level really does
    (n, k); then units and power of each curve (curves, k) and its points (curves, k, 3). Curves of
    fewer levels than ``k`` repeat their highest.
    """
    scale = problem.tasks.scale[real]
    _, sample, curve = np.unique(
        problem.tasks.application[real], return_index=True, return_inverse=True
    )
    points, time_s, power_w = _levels(problem, real[sample])
    time_s /= scale[sample, None]
    full = scale * time_s.min(axis=1)[curve] / slot_s
    finest = _finest(problem.tasks.deadline_s / slot_s, np.column_stack([curve, full]))
    rows, work = [], np.empty(real.size, dtype=np.int64)
    nothing = TOLERANCE * (2.0 if up else 0.5)  # a bound allows more than is valid, a plan less
    for c, each_s in enumerate(time_s):
        units, per_slot = whole_units(each_s.min() / each_s, up=up, finest=finest)
        kept = undominated(units, power_w[c])
        rows.append((units[kept], power_w[c, kept], points[kept], slot_s / each_s[kept]))
        asked = full[curve == c] * per_slot
        work[curve == c] = np.ceil(asked - np.minimum(nothing * asked, 1e-6))
    most = max(row[0].size for row in rows)
    last = [np.minimum(np.arange(most), row[0].size - 1) for row in rows]
    units, power_w, points, speed = (
        np.array([row[part][at] for row, at in zip(rows, last, strict=True)]) for part in range(4)
    )
    share = speed[curve] / scale[:, None]
    return curve, np.maximum(work, 1), share, (units, power_w, points)


def _finest(due: Floats, full: Floats) -> int:
    """Units of a slot that keep tables small.

    ``due`` is in slots; ``full`` (n, 2) is the curve of each task and its slots at full speed.
    """
    rows, longest = len(np.unique(full, axis=0)), float(full[:, 1].max(initial=1.0))
    steps = rows * float(due.max(initial=1.0)) ** 2 * longest
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
    """Levels, slowest first, that do anything and that no other one beats.

    Measured levels, and those that differ by less than a unit, may be as quick as each other: the
    least hungry one is kept.
    """
    fastest_first = np.lexsort((power, -units))
    before = np.minimum.accumulate(np.append(np.inf, power[fastest_first]))[:-1]
    good = (power[fastest_first] < before) & (units[fastest_first] > 0)
    return fastest_first[good][::-1]


def _levels(problem: Problem, tasks: Ints) -> tuple[Floats, Floats, Floats]:
    """Return the points (k, 3), slowest clock first, and times and powers of tasks there (n, k)."""
    clocks = problem.platform.kinds[0].clocks
    points = clocks.points[np.argsort(clocks.points[:, CORE], kind="stable")]
    each = np.repeat(tasks, len(points))
    zero = np.zeros(each.size, dtype=np.int64)
    time_s, power_w = problem.at(each, zero, np.tile(points, (tasks.size, 1)))
    return points, time_s.reshape(tasks.size, -1), power_w.reshape(tasks.size, -1)


def _between(problem: Problem, real: Ints) -> Edges:
    """Edges among tasks with work; a chain through milestones becomes one edge."""
    n = len(problem.tasks)
    if real.size == n:
        return problem.edges
    place = np.full(n, -1)
    place[real] = np.arange(real.size)
    before: list[set[int]] = [set() for _ in range(n)]
    for i, j in problem.edges.in_order(n):
        before[j] |= {i} if place[i] >= 0 else before[i]
    rows = [(place[i], place[j]) for j in real.tolist() for i in sorted(before[j])]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return Edges(columns[:, 0], columns[:, 1])


def schedule_of(
    problem: Problem, of: Sequence[SlottedQuestion], machine: Ints, plan: SlotPlan, policy: str
) -> tuple[Schedule, float]:
    """Write a plan as a schedule, a segment for every run at one level; return its cost, too.

    ``of`` (n,) is the question of each task: that of its ``machine``'s class (n,).
    """
    slot_s, tasks = float(problem.platform.slot_s or 1.0), of[0].task
    every = [question.levels(plan, i) for i, question in enumerate(of)]
    rows = [
        (i, plan.first[i] + begin, plan.first[i] + end, level)
        for i, chosen in enumerate(every)
        for begin, end, level in _runs(chosen)
    ]
    task, start, end, level = (
        np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)
    )
    points_of = [question.points[question.graph.curve[i]] for i, question in enumerate(of)]
    points = np.array([points_of[i][k] for i, k in zip(task, level, strict=True)])
    rows_task, processor = tasks[task], machine[task]
    full_s, _ = problem.at(rows_task, problem.platform.kind[processor], points)
    share = (end - start) * slot_s / full_s
    done = np.bincount(task, weights=share, minlength=tasks.size)
    final = np.append(task[1:] != task[:-1], True)
    share[final] -= done[task[final]] - 1.0
    start_s, end_s = (slot.astype(np.float64) * slot_s for slot in (start, end))
    segments = Segments.of(rows_task, processor, start_s, end_s, points, share)
    outcomes = Outcomes.all_done(len(problem.tasks))
    cost = sum(question.cost(plan, i, every[i]) for i, question in enumerate(of))
    return Schedule(segments, _spans(problem, segments), outcomes, policy), cost


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
