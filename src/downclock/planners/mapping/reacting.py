"""Policies that react: told what really happened, they say what every processor does from now on.

`Facts` are what is known at one moment, `Orders` what shall be done. `Floor` follows orders: it
knows how much of each task is left and when the next one ends. `play` lets a policy and a floor
run against each other; planning is the same play with run times as estimated and no faults, so
that a noiseless simulation is the plan, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from downclock.engine.policy import Decisions, View
from downclock.planners.mapping.levels import Levels, levels_of
from downclock.problem.problem import Problem
from downclock.schedule.schedule import ON, PowerSpans, Segments
from downclock.units import Floats, Ints

IDLE = -1


class Facts(NamedTuple):
    """What happened at one moment. All indices; empty where nothing did.

    ``lost``: tasks whose attempt failed and that start again from nothing; ``failed``: those that
    may not; ``down`` and ``up``: processors (lost tasks of a down processor are listed too);
    ``prices``: zones and what a kWh costs there from now on, for policies that heed prices.
    """

    now_s: float
    arrived: Sequence[int] = ()
    finished: Sequence[int] = ()
    lost: Sequence[int] = ()
    failed: Sequence[int] = ()
    down: Sequence[int] = ()
    up: Sequence[int] = ()
    prices: Sequence[tuple[int, float]] = ()


class Orders(NamedTuple):
    """What processors do from now on: rows (processor, task or `IDLE`, level); and refusals."""

    run: Sequence[tuple[int, int, int]] = ()
    rejected: Sequence[tuple[int, str]] = ()


@runtime_checkable
class Reactive(Protocol):
    """A policy that reacts; ``react`` may change the state it is given.

    One with a true attribute ``heeds_prices`` is also asked whenever a price changes while it
    has tasks to do; what changed meanwhile it is told with the next facts.
    """

    @property
    def name(self) -> str:
        """The name in the catalogue, with parameters."""
        ...

    def begin(self, view: View) -> Any:
        """Make the state at time 0."""
        ...

    def react(self, state: Any, view: View, facts: Facts) -> Orders:
        """Take note of facts and give orders."""
        ...


class Incident(NamedTuple):
    """Machines that fail or come back at one moment."""

    at_s: float
    down: tuple[int, ...] = ()
    up: tuple[int, ...] = ()


class Quote(NamedTuple):
    """A zone's price per kWh from one moment on."""

    at_s: float
    zone: int
    price: float


def quotes_of(problem: Problem, policy: Reactive, *, actual: bool) -> list[Quote]:
    """Every change of price by time, the actual ones or those expected; none if not heeded."""
    found = []
    heeds = getattr(policy, "heeds_prices", False)
    for zone, name in enumerate(problem.platform.zones if heeds else ()):
        prices = problem.prices.of(name)
        curve = prices.price if actual else prices.expected_price
        if curve is not None:
            first = max(int(np.searchsorted(curve.start_s, 0.0, side="right")) - 1, 0)
            rows = zip(curve.start_s[first:].tolist(), curve.value[first:].tolist(), strict=True)
            found += [Quote(max(at_s, 0.0), zone, price) for at_s, price in rows]
    return sorted(found)


