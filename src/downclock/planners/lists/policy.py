"""List policies: place tasks one by one. A sentence of parts: order, fit, length, stretch, sleep.

The papers' policies are such sentences (see `catalog`); all run in one kernel, offline, online
and simulated alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from downclock.engine.policy import Decisions, View
from downclock.planners.lists.lengths import LeastEnergy, Lengths
from downclock.planners.lists.order import Order, in_order
from downclock.planners.lists.sleep import Patience, patience_s
from downclock.planners.lists.wanted_lengths import Wishes
from downclock.problem.platform import Platform
from downclock.problem.problem import Problem
from downclock.schedule.schedule import ON, WAKING, PowerSpans, Segments
from downclock.units import Bools, Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.lists.kernels.board import Board, Jobs

Fit: TypeAlias = Literal[
    "soonest", "first", "best", "worst", "fullest", "lightest", "tightest", "loosest"
]
"""Which awake processor: free soonest; the first that fits; of those that fit the one free last,
the one with the least load, the one with the most load; the least loaded one whose load stays at
most 1; of those that fit the one with the greatest, the least peak load. Load is the sum of
utilisations (run time over window); peak load the greatest, over a processor's tasks, of the work
until the task is done over its deadline (mei2021's public code)."""

_FITS: tuple[Fit, ...] = get_args(Fit)


class State(NamedTuple):
    """State of a list policy between runs."""

    board: Board
    fresh: bool


@dataclass(frozen=True, slots=True)
class ListPolicy:
    """Place each task when it arrives, on the processor the fit rule prefers.

    Where none fits a sleeping server is woken; where none sleeps the task is shortened as far as
    it takes, and rejected if even that fails.

    Attributes:
        name: name in the catalogue.
        order: order among tasks that arrive together.
        fit: which awake processor.
        lengths: the run time a task wants.
        theta: how far a task may be shortened to fit, as a part of its length (mei2021 Def. 2).
        patience: how long an idle server stays awake (the papers' rho).
        group: tasks that are there at time 0 are placed on processors first and the processors
            grouped into servers afterwards, by length (mei2021 Algorithms 2 and 3).
        prior_alone: at time 0, tasks whose deadline binds come first, each on a fresh processor.
        first_fit: fit rule for the tasks at time 0, where it differs (mei2021 Algorithm 6).
        slot_s: tasks start at multiples of this; 0: any time.
    """

    name: str
    order: Order = "deadline"
    fit: Fit = "soonest"
    lengths: Lengths = field(default_factory=LeastEnergy)
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
        from downclock.planners.lists.kernels.board import new_board

        platform = view.problem.platform
        board = new_board(
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


class _Run:
    """One call of a list policy: prepares columns, calls the kernel, collects decisions."""

    def __init__(self, policy: ListPolicy, view: View) -> None:
        self.policy, self.view = policy, view
        self.tasks = view.problem.tasks
        self.wishes = Wishes.of(policy.lengths, view)
        self.task: list[Ints] = []
        self.placed: list[Floats] = []
        self.spans: list[Floats] = []

    def go(self, state: State, arrived: Ints, until_s: float) -> tuple[State, Decisions]:
        """Place the tasks of time 0, then the others, then let servers fall asleep."""
        gangs = arrived[self.tasks.processors[arrived] > 1]
        rest = arrived[(self.tasks.processors[arrived] == 1) & (self.tasks.scale[arrived] > 0.0)]
        at_zero = self.tasks.arrival_s[rest] == 0.0
        if state.fresh and at_zero.any():
            self._place_first(state.board, rest[at_zero])
            rest = rest[~at_zero]
        self._place(state.board, rest, self.policy.fit, until_s)
        fresh = state.fresh and arrived.size == 0
        return State(state.board, fresh), self._decisions(state.board, gangs)

    def _place(
        self, board: Board, tasks: Ints, fit: Fit, until_s: float, alone: Bools | None = None
    ) -> tuple[Jobs, Floats]:
        """Call the kernel on ``tasks`` and keep what it says."""
        from downclock.planners.lists.kernels import board as kernel

        alone = np.zeros(tasks.size, dtype=bool) if alone is None else alone
        arrival_s, deadline_s = self.tasks.arrival_s[tasks], self.tasks.deadline_s[tasks]
        best_s = self.wishes.best_s[tasks]
        rank = in_order(self.policy.order, arrival_s, deadline_s, best_s, ~alone)
        ordered = tasks[rank]
        jobs = self.wishes.jobs(self.view, ordered, alone[rank])
        out = np.zeros((5, ordered.size))
        spans = np.zeros((1 + ordered.size + int(board.servers[kernel.AWAKE].sum()), 3))
        rules = kernel.Rules(_FITS.index(fit), self.policy.theta, self.policy.slot_s)
        kernel.place_run(board, jobs, rules, out, spans, until_s)
        self.task.append(ordered)
        self.placed.append(out)
        self.spans.append(spans[1 : 1 + int(spans[0, 0])])
        if until_s == np.inf:
            self.spans.append(kernel.still_awake(board))
        return jobs, out

    def _place_first(self, board: Board, tasks: Ints) -> None:
        """Place the tasks of time 0, grouping processors into servers afterwards if asked.

        Processors are sorted by the end of their work, longest first, among those that are alike
        (mei2021 Algorithm 3: the minimum of idle time); servers take them in platform order.
        """
        from downclock.planners.lists.kernels import board as kernel

        fit = self.policy.first_fit or self.policy.fit
        alone = self.wishes.binding[tasks] & self.policy.prior_alone
        if not self.policy.group:
            self._place(board, tasks, fit, 0.0, alone)
            return
        platform = self.view.problem.platform
        flat = _flat_board(platform)
        jobs, out = self._place(flat, tasks, fit, 0.0, alone)
        seats = _seats(platform, kernel.free_s(flat))
        out[kernel.PROCESSOR] = seats[out[kernel.PROCESSOR].astype(np.int64)]
        kernel.seat(board, jobs, _FITS.index(fit), out)

    def _decisions(self, board: Board, gangs: Ints) -> Decisions:
        from downclock.planners.lists.kernels import board as kernel

        task = np.concatenate(self.task)
        status, processor, start_s, length_s, earliest_s = np.concatenate(self.placed, axis=1)
        ok = status == kernel.PLACED
        seat = processor[ok].astype(np.int64)
        place = self._segments(task[ok], seat, start_s[ok], length_s[ok])
        refused = np.flatnonzero(~ok)
        reasons = [
            _reason(self.tasks.deadline_s[task[i]], status[i] == kernel.NO_TIME, earliest_s[i])
            for i in refused
        ]
        reasons += [
            f"needs {k} processors at once; this policy plans single processors"
            for k in self.tasks.processors[gangs]
        ]
        return Decisions(
            place,
            _power(self.view.problem.platform, np.concatenate(self.spans)),
            np.concatenate([task[refused], gangs]),
            np.array(reasons, dtype=object),
            kernel.next_sleep_s(board),
        )

    def _segments(self, task: Ints, processor: Ints, start_s: Floats, length_s: Floats) -> Segments:
        platform, lengths = self.view.problem.platform, self.policy.lengths
        if len(platform.kinds) == 1:
            points = lengths.points(self.view, 0, task, length_s)
        else:
            kind, points = platform.kind[processor], np.ones((task.size, 3))
            for k in range(len(platform.kinds)):
                mine = np.flatnonzero(kind == k)
                if mine.size:
                    points[mine] = lengths.points(self.view, k, task[mine], length_s[mine])
        end_s = np.minimum(start_s + length_s, self.tasks.deadline_s[task])  # rounding is not late
        return Segments.of(task, processor, start_s, end_s, points)


def _flat_board(platform: Platform) -> Board:
    """A board where every processor is a server of its own and never falls asleep."""
    from downclock.planners.lists.kernels.board import new_board

    p = platform.processor_count
    return new_board(
        platform.kind,
        np.arange(p + 1),
        len(platform.kinds),
        platform.wake_s[platform.server],
        np.full(p, np.inf),
        platform.initially_on[platform.server].astype(np.int64),
    )


def _seats(platform: Platform, free_s: Floats) -> Ints:
    """Where each processor's work goes: the longest first, among processors that are alike."""
    seats = np.arange(platform.processor_count)
    work_s = np.where(np.isfinite(free_s), free_s, -1.0)
    server = platform.server
    traits = (platform.kind, platform.initially_on[server], platform.wake_s[server])
    _, alike = np.unique(np.column_stack(traits), axis=0, return_inverse=True)
    for group in range(int(alike.max()) + 1):
        mine = np.flatnonzero(alike == group)
        seats[mine[np.argsort(-work_s[mine], kind="stable")]] = mine
    return seats


def _power(platform: Platform, spans: Floats) -> PowerSpans:
    """Turn (server, on, off) rows into waking and on spans; on at -1: awake from the start."""
    server = spans[:, 0].astype(np.int64)
    begin_s = np.maximum(spans[:, 1], 0.0)
    wake_s = np.where(spans[:, 1] < 0.0, 0.0, platform.wake_s[server])
    slow = wake_s > 0.0
    return PowerSpans(
        np.concatenate([server[slow], server]),
        np.concatenate([np.full(int(slow.sum()), WAKING), np.full(server.size, ON)]),
        np.concatenate([begin_s[slow], begin_s + wake_s]),
        np.concatenate([(begin_s + wake_s)[slow], spans[:, 2]]),
    )


def _reason(deadline_s: float, too_tight: bool, earliest_s: float) -> str:
    if not np.isfinite(earliest_s):
        return "no processor of this platform has a profile for it"
    why = "even at full speed" if too_tight else "as every processor is taken"
    return f"cannot end by its deadline {deadline_s:g} s {why}: earliest {earliest_s:g} s"
