"""Online EDL of mei2021, transcribed line by line: Algorithms 1, 4 and 5 with server sleep.

One minute after the other, every server and every pair looked at each time, as the algorithms
and the authors' public code do; but deadlines are kept, so schedules can be compared with ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt


@dataclass
class Job:
    """A task of the papers; times in minutes, powers in watts."""

    arrival: float
    deadline: float
    p0: float
    gamma: float
    c: float
    d: float
    delta: float
    t0: float
    scale: float
    length: float = 0.0
    shortest: float = 0.0


@dataclass
class Server:
    """A server of some pairs; ``ends`` is when each pair is free."""

    ends: list[float]
    on: bool = False
    since: float = 0.0


@dataclass
class Day:
    """What came out: (pair, start, length) of each job, and (server, on, off)."""

    places: list[tuple[int, float, float]] = field(default_factory=list)
    spans: list[tuple[int, float, float]] = field(default_factory=list)


def solve(job: Job, step: float = 0.05) -> None:
    """Algorithm 1: the least-energy run time within the deadline, over a grid of voltages."""
    best, found = float("inf"), None
    volt = 0.5
    while volt <= 1.2 + 1e-9:
        core = sqrt((volt - 0.5) / 2.0) + 0.5
        head = job.p0 + job.c * volt * volt * core
        fixed = job.t0 + job.d * job.delta / core
        moved = job.d * (1.0 - job.delta)
        room = (job.deadline - job.arrival) / job.scale - fixed
        memory = sqrt(head * moved / (job.gamma * fixed))
        if room > 0.0:
            memory = max(memory, moved / room)
        memory = min(max(memory, 0.5), 1.2)
        time = fixed + moved / memory
        energy = time * (head + job.gamma * memory)
        if time * job.scale <= (job.deadline - job.arrival) * (1.0 + 1e-12) and energy < best:
            best, found = energy, time
        volt += step
    top = sqrt(0.35) + 0.5
    fastest = job.t0 + job.d * (job.delta / top + (1.0 - job.delta) / 1.2)
    job.shortest = fastest * job.scale
    job.length = job.shortest if found is None else found * job.scale


def edl_day(jobs: list[Job], pairs: int, per_server: int, theta: float, rho: float) -> Day:
    """Algorithms 4 and 5, minute by minute; lengths must be known (`solve`)."""
    servers = [Server([0.0] * per_server) for _ in range(pairs // per_server)]
    day = Day(places=[(-1, 0.0, 0.0)] * len(jobs))
    last = int(max(job.arrival for job in jobs))
    for minute in range(last + 1):
        if minute > 0:
            for j, server in enumerate(servers):
                if server.on and minute - max(server.ends) >= rho:
                    _turn_off(day, j, server, rho)
        arrived = [i for i, job in enumerate(jobs) if job.arrival == minute]
        arrived.sort(key=lambda i: (jobs[i].deadline, i))
        for i in arrived:
            day.places[i] = _assign(servers, jobs[i], float(minute), theta)
    for j, server in enumerate(servers):
        if server.on:
            _turn_off(day, j, server, rho)
    return day


def _turn_off(day: Day, j: int, server: Server, rho: float) -> None:
    server.on = False
    day.spans.append((j, server.since, max(server.ends) + rho))


def _assign(servers: list[Server], job: Job, now: float, theta: float) -> tuple[int, float, float]:
    """Algorithm 5 lines 5-21: the pair free soonest, readjusted if that helps, or a new one."""
    least, where = float("inf"), (-1, -1)
    for j, server in enumerate(servers):
        if server.on:
            for k, end in enumerate(server.ends):
                if end < least:
                    least, where = end, (j, k)
    if where[0] >= 0:
        start = max(now, least)
        room = job.deadline - start
        if room >= job.length or room >= max(theta * job.length, job.shortest):
            length = min(job.length, room)
            servers[where[0]].ends[where[1]] = start + length
            return where[0] * len(servers[0].ends) + where[1], start, length
    for j, server in enumerate(servers):
        if not server.on:
            server.on, server.since = True, now
            server.ends = [now] * len(server.ends)
            server.ends[0] = now + job.length
            return j * len(server.ends), now, job.length
    raise RuntimeError("no pair left")