@dataclass(slots=True)
class Floor:
    """Processors at work.

    Attributes:
        levels: of each kind; ``kind`` of each processor.
        work: actual / estimated work of each task; ``breaks``: see `simulate.chances`.
        running, level, since_s: what each processor does.
        left: part of each task still to be done; ``attempt``: number of its present attempt.
        paused: tasks that each processor has begun and put back.
        log: rows (task, attempt, processor, start, end, level, share) of what has ended.
        ends: heap of (end, processor, version); entries of old versions are dead.
        open: tasks that arrived and are neither done nor refused; ``quoted``: quotes told so far.
    """

    levels: list[Levels]
    kind: list[int]
    work: list[float]
    breaks: Floats | None
    retries: int
    running: list[int]
    level: list[int]
    since_s: list[float]
    version: list[int]
    left: list[float]
    attempt: list[int]
    tried: list[bool]
    paused: list[set[int]]
    log: list[tuple[int, int, int, float, float, int, float]] = field(default_factory=list)
    ends: list[tuple[float, int, int]] = field(default_factory=list)
    open: int = 0
    quoted: int = 0

    @classmethod
    def of(cls, view: View, work: Floats, breaks: Floats | None = None, retries: int = 0) -> Floor:
        """An idle floor."""
        platform, n = view.problem.platform, len(view.problem.tasks)
        p = platform.processor_count
        return cls(
            [levels_of(view, k) for k in range(len(platform.kinds))],
            platform.kind.tolist(),
            work.tolist(),
            breaks,
            retries,
            [IDLE] * p,
            [0] * p,
            [0.0] * p,
            [0] * p,
            [1.0] * n,
            [0] * n,
            [False] * n,
            [set() for _ in range(p)],
        )

    def next_end_s(self) -> float:
        """When the next task ends or breaks, if orders stay as they are."""
        while self.ends and self.ends[0][2] != self.version[self.ends[0][1]]:
            heappop(self.ends)
        return self.ends[0][0] if self.ends else np.inf

    def prices(self, now_s: float, quotes: Sequence[Quote]) -> list[tuple[int, float]]:
        """Take the quotes up to now that were not told yet; of each zone the last."""
        fresh: dict[int, float] = {}
        while self.quoted < len(quotes) and quotes[self.quoted].at_s <= now_s:
            fresh[quotes[self.quoted].zone] = quotes[self.quoted].price
            self.quoted += 1
        return sorted(fresh.items())

    def order(self, p: int, task: int, level: int, now_s: float) -> None:
        """Let a processor run a task at a level from now on; no change is no cut."""
        if self.running[p] == task and (task == IDLE or self.level[p] == level):
            return
        self._close(p, now_s)
        self.running[p], self.level[p], self.since_s[p] = task, level, now_s
        self.version[p] += 1
        if task != IDLE:
            self.paused[p].discard(task)
            due = now_s + (self.left[task] - self._break(task)) * self._whole_s(p, task)
            heappush(self.ends, (due, p, self.version[p]))

    def end(self, now_s: float, facts: dict[str, list[int]]) -> None:
        """Close everything that ends now: finished, lost or failed."""
        while self.next_end_s() <= now_s:
            end_s, p, _ = heappop(self.ends)
            task = self.running[p]
            stop = self._break(task)
            share = self.left[task] - stop
            self._write(p, end_s, share)
            self.left[task] = stop
            self._stop(p)
            if stop == 0.0:
                facts["finished"].append(task)
            else:
                facts[self._lose(task)].append(task)

    def down(self, p: int, now_s: float, facts: dict[str, list[int]]) -> None:
        """A processor fails: what runs there, or was begun there, is lost."""
        self._close(p, now_s)
        held = sorted({self.running[p], *self.paused[p]} - {IDLE})
        self._stop(p)
        self.paused[p].clear()
        for task in held:
            facts[self._lose(task)].append(task)
        facts["down"].append(p)

    def _stop(self, p: int) -> None:
        self.running[p] = IDLE
        self.version[p] += 1

    def _lose(self, task: int) -> str:
        if self.tried[task]:
            self.attempt[task] += 1
            self.tried[task] = False
        self.left[task] = 1.0
        return "failed" if self.attempt[task] > self.retries else "lost"

    def _break(self, task: int) -> float:
        """Part of the task that is left when its attempt fails; 0: it does not."""
        if self.breaks is None:
            return 0.0
        at = self.breaks[task, min(self.attempt[task], self.breaks.shape[1] - 1)]
        return float(min(1.0 - at, self.left[task])) if at <= 1.0 else 0.0

    def _whole_s(self, p: int, task: int) -> float:
        time_s = self.levels[self.kind[p]].time_s[task, self.level[p]]
        return float(time_s) * self.work[task]

    def _close(self, p: int, now_s: float) -> None:
        task = self.running[p]
        if task == IDLE or now_s <= self.since_s[p]:
            return
        share = (now_s - self.since_s[p]) / self._whole_s(p, task)
        self._write(p, now_s, share)
        self.left[task] = max(self.left[task] - share, 0.0)
        self.paused[p].add(task)

    def _write(self, p: int, end_s: float, share: float) -> None:
        task = self.running[p]
        row = (task, self.attempt[task], p, self.since_s[p], end_s, self.level[p], share)
        if end_s > self.since_s[p]:
            self.tried[task] = True
            self.log.append(row)


