"""Columns for our kernels: energy-time curves of the tasks told so far."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from downclock.engine.tasks import grown
from downclock.engine.view import View
from downclock.kernels.records import filled
from downclock.planners.lists.lengths import OneClock
from downclock.power.settings import Settings
from downclock.problem.platform import Platform
from downclock.units import Bools, Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.cluster.kernels.curves import Curves

HURRIED, SLOWED = 0.88, 1.15
"""Parts of the best run time at which is asked how much a shorter and a longer one cost."""

ROOM_OF_ROWS, ROOM_OF_SHAPES = 24, 20
"""Tasks that the large tables have room for at first: other numbers than the board's, so that no
two of them double, and are copied, at one moment."""

LENGTHS = 24
"""Run times that are tried of each task on continuous clocks, where prices count."""

Table = np.ndarray[Any, Any]


def awake_w(platform: Platform) -> Floats:
    """What an awake server draws more than a sleeping one while nothing runs (s,)."""
    idle_w = np.bincount(platform.server, platform.idle_w, platform.server_count)
    return np.asarray(idle_w + np.maximum(platform.host_w - platform.sleep_w, 0.0))


def server_sizes(platform: Platform) -> Ints:
    """Processors of each server (s,)."""
    return np.diff(platform.first_processor)


def largest_groups(platform: Platform) -> Ints:
    """Most processors of each kind that one server has (k,)."""
    kinds = len(platform.kinds)
    key = platform.server * kinds + platform.kind
    counts = np.bincount(key, minlength=platform.server_count * kinds)
    return np.asarray(counts.reshape(-1, kinds).max(axis=0))


def _least_per_kind(platform: Platform, per_processor: Floats) -> Floats:
    """Least value over the processors of each kind (k,); 0 where there are none."""
    kinds = range(len(platform.kinds))
    least = np.array([per_processor[platform.kind == k].min(initial=np.inf) for k in kinds])
    return np.where(np.isfinite(least), least, 0.0)


def dearer_w(platform: Platform) -> Floats:
    """Power of host and chip that a running processor carries above the least of its kind (p,)."""
    host = np.maximum(platform.host_w - platform.sleep_w, 0.0) / server_sizes(platform)
    carried = host[platform.server] + platform.shared_w[platform.chip]
    return np.asarray(carried - _least_per_kind(platform, carried)[platform.kind])


def prices_w(platform: Platform) -> Floats:
    """Power of host and chip that a running processor must carry besides its own (k,)."""
    host = np.maximum(platform.host_w - platform.sleep_w, 0.0) / server_sizes(platform)
    shared = platform.shared_w[platform.chip]
    return _least_per_kind(platform, host[platform.server]) + _least_per_kind(platform, shared)


@dataclass(frozen=True, slots=True, eq=False)
class UnitCurves:
    """A unit of work of every application on one kind (a rows); tasks are multiples of it.

    Attributes:
        rows: see `kernels.curves.ROW`; the window is endless.
        times: columns of them that grow with work.
        shape, box: see `kernels.curves.Curves`; ``scaled`` says which of ``shape`` grow with work.
        first, rungs: enumerated clocks of each (a + 1,), and ``idle`` counted from the first.
    """

    rows: Table
    times: slice
    shape: Floats
    scaled: Bools
    box: Floats
    first: Ints
    rungs: Table

    @classmethod
    def of(cls, view: View, kind: int, price_w: float) -> UnitCurves:
        """The applications of the library; ``price_w`` is what a second costs besides."""
        from downclock.planners.cluster.kernels.curves import ROW, RUNG
        from downclock.power.kernel_columns import kernel_columns
        from downclock.power.kernels.models import CPU, GPU

        front, idle_w = view.applications(kind), view.platform.kinds[kind].idle_w
        free, long = front.cheapest(price_w), front.cheapest(-idle_w)
        free_s = np.where(free.feasible, free.time_s, 1.0)
        hurried = front.at(np.maximum(HURRIED * free_s, np.minimum(front.t_min_s, free_s)))
        slowed = front.at(np.minimum(SLOWED * free_s, np.maximum(front.t_max_s, free_s)))
        model, shape, box = kernel_columns(front)
        rows = filled(
            model.size, ROW, model=model, short_s=front.t_min_s, free_j=free.energy_j,
            free_s=np.where(free.feasible, free.time_s, np.inf),
            long_s=np.where(np.isfinite(long.time_s), long.time_s, np.inf),
            best_s=free_s,
            short_j=_rise_j(free, hurried, price_w),
            long_j=_rise_j(free, slowed, price_w),
        )  # fmt: skip
        scaled = np.zeros(shape.shape, dtype=bool)
        scaled[:, [3, 5]], scaled[:, 0] = (model == GPU)[:, None], model == CPU
        first, time_s, energy_j = front.ladder()
        idle = np.concatenate(
            [np.empty(0, np.int64)]
            + [
                _least_so_far((energy_j - idle_w * time_s)[a:b])
                for a, b in pairwise(first)
                if b > a
            ]
        )
        rungs = filled(time_s.size, RUNG, time_s=time_s, energy_j=energy_j, idle=idle)
        names: Any = ROW.names
        times = slice(names.index("short_s"), None)
        return cls(rows, times, shape, scaled, box, first, rungs)


def _rise_j(best: Settings, other: Settings, price_w: float) -> Floats:
    """How cost rises with the square of the part by which a run time is not the best one (a,)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        part = other.time_s / best.time_s - 1.0
        rise = other.energy_j - best.energy_j + price_w * (other.time_s - best.time_s)
        known = best.feasible & other.feasible & (np.abs(part) > 1e-3) & (rise > 0.0)
        return np.where(known & np.isfinite(rise), rise / part**2, 0.0)


