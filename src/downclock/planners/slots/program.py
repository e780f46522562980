"""The interval program: a column per task and interval, steps of first and last slots binary.

``Y[i, t]`` says that task i has started by slot t, ``Z[i, t]`` that it has ended with it:
``sum z = 1``, ``Y`` and ``Z`` are running sums of ``z`` by first and last slot, ``Y[j, t] <=
Z[i, t-1]`` on edges and ``sum (Y[i, t] - Z[i, t-1]) <= machines`` in every slot. HiGHS solves it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners.highs import Rows, solve_integer
from downclock.planners.slots.model import SlotGraph
from downclock.units import Floats, Ints

ANY_NODES = 1 << 30
"""So many nodes of a search tree that they are no limit."""


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Intervals that may be chosen: task, first and last slot and cost (k,)."""

    task: Ints
    first: Ints
    last: Ints
    cost: Floats

    def __len__(self) -> int:
        return self.task.size


@dataclass(frozen=True, slots=True, eq=False)
class ProgramAnswer:
    """Chosen column of each task (n,), or None; a bound; whether it is proven best; nodes."""

    chosen: Ints | None
    bound: float
    proven: bool
    nodes: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """Where the step variables of each task stand: slots low[i]..high[i] from ``base[i]``."""

    base: Ints
    low: Ints
    high: Ints

    @classmethod
    def of(cls, n: int, task: Ints, slot: Ints, base: int) -> _Steps:
        low, high = np.full(n, np.iinfo(np.int64).max), np.full(n, -1)
        np.minimum.at(low, task, slot)
        np.maximum.at(high, task, slot)
        start = base + np.concatenate([[0], np.cumsum(high - low + 1)])
        return cls(start[:-1], low, high)

    @property
    def end(self) -> int:
        return int(self.base[-1] + self.high[-1] - self.low[-1] + 1)

    def at(self, task: int, slot: int) -> int:
        """Variable, or -1 where it is surely 0, -2 where surely 1."""
        if slot < self.low[task]:
            return -1
        return int(self.base[task] + slot - self.low[task]) if slot < self.high[task] else -2


def solve_intervals(
    graph: SlotGraph,
    columns: Columns,
    *,
    seconds: float = np.inf,
    nodes: int = ANY_NODES,
    integral: bool = True,
    most: float = np.inf,
) -> ProgramAnswer:
    """Choose one interval a task at least cost; the linear relaxation where not ``integral``.

    Only choices up to the cost ``most`` count: none may be left. It ends after so many ``seconds``
    or ``nodes`` of the search tree; the nodes depend on what is asked only.
    """
    from scipy.optimize import Bounds, LinearConstraint

    n = len(graph)
    if np.unique(columns.task).size < n:
        return ProgramAnswer(None, np.inf, True)
    started = _Steps.of(n, columns.task, columns.first, len(columns))
    ended = _Steps.of(n, columns.task, columns.last, started.end)
    size = ended.end
    binary = np.zeros(size, dtype=np.int64)
    binary[len(columns) :] = int(integral)
    # HiGHS judges gaps on the scale of the objective: bring costs to the order of 1000.
    scale = 1000.0 / max(float(columns.cost.max()) * n, 1e-300)
    price = np.concatenate([columns.cost * scale, np.zeros(size - len(columns))])
    rules = [_rows(graph, columns, started, ended).constraint(size)]
    if most < np.inf:
        rules.append(LinearConstraint(price[None, :], -np.inf, most * scale))
    limits = {"time_limit": min(max(seconds, 0.01), 1e9), "node_limit": nodes, "mip_rel_gap": 1e-7}
    answer = solve_integer(
        price, integrality=binary, bounds=Bounds(0.0, 1.0), constraints=rules, options=limits
    )
    if answer.status == 2:
        return ProgramAnswer(None, np.inf, True)
    bound = answer.mip_dual_bound if integral else answer.fun
    bound = -np.inf if bound is None else float(bound) / scale
    if answer.x is None or not integral:
        return ProgramAnswer(None, bound, False)
    proven = bool(answer.status == 0)
    return ProgramAnswer(_chosen(n, columns, answer.x), bound, proven, answer.mip_node_count)


def _chosen(n: int, columns: Columns, x: Floats) -> Ints:
    weight = x[: len(columns)]
    order = np.lexsort((weight, columns.task))
    last = np.searchsorted(columns.task[order], np.arange(n), side="right") - 1
    return np.asarray(order[last])


def _rows(graph: SlotGraph, columns: Columns, started: _Steps, ended: _Steps) -> Rows:
    rows = Rows()
    for i in range(len(graph)):
        mine = np.flatnonzero(columns.task == i)
        rows.add(1.0, 1.0, (mine, 1.0))
        _steps(rows, mine, columns.first[mine], started, i)
        _steps(rows, mine, columns.last[mine], ended, i)
    for i, j in graph.edges:
        for t in range(int(started.low[j]), int(started.high[j]) + 1):
            _difference(rows, [(started.at(j, t), 1.0), (ended.at(i, t - 1), -1.0)], 0.0)
    for t in range(graph.slots):
        pairs = [(started.at(i, t), 1.0) for i in range(len(graph))]
        pairs += [(ended.at(i, t - 1), -1.0) for i in range(len(graph))]
        _difference(rows, pairs, float(graph.machines))
    return rows


def _steps(rows: Rows, mine: Ints, slot: Ints, steps: _Steps, task: int) -> None:
    """Tie step variables to the columns: each step up is what starts (or ends) in its slot."""
    for t in range(int(steps.low[task]), int(steps.high[task]) + 1):
        step = steps.base[task] + t - steps.low[task]
        sooner = [step - 1] if t > steps.low[task] else []
        rows.add(0.0, 0.0, (mine[slot == t], -1.0), ([step], 1.0), (sooner, -1.0))


def _difference(rows: Rows, pairs: list[tuple[int, float]], high: float) -> None:
    """Add ``sum of signed steps <= high``; steps known to be 0 or 1 move to the right."""
    column = [variable for variable, _ in pairs if variable >= 0]
    value = [sign for variable, sign in pairs if variable >= 0]
    high -= sum(sign for variable, sign in pairs if variable == -2)
    if sum(max(sign, 0.0) for sign in value) > high:
        rows.add(-np.inf, high, (column, value))
