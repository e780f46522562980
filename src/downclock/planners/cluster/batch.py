"""All tasks at hand: balanced chains, grouped into servers, then one end for each server.

Scans the number of processors; on each, tasks go one by one to the processor free soonest. Sorted
by end, neighbours form servers (mei2021 Algorithm 3), whatever their sizes; the servers that cost
least for each processor are used first. The best few are then equalised: run times are chosen
together so that a server's processors end together (`kernels.equalise`).
"""

from __future__ import annotations

import numpy as np

from downclock.planners.cluster.board import Board
from downclock.planners.cluster.columns import CurveTables
from downclock.planners.cluster.search import Batch, Packing, Search, improved
from downclock.problem.platform import Platform
from downclock.units import Floats, Ints

FINALISTS = 4
"""Balanced packings that are equalised."""

MOVES_PER_S = 4000.0
"""Moves of the search that a second of effort stands for: counted, so that results repeat."""

SMALL, FREE_MOVES = 512, 2000
"""Problems of at most this many tasks are always searched a little."""


def one_kind(platform: Platform) -> bool:
    """Tell whether all processors are alike: what the batch packing needs; servers may differ."""
    same = np.all(platform.kind == platform.kind[0])
    return bool(same and np.all(platform.shared_w == platform.shared_w[0]))


def packing(
    platform: Platform, curves: CurveTables, board: Board, which: Ints, effort: float = 0.0
) -> Packing | None:
    """Pack some tasks, all there at time 0; those without room are left out.

    None where processors differ, nothing fits, or servers differ and something does not.
    """
    possible = which[board.kinds[which, 0] >= 0]
    if not one_kind(platform) or possible.size == 0:
        return None
    deadline_s = board.tasks["deadline_s"][: int(which.max()) + 1].copy()
    batch = Batch.of(platform, curves, deadline_s, possible)
    scored = sorted(_scan(batch, possible), key=lambda found: found[:2])[:FINALISTS]
    if scored[0][0] and not batch.uniform:
        return None
    least = [chain for lost, _, chain in scored if lost == scored[0][0] and np.any(chain >= 0)]
    equalised = [_equalised(batch, possible[chain >= 0], chain[chain >= 0]) for chain in least]
    best = min(equalised, key=lambda found: found.cost_j, default=None)
    if best is None or not np.isfinite(best.cost_j):
        return None
    moves = int(MOVES_PER_S * effort) + (FREE_MOVES if possible.size <= SMALL else 0)
    return improved(Search.of(batch, best), moves) if moves else best


def _scan(batch: Batch, tasks: Ints) -> list[tuple[int, float, Ints]]:
    """Balance the tasks on every number of servers; return (lost, cost, chain of each)."""
    from downclock.kernels.least_tree import new_trees
    from downclock.planners.cluster.kernels.balance import balance

    platform, due_s = batch.platform, batch.deadline_s - batch.ready_s.max()
    kind, most = int(platform.kind[0]), platform.processor_count
    wanted_s = batch.wanted_s(tasks)
    orders = (tasks[np.lexsort((tasks, due_s[tasks]))], tasks[np.lexsort((tasks, -wanted_s))])
    found, room = [], np.cumsum(batch.size[batch.servers])
    for servers in _server_counts(room.size, 1 + int(np.searchsorted(room, tasks.size))):
        for order in orders:
            keys = np.full((1, most), np.inf)
            keys[0, : room[servers - 1]] = 0.0
            ends, chain = new_trees(keys), np.full(due_s.size, -1)
            extra, opened, lost = balance(
                batch.curves, due_s, order, kind, ends, int(room[servers - 1]), most, chain
            )
            leaf = ends.shape[1] // 2
            end_s = ends[0, leaf : leaf + opened]
            awake_j = _arranged(batch, np.where(np.isfinite(end_s), end_s, 0.0))[1]
            found.append((lost, extra + awake_j, chain[tasks]))
    return found


def _server_counts(most: int, useful: int) -> Ints:
    """Numbers of servers to begin with: all up to 48, then ever coarser."""
    top = min(most, useful)
    return np.unique(np.linspace(1, top, min(top, 48)).astype(np.int64))


def _arranged(batch: Batch, length_s: Floats) -> tuple[Ints, float]:
    """Give chains (c,) servers, neighbours by length; return (processor of each, joules).

    The cheapest servers that hold them, the smallest or the largest first: what idles beside a
    longest chain is the least where chains differ most. Joules: wakes, and power of awake servers
    that no task draws.
    """
    longest = np.argsort(-length_s, kind="stable")
    used = batch.servers[: 1 + np.searchsorted(np.cumsum(batch.size[batch.servers]), longest.size)]
    best, least = np.empty(0, np.int64), np.inf
    for sign in (1, -1):
        order = used[np.lexsort((used, sign * batch.size[used]))]
        first = np.append(0, np.cumsum(batch.size[order]))
        lasts_s = length_s[longest[first[:-1][first[:-1] < longest.size]]]
        order = order[: lasts_s.size]
        idle_j = batch.slopes[0] * float(length_s.sum())
        joules = float(batch.awake_w[order] @ lasts_s + batch.wake_j[order].sum()) - idle_j
        if joules < least * (1.0 - 1e-12):
            least, best = joules, np.empty(longest.size, np.int64)
            best[longest] = batch.processors(order)[: longest.size]
    return best, least


def _equalised(batch: Batch, tasks: Ints, chain: Ints) -> Packing:
    """Group chains into servers by length and equalise each server."""
    loads = np.bincount(chain, np.minimum(batch.wanted_s(tasks), batch.deadline_s[tasks]))
    processor = _arranged(batch, loads.astype(np.float64))[0][chain]
    rank = np.lexsort((tasks, batch.deadline_s[tasks], processor))
    found = Packing(tasks[rank], processor[rank], np.zeros(tasks.size), np.inf)
    return Search.of(batch, found).packing()
