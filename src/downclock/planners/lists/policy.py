"""List policies: place tasks one by one. A sentence of parts: order, fit, length, stretch, sleep.

The papers' policies are such sentences (see `catalog`). A task is promised a processor and a start
when it comes; the board keeps what is promised and follows what really happens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np

from downclock.columns import taken
from downclock.engine.decisions import Decisions, Switches
from downclock.engine.facts import (
    AMENDED,
    ARRIVED,
    CANCELLED,
    CHANGES,
    DOWN,
    FAILED,
    FINISHED,
    LOST,
    ORPHANED,
    OVERDUE,
    SERVER_DOWN,
    SERVER_UP,
    UP,
    Facts,
)
from downclock.engine.policy import Coming, Folded, MomentByMoment
from downclock.engine.reasons import why_refused
from downclock.engine.view import View
from downclock.kernels.records import Records, filled
from downclock.kernels.refusals import NO_ROOM
from downclock.planners.lists.kernels import board as boards
from downclock.planners.lists.kernels import react as kernel
from downclock.planners.lists.kernels.board import PLACED, REFUSED, Board, Jobs, Lists, Rules
from downclock.planners.lists.kernels.place import place_run, take_seats
from downclock.planners.lists.lengths import LeastEnergy, Lengths
from downclock.planners.lists.order import Order, in_order
from downclock.planners.lists.sleep import Patience, patience_s
from downclock.planners.lists.wanted_lengths import (
    binding,
    first_choice,
    holds,
    no_jobs,
    with_edges,
    with_new,
    with_wishes,
)
from downclock.planners.lists.windows import windows, with_windows
from downclock.planners.objections import not_continuous
from downclock.planners.orphans import with_orphans
from downclock.problem.graph import Edges
from downclock.problem.platform import Platform
from downclock.problem.problem import Problem
from downclock.schedule.schedule import Segments
from downclock.units import Floats, Ints, ranges

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
        board, jobs: see the kernel.
        overdue: processors whose task does not end as believed.
        edges: how many edges were told.
        began: anything was told.
    """

    board: Board
    jobs: Jobs
    overdue: Ints
    edges: int = 0
    began: bool = False


