"""What operators do today: one clock cap for every job, the best one chosen in hindsight."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from downclock.policies.interface import Decisions, View
from downclock.policies.lengths import OneClock
from downclock.policies.listing import ListPolicy, State
from downclock.power.points import ClockRange, Clocks
from downclock.problem.problem import Problem
from downclock.units import Floats, Ints

_STEPS = 25
"""Caps tried along each clock of a continuous kind."""


@dataclass(frozen=True, slots=True)
class StaticCap:
    """Run every job at one clock; a job that needs a faster one to be on time gets it.

    The cap is the one with the least run energy over all jobs, each within its deadline. It is
    chosen with the whole trace in view, so it flatters this baseline.
    """

    name: str
    base: ListPolicy

    def objection(self, problem: Problem) -> str | None:
        """As the list policy underneath."""
        return self.base.objection(problem)

    def start(self, view: View) -> State:
        """As the list policy underneath."""
        return self.base.start(view)

    def run(
        self, state: State, view: View, arrived: Ints, until_s: float
    ) -> tuple[State, Decisions]:
        """Place with the best cap."""
        cap = view.once("static cap", lambda: best_cap(view))
        return replace(self.base, lengths=cap).run(state, view, arrived, until_s)


def best_cap(view: View) -> OneClock:
    """Return the cap with the least total run energy; cost tasks times caps."""
    problem = view.problem
    caps = _caps([kind.clocks for kind in problem.platform.kinds])
    needed = [
        view.frontier(k).within(view.window_s).energy_j for k in range(len(problem.platform.kinds))
    ]
    totals = [_run_energy(view, OneClock(core, memory), needed) for core, memory in caps]
    core, memory = caps[int(np.argmin(totals))]
    return OneClock(float(core), float(memory))


def _caps(clocks: list[Clocks]) -> Floats:
    """Every (core, memory) ratio worth trying (c, 2)."""
    rows: list[Floats] = []
    for kind in clocks:
        if isinstance(kind, ClockRange):
            core = np.linspace(kind.core_min, kind.core_max, _STEPS)
            memory = np.unique(np.linspace(kind.memory_min, kind.memory_max, _STEPS))
            rows.append(np.stack(np.meshgrid(core, memory, indexing="ij"), -1).reshape(-1, 2))
        else:
            rows.append(kind.points[:, :2])
    return np.unique(np.concatenate(rows), axis=0)


def _run_energy(view: View, cap: OneClock, needed_j: list[Floats]) -> float:
    """Sum over tasks of the cheapest kind's energy at the cap, or at the clock they need."""
    problem = view.problem
    n = len(problem.tasks)
    best = np.full(n, np.inf)
    for k, kind in enumerate(problem.platform.kinds):
        points = np.tile(cap.point(kind.clocks), (n, 1))
        time, power = problem.at(np.arange(n), np.full(n, k), points)
        energy = np.where(time <= view.window_s, time * power, needed_j[k])
        best = np.fmin(best, energy)
    return float(best[np.isfinite(best)].sum())
