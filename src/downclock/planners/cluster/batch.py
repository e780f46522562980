"""All that waits: balanced chains, grouped into servers, then one end for each server.

Each task has the kind on which it costs least, a second on a kind that is scarce being dearer; part
of the work of a kind leaves it where all costs less then. Of each kind, the scarcest first, the
number of servers is scanned, some of which are awake for other kinds anyway; on each, tasks go one
by one to the processor free soonest. Sorted by end, neighbours form servers (mei2021 Algorithm 3),
whatever their sizes; the servers that cost least for each processor are used first, after those on
which something runs. The best few are then equalised: run times are chosen together so that a
server's processors end together (`kernels.equalise`).
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
"""Problems of at most this many tasks are always searched a little; what their packing has no room
for is tried beside others."""

RISKED = 0.002
"""What a tail may cost, against all that is packed."""

FULL, DEAREST_W = 0.9, 1e5
"""Part of the time of a kind's processors that tasks may need before a second on it is dearer, and
the highest price of a second."""

NEARER = ((-1.0, -0.75, -0.5, -0.25), (-0.125, 0.125), (-0.0625, 0.0625))
"""Parts of the work of a kind that stay there, as differences from the best so far."""

GAIN = 0.002
"""What it must save that part of the work leaves, against all that is packed: what comes after,
for tasks without room, and moves, may cost as much."""


def alike_chips(platform: Platform) -> bool:
    """Tell whether chips of a kind are alike, as packing needs."""
    shared_w = platform.shared_w[platform.chip]
    alike = [np.unique(shared_w[platform.kind == k]).size <= 1 for k in range(len(platform.kinds))]
    return all(alike)


def packing(batch: Batch, moves: int, *, more: bool) -> Packing | None:
    """Pack tasks and search a little; those without room are left out. None: nothing fits.

    Nor where few tasks are packed, and more of them would find room at full speed.
    ``more``: others may come, so one server of a kind is at work as long as deadlines allow.
    """
    works = np.bincount(batch.kind[np.isfinite(batch.ready_s)], minlength=batch.row.shape[1])
    able, kinds = np.isfinite(batch.free_s) & (works > 0), np.argsort(works, kind="stable")
    search = _packed(batch, able, more=more)
    for k in kinds if len(kinds) > 1 else ():
        able, search = _with_fewer(batch, able, search, k, more=more)
    place = search.place
    if not np.any(place >= 0) or not np.isfinite(search.cost_j):
        return None
    if place.size <= SMALL and not (
        _insert_lost(search) or np.sum(place < 0) <= _lost_at_full_speed(batch)
    ):
        return None
    if moves:
        used = np.isin(np.arange(batch.size.size), batch.server[place[place >= 0]])
        pools = [_Pool.of(batch, k).used_and_next(used) for k in kinds]
        improve(search, np.unique(np.concatenate(pools)), moves)
    return search.packing()


def _insert_lost(search: Search) -> bool:
    """Put tasks without a place one by one where each adds least; tell whether all have one."""
    lost = np.flatnonzero(search.place < 0)
    for i in lost[np.argsort(search.batch.due_s[lost], kind="stable")]:
        search.insert(int(i))
    return bool(np.all(search.place >= 0))


def _lost_at_full_speed(batch: Batch) -> int:
    """Tasks without room if each has the processor where it ends first, the most urgent first."""
    short_s = np.where(np.isfinite(batch.free_s), batch.curves.rows["short_s"][batch.row], np.inf)
    end_s, lost = batch.ready_s.copy(), 0
    for i in np.argsort(batch.due_s, kind="stable"):
        ends_s = end_s + short_s[i, batch.kind]
        first = int(np.argmin(ends_s))
        if ends_s[first] <= batch.due_s[i]:
            end_s[first] = ends_s[first]
        else:
            lost += 1
    return lost


def _packed(batch: Batch, able: Bools, *, more: bool) -> Search:
    """Pack tasks on the kinds where they may be (m, k), the scarcest kind first."""
    pools = [_Pool.of(batch, k) for k in range(able.shape[1])]
    place, able = np.full(batch.task.size, -1), able.copy()
    for _ in pools:
        kind = _chosen(batch, able, pools)
        place[:] = -1
        for k in sorted(range(len(pools)), key=lambda k: pools[k].places.size):
            mine, pool = np.flatnonzero(kind == k), _Pool.of(batch.after(place), k)
            place[mine] = pool.with_tail(mine) if more else pool.packed(mine)
        lost = np.flatnonzero((place < 0) & (kind >= 0))
        able[lost, kind[lost]] = False
        if not np.any(able[lost]):
            break
    return Search(batch, place)


def _with_fewer(
    batch: Batch, able: Bools, search: Search, k: int, *, more: bool
) -> tuple[Bools, Search]:
    """Let part of the work on kind ``k`` leave for others, where all costs less then.

    A queue keeps all of its server awake; where some of its tasks go where they cost more by
    themselves, the rest ends sooner. Which part stays is sought around the best, ever closer.
    """
    best, found = 1.0, (able, search)
    leaving, left = _leaving(batch, able, search.place, k)
    for parts in NEARER if leaving.size else ():
        for part in [best + change for change in parts]:
            if not 0.0 <= part < 1.0:
                continue
            kept = able.copy()
            kept[leaving[left > part], k] = False
            other = _packed(batch, kept, more=more)
            lost, cost_j = found[1].rank
            if other.rank < (lost, (1.0 - GAIN) * cost_j):
                best, found = part, (kept, other)
    return found


def _leaving(batch: Batch, able: Bools, place: Ints, k: int) -> tuple[Ints, Floats]:
    """Tasks (m,) that could leave kind ``k``, those first that lose least for each second freed.

    Also the part of their time that is left there until each goes.
    """
    cost_j, time_s = _costs(batch, able)
    others_j = np.delete(cost_j, k, axis=1).min(axis=1)
    mine = np.flatnonzero((place >= 0) & (batch.kind[place] == k) & np.isfinite(others_j))
    loss_w = (others_j - cost_j[:, k])[mine] / time_s[mine, k]
    mine = mine[np.argsort(loss_w, kind="stable")]
    left_s = np.cumsum(time_s[mine[::-1], k])[::-1]
    return mine, left_s / left_s.max(initial=1e-300)


def joined(batch: Batch, place: Ints) -> Packing | None:
    """Put tasks without a place (m,) one by one where they add least; those without room stay out.

    None: not even what has a place is in time.
    """
    search = Search(batch, place)
    if not np.isfinite(search.cost_j):
        return None
    _insert_lost(search)
    return search.packing()


def _chosen(batch: Batch, able: Bools, pools: list[_Pool]) -> Ints:
    """Return the kind of each task (m,): where it costs least; -1: none.

    Each kind has a multiplier, a price of its time: the least at which it is not overfull, found
    kind by kind by halving, twice over.
    """
    cost_j, time_s = _costs(batch, able)
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


def _costs(batch: Batch, able: Bools) -> tuple[Floats, Floats]:
    """What each task costs on each kind (m, k), and how long it runs there."""
    rows: Any = batch.curves.rows[batch.row]
    time_s = np.where(able, batch.free_s, 0.0)
    return np.where(able, rows["free_j"] + batch.curves.kinds["price_w"] * time_s, np.inf), time_s


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """The processors of one kind, server by server.

    Attributes:
        size: how many of them each server has that work (s,).
        servers: those on which something runs first, the longest first, then what costs least for
            each processor.
        busy: how many of them run something.
        places: their processors that work, in this order; ``room`` counts them, server by server.
        ready_s: when each is free, of servers that sleep as if all took as long to wake.
    """

    batch: Batch
    kind: int
    size: Ints
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
        size = np.bincount(batch.server[works], minlength=batch.size.size)
        wanted_s = batch.free_s[np.isfinite(batch.free_s[:, kind]), kind]
        usual_s = float(wanted_s.mean()) if wanted_s.size else 0.0
        cost_j = (batch.awake_w[mine] * usual_s + batch.wake_j[mine]) / batch.size[mine]
        cost_j = np.round(cost_j / max(cost_j.max(initial=0.0), 1e-300), 9)  # rounding is no matter
        last_s = np.where(batch.busy, batch.least_s, 0.0)[mine]
        servers = mine[np.lexsort((size[mine], cost_j, -last_s))]
        busy = int(batch.busy[mine].sum())
        rank = np.empty(batch.size.size, np.int64)
        rank[servers] = np.arange(servers.size)
        places = works[np.argsort(rank[batch.server[works]], kind="stable")]
        ready_s, free = batch.ready_s[places], rank[batch.server[places]] >= busy
        ready_s[free] = ready_s[free].max(initial=0.0)
        return cls(batch, kind, size, servers, busy, places, np.cumsum(size[servers]), ready_s)

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
        batch, size, servers = self.batch, self.size, self.servers[self.busy :]
        share = size / np.maximum(batch.size, 1)
        longest = np.argsort(-length_s, kind="stable")
        longest = longest[length_s[longest] > 0.0] if longest.size else longest
        used = servers[: 1 + np.searchsorted(np.cumsum(size[servers]), longest.size)]
        place, least = np.full(length_s.size, -1), np.inf
        for sign in (1, -1):
            order = used[np.lexsort((used, sign * size[used]))]
            first = np.append(0, np.cumsum(size[order]))
            lasts_s = length_s[longest[first[:-1][first[:-1] < longest.size]]]
            order = order[: lasts_s.size]
            joules = float(share[order] @ (batch.awake_w[order] * lasts_s + batch.wake_j[order]))
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
