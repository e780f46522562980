"""What the search works on: jobs, curves, servers and prices, and the plan so far.

Tables are record arrays, so that a kernel is handed a dozen arrays and not a hundred: each of them
is a handful of arguments of everything it calls.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from downclock.units import Bools, Floats, Ints

Records: TypeAlias = Any
"""A record array: its fields are columns."""

JOB: dict[str, type] = {
    "from_s": float,  # earliest start
    "to_s": float,  # latest end
    "gang": int,  # processors
    "scale": float,  # units of work
    "shortest_s": float,  # run time on the fastest kind
    "natural_s": float,  # run time where nothing presses, on the kind that suits it
    "rank": int,  # place in a topological order
    "before_first": int,  # range of `Question.before`
    "before_end": int,
    "after_first": int,  # range of `Question.after`
    "after_end": int,
    "held_first": int,  # range of `Placement.held`
    "held_end": int,
}
CURVE: dict[str, type] = {
    "first": int,  # range of entries, fastest first
    "end": int,
    "smooth": bool,  # every time between two entries is reached too, on the straight line
    "sampled": bool,  # or a little below it: entries are points of a continuous curve
}
ENTRY: dict[str, type] = {  # of a unit of work, fastest first
    "time_s": float,
    "energy_j": float,
    "clock_s": float,  # core clock × time
}
SERVER: dict[str, type] = {
    "up_w": float,  # awake, running nothing
    "sleep_w": float,
    "wake_j": float,
    "wake_s": float,
    "shared_w": float,  # what a running processor adds
    "shared_w_per_clock": float,
    "begins_on": bool,
    "zone": int,
    "down_first": int,  # range of `Question.down`
    "down_end": int,
}
KIND: dict[str, type] = {
    "idle_w": float,
    "largest": int,  # most processors of the kind on one server
    "migrates": bool,  # a job may move between processors of the kind
}
GROUP: dict[str, type] = {"first": int, "end": int}  # range of `Question.alike`
RUN: dict[str, type] = {
    "kind": int,  # -1: not placed
    "start_s": float,
    "end_s": float,
    "count": int,  # servers held
    "worth": float,  # value, less that of the idling it replaces
}
PROFILE: dict[str, type] = {
    "begin": int,  # of its steps
    "steps": int,  # in use
    "room": int,
    "busy_place": int,  # place in the list of busy servers; -1: holds no job
    "busy_server": int,  # that list, the first ``Tally.busy``
}
TALLY: dict[str, type] = {
    "pool_end": int,
    "busy": int,  # servers that hold a job
    "lost": int,  # jobs that are not placed
    "trials": int,  # places looked at so far
    "luck": int,  # state of the draws
    "value": float,  # of the whole plan
    "touched": int,  # jobs of the move
    "since_s": float,  # no waiting job begins before, in this move
    "until_s": float,  # nor ends after
    "hurry_w": float,  # what it counts a processor that runs for, beside what that draws
    "best_lost": int,
    "best_value": float,
    "at_best": bool,  # the plan is the best one
}
WAIT: dict[str, type] = {
    "touched": int,  # jobs of the move, the first ``Tally.touched``
    "moving": bool,  # is one of them
    "pending": bool,  # waits to be placed
    "head_s": float,  # earliest start of a pending job
    "tail_s": float,  # latest end
    "path_s": float,  # natural time from its start to the end of what waits after it
}

CAP: dict[str, type] = {
    "cap_w": float,  # most power, less what sleeping servers draw
    "step_s": float,  # length of a cell of `Board.draw_w`
}

ANCHORS = 128
"""Times at which a run may begin or end that one trial looks at, at most."""


class Question(NamedTuple):
    """All that is asked."""

    jobs: Records  # (n,) JOB
    before: Ints
    after: Ints
    curve: Ints  # (n, kinds) curve of a job on a kind; -1: cannot run there
    curves: Records  # CURVE
    entries: Records  # ENTRY
    servers: Records  # (s,) SERVER
    kinds: Records  # (k,) KIND
    capacity: Ints  # (s, k) processors
    groups: Records  # GROUP of equal servers
    alike: Ints  # (s,) servers by group
    tariff: Floats  # (1 + 2 zones, pieces) see `kernels.tariff`
    down: Floats  # (d, 2) from when to when servers can run nothing: they are down, then wake
    caps: Records  # (c,) CAP
    capped: Bools  # (c, s) servers that a cap holds for


class Placement(NamedTuple):
    """Where and when jobs run."""

    runs: Records  # (n,) RUN
    held: Ints  # servers of each job


class Board(NamedTuple):
    """A plan: placements, and how many processors of each server are used when.

    From ``time_s`` of a step on so many processors of each kind, and in the last column of all
    kinds, are ``used``.
    """

    place: Placement
    profiles: Records  # (s,) PROFILE
    time_s: Floats  # (pool,)
    used: Ints  # (pool, k + 1)
    tally: Records  # (1,) TALLY
    anchor_s: Floats  # (ANCHORS,) scratch
    draw_w: Floats  # (c, cells) most that the servers of a cap draw more than asleep, see `caps`
    awake_w: Floats  # (s, cells) part of it that is of awake and waking servers
    waits: Records  # (n,) WAIT


class Search(NamedTuple):
    """A plan that is being changed, and the ones to go back to."""

    board: Board
    saved: Placement  # before the move, of the jobs it touches
    best: Placement


def records(fields: dict[str, type], size: int, **columns: Any) -> Records:
    """Make a record array with some columns filled."""
    table = np.zeros(size, np.dtype(list(fields.items()), align=True)).view(np.recarray)
    for name, values in columns.items():
        table[name] = values
    return table


def new_placement(jobs: Records) -> Placement:
    """No job is placed."""
    held = int(jobs.held_end.max(initial=0))
    return Placement(records(RUN, jobs.size, kind=-1), np.zeros(held, np.int64))


CELLS = 1024
"""Cells of time in which power is added up where it is capped."""


def new_search(question: Question, seed: int) -> Search:
    """Nothing is placed."""
    jobs, (servers, kinds) = question.jobs, question.capacity.shape
    place = new_placement(jobs)
    pool = 6 * place.held.size + 8 * servers + 64
    board = Board(
        place=place,
        profiles=records(PROFILE, servers, begin=4 * np.arange(servers), room=4, busy_place=-1),
        time_s=np.zeros(pool),
        used=np.zeros((pool, kinds + 1), np.int64),
        tally=records(
            TALLY,
            1,
            pool_end=4 * servers,
            lost=jobs.size,
            luck=1 + seed % 2147483645,
            best_lost=jobs.size + 1,
            until_s=np.inf,
        ),
        anchor_s=np.zeros(ANCHORS),
        draw_w=np.zeros((question.caps.size, CELLS)),
        awake_w=np.zeros((servers if question.caps.size else 0, CELLS)),
        waits=records(WAIT, jobs.size),
    )
    return Search(board, new_placement(jobs), new_placement(jobs))