def _least_so_far(values: Floats) -> Ints:
    """Where the least of the values up to each one stands; the first of equals (m,)."""
    new = np.append(True, values[1:] < np.minimum.accumulate(values)[:-1])[: values.size]
    return np.maximum.accumulate(np.where(new, np.arange(values.size), 0))


@dataclass(slots=True)
class CurveTables:
    """Curves that grow with the tasks told; see `kernels.curves.Curves` for the fields."""

    rows: Table
    shape: Floats
    box: Floats
    kinds: Table
    rungs: Table
    tries: Table
    rung_count: int = 0
    try_count: int = 0

    @classmethod
    def of(cls, platform: Platform) -> CurveTables:
        """No tasks yet."""
        from downclock.planners.cluster.kernels.curves import KIND, ROW, RUNG, TRY

        idle_w = [kind.idle_w for kind in platform.kinds]
        kinds = filled(
            len(idle_w), KIND, idle_w=idle_w, price_w=prices_w(platform),
            largest=largest_groups(platform),
        )  # fmt: skip
        return cls(
            rows=np.zeros(0, ROW),
            shape=np.empty((0, 6)),
            box=np.zeros((len(idle_w), 8)),
            kinds=kinds,
            rungs=np.zeros(0, RUNG),
            tries=np.zeros(0, TRY),
        )

    def for_kernels(self) -> Curves:
        """The curves as kernels take them."""
        from downclock.planners.cluster.kernels.curves import Curves

        return Curves(
            rows=self.rows,
            shape=self.shape,
            box=self.box,
            kinds=self.kinds,
            rungs=self.rungs,
            tries=self.tries,
        )

    def learn(
        self, view: View, tasks: Ints, window_s: Floats, stretch: float, *, dvfs: bool, priced: bool
    ) -> None:
        """Fill in tasks (m,) on every kind; ``window_s`` is the time each may take.

        ``stretch`` multiplies their work; ``priced`` adds run times to try where prices count.
        """
        kinds = len(view.platform.kinds)
        size = (int(tasks.max(initial=-1)) + 1) * kinds
        self.rows = grown(self.rows, size, least=ROOM_OF_ROWS * kinds)
        self.shape = grown(self.shape, size, least=ROOM_OF_SHAPES * kinds)
        for k in range(kinds):
            self._add_kind(view, tasks, window_s, stretch, k)
            if not dvfs:
                self._keep_one_clock(view, tasks, k, stretch)
        if priced:
            self._add_tries((tasks[:, None] * kinds + np.arange(kinds)).ravel())

    def preferred(self, platform: Platform, tasks: Ints, gang: Ints) -> Ints:
        """Kinds each task can run on in time, the cheapest first (m, k); -1: no more.

        Of each there must be ``gang`` processors (m,).
        """
        kinds = len(platform.kinds)
        enough = np.bincount(platform.kind, minlength=kinds) >= gang[:, None]
        mine = tasks[:, None] * kinds + np.arange(kinds)
        free_s, free_j = self.rows["free_s"][mine], self.rows["free_j"][mine]
        able = np.isfinite(free_j) & np.isfinite(free_s) & enough
        if kinds == 1:
            return np.where(able, 0, -1)
        cost = np.full(able.shape, np.inf)
        price_w = np.broadcast_to(self.kinds["price_w"], able.shape)
        cost[able] = free_j[able] + price_w[able] * free_s[able]
        order = np.argsort(cost, axis=1, kind="stable")
        return np.where(np.isfinite(np.take_along_axis(cost, order, axis=1)), order, -1)

    def _add_kind(
        self, view: View, tasks: Ints, window_s: Floats, stretch: float, kind: int
    ) -> None:
        """Fill in one kind: parameters, enumerated clocks and the run times that are wanted."""
        price_w = float(self.kinds["price_w"][kind])
        unit = view.once(("curves", kind), lambda: UnitCurves.of(view, kind, price_w))
        app, scale = view.tasks.application[tasks], view.tasks.scale[tasks] * stretch
        idle = scale <= 0.0
        factor, some_idle = scale[:, None], bool(idle.any())
        if some_idle:
            factor = np.where(idle, 1.0, scale)[:, None]
        rows: Table = unit.rows[app]
        rows.view(np.float64).reshape(app.size, -1)[:, unit.times] *= factor
        in_time = rows["free_s"] <= window_s
        if not in_time.all():
            late = np.flatnonzero(~in_time & ~idle)
            inside = view.frontier(kind, tasks[late], stretch).within(window_s[late])
            rows["free_s"][late] = np.where(inside.feasible, inside.time_s, np.inf)
            rows["free_j"][late] = inside.energy_j
        self._add_rungs(rows, unit, app, factor[:, 0])
        if some_idle:
            rows[idle] = 0
        shape = unit.shape[app]
        np.multiply(shape, factor, out=shape, where=unit.scaled[app])
        mine = tasks * len(view.platform.kinds) + kind
        self.rows[mine], self.shape[mine], self.box[kind] = rows, shape, unit.box

    def _add_rungs(self, rows: Table, unit: UnitCurves, app: Ints, factor: Floats) -> None:
        """Enumerated clocks of tasks, as multiples of their application's."""
        if not unit.rungs.size:
            return
        sizes = np.diff(unit.first)[app]
        owner = np.repeat(np.arange(app.size), sizes)
        begin = np.cumsum(sizes) - sizes
        rung: Table = unit.rungs[unit.first[app][owner] + np.arange(owner.size) - begin[owner]]
        base = self._append_rungs(
            rung["time_s"] * factor[owner], rung["energy_j"] * factor[owner],
            rung["idle"] + begin[owner],
        )  # fmt: skip
        rows["rung_first"], rows["rung_end"] = base + begin, base + begin + sizes

    def _append_rungs(self, time_s: Floats, energy_j: Floats, idle: Ints) -> int:
        """Add clocks at the end, ``idle`` counted from the first of them; return where it is."""
        base, self.rung_count = self.rung_count, self.rung_count + time_s.size
        self.rungs = grown(self.rungs, self.rung_count)
        mine: Table = self.rungs[base : self.rung_count]
        mine["time_s"], mine["energy_j"], mine["idle"] = time_s, energy_j, base + idle
        return base

    def _keep_one_clock(self, view: View, tasks: Ints, kind: int, stretch: float) -> None:
        """Only the default clock, or the one the deadline needs: a ladder of one rung."""
        from downclock.power.kernels.models import LADDER, NOWHERE

        rows, clock = tasks * len(view.platform.kinds) + kind, OneClock()
        wanted = clock.wanted(view, kind, tasks)
        energy = np.full(tasks.size, np.inf)
        good = np.flatnonzero(np.isfinite(wanted))
        points = clock.points(view, kind, tasks[good], wanted[good])
        _, power = view.at(tasks[good], kind, points)
        time_s = np.where(np.isfinite(wanted), wanted * stretch, np.inf)
        energy[good] = power * time_s[good]
        self.rows["model"][rows] = np.where(np.isfinite(time_s), LADDER, NOWHERE)
        first = self._append_rungs(time_s, energy, np.arange(rows.size))
        self.rows["rung_first"][rows] = first + np.arange(rows.size)
        self.rows["rung_end"][rows] = first + np.arange(1, rows.size + 1)
        for name, column in (("short_s", time_s), ("free_s", time_s), ("free_j", energy),
                             ("long_s", time_s), ("best_s", time_s)):  # fmt: skip
            self.rows[name][rows] = column

    def _add_tries(self, rows: Ints) -> None:
        """Run times to try of each row: all of a ladder, else from the shortest to the longest."""
        from downclock.planners.cluster.kernels.curves import energies
        from downclock.power.kernels.models import CPU, GPU

        mine: Table = self.rows[rows]
        model, short, long = mine["model"], mine["short_s"], mine["long_s"]
        smooth = ((model == GPU) | (model == CPU)) & np.isfinite(short)
        sizes = np.where(smooth, LENGTHS, mine["rung_end"] - mine["rung_first"])
        first = self.try_count + np.concatenate([[0], np.cumsum(sizes)])
        self.rows["try_first"][rows], self.rows["try_end"][rows] = first[:-1], first[1:]
        owner = np.repeat(np.arange(rows.size), sizes)
        step = np.arange(owner.size) - (first[:-1] - first[0])[owner]
        top = np.where(np.isfinite(long), long, 4.0 * short)
        with np.errstate(invalid="ignore"):
            ratio = np.where(smooth, np.maximum(top / short, 1.0), 1.0)
        part = np.linspace(0.0, 1.0, LENGTHS)[np.minimum(step, LENGTHS - 1)]
        more: Table = np.zeros(owner.size, self.tries.dtype)
        on = smooth[owner]
        more["time_s"][on] = (short[owner] * ratio[owner] ** part)[on]
        found = energies(self.for_kernels(), rows[owner[on]], more["time_s"][on].copy())
        more["energy_j"][on] = found
        rung: Table = self.rungs[(mine["rung_first"][owner] + step)[~on]]
        more["time_s"][~on], more["energy_j"][~on] = rung["time_s"], rung["energy_j"]
        self.try_count += more.size
        self.tries = grown(self.tries, self.try_count)
        self.tries[self.try_count - more.size : self.try_count] = more
