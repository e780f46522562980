"""All tasks at hand: balanced chains, grouped into servers, then one end for each server.

Scans the number of processors; on each, tasks go one by one to the processor free soonest. Sorted
by end, neighbours form servers (mei2021 Algorithm 3); the best few are then equalised: run times
are chosen together so that a server's processors end together (`kernels.equalise`).
"""

from __future__ import annotations

import numpy as np

from downclock.planners.cluster.board import Board
from downclock.planners.cluster.columns import CurveTables, awake_w
from downclock.planners.cluster.search import Batch, Packing, Search, improved, wake_j
from downclock.problem.platform import Platform
from downclock.units import Ints

FINALISTS = 4
"""Balanced packings that are equalised."""

MOVES_PER_S = 4000.0
"""Moves of the search that a second of effort stands for: counted, so that results repeat."""

SMALL, FREE_MOVES = 512, 2000
"""Problems of at most this many tasks are always searched a little."""


def uniform(platform: Platform) -> bool:
    """Tell whether all servers are alike and of one kind: what the batch packing needs."""
    columns = (platform.host_w, platform.sleep_w, platform.wake_j, platform.wake_s)
    sizes = np.diff(platform.first_processor)
    alike = all(np.all(column == column[0]) for column in columns)
    one = np.all(platform.kind == platform.kind[0]) and np.all(sizes == sizes[0])
    same = np.all(platform.initially_on == platform.initially_on[0])
    return bool(alike and one and same and np.all(platform.shared_w == platform.shared_w[0]))


def packing(
    platform: Platform, curves: CurveTables, board: Board, which: Ints, effort: float = 0.0
) -> Packing | None:
    """Pack some tasks, all there at time 0; those without room are left out.

    None where the platform is not uniform or nothing fits.
    """
    possible = which[board.kinds[which, 0] >= 0]
    if not uniform(platform) or possible.size == 0:
        return None
    deadline_s = board.tasks["deadline_s"][: int(which.max()) + 1].copy()
    batch = Batch.of(platform, curves, deadline_s)
    scored = sorted(_scan(batch, possible), key=lambda found: found[:2])[:FINALISTS]
    least = [chain for lost, _, chain in scored if lost == scored[0][0] and np.any(chain >= 0)]
    equalised = [_equalised(batch, possible[chain >= 0], chain[chain >= 0]) for chain in least]
    best = min(equalised, key=lambda found: found.cost_j, default=None)
    if best is None or not np.isfinite(best.cost_j):
        return None
    moves = int(MOVES_PER_S * effort) + (FREE_MOVES if possible.size <= SMALL else 0)
    return improved(Search.of(batch, best), moves) if moves else best


def _scan(batch: Batch, tasks: Ints) -> list[tuple[int, float, Ints]]:
    """Balance the tasks on every number of servers; return (lost, cost, processor of each)."""
    from downclock.kernels.least_tree import new_trees
    from downclock.planners.cluster.kernels.balance import balance, grouped_idle_s

    platform, deadline_s = batch.platform, batch.deadline_s
    size = int(platform.first_processor[1])
    kind, power = int(platform.kind[0]), float(awake_w(platform)[0]) / size
    wanted_s = batch.wanted_s(tasks)
    orders = (tasks[np.lexsort((tasks, deadline_s[tasks]))], tasks[np.lexsort((tasks, -wanted_s))])
    found, most = [], platform.processor_count
    for servers in _server_counts(platform.server_count, -(-tasks.size // size)):
        for order in orders:
            keys = np.full((1, most), np.inf)
            keys[0, : servers * size] = 0.0
            ends, chain = new_trees(keys), np.full(deadline_s.size, -1)
            opened = int(servers) * size
            extra, opened, lost = balance(
                batch.curves, deadline_s, order, kind, ends, opened, most, chain
            )
            leaf = ends.shape[1] // 2
            idle_j = power * grouped_idle_s(-np.sort(-ends[0, leaf : leaf + opened]), size)
            wakes_j = -(-opened // size) * wake_j(platform)
            found.append((lost, extra + idle_j + wakes_j, chain[tasks]))
    return found


def _server_counts(most: int, useful: int) -> Ints:
    """Numbers of servers to begin with: all up to 48, then ever coarser."""
    top = min(most, useful)
    return np.unique(np.linspace(1, top, min(top, 48)).astype(np.int64))


def _equalised(batch: Batch, tasks: Ints, chain: Ints) -> Packing:
    """Group chains into servers by length, longest first, and equalise each server."""
    deadline_s = batch.deadline_s
    loads = np.bincount(chain, np.minimum(batch.wanted_s(tasks), deadline_s[tasks]))
    seat = np.empty(loads.size, np.int64)
    seat[np.argsort(-loads, kind="stable")] = np.arange(loads.size)
    processor = seat[chain]
    rank = np.lexsort((tasks, deadline_s[tasks], processor))
    found = Packing(tasks[rank], processor[rank], np.zeros(tasks.size), np.inf)
    return Search.of(batch, found).packing()
