"""Barriers and near-barriers of a graph: places that almost everything passes in one order.

A barrier is a pair of sets of which every task of the first precedes every task of the second. A
join with some tasks beside it is one for all but these. A chain of barriers cuts the other tasks
into stages that run one after another; the tasks beside any of them may run in several.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from downclock.planners.slots.kernels.lists import ancestor_bits
from downclock.planners.slots.model import SlotGraphIndex
from downclock.units import Bools, Floats, Ints

LARGEST = 200_000_000
"""Words of ancestors that are looked at at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Barrier:
    """Tasks before and after it (n,)."""

    before: Bools
    after: Bools

    def ordered_with(self, other: Barrier) -> bool:
        """Tell whether one of two barriers comes first."""
        mine, its = self.before & ~other.before, other.before & ~self.before
        return not (np.any(mine) and np.any(its))


def barriers(index: SlotGraphIndex, work: Floats) -> list[Barrier]:
    """Find a barrier for each task: before it and what shares its ancestors, after it likewise.

    Those with the least ``work`` (n,) beside come first, then those nearest to the middle of it.
    The sets are closed: no task that could be in is out.
    """
    backwards = np.ascontiguousarray(index.order[::-1])
    ancestors, descendants = index.bits, ancestor_bits(backwards, index.succ_at, index.succ)
    found: dict[bytes, tuple[float, float, Barrier]] = {}
    for task in _candidates(ancestors, descendants):
        for before, after in _closed(ancestors, descendants, task):
            if np.any(before) and np.any(after):
                sooner, later = float(work @ before), float(work @ after)
                barrier = Barrier(before, after)
                found[before.tobytes()] = (-sooner - later, abs(sooner - later), barrier)
    return [barrier for *_, barrier in sorted(found.values(), key=lambda each: each[:2])]


def _candidates(ancestors: Words, descendants: Words) -> Ints:
    """Tasks with the most relatives; as many as there is time for."""
    relatives = np.bitwise_count(ancestors).sum(axis=1) + np.bitwise_count(descendants).sum(axis=1)
    most = max(1, LARGEST // max(4 * ancestors.size, 1))
    return np.argsort(-relatives.astype(np.int64), kind="stable")[:most]


def _closed(ancestors: Words, descendants: Words, task: int) -> Iterator[tuple[Bools, Bools]]:
    after = _having(ancestors, ancestors[task])
    yield _having(descendants, _packed(after, descendants.shape[1])), after
    before = _having(descendants, descendants[task])
    yield before, _having(ancestors, _packed(before, ancestors.shape[1]))


def _having(bits: Words, all_of: Words) -> Bools:
    """Rows that have all of some bits."""
    return np.asarray(np.all((bits & all_of) == all_of, axis=1))


def _packed(tasks: Bools, words: int) -> Words:
    packed = np.zeros(8 * words, dtype=np.uint8)
    some = np.packbits(tasks, bitorder="little")
    packed[: some.size] = some
    return packed.view(np.uint64)


Words = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """A chain of barriers, and what lies between them.

    Attributes:
        chain: barriers in order (k,).
        tasks: of each stage between them (k + 1 arrays).
        beside: tasks that are in no stage, as they are beside a barrier (d,).
        first, last: stages in which each of those may run at the soonest and the latest (d,).
    """

    chain: tuple[Barrier, ...]
    tasks: tuple[Ints, ...]
    beside: Ints
    first: Ints
    last: Ints

    @classmethod
    def of(cls, found: list[Barrier], work: Floats, share: float) -> Stages | None:
        """Chain barriers, the first ones first, with at most a ``share`` of ``work`` (n,) beside.

        Those are left out that would make a stage without a task of its own; None where no
        barrier is left.
        """
        chain: list[Barrier] = []
        inside, least = np.ones(work.size, dtype=bool), (1.0 - share - 1e-12) * work.sum()
        for barrier in found:
            left = inside & (barrier.before | barrier.after)
            if work @ left >= least and all(barrier.ordered_with(other) for other in chain):
                chain.append(barrier)
                inside = left
        chain.sort(key=lambda barrier: int(barrier.before.sum()))
        while chain:
            stages = cls._between(chain)
            empty = [k for k, tasks in enumerate(stages.tasks) if not tasks.size]
            if not empty:
                return stages
            del chain[min(empty[0], len(chain) - 1)]
        return None

    @classmethod
    def _between(cls, chain: list[Barrier]) -> Stages:
        before = np.array([barrier.before for barrier in chain])
        after = np.array([barrier.after for barrier in chain])
        inside = np.all(before | after, axis=0)
        # The stages' numbers: after that many barriers, and before the others.
        first, last = after.sum(axis=0), len(chain) - before.sum(axis=0)
        tasks = tuple(np.flatnonzero(inside & (first == k)) for k in range(len(chain) + 1))
        beside = np.flatnonzero(~inside)
        return cls(tuple(chain), tasks, beside, first[beside], last[beside])

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def crowd(self) -> Ints:
        """How many of the tasks beside may run in each stage (stages,)."""
        stage = np.arange(len(self))
        return np.asarray(((self.first <= stage[:, None]) & (stage[:, None] <= self.last)).sum(1))
