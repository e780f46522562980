"""Search for unequal machines: move tasks between machines and in the order, cut, keep the best."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from downclock.planners.slots.mixed_cut import MixedMachines
from downclock.planners.slots.model import SlotPlan
from downclock.planners.slots.start import path_levels
from downclock.units import Floats, Ints

TRIES = 500
"""List schedules that are tried where the first ones miss a deadline."""


@dataclass(frozen=True, slots=True, eq=False)
class MixedPlan:
    """A plan on unequal machines: intervals, machine of each task (n,), orders tried."""

    plan: SlotPlan
    machine: Ints
    rounds: int


def solve_mixed(
    mixed: MixedMachines, *, seconds: float = np.inf, rounds: int = 2000, seed: int = 0
) -> MixedPlan | None:
    """Best plan found; None where no list schedule meets the deadlines.

    It starts with earliest finish. Each further order moves one to three tasks to other machines
    or places; times and levels of every order are exact (`MixedMachines.best`). Somewhat dearer
    ones are gone on from, too.
    """
    random, clock = np.random.default_rng(seed), time.perf_counter
    begun = clock()
    _, bottom = path_levels(mixed.index, mixed.least.min(axis=0).astype(np.float64))
    starts = [_start(mixed, -bottom, eager=True)]
    if starts[0] is None or clock() - begun < 0.2 * seconds:
        starts.append(_start(mixed, -bottom, eager=False))
    while not any(starts) and len(starts) < TRIES and clock() - begun < seconds:
        noise = random.normal(0.0, 0.3 * float(bottom.mean()), bottom.size)
        starts.append(_start(mixed, noise - bottom, eager=len(starts) % 2 == 0))
    best = min(filter(None, starts), key=lambda start: start.plan.cost, default=None)
    if best is None:
        return None
    plan, machine, bound, done = best.plan, best.machine, mixed.bound(), 1
    while done < rounds and clock() - begun < seconds and best.plan.cost > bound * (1.0 + 1e-7):
        tried, rank = _listed(mixed, *_disturbed(mixed, plan, machine, random))
        found = mixed.best(tried, rank)
        done += 1
        if found is None:
            continue
        cost = best.plan.cost
        warm = 1e-300 + 2e-4 * cost + 0.02 * min(0.1 * cost, max(0.0, cost - bound))
        if random.random() < np.exp(min(0.0, (plan.cost - found.cost) / warm)):
            plan, machine = found, tried
        if found.cost < best.plan.cost:
            best = MixedPlan(found, tried, done)
    return replace(best, rounds=done)


def _disturbed(
    mixed: MixedMachines, plan: SlotPlan, machine: Ints, random: np.random.Generator
) -> tuple[Floats, Ints]:
    """Return keys and machines where one to three tasks have another place and machine."""
    moved, key = machine.copy(), (0.5 * (plan.first + plan.last)).astype(np.float64)
    some = random.integers(0, machine.size, random.integers(1, 4))
    spread = 1.0 + 0.5 * float(np.mean(plan.last - plan.first + 1))
    key[some] += random.normal(0.0, spread, some.size)
    if random.random() < 0.5:
        moved[some] = moved[random.permutation(some)]
    else:
        moved[some] = random.integers(0, mixed.machine_class.size, some.size)
    return key, moved


def _start(mixed: MixedMachines, key: Floats, *, eager: bool) -> MixedPlan | None:
    machine, rank = _listed(mixed, key, None, eager=eager)
    plan = mixed.best(machine, rank)
    return None if plan is None else MixedPlan(plan, machine, 1)


def _listed(
    mixed: MixedMachines, key: Floats, machine: Ints | None, *, eager: bool = False
) -> tuple[Ints, Ints]:
    """Return machine and rank of a list schedule; machines are chosen where none are given.

    Where ``eager`` only tasks that can start first are looked at.
    """
    index, graph = mixed.index, mixed.index.graph
    n, free = len(graph), np.zeros(mixed.machine_class.size, dtype=np.int64)
    chosen, rank, end = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.zeros(n)
    waiting, may = np.diff(index.pred_at), graph.release.astype(np.float64)
    ready = {i for i in range(n) if waiting[i] == 0}
    for place in range(n):
        soonest = free.min() if eager else np.inf
        i = min(ready, key=lambda task: (max(may[task], soonest), key[task], task))
        ready.remove(i)
        ends = np.maximum(free, may[i]) + mixed.least[mixed.machine_class, i]
        chosen[i] = np.argmin(ends) if machine is None else machine[i]
        end[i] = free[chosen[i]] = ends[chosen[i]]
        rank[i] = place
        for j in index.succ[index.succ_at[i] : index.succ_at[i + 1]]:
            may[j] = max(may[j], end[i])
            waiting[j] -= 1
            if waiting[j] == 0:
                ready.add(int(j))
    return chosen, rank
