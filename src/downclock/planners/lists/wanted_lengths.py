"""What every task wants before anybody places it: run times, preferred kinds, clock ladders."""

from __future__ import annotations

import numpy as np

from downclock.engine.tasks import grown
from downclock.engine.view import View
from downclock.planners.lists.kernels.board import Jobs
from downclock.planners.lists.lengths import Lengths, window_s
from downclock.units import TOLERANCE, Bools, Floats, Ints


def no_jobs(kinds: int) -> Jobs:
    """Nothing is known yet."""
    none, whole, number = np.empty(0), np.empty((0, kinds), np.int64), np.empty((0, kinds))
    return Jobs(
        arrival_s=none,
        deadline_s=none,
        alone=np.empty(0, np.int64),
        kinds=whole,
        wanted_s=number,
        shortest_s=number,
        cheapest_s=number,
        share=number,
        rung_first=whole,
        rung_end=whole,
        rungs=none,
    )


def with_tasks(jobs: Jobs, lengths: Lengths, view: View, tasks: Ints) -> Jobs:
    """Fill in the rows of tasks (m,), new ones or some whose deadline has changed."""
    size = int(tasks.max(initial=-1)) + 1
    room = {name: grown(getattr(jobs, name), size) for name in Jobs._fields if name != "rungs"}
    kinds = range(jobs.kinds.shape[1])
    fronts = [view.frontier(k, tasks) for k in kinds]
    wanted = np.array([lengths.wanted(view, k, tasks) for k in kinds]).T
    shortest = np.array([front.t_min_s for front in fronts]).T
    wanted = np.where(np.isfinite(wanted), wanted, shortest)
    room["arrival_s"][tasks] = view.tasks.arrival_s[tasks]
    room["deadline_s"][tasks] = view.tasks.deadline_s[tasks]
    room["alone"][tasks] = 0
    room["wanted_s"][tasks], room["shortest_s"][tasks] = wanted, shortest
    room["cheapest_s"][tasks] = np.array([front.t_opt_s for front in fronts]).T
    room["kinds"][tasks] = _preferred(view, tasks, wanted)
    room["share"][tasks] = _shares(window_s(view, tasks), wanted)
    rungs = jobs.rungs
    for k in kinds:
        first, times = _worthwhile(*fronts[k].ladder())
        room["rung_first"][tasks, k] = rungs.size + first[:-1]
        room["rung_end"][tasks, k] = rungs.size + first[1:]
        rungs = np.concatenate([rungs, times]) if times.size else rungs
    return Jobs(**room, rungs=rungs)


def _preferred(view: View, tasks: Ints, wanted: Floats) -> Ints:
    """Kinds that tasks can run on, the one of least energy within the window first (m, k)."""
    order = np.zeros((tasks.size, 1), dtype=np.int64)
    if wanted.shape[1] > 1:
        room_s = window_s(view, tasks)
        cost = [view.frontier(k, tasks).within(room_s).energy_j for k in range(wanted.shape[1])]
        order = np.argsort(np.array(cost), axis=0, kind="stable").T
    possible = np.take_along_axis(np.isfinite(wanted), order, axis=1)
    return np.where(possible, order, -1)


def _shares(room_s: Floats, wanted: Floats) -> Floats:
    """Utilisations (m, k)."""
    known = np.isfinite(wanted) & (room_s > TOLERANCE)[:, None]
    rooms = np.broadcast_to(room_s[:, None], wanted.shape)
    return np.divide(wanted, rooms, out=np.zeros_like(wanted), where=known)


def first_choice(jobs: Jobs, tasks: Ints) -> tuple[Ints, Floats]:
    """Kind that each task prefers, 0 where it has none, and its wanted run time there (m,)."""
    kind = np.maximum(jobs.kinds[tasks, 0], 0)
    return kind, np.asarray(jobs.wanted_s[tasks, kind])


def binding(lengths: Lengths, view: View, jobs: Jobs, tasks: Ints) -> Bools:
    """Whether the deadline of each task limits its run time, on the kind it prefers (m,)."""
    kind, _ = first_choice(jobs, tasks)
    found = np.zeros(tasks.size, dtype=bool)
    for k in range(jobs.kinds.shape[1]):
        mine = kind == k
        found[mine] = lengths.binds(view, k, tasks[mine])
    return found


def _worthwhile(first: Ints, time_s: Floats, energy_j: Floats) -> tuple[Ints, Floats]:
    """Drop entries that cost no less than a faster one of the same row; cost linear.

    The slowest that fits is then the cheapest that fits.
    """
    counts = np.diff(first)
    keep = np.zeros(time_s.size, dtype=bool)
    least = np.full(counts.size, np.inf)
    for place in range(int(counts.max(initial=0))):
        rows = np.flatnonzero(counts > place)
        entry = first[rows] + place
        better = energy_j[entry] < least[rows]
        keep[entry] = better
        least[rows[better]] = energy_j[entry[better]]
    kept = np.concatenate([[0], np.cumsum(keep)])
    return kept[first], time_s[keep]
