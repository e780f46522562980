"""Energy-time frontiers: the least energy for a given run time, and the clocks that give it.

A frontier has one row per task on one processor kind. It answers three questions for one row or
a million at once, whatever the hardware model and whether clocks are continuous or enumerated:
energy at exactly a time, within a time, and cheapest at a price of time. Here a task keeps one
operating point while it runs; :meth:`Frontier.mixed` lets it change clocks on the way.

The work is done per application and unit of work (``Curves``) and gathered per task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import numpy as np

from downclock.errors import InvalidInput
from downclock.power.frontier_cpu import CpuCurves
from downclock.power.frontier_gpu import GpuCurves
from downclock.power.frontier_table import TableCurves
from downclock.power.library import Library
from downclock.power.points import ClockRange, Clocks
from downclock.power.profiles import CpuProfiles, GpuProfiles, Profiles
from downclock.power.settings import ROUNDING, MixedSettings, Settings
from downclock.units import Floats, Ints, ranges, slack

A = TypeVar("A", Settings, MixedSettings)

MemoryRule: TypeAlias = Literal["within", "exactly", "free"]
"""How a memory clock is chosen; see `Frontier.at_core`."""

Curves: TypeAlias = CpuCurves | GpuCurves | TableCurves
"""What answers for a hardware model on some clocks, per unit of work; all answer alike."""

FREE_W = 1e250
"""Prices are kept below this, so that an infinite price of time means 'as fast as possible'."""


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """Energy-time frontiers of n tasks on one processor kind, one operating point each.

    Attributes:
        t_min_s, t_opt_s, t_max_s: shortest, cheapest and longest time (n,); infinite where the
            task cannot run on the kind.
        e_min_time_j, e_opt_j, e_max_time_j: least energy at those times (n,).
        scale: units of work of each task (n,).
        curves: what answers, one per hardware model in use.
        part: index into ``curves`` (n,); -1 where the task cannot run on the kind.
        row: row inside those curves (n,).
    """

    t_min_s: Floats
    t_opt_s: Floats
    t_max_s: Floats
    e_min_time_j: Floats
    e_opt_j: Floats
    e_max_time_j: Floats
    scale: Floats
    curves: tuple[Curves, ...]
    part: Ints
    row: Ints

    def __len__(self) -> int:
        return self.scale.size

    def at(self, time_s: Floats | float, rows: Ints | None = None) -> Settings:
        """Least energy in exactly ``time_s``.

        Infeasible outside [t_min_s, t_max_s] and, on enumerated clocks, where no clock has that
        time within the tolerance (the time returned is then that clock's).
        """
        return self._at(time_s, rows, Settings, lambda curves: curves.at)

    def within(self, limit_s: Floats | float, rows: Ints | None = None) -> Settings:
        """Least energy in at most ``limit_s``; infeasible where even t_min_s is longer."""
        return self._within(limit_s, rows, Settings, lambda curves: curves.within)

    def cheapest(self, time_price_w: Floats | float, rows: Ints | None = None) -> Settings:
        """Least energy + price × time.

        Args:
            time_price_w: watts, one or one per row. 0 gives the free optimum; a positive price
                hurries (a host that waits for the task), a negative one stretches (-idle_w: the
                task replaces the idle power of a server that is awake anyway).
            rows: the rows asked about; all when not given.
        """
        rows = self._rows(rows)
        price = _column(time_price_w, rows.size, "time_price_w")
        price = np.clip(price, -FREE_W, FREE_W)
        answer = Settings.none(rows.size)
        for curves, mine, inner in self._parts(rows):
            unit = _cheapest(curves, inner, price[mine])
            answer.put(mine, unit, self.scale[rows[mine]])
        return answer

    def mixed(self) -> MixedFrontier:
        """Return the convex hulls: clocks may change while a task runs."""
        return MixedFrontier(self)

    def ladder(self) -> tuple[Ints, Floats, Floats]:
        """Return offsets (n + 1,), times and energies of the rows with enumerated clocks.

        Every reachable time of a row once, rising, with the least energy at exactly that time;
        energy may rise and fall. Rows with continuous clocks have none.
        """
        sizes = np.zeros(len(self), dtype=np.int64)
        ladders = [curves.ladder() for curves in self.curves]
        for p, (offset, _, _) in enumerate(ladders):
            mine = self.part == p
            sizes[mine] = np.diff(offset)[self.row[mine]]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        times, energies = np.empty(offsets[-1]), np.empty(offsets[-1])
        for p, (offset, time, energy) in enumerate(ladders):
            mine = np.flatnonzero(self.part == p)
            source = ranges(offset[self.row[mine]], sizes[mine])
            target = ranges(offsets[mine], sizes[mine])
            scale = np.repeat(self.scale[mine], sizes[mine])
            times[target], energies[target] = time[source] * scale, energy[source] * scale
        return offsets, times, energies

    def at_core(
        self,
        setting: tuple[float, float],
        limit_s: Floats,
        rows: Ints,
        how: MemoryRule,
    ) -> Settings:
        """Least energy at a (core, volt) setting over memory clocks, in time for ``limit_s``.

        ``within`` the limit or ``exactly`` in it; ``free``: the best memory clock whatever the
        limit, which it then must meet. Infeasible where it cannot, and where memory has no clock
        of its own that run times depend on in closed form.
        """
        answer = Settings.none(rows.size)
        for curves, mine, inner in self._parts(rows):
            if isinstance(curves, GpuCurves):
                found = curves.at_core(inner, self.scale[rows[mine]], setting, limit_s[mine], how)
                answer.put(mine, found, np.ones(len(found)))
        return answer

    def _at(
        self,
        time_s: Floats | float,
        rows: Ints | None,
        kind: type[A],
        ask: Callable[[Curves], Callable[[Ints, Floats, Floats], A]],
    ) -> A:
        rows = self._rows(rows)
        asked = _column(time_s, rows.size, "time_s")
        answer = kind.none(rows.size)
        for curves, mine, inner in self._parts(rows):
            unit, room = _per_work(asked[mine], self.scale[rows[mine]], curves, inner)
            answer.put(mine, ask(curves)(inner, unit, room), self.scale[rows[mine]])
        # The asked time itself where the clocks' time differs by rounding only.
        near = np.abs(answer.time_s - asked) <= ROUNDING * np.abs(asked)
        answer.time_s[near] = asked[near]
        return answer

    def _within(
        self,
        limit_s: Floats | float,
        rows: Ints | None,
        kind: type[A],
        ask: Callable[[Curves], Callable[[Ints, Floats], A]],
    ) -> A:
        rows = self._rows(rows)
        limit = _column(limit_s, rows.size, "limit_s")
        answer = kind.none(rows.size)
        for curves, mine, inner in self._parts(rows):
            unit = _limit_per_work(limit[mine], self.scale[rows[mine]])
            answer.put(mine, ask(curves)(inner, unit), self.scale[rows[mine]])
        np.minimum(answer.time_s, limit, out=answer.time_s)
        return answer

    def _rows(self, rows: Ints | None) -> Ints:
        return np.arange(len(self)) if rows is None else np.asarray(rows, dtype=np.int64)

    def _parts(self, rows: Ints) -> Iterator[tuple[Curves, Ints | slice, Ints]]:
        """Yield (curves, where in ``rows``, rows of the curves) for each model."""
        part, row = self.part[rows], self.row[rows]
        for p, curves in enumerate(self.curves):
            mine = np.flatnonzero(part == p)
            if mine.size == rows.size:
                yield curves, slice(None), row
            elif mine.size:
                yield curves, mine, row[mine]


@dataclass(frozen=True, slots=True, eq=False)
class MixedFrontier:
    """Convex hulls of a :class:`Frontier`: a task may change clocks while it runs.

    On continuous clocks the frontier is convex already (see ``power.kernels.gpu_clock`` and
    ``frontier_cpu``), so one point is best; enumerated clocks mix two neighbours of the hull.
    """

    one_point: Frontier

    def at(self, time_s: Floats | float, rows: Ints | None = None) -> MixedSettings:
        """Least energy in exactly ``time_s``; infeasible outside [t_min_s, t_max_s]."""
        return self.one_point._at(time_s, rows, MixedSettings, lambda curves: curves.mixed_at)

    def within(self, limit_s: Floats | float, rows: Ints | None = None) -> MixedSettings:
        """Least energy in at most ``limit_s``; infeasible where even t_min_s is longer."""
        one = self.one_point
        return one._within(limit_s, rows, MixedSettings, lambda curves: curves.mixed_within)

    def cheapest(self, time_price_w: Floats | float, rows: Ints | None = None) -> MixedSettings:
        """Least energy + price × time: a corner of the hull, so one point is enough."""
        return MixedSettings.of(self.one_point.cheapest(time_price_w, rows))


def frontier(
    library: Library, kind: str, clocks: Clocks, application: Ints, scale: Floats
) -> Frontier:
    """Return the frontiers of tasks on a processor kind.

    What each application needs is solved once a library and kind; a task only takes its row of
    it, so that frontiers of tasks that arrive later cost next to nothing.

    Args:
        library: the profiles.
        kind: name of the processor kind.
        clocks: the clocks the kind allows.
        application: row of each task in the library (n,).
        scale: units of work of each task (n,): multiplies time, and so energy.
    """
    application = np.asarray(application, dtype=np.int64)
    scale = _column(scale, application.size, "scale")
    curves, part, row, ends = library.once(
        ("curves", kind, clocks), lambda: _of_applications(library, kind, clocks)
    )
    per_work = ends[:, application]
    columns = np.full(per_work.shape, np.inf)
    np.multiply(per_work, scale, out=columns, where=np.isfinite(per_work))
    t_min, t_opt, t_max, e_min_time, e_opt, e_max_time = columns
    part, row = part[application], row[application]
    return Frontier(t_min, t_opt, t_max, e_min_time, e_opt, e_max_time, scale, curves, part, row)


def _of_applications(
    library: Library, kind: str, clocks: Clocks
) -> tuple[tuple[Curves, ...], Ints, Ints, Floats]:
    """Return curves, which of them and which row answers for each application (a,), and its ends.

    The ends are the first six columns of a `Frontier` for a unit of work (6, a).
    """
    part, row = np.full(len(library), -1), np.full(len(library), -1)
    curves: list[Curves] = []
    ends = np.full((6, len(library)), np.inf)
    for profiles, mine, rows in library.parts(kind):
        used, row[mine] = np.unique(rows, return_inverse=True)
        part[mine] = len(curves)
        of = _curves(profiles, used, clocks)
        curves.append(of)
        best = of.optimum
        times, energies = (of.t_min_s, best.time_s, of.t_max_s), (of.e_min_time_j, best.energy_j)
        ends[:, mine] = np.array([*times, *energies, of.e_max_time_j])[:, row[mine]]
    return tuple(curves), part, row, ends


def _curves(profiles: Profiles, used: Ints, clocks: Clocks) -> Curves:
    """Choose what answers for a hardware model on these clocks."""
    if isinstance(clocks, ClockRange) and isinstance(profiles, GpuProfiles):
        return GpuCurves.of(profiles, used, clocks)
    if isinstance(clocks, ClockRange) and isinstance(profiles, CpuProfiles):
        return CpuCurves.of(profiles, used, clocks)
    return TableCurves.of(profiles, used, clocks)


def _cheapest(curves: Curves, rows: Ints, price_w: Floats) -> Settings:
    """Ask once per profile where all rows pay the same price."""
    profiles = curves.t_min_s.size
    if price_w.size and np.all(price_w == price_w[0]):
        if price_w[0] == 0.0:
            return curves.optimum.take(rows)
        if profiles < rows.size:
            every = np.arange(profiles)
            return curves.cheapest(every, np.full(profiles, price_w[0])).take(rows)
    return curves.cheapest(rows, price_w)


def _column(values: Floats | float, size: int, field: str) -> Floats:
    """Return one finite or infinite number per row."""
    column = np.asarray(values, dtype=np.float64)
    if column.ndim == 0:
        column = np.full(size, column)
    if column.shape != (size,):
        raise InvalidInput(f"must have {size} rows", field=field, value=column.shape)
    if np.isnan(column).any():
        raise InvalidInput("is not a number", field=field, row=int(np.argmax(np.isnan(column))))
    return np.ascontiguousarray(column)


def _per_work(time_s: Floats, scale: Floats, curves: Curves, rows: Ints) -> tuple[Floats, Floats]:
    """Return the time and the slack per unit of work; a task without work has time 0 only."""
    allowed = slack(np.where(np.isfinite(time_s), time_s, 0.0))
    idle = scale <= 0.0
    if not idle.any():
        return time_s / scale, allowed / scale
    some = np.where(idle, 1.0, scale)
    free = np.where(np.abs(time_s) <= allowed, curves.optimum.time_s[rows], np.inf)
    return np.where(idle, free, time_s / some), allowed / some


def _limit_per_work(limit_s: Floats, scale: Floats) -> Floats:
    """Return the limit per unit of work; a task without work meets any that is not negative."""
    idle = scale <= 0.0
    if not np.any(idle):
        return limit_s / scale
    any_time = np.where(limit_s >= 0.0, np.inf, -np.inf)
    return np.where(idle, any_time, limit_s / np.where(idle, 1.0, scale))
