"""When tasks may run: what arrivals, deadlines and the graph leave of their time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.power.frontier import Frontier
from downclock.problem.graph import grouped
from downclock.problem.platform import Platform
from downclock.problem.problem import Problem
from downclock.units import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """When tasks may run, (tasks,) each; ``short_s`` (tasks, kinds) is infinite where one cannot.

    Attributes:
        from_s, to_s: earliest start and latest end.
        short_s: shortest run time on each kind.
        hopeless: no schedule can do them.
        soonest_s: earliest end.
    """

    from_s: Floats
    to_s: Floats
    short_s: Floats
    hopeless: Bools
    soonest_s: Floats


def windows_of(problem: Problem, frontiers: list[Frontier], only: Bools | None = None) -> Windows:
    """What arrivals, deadlines, wake times and the graph leave of each task's time."""
    tasks, platform, edges = problem.tasks, problem.platform, problem.edges
    most = np.bincount(platform.kind, minlength=len(platform.kinds))
    short_s = np.column_stack([each.t_min_s for each in frontiers])
    short_s[tasks.processors[:, None] > most] = np.inf
    ready_s = np.array([_ready_s(platform, k) for k in range(len(platform.kinds))])
    work = tasks.scale > 0.0
    from_s, to_s = tasks.arrival_s.copy(), tasks.deadline_s.copy()

    def ended_s(rows: Ints | slice) -> Floats:
        first = np.maximum(from_s[rows][:, None], ready_s) + short_s[rows]
        return np.where(work[rows], first.min(axis=1), from_s[rows])

    late = _late(ended_s(slice(None)), to_s)
    late |= False if only is None else ~only
    if len(edges):
        order = problem.edges.order(len(tasks))
        before, after = neighbours(problem, backwards=True), neighbours(problem)
        for i in order:
            mine = before[i]
            if mine.size:
                from_s[i] = max(from_s[i], ended_s(mine).max())
                late[i] |= np.any(late[mine]) or bool(_late(ended_s(np.array([i])), to_s[i])[0])
        least_s = np.where(work, short_s.min(axis=1), 0.0)
        least_s[~np.isfinite(least_s)] = 0.0  # no kind can run it: it is late, whatever follows
        for i in order[::-1]:
            mine = after[i][~late[after[i]]]
            if mine.size:
                to_s[i] = min(to_s[i], float((to_s[mine] - least_s[mine]).min()))
    return Windows(from_s, to_s, short_s, late, ended_s(slice(None)))


def _late(ended_s: Floats, to_s: Floats | float) -> Bools:
    """Tell what cannot end, or not by a time; rounding is no excuse to reject."""
    return np.asarray(~(np.isfinite(ended_s) & (ended_s <= np.asarray(to_s) * (1.0 + 1e-12))))


def _ready_s(platform: Platform, kind: int) -> float:
    """When the first server with a kind can be awake; infinite without one."""
    first_s = np.where(platform.initially_on, 0.0, platform.wake_s)
    return float(first_s[platform.server[platform.kind == kind]].min(initial=np.inf))


def neighbours(problem: Problem, *, backwards: bool = False) -> list[Ints]:
    """Tasks after each task, or before it."""
    edges = problem.edges
    ends = (edges.after, edges.before) if backwards else (edges.before, edges.after)
    first, of = grouped(len(problem.tasks), *ends)
    return np.split(of, first[1:-1])


def job_edges(problem: Problem, task: Ints) -> tuple[Ints, Ints]:
    """Edges between jobs (before, after); those through tasks without work are drawn through."""
    n = len(problem.tasks)
    job = np.full(n, -1)
    job[task] = np.arange(task.size)
    pairs = set(zip(problem.edges.before.tolist(), problem.edges.after.tolist(), strict=True))
    idle = np.flatnonzero(problem.tasks.scale == 0.0)
    if pairs and idle.size:
        into, out = neighbours(problem, backwards=True), neighbours(problem)
        behind = {int(i): set(into[i].tolist()) for i in idle}
        for i in problem.edges.order(n):
            if problem.tasks.scale[i] == 0.0:
                jobs = {j for j in behind[int(i)] if problem.tasks.scale[j] > 0.0}
                for j in behind[int(i)] - jobs:
                    jobs |= behind[j]
                behind[int(i)] = jobs
                pairs |= {(j, int(k)) for j in jobs for k in out[i]}
    kept = [(job[a], job[b]) for a, b in sorted(pairs) if job[a] >= 0 and job[b] >= 0]
    ends = np.array(kept, np.int64).reshape(-1, 2)
    return np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1])
