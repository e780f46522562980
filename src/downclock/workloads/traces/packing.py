"""Which processors jobs held when the trace does not say: best fit, in the order of their starts.

A job that fits on one machine goes where it leaves the least; a larger one takes whole machines.
Free machines are kept by how much of them is free, so a job costs about as much as a machine has
processors, however many machines there are.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from downclock.units import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Where jobs ran: a row per job and processor; ``placed`` marks the jobs that found a place."""

    job: Ints
    processor: Ints
    placed: Bools


@dataclass(slots=True)
class Pool:
    """Machines that jobs of one kind may use.

    Attributes:
        machines: free processors of each machine, the last is taken first.
        grows: processors of a machine that is added when nothing fits; 0: none is.
        first: number of the first processor that is added.
    """

    machines: list[list[int]]
    grows: int = 0
    first: int = 0
    _by_free: dict[int, list[int]] = field(default_factory=dict)
    _largest: int = 0

    def __post_init__(self) -> None:
        self._largest = max([self.grows, *map(len, self.machines)])
        for machine in range(len(self.machines)):
            self._listed(machine)

    def take(self, wanted: int, hosts: Sequence[int] = ()) -> list[tuple[int, int]] | None:
        """Return (machine, processor) of so many free processors; None where there are too few.

        On ``hosts``, evenly, where they are given and free.
        """
        if hosts and wanted % len(hosts) == 0:
            each = wanted // len(hosts)
            if all(len(self.machines[host]) >= each for host in hosts):
                return [one for host in hosts for one in self._from(host, each)]
        if wanted <= self._largest:
            machine = self._with(range(wanted, self._largest + 1))
            return None if machine is None else self._from(machine, wanted)
        return self._many(wanted)

    def give(self, taken: Sequence[tuple[int, int]]) -> None:
        """Free processors again."""
        for machine, processor in taken:
            self.machines[machine].append(processor)
        for machine in dict.fromkeys(machine for machine, _ in taken):
            self._listed(machine)

    def _many(self, wanted: int) -> list[tuple[int, int]] | None:
        """Take whole machines and a part of the last; of given ones the emptiest first."""
        taken: list[tuple[int, int]] = []
        while len(taken) < wanted:
            left = wanted - len(taken)
            sizes = range(self._largest, min(left, self.grows or 1) - 1, -1)
            machine = self._with(range(left, self._largest + 1) if left < self._largest else sizes)
            machine = self._with(sizes) if machine is None else machine
            if machine is None:
                self.give(taken)
                return None
            taken += self._from(machine, min(left, len(self.machines[machine])))
        return taken

    def _with(self, free: range) -> int | None:
        """Return the first machine with so many free processors, the first number that has any."""
        for number in free:
            heap = self._by_free.get(number, [])
            while heap and len(self.machines[heap[0]]) != number:
                heapq.heappop(heap)
            if heap:
                return heap[0]
        return self._added() if self.grows else None

    def _added(self) -> int:
        machine = len(self.machines)
        start = self.first + machine * self.grows
        self.machines.append(list(range(start + self.grows - 1, start - 1, -1)))
        return machine

    def _from(self, machine: int, number: int) -> list[tuple[int, int]]:
        free = self.machines[machine]
        taken = [(machine, free.pop()) for _ in range(number)]
        self._listed(machine)
        return taken

    def _listed(self, machine: int) -> None:
        heapq.heappush(self._by_free.setdefault(len(self.machines[machine]), []), machine)


def packed(
    pools: Sequence[Pool],
    choice: Sequence[Sequence[int]],
    processors: Ints,
    start_s: Floats,
    end_s: Floats,
    hosts: Sequence[Sequence[int]] | None = None,
) -> Placement:
    """Give every job (n,) processors from its start to its end, where a pool has enough.

    Args:
        pools: the machines.
        choice: pools that each job may use, the first that has enough is taken.
        processors: that each job needs, all in one pool.
        start_s: when it gets them.
        end_s: when it gives them back.
        hosts: machines (of its first pool) that each job should be on, where they are free.
    """
    running: list[tuple[float, int]] = []
    held: dict[int, tuple[Pool, list[tuple[int, int]]]] = {}
    jobs: list[int] = []
    taken_by: list[int] = []
    placed = np.zeros(len(choice), dtype=bool)
    starts, ends, sizes = start_s.tolist(), end_s.tolist(), processors.tolist()
    for job in np.argsort(start_s, kind="stable").tolist():
        while running and running[0][0] <= starts[job]:
            pool, given = held.pop(heapq.heappop(running)[1])
            pool.give(given)
        for k in choice[job]:
            wished = hosts[job] if hosts is not None and k == choice[job][0] else ()
            taken = pools[k].take(sizes[job], wished)
            if taken is not None:
                placed[job], held[job] = True, (pools[k], taken)
                jobs += [job] * len(taken)
                taken_by += [processor for _, processor in taken]
                heapq.heappush(running, (ends[job], job))
                break
    return Placement(np.array(jobs, dtype=np.int64), np.array(taken_by, dtype=np.int64), placed)
