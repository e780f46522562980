"""Search around a packing: move or swap tasks between processors, equalise what changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from downclock.planners.cluster.board import Board
from downclock.planners.cluster.columns import CurveTables
from downclock.units import Bools, Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.cluster.kernels.curves import Curves

BELOW_W = np.concatenate([[0.0], np.geomspace(2.0, 1e5, 39), [1e12]])
"""How much less than idling a second more saves: where run times are tabulated."""

LISTED = 8
"""Servers on which most tasks wait, so many, are listed anew with a task that joins."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Tasks that wait, and servers as they are at one moment; times count from then.

    Attributes:
        task: the tasks (m,); what follows of tasks is in this order.
        due_s: when each must end (m,).
        curves: energy-time curves of every task told.
        row: row of each task and kind there (m, k).
        table: its run time at each of `BELOW_W` (m, k, b).
        kind, server, ready_s: of each processor (p,): its kind, its server, when it is free of what
            runs; infinite: it does not work.
        first: first processor of each server (s + 1,).
        size, awake_w, wake_j: of each server (s,): processors that work, power while nothing runs,
            what it costs to have it awake at all.
        least_s: until when it is awake anyway, or when it can be (s,).
        busy: whether something runs or begins there (s,).
    """

    task: Ints
    due_s: Floats
    curves: Curves
    row: Ints
    table: Floats
    kind: Ints
    server: Ints
    ready_s: Floats
    first: Ints
    size: Ints
    awake_w: Floats
    wake_j: Floats
    least_s: Floats
    busy: Bools

    @classmethod
    def of(cls, tables: CurveTables, board: Board, task: Ints, now_s: float) -> Batch:
        """Tabulate the run times of tasks, and see what is free."""
        from downclock.planners.cluster.kernels.equalise import slope_table

        kinds, curves = len(tables.kinds), tables.for_kernels()
        row = task[:, None] * kinds + np.arange(kinds)
        table = slope_table(curves, row.ravel(), BELOW_W).reshape(task.size, kinds, -1)
        servers, processors = board.servers, board.processors
        server, awake = processors["server"], servers["awake"] == 1
        ready_s = np.where(
            awake[server], np.maximum(processors["ready_s"] - now_s, 0.0), servers["wake_s"][server]
        )
        works = (processors["up"] == 1) & (servers["works"][server] == 1)
        least_s = np.where(awake, 0.0, servers["wake_s"])
        np.maximum.at(least_s, server[works], ready_s[works])
        return cls(
            task=task,
            due_s=board.tasks["deadline_s"][task] - now_s,
            curves=curves,
            row=row,
            table=table,
            kind=processors["kind"],
            server=server,
            ready_s=np.where(works, ready_s, np.inf),
            first=np.append(servers["first"], server.size),
            size=np.bincount(server[works], minlength=servers.size),
            awake_w=servers["awake_w"],
            wake_j=np.where(awake, 0.0, servers["wake_j"]),
            least_s=least_s,
            busy=awake & (least_s > 0.0),
        )

    def after(self, place: Ints) -> Batch:
        """Servers as they are while tasks (m,) run that have a place: awake until these end."""
        there = np.flatnonzero(place >= 0)
        processor, ends_s = place[there], self.ready_s.copy()
        wanted_s = np.minimum(self.free_s[there, self.kind[processor]], self.due_s[there])
        np.add.at(ends_s, processor, wanted_s)
        least_s, used = self.least_s.copy(), np.unique(self.server[processor])
        np.maximum.at(least_s, self.server[processor], ends_s[processor])
        busy, wake_j = self.busy.copy(), self.wake_j.copy()
        busy[used], wake_j[used] = True, 0.0
        return replace(self, least_s=least_s, busy=busy, wake_j=wake_j)

    @property
    def free_s(self) -> Floats:
        """Run time that each task would have alone, on each kind (m, k); infinite: it cannot."""
        found: Floats = self.curves.rows["free_s"][self.row]
        return found


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
        """Begin with the processor of each task (m,); -1: it is left out."""
        self.batch, self.place = batch, place
        self.members: list[list[int]] = [[] for _ in batch.size]
        for i in np.flatnonzero(place >= 0):
            self.members[int(batch.server[place[i]])].append(int(i))
        self.costs_j = np.array([self.cost(j, mine)[0] for j, mine in enumerate(self.members)])

    @property
    def cost_j(self) -> float:
        """What all of it costs."""
        return float(self.costs_j.sum())

    @property
    def rank(self) -> tuple[int, float]:
        """How bad it is: tasks without a place, then what all cost, those at their least."""
        rows: Any = self.batch.curves.rows[self.batch.row[self.place < 0]]
        return len(rows), self.cost_j + float(rows["free_j"].min(axis=1).sum())

    def cost(self, j: int, mine: list[int]) -> tuple[float, Ints, Floats]:
        """Equalise server ``j`` with the tasks ``mine``: (cost, tasks in order, run times)."""
        from downclock.planners.cluster.kernels.equalise import equalise

        batch, task = self.batch, np.array(mine, dtype=np.int64)
        if task.size == 0:
            return 0.0, task, np.empty(0)
        task = task[np.lexsort((task, batch.due_s[task], self.place[task]))]
        begin, end = batch.first[j], batch.first[j + 1]
        processor, times = self.place[task], np.zeros(task.size)
        kind = batch.kind[processor]
        cost = equalise(
            batch.curves, batch.table[task, kind], BELOW_W, batch.row[task, kind],
            batch.due_s[task], np.searchsorted(processor, np.arange(begin, end + 1)),
            batch.ready_s[begin:end], batch.least_s[j], batch.awake_w[j], times,
        )  # fmt: skip
        return float(cost) + float(batch.wake_j[j]), task, times

    def try_places(self, tasks: tuple[int, ...], places: tuple[int, ...]) -> bool:
        """Put tasks at other places; keep that if it costs less."""
        old, server = tuple(int(self.place[i]) for i in tasks), self.batch.server
        servers = {int(server[p]) for p in old + places}
        before = sum(self.costs_j[j] for j in servers)
        members = {j: [i for i in self.members[j] if i not in tasks] for j in servers}
        for i, p in zip(tasks, places, strict=True):
            self.place[i] = p
            members[int(server[p])].append(i)
        costs = {j: self.cost(j, mine)[0] for j, mine in members.items()}
        if sum(costs.values()) < before - 1e-9 * abs(before):
            for j in servers:
                self.members[j], self.costs_j[j] = members[j], costs[j]
            return True
        for i, p in zip(tasks, old, strict=True):
            self.place[i] = p
        return False

    def insert(self, i: int) -> None:
        """Put task ``i``, which has no place, where it adds least; nowhere: it keeps none."""
        least, best = np.inf, None
        for j, tasks, places in self._ways(i):
            old, self.place[tasks] = self.place[tasks], places
            added = self.cost(j, [*self.members[j], i])[0] - self.costs_j[j]
            self.place[tasks] = old
            if added < least:
                least, best = added, (j, tasks, places)
        if best is not None:
            j, tasks, places = best
            self.place[tasks] = places
            self.members[j].append(i)
            self.costs_j[j] += least

    def _ways(self, i: int) -> Iterator[tuple[int, Ints, Ints]]:
        """Ways to place task ``i``: (server, tasks, their processors); others there may move."""
        for j in self._open():
            for p in self._places(i, j):
                yield int(j), np.array([i]), np.array([p])
        waiting = np.array([len(mine) for mine in self.members])
        for j in np.argsort(-waiting, kind="stable")[:LISTED]:
            if waiting[j] > 1 and np.any(np.isfinite(self._wanted_s(i, j))):
                tasks = np.array([*self.members[j], i])
                for places in self._lists(int(j), tasks):
                    yield int(j), tasks, places

    def _wanted_s(self, tasks: int | Ints, j: int) -> Floats:
        """Run times that tasks want on the processors of server ``j`` (m, p)."""
        return self.batch.free_s[tasks][
            ..., self.batch.kind[self.batch.first[j] : self.batch.first[j + 1]]
        ]

    def _lists(self, j: int, tasks: Ints) -> Iterator[Ints]:
        """Give tasks the processors of server ``j`` that are free first: by three orders."""
        batch, begin = self.batch, self.batch.first[j]
        wanted_s, due_s = self._wanted_s(tasks, j), batch.due_s[tasks]
        least_s = wanted_s.min(axis=1)
        for key in (due_s, due_s - least_s, -least_s):
            ends, places = batch.ready_s[begin : batch.first[j + 1]].copy(), np.empty_like(tasks)
            for a in np.argsort(key, kind="stable"):
                p = int(np.argmin(ends + wanted_s[a]))
                places[a] = begin + p
                ends[p] += wanted_s[a, p]
            yield places

    def _open(self) -> Ints:
        """Servers with something to do, and one of each sort of the others."""
        batch = self.batch
        kind = batch.kind[batch.first[:-1]]
        idle = np.array([not mine for mine in self.members]) & ~batch.busy
        sort = np.column_stack([kind, batch.size, batch.awake_w, batch.wake_j, batch.least_s])
        rest = np.flatnonzero(idle & (batch.size > 0))
        new = rest[np.unique(sort[rest], axis=0, return_index=True)[1]]
        return np.sort(np.concatenate([np.flatnonzero(~idle & (batch.size > 0)), new]))

    def _places(self, i: int, j: int) -> list[int]:
        """Processors of server ``j`` to try: the one done first, the one free first."""
        batch, mine = self.batch, self.members[j]
        begin, end = batch.first[j], batch.first[j + 1]
        able = np.isfinite(self._wanted_s(i, j))
        ready_s = np.where(able, batch.ready_s[begin:end], np.inf)
        done_s = ready_s.copy()
        np.add.at(
            done_s, self.place[mine] - begin, batch.free_s[mine, batch.kind[self.place[mine]]]
        )
        found = set()
        for k in np.unique(batch.kind[begin:end][able]):
            other = batch.kind[begin:end] != k
            found |= {int(np.argmin(np.where(other, np.inf, t))) for t in (done_s, ready_s)}
        return [int(begin + p) for p in found]

    def packing(self) -> Packing:
        """The packing as it stands."""
        parts = [self.cost(j, mine) for j, mine in enumerate(self.members) if mine]
        task = np.concatenate([np.empty(0, np.int64), *(part[1] for part in parts)])
        length_s = np.concatenate([np.empty(0), *(part[2] for part in parts)])
        return Packing(self.batch.task[task], self.place[task], length_s, self.cost_j)


def improve(search: Search, servers: Ints, moves: int) -> None:
    """Try ``moves`` random moves to ``servers`` and swaps, seeded; the result is never worse."""
    rng, batch = np.random.default_rng(0), search.batch
    tasks = np.flatnonzero(search.place >= 0)
    places = np.flatnonzero(np.isin(batch.server, servers) & np.isfinite(batch.ready_s))
    for _ in range(moves):
        i, other = (int(x) for x in rng.choice(tasks, 2)) if tasks.size > 1 else (tasks[0],) * 2
        if rng.uniform() < 0.5 and search.place[i] != search.place[other]:
            search.try_places((i, other), (int(search.place[other]), int(search.place[i])))
        else:
            place = int(places[rng.integers(places.size)])
            if place != search.place[i]:
                search.try_places((i,), (place,))
