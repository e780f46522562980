"""Near-barriers of a task graph: tasks that nearly all others precede or follow.

Real workflows are full of joins with a few tasks beside them. Take such tasks, a chain of them, as
pivots: they cut the time of every schedule into stages, before, during and after each. A task that
follows one pivot and precedes another runs in the stages between them, so most tasks have one
stage of their own, and what each stage costs adds up. Tasks beside a pivot have several stages to
choose from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.planners.chip.kernels.paths import relatives
from downclock.planners.chip.model import WorkGraph
from downclock.units import Bools, Ints, ranges

_MOST_TASKS = 20_000
"""Tasks up to which it is asked who precedes whom: the bits take n² / 8 bytes."""

_SPARE = 2.0
"""How many stages more than one the tasks may have to choose from, on average."""

_MOST_PIVOTS = 60
_MOST_CANDIDATES = 400


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """Stages 0..2k of a graph with k pivots: pivot j is alone in stage ``2 j + 1`` of its own.

    Attributes:
        pivot: the pivots (k,), each preceding the next.
        first, last: stages a task may run in (n,), both included.
    """

    pivot: Ints
    first: Ints
    last: Ints

    @property
    def count(self) -> int:
        """Number of stages."""
        return 2 * self.pivot.size + 1

    def cells(self) -> tuple[Ints, Ints]:
        """Return (task, stage) of every stage a task may run in, by stage."""
        size = self.last - self.first + 1
        task = np.repeat(np.arange(size.size), size)
        stage = ranges(self.first, size)
        by_stage = np.argsort(stage, kind="stable")
        return task[by_stage], stage[by_stage]

    def tasks_of(self, stage: int) -> Ints:
        """Tasks that have no other stage."""
        return np.flatnonzero((self.first == stage) & (self.last == stage))


def stages_of(graph: WorkGraph) -> Stages:
    """Cut a graph at the pivots with the least work beside them."""
    n = len(graph)
    alone = Stages(np.empty(0, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64))
    if not 2 < n <= _MOST_TASKS:
        return alone
    reach = graph.reach()
    pivot = _pivots(graph, reach, _SPARE * n)
    first, last = np.zeros(n, np.int64), np.full(n, 2 * pivot.size)
    for j, p in enumerate(pivot):
        first[_after(reach, p, n)] = 2 * j + 2
        first[p] = last[p] = 2 * j + 1
    for j in range(pivot.size - 1, -1, -1):
        last[before_in(reach, pivot[j])] = 2 * j
        first[pivot[j]] = last[pivot[j]] = 2 * j + 1
    return Stages(pivot, first, last)


def _pivots(graph: WorkGraph, reach: Ints, spare: float) -> Ints:
    """Take tasks with the least work beside them that cut what lies between those taken before."""
    n = len(graph)
    related, related_work = relatives(reach, graph.work)
    beside = n - 1 - related
    beside_work = np.round(graph.total_work - graph.work - related_work, 9)
    degree = np.diff(graph.succ_at) + np.diff(graph.pred_at)
    rank = np.argsort(graph.order)
    kept: list[int] = []
    for p in np.lexsort((-degree, beside_work, beside > 0))[:_MOST_CANDIDATES]:
        if 2 * beside[p] > spare or len(kept) == _MOST_PIVOTS:
            break
        at = _place(reach, rank, kept, int(p))
        if at is not None and (beside[p] == 0 or _cuts(reach, kept[:at], kept[at:], int(p), n)):
            kept.insert(at, int(p))
            spare -= 2 * beside[p]
    return np.array(kept, dtype=np.int64)


def _place(reach: Ints, rank: Ints, kept: list[int], p: int) -> int | None:
    """Return the place of a task in a chain, or None where it is beside one of it."""
    if not all(_is_after(reach, p, q) or _is_after(reach, q, p) for q in kept):
        return None
    return int(sum(rank[q] < rank[p] for q in kept))


def _cuts(reach: Ints, earlier: list[int], later: list[int], p: int, n: int) -> bool:
    """Say whether at least half of the tasks between the neighbours in a chain are not beside p."""
    between = np.ones(n, np.bool_)
    if earlier:
        between &= _after(reach, earlier[-1], n)
    if later:
        between &= before_in(reach, later[0])
    ordered = between & (_after(reach, p, n) | before_in(reach, p))
    return 2 * int(ordered.sum()) >= int(between.sum())


def _is_after(reach: Ints, i: int, j: int) -> bool:
    return bool(reach[i, j >> 6] >> np.uint64(j & 63) & np.uint64(1))


def _after(reach: Ints, i: int, n: int) -> Bools:
    """Which tasks follow task i (n,)."""
    bits = np.unpackbits(reach[i].view(np.uint8), bitorder="little", count=n)
    return np.asarray(bits, dtype=np.bool_)


def before_in(reach: Ints, i: int) -> Bools:
    """Which tasks precede task i (n,), by the bits of who follows whom."""
    return np.asarray(reach[:, i >> 6] >> np.uint64(i & 63) & np.uint64(1), dtype=np.bool_)
