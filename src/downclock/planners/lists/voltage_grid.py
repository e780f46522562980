"""Lengths from a grid of voltages, as in the public code of mei2021: a named reading, not advice.

The code tries voltages in steps of 0.05, runs the core as fast as each allows (Theorem 1) and
takes the best memory clock for it. A task whose deadline binds gets the memory clock that just
meets it, as the paper says; with ``slack`` the best voltage that is in time as it is, which is what
the published numbers need.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.engine.view import View
from downclock.errors import InvalidInput
from downclock.planners.lists.lengths import LeastEnergy, window_s
from downclock.power.points import ClockRange
from downclock.power.profiles import GpuProfiles
from downclock.units import TOLERANCE, Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class VoltageGrid:
    """The least-energy run time over voltages ``step`` apart (mei2021's public code: 0.05).

    Kinds without continuous GPU clocks, and tasks for which no voltage of the grid is fast
    enough, use the exact optimum.
    """

    step: float = 0.05
    slack: bool = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.step) and self.step > 0.0):
            raise InvalidInput("must be positive", field="step", value=self.step)

    def wanted(self, view: View, kind: int, tasks: Ints) -> Floats:
        """Run time of the best point within the window."""
        room_s = window_s(view, tasks)
        time, _ = self._best(view, kind, tasks, room_s, exactly=False)
        rest = np.flatnonzero(~np.isfinite(time))
        if rest.size:
            time[rest] = view.frontier(kind, tasks[rest]).within(room_s[rest]).time_s
        return time

    def binds(self, view: View, kind: int, tasks: Ints) -> Bools:
        """As for the exact optimum."""
        return LeastEnergy().binds(view, kind, tasks)

    def points(self, view: View, kind: int, tasks: Ints, length_s: Floats) -> Floats:
        """The best point of the grid with exactly that run time."""
        _, points = self._best(view, kind, tasks, length_s, exactly=True)
        rest = np.flatnonzero(~np.isfinite(points[:, 0]))
        if rest.size:
            points[rest] = view.frontier(kind, tasks[rest]).within(length_s[rest]).points
        return points

    def _best(
        self, view: View, kind: int, tasks: Ints, limit_s: Floats, *, exactly: bool
    ) -> tuple[Floats, Floats]:
        """Time and point of least energy per task; NaN where the grid has none."""
        clocks = view.platform.kinds[kind].clocks
        best = np.full(tasks.size, np.inf)
        time, points = np.full(tasks.size, np.nan), np.full((tasks.size, 3), np.nan)
        profile = _profiles(view, kind, tasks)
        if profile is None or not isinstance(clocks, ClockRange):
            return time, points
        scale = view.tasks.scale[tasks]
        steps = int(np.floor((clocks.volt_max - clocks.volt_min) / self.step + TOLERANCE)) + 1
        for volt in clocks.volt_min + self.step * np.arange(steps):
            core = float(np.clip(clocks.law.max_core(volt), clocks.core_min, clocks.core_max))
            found_s, energy, memory = _at_core(
                profile, scale, clocks, (core, volt), limit_s, exactly, self.slack
            )
            better = energy < best
            best[better], time[better] = energy[better], found_s[better]
            points[better] = np.column_stack(
                [np.full(tasks.size, core), memory, np.full(tasks.size, volt)]
            )[better]
        return time, points


def _profiles(view: View, kind: int, tasks: Ints) -> GpuProfiles | None:
    """Parameters of each task (m,), or None where they are not all of the GPU model."""
    library, name = view.library, view.platform.kinds[kind].name
    application = view.tasks.application[tasks]
    if name not in library.kinds or tasks.size == 0:
        return None
    column = library.kinds.index(name)
    groups = np.unique(library.group[application, column])
    profiles = library.groups[int(groups[0])] if groups.size == 1 and groups[0] >= 0 else None
    if not isinstance(profiles, GpuProfiles):
        return None
    rows = library.row[application, column]
    fields = ("p0_w", "gamma_w", "c_w", "d_s", "delta", "t0_s")
    return GpuProfiles(*(getattr(profiles, field)[rows] for field in fields))


def _at_core(
    g: GpuProfiles,
    scale: Floats,
    clocks: ClockRange,
    setting: tuple[float, float],
    limit_s: Floats,
    exactly: bool,
    slack: bool,
) -> tuple[Floats, Floats, Floats]:
    """Time, energy (infinite: not reachable) and memory clock of tasks at one core setting."""
    core, volt = setting
    head_w = g.p0_w + g.c_w * volt * volt * core
    fixed_s = g.t0_s + g.d_s * g.delta / core
    moved_s = g.d_s * (1.0 - g.delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        room_s = limit_s / scale - fixed_s
        free = np.sqrt(head_w * moved_s / (g.gamma_w * fixed_s))
        needed = np.where(room_s > 0.0, moved_s / room_s, np.inf)
    wanted = needed if exactly else free if slack else np.fmax(free, needed)
    memory = np.where(moved_s > 0.0, wanted, clocks.memory_min)
    memory = np.clip(memory, clocks.memory_min, clocks.memory_max)
    time = (fixed_s + moved_s / memory) * scale
    reach = np.abs(time - limit_s) if exactly else time - limit_s
    energy = time * (head_w + g.gamma_w * memory)
    return np.minimum(time, limit_s), np.where(reach <= 1e-12 * limit_s, energy, np.inf), memory
