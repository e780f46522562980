"""Search around a packing: move or swap tasks between processors, equalise what changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from downclock.planners.cluster.columns import CurveTables, awake_w, server_sizes
from downclock.problem.platform import Platform
from downclock.units import Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.cluster.kernels.curves import Curves


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Tasks that are all there at time 0, on servers of one kind of processor.

    Attributes:
        platform, curves: the servers; energy-time curves of every task told.
        free_s: run time that each row of them wants.
        deadline_s: when each task must end (n,).
        slopes, table: slopes of energy over time from idling down (m,), and the run time of every
            task at them (n, m).
        size, awake_w, wake_j, ready_s: of each server (s,): processors, power while nothing runs,
            what it costs to have it awake at all, and when it can be.
        servers: all of them, what costs least for each processor first, of equals the smallest.
    """

    platform: Platform
    curves: Curves
    free_s: Floats
    deadline_s: Floats
    slopes: Floats
    table: Floats
    size: Ints
    awake_w: Floats
    wake_j: Floats
    ready_s: Floats
    servers: Ints

    @classmethod
    def of(cls, platform: Platform, tables: CurveTables, deadline_s: Floats, tasks: Ints) -> Batch:
        """Tabulate the run times, and rank the servers for some tasks."""
        from downclock.planners.cluster.kernels.equalise import slope_table

        below = np.concatenate([[0.0], np.geomspace(2.0, 1e5, 39), [1e12]])
        slopes = float(platform.idle_w[0]) - below
        rows, curves = _rows(platform, np.arange(deadline_s.size)), tables.for_kernels()
        table, free_s = slope_table(curves, rows, slopes), tables.rows["free_s"]
        size, power_w, on = server_sizes(platform), awake_w(platform), platform.initially_on
        wake_j, ready_s = np.where(on, 0.0, platform.wake_j), np.where(on, 0.0, platform.wake_s)
        usual_s = float(free_s[_rows(platform, tasks)].mean())
        cost_j = (power_w * usual_s + wake_j) / size
        cost_j = np.round(cost_j / max(cost_j.max(), 1e-300), 9)  # rounding makes no difference
        servers = np.lexsort((size, cost_j))
        columns = (size, power_w, wake_j, ready_s, servers)
        return cls(platform, curves, free_s, deadline_s, slopes, table, *columns)

    @property
    def uniform(self) -> bool:
        """Whether all servers are alike."""
        columns = (self.size, self.awake_w, self.wake_j, self.ready_s)
        return all(bool(np.all(column == column[0])) for column in columns)

    def rows(self, tasks: Ints) -> Ints:
        """Rows of tasks in the curves."""
        return _rows(self.platform, tasks)

    def wanted_s(self, tasks: Ints) -> Floats:
        """Run time that each task would have alone."""
        return np.asarray(self.free_s[self.rows(tasks)])

    def processors(self, servers: Ints) -> Ints:
        """Processors of servers, in their order."""
        first = self.platform.first_processor
        every = [np.arange(first[j], first[j + 1]) for j in servers]
        return np.concatenate([np.empty(0, np.int64), *every])


def _rows(platform: Platform, tasks: Ints) -> Ints:
    return np.asarray(tasks * len(platform.kinds) + int(platform.kind[0]))


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """Tasks on processors: rows (m,) by processor, in running order, and what it costs."""

    task: Ints
    processor: Ints
    length_s: Floats
    cost_j: float


class Search:
    """A packing that can be changed: which task is where, and each server's cost."""

    def __init__(self, batch: Batch, place: Ints) -> None:
        self.batch, self.place, self.server = batch, place, batch.platform.server
        self.members = _members(place, self.server, batch.size.size)
        self.cost_j = np.array([self.cost(j, mine)[0] for j, mine in enumerate(self.members)])

    @classmethod
    def of(cls, batch: Batch, packing: Packing) -> Search:
        """Begin at a packing."""
        place = np.full(batch.deadline_s.size, -1)
        place[packing.task] = packing.processor
        return cls(batch, place)

    def cost(self, j: int, mine: list[int]) -> tuple[float, Ints, Floats]:
        """Equalise server ``j`` with the tasks ``mine``: (cost, tasks in order, run times)."""
        from downclock.planners.cluster.kernels.equalise import equalise

        batch, task = self.batch, np.array(mine, dtype=np.int64)
        if task.size == 0:
            return 0.0, task, np.empty(0)
        due_s, processor = batch.deadline_s[task] - batch.ready_s[j], self.place[task]
        rank = np.lexsort((task, due_s, processor))
        task, processor, due_s = task[rank], processor[rank], due_s[rank]
        begin = batch.platform.first_processor[j]
        first = np.searchsorted(processor, np.arange(begin, begin + batch.size[j] + 1))
        times = np.zeros(task.size)
        cost = equalise(
            batch.curves, batch.table[task], batch.slopes, batch.rows(task), due_s, first,
            batch.awake_w[j], times,
        )  # fmt: skip
        return float(cost) + float(batch.wake_j[j]), task, times

    def try_places(self, tasks: tuple[int, ...], places: tuple[int, ...]) -> bool:
        """Put tasks at other places; keep that if it costs less."""
        old = tuple(int(self.place[i]) for i in tasks)
        servers = {int(self.server[p]) for p in old + places}
        before = sum(self.cost_j[j] for j in servers)
        members = {j: [i for i in self.members[j] if i not in tasks] for j in servers}
        for i, p in zip(tasks, places, strict=True):
            self.place[i] = p
            members[int(self.server[p])].append(i)
        costs = {j: self.cost(j, mine)[0] for j, mine in members.items()}
        if sum(costs.values()) < before - 1e-9 * abs(before):
            for j in servers:
                self.members[j], self.cost_j[j] = members[j], costs[j]
            return True
        for i, p in zip(tasks, old, strict=True):
            self.place[i] = p
        return False

    def packing(self) -> Packing:
        """The packing as it stands."""
        parts = [self.cost(j, mine) for j, mine in enumerate(self.members) if mine]
        task = np.concatenate([part[1] for part in parts])
        length_s = np.concatenate([part[2] for part in parts])
        return Packing(task, self.place[task], length_s, float(self.cost_j.sum()))


def improved(search: Search, moves: int) -> Packing:
    """Try ``moves`` random moves and swaps, seeded; the result is never worse."""
    rng, batch = np.random.default_rng(0), search.batch
    tasks = np.flatnonzero(search.place >= 0)
    used = np.isin(batch.servers, search.server[search.place[tasks]])
    places = batch.processors(batch.servers[: int(np.flatnonzero(used)[-1]) + 2])
    for _ in range(moves):
        i, other = (int(x) for x in rng.choice(tasks, 2)) if tasks.size > 1 else (tasks[0],) * 2
        if rng.uniform() < 0.5 and search.place[i] != search.place[other]:
            search.try_places((i, other), (int(search.place[other]), int(search.place[i])))
        else:
            place = int(places[rng.integers(places.size)])
            if place != search.place[i]:
                search.try_places((i,), (place,))
    return search.packing()


def _members(place: Ints, server: Ints, servers: int) -> list[list[int]]:
    members: list[list[int]] = [[] for _ in range(servers)]
    for i in np.flatnonzero(place >= 0):
        members[int(server[place[i]])].append(int(i))
    return members
