"""Which processors jobs held: those of the nodes the trace names, else by best fit.

Jobs that name nodes of the cluster are there, as evenly as they fit; what they hold, and when, is
kept free for them. The others are packed in the order of their starts: a job that fits on one
machine goes where it leaves the least; a larger one takes whole machines. Free machines are kept by
how much of them is free, so a job costs about as much as a machine has processors, however many
machines there are.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from downclock.units import Bools, Floats, Ints, Names

NAMED = "on the nodes that the trace names"
PACKED = "packed by best fit"
UNKNOWN = "packed, its nodes not known or of several kinds"
TAKEN = "packed, too few processors free on its nodes"
NO_PLACE = "left out as it ran: too few processors were free at its start"
"""How a job got its processors, or why it has none."""

Nodes: TypeAlias = Mapping[int, Sequence[int]]
"""The machines that a job names, in each pool that has all of them."""

Parts: TypeAlias = list[tuple[int, int]]
"""Machines and how many processors of each."""


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Where jobs ran: a row per job and processor; per job (n,) its pool, or -1, and how so."""

    job: Ints
    processor: Ints
    pool: Ints
    how: Names

    @property
    def placed(self) -> Bools:
        """The jobs that found a place."""
        return np.asarray(self.pool >= 0)


class _Kept:
    """How many processors of a machine are kept for jobs that name it, as steps in time."""

    def __init__(self, changes: list[tuple[float, int]]) -> None:
        self._at_s, self._number = [-np.inf], [0]
        for at_s, change in sorted(changes):
            self._at_s.append(at_s)
            self._number.append(self._number[-1] + change)

    def rise(self, start_s: float, end_s: float) -> int:
        """How many more they become before ``end_s`` than they are at ``start_s``."""
        now, last = bisect_right(self._at_s, start_s) - 1, bisect_left(self._at_s, end_s)
        return max(self._number[now : max(last, now + 1)]) - self._number[now]


@dataclass(slots=True)
class Pool:
    """Machines that jobs of one kind may use.

    Attributes:
        machines: free processors of each machine, the last is taken first.
        grows: processors of a machine that is added when nothing fits; 0: none is.
        first: number of the first processor that is added.
        kept: what is kept for jobs that name a machine.
    """

    machines: list[list[int]]
    grows: int = 0
    first: int = 0
    kept: dict[int, _Kept] = field(default_factory=dict)
    _by_free: dict[int, list[int]] = field(default_factory=dict)
    _listed: set[tuple[int, int]] = field(default_factory=set)
    _largest: int = 0

    def __post_init__(self) -> None:
        self._largest = max([self.grows, *map(len, self.machines)])
        for machine in range(len(self.machines)):
            self._list(machine)

    def take(self, wanted: int, span_s: tuple[float, float]) -> list[tuple[int, int]] | None:
        """Return (machine, processor) of so many free processors; None where there are too few."""
        if wanted <= self._largest:
            machine = self._with(range(wanted, self._largest + 1), wanted, span_s)
            return None if machine is None else self.hold([(machine, wanted)])
        return self._many(wanted, span_s)

    def hold(self, parts: Parts) -> list[tuple[int, int]]:
        """Return (machine, processor) of so many processors of these machines."""
        taken = []
        for machine, number in parts:
            free = self.machines[machine]
            taken += [(machine, free.pop()) for _ in range(number)]
            self._list(machine)
        return taken

    def give(self, taken: Sequence[tuple[int, int]]) -> None:
        """Free processors again."""
        for machine, processor in taken:
            self.machines[machine].append(processor)
        for machine in dict.fromkeys(machine for machine, _ in taken):
            self._list(machine)

    def _many(self, wanted: int, span_s: tuple[float, float]) -> list[tuple[int, int]] | None:
        """Take whole machines and a part of the last; of given ones the emptiest first."""
        taken: list[tuple[int, int]] = []
        while len(taken) < wanted:
            left = wanted - len(taken)
            least = min(left, self.grows or 1)
            machine = None
            if left < self._largest:
                machine = self._with(range(left, self._largest + 1), left, span_s)
            if machine is None:
                machine = self._with(range(self._largest, least - 1, -1), least, span_s)
            if machine is None:
                self.give(taken)
                return None
            taken += self.hold([(machine, min(left, self._spare(machine, span_s)))])
        return taken

    def _spare(self, machine: int, span_s: tuple[float, float]) -> int:
        """Processors that are free now and not kept for others until the end."""
        free, kept = len(self.machines[machine]), self.kept.get(machine)
        return free if kept is None else free - kept.rise(*span_s)

    def _with(self, free: range, least: int, span_s: tuple[float, float]) -> int | None:
        """Return the first machine with so many free processors, the first number that has any."""
        for number in free:
            heap = self._by_free.get(number, [])
            while heap and len(self.machines[heap[0]]) != number:
                self._listed.discard((number, heapq.heappop(heap)))
            if heap and self._spare(heap[0], span_s) >= least:
                return heap[0]
            for machine in sorted(heap[1:]):
                if len(self.machines[machine]) == number and self._spare(machine, span_s) >= least:
                    return machine
        return self._added() if self.grows else None

    def _added(self) -> int:
        machine = len(self.machines)
        start = self.first + machine * self.grows
        self.machines.append(list(range(start + self.grows - 1, start - 1, -1)))
        return machine

    def _list(self, machine: int) -> None:
        number = len(self.machines[machine])
        if (number, machine) not in self._listed:
            self._listed.add((number, machine))
            heapq.heappush(self._by_free.setdefault(number, []), machine)


