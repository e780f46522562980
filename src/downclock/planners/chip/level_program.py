"""The linear program behind the bounds on schedules with one clock for the chip.

Unknowns: ``T_sm``, the cycles of stage s with exactly m active cores, and ``z_ism``, how long
task i runs in them. Every schedule satisfies:

- at every stage and m the z add up to ``m T``, and over all those to the work of each task;
- no two tasks of a path run at once, so the longest path of the z of a stage and m is at most T;
- the T of a stage add up to the length its own tasks need, all T to the least makespan;
- tasks in one piece fill cores only by whole numbers (`packing`).

Stages are the times before, during and after near-barriers (`stages`): without them the program
would run what precedes a join beside what follows it. Whole work makes T whole: some best schedule
starts every task at a whole cycle. Graphs too large for their paths keep the other rows, with
tasks that have the same stages put together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from downclock.planners.chip.length import Lengths, least_lengths
from downclock.planners.chip.model import WorkGraph
from downclock.planners.chip.packing import LevelRows, packing_rows
from downclock.planners.chip.stages import Stages, stages_of
from downclock.planners.highs import entries, solve_integer
from downclock.problem.graph import Edges
from downclock.units import Floats, Ints

_SAFETY = 1e-7
"""Relative allowance for the solver's own tolerance."""

_WITH_PATHS = 20_000
"""Unknowns up to which paths are in the program."""

_WHOLE = 4_000
"""Unknowns of one stage up to which T is whole where work is."""

_NODES = 2e5
"""Unknowns times branches: counted, so that a bound is the same on every machine."""


@dataclass(frozen=True, slots=True, eq=False)
class LevelProgram:
    """A graph on M cores as the program sees it: stages, least lengths, unit of work.

    ``merged``: tasks are groups of tasks, without paths.
    """

    graph: WorkGraph
    cores: int
    unit: float
    stages: Stages
    lengths: Lengths
    merged: bool = False

    @classmethod
    def of(cls, graph: WorkGraph, cores: int) -> LevelProgram:
        """Cut a graph into stages and find their least lengths."""
        unit, stages = common_unit(graph), stages_of(graph)
        return cls(graph, cores, unit, stages, least_lengths(graph, cores, unit, stages))

    def solve(self, cycle_cost: Floats) -> tuple[float, Floats | None]:
        """Least ``Σ T_m cost_m`` and the T (M + 1,) found, if any; ``cycle_cost`` (M,) concave."""
        found = self._merged()._least(cycle_cost)
        if self.unit > 0.0 and 2 * self.cores * len(self.graph) <= _WHOLE:
            # One stage and no rows of packing: more unknowns, and whole, take HiGHS very long.
            none, whole = np.zeros(len(self.graph), np.int64), self.lengths.whole
            lengths = Lengths(np.array([whole]), whole)
            one_stage = replace(self, stages=Stages(none[:0], none, none), lengths=lengths)
            found = max(found, one_stage._least(cycle_cost, whole=True), key=itemgetter(0))
        return found

    def _least(self, cycle_cost: Floats, whole: bool = False) -> tuple[float, Floats | None]:
        """Solve the rows, with whole T or with the rows of packing."""
        from scipy.optimize import Bounds, LinearConstraint

        graph, scale = self.graph, self.unit or float(self.graph.work.mean())
        rows = _rows_of(graph, self.stages, self.cores, not self.merged)
        work = np.concatenate([np.zeros(rows.levels), graph.work / scale])
        shortest = np.append(self.lengths.stage, self.lengths.whole) / scale * (1.0 - 1e-9)
        packing = [] if whole else packing_rows(graph, rows, self.stages, self.cores, scale)
        is_level = np.arange(rows.width) < rows.levels
        answer = solve_integer(
            np.where(is_level, np.resize(cycle_cost, rows.width), 0.0),
            constraints=[
                LinearConstraint(rows.paths, -np.inf, 0.0),
                LinearConstraint(rows.sums, work, work),
                LinearConstraint(rows.lengths, shortest, np.inf),
                *packing,
            ],
            integrality=np.where(is_level, float(whole), 0.0),
            bounds=Bounds(0.0, rows.most),
            options={"node_limit": int(_NODES / rows.width) + 1, "mip_rel_gap": 1e-9},
        )
        proven = answer.mip_dual_bound if whole else answer.fun
        if proven is None or not np.isfinite(proven) or (answer.status != 0 and not whole):
            return 0.0, None
        omega = None
        if answer.x is not None:
            cycles = answer.x[: rows.levels].reshape(-1, self.cores).sum(axis=0)
            omega = np.concatenate([[0.0], cycles * scale])
        return float(proven) * scale * (1.0 - _SAFETY), omega

    def _merged(self) -> LevelProgram:
        """Return the program itself, or one without edges whose tasks are put together."""
        size = int((self.stages.last - self.stages.first + 1).sum())
        if 2 * self.cores * size <= _WITH_PATHS:
            return self
        pairs = np.column_stack([self.stages.first, self.stages.last])
        pairs, group = np.unique(pairs, axis=0, return_inverse=True)
        work = np.bincount(group.ravel(), weights=self.graph.work).astype(np.float64)
        none = np.empty(0, np.int64)
        stages = Stages(self.stages.pivot, pairs[:, 0], pairs[:, 1])
        merged = WorkGraph.of(work, Edges(none, none))
        return replace(self, graph=merged, stages=stages, merged=True)


