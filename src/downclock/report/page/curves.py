"""Energy-time frontiers of every application on every kind, sampled for the page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.columns import joined
from downclock.power.frontier import Frontier
from downclock.problem.problem import Problem
from downclock.report.page.pack import Pack
from downclock.units import Bools, Floats, Ints, ranges

FINE, COARSE, MANY = 41, 12, 8000
"""Samples of a curve, samples where there are many curves, and what is many."""


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Frontiers per unit of work, their samples one curve after the other.

    Attributes:
        application, kind: what each curve is of (c,).
        size: samples of each (c,).
        time_s, energy_j: samples by rising time; enumerated clocks have one per clock.
        optimum, default: (time, energy) of the free optimum and the default clock (c, 2).
        enumerated: which curves are of enumerated clocks (c,).
    """

    application: Ints
    kind: Ints
    size: Ints
    time_s: Floats
    energy_j: Floats
    optimum: Floats
    default: Floats
    enumerated: Bools

    def pack(self, into: Pack) -> None:
        """Add the curves, each between its own least and largest time and energy."""
        low_t, high_t = self._range(self.time_s, self.optimum[:, 0], self.default[:, 0])
        low_e, high_e = self._range(self.energy_j, self.optimum[:, 1], self.default[:, 1])
        into.whole("curve_application", self.application)
        into.whole("curve_kind", self.kind)
        into.whole("curve_size", self.size)
        into.whole("curve_enumerated", self.enumerated.astype(np.int64))
        ends = {"low_t": low_t, "high_t": high_t, "low_e": low_e, "high_e": high_e}
        for name, values in ends.items():
            into.real(f"curve_{name}", values)
        curve = self._curve
        into.whole("curve_t", _steps(self.time_s, low_t[curve], high_t[curve]))
        into.whole("curve_e", _steps(self.energy_j, low_e[curve], high_e[curve]))
        for name, pair in (("optimum", self.optimum), ("default", self.default)):
            into.whole(f"curve_{name}_t", _steps(pair[:, 0], low_t, high_t))
            into.whole(f"curve_{name}_e", _steps(pair[:, 1], low_e, high_e))

    @property
    def _curve(self) -> Ints:
        return np.repeat(np.arange(self.size.size), self.size)

    def _range(self, samples: Floats, *others: Floats) -> tuple[Floats, Floats]:
        low, high = np.full(self.kind.size, np.inf), np.full(self.kind.size, -np.inf)
        np.minimum.at(low, self._curve, samples)
        np.maximum.at(high, self._curve, samples)
        for other in others:
            low, high = np.fmin(low, other), np.fmax(high, other)
        return low, high


def sampled_curves(problem: Problem, applications: Ints) -> Curves:
    """Sample the frontiers of these applications on every kind they can run on."""
    samples = FINE if applications.size * len(problem.platform.kinds) <= MANY else COARSE
    kinds = range(len(problem.platform.kinds))
    return joined([part for k in kinds for part in _of_kind(problem, applications, k, samples)])


def _of_kind(
    problem: Problem, applications: Ints, kind: int, samples: int
) -> tuple[Curves, Curves]:
    """Return the curves of continuous and those of enumerated clocks."""
    spec = problem.platform.kinds[kind]
    one = np.ones(applications.size)
    curves = spec.frontier(problem.library, applications, one)
    runs, listed = np.isfinite(curves.t_min_s), np.diff(curves.ladder()[0]) > 0

    def part(rows: Ints, table: tuple[Ints, Floats, Floats], enumerated: bool) -> Curves:
        point = np.tile(spec.clocks.default, (rows.size, 1))
        time, power = problem.library.at(applications[rows], spec.name, point)
        optimum = np.column_stack([curves.t_opt_s[rows], curves.e_opt_j[rows]])
        default = np.column_stack([time, time * power])
        kinds, stepped = np.full(rows.size, kind), np.full(rows.size, enumerated)
        return Curves(rows, kinds, *table, optimum, default, stepped)

    smooth, stepped = np.flatnonzero(runs & ~listed), np.flatnonzero(runs & listed)
    return (
        part(smooth, _sampled(curves, smooth, samples), False),
        part(stepped, _listed(curves, stepped), True),
    )


def _sampled(curves: Frontier, rows: Ints, samples: int) -> tuple[Ints, Floats, Floats]:
    """Return samples between the shortest and the longest time, closer where it is steep."""
    place = np.linspace(0.0, 1.0, samples) ** 1.7
    low, high = curves.t_min_s[rows, None], curves.t_max_s[rows, None]
    time_s = np.clip(low + (high - low) * place, low, high).ravel()
    settings = curves.at(time_s, np.repeat(rows, samples))
    return np.full(rows.size, samples), time_s, settings.energy_j


def _listed(curves: Frontier, rows: Ints) -> tuple[Ints, Floats, Floats]:
    """Return every clock's time and energy."""
    offset, time_s, energy_j = curves.ladder()
    size = np.diff(offset)[rows]
    entry = ranges(offset[rows], size)
    return size, time_s[entry], energy_j[entry]


def _steps(values: Floats, low: Floats, high: Floats) -> Ints:
    """Return where values lie between low and high, in 65534 steps; 65535 where unknown."""
    room = np.where(high > low, high - low, 1.0)
    place = np.rint((values - low) / room * 65534.0)
    return np.where(np.isfinite(place), place, 65535.0).astype(np.int64)
