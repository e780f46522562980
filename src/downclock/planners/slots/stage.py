"""One stage between barriers: what its tasks need, and copies of the tasks beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners.crowds import crowded
from downclock.planners.slots.barriers import Stages
from downclock.planners.slots.fluid import Fluid
from downclock.planners.slots.kernels.stages import StageTasks
from downclock.planners.slots.model import SlotGraphIndex
from downclock.units import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One stage: what it needs, and the machines that it has.

    Attributes:
        tasks: its tasks, equal ones together.
        need: its work as a fluid.
        least: fewest slots it can take.
        wide: most machines that its tasks can use.
        rented: machines that tasks beside may use, too.
    """

    tasks: StageTasks
    need: float
    least: int
    wide: int
    rented: int

    @classmethod
    def of(cls, index: SlotGraphIndex, fluid: Fluid, tasks: Ints, crowd: int) -> Stage:
        """Count what some tasks need; ``crowd`` others may run in the same slots."""
        machines, length = index.graph.machines, index.length
        head, tail = _paths_within(index, tasks)
        kind = np.column_stack([index.row, head, tail, index.graph.release, index.graph.due])[tasks]
        rows, count = np.unique(kind, axis=0, return_counts=True)
        path = int((head + length + tail)[tasks].max())
        before, own, after = (each[tasks].astype(float) for each in (head, length, tail))
        counted = crowded(before, own, after, machines)
        row, head, tail, release, due = np.ascontiguousarray(rows.T)
        filled = -(-int(length[tasks].sum()) // machines)
        kinds, need = StageTasks(row, head, tail, release, due, count), fluid.work[tasks].sum()
        least, wide = max(path, filled, round(counted)), min(machines, tasks.size)
        return cls(kinds, float(need), least, wide, min(machines, crowd))


def _paths_within(index: SlotGraphIndex, tasks: Ints) -> tuple[Ints, Ints]:
    """Least slots before and after each task on paths inside a set (n,)."""
    inside = np.zeros(len(index.graph), dtype=bool)
    inside[tasks] = True
    mine = inside[index.before] & inside[index.after]
    edges = list(zip(index.before[mine].tolist(), index.after[mine].tolist(), strict=True))
    head, tail = np.zeros(inside.size, dtype=np.int64), np.zeros(inside.size, dtype=np.int64)
    for i, j in edges:
        head[j] = max(head[j], head[i] + index.length[i])
    for i, j in reversed(edges):
        tail[i] = max(tail[i], tail[j] + index.length[j])
    return head, tail


@dataclass(frozen=True, slots=True, eq=False)
class Copy:
    """A task beside barriers, placed around one stage.

    Attributes:
        task: its number among the tasks beside.
        stage: the stage whose arc it knows.
        rule: whether it starts in the arc or later, and whether before the arc's end.
        only: it is the only copy of its task.
    """

    task: int
    stage: int
    rule: tuple[bool, bool]
    only: bool


def copies_of(stages: Stages) -> list[Copy]:
    """Copies such that whichever stage a task starts in, one of them knows what it pays."""
    copies: list[Copy] = []
    for task, (first, last) in enumerate(zip(stages.first, stages.last, strict=True)):
        if last == first + 1:
            copies.append(Copy(task, int(first), (True, False), only=True))
            continue
        around = range(int(first) + 1, int(last), 2)
        for stage in around:
            copies.append(Copy(task, stage, (False, stage < around[-1]), len(around) == 1))
    return copies
