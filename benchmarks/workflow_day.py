"""A day of workflows: how far online policies are from one linear program per workflow.

    python -m benchmarks.workflow_day [first seed] [sets] [utilisation] [from] [to]

The papers' day on servers of 4, 8 and 16, its tasks joined to workflows of 3 to 6 that come
together; the longest path of a workflow, at the fastest, fills u(.15, .85) of its window, or what
part is given (at u(.6, .95) most deadlines bind). One row a setting: mean and worst gap in per cent
to the least energy of the workflows that are done, each on processors of its own (`bound_j`), tasks
refused, workflows of which only a part is done, CPU seconds. Every schedule is verified.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from benchmarks.measured import verified
from downclock.problem.graph import Edges
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.schedule import DONE
from downclock.units import Bools, Floats, Ints
from downclock.workloads import mei

SPECS = ("late", "prompt", "race", "edl")
PRICES = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0, 2.0, 5.0, 20.0])
"""Prices of time at which the frontier is cut, as parts of the power at its best."""


def day(
    seed: int, per_server: int, utilisation: float, full: tuple[float, float]
) -> tuple[Problem, Ints]:
    """The papers' day with edges; and the workflow of each task (n,)."""
    drawn = mei.online(
        seed, utilisation=utilisation, initial_utilisation=utilisation / 4,
        cluster=mei.Cluster(per_server=per_server),
    )  # fmt: skip
    rng, tasks, n = np.random.default_rng([seed, 81]), drawn.tasks, len(drawn.tasks)
    sizes = rng.integers(3, 7, n)
    of = np.repeat(np.arange(n), sizes)[:n]
    first = np.searchsorted(of, np.arange(of[-1] + 1))
    before, after = [], []
    for i in range(n):
        place = i - first[of[i]]
        many = min(place, 1 + int(rng.uniform() < 0.3))
        for other in rng.choice(place, many, replace=False) if many else ():
            before.append(first[of[i]] + int(other))
            after.append(i)
    edges = Edges(np.array(before), np.array(after))
    fast_s = drawn.frontier(0).t_min_s
    path_s = fast_s.copy()
    for u, v in zip(edges.before, edges.after, strict=True):  # edges come in order
        path_s[v] = max(path_s[v], path_s[u] + fast_s[v])
    longest_s = (np.maximum.reduceat(path_s, first) / rng.uniform(*full, first.size))[of]
    arrival_s = np.maximum.reduceat(tasks.arrival_s, first)[of]
    joined = replace(tasks, arrival_s=arrival_s, deadline_s=arrival_s + longest_s)
    return replace(drawn, tasks=joined, edges=edges, name=f"workflows-{seed}"), of


def bound_j(problem: Problem, done: Bools) -> float:
    """The least energy of tasks in their order and by their deadlines, processors aside.

    A linear program: the energy of a task is above the lines that prices of time cut off its
    frontier, so it is never more than the truth. Workflows do not meet in it.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    tasks, n = problem.tasks, len(problem.tasks)
    hull = problem.frontier(0).mixed()
    best = hull.cheapest(np.zeros(n))
    unit_w = best.energy_j / best.time_s
    rows: list[tuple[Ints, Ints, Floats]] = []  # -e - price t <= -least
    rest, m, every = [], 0, np.arange(n)
    for part in PRICES:
        found = hull.cheapest(part * unit_w)
        rows.append((m + every, every, np.full(n, -1.0)))
        rows.append((m + every, n + every, -part * unit_w))
        rest.append(-(found.energy_j + part * unit_w * found.time_s))
        m += n
    rows += [(m + every, n + every, np.ones(n)), (m + every, 2 * n + every, np.ones(n))]
    rest.append(tasks.deadline_s)
    m += n
    u, v, each = problem.edges.before, problem.edges.after, np.arange(len(problem.edges))
    rows += [(m + each, n + u, np.ones(u.size)), (m + each, 2 * n + u, np.ones(u.size))]
    rows.append((m + each, 2 * n + v, -np.ones(u.size)))
    rest.append(np.zeros(u.size))
    row, column, value = (np.concatenate(part) for part in zip(*rows, strict=True))
    table = csr_matrix((value, (row, column)), shape=(m + u.size, 3 * n))
    least = np.concatenate([np.zeros(n), problem.frontier(0).t_min_s, tasks.arrival_s])
    limits = np.column_stack([least, np.full(3 * n, np.inf)])
    cost = np.concatenate([done.astype(float), np.zeros(2 * n)])
    answer = linprog(cost, table, np.concatenate(rest), bounds=limits, method="highs")
    if answer.status != 0:
        raise SystemExit(f"{problem.name}: {answer.message}")
    return float(answer.fun)


def measured(problem: Problem, of: Ints, spec: str, least_j: float) -> tuple[float, ...]:
    """Gap in per cent, tasks not done, workflows done in part, CPU seconds."""
    schedule, seconds = verified(problem, spec)
    done = schedule.outcomes.status == DONE
    least_j = least_j if done.all() else bound_j(problem, done)
    energy_j = float(account(problem, schedule).server_j.sum())
    part = np.bincount(of, done) / np.bincount(of)
    halves = float(np.sum((part > 0.0) & (part < 1.0)))
    return 100.0 * (energy_j / least_j - 1.0), float(np.sum(~done)), halves, seconds


def main() -> None:
    given = [float(word) for word in sys.argv[1:6]]
    first, sets, utilisation, *full = (*given, *(7300, 3, 1.6, 0.15, 0.85)[len(given) :])
    for per_server in (4, 8, 16):
        seeds = range(int(first), int(first + sets))
        days = [day(seed, per_server, utilisation, (full[0], full[1])) for seed in seeds]
        least = [bound_j(problem, np.ones(of.size, bool)) for problem, of in days]
        for spec in SPECS:
            rows = np.array(
                [measured(*one, spec, bound) for one, bound in zip(days, least, strict=True)]
            )
            mean, worst = rows.mean(axis=0), rows.max(axis=0)
            print(
                f"l={per_server:2d} {spec:6s} gap {mean[0]:7.3f} % worst {worst[0]:7.3f} % refused"
                f" {rows[:, 1].sum():.0f}, {rows[:, 2].sum():.0f} in part, {mean[3]:6.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
