"""Clocks per core where the graph is too large for a cone program: nearly optimal, with a proof.

A balanced flow of marginal power bounds the energy from below whatever it is, and its run times,
scaled to end in time, are a plan. So the flow is moved until both nearly meet (`kernels.flow`), a
counted number of times.

Without a placement the flow may also go past tasks: past the whole graph, and past all tasks of a
stage between two near-barriers (`stages`). That is the price of M cores that are busy all the
time; every task passed pays its M-th part for its run time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from downclock.planners.chip.clocks import ChipPower
from downclock.planners.chip.kernels.flow import dual_value, push_flow, run_times, settle
from downclock.planners.chip.model import WorkGraph
from downclock.planners.chip.stages import stages_of
from downclock.planners.highs import entries
from downclock.problem.graph import Edges
from downclock.units import Floats, Ints

_ROUNDS = (20, 200)
_TASK_ROUNDS = 2e6
"""Least and most rounds, and rounds times tasks: counted, so that an answer repeats."""

_LOOKS = 10
_STEP = 0.5
_SLOWER = 40.0
"""Rounds after which steps are half as long where ways past tasks may move together."""

_SPANS = (1, 2, 3, 4, 6, 8)
"""How many pivots further a way past tasks may lead."""

_LEAST = 1e-7
"""Least share of what enters at a task, so that it can grow again."""

_ACROSS = 0.01
"""First share of an edge that leads to another core."""


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """A flow: the price that each task's time has (n,), and all that flows.

    ``last_price`` is that of the last round: no better as a proof, often better as a plan.
    """

    price: Floats
    total: float
    last_price: Floats


def flow_of_placement(
    joint: WorkGraph, core: Ints | None, deadline: float, power: ChipPower, limits: Floats
) -> Settled:
    """Settle the flow of a graph with the order on each core.

    ``limits`` are the least and most seconds a cycle, here and below.
    """
    moving = _Moving.along(joint, core, _marginal(power, joint.critical_path / deadline))
    return moving.settled(len(joint), _law(power, limits), deadline)


def flow_of_cores(
    graph: WorkGraph, cores: float, deadline: float, power: ChipPower, limits: Floats
) -> Settled:
    """Settle the flow of a graph on M cores without a placement, some of it past tasks."""
    whole, past = _with_ways_past(graph)
    clock = max(graph.critical_path, graph.total_work / cores) / deadline
    moving = _Moving.along(whole, None, _marginal(power, clock))
    moving.past, moving.cores = past, cores
    moving.entry[len(graph)] = cores * _marginal(power, graph.total_work / (cores * deadline))
    return moving.settled(len(graph), _law(power, limits), deadline)


@dataclass(slots=True, eq=False)
class _Moving:
    """A flow on its way: shares of the edges (m,), what enters at tasks (n,), and ways past tasks.

    ``past`` (n, ways) says which tasks a way passes; ways are the last tasks, without work.
    """

    graph: WorkGraph
    split: Floats
    entry: Floats
    past: Any = None
    cores: float = 1.0

    @classmethod
    def along(cls, graph: WorkGraph, core: Ints | None, marginal: float) -> _Moving:
        """Start along the cores of a placement, else evenly."""
        split, enters = np.ones(graph.succ.size), np.diff(graph.pred_at) == 0
        if core is not None:
            same = core[graph.before] == core[graph.succ]
            split[~same] = _ACROSS
            enters = enters | ~np.isin(np.arange(len(graph)), graph.succ[same])
        sums = np.bincount(graph.before, weights=split, minlength=len(graph))
        return cls(graph, split / sums[graph.before], np.where(enters, marginal, 0.0))

    def settled(self, tasks: int, law: Floats, deadline: float) -> Settled:
        """Move the flow a number of times and return the best on the way."""
        graph, best_value = self.graph, -np.inf
        time, fall = np.zeros(len(graph)), np.zeros(len(graph))
        rounds = int(np.clip(_TASK_ROUNDS / tasks, *_ROUNDS))
        for k in range(rounds + 1):
            through, price = self._prices(tasks)
            if k % _LOOKS == 0:
                total = float(self.entry.sum())
                value = dual_value(graph.work, price, law) - total * deadline
                if value > best_value:
                    best, best_value = (price[:tasks], total), value
            run_times(graph.work, price, law, time, fall)
            self._pass(tasks, through, price, time, fall)
            step = _STEP if self.past is None else _STEP / (1.0 + k / _SLOWER)
            left, gives = settle(
                graph.order, graph.succ_at, graph.succ, self.split, through, time, fall, step
            )
            # More is let in where the way to the end takes longer than the deadline, else less.
            into = self.entry > 0.0
            over = step * (left[into] - deadline)
            move = over / np.maximum(gives[into], np.maximum(0.5 * np.abs(over), 1e-300))
            entry = self.entry[into] * np.exp(move)  # by a factor of exp(2) at most
            self.entry[into] = np.maximum(entry, _LEAST * entry.sum())
        return Settled(*best, last_price=price[:tasks])

    def _prices(self, tasks: int) -> tuple[Floats, Floats]:
        """Return the flow through each task and the price of its time."""
        through = self.entry.copy()
        push_flow(self.graph.order, self.graph.succ_at, self.graph.succ, self.split, through)
        price = through.copy()
        if self.past is not None:
            price[:tasks] += self.past @ through[tasks:] / self.cores
        return through, price

    def _pass(self, tasks: int, through: Floats, price: Floats, time: Floats, fall: Floats) -> None:
        """A way past tasks takes their run times on M cores; their fall is shared by the prices."""
        if self.past is None:
            return
        share = fall[:tasks] / np.maximum(price[:tasks], 1e-300)
        time[tasks:] = self.past.T @ time[:tasks] / self.cores
        fall[tasks:] = self.past.T @ share * through[tasks:] / self.cores**2
        fall[:tasks] = share * through[:tasks]


def _with_ways_past(graph: WorkGraph) -> tuple[WorkGraph, Any]:
    """Return the graph with ways past tasks as last tasks, and whom they pass (n, ways)."""
    n, stages = len(graph), stages_of(graph)
    k, pivot = stages.pivot.size, stages.pivot
    passed = [np.arange(n)]
    before, after = [graph.before], [graph.succ]
    # Pairs of pivots a few apart; -1 is the start of all and the number of pivots the end.
    pairs = [(a, a + span) for span in _SPANS for a in range(-1, k - span + 1)]
    for first, last in [pair for pair in pairs if pair != (-1, k)]:
        inside = (stages.first > 2 * first + 1) & (stages.last < 2 * last + 1)
        if np.any(inside):
            way = n + len(passed)
            passed.append(np.flatnonzero(inside))
            before.append(np.array(([pivot[first]] if first >= 0 else []) + [way] * (last < k)))
            after.append(np.array([way] * (first >= 0) + ([pivot[last]] if last < k else [])))
    ends = Edges(*(np.concatenate(part).astype(np.int64) for part in (before, after)))
    size = np.array([tasks.size for tasks in passed])
    way_of = np.repeat(np.arange(size.size), size)
    past = entries(np.concatenate(passed), way_of, (n, size.size))
    return WorkGraph.of(np.append(graph.work, np.zeros(size.size)), ends), past


def _marginal(power: ChipPower, clock: float) -> float:
    return float(power.c1 * (power.alpha - 1.0) * clock**power.alpha)


def _law(power: ChipPower, limits: Floats) -> Floats:
    return np.array([power.c1, power.c3, power.alpha, limits[0], limits[1]])
