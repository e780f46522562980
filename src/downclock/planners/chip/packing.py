"""Tasks in one piece fill cores only by whole numbers: rows for the level program.

Look at every schedule at moments Δ apart. A task is active at ``w / Δ`` of them, rounded down or
up. So over the moments of one offset the levels (active cores) are whole numbers whose sum lies
between the sums rounded down and up; and what holds for every offset holds for the cycles T at
each level. Two kinds of rows follow, for a function of the level that is 0 at level 0:

- convex (`_excess`): its sum over levels of a given sum is at most that of full cores and one rest;
- concave (`_deficit`): its sum over levels of a given sum is at least that.

Twelve tasks of one length on eight cores are an example: eight and four, and nothing is cheaper.
Besides, of m active cores at most r are among the r busiest, so ``Σ T_m min(m, r)`` is at least
what those have to run (`crowds.busiest`).
Tasks left out (short ones, or those that may run in other stages) change the level by their own;
what that can do is taken off with their z.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from downclock.planners.chip.lists import by_most
from downclock.planners.chip.model import WorkGraph
from downclock.planners.chip.stages import Stages
from downclock.planners.crowds import busiest, some
from downclock.units import Bools, Floats, Ints

_SPACINGS = 60
"""Spacings Δ tried: lengths of tasks and parts of them, evenly over their order."""

_KEPT = 1
"""Rows of one kind for one set of stages."""


@dataclass(frozen=True, slots=True, eq=False)
class LevelRows:
    """Rows over (T by stage, z by level, path ends by level).

    Attributes:
        most: the largest each unknown may be (width,).
        levels: how many T there are.
        task, stage: of the z of one level.
        with_paths: whether there are path ends.
    """

    paths: Any
    sums: Any
    lengths: Any
    most: Floats
    levels: int
    task: Ints
    stage: Ints
    with_paths: bool

    @property
    def width(self) -> int:
        """Number of unknowns."""
        return int(self.most.size)


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """A function of the level 1..M: ``value`` (M,), how much one more task changes it at most."""

    value: Floats
    slope: float
    convex: bool

    def of_hits(self, hits: Ints) -> Floats:
        """Most (convex) or least (concave) sum over levels that add up to ``hits``."""
        cores = self.value.size
        rest = np.append(0.0, self.value)[hits % cores]
        if not self.convex:
            rest = np.where(hits % cores > 0, np.minimum(rest, self.value[-1]), 0.0)
        return np.asarray(hits // cores * self.value[-1] + rest)


def packing_rows(
    graph: WorkGraph, rows: LevelRows, stages: Stages, cores: int, scale: float
) -> list[Any]:
    """Return the rows as constraints of the program, in each stage and over all stages."""
    from scipy import sparse
    from scipy.optimize import LinearConstraint

    if graph.pieces or not rows.with_paths or cores < 2:
        return []
    cuts = [*_crowds(graph, rows, stages, cores), *_cuts(graph, rows, stages, cores)]
    if not cuts:
        return []
    matrix = sparse.vstack([sparse.csr_array(row[None, :]) for row, _ in cuts])
    return [LinearConstraint(matrix, -np.inf, np.array([most for _, most in cuts]) / scale)]


def _crowds(
    graph: WorkGraph, rows: LevelRows, stages: Stages, cores: int
) -> Iterator[tuple[Floats, float]]:
    """Yield rows "<=" and their right-hand sides: how long few cores may be active."""
    active = np.arange(1, cores + 1)
    every = np.ones(stages.count, dtype=np.bool_)
    own = [(np.arange(stages.count) == s, stages.tasks_of(s)) for s in range(stages.count)]
    for chosen, tasks in [(every, np.arange(len(graph))), *(own if len(own) > 1 else ())]:
        for r, least in enumerate(busiest(graph.work[tasks], cores), start=1):
            if least > 0.0:
                row = np.zeros(rows.width)
                row[: rows.levels] = -np.kron(chosen, np.minimum(active, r))
                yield row, -least


def _cuts(
    graph: WorkGraph, rows: LevelRows, stages: Stages, cores: int
) -> Iterator[tuple[Floats, float]]:
    """Yield rows "<=" and their right-hand sides, over all stages that are wide and over each."""
    width = np.bincount(rows.stage, minlength=stages.count)
    for few in range(1, cores):
        wide = width > few
        alone = np.eye(stages.count, dtype=np.bool_)[wide]
        for chosen in [wide, *alone] if len(alone) > 1 else alone:
            cells = chosen[rows.stage]
            outside = np.append(0, np.cumsum(~chosen))
            inside = outside[stages.last + 1] == outside[stages.first]
            for level in (_excess(cores, few), _deficit(cores, few)):
                mine = np.unique(rows.task[cells]) if level.convex else np.flatnonzero(inside)
                for counted, limit in _packings(graph.work[mine], level):
                    others = cells & ~np.isin(rows.task, mine[counted])
                    yield _row(rows, chosen, others, level), limit


def _row(rows: LevelRows, chosen: Bools, others: Bools, level: _Level) -> Floats:
    """Weigh the T of the chosen stages by level, less what the others' z may add."""
    row, cores = np.zeros(rows.width), level.value.size
    sign = 1.0 if level.convex else -1.0
    row[: rows.levels] = sign * np.kron(chosen, level.value)
    moved = level.value > 0.0 if level.convex else np.ones(cores)
    row[rows.levels :][: cores * others.size] = -level.slope * np.kron(moved, others)
    return row


def _excess(cores: int, few: int) -> _Level:
    """How far ``m^(1/3)`` lies below the line through 0 and ``few``: convex, 0 up to ``few``."""
    m = np.arange(1.0, cores + 1.0)
    value = np.where(m > few, m * few ** (-2.0 / 3.0) - np.cbrt(m), 0.0).astype(np.float64)
    return _Level(value, float(value[-1] - value[-2]), True)


def _deficit(cores: int, few: int) -> _Level:
    """How far ``m^(1/3)`` lies above a line from 0 as steep as that from ``few`` to all cores."""
    m = np.arange(1.0, cores + 1.0)
    steep = (np.cbrt(cores) - np.cbrt(few)) / (cores - few)
    value = np.cbrt(m) - steep * m
    return _Level(value, max(0.0, float(value[-2] - value[-1])), False)


def _packings(work: Floats, level: _Level) -> Iterator[tuple[Ints, float]]:
    """Yield which tasks to count, the longest, and the limit, for the spacings that bind most."""
    by_length, usual = by_most(work), float(work.sum()) / level.value.size * level.value[-1]
    work = work[by_length]
    left_out = level.slope * (work.sum() - np.cumsum(work))
    found = []
    lengths = work[work > 0.0]
    for spacing in some(np.concatenate([lengths / q for q in (1, 2, 3)]), _SPACINGS):
        parts = work / spacing
        hits = np.ceil(parts - 1e-9) if level.convex else np.floor(parts + 1e-9)
        limit = spacing * level.of_hits(np.cumsum(hits).astype(np.int64))
        gain = (usual - limit if level.convex else limit - usual) - left_out
        for k in {int(np.argmax(gain)), int(np.argmax(gain + left_out))}:
            if gain[k] + left_out[k] > 1e-9 * usual:
                found.append((gain[k], k + 1, float(limit[k] if level.convex else -limit[k])))
    for _, count, limit in sorted(found)[: -_KEPT - 1 : -1]:
        yield by_length[:count], limit