def common_unit(graph: WorkGraph) -> float:
    """Return the largest number all work is a multiple of; 0 if it is not whole, or in pieces."""
    if graph.pieces or not np.all(graph.work == np.rint(graph.work)) or graph.total_work > 2**53:
        return 0.0
    return float(np.gcd.reduce(graph.work.astype(np.int64)))


def _rows_of(graph: WorkGraph, stages: Stages, cores: int, paths: bool) -> LevelRows:
    task, stage = stages.cells()
    levels, size = stages.count * cores, task.size
    width = levels + (2 if paths else 1) * cores * size
    path_rows = _path_rows(graph, stages.count, task, stage, cores, width, paths)
    sum_rows = _sum_rows(len(graph), stages.count, task, stage, cores, width)
    row = np.append(np.repeat(np.arange(stages.count), cores), np.full(levels, stages.count))
    length_rows = entries(row, np.tile(np.arange(levels), 2), (stages.count + 1, width))
    most = np.full(width, np.inf)
    if paths:  # no more cores are active in a stage than tasks may run in it
        few = np.bincount(stage, minlength=stages.count)
        active = np.arange(1, cores + 1)
        wide = active[None, :] <= few[:, None]
        most[:levels] = np.where(wide, np.inf, 0.0).ravel()
    return LevelRows(path_rows, sum_rows, length_rows, most, levels, task, stage, paths)


def _path_rows(
    graph: WorkGraph, stages: int, task: Ints, stage: Ints, cores: int, width: int, paths: bool
) -> Any:
    """At every stage and level: a path's end is beyond those before it, and at most at T."""
    from scipy import sparse

    if not paths:
        return sparse.csr_array((1, width))
    size, (before, after) = task.size, _cell_edges(graph.reduced(), task, stage, stages)
    sources = np.setdiff1d(np.arange(size), after)
    sinks = np.setdiff1d(np.arange(size), before)
    into = np.concatenate([after, sources])
    adds = entries(np.arange(into.size), into, (into.size, size))
    ends = -adds + entries(np.arange(before.size), before, (into.size, size))
    last = entries(np.arange(sinks.size), sinks, (sinks.size, size))
    row, one_level = np.arange(cores * sinks.size), sparse.eye_array(cores)
    column = (stage[sinks][None, :] * cores + np.arange(cores)[:, None]).ravel()
    closing = [
        -entries(row, column, (row.size, stages * cores)),
        sparse.csr_array((row.size, cores * size)),
        sparse.kron(one_level, last),
    ]
    steps = [
        sparse.csr_array((cores * into.size, stages * cores)),
        sparse.kron(one_level, adds),
        sparse.kron(one_level, ends),
    ]
    return sparse.csr_array(sparse.vstack([sparse.hstack(steps), sparse.hstack(closing)]))


def _cell_edges(graph: WorkGraph, task: Ints, stage: Ints, stages: int) -> tuple[Ints, Ints]:
    """Return edges between the cells of one stage, as places among the cells."""
    place = np.full((stages, len(graph)), -1, np.int64)
    place[stage, task] = np.arange(task.size)
    before, after = place[:, graph.before].ravel(), place[:, graph.succ].ravel()
    both = (before >= 0) & (after >= 0)
    return before[both], after[both]


def _sum_rows(n: int, stages: int, task: Ints, stage: Ints, cores: int, width: int) -> Any:
    """At each stage and level m the z add up to m T; each task's z add up to its work."""
    from scipy import sparse

    size, levels = task.size, stages * cores
    active = np.tile(np.arange(1.0, cores + 1.0), stages)
    level = np.arange(cores)[:, None]
    column = levels + np.arange(cores * size)
    row = (stage[None, :] * cores + level).ravel()
    per_level = entries(row, column, (levels, width))
    times = entries(np.arange(levels), np.arange(levels), (levels, width), active)
    per_task = entries(np.tile(task, cores), column, (n, width))
    return sparse.csr_array(sparse.vstack([per_level - times, per_task]))