@dataclass(slots=True)
class Sweep:
    """Jobs in the order of their starts; those that ended before the next give back first."""

    start_s: list[float]
    end_s: list[float]
    _running: list[tuple[float, int]] = field(default_factory=list)

    def ended(self, job: int) -> list[int]:
        """The jobs that ended when this one starts."""
        found = []
        while self._running and self._running[0][0] <= self.start_s[job]:
            found.append(heapq.heappop(self._running)[1])
        return found

    def begin(self, job: int) -> None:
        """Let a job run."""
        heapq.heappush(self._running, (self.end_s[job], job))


def packed(
    pools: Sequence[Pool],
    choice: Sequence[Sequence[int]],
    processors: Ints,
    start_s: Floats,
    end_s: Floats,
    nodes: Sequence[Nodes | None] | None = None,
) -> Placement:
    """Give every job (n,) processors from its start to its end, where a pool has enough.

    Args:
        pools: the machines.
        choice: pools that each job may use, the first that has enough is taken.
        processors: that each job needs, all in one pool.
        start_s: when it gets them.
        end_s: when it gives them back.
        nodes: what each job names; None where it names nothing.
    """
    sizes, sweep = processors.tolist(), Sweep(start_s.tolist(), end_s.tolist())
    nodes = [None] * len(sizes) if nodes is None else nodes
    split = _on_nodes(pools, sizes, nodes, Sweep(sweep.start_s, sweep.end_s))
    packs = np.array([job not in split for job in range(len(sizes))], dtype=bool)
    held: dict[int, tuple[Pool, list[tuple[int, int]]]] = {}
    jobs: list[int] = []
    taken_by: list[int] = []
    home = np.full(len(sizes), -1, dtype=np.int64)
    for job in np.lexsort((packs, start_s)).tolist():
        for ended in sweep.ended(job):
            pool, given = held.pop(ended)
            pool.give(given)
        span_s = sweep.start_s[job], sweep.end_s[job]
        own, parts = split.get(job, (-1, []))
        for k in [own] if parts else choice[job]:
            taken = pools[k].hold(parts) if parts else pools[k].take(sizes[job], span_s)
            if taken is not None:
                home[job], held[job] = k, (pools[k], taken)
                jobs += [job] * len(taken)
                taken_by += [processor for _, processor in taken]
                sweep.begin(job)
                break
    how = [_how(nodes[job], job in split, k >= 0) for job, k in enumerate(home.tolist())]
    job_of, processor = (np.array(column, dtype=np.int64) for column in (jobs, taken_by))
    return Placement(job_of, processor, home, np.array(how, dtype=object))


def _how(nodes: Nodes | None, named: bool, placed: bool) -> str:
    if named or not placed:
        return NAMED if named else NO_PLACE
    return PACKED if nodes is None else TAKEN if nodes else UNKNOWN


def _on_nodes(
    pools: Sequence[Pool], sizes: list[int], nodes: Sequence[Nodes | None], sweep: Sweep
) -> dict[int, tuple[int, Parts]]:
    """Split jobs over the nodes they name, and keep these for them; pool and parts by job."""
    named = [job for job, there in enumerate(nodes) if there]
    free = [[len(machine) for machine in pool.machines] for pool in pools]
    split: dict[int, tuple[int, Parts]] = {}
    changes: list[dict[int, list[tuple[float, int]]]] = [defaultdict(list) for _ in pools]
    for job in sorted(named, key=sweep.start_s.__getitem__):
        for ended in sweep.ended(job):
            k, parts = split[ended]
            for machine, number in parts:
                free[k][machine] += number
        for k, machines in (nodes[job] or {}).items():
            parts = _shares(sizes[job], machines, free[k])
            if parts:
                split[job] = k, parts
                sweep.begin(job)
                for machine, number in parts:
                    free[k][machine] -= number
                    begin_s, end_s = sweep.start_s[job], sweep.end_s[job]
                    changes[k][machine] += [(begin_s, number), (end_s, -number)]
                break
    for pool, of_pool in zip(pools, changes, strict=True):
        pool.kept = {machine: _Kept(steps) for machine, steps in of_pool.items()}
    return split


def _shares(wanted: int, machines: Sequence[int], free: Sequence[int]) -> Parts:
    """Split processors over machines as evenly as they are free; nothing where they are too few."""
    parts, left = [], wanted
    order = sorted(set(machines), key=free.__getitem__)
    for k, machine in enumerate(order):
        number = min(free[machine], -(-left // (len(order) - k)))
        parts.append((machine, number))
        left -= number
    return [] if left else sorted(part for part in parts if part[1])