@dataclass(frozen=True, slots=True)
class ListPolicy(MomentByMoment):
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

    heeds: ClassVar[frozenset[int]] = CHANGES - {FINISHED} | {OVERDUE}

    def objection(self, problem: Problem) -> str | None:
        """List policies plan in continuous time, each processor with a clock of its own."""
        return not_continuous(problem)

    def start(self, view: View) -> State:
        """An empty board."""
        platform = view.platform
        servers, wait_s = np.arange(platform.server_count), patience_s(self.patience, platform)
        board = _board(platform, platform.first_processor, servers, wait_s)
        overdue = np.zeros(platform.processor_count, np.int64)
        return State(board, no_jobs(len(platform.kinds)), overdue)

    def decide(self, state: State, view: View, facts: Facts) -> tuple[State, Decisions]:
        """Place what arrived; follow what happened."""
        arrived = self._learn(state, view, facts)
        told = _told(state, facts)
        lists = self._lists(state)
        if not state.began and facts.now_s == 0.0:
            self._place_first(state, view, arrived, lists)
            arrived = arrived[:0]
        state.began = True
        kernel.moment(lists, told, self._in_order(state, arrived), facts.now_s)
        refused = _keep_hoping(state, lists, facts.now_s)
        return state, self._decisions(state, view, lists, refused, facts.now_s)

    def fold(self, state: State, view: View, coming: Coming) -> tuple[State, Folded] | None:
        """Place all tasks in one go, where every one ends as promised."""
        if np.any(coming.work != 1.0):
            return None
        arrived = self._told_of(state, view, np.arange(len(coming.tasks)), coming.told_s)
        lists = self._lists(state, int(state.jobs.tasks["processors"][arrived].sum()))
        at_zero = coming.told_s[arrived] == 0.0
        self._place_first(state, view, arrived[at_zero], lists)
        place_run(lists, self._in_order(state, arrived[~at_zero]), np.inf)
        decided = self._decisions(state, view, lists, lists.refused[: lists.counts[2]], np.inf)
        return state, Folded(with_orphans(decided, view), decided.place.end_s)

    def _rules(self, fit: Fit) -> Rules:
        return Rules(_FITS.index(fit), self.theta, self.slot_s)

    def _lists(self, state: State, played: int = 0) -> Lists:
        """Everything that a moment works on, with room for an answer; or a run of moments.

        ``played`` is how many processors the tasks of a run take: each may wake a server.
        """
        n, processors = state.jobs.tasks.size, state.board.processors.size
        return Lists(
            self._rules(self.fit),
            **state.board._asdict(),
            **state.jobs._asdict(),
            counts=np.zeros(5, np.int64),
            placed=np.empty(n, PLACED),  # only what is written takes memory
            revoked=np.empty(n, np.int64),
            refused=np.empty(n, REFUSED),
            switches=np.empty((2 * (played + state.board.servers.size) + 2, 3)),
            scratch=np.empty(processors),
            late=np.empty(n, np.int64),
            listed=np.zeros(processors + 1, np.int64),
        )

    def _learn(self, state: State, view: View, facts: Facts) -> Ints:
        """Take note of new tasks and new deadlines; return new tasks with work."""
        amended, arrived = facts.tasks(AMENDED), facts.tasks(ARRIVED)
        if amended.size:
            state.jobs = with_wishes(state.jobs, self.lengths, view, amended, amended)
        if not arrived.size:
            return arrived
        return self._told_of(state, view, arrived, np.full(arrived.size, facts.now_s))

    def _told_of(self, state: State, view: View, tasks: Ints, told_s: Floats) -> Ints:
        """Take note of new tasks, told at these times, and of what precedes them."""
        edges = taken(view.edges, slice(state.edges, None))
        state.edges = len(view.edges)
        state.jobs = with_new(state.jobs, view, tasks, told_s)
        if len(edges):
            self._share_time(state, view, tasks, edges)
        else:
            state.jobs = with_wishes(state.jobs, self.lengths, view, tasks, tasks)
        state.jobs = with_edges(state.jobs, edges, tasks)
        table = state.jobs.tasks
        if self.order != "given":
            key = first_choice(state.jobs, tasks)[1] if self.order == "longest" else None
            table["key"][tasks] = table["deadline_s"][tasks] if key is None else -key
        return tasks[view.tasks.scale[tasks] > 0.0]

    def _share_time(self, state: State, view: View, tasks: Ints, edges: Edges) -> None:
        """Tasks of a graph want as long as their share of the time allows."""
        place = np.full(len(view.tasks), -1)
        place[tasks] = np.arange(tasks.size)
        inside = (place[edges.before] >= 0) & (place[edges.after] >= 0)
        known = Edges(place[edges.before[inside]], place[edges.after[inside]])
        kinds = range(len(view.platform.kinds))
        each_s = np.array([view.frontier(k, tasks).t_min_s for k in kinds]).T
        fastest_s = np.where(holds(view, tasks), each_s, np.inf).min(axis=1)
        fastest_s = np.where(view.tasks.scale[tasks] > 0.0, fastest_s, 0.0)
        table = state.jobs.tasks
        deadline_s = view.tasks.deadline_s[tasks]
        found = windows(known, table["told_s"][tasks], deadline_s, fastest_s)
        rows, shared = np.arange(tasks.size), with_windows(view, tasks, found)
        state.jobs = with_wishes(state.jobs, self.lengths, shared, rows, tasks)
        table["deadline_s"][tasks] = found.latest_s

    def _in_order(self, state: State, tasks: Ints) -> Ints:
        """Tasks in the order in which they are placed."""
        jobs = state.jobs
        _, best_s = first_choice(jobs, tasks)
        alone = jobs.tasks["alone"][tasks] == 1
        told_s, deadline_s = jobs.tasks["told_s"][tasks], jobs.tasks["deadline_s"][tasks]
        return tasks[in_order(self.order, told_s, deadline_s, best_s, ~alone)]

    def _place_first(self, state: State, view: View, tasks: Ints, lists: Lists) -> None:
        """Place the tasks of time 0, grouping processors into servers afterwards if asked.

        Processors are sorted by the end of their work, longest first, among those that are alike
        (mei2021 Algorithm 3: the minimum of idle time); servers take them in platform order.
        Gangs have to be on one server from the beginning: where any is there, nothing is grouped;
        nor where tasks follow each other.
        """
        if not tasks.size:
            return
        table = state.jobs.tasks
        single = (table["processors"][tasks] == 1) & (table["waits_for"][tasks] == 0)
        if self.prior_alone:
            alone = binding(self.lengths, view, state.jobs, tasks)
            state.jobs.tasks["alone"][tasks] = alone & single
        order = self._in_order(state, tasks)
        lists = lists._replace(rules=self._rules(self.first_fit or self.fit))
        if not (self.group and single.all()):
            place_run(lists, order, 0.0)
            return
        p = view.platform.processor_count  # every processor is a server that never sleeps
        board = _board(view.platform, np.arange(p + 1), view.platform.server, np.full(p, np.inf))
        copied = {name: getattr(state.jobs, name).copy() for name in ("tasks", "nodes", "due")}
        apart = State(board, state.jobs._replace(**copied), state.overdue)
        trial = self._lists(apart, tasks.size)._replace(rules=lists.rules)
        place_run(trial, order, 0.0)
        rows = trial.placed[: trial.counts[0]]
        rows["processor"] = _seats(view.platform, board)[rows["processor"]]
        take_seats(lists, rows)
        lists.refused[: trial.counts[2]] = trial.refused[: trial.counts[2]]
        lists.counts[2] = trial.counts[2]

    def _decisions(
        self, state: State, view: View, lists: Lists, refused: Records, now_s: float
    ) -> Decisions:
        latest_s = state.jobs.tasks["deadline_s"][refused["task"]]  # so that others can follow
        columns = [refused["task"], refused["why"], refused["earliest_s"], latest_s]
        rows = zip(*(column.tolist() for column in columns), strict=True)
        reasons = [why_refused(view, *row) for row in rows]
        moves = lists.switches[: lists.counts[3]]
        power = Switches(moves[:, 0].astype(np.int64), moves[:, 1] > 0.0, moves[:, 2].copy())
        return Decisions(
            place=self._segments(view, *_rows(lists)),
            eager=self.slot_s == 0.0,
            revoke=np.sort(lists.revoked[: lists.counts[1]]),
            rejected=refused["task"].copy(),
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


def _rows(lists: Lists) -> tuple[Ints, Ints, Floats, Floats]:
    """Task, processor, start and length of what is promised, in order; a gang has several rows."""
    rows = lists.placed[: lists.counts[0]]
    if lists.counts[4] > lists.counts[0] or lists.counts[1]:
        rows = rows[np.argsort(rows["order"])]
        rows = rows[rows["processor"] >= 0]
    task, processor = rows["task"].copy(), rows["processor"].copy()
    start_s, length_s = rows["start_s"].copy(), rows["length_s"].copy()
    many = lists.tasks["processors"][task]
    if np.all(many == 1):
        return task, processor, start_s, length_s
    of, node = np.repeat(np.arange(task.size), many), ranges(lists.tasks["node"][task], many)
    processor = np.where(many[of] == 1, processor[of], lists.nodes["lane"][node])
    return task[of], processor, start_s[of], length_s[of]


_KINDS = {
    FINISHED: kernel.FREED, FAILED: kernel.STOPPED, LOST: kernel.STOPPED, OVERDUE: kernel.OVER,
    DOWN: kernel.GONE, UP: kernel.RETURNED, CANCELLED: kernel.CUT, ORPHANED: kernel.CUT,
    SERVER_DOWN: kernel.SERVER_GONE, SERVER_UP: kernel.SERVER_BACK,
}  # fmt: skip


def _told(state: State, facts: Facts) -> Ints:
    """Facts as the kernel takes them; a lost task, or one with another deadline, is placed anew."""
    rows: list[tuple[int, int, int]] = []
    overdue, cut = state.overdue.copy(), facts.tasks(CANCELLED)
    for fact in facts.rows:
        if fact.code in _KINDS:
            at = fact.place if fact.place >= 0 else _where(state, fact.task)
            if at >= 0 or fact.code in (CANCELLED, ORPHANED):
                rows.append((_KINDS[fact.code], fact.task, at))
        if fact.code in (CANCELLED, ORPHANED):  # it is never ready
            state.jobs.tasks["waits_for"][fact.task] += 1
        if fact.code == LOST:
            rows.append((kernel.MOVED, fact.task, -1))
        if fact.code == AMENDED and fact.task not in cut:
            rows.append((kernel.CHANGED, fact.task, -1))
        if fact.code in (FINISHED, FAILED, LOST, OVERDUE, CANCELLED) and fact.place >= 0:
            state.overdue[fact.place] = fact.code == OVERDUE
    late = np.flatnonzero(overdue & state.overdue)  # still so, and by now longer than believed
    processors = state.board.processors
    for p in late[processors["ready_s"][late] <= facts.now_s]:
        rows.append((kernel.OVER, int(processors["running"][p]), int(p)))
    first = (kernel.GONE, kernel.SERVER_GONE, kernel.CUT)  # so that nothing of it starts
    rows.sort(key=lambda row: first.index(row[0]) if row[0] in first else len(first))
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def _where(state: State, task: int) -> int:
    """Processor that a task runs on, or -1."""
    found = np.flatnonzero(state.board.processors["running"] == task)
    return int(found[0]) if found.size else -1


def _keep_hoping(state: State, lists: Lists, now_s: float) -> Records:
    """Keep what was refused while it could still be on time; return what is rejected for good."""
    hopes = state.jobs.hopes
    known = hopes[1 : 1 + hopes[0]]
    end_s = now_s + _fastest_s(state.jobs, known)
    still = filled(known.size, REFUSED, task=known, why=NO_ROOM, earliest_s=end_s)
    rows = np.concatenate([still, lists.refused[: lists.counts[2]]])
    gone = ~(_latest_start_s(state.jobs, rows["task"]) > now_s)  # what can never run, too
    kept = rows["task"][~gone]
    hopes[0], hopes[1 : 1 + kept.size] = kept.size, kept
    return rows[gone]


def _latest_start_s(jobs: Jobs, tasks: Ints) -> Floats:
    """When each task has to start at the latest to be on time, on any kind (m,); NaN: never."""
    with np.errstate(invalid="ignore"):  # no deadline, and nothing that could run it
        return np.asarray(jobs.tasks["deadline_s"][tasks] - _fastest_s(jobs, tasks))


def _fastest_s(jobs: Jobs, tasks: Ints) -> Floats:
    return np.asarray(jobs.curves["shortest_s"][tasks].min(axis=1, initial=np.inf))


def _next_call_s(state: State, now_s: float) -> float:
    """When to be asked again: a server falls asleep, a gang starts, hope ends, another overrun."""
    tired_s = max(float(state.board.trees[-1, 1]), np.nextafter(now_s, np.inf))  # after time 0
    calls_s = [tired_s, *state.jobs.due[:, 1].tolist()]
    hopes = state.jobs.hopes[1 : 1 + state.jobs.hopes[0]]
    if hopes.size:
        calls_s.append(float(_latest_start_s(state.jobs, hopes).min()))
    if state.overdue.any():
        calls_s.append(float(state.board.processors["ready_s"][state.overdue == 1].min()))
    return min((call_s for call_s in calls_s if call_s > now_s), default=np.inf)


def _board(platform: Platform, first: Ints, server: Ints, wait_s: Floats) -> Board:
    """A board with a server from each of the processors ``first`` on; ``server`` is like which."""
    on, wake_s = platform.initially_on[server].astype(np.int64), platform.wake_s[server]
    return boards.new_board(platform.kind, first, len(platform.kinds), wake_s, wait_s, on)


def _seats(platform: Platform, board: Board) -> Ints:
    """Where each processor's work goes: the longest first, among processors that are alike."""
    seats, on = np.arange(platform.processor_count), platform.initially_on
    free_s = board.trees[platform.kind, board.trees.shape[1] // 2 + seats]  # infinite: asleep
    work_s = np.where(np.isfinite(free_s), free_s, -1.0)
    server = platform.server
    traits = np.column_stack([platform.kind, on[server], platform.wake_s[server]])
    alike = np.unique(traits, axis=0, return_inverse=True)[1].ravel()
    for group in np.unique(alike):
        mine = np.flatnonzero(alike == group)
        seats[mine[np.argsort(-work_s[mine], kind="stable")]] = mine
    return seats
