"""The least energy of tiny problems by trying everything, and energy added up by hand.

Independent of the search and of `account`: run energy, idle processors, hosts, sleep and wakes are
added from the problem's own columns. Where a joule is always worth the same, some best schedule has
every start tied to an arrival, a deadline, a wake or a neighbour's start or end.
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np

from downclock.problem.problem import Problem

Run = tuple[int, int, float, float, float]
"""Job, server, start, end, run energy."""


def server_j(problem: Problem, server: int, runs: list[Run]) -> float:
    """Energy of one server up to its last run; infinite where it cannot be."""
    platform = problem.platform
    mine = sorted((start, end) for _, v, start, end, _ in runs if v == server)
    if not mine:
        return 0.0
    idle = platform.idle_w[platform.server == server]
    if _most_at_once(mine) > idle.size:
        return float("inf")
    up_w = float(platform.host_w[server] + idle.sum())
    total = sum(joules for _, v, _, _, joules in runs if v == server)
    total -= float(idle[0]) * sum(end - start for start, end in mine)
    awake = bool(platform.initially_on[server])
    now = 0.0
    for start, end in mine:
        if start > now or not awake:
            slept_s = start - now - platform.wake_s[server]
            slept = platform.sleep_w[server] * slept_s + platform.wake_j[server]
            slept = slept if slept_s >= -1e-9 else float("inf")
            total += min(slept, up_w * (start - now)) if awake else slept
        awake = True
        total += up_w * max(0.0, end - max(now, start))
        now = max(now, end)
    return float(total)


def _most_at_once(times: list[tuple[float, float]]) -> int:
    events = sorted([(s, 1) for s, _ in times] + [(e - 1e-9, -1) for _, e in times])
    return int(np.cumsum([change for _, change in events]).max())


def least_j(problem: Problem) -> float:
    """Least energy of a schedule of all tasks on one kind with enumerated, locked clocks."""
    offset, time_s, energy_j = problem.frontier(0).ladder()
    n, best = len(problem.tasks), float("inf")
    for rungs in product(*(range(offset[i], offset[i + 1]) for i in range(n))):
        length_s = [float(time_s[r]) for r in rungs]
        joules = [float(energy_j[r]) for r in rungs]
        for servers in product(range(problem.platform.server_count), repeat=n):
            for order in permutations(range(n)):
                best = min(best, _placed(problem, servers, length_s, joules, order, []))
    return best


def _placed(
    problem: Problem,
    servers: tuple[int, ...],
    length_s: list[float],
    joules: list[float],
    order: tuple[int, ...],
    runs: list[Run],
) -> float:
    """Least energy with the first jobs of an order placed, the others tied to them."""
    if len(runs) == len(order):
        used = range(problem.platform.server_count)
        return sum(server_j(problem, server, runs) for server in used)
    job, tasks = order[len(runs)], problem.tasks
    wake_s, lasts = float(problem.platform.wake_s[servers[job]]), length_s[job]
    latest = float(tasks.deadline_s[job]) - lasts
    starts = {float(tasks.arrival_s[job]), latest, wake_s}
    for _, _, start, end, _ in runs:
        starts |= {end, start - lasts, start, end - lasts, end + wake_s, start - lasts - wake_s}
    best = float("inf")
    for start in starts:
        if tasks.arrival_s[job] <= start <= latest:
            run = (job, servers[job], start, start + lasts, joules[job])
            best = min(best, _placed(problem, servers, length_s, joules, order, [*runs, run]))
    return best
