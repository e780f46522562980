"""Search for unequal machines: move tasks between machines and in the order, cut, keep the best."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from downclock.exact.cost_mixed import MixedMachines
from downclock.exact.cost_model import SlotPlan
from downclock.policies.cost_start import path_levels
from downclock.units import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class MixedPlan:
    """A plan on unequal machines: intervals, machine of each task (n,), orders tried."""

    plan: SlotPlan
    machine: Ints
    rounds: int


def solve_mixed(
    mixed: MixedMachines,
    *,
    seconds: float = 1.0,
    rounds: int = 1 << 30,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> MixedPlan | None:
    """Best plan found; None where no list schedule meets the deadlines.

    It starts with earliest finish. Each further order moves one or two tasks to other machines or
    places; times and levels of every order are exact (`MixedMachines.best`).
    """
    random, begun = np.random.default_rng(seed), clock()
    _, bottom = path_levels(mixed.index, mixed.least.min(axis=0).astype(np.float64))
    machine, rank = _listed(mixed, -bottom, None)
    plan = mixed.best(machine, rank)
    if plan is None:
        return None
    key, done = plan.first.astype(np.float64), 1
    while done < rounds and clock() - begun < seconds:
        moved, place = machine.copy(), key.copy()
        some = random.integers(0, machine.size, random.integers(1, 3))
        moved[some] = random.integers(0, mixed.machine_class.size, some.size)
        place[some] += random.normal(0.0, 3.0, some.size)
        tried, rank = _listed(mixed, place, moved)
        found = mixed.best(tried, rank)
        done += 1
        if found is not None and found.cost <= plan.cost:
            plan, machine, key = found, tried, found.first.astype(np.float64)
    return MixedPlan(plan, machine, done)


def _listed(mixed: MixedMachines, key: Floats, machine: Ints | None) -> tuple[Ints, Ints]:
    """Return machine and rank of a list schedule; machines are chosen where none are given."""
    index, graph = mixed.index, mixed.index.graph
    n, free = len(graph), np.zeros(mixed.machine_class.size, dtype=np.int64)
    chosen, rank, end = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.zeros(n)
    waiting = np.diff(index.pred_at)
    ready = {i for i in range(n) if waiting[i] == 0}
    for place in range(n):
        i = min(ready, key=lambda task: (key[task], task))
        ready.remove(i)
        pred = index.pred[index.pred_at[i] : index.pred_at[i + 1]]
        at = max(float(graph.release[i]), float(end[pred].max(initial=0.0)))
        ends = np.maximum(free, at) + mixed.least[mixed.machine_class, i]
        chosen[i] = np.argmin(ends) if machine is None else machine[i]
        end[i] = free[chosen[i]] = ends[chosen[i]]
        rank[i] = place
        for j in index.succ[index.succ_at[i] : index.succ_at[i + 1]]:
            waiting[j] -= 1
            if waiting[j] == 0:
                ready.add(int(j))
    return chosen, rank
