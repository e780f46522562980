"""Search around a packing: move or swap tasks between processors, equalise what changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from downclock.planners.cluster.columns import CurveTables, awake_w
from downclock.problem.platform import Platform
from downclock.units import Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.cluster.kernels.curves import Curves


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Tasks that are all there at time 0, on servers that are all alike.

    Attributes:
        platform, curves: the servers; energy-time curves of every task told.
        free_s: run time that each row of them wants.
        deadline_s: when each task must end, from when servers are awake (n,).
        slopes, table: slopes of energy over time from idling down (m,), and the run time of every
            task at them (n, m).
    """

    platform: Platform
    curves: Curves
    free_s: Floats
    deadline_s: Floats
    slopes: Floats
    table: Floats

    @classmethod
    def of(cls, platform: Platform, tables: CurveTables, deadline_s: Floats) -> Batch:
        """Tabulate the run times."""
        from downclock.planners.cluster.kernels.equalise import slope_table

        below = np.concatenate([[0.0], np.geomspace(2.0, 1e5, 39), [1e12]])
        slopes = float(platform.idle_w[0]) - below
        rows, curves = _rows(platform, np.arange(deadline_s.size)), tables.for_kernels()
        table = slope_table(curves, rows, slopes)
        due_s, free_s = deadline_s - ready_s(platform), tables.rows["free_s"]
        return cls(platform, curves, free_s, due_s, slopes, table)

    def rows(self, tasks: Ints) -> Ints:
        """Rows of tasks in the curves."""
        return _rows(self.platform, tasks)

    def wanted_s(self, tasks: Ints) -> Floats:
        """Run time that each task would have alone."""
        return np.asarray(self.free_s[self.rows(tasks)])


def _rows(platform: Platform, tasks: Ints) -> Ints:
    return np.asarray(tasks * len(platform.kinds) + int(platform.kind[0]))


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """Tasks on processors: rows (m,) by processor, in running order, and what it costs."""

    task: Ints
    processor: Ints
    length_s: Floats
    cost_j: float


def ready_s(platform: Platform) -> float:
    """When servers woken at time 0 are awake."""
    return 0.0 if platform.initially_on[0] else float(platform.wake_s[0])


def wake_j(platform: Platform) -> float:
    """What it costs to have a server awake at all."""
    return 0.0 if platform.initially_on[0] else float(platform.wake_j[0])


class Search:
    """A packing that can be changed: which task is where, and each server's cost."""

    def __init__(self, batch: Batch, place: Ints) -> None:
        platform = batch.platform
        self.batch, self.place, self.platform = batch, place, platform
        self.size = int(platform.first_processor[1])
        self.awake_w, self.wake_j = float(awake_w(platform)[0]), wake_j(platform)
        self.members = _members(place, platform.server_count, self.size)
        self.cost_j = np.array([self.cost(mine)[0] for mine in self.members])

    @classmethod
    def of(cls, batch: Batch, packing: Packing) -> Search:
        """Begin at a packing."""
        place = np.full(batch.deadline_s.size, -1)
        place[packing.task] = packing.processor
        return cls(batch, place)

    def cost(self, mine: list[int]) -> tuple[float, Ints, Floats]:
        """Equalise one server with the tasks ``mine``: (cost, tasks in order, run times)."""
        from downclock.planners.cluster.kernels.equalise import equalise

        task = np.array(mine, dtype=np.int64)
        if task.size == 0:
            return 0.0, task, np.empty(0)
        processor = self.place[task]
        deadline_s = self.batch.deadline_s
        rank = np.lexsort((task, deadline_s[task], processor))
        task, processor = task[rank], processor[rank]
        begin = processor[0] // self.size * self.size
        first = np.searchsorted(processor, np.arange(begin, begin + self.size + 1))
        times = np.zeros(task.size)
        cost = equalise(
            self.batch.curves, self.batch.table[task], self.batch.slopes, self.batch.rows(task),
            deadline_s[task], first, self.awake_w, times,
        )  # fmt: skip
        return float(cost) + self.wake_j, task, times

    def try_places(self, tasks: tuple[int, ...], places: tuple[int, ...]) -> bool:
        """Put tasks at other places; keep that if it costs less."""
        old = tuple(int(self.place[i]) for i in tasks)
        servers = {p // self.size for p in old + places}
        before = sum(self.cost_j[j] for j in servers)
        members = {j: [i for i in self.members[j] if i not in tasks] for j in servers}
        for i, p in zip(tasks, places, strict=True):
            self.place[i] = p
            members[p // self.size].append(i)
        costs = {j: self.cost(mine)[0] for j, mine in members.items()}
        if sum(costs.values()) < before - 1e-9 * abs(before):
            for j in servers:
                self.members[j], self.cost_j[j] = members[j], costs[j]
            return True
        for i, p in zip(tasks, old, strict=True):
            self.place[i] = p
        return False

    def packing(self) -> Packing:
        """The packing as it stands."""
        parts = [self.cost(mine) for mine in self.members if mine]
        task = np.concatenate([part[1] for part in parts])
        length_s = np.concatenate([part[2] for part in parts])
        return Packing(task, self.place[task], length_s, float(self.cost_j.sum()))


def improved(search: Search, moves: int) -> Packing:
    """Try ``moves`` random moves and swaps, seeded; the result is never worse."""
    rng = np.random.default_rng(0)
    tasks = np.flatnonzero(search.place >= 0)
    used = int(search.place.max()) // search.size + 1
    most = min((used + 1) * search.size, search.platform.processor_count)
    for _ in range(moves):
        i, other = (int(x) for x in rng.choice(tasks, 2)) if tasks.size > 1 else (tasks[0],) * 2
        if rng.uniform() < 0.5 and search.place[i] != search.place[other]:
            search.try_places((i, other), (int(search.place[other]), int(search.place[i])))
        else:
            place = int(rng.integers(most))
            if place != search.place[i]:
                search.try_places((i,), (place,))
    return search.packing()


def _members(place: Ints, servers: int, size: int) -> list[list[int]]:
    members: list[list[int]] = [[] for _ in range(servers)]
    for i in np.flatnonzero(place >= 0):
        members[int(place[i]) // size].append(int(i))
    return members
