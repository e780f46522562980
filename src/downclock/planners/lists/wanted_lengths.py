"""What every task wants before anybody places it: run times, preferred kinds, clock ladders."""

from __future__ import annotations

import numpy as np

from downclock.engine.tasks import grown
from downclock.engine.view import View
from downclock.kernels.least_tree import new_trees
from downclock.planners.lists.kernels.board import CURVE, EDGE, NODE, TASK, Jobs
from downclock.planners.lists.lengths import Lengths, window_s
from downclock.power.kernels.ladder import best_so_far
from downclock.problem.graph import Edges
from downclock.units import TOLERANCE, Bools, Floats, Ints


def no_jobs(kinds: int) -> Jobs:
    """Nothing is known yet."""
    tasks, curves = np.empty(0, TASK), np.empty((0, kinds), CURVE)
    chains = np.empty(0, NODE), np.empty(0, EDGE), np.zeros(2, np.int64)
    due, lists = new_trees(np.full((2, 1), np.inf)), np.zeros((3, 1), np.int64)
    return Jobs(tasks, curves, np.empty(0), *chains, due, *lists)


def with_new(jobs: Jobs, view: View, tasks: Ints, told_s: Floats) -> Jobs:
    """Add tasks (m,) that are told at these times, with a node for each of their processors."""
    known, size = jobs.tasks.size, int(tasks.max(initial=-1)) + 1
    table = grown(jobs.tasks, size)
    table[known:] = 0
    used, all_and_one = jobs.used[0], view.platform.processor_count + 1  # one that nobody holds
    many = np.minimum(view.tasks.processors[tasks], all_and_one)
    table["processors"][tasks], table["node"][tasks] = many, used + np.cumsum(many) - many
    milestone = view.tasks.scale[tasks] == 0.0
    table["milestone"][tasks], table["start_s"][tasks] = milestone, np.inf
    table["end_s"][tasks] = np.where(milestone, told_s, np.inf)
    table["told_s"][tasks], table["heir"][tasks] = told_s, -1
    jobs.used[0] += many.sum()
    nodes = grown(jobs.nodes, int(jobs.used[0]))
    fresh = nodes[used : jobs.used[0]]
    fresh["task"] = np.repeat(tasks, many)
    fresh["lane"] = fresh["after"] = fresh["before"] = fresh["place"] = -1
    due = _with_leaves(jobs.due, size) if np.any(many > 1) else jobs.due
    lists = {
        name: grown(getattr(jobs, name), table.size + 1) for name in ("hopes", "lost", "gangs")
    }
    return jobs._replace(tasks=table, nodes=nodes, due=due, **lists)


def _with_leaves(trees: Floats, size: int) -> Floats:
    """Trees with room for so many leaves."""
    leaves = trees[:, trees.shape[1] // 2 :]
    return trees if leaves.shape[1] >= size else new_trees(grown(leaves.T, size, np.inf).T)


def with_edges(jobs: Jobs, edges: Edges, tasks: Ints) -> Jobs:
    """Let new tasks (m,) wait for those before them."""
    if not len(edges):
        return jobs
    table, first = jobs.tasks, int(jobs.used[1])
    due = _with_leaves(jobs.due, table.size)
    jobs.used[1] += len(edges)
    rows = grown(jobs.edges, int(jobs.used[1]))
    np.add.at(table["waits_for"], edges.after, 1)
    table["end_s"][tasks[table["waits_for"][tasks] > 0]] = np.inf
    for edge, (before, after) in enumerate(edges, first):
        rows["after"][edge], rows["next"][edge] = after, table["heir"][before]
        table["heir"][before] = edge
    leaf = due.shape[1] // 2
    due[1, leaf + edges.before] = table["end_s"][edges.before]
    return jobs._replace(edges=rows, due=new_trees(due[:, leaf:]))


def holds(view: View, rows: Ints) -> Bools:
    """Tell of which kinds there are as many processors as a task needs (m, kinds)."""
    most = np.bincount(view.platform.kind, minlength=len(view.platform.kinds))
    return np.asarray(view.tasks.processors[rows][:, None] <= most)


def with_wishes(jobs: Jobs, lengths: Lengths, view: View, rows: Ints, tasks: Ints) -> Jobs:
    """Fill in what tasks (m,) want, who are those ``rows`` of the view."""
    kinds = range(jobs.curves.shape[1])
    fronts = [view.frontier(k, rows) for k in kinds]
    wanted = np.array([lengths.wanted(view, k, rows) for k in kinds]).T
    curves, rungs = np.empty(wanted.shape, CURVE), jobs.rungs
    held = holds(view, rows)
    shortest_s = np.array([front.t_min_s for front in fronts]).T
    curves["shortest_s"] = shortest_s = np.where(held, shortest_s, np.inf)
    wanted = np.where(np.isfinite(wanted) & held, wanted, shortest_s)
    curves["wanted_s"] = wanted
    curves["cheapest_s"] = np.array([front.t_opt_s for front in fronts]).T
    curves["kinds"] = _preferred(view, rows, wanted)
    curves["share"] = _shares(window_s(view, rows), wanted)
    for k in kinds:
        first, times = _worthwhile(*fronts[k].ladder())
        first = first + rungs.size
        curves["rung_first"][:, k], curves["rung_end"][:, k] = first[:-1], first[1:]
        rungs = np.concatenate([rungs, times]) if times.size else rungs
    jobs.tasks["deadline_s"][tasks] = view.tasks.deadline_s[rows]
    jobs.tasks["alone"][tasks] = 0
    every = grown(jobs.curves, jobs.tasks.size)
    every[tasks] = curves
    return jobs._replace(curves=every, rungs=rungs)


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
    kind = np.maximum(jobs.curves["kinds"][tasks, 0], 0)
    return kind, np.asarray(jobs.curves["wanted_s"][tasks, kind])


def binding(lengths: Lengths, view: View, jobs: Jobs, tasks: Ints) -> Bools:
    """Whether the deadline of each task limits its run time, on the kind it prefers (m,)."""
    kind, _ = first_choice(jobs, tasks)
    found = np.zeros(tasks.size, dtype=bool)
    for k in range(jobs.curves.shape[1]):
        mine = kind == k
        found[mine] = lengths.binds(view, k, tasks[mine])
    return found


def _worthwhile(first: Ints, time_s: Floats, energy_j: Floats) -> tuple[Ints, Floats]:
    """Drop entries that cost no less than a faster one of the same row; cost linear.

    The slowest that fits is then the cheapest that fits.
    """
    keep = best_so_far(first, energy_j) == np.arange(energy_j.size)
    kept = np.concatenate([[0], np.cumsum(keep)])
    return kept[first], time_s[keep]
