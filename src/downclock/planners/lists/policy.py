"""List policies: place tasks one by one. A sentence of parts: order, fit, length, stretch, sleep.

The papers' policies are such sentences (see `catalog`). A task is promised a processor and a start
when it comes; the board keeps what is promised and follows what really happens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from downclock.engine.decisions import Decisions, Switches
from downclock.engine.facts import (
    AMENDED,
    ARRIVED,
    CANCELLED,
    DOWN,
    FAILED,
    FINISHED,
    LOST,
    OVERDUE,
    SERVER_DOWN,
    SERVER_UP,
    UP,
    Facts,
)
from downclock.engine.policy import Columns, Coming, Folded
from downclock.engine.reasons import GANG, why_refused
from downclock.engine.saved import flat, rebuilt
from downclock.engine.tasks import grown
from downclock.engine.view import View
from downclock.planners.lists.lengths import LeastEnergy, Lengths
from downclock.planners.lists.order import Order, in_order
from downclock.planners.lists.sleep import Patience, patience_s
from downclock.planners.lists.wanted_lengths import binding, first_choice, no_jobs, with_tasks
from downclock.problem.platform import Platform
from downclock.problem.problem import Problem
from downclock.schedule.schedule import Segments
from downclock.units import Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.lists.kernels.board import Answer, Board, Jobs, Queue, Rules

Fit: TypeAlias = Literal[
    "soonest", "first", "best", "worst", "fullest", "lightest", "tightest", "loosest"
]
"""Which awake processor: free soonest; the first that fits; of those that fit the one free last,
the one with the least load, the one with the most load; the least loaded one whose load stays at
most 1; of those that fit the one with the greatest, the least peak load. Load is the sum of
utilisations (run time over window); peak load the greatest, over a processor's tasks, of the work
until the task is done over its deadline (mei2021's public code)."""

_FITS: tuple[Fit, ...] = get_args(Fit)


@dataclass(slots=True)
class State:
    """State of a list policy.

    Attributes:
        board, queue, jobs: see the kernel.
        hopes: tasks without a place that may still get one, ``lost`` those to be placed anew;
            their number stands first.
        overdue: processors whose task does not end as believed.
        began: anything was told.
    """

    board: Board
    queue: Queue
    jobs: Jobs
    hopes: Ints
    lost: Ints
    overdue: Ints
    began: bool = False


@dataclass(frozen=True, slots=True)
class ListPolicy:
    """Place each task when it arrives, on the processor the fit rule prefers.

    Where none fits a sleeping server is woken; where none sleeps the task is shortened as far as
    it takes, and refused if even that fails. It is rejected when it could not be on time any more:
    until then a processor that is free sooner than promised takes it.

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
        slot_s: tasks start at multiples of this; 0: any time. Such a policy knows no early ends:
            `engine.keeping` keeps what it promises.
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

    heeds: ClassVar[frozenset[int]] = frozenset(
        (ARRIVED, LOST, FAILED, CANCELLED, AMENDED, OVERDUE, DOWN, UP, SERVER_DOWN, SERVER_UP)
    )

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

        platform = view.platform
        board = new_board(
            platform.kind,
            platform.first_processor,
            len(platform.kinds),
            platform.wake_s,
            patience_s(self.patience, platform),
            platform.initially_on.astype(np.int64),
        )
        none, number = np.zeros(1, np.int64), np.zeros(platform.processor_count, np.int64)
        return State(board, _no_queue(), no_jobs(len(platform.kinds)), none, none.copy(), number)

    def decide(self, state: State, view: View, facts: Facts) -> tuple[State, Decisions]:
        """Place what arrived; follow what happened."""
        from downclock.planners.lists.kernels.react import moment

        arrived, gangs = self._learn(state, view, facts)
        told = _told(state, facts)
        answer = _room(state, arrived.size, told.shape[0])
        if not state.began and facts.now_s == 0.0:
            self._place_first(state, view, arrived, answer)
            arrived = arrived[:0]
        state.began = True
        order = self._in_order(state, arrived)
        rules = self._rules(self.fit)
        moment(
            state.board, state.queue, state.jobs, rules, told, state.hopes, state.lost, order,
            facts.now_s, answer,
        )  # fmt: skip
        refused = _keep_hoping(state, answer, facts.now_s)
        return state, self._decisions(state, view, answer, refused, gangs, facts.now_s)

    def fold(self, state: State, view: View, coming: Coming) -> tuple[State, Folded] | None:
        """Place all tasks in one go, where every one ends as promised."""
        from downclock.planners.lists.kernels.board import place_run

        if np.any(coming.work != 1.0):
            return None
        tasks = np.arange(len(coming.tasks))
        arrived, gangs = self._told_of(state, view, tasks)
        answer = _room(state, arrived.size)
        at_zero = view.tasks.arrival_s[arrived] == 0.0
        self._place_first(state, view, arrived[at_zero], answer)
        order = self._in_order(state, arrived[~at_zero])
        rules = self._rules(self.fit)
        place_run(state.board, state.queue, state.jobs, rules, order, np.inf, answer)
        refused = _refused(answer)
        decided = self._decisions(state, view, answer, refused, gangs, np.inf)
        return state, Folded(decided, decided.place.end_s)

    def saved(self, state: State) -> Columns:
        """The state as arrays by name."""
        return flat(state)

    def restored(self, view: View, columns: Columns) -> State:
        """The state from its arrays."""
        return rebuilt(self.start(view), columns)

    def _rules(self, fit: Fit) -> Rules:
        from downclock.planners.lists.kernels.board import Rules

        return Rules(_FITS.index(fit), self.theta, self.slot_s)

    def _learn(self, state: State, view: View, facts: Facts) -> tuple[Ints, Ints]:
        """Take note of new tasks and new deadlines; return single tasks with work, and gangs."""
        amended = facts.tasks(AMENDED)
        if amended.size:
            state.jobs = with_tasks(state.jobs, self.lengths, view, amended)
        return self._told_of(state, view, facts.tasks(ARRIVED))

    def _told_of(self, state: State, view: View, tasks: Ints) -> tuple[Ints, Ints]:
        if tasks.size:
            state.jobs = with_tasks(state.jobs, self.lengths, view, tasks)
            state.queue = _grown(state.queue, int(tasks.max()) + 1)
        work = tasks[view.tasks.scale[tasks] > 0.0]
        several = view.tasks.processors[work] > 1
        return work[~several], work[several]

    def _in_order(self, state: State, tasks: Ints) -> Ints:
        """Tasks in the order in which they are placed."""
        jobs = state.jobs
        _, best_s = first_choice(jobs, tasks)
        alone = jobs.alone[tasks] == 1
        arrival_s, deadline_s = jobs.arrival_s[tasks], jobs.deadline_s[tasks]
        return tasks[in_order(self.order, arrival_s, deadline_s, best_s, ~alone)]

    def _place_first(self, state: State, view: View, tasks: Ints, answer: Answer) -> None:
        """Place the tasks of time 0, grouping processors into servers afterwards if asked.

        Processors are sorted by the end of their work, longest first, among those that are alike
        (mei2021 Algorithm 3: the minimum of idle time); servers take them in platform order.
        """
        from downclock.planners.lists.kernels.board import free_s, place_run, take_seats

        if not tasks.size:
            return
        jobs, rules = state.jobs, self._rules(self.first_fit or self.fit)
        if self.prior_alone:
            jobs.alone[tasks] = binding(self.lengths, view, jobs, tasks)
        order = self._in_order(state, tasks)
        if not self.group:
            place_run(state.board, state.queue, jobs, rules, order, 0.0, answer)
            return
        flat_board = _flat_board(view.platform)
        trial = _room(state, tasks.size)
        queue = _grown(_no_queue(), int(tasks.max()) + 1)
        place_run(flat_board, queue, jobs, rules, order, 0.0, trial)
        m = int(trial.counts[0])
        processor = _seats(view.platform, free_s(flat_board))[trial.processor[:m]]
        take_seats(
            state.board, state.queue, jobs, rules, trial.task[:m], processor, trial.start_s[:m],
            trial.length_s[:m], answer,
        )  # fmt: skip
        _append_refusals(answer, trial)

    def _decisions(
        self,
        state: State,
        view: View,
        answer: Answer,
        refused: tuple[Ints, Ints, Floats],
        gangs: Ints,
        now_s: float,
    ) -> Decisions:
        last = _last_of_each(answer.task[: answer.counts[0]])
        rows = (answer.task, answer.processor, answer.start_s, answer.length_s)
        columns: list[Any] = [column[last] for column in rows]
        place = self._segments(view, *columns)
        task, why, earliest_s = refused
        deadline_s = view.tasks.deadline_s
        reasons = [
            why_refused(deadline_s[i], int(code), end_s)
            for i, code, end_s in zip(task, why, earliest_s, strict=True)
        ]
        reasons += [GANG.format(k) for k in view.tasks.processors[gangs]]
        moves = answer.switch[: answer.counts[3]]
        power = Switches(moves[:, 0].astype(np.int64), moves[:, 1] > 0.0, moves[:, 2].copy())
        return Decisions(
            place=place,
            eager=self.slot_s == 0.0,
            revoke=np.unique(answer.revoked[: answer.counts[1]]),
            rejected=np.concatenate([task, gangs]),
            reason=np.array(reasons, dtype=object),
            power=power,
            call_me_s=_next_call_s(state, now_s),
        )

    def _segments(
        self, view: View, task: Ints, processor: Ints, start_s: Floats, length_s: Floats
    ) -> Segments:
        platform = view.platform
        kind, points = platform.kind[processor], np.ones((task.size, 3))
        for k in range(len(platform.kinds)):
            mine = np.flatnonzero(kind == k)
            if mine.size:
                points[mine] = self.lengths.points(view, k, task[mine], length_s[mine])
        end_s, due_s = start_s + length_s, view.tasks.deadline_s[task]
        over = end_s - due_s  # what is late by rounding is on time
        end_s = np.where((over > 0.0) & (over <= 1e-9 * np.maximum(1.0, due_s)), due_s, end_s)
        return Segments.of(task, processor, start_s, end_s, points)


def _last_of_each(task: Ints) -> Ints:
    """Where each task stands last, in this order: what is promised twice is promised anew."""
    backwards = np.unique(task[::-1], return_index=True)[1]
    return np.sort(task.size - 1 - backwards)


def _no_queue() -> Queue:
    from downclock.planners.lists.kernels.board import Queue

    none, number = np.empty(0, np.int64), np.empty(0)
    return Queue(after=none, before=none, place=none, start_s=number, length_s=number)


def _grown(queue: Queue, size: int) -> Queue:
    """The queue with room for so many tasks."""
    return queue._replace(
        after=grown(queue.after, size, -1),
        before=grown(queue.before, size, -1),
        place=grown(queue.place, size, -1),
        start_s=grown(queue.start_s, size, np.inf),
        length_s=grown(queue.length_s, size, 0.0),
    )


def _room(state: State, arrived: int, told: int = 0) -> Answer:
    """Room for what one call may decide: each thing told may move all that waits."""
    from downclock.planners.lists.kernels.board import Answer

    waiting = int((state.queue.place >= 0).sum()) if state.began else 0
    m = 3 * (waiting + arrived + told + int(state.hopes[0] + state.lost[0])) * (1 + told) + 8
    for name in ("hopes", "lost"):
        setattr(state, name, grown(getattr(state, name), m, 0))
    whole, number = np.zeros((5, m), np.int64), np.zeros((3, m))
    return Answer(
        counts=np.zeros(4, np.int64),
        task=whole[0],
        processor=whole[1],
        start_s=number[0],
        length_s=number[1],
        revoked=whole[2],
        refused=whole[3],
        why=whole[4],
        earliest_s=number[2],
        switch=np.zeros((2 * m + 2 * int(state.board.awake.sum()), 3)),
    )


_KINDS = {
    FINISHED: "FREED", FAILED: "FREED", LOST: "FREED", OVERDUE: "OVER", DOWN: "GONE",
    UP: "RETURNED", CANCELLED: "CUT", SERVER_DOWN: "SERVER_GONE", SERVER_UP: "SERVER_BACK",
}  # fmt: skip


def _told(state: State, facts: Facts) -> Ints:
    """Facts as the kernel takes them; a lost task, or one with another deadline, is placed anew."""
    from downclock.planners.lists.kernels import react as kernel

    rows: list[tuple[int, int, int]] = []
    overdue, cut = state.overdue.copy(), facts.tasks(CANCELLED)
    for fact in facts.rows():
        if fact.code in _KINDS:
            at = fact.place if fact.place >= 0 else _where(state, fact.task)
            if at >= 0 or fact.code == CANCELLED:
                rows.append((getattr(kernel, _KINDS[fact.code]), fact.task, at))
        if fact.code == LOST:
            rows.append((kernel.MOVED, fact.task, -1))
        if fact.code == AMENDED and fact.task not in cut:
            rows.append((kernel.CHANGED, fact.task, -1))
        if fact.code in (FINISHED, FAILED, LOST, OVERDUE, CANCELLED) and fact.place >= 0:
            state.overdue[fact.place] = fact.code == OVERDUE
    late = np.flatnonzero(overdue & state.overdue)  # still so, and by now longer than believed
    for p in late[state.board.ready_s[late] <= facts.now_s]:
        rows.append((kernel.OVER, int(state.board.running[p]), int(p)))
    first = (kernel.GONE, kernel.SERVER_GONE, kernel.CUT)  # so that nothing of it starts
    rows.sort(key=lambda row: first.index(row[0]) if row[0] in first else len(first))
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def _where(state: State, task: int) -> int:
    """Processor that a task runs on, or -1."""
    found = np.flatnonzero(state.board.running == task)
    return int(found[0]) if found.size else -1


def _keep_hoping(state: State, answer: Answer, now_s: float) -> tuple[Ints, Ints, Floats]:
    """Keep what was refused while it could still be on time; return what is rejected for good."""
    task, why, earliest_s = _refused(answer)
    known = state.hopes[1 : 1 + state.hopes[0]]
    task, gone = np.concatenate([known, task]), np.zeros(known.size + task.size, dtype=bool)
    why = np.concatenate([np.full(known.size, 2), why])
    earliest_s = np.concatenate([_least_end_s(state, known, now_s), earliest_s])
    gone = _latest_start_s(state.jobs, task) <= now_s
    kept = task[~gone]
    state.hopes = grown(state.hopes, kept.size + 1, 0)
    state.hopes[0], state.hopes[1 : 1 + kept.size] = kept.size, kept
    return task[gone], why[gone], earliest_s[gone]


def _refused(answer: Answer) -> tuple[Ints, Ints, Floats]:
    m = int(answer.counts[2])
    return answer.refused[:m].copy(), answer.why[:m].copy(), answer.earliest_s[:m].copy()


def _append_refusals(answer: Answer, other: Answer) -> None:
    m = int(other.counts[2])
    for name in ("refused", "why", "earliest_s"):
        getattr(answer, name)[:m] = getattr(other, name)[:m]
    answer.counts[2] = m


def _latest_start_s(jobs: Jobs, tasks: Ints) -> Floats:
    """When each task has to start at the latest to be on time, on any kind (m,)."""
    return np.asarray(jobs.deadline_s[tasks] - jobs.shortest_s[tasks].min(axis=1, initial=np.inf))


def _least_end_s(state: State, tasks: Ints, now_s: float) -> Floats:
    return np.asarray(now_s + state.jobs.shortest_s[tasks].min(axis=1, initial=np.inf))


def _next_call_s(state: State, now_s: float) -> float:
    """When to be asked again: a server falls asleep, hope ends, something is overdue again."""
    call_s = float(state.board.trees[-1, 1])
    hopes = state.hopes[1 : 1 + state.hopes[0]]
    if hopes.size:
        call_s = min(call_s, float(_latest_start_s(state.jobs, hopes).min()))
    if state.overdue.any():
        call_s = min(call_s, float(state.board.ready_s[state.overdue == 1].min()))
    return call_s if call_s > now_s else np.inf


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
