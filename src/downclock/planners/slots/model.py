"""A task graph in slots with a price per slot, as the cost solvers see it (gerhards section 3).

Choosing a task's first and last slot fixes its cost: the best levels in between depend on nothing
else. On equal machines any set of intervals of which at most ``machines`` overlap can be placed,
so neither levels nor machines are variables: one interval a task is all there is to choose.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.slots.kernels.lists import ancestor_bits, slot_windows
from downclock.planners.slots.kernels.tables import any_tables, interval_levels, step_tables
from downclock.problem.graph import Edges, grouped
from downclock.quantities import refuse_rows
from downclock.units import Bools, Floats, Ints

SLIGHT = 1e-11
"""Part of the highest price that energy is worth where levels cost the same."""


@dataclass(frozen=True, slots=True, eq=False)
class SlotGraph:
    """What is asked, in slots and whole units of work.

    Attributes:
        work: units of each task (n,), at least 1.
        edges: precedence.
        machines: equal machines.
        price: cost of one slot at power 1 (slots,), not negative; its size is the deadline.
        units, power: units done and power drawn in a slot at each level of each power curve
            (curves, k), rising; (k,) where there is one. "Off" is not listed and draws nothing. A
            curve of fewer levels repeats its highest.
        pause: a task may hold its machine in a slot without running.
        release, due: first and last slot each task may use (n,); all slots by default.
        curve: power curve of each task (n,); its work is counted in units of that curve.
    """

    work: Ints
    edges: Edges
    machines: int
    price: Floats
    units: Ints
    power: Floats
    pause: bool = True
    release: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    due: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    curve: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __post_init__(self) -> None:
        n, last = len(self.work), len(self.price) - 1
        for name, default in (("release", 0), ("due", last), ("curve", 0)):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.full(n, default))
        for name in ("work", "price", "units", "power", "release", "due", "curve"):
            kind = np.float64 if name in ("price", "power") else np.int64
            column = np.ascontiguousarray(getattr(self, name), dtype=kind)
            whole = np.atleast_2d(column) if name in ("units", "power") else column
            object.__setattr__(self, name, whole)
        self._check()

    def _check(self) -> None:
        refuse_rows(self.work < 1, "must be at least 1", field="work", values=self.work)
        if not np.all(np.isfinite(self.price) & (self.price >= 0.0)):
            raise InvalidInput("must be finite and not negative: clip it", field="price")
        if self.units.size == 0 or self.units.shape != self.power.shape or self.units.min() < 1:
            raise InvalidInput("needs a power for every level of at least one unit", item="levels")
        more, hungrier = np.diff(self.units), np.diff(self.power)
        if np.any(more < 0) or np.any(hungrier < 0.0) or np.any((more == 0) & (hungrier > 0.0)):
            raise InvalidInput("levels must rise in units and power", item="levels")

    def __len__(self) -> int:
        return self.work.size

    @property
    def slots(self) -> int:
        """The deadline D': slots 0..slots-1 may be used."""
        return self.price.size

    @property
    def least_slots(self) -> Ints:
        """Slots each task needs at the highest level (n,)."""
        return np.asarray(-(-self.work // self.units[self.curve, -1]))

    def levels_of(self, curve: int) -> tuple[Ints, Floats]:
        """Units and power of the levels of one curve, none twice."""
        rising = np.append(True, np.diff(self.units[curve]) > 0)
        return self.units[curve, rising], self.power[curve, rising]

    @property
    def monge(self) -> bool:
        """Levels are evenly spaced and every further unit costs at least as much, on every curve.

        Where tasks may pause, off counts as a level. The cost table is then Monge, and cuts with
        it are exact.
        """
        return all(_even(*self.levels_of(c), self.pause) for c in range(len(self.units)))

    def unit_steps(self, curve: int = 0) -> Floats:
        """Power of each further unit in a slot under the convex envelope of power, off included.

        Equal to the true steps for evenly spaced levels of convex power; a lower bound else.
        """
        units, power = self.levels_of(curve)
        return np.diff(lower_hull(np.append(0, units), np.append(0.0, power)))

    def full_speed_cost(self, first: Ints) -> float:
        """Cost of running every task at the highest level from ``first`` (n,), as S does.

        The last slot runs at the least sufficient level (gerhards section 3).
        """
        total = 0.0
        for i, curve in enumerate(self.curve):
            units, power = self.units[curve], self.power[curve]
            full, rest = divmod(int(self.work[i]), int(units[-1]))
            total += power[-1] * self.price[first[i] : first[i] + full].sum()
            if rest:
                total += power[np.searchsorted(units, rest)] * self.price[first[i] + full]
        return float(total)


def _even(units: Ints, power: Floats, pause: bool) -> bool:
    """Tell whether levels are a unit apart and ever dearer, from off on where there are pauses."""
    if pause:
        units, power = np.append(0, units), np.append(0.0, power)
    return bool(np.all(np.diff(units) == 1) and np.all(np.diff(power, 2) >= -1e-15))


def lower_hull(x: Ints, y: Floats) -> Floats:
    """Greatest convex function below points with rising x, at every whole number of their range."""
    kept = hull_points(x, y)
    return np.interp(np.arange(x[0], x[-1] + 1), x[kept], y[kept])


def hull_points(x: Ints | Floats, y: Floats) -> Ints:
    """Points (by x, then y) on the lower convex hull, first and last in x among them."""
    hull = [0]
    for k in range(1, x.size):
        if x[k] == x[hull[-1]]:
            continue
        while len(hull) > 1:
            a, b = hull[-2:]
            if (y[b] - y[a]) * (x[k] - x[a]) < (y[k] - y[a]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(k)
    return np.array(hull)


@dataclass(frozen=True, slots=True, eq=False)
class SlotGraphIndex:
    """A slot graph with what all algorithms ask of it again and again.

    Attributes:
        order: topological order (n,); edges of ``before``, ``after`` follow it.
        pred_at, pred, succ_at, succ: neighbours, ragged.
        bits: ancestors (see `planners.slots.kernels.lists.ancestor_bits`).
        length: least slots of each task.
        monge: see `SlotGraph.monge`.
        row, row_curve, row_work: distinct (curve, work) of tasks (rows,): which one each task has
            (n,), its curve and its work.
        table: cost of each row in every interval (rows, slots, longest); see `priced`.
    """

    graph: SlotGraph
    order: Ints
    before: Ints
    after: Ints
    pred_at: Ints
    pred: Ints
    succ_at: Ints
    succ: Ints
    bits: np.ndarray[tuple[int, ...], np.dtype[np.uint64]]
    length: Ints
    row: Ints
    row_curve: Ints
    row_work: Ints
    monge: bool
    table: Floats = field(default_factory=lambda: np.empty((0, 0, 0)))

    @classmethod
    def of(cls, graph: SlotGraph) -> SlotGraphIndex:
        """Index a graph; cost n²/64 words."""
        n = len(graph)
        order = np.ascontiguousarray(graph.edges.order(n), dtype=np.int64)
        by_rank = np.argsort(np.argsort(order)[graph.edges.before], kind="stable")
        before, after = graph.edges.before[by_rank], graph.edges.after[by_rank]
        preds, succs = grouped(n, after, before), grouped(n, before, after)
        pairs, row = np.unique(
            np.column_stack([graph.curve, graph.work]), axis=0, return_inverse=True
        )
        curve, work = np.ascontiguousarray(pairs.T)
        rows = np.ravel(row).astype(np.int64), curve, work
        known = graph, order, before, after, *preds, *succs, ancestor_bits(order, *preds)
        return cls(*known, graph.least_slots, *rows, graph.monge)

    def windows(self, before: Ints, after: Ints) -> tuple[Ints, Ints, bool]:
        """Earliest first and latest last slot of each task under edges in topological order."""
        return slot_windows(before, after, self.length, self.graph.release, self.graph.due)

    def priced(self, longest: int, *, envelope: bool = False) -> SlotGraphIndex:
        """The same with a table of the least costs in intervals of at most ``longest`` slots.

        With ``envelope`` power is replaced by its convex envelope: a lower bound, and always Monge.
        """
        table = np.empty((self.row_work.size, self.graph.slots, longest))
        for curve in np.unique(self.row_curve):
            mine = self.row_curve == curve
            table[mine] = _curve_table(self.graph, curve, self.row_work[mine], longest, envelope)
        return replace(self, table=table)

    def costs(self, first: Ints, last: Ints) -> Floats:
        """Cost of each task in its interval (n,); longer ones than the table holds are cut."""
        length = np.minimum(last - first + 1, self.table.shape[2])
        return np.asarray(self.table[self.row, first, length - 1])

    def plan(self, first: Ints, last: Ints) -> SlotPlan:
        """All intervals and what they cost."""
        return SlotPlan(first, last, float(self.costs(first, last).sum()))


def _curve_table(graph: SlotGraph, curve: int, works: Ints, longest: int, envelope: bool) -> Floats:
    """Return the table of amounts of work on one curve."""
    units, power = graph.levels_of(curve)
    works = np.minimum(works, longest * units.max() + 1)  # more fits no interval either
    if graph.pause and (envelope or _even(units, power, pause=True)):
        return step_tables(graph.price, graph.unit_steps(curve), works, longest)
    if envelope:  # off is no level of tasks that may not pause
        units, power = np.arange(units[0], units[-1] + 1), lower_hull(units, power)
    return any_tables(graph.price, units, power, works, longest, graph.pause)


@dataclass(frozen=True, slots=True, eq=False)
class SlotPlan:
    """One interval a task: first and last slot (n,), and what all of them cost."""

    first: Ints
    last: Ints
    cost: float


def levels(graph: SlotGraph, plan: SlotPlan, task: int) -> Ints:
    """Level of each slot of a task's interval, -1 for off; no more work than needed.

    Among levels of equal cost, as where power is free, those of least energy are taken.
    """
    price = graph.price[plan.first[task] : plan.last[task] + 1]
    price = price + SLIGHT * (graph.price.max() or 1.0)
    units, power = graph.units[graph.curve[task]], graph.power[graph.curve[task]]
    return interval_levels(price, units, power, int(graph.work[task]), graph.pause)


def overlap(plan: SlotPlan, slots: int) -> Ints:
    """Number of tasks that hold a machine in each slot (slots,)."""
    change = np.bincount(plan.first, minlength=slots + 1)
    change = change - np.bincount(plan.last + 1, minlength=slots + 1)
    return np.asarray(np.cumsum(change)[:slots])


def is_valid(graph: SlotGraph, plan: SlotPlan) -> bool:
    """Check precedence, capacity and windows; levels are checked where they are made."""
    ordered: Bools = plan.last[graph.edges.before] < plan.first[graph.edges.after]
    inside = (plan.first >= graph.release) & (plan.last <= graph.due)
    long = plan.last - plan.first + 1 >= graph.least_slots
    room = overlap(plan, graph.slots).max(initial=0) <= graph.machines
    return bool(np.all(ordered) and np.all(inside) and np.all(long) and room)