def play(
    policy: Reactive,
    state: Any,
    view: View,
    floor: Floor,
    arrivals: Sequence[tuple[float, int]],
    until_s: float,
    incidents: Sequence[Incident] = (),
    quotes: Sequence[Quote] = (),
) -> Iterator[tuple[Facts, Orders]]:
    """Play events before ``until_s`` in order of time; all of one moment are told together.

    ``arrivals`` are (time, task), ``incidents`` machines failing and coming back, ``quotes``
    prices, each by time; events at or after ``until_s`` are left for later.
    """
    a = i = 0
    while True:
        now = min(
            floor.next_end_s(),
            arrivals[a][0] if a < len(arrivals) else np.inf,
            incidents[i].at_s if i < len(incidents) else np.inf,
            quotes[floor.quoted].at_s if floor.open and floor.quoted < len(quotes) else np.inf,
        )
        if not now < until_s:
            return
        told: dict[str, list[int]] = {key: [] for key in Facts._fields[1:-1]}
        floor.end(now, told)
        while i < len(incidents) and incidents[i].at_s == now:
            for p in incidents[i].down:
                floor.down(p, now, told)
            told["up"] += incidents[i].up
            i += 1
        while a < len(arrivals) and arrivals[a][0] == now:
            told["arrived"].append(arrivals[a][1])
            a += 1
        facts = Facts(now, **told, prices=floor.prices(now, quotes))
        orders = policy.react(state, view, facts)
        ended = len(facts.finished) + len(facts.failed) + len(orders.rejected)
        floor.open += len(facts.arrived) - ended
        # Every processor lets go before any takes up, so that tasks may change places.
        for p, task, _ in orders.run:
            if floor.running[p] not in (IDLE, task):
                floor.order(p, IDLE, 0, now)
        for p, task, level in orders.run:
            floor.order(p, task, level, now)
        yield facts, orders


class Planning(NamedTuple):
    """State of a reactive policy that plans: its own, the floor it imagines, rows handed over."""

    own: Any
    floor: Floor
    fresh: list[bool]


def start_planning(policy: Reactive, view: View) -> Planning:
    """State at time 0."""
    floor = Floor.of(view, np.ones(len(view.problem.tasks)))
    return Planning(policy.begin(view), floor, [True])


def run_planning(
    policy: Reactive, state: Planning, view: View, arrived: Ints, until_s: float
) -> tuple[Planning, Decisions]:
    """Plan: play with run times as estimated, and hand over what ended."""
    tasks = view.problem.tasks
    has_work = arrived[tasks.scale[arrived] > 0.0]
    gangs = has_work[tasks.processors[has_work] > 1]
    singles = has_work[tasks.processors[has_work] == 1]
    arrivals = list(zip(tasks.arrival_s[singles].tolist(), singles.tolist(), strict=True))
    refused: list[tuple[int, str]] = [
        (int(i), "needs several processors at once; this policy plans single ones") for i in gangs
    ]
    before = len(state.floor.log)
    heeds = getattr(policy, "heeds_prices", False)
    quotes = view.once(("quotes", heeds), lambda: quotes_of(view.problem, policy, actual=False))
    for _, orders in play(policy, state.own, view, state.floor, arrivals, until_s, (), quotes):
        refused += orders.rejected
    place = segments_of(view, state.floor.log[before:])
    power = on_from_the_start(view) if state.fresh[0] else no_spans()
    state.fresh[0] = False
    rejected = np.array([task for task, _ in refused], dtype=np.int64)
    reason = np.array([why for _, why in refused], dtype=object)
    return state, Decisions(place, power, rejected, reason, state.floor.next_end_s())


def segments_of(
    view: View, log: Sequence[tuple[int, int, int, float, float, int, float]]
) -> Segments:
    """Turn rows of a floor's log into segments."""
    if not log:
        return no_segments()
    task, attempt, processor, start_s, end_s, level, share = (
        np.array(column) for column in zip(*log, strict=True)
    )
    kind = view.problem.platform.kind[processor]
    points = np.ones((task.size, 3))
    for k in range(len(view.problem.platform.kinds)):
        mine = kind == k
        points[mine] = levels_of(view, k).points[level[mine]]
    return Segments.of(task, processor, start_s, end_s, points, share, attempt)


def no_segments() -> Segments:
    """An empty table."""
    none, number = np.empty(0, dtype=np.int64), np.empty(0)
    return Segments(none, none, none, number, number, number, number, number, number)


def no_spans() -> PowerSpans:
    """An empty table."""
    none, number = np.empty(0, dtype=np.int64), np.empty(0)
    return PowerSpans(none, none, number, number)


def on_from_the_start(view: View) -> PowerSpans:
    """Every server on from time 0; the boundary of the bill says until when."""
    platform = view.problem.platform
    server = np.flatnonzero(~platform.initially_on)
    column = np.zeros(server.size)
    return PowerSpans(server, np.full(server.size, ON), column, column + np.inf)
