"""All that waits: balanced chains, grouped into servers, then one end for each server.

Each task has the kind on which it costs least, a second on a kind that is scarce being dearer. Of
each kind the number of servers is scanned; on each, tasks go one by one to the processor free
soonest. Sorted by end, neighbours form servers (mei2021 Algorithm 3), whatever their sizes; the
servers that cost least for each processor are used first, after those on which something runs. The
best few are then equalised: run times are chosen together so that a server's processors end
together (`kernels.equalise`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from downclock.kernels.least_tree import new_trees
from downclock.planners.cluster.search import Batch, Packing, Search, improve
from downclock.planners.cluster.tail import tail_of
from downclock.problem.platform import Platform
from downclock.units import Bools, Floats, Ints

COUNTS, FINALISTS = 48, 4
"""Numbers of servers that are tried, and balanced packings that are equalised."""

LARGE = 4096
"""Tasks from which on fewer are, so that the time taken grows no faster than they do."""

MOVES_PER_S = 4000.0
"""Moves of the search that a second of effort stands for: counted, so that results repeat."""

SMALL, FREE_MOVES = 512, 2000
"""Problems of at most this many tasks are always searched a little."""

RISKED = 0.002
"""What a tail may cost, against all that is packed."""

FULL, DEAREST_W = 0.9, 1e5
"""Part of the time of a kind's processors that tasks may need before a second on it is dearer, and
the highest price of a second."""


def one_kind_each(platform: Platform) -> bool:
    """Tell whether processors of a server and chips of a kind are alike, as packing needs."""
    first = platform.kind[platform.first_processor[:-1]]
    shared_w = platform.shared_w[platform.chip]
    alike = [np.unique(shared_w[platform.kind == k]).size <= 1 for k in range(len(platform.kinds))]
    return bool(np.all(platform.kind == first[platform.server]) and all(alike))


def packing(batch: Batch, moves: int, *, more: bool) -> Packing | None:
    """Pack tasks and search a little; those without room are left out. None: nothing fits.

    ``more``: others may come, so one server of a kind is at work as long as deadlines allow.
    """
    pools = [_Pool.of(batch, k) for k in range(batch.row.shape[1])]
    able = np.isfinite(batch.free_s) & np.array([pool.places.size > 0 for pool in pools])
    place = np.full(batch.task.size, -1)
    for _ in pools:
        kind = _chosen(batch, able, pools)
        for k, pool in enumerate(pools):
            mine = np.flatnonzero(kind == k)
            place[mine] = pool.with_tail(mine) if more else pool.packed(mine)
        lost = np.flatnonzero((place < 0) & (kind >= 0))
        able[lost, kind[lost]] = False
        if not np.any(able[lost]):
            break
    search = Search(batch, place)
    if not np.any(place >= 0) or not np.isfinite(search.cost_j):
        return None
    if moves:
        used = np.isin(np.arange(batch.size.size), batch.server[place[place >= 0]])
        improve(search, np.concatenate([pool.used_and_next(used) for pool in pools]), moves)
    return search.packing()


def joined(batch: Batch, place: Ints) -> Packing | None:
    """Put tasks without a place (m,) one by one where they add least; those without room stay out.

    None: not even what has a place is in time.
    """
    search = Search(batch, place)
    if not np.isfinite(search.cost_j):
        return None
    new = np.flatnonzero(place < 0)
    for i in new[np.argsort(batch.due_s[new], kind="stable")]:
        search.insert(int(i))
    return search.packing()


def _chosen(batch: Batch, able: Bools, pools: list[_Pool]) -> Ints:
    """Return the kind of each task (m,): where it costs least; -1: none.

    Each kind has a multiplier, a price of its time: the least at which it is not overfull, found
    kind by kind by halving, twice over.
    """
    rows: Any = batch.curves.rows[batch.row]
    time_s = np.where(able, batch.free_s, 0.0)
    cost_j = np.where(able, rows["free_j"] + batch.curves.kinds["price_w"] * time_s, np.inf)
    price_w = np.zeros(len(pools))

    def on(k: int) -> Ints:
        return np.flatnonzero(able[:, k] & (np.argmin(cost_j + price_w * time_s, axis=1) == k))

    for k, pool in [*enumerate(pools)] * (2 if len(pools) > 1 else 0):
        low, price_w[k] = 0.0, 0.0
        high = DEAREST_W if pool.is_overfull(on(k)) else 0.0
        while high - low > 0.1:
            price_w[k] = 0.5 * (low + high)
            low, high = (price_w[k], high) if pool.is_overfull(on(k)) else (low, price_w[k])
        price_w[k] = high
    return np.where(np.any(able, axis=1), np.argmin(cost_j + price_w * time_s, axis=1), -1)


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """The servers of one kind.

    Attributes:
        servers: those on which something runs first, the longest first, then what costs least for
            each processor.
        busy: how many of them run something.
        places: their processors that work, in this order; ``room`` counts them, server by server.
        ready_s: when each is free, of servers that sleep as if all took as long to wake.
    """

    batch: Batch
    kind: int
    servers: Ints
    busy: int
    places: Ints
    room: Ints
    ready_s: Floats

    @classmethod
    def of(cls, batch: Batch, kind: int) -> _Pool:
        """Rank the servers of a kind."""
        works = np.flatnonzero(np.isfinite(batch.ready_s) & (batch.kind == kind))
        mine = np.unique(batch.server[works])
        wanted_s = batch.free_s[np.isfinite(batch.free_s[:, kind]), kind]
        usual_s = float(wanted_s.mean()) if wanted_s.size else 0.0
        cost_j = (batch.awake_w[mine] * usual_s + batch.wake_j[mine]) / batch.size[mine]
        cost_j = np.round(cost_j / max(cost_j.max(initial=0.0), 1e-300), 9)  # rounding is no matter
        last_s = np.where(batch.busy, batch.least_s, 0.0)[mine]
        servers = mine[np.lexsort((batch.size[mine], cost_j, -last_s))]
        busy = int(batch.busy[mine].sum())
        rank = np.empty(batch.size.size, np.int64)
        rank[servers] = np.arange(servers.size)
        places = works[np.argsort(rank[batch.server[works]], kind="stable")]
        ready_s, free = batch.ready_s[places], rank[batch.server[places]] >= busy
        ready_s[free] = ready_s[free].max(initial=0.0)
        return cls(batch, kind, servers, busy, places, np.cumsum(batch.size[servers]), ready_s)

    def is_overfull(self, tasks: Ints) -> bool:
        """Tell whether tasks need more time before some deadline than the processors have."""
        due_s, need_s = self.batch.due_s[tasks], self.batch.free_s[tasks, self.kind]
        order, ready_s = np.argsort(due_s), np.sort(self.ready_s)
        count = np.searchsorted(ready_s, due_s[order])
        has_s = count * due_s[order] - np.append(0.0, np.cumsum(ready_s))[count]
        return bool(np.any(np.cumsum(need_s[order]) > FULL * has_s))

    def packed(self, tasks: Ints) -> Ints:
        """Return the processor of each task (m,), by the best of some packings; -1: no room."""
        best, least = np.full(tasks.size, -1), np.inf
        if tasks.size == 0 or self.places.size == 0:
            return best
        finalists = max(1, FINALISTS * LARGE // max(LARGE, tasks.size))
        scored = sorted(self._scan(tasks), key=lambda found: found[:2])[:finalists]
        for _, _, chain in (found for found in scored if found[0] == scored[0][0]):
            given = self._grouped(tasks, chain)
            cost_j = self._cost_j(tasks, given)
            if cost_j < least:
                least, best = cost_j, given
        return best

    def with_tail(self, tasks: Ints) -> Ints:
        """Return the processor of each task (m,), some in a tail; as packed where that costs much.

        The tail is on the server where something runs the longest, or on one of the cheapest. Many
        tasks leave servers awake for a while anyway, and have none.
        """
        packed, size = self.packed(tasks), int(self.room[0]) if self.room.size else 0
        if not size <= tasks.size <= LARGE or size == self.places.size or np.any(packed < 0):
            return packed
        cost_j = self._cost_j(tasks, packed)
        found = tail_of(self.batch, self.kind, tasks, self.places[:size], RISKED * cost_j)
        rest = np.flatnonzero(found < 0)
        if rest.size == tasks.size:
            return packed
        found[rest] = self._but_first().packed(tasks[rest])
        lost = np.any(found < 0) or self._cost_j(tasks, found) > (1.0 + RISKED) * cost_j
        return packed if lost else found

    def _but_first(self) -> _Pool:
        size = int(self.room[0])
        return replace(
            self, servers=self.servers[1:], busy=max(self.busy - 1, 0), places=self.places[size:],
            room=self.room[1:] - size, ready_s=self.ready_s[size:],
        )  # fmt: skip

    def _cost_j(self, tasks: Ints, given: Ints) -> float:
        """What tasks cost on processors (m,)."""
        place = np.full(self.batch.task.size, -1)
        place[tasks] = given
        return Search(self.batch, place).cost_j

    def used_and_next(self, used: Bools) -> Ints:
        """Servers up to the one after the last that is used."""
        last = np.flatnonzero(used[self.servers])
        return self.servers[: int(last[-1]) + 2 if last.size else 1]

    def _scan(self, tasks: Ints) -> list[tuple[int, float, Ints]]:
        """Balance the tasks on every number of servers; return (lost, cost, chain of each)."""
        from downclock.planners.cluster.kernels.balance import balance

        due_s, rows = self.batch.due_s[tasks], self.batch.row[tasks, self.kind]
        wanted_s = self.batch.free_s[tasks, self.kind]
        found = []
        for servers in self._counts(tasks.size):
            for order in (np.lexsort((tasks, due_s)), np.lexsort((tasks, -wanted_s))):
                opened = int(self.room[servers - 1])
                keys = np.where(np.arange(self.places.size) < opened, self.ready_s, np.inf)
                ends, chain = new_trees(keys[None, :]), np.full(tasks.size, -1)
                extra, opened, lost = balance(
                    self.batch.curves, rows, due_s, order, self.ready_s, ends, opened, chain
                )
                leaf = ends.shape[1] // 2
                awake_j = self._arranged(ends[0, leaf : leaf + opened])[1]
                found.append((lost, extra + awake_j, chain))
        return found

    def _counts(self, tasks: int) -> Ints:
        """Numbers of servers to begin with: all up to `COUNTS`, then ever coarser."""
        held = self.room[self.busy - 1] if self.busy else 0
        top = min(self.room.size, 1 + int(np.searchsorted(self.room, held + tasks)))
        most = max(2, COUNTS * LARGE // max(LARGE, tasks))
        return np.unique(np.linspace(1, top, min(top, most)).astype(np.int64))

    def _arranged(self, end_s: Floats) -> tuple[Ints, float]:
        """Give chains (c,), at first those of ``places``, servers; return (processors, joules).

        Where something runs they stay. Others are put together by length on the cheapest servers
        that hold them, the smallest or the largest first: what idles beside a longest chain is the
        least where chains differ most. Joules: wakes, and power of awake servers that no task
        draws.
        """
        batch, place = self.batch, self.places[: end_s.size].copy()
        fixed = min(int(self.room[self.busy - 1]), end_s.size) if self.busy else 0
        length_s = end_s - self.ready_s[: end_s.size]
        last_s = batch.least_s.copy()
        np.maximum.at(last_s, batch.server[place[:fixed]], end_s[:fixed])
        joules = float(batch.awake_w @ (last_s - batch.least_s))
        joules -= float(batch.curves.kinds["idle_w"][self.kind] * length_s.sum())
        free, more_j = self._by_length(length_s[fixed:])
        place[fixed:] = free
        return place, joules + more_j

    def _by_length(self, length_s: Floats) -> tuple[Ints, float]:
        """Give chains (c,) servers on which nothing runs; return (processors, joules)."""
        batch, servers = self.batch, self.servers[self.busy :]
        longest = np.argsort(-length_s, kind="stable")
        longest = longest[length_s[longest] > 0.0] if longest.size else longest
        used = servers[: 1 + np.searchsorted(np.cumsum(batch.size[servers]), longest.size)]
        place, least = np.full(length_s.size, -1), np.inf
        for sign in (1, -1):
            order = used[np.lexsort((used, sign * batch.size[used]))]
            first = np.append(0, np.cumsum(batch.size[order]))
            lasts_s = length_s[longest[first[:-1][first[:-1] < longest.size]]]
            order = order[: lasts_s.size]
            joules = float(batch.awake_w[order] @ lasts_s + batch.wake_j[order].sum())
            if joules < least * (1.0 - 1e-12) or not np.isfinite(least):
                least = joules
                place[longest] = self._processors(order)[: longest.size]
        return place, least

    def _processors(self, servers: Ints) -> Ints:
        """Processors of servers that work, in their order."""
        rank = np.full(self.batch.size.size, servers.size)
        rank[servers] = np.arange(servers.size)
        mine = rank[self.batch.server[self.places]]
        return self.places[np.argsort(mine, kind="stable")][: int(np.sum(mine < servers.size))]

    def _grouped(self, tasks: Ints, chain: Ints) -> Ints:
        """Group chains (m,) into servers by length; return the processor of each task."""
        wanted_s = np.minimum(self.batch.free_s[tasks, self.kind], self.batch.due_s[tasks])
        there = chain >= 0
        if not np.any(there):
            return chain
        loads_s = np.bincount(chain[there], wanted_s[there])
        place = self._arranged(self.ready_s[: loads_s.size] + loads_s)[0]
        return np.where(there, place[chain], -1)
