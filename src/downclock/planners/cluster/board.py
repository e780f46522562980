"""An empty board, and room to grow on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from downclock.engine.tasks import grown
from downclock.kernels.least_tree import new_trees
from downclock.kernels.records import filled
from downclock.planners.cluster.columns import awake_w, dearer_w
from downclock.problem.graph import Edges
from downclock.problem.platform import Platform
from downclock.units import Floats, Ints

SOONER = 0.01
"""Weight of waiting for a processor, against that of the gap, among places that are else equal.
Where plans may change the sooner wins: planned tasks keep room to make way for those in a hurry.
Where they may not, the later: processors that are free soon are kept for those in a hurry."""

EXPRESS = 0.3
"""Part of the servers of a kind that keep room for short tasks where room is scarce."""

Table = np.ndarray[Any, Any]


@dataclass(slots=True)
class Board:
    """What is believed and planned; see `kernels.board.Cluster` for the fields.

    ``known`` rows of ``tasks`` are in use, ``pieces`` of ``items`` and ``edge_count`` of ``edges``.
    """

    processors: Table
    servers: Table
    tasks: Table
    kinds: Ints
    tally: Table
    awake_servers: Ints
    busy: Floats
    asleep: Floats
    attend: Floats
    arrival_history: Floats
    groups: Table
    lanes: Ints
    items: Table
    pools: Table
    pool_groups: Ints
    holes: Floats
    freeing: Floats
    queues: Table
    spans: Table
    edges: Table
    mates: Ints
    known: int = 0
    pieces: int = 0
    edge_count: int = 0


def new_board(platform: Platform, *, late: bool) -> Board:
    """An empty board at time 0."""
    from downclock.planners.cluster.kernels import board as kernel

    servers, kinds = _servers(platform), len(platform.kinds)
    groups = _groups(platform, servers)
    none = new_trees(np.full((kinds, groups.size), np.inf))
    on = platform.initially_on
    return Board(
        processors=filled(
            platform.processor_count, kernel.PROCESSOR, kind=platform.kind, server=platform.server,
            up=1, running=-1, head=-1, tail=-1,
        ),
        servers=servers,
        tasks=np.zeros(0, kernel.TASK),
        kinds=np.empty((0, kinds), np.int64),
        tally=_tally(servers, late=late),
        awake_servers=np.argsort(~on, kind="stable"),
        busy=new_trees(np.full((1, platform.processor_count), np.inf)),
        asleep=new_trees(_asleep_s(platform)),
        attend=new_trees(np.where(on, servers["linger_s"], np.inf)[None, :]),
        arrival_history=np.zeros((2, kernel.RECENT)),
        groups=groups,
        lanes=np.lexsort((platform.kind, platform.server)),
        items=np.zeros(0, kernel.ITEM),
        pools=_pools(platform, groups, servers),
        pool_groups=np.argsort(groups["kind"], kind="stable"),
        holes=none,
        freeing=none.copy(),
        queues=np.zeros(0, kernel.QUEUE),
        spans=np.zeros(0, kernel.SPAN),
        edges=np.zeros(0, kernel.EDGE),
        mates=np.zeros((kinds, kinds), np.int64),
    )  # fmt: skip


def _asleep_s(platform: Platform) -> Floats:
    """How long sleeping servers with each kind take to wake (k, s); infinite for others."""
    asleep = np.full((len(platform.kinds), platform.server_count), np.inf)
    for k in range(len(platform.kinds)):
        has = np.unique(platform.server[platform.kind == k])
        asleep[k, has] = platform.wake_s[has]
    asleep[:, platform.initially_on] = np.inf
    return asleep


def _groups(platform: Platform, servers: Table) -> Table:
    """Groups of like processors, server by server; where each server has its own is written."""
    from downclock.planners.cluster.kernels.board import GROUP

    lanes = np.lexsort((platform.kind, platform.server))
    server, kind = platform.server[lanes], platform.kind[lanes]
    new = np.append(True, (server[1:] != server[:-1]) | (kind[1:] != kind[:-1]))
    first = np.flatnonzero(new)
    end = np.append(first[1:], lanes.size)
    numbers = np.searchsorted(server[first], np.arange(servers.size + 1))
    servers["group_first"], servers["group_end"] = numbers[:-1], numbers[1:]
    return filled(
        first.size, GROUP, server=server[first], kind=kind[first], first=first, end=end,
        up=end - first, head=-1, dearer_w=dearer_w(platform)[lanes[first]],
    )  # fmt: skip


def _pools(platform: Platform, groups: Table, servers: Table) -> Table:
    """Groups of each kind, and how long they take to wake."""
    from downclock.planners.cluster.kernels.awake import LONG_AGO_S
    from downclock.planners.cluster.kernels.board import POOL

    kinds, on = len(platform.kinds), platform.initially_on[platform.server]
    count = np.bincount(groups["kind"], minlength=kinds)
    wake_s = np.zeros(kinds)
    np.maximum.at(wake_s, groups["kind"], servers["wake_s"][groups["server"]])
    last = np.cumsum(count)
    pairs = np.unique(np.stack([groups["kind"], servers["server_class"][groups["server"]]]), axis=1)
    classes = np.bincount(pairs[0], minlength=kinds)
    order = np.append(np.argsort(groups["kind"], kind="stable"), groups.size)
    spare = np.floor(EXPRESS * count).astype(np.int64)
    express = np.where(spare > 0, order[last - spare], groups.size)
    return filled(
        kinds, POOL, first=last - count, end=last, classes=classes, wake_s=wake_s,
        express_first=express, slept_s=LONG_AGO_S, warm=1.0,
        up=np.bincount(platform.kind, minlength=kinds),
        awake=np.bincount(platform.kind[on], minlength=kinds),
    )  # fmt: skip


def make_queues(board: Board) -> None:
    """Make room for the classes of waiting tasks, once the first gang has come."""
    from downclock.planners.cluster.kernels.board import QUEUE, SPAN
    from downclock.planners.cluster.kernels.queues import BUCKETS, WIDTHS

    spans = len(board.pools) * WIDTHS
    board.queues = filled(spans * BUCKETS, QUEUE, head=-1, tail=-1)
    board.spans = filled(spans, SPAN, first=BUCKETS)


def _servers(platform: Platform) -> Table:
    """Servers at time 0."""
    from downclock.planners.cluster.kernels.board import SERVER

    power, first = awake_w(platform), platform.first_processor
    kinds = [tuple(platform.kind[a:b]) for a, b in pairwise(first)]
    columns = zip(kinds, platform.zone, platform.wake_s, platform.wake_j, power, strict=True)
    numbers: dict[object, int] = {}
    on = platform.initially_on
    return filled(
        platform.server_count,
        SERVER,
        first=first[:-1],
        end=first[1:],
        zone=platform.zone,
        server_class=[numbers.setdefault(key, len(numbers)) for key in columns],
        wake_s=platform.wake_s,
        wake_j=platform.wake_j,
        awake_w=power,
        sleep_w=platform.sleep_w,
        linger_s=_linger_s(power, platform.wake_j),
        awake=on,
        works=1,
        since_s=np.where(on, -platform.wake_s, 0.0),
        awake_rank=np.where(on, np.cumsum(on) - 1, -1),
    )


def _linger_s(power_w: Floats, wake_j: Floats) -> Floats:
    """How long servers stay awake after their last task (s,): a day where that is for nothing.

    Less and less the more a day of idling costs; not at all where it costs a wake.
    """
    from downclock.planners.cluster.kernels.awake import LINGER_S

    idle_j = power_w * LINGER_S
    spent = np.divide(idle_j, wake_j, out=np.ones_like(idle_j), where=idle_j < wake_j)
    return LINGER_S * (1.0 - spent)


def _tally(servers: Table, *, late: bool) -> Table:
    from downclock.planners.cluster.kernels.board import TALLY
    from downclock.planners.cluster.kernels.replan import LEAST_IDLE

    on = servers["awake"] == 1
    return filled(
        1,
        TALLY,
        awake=on.sum(),
        processors=(servers["end"] - servers["first"])[on].sum(),
        wait_weight=SOONER if late else -SOONER,
        coming=0.0,
        idle_share=LEAST_IDLE,
        free_item=-1,
    )


def make_room(board: Board, size: int) -> None:
    """Make room for so many tasks."""
    if size <= board.known:
        return
    board.tasks, board.kinds = grown(board.tasks, size), grown(board.kinds, size, -1)
    board.tasks[board.known : size] = _blank()
    board.known = size


@cache
def _blank() -> Table:
    """A task that nothing is known of."""
    from downclock.planners.cluster.kernels.board import TASK

    none = ("after", "before", "place", "booked", "rank", "leads", "follows", "mark", "blames")
    return filled(1, TASK, **dict.fromkeys(none, -1), gang=1, start_s=np.inf)


def link(board: Board, edges: Edges) -> None:
    """Take note of edges between tasks that there is room for."""
    tasks, count = board.tasks, board.edge_count
    board.edge_count += len(edges)
    board.edges = grown(board.edges, board.edge_count)
    table = board.edges
    for e, (before, after) in enumerate(zip(edges.before, edges.after, strict=True), count):
        table[e] = before, after, tasks["follows"][after], tasks["leads"][before]
        tasks["follows"][after] = tasks["leads"][before] = e


def make_room_for_gangs(board: Board, gang: Ints) -> None:
    """Make room for the reservations of tasks that need ``gang`` processors at once (m,).

    As many as they can ever have: a wide gang that moves may be spread over more servers than it
    was, so what is in use now says nothing.
    """
    largest = int((board.groups["end"] - board.groups["first"]).min())
    pieces = np.where(gang > largest, np.minimum(gang, board.groups.size), 1)
    board.pieces += int(pieces.sum())
    board.items = grown(board.items, board.pieces)


def room_for(starts: int, switches: int, refusals: int) -> tuple[Table, Table, Table]:
    """Empty tables for decisions."""
    from downclock.planners.cluster.kernels.board import REFUSAL, START, SWITCH

    return np.empty(starts, START), np.empty(switches, SWITCH), np.empty(refusals, REFUSAL)
