"""List policies: place tasks one by one. A sentence of parts: order, fit, length, stretch, sleep.

The papers' policies are such sentences (see `catalog`); all run in one kernel, offline, online
and simulated alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from downclock.kernels import list_board as kernel
from downclock.policies.interface import Decisions, View
from downclock.policies.lengths import LeastEnergy, Lengths
from downclock.policies.order import Order, in_order
from downclock.policies.sleep import Patience, patience_s
from downclock.problem.platform import Platform
from downclock.problem.problem import Problem
from downclock.schedule.schedule import ON, WAKING, PowerSpans, Segments
from downclock.units import Bools, Floats, Ints

Fit: TypeAlias = Literal["soonest", "first", "best", "worst", "lightest"]
_FITS: dict[str, int] = {
    "soonest": kernel.SOONEST,
    "first": kernel.FIRST,
    "best": kernel.BEST,
    "worst": kernel.WORST,
    "lightest": kernel.LIGHTEST,
}


class State(NamedTuple):
    """State of a list policy between runs."""

    board: kernel.Board
    fresh: bool


@dataclass(frozen=True, slots=True)
class ListPolicy:
    """Place each task when it arrives, on the processor the fit rule prefers.

    Attributes:
        name: name in the catalogue.
        order: order among tasks that arrive together.
        fit: which awake processor; where none fits, a sleeping server is woken.
        lengths: the run time a task wants.
        theta: how far a task may be shortened to fit, as a part of its length (mei2021 Def. 2).
        patience: how long an idle server stays awake (the papers' rho).
        group: tasks that are there at time 0 are placed on processors first and the processors
            grouped into servers afterwards, by length (mei2021 Algorithms 2 and 3).
        prior_alone: at time 0, tasks whose deadline binds get a processor of their own first.
        first_fit: fit rule for the tasks at time 0, where it differs (mei2021 Algorithm 6).
        slot_s: tasks start at multiples of this; 0: any time.
    """

    name: str
    order: Order = "deadline"
    fit: Fit = "soonest"
    lengths: Lengths = LeastEnergy()
    theta: float = 1.0
    patience: Patience = 0.0
    group: bool = True
    prior_alone: bool = False
    first_fit: Fit | None = None
    slot_s: float = 0.0

    def objection(self, problem: Problem) -> str | None:
        """List policies place independent tasks on single processors."""
        if len(problem.edges):
            return "the tasks form a graph; this policy plans independent tasks"
        if problem.platform.slot_s is not None:
            return "the platform is slotted; this policy plans in continuous time"
        if np.any(np.bincount(problem.platform.chip) > 1):
            return "processors share a clock; this policy sets each clock by itself"
        return None

    def start(self, view: View) -> State:
        """An empty board."""
        platform = view.problem.platform
        board = kernel.new_board(
            platform.kind,
            platform.first_processor,
            len(platform.kinds),
            platform.wake_s,
            patience_s(self.patience, platform),
            platform.initially_on.astype(np.int64),
        )
        return State(board, True)

    def run(
        self, state: State, view: View, arrived: Ints, until_s: float
    ) -> tuple[State, Decisions]:
        """Place ``arrived``; the board is updated in place."""
        return _Run(self, view).go(state, arrived, until_s)


@dataclass(frozen=True, slots=True, eq=False)
class _Wishes:
    """What every task wants, on every kind (k kinds, n tasks)."""

    length_s: Floats  # (k, n) wanted run time; the shortest where the deadline cannot be met
    kinds: Ints  # (n, k) kinds, the cheapest first; -1: none
    best_s: Floats  # (n,) wanted run time on the first kind
    binding: Bools  # (n,) its deadline binds

    @classmethod
    def of(cls, lengths: Lengths, view: View) -> _Wishes:
        kinds = len(view.problem.platform.kinds)
        shortest = np.array([view.frontier(k).t_min_s for k in range(kinds)])
        wanted = np.array([lengths.wanted(view, k) for k in range(kinds)])
        wanted = np.where(np.isfinite(wanted), wanted, shortest)
        order = np.zeros((wanted.shape[1], 1), dtype=np.int64)
        if kinds > 1:
            cost = [view.frontier(k).within(view.window_s).energy_j for k in range(kinds)]
            order = np.argsort(np.array(cost), axis=0, kind="stable").T
        possible = np.take_along_axis(np.isfinite(wanted.T), order, axis=1)
        best = np.take_along_axis(wanted.T, order[:, :1], axis=1)[:, 0]
        return cls(wanted, np.where(possible, order, -1), best, best >= view.window_s)


class _Run:
    """One call of a list policy: prepares columns, calls the kernel, collects decisions."""

    def __init__(self, policy: ListPolicy, view: View) -> None:
        self.policy, self.view = policy, view
        self.tasks = view.problem.tasks
        self.kinds = len(view.problem.platform.kinds)
        self.wishes = view.once(
            ("wishes", policy.lengths), lambda: _Wishes.of(policy.lengths, view)
        )
        self.placed: list[tuple[Ints, kernel.Placed]] = []
        self.spans: list[Floats] = []

    def go(self, state: State, arrived: Ints, until_s: float) -> tuple[State, Decisions]:
        gangs = arrived[self.tasks.processors[arrived] > 1]
        rest = arrived[self.tasks.processors[arrived] == 1]
        at_zero = rest[self.tasks.arrival_s[rest] == 0.0]
        if state.fresh and at_zero.size:
            self._place_first(state.board, at_zero)
            rest = rest[at_zero.size :]
        self._place(state.board, rest, self.policy.fit, until_s)
        fresh = state.fresh and arrived.size == 0
        return State(state.board, fresh), self._decisions(state.board, gangs)

    def _jobs(self, tasks: Ints, alone: Bools) -> kernel.Jobs:
        offsets, rungs = self._ladders(tasks)
        shortest = np.array([self.view.frontier(k).t_min_s[tasks] for k in range(self.kinds)])
        return kernel.Jobs(
            self.tasks.arrival_s[tasks],
            self.tasks.deadline_s[tasks],
            self.wishes.kinds[tasks],
            self.wishes.length_s[:, tasks],
            shortest,
            offsets,
            rungs,
            alone[tasks].astype(np.int64),
        )

    def _ladders(self, tasks: Ints) -> tuple[Ints, Floats]:
        """Run times of enumerated clocks, job by job, for every kind."""
        offsets = np.zeros((self.kinds, tasks.size + 1), dtype=np.int64)
        rungs: list[Floats] = [np.empty(0)]
        base = 0
        for k in range(self.kinds):
            first, times, _ = self.view.frontier(k).ladder()
            counts = np.diff(first)[tasks]
            offsets[k, 0] = base
            offsets[k, 1:] = base + np.cumsum(counts)
            if counts.any():
                entry = np.repeat(first[tasks] - (offsets[k, :-1] - base), counts)
                rungs.append(times[entry + np.arange(entry.size)])
            base = int(offsets[k, -1])
        return offsets, np.concatenate(rungs)

    def _place(
        self, board: kernel.Board, tasks: Ints, fit: Fit, until_s: float
    ) -> tuple[kernel.Jobs, kernel.Placed]:
        """Call the kernel on ``tasks`` and keep what it says."""
        wishes, tasks_s = self.wishes, self.tasks
        alone = wishes.binding & (tasks_s.arrival_s == 0.0) & self.policy.prior_alone
        ordered = in_order(
            self.policy.order, tasks, tasks_s.arrival_s, tasks_s.deadline_s, wishes.best_s, alone
        )
        jobs, m = self._jobs(ordered, alone), ordered.size
        counts = np.zeros((2, m), dtype=np.int64)
        times = np.zeros((3, m))
        out = kernel.Placed(counts[0], counts[1], times[0], times[1], times[2])
        spans = np.empty((m + int(board.awake.sum()), 3))
        rules = kernel.Rules(_FITS[fit], self.policy.theta, self.policy.slot_s)
        count = kernel.place_run(board, jobs, rules, out, spans, until_s)
        self.placed.append((ordered, out))
        self.spans.append(spans[:count])
        return jobs, out

    def _place_first(self, board: kernel.Board, tasks: Ints) -> None:
        """Place the tasks of time 0, grouping processors into servers afterwards if asked.

        Processors are sorted by the end of their work, longest first, within each kind (mei2021
        Algorithm 3: the minimum of idle time); servers take them in platform order.
        """
        fit = self.policy.first_fit or self.policy.fit
        if not self.policy.group:
            self._place(board, tasks, fit, 0.0)
            return
        platform = self.view.problem.platform
        flat = _flat_board(platform)
        jobs, out = self._place(flat, tasks, fit, 0.0)
        out.processor[:] = _seats(platform, flat.free_s)[out.processor]
        kernel.seat(board, jobs, out)

    def _decisions(self, board: kernel.Board, gangs: Ints) -> Decisions:
        platform = self.view.problem.platform
        task = np.concatenate([tasks for tasks, _ in self.placed])
        out = [np.concatenate(parts) for parts in zip(*(o for _, o in self.placed), strict=True)]
        status, processor, start_s, length_s, earliest_s = out
        ok = status == kernel.PLACED
        place = self._segments(task[ok], processor[ok], start_s[ok], length_s[ok])
        reasons = [
            _reason(self.tasks.deadline_s[i], code, earliest)
            for i, code, earliest in zip(task[~ok], status[~ok], earliest_s[~ok], strict=True)
        ]
        reasons += [
            f"needs {k} processors at once; this policy plans single processors"
            for k in self.tasks.processors[gangs]
        ]
        rejected = np.concatenate([task[~ok], gangs])
        power = _power(platform, np.concatenate(self.spans))
        return Decisions(
            place, power, rejected, np.array(reasons, dtype=object), float(board.sleep_at[1])
        )

    def _segments(self, task: Ints, processor: Ints, start_s: Floats, length_s: Floats) -> Segments:
        kind = self.view.problem.platform.kind[processor]
        points = np.ones((task.size, 3))
        for k in range(self.kinds):
            mine = np.flatnonzero(kind == k)
            if mine.size:
                points[mine] = self.policy.lengths.points(self.view, k, task[mine], length_s[mine])
        return Segments.of(task, processor, start_s, start_s + length_s, points)


def _flat_board(platform: Platform) -> kernel.Board:
    """A board where every processor is a server of its own and never falls asleep."""
    p = platform.processor_count
    wake_s = np.where(platform.initially_on, 0.0, platform.wake_s.max(initial=0.0))
    return kernel.new_board(
        platform.kind,
        np.arange(p + 1),
        len(platform.kinds),
        wake_s[platform.server],
        np.full(p, np.inf),
        platform.initially_on[platform.server].astype(np.int64),
    )


def _seats(platform: Platform, free_s: Floats) -> Ints:
    """Where each processor's work goes: the longest first, among processors that are alike."""
    seats = np.arange(platform.processor_count)
    alike = 2 * platform.kind + platform.initially_on[platform.server]
    for group in np.unique(alike):
        mine = np.flatnonzero(alike == group)
        seats[mine[np.argsort(-free_s[mine], kind="stable")]] = mine
    return seats


def _power(platform: Platform, spans: Floats) -> PowerSpans:
    """Turn (server, on, off) rows into waking and on spans."""
    server = spans[:, 0].astype(np.int64)
    wake_s = np.where(
        (spans[:, 1] == 0.0) & platform.initially_on[server], 0.0, platform.wake_s[server]
    )
    ready_s = spans[:, 1] + wake_s
    slow = wake_s > 0.0
    return PowerSpans(
        np.concatenate([server[slow], server]),
        np.concatenate([np.full(int(slow.sum()), WAKING), np.full(server.size, ON)]),
        np.concatenate([spans[slow, 1], ready_s]),
        np.concatenate([ready_s[slow], spans[:, 2]]),
    )


def _reason(deadline_s: float, code: int, earliest_s: float) -> str:
    if not np.isfinite(earliest_s):
        return "no processor of this platform has a profile for it that meets the deadline"
    why = "even at full speed" if code == kernel.NO_TIME else "as every processor is taken"
    return f"cannot end by its deadline {deadline_s:g} s {why}: earliest {earliest_s:g} s"
