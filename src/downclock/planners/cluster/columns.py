"""Columns for our kernels: energy-time curves of the tasks told so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from downclock.engine.tasks import grown
from downclock.engine.view import View
from downclock.kernels.records import columns, filled
from downclock.planners.lists.lengths import OneClock
from downclock.power.frontier import Frontier
from downclock.problem.platform import Platform
from downclock.units import Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.cluster.kernels.curves import Curves

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


def _least_per_kind(platform: Platform, per_processor: Floats) -> Floats:
    """Least value over the processors of each kind (k,); 0 where there are none."""
    kinds = range(len(platform.kinds))
    least = np.array([per_processor[platform.kind == k].min(initial=np.inf) for k in kinds])
    return np.where(np.isfinite(least), least, 0.0)


def prices_w(platform: Platform) -> Floats:
    """Power of host and chip that a running processor must carry besides its own (k,)."""
    host = np.maximum(platform.host_w - platform.sleep_w, 0.0) / server_sizes(platform)
    shared = platform.shared_w[platform.chip]
    return _least_per_kind(platform, host[platform.server]) + _least_per_kind(platform, shared)


@dataclass(slots=True)
class CurveTables:
    """Curves that grow with the tasks told; see `kernels.curves.Curves` for the fields."""

    rows: Table
    shape: Floats
    box: Floats
    kinds: Table
    rungs: Table
    tries: Table

    @classmethod
    def of(cls, platform: Platform) -> CurveTables:
        """No tasks yet."""
        from downclock.planners.cluster.kernels.curves import KIND, ROW, RUNG, TRY

        idle_w = [kind.idle_w for kind in platform.kinds]
        kinds = filled(len(idle_w), KIND, idle_w=idle_w, price_w=prices_w(platform))
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
            rows=columns(self.rows),
            shape=self.shape,
            box=self.box,
            kinds=columns(self.kinds),
            rungs=columns(self.rungs),
            tries=columns(self.tries),
        )

    def learn(
        self, view: View, tasks: Ints, window_s: Floats, stretch: float, *, dvfs: bool, priced: bool
    ) -> None:
        """Fill in tasks (m,) on every kind; ``window_s`` is the time each may take.

        ``stretch`` multiplies their work; ``priced`` adds run times to try where prices count.
        """
        kinds = len(view.platform.kinds)
        size = (int(tasks.max(initial=-1)) + 1) * kinds
        self.rows, self.shape = grown(self.rows, size, 0), grown(self.shape, size, 0.0)
        for k in range(kinds):
            front, mine = view.frontier(k, tasks, stretch), tasks * kinds + k
            self.rows[mine], self.shape[mine] = 0, 0.0
            self._add_kind(front, mine, window_s, k)
            if not dvfs:
                self._keep_one_clock(view, tasks, k, stretch)
        if priced:
            self._add_tries((tasks[:, None] * kinds + np.arange(kinds)).ravel())

    def preferred(self, platform: Platform, tasks: Ints) -> Ints:
        """Kinds each task can run on in time, the cheapest first (m, k); -1: no more."""
        kinds = len(platform.kinds)
        rows: Table = self.rows[tasks[:, None] * kinds + np.arange(kinds)]
        there = np.bincount(platform.kind, minlength=kinds) > 0
        able = np.isfinite(rows["free_j"]) & np.isfinite(rows["free_s"]) & there
        cost = np.full(rows.shape, np.inf)
        price_w = np.broadcast_to(self.kinds["price_w"], rows.shape)
        cost[able] = rows["free_j"][able] + price_w[able] * rows["free_s"][able]
        order = np.argsort(cost, axis=1, kind="stable")
        return np.where(np.isfinite(np.take_along_axis(cost, order, axis=1)), order, -1)

    def _add_kind(self, front: Frontier, mine: Ints, window_s: Floats, kind: int) -> None:
        """Fill in one kind: parameters, enumerated clocks and the run times that are wanted."""
        from downclock.planners.cluster.kernels.curves import fill_idle_rungs

        _fill(front, self, mine, kind)
        first, time_s, energy_j = front.ladder()
        self._add_rungs(mine, first, time_s, energy_j)
        price_w, idle_w = (float(self.kinds[name][kind]) for name in ("price_w", "idle_w"))
        lengths = _lengths(front, window_s, price_w, idle_w)
        for name, column in zip(("short_s", "free_s", "free_j", "long_s"), lengths, strict=True):
            self.rows[name][mine] = column
        if time_s.size:
            fill_idle_rungs(self.for_kernels(), mine)

    def _add_rungs(self, mine: Ints, first: Ints, time_s: Floats, energy_j: Floats) -> None:
        base = self.rungs.size
        self.rows["rung_first"][mine], self.rows["rung_end"][mine] = (
            base + first[:-1],
            base + first[1:],
        )
        if time_s.size:
            idle = base + np.arange(time_s.size)
            more = filled(
                time_s.size, self.rungs.dtype, time_s=time_s, energy_j=energy_j, idle=idle
            )
            self.rungs = np.concatenate([self.rungs, more])

    def _keep_one_clock(self, view: View, tasks: Ints, kind: int, stretch: float) -> None:
        """Only the default clock, or the one the deadline needs: a ladder of one rung."""
        from downclock.planners.cluster.kernels.curves import LADDER, NOWHERE

        rows, clock = tasks * len(view.platform.kinds) + kind, OneClock()
        wanted = clock.wanted(view, kind, tasks)
        energy = np.full(tasks.size, np.inf)
        good = np.flatnonzero(np.isfinite(wanted))
        points = clock.points(view, kind, tasks[good], wanted[good])
        _, power = view.at(tasks[good], kind, points)
        time_s = np.where(np.isfinite(wanted), wanted * stretch, np.inf)
        energy[good] = power * time_s[good]
        self.rows["model"][rows] = np.where(np.isfinite(time_s), LADDER, NOWHERE)
        self._add_rungs(rows, np.arange(rows.size + 1), time_s, energy)
        for name, column in (("short_s", time_s), ("free_s", time_s), ("free_j", energy),
                             ("long_s", time_s)):  # fmt: skip
            self.rows[name][rows] = column

    def _add_tries(self, rows: Ints) -> None:
        """Run times to try of each row: all of a ladder, else from the shortest to the longest."""
        from downclock.planners.cluster.kernels.curves import CPU, GPU, energies

        mine: Table = self.rows[rows]
        model, short, long = mine["model"], mine["short_s"], mine["long_s"]
        smooth = ((model == GPU) | (model == CPU)) & np.isfinite(short)
        sizes = np.where(smooth, LENGTHS, mine["rung_end"] - mine["rung_first"])
        first = self.tries.size + np.concatenate([[0], np.cumsum(sizes)])
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
        self.tries = np.concatenate([self.tries, more])


def _fill(frontier: Frontier, into: CurveTables, rows: Ints, kind: int) -> None:
    """Write the parameters of every task on one kind."""
    from downclock.planners.cluster.kernels import curves as kernel
    from downclock.power.frontier_cpu import CpuCurves
    from downclock.power.frontier_gpu import GpuCurves

    for part, curves in enumerate(frontier.curves):
        mine = np.flatnonzero((frontier.part == part) & (frontier.scale > 0.0))
        row, scale = frontier.row[mine], frontier.scale[mine]
        zero = np.zeros(row.size)
        if isinstance(curves, GpuCurves):
            into.rows["model"][rows[mine]], into.box[kind] = kernel.GPU, curves.box
            p = curves.profiles
            shape = (p.p0_w[row], p.gamma_w[row], p.c_w[row], p.d_s[row] * scale, p.delta[row],
                       p.t0_s[row] * scale)  # fmt: skip
        elif isinstance(curves, CpuCurves):
            into.rows["model"][rows[mine]] = kernel.CPU
            q = curves.profiles
            times = q.time_s[row] * scale
            shape = (times, q.c1_w[row], q.alpha[row], q.static_w[row], zero, zero)
        else:
            into.rows["model"][rows[mine]] = kernel.LADDER
            continue
        into.shape[rows[mine]] = np.column_stack(shape)


def _lengths(
    frontier: Frontier, window_s: Floats, price_w: float, idle_w: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the shortest, wanted (with energy) and longest run times of one kind, each (n,)."""
    free = frontier.cheapest(price_w)
    late = np.flatnonzero(~(free.time_s <= window_s))
    inside = frontier.within(window_s[late], late)
    free.time_s[late], free.energy_j[late] = inside.time_s, inside.energy_j
    wanted = np.where(free.feasible, free.time_s, np.inf)
    long_s = frontier.cheapest(-idle_w).time_s
    return frontier.t_min_s, wanted, free.energy_j, np.where(np.isfinite(long_s), long_s, np.inf)
