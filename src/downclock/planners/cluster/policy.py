"""Our planner: every task goes where it adds least to the energy, or to the value, of the plan.

``late`` plans what has not started anew as things happen; ``prompt`` answers an arrival for good;
``thrifty`` also waits for hours in which a joule is worth less. All three are this policy on one
board (`kernels.board`), told what happens moment by moment, or played in one loop where nothing
but arrivals and ends can happen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from downclock.engine.decisions import Decisions, Switches, no_segments
from downclock.engine.facts import (
    AMENDED,
    ARRIVED,
    CANCELLED,
    DOWN,
    FAILED,
    FINISHED,
    LOST,
    SERVER_DOWN,
    SERVER_UP,
    UP,
    Facts,
)
from downclock.engine.policy import Columns, Coming, Folded
from downclock.engine.saved import flat, rebuilt
from downclock.engine.view import View
from downclock.errors import InvalidInput
from downclock.kernels.least_tree import new_trees
from downclock.kernels.refusals import NOWHERE
from downclock.planners.cluster.batch import packing
from downclock.planners.cluster.board import (
    Board,
    link,
    make_queues,
    make_room,
    make_room_for_gangs,
    new_board,
    room_for,
)
from downclock.planners.cluster.columns import CurveTables
from downclock.planners.cluster.kernels.status import DONE, GONE, OPEN, UNTOLD
from downclock.planners.cluster.price_bound import tariff_of
from downclock.planners.cluster.price_choice import PriceWatch, latest_s, pays, tariff_for
from downclock.planners.cluster.refused import why_not
from downclock.planners.cluster.search import Packing
from downclock.planners.lists.lengths import OneClock
from downclock.planners.objections import not_continuous
from downclock.planners.orphans import with_orphans
from downclock.planners.portfolio import best_of
from downclock.problem.graph import Edges
from downclock.problem.objective import Objective
from downclock.problem.problem import Problem
from downclock.schedule.schedule import Segments
from downclock.units import Bools, Floats, Ints, slack

if TYPE_CHECKING:
    from downclock.planners.cluster.kernels.board import Cluster

PLACED_PER_S = 25.0
"""Tasks placed anew at each event that a second of effort stands for: counted, so that results
repeat; about a second in all where a thousand tasks come."""

CROWD = 3.0
"""So many times the processors of a server must wait or run before less than all of the time that
it is kept awake longer counts as idle; the more tasks there are, the less, as others fill it."""

CHUNK = 65_536
"""Starts written before they are collected."""


@dataclass(slots=True)
class State:
    """What the policy remembers: the board, columns of the tasks told, and when to ask on prices.

    ``homeless`` are accepted tasks that nothing working can run; ``seen`` is how many tasks were
    told.
    """

    board: Board
    curves: CurveTables
    watch: PriceWatch
    homeless: Ints
    work_s: float = 0.0
    seen: int = 0
    began: bool = False


@dataclass(frozen=True, slots=True)
class ClusterPolicy:
    """Plan every known task on awake servers by what it adds to the value of the plan.

    Attributes:
        name: name in the catalogue.
        late: what has not started may be planned anew (late binding); else an arrival is
            answered at once and for good.
        effort: seconds of search, for a batch or spread over the events of a thousand tasks.
        reserve: accepted tasks are on time while no task needs more than ``1 + reserve`` of its
            estimate and nothing fails. The clock is fast enough for that; what is not needed is
            reclaimed when a task ends.
        objective: what a joule is worth, by zone and time; None: energy itself.
        dvfs: False runs at default clocks.
        waits: whether tasks wait for cheap hours where an objective is given; None: where it pays.
    """

    name: str = "late"
    late: bool = True
    effort: float = 0.0
    reserve: float = 0.0
    objective: Objective | None = None
    dvfs: bool = True
    waits: bool | None = None

    heeds: ClassVar[frozenset[int]] = frozenset(
        (ARRIVED, FINISHED, LOST, FAILED, CANCELLED, AMENDED, DOWN, UP, SERVER_DOWN, SERVER_UP)
    )

    def __post_init__(self) -> None:
        for field in ("effort", "reserve"):
            value = getattr(self, field)
            if not 0.0 <= value < float("inf"):
                raise InvalidInput("must be finite and not negative", field=field, value=value)

    def objection(self, problem: Problem) -> str | None:
        """Continuous time, on processors with clocks of their own."""
        if self.objective is None:
            return not_continuous(problem)
        return not_continuous(problem) or _no_prices(problem, self.objective)

    def start(self, view: View) -> State:
        """An empty plan."""
        board = new_board(view.platform, late=self.late)
        flat_rate = self.objective is None or tariff_for(view, self.objective).is_flat
        if not flat_rate and (self.waits or not self.dvfs):
            board.tally["priced"] = 1
            board.attend = _attention(view.platform.initially_on)
        watch = PriceWatch(asks=not flat_rate and self.dvfs and self.waits is None)
        return State(board, CurveTables.of(view.platform), watch, np.empty(0, np.int64))

    def decide(self, state: State, view: View, facts: Facts) -> tuple[State, Decisions]:
        """Follow what happened and plan what arrived."""
        from downclock.planners.cluster.kernels.moment import moment
        from downclock.planners.cluster.kernels.shared_moment import shared_moment

        new = self._learn(state, view, facts)
        self._share(state, view, new, facts.now_s)
        first, state.began = not state.began, True
        if first and facts.closed:
            self._choose(state, view)
        self._ask(state, view, new.size, facts.now_s)
        cluster = self.cluster(state, view, new.size)
        revoked = _unbegun(state, facts)
        told = _told(state, facts, revoked)
        packed = self._packed(state, view, new) if first and facts.closed else None
        if packed is not None:
            _load(cluster, packed, facts.now_s, new)
        elif new.size or told.size or facts.now_s >= _next_s(state):
            happen = shared_moment if state.board.tally["shared"][0] else moment
            happen(cluster, told, _by_deadline(state, new), facts.now_s)
        decided = self._decisions(state, view, cluster, new)
        return state, replace(decided, revoke=revoked) if revoked.size else decided

    def fold(self, state: State, view: View, coming: Coming) -> tuple[State, Folded] | None:
        """Play a whole run in one loop."""
        new = self._told_of(state, view, np.arange(len(coming.tasks)), coming.told_s)
        state.began = True
        return state, _Run(self, state, view, coming, new).play()

    def saved(self, state: State) -> Columns:
        """The state as arrays by name."""
        return flat(state)

    def restored(self, view: View, columns: Columns) -> State:
        """The state from its arrays."""
        return rebuilt(self.start(view), columns)

    def _learn(self, state: State, view: View, facts: Facts) -> Ints:
        """Take note of new tasks and new deadlines; return tasks with work."""
        amended = facts.tasks(AMENDED)
        if amended.size:
            self._fill(state, view, amended, view.tasks.arrival_s[amended])
        arrived = facts.tasks(ARRIVED)
        return self._told_of(state, view, arrived, np.full(arrived.size, facts.now_s))

    def _told_of(self, state: State, view: View, tasks: Ints, told_s: Floats) -> Ints:
        """Take note of new tasks, told at these times; return those with work, or with edges."""
        if not tasks.size:
            return tasks
        board, works = state.board, view.tasks.scale[tasks] > 0.0
        follows = np.isin(tasks, view.edges.after[board.edge_count :])
        self._fill(state, view, tasks, np.where(follows, told_s, view.tasks.arrival_s[tasks]))
        state.seen += tasks.size
        link(board, _edges_in_order(view.edges, board.edge_count, tasks, told_s))
        board.tasks["status"][tasks[~follows & ~works]] = DONE
        return tasks[works | follows]

    def _share(self, state: State, view: View, new: Ints, now_s: float) -> None:
        """Keep reservations of groups of processors from the first gang or edge on."""
        from downclock.planners.cluster.kernels.shared_moment import share

        if not new.size:
            return
        board = state.board
        gang = board.tasks["gang"][new]
        shared = bool(board.tally["shared"][0])
        if not shared and not np.any(_is_shared(board, new)):
            return
        begins = np.ones(0 if shared else int(board.tally["queued"][0]), np.int64)
        running = np.ones(0 if shared else board.processors.size, np.int64)
        make_room_for_gangs(board, np.concatenate([gang, begins, running]))
        if not shared:
            make_queues(board)
            _find_out(state, new, now_s)
            share(self.cluster(state, view, 0), now_s)

    def _fill(self, state: State, view: View, tasks: Ints, arrival_s: Floats) -> None:
        """Take note of tasks that may start from these times on, what precedes them apart."""
        latest, state.work_s = latest_s(view, self.objective, tasks, arrival_s, state.work_s)
        state.curves.learn(
            view, tasks, latest - arrival_s, 1.0 + self.reserve, dvfs=self.dvfs,
            priced=self.objective is not None,
        )  # fmt: skip
        make_room(state.board, int(tasks.max()) + 1)
        state.board.tasks["arrival_s"][tasks] = arrival_s
        state.board.tasks["deadline_s"][tasks] = state.board.tasks["due_s"][tasks] = latest
        state.board.tasks["latest_s"][tasks] = latest
        all_and_one = view.platform.processor_count + 1  # so many are never there
        gang = np.minimum(view.tasks.processors[tasks], all_and_one)
        state.board.tasks["gang"][tasks] = gang
        state.board.kinds[tasks] = state.curves.preferred(view.platform, tasks)

    def cluster(self, state: State, view: View, arrived: int, starts: int = 0) -> Cluster:
        """Everything that a moment works on, with room for decisions."""
        from downclock.planners.cluster.kernels.board import Cluster, Rules

        board = state.board
        processors, servers = board.processors.size, board.servers.size
        board.tally["starts"] = board.tally["switches"] = board.tally["refusals"] = 0
        refusals = arrived + int(board.tally["queued"][0]) + state.homeless.size + processors
        room = room_for(starts + processors, starts + 4 * servers + 4, refusals)
        return Cluster(
            rules=Rules(self.late, round(self.effort * PLACED_PER_S), CROWD),
            processors=board.processors,
            servers=board.servers,
            tasks=board.tasks,
            kinds=board.kinds,
            curves=state.curves.for_kernels(),
            tariff=tariff_for(view, self.objective).tariff,
            tally=board.tally,
            awake_servers=board.awake_servers,
            busy=board.busy,
            asleep=board.asleep,
            attend=board.attend,
            from_s=board.from_s,
            to_s=board.to_s,
            arrival_history=board.arrival_history,
            groups=board.groups,
            lanes=board.lanes,
            items=board.items,
            pools=board.pools,
            pool_groups=board.pool_groups,
            holes=board.holes,
            freeing=board.freeing,
            queues=board.queues,
            spans=board.spans,
            edges=board.edges,
            mates=board.mates,
            starts=room[0],
            switches=room[1],
            refusals=room[2],
        )

    def _choose(self, state: State, view: View) -> None:
        """All is known: wait for cheap hours if the plan that does is the better one."""
        if state.watch.asks:
            both = [replace(self, waits=waits) for waits in (False, True)]
            best = best_of(view.problem(), both, self.objective)
            state.watch = PriceWatch(asks=False)
            if best is both[1]:
                self._begin_to_wait(state, view, 0.0)

    def _ask(self, state: State, view: View, arrived: int, now_s: float) -> None:
        """Begin to wait for cheap hours as soon as that pays, by what is known."""
        if not arrived or not state.watch.is_due(state.seen, now_s):
            return
        assert self.objective is not None
        known = np.arange(state.seen)
        if pays(view, self.objective, state.curves, state.board, known, now_s):
            state.watch = PriceWatch(asks=False)
            self._begin_to_wait(state, view, now_s)
        else:
            state.watch = state.watch.after(state.seen, now_s)

    def _begin_to_wait(self, state: State, view: View, now_s: float) -> None:
        """Let tasks wait for cheap hours from now on."""
        from downclock.planners.cluster.kernels.moment import take_over

        if state.board.tally["shared"][0]:
            state.board.tally["priced"] = 1
        else:
            take_over(self.cluster(state, view, 0), now_s)

    def _packed(self, state: State, view: View, tasks: Ints) -> Packing | None:
        """Pack all of a batch with care; None: it has to be planned task by task."""
        if not self.late or state.board.tally["priced"][0] or state.board.tally["shared"][0]:
            return None
        return packing(view.platform, state.curves, state.board, tasks, self.effort)

    def _decisions(self, state: State, view: View, cluster: Cluster, new: Ints) -> Decisions:
        """What a moment, or a run of them, has decided on tasks that are ``new``, and others."""
        tally = state.board.tally[0]
        starts, switches, refusals = (int(tally[n]) for n in ("starts", "switches", "refusals"))
        rows = state.board.tasks[new]
        accept = new[(rows["place"] >= 0) | (rows["booked"] >= 0)] if new.size else new
        if not (starts or switches or refusals):
            return Decisions(accept=accept, call_me_s=_next_s(state))
        rejected, reasons = self._refused(state, view, cluster, refusals)
        server, on, at_s = _rows(cluster.switches, switches)
        return Decisions(
            place=self._segments(view, state, *_rows(cluster.starts, starts)),
            accept=accept,
            rejected=rejected,
            reason=np.array(reasons, dtype=object),
            power=Switches(server, on > 0, at_s),
            call_me_s=_next_s(state),
        )

    def _refused(
        self, state: State, view: View, cluster: Cluster, count: int
    ) -> tuple[Ints, list[str]]:
        """Tasks refused for good and why; those that nothing working can run are kept."""
        task, why, earliest_s = _rows(cluster.refusals, count)
        if not count:
            return task, []
        gone, most, tasks = why != NOWHERE, np.bincount(view.platform.kind).max(), state.board.tasks
        blamed = np.where(tasks["blames"][task] >= 0, tasks["blames"][task], task)
        earliest_s = np.where(view.tasks.processors[blamed] > most, np.inf, earliest_s)
        state.homeless = np.concatenate([state.homeless, task[~gone]])
        tasks["status"][task[gone]] = GONE
        columns = zip(task[gone], blamed[gone], why[gone], earliest_s[gone], strict=True)
        return task[gone], [
            why_not(view, i, b, int(code), end_s, tasks["latest_s"][b])
            for i, b, code, end_s in columns
        ]

    def _segments(
        self, view: View, state: State, task: Ints, processor: Ints, start_s: Floats,
        length_s: Floats,
    ) -> Segments:  # fmt: skip
        """What was started, with the end that estimates say."""
        if not task.size:
            return no_segments()
        stretch = 1.0 + self.reserve
        kind, points = view.platform.kind[processor], np.ones((task.size, 3))
        for k in range(len(view.platform.kinds)):
            mine = np.flatnonzero(kind == k)
            if mine.size and self.dvfs:
                front = view.frontier(k, task[mine], stretch)
                points[mine] = front.at(length_s[mine]).points
            elif mine.size:
                points[mine] = OneClock().points(view, k, task[mine], length_s[mine] / stretch)
        end_s, due_s = start_s + length_s / stretch, state.board.tasks["deadline_s"][task]
        late = (end_s > due_s) & (end_s <= due_s + slack(due_s))
        return Segments.of(task, processor, start_s, np.where(late, due_s, end_s), points)


def _rows(table: Any, count: int) -> tuple[Any, ...]:
    """The first rows of a table of decisions, column by column."""
    return tuple(table[:count][name].copy() for name in table.dtype.names)


class _Run:
    """A run that is played in one loop, in chunks."""

    def __init__(
        self, policy: ClusterPolicy, state: State, view: View, coming: Coming, new: Ints
    ) -> None:
        self.policy, self.state, self.view, self.coming = policy, state, view, coming
        tasks = state.board.tasks
        rank = np.lexsort((new, tasks["deadline_s"][new], tasks["arrival_s"][new]))
        self.order = new[rank]
        self.ends = new_trees(np.full((1, view.platform.processor_count), np.inf))
        self.parts: list[Decisions] = []

    def play(self) -> Folded:
        """Play to the end."""
        at = self._begin_batch()
        while True:
            until_s = min(self._next_question_s(at), self._first_gang_s(at))
            at = self._play_until(at, until_s)
            if until_s == np.inf:
                break
            self._pause(at, until_s)
        decided = with_orphans(_joined(self.parts), self.view)
        return Folded(decided, self._real_s(decided.place))

    def _first_gang_s(self, at: int) -> float:
        """When the first gang, or a task that follows another, comes, if none has."""
        board, rest = self.state.board, self.order[at:]
        if board.tally["shared"][0]:
            return np.inf
        return float(board.tasks["arrival_s"][rest[_is_shared(board, rest)]].min(initial=np.inf))

    def _pause(self, at: int, now_s: float) -> None:
        """Do what a moment begins with: reservations for gangs, the question of cheap hours."""
        known = int(np.searchsorted(self.coming.told_s, now_s, side="right"))
        rest = self.order[at:]
        self.policy._share(self.state, self.view, self._now(rest, now_s), now_s)
        if self.state.board.tally["shared"][0]:
            gang = self.state.board.tasks["gang"][rest]
            make_room_for_gangs(self.state.board, gang)
        if self.state.watch.asks:
            self._question(known, now_s)

    def _now(self, tasks: Ints, now_s: float) -> Ints:
        return tasks[self.state.board.tasks["arrival_s"][tasks] <= now_s]

    def _begin_batch(self) -> int:
        """Where all is there at time 0, plan it at once; return how many tasks have come."""
        arrival_s = self.state.board.tasks["arrival_s"][self.order]
        if not self.coming.closed or not self.order.size or np.any(arrival_s > 0.0):
            return 0
        self.policy._share(self.state, self.view, self.order, 0.0)
        self.policy._choose(self.state, self.view)
        packed = self.policy._packed(self.state, self.view, np.sort(self.order))
        if packed is None:
            return 0
        cluster = self.policy.cluster(self.state, self.view, self.order.size)
        _load(cluster, packed, 0.0, np.sort(self.order))
        self._collect(cluster)
        keys = np.full((1, self.view.platform.processor_count), np.inf)
        begun = self.parts[-1].place
        keys[0, begun.processor] = self._real_s(begun)
        self.ends = new_trees(keys)
        return int(self.order.size)

    def _real_s(self, place: Segments) -> Floats:
        """When rows really end."""
        work, start_s, end_s = self.coming.work[place.task], place.start_s, place.end_s
        return np.where(work == 1.0, end_s, start_s + (end_s - start_s) * work)

    def _question(self, seen: int, now_s: float) -> None:
        whole, self.state.seen = self.state.seen, seen
        self.policy._ask(self.state, self.view, 1, now_s)
        self.state.seen = whole

    def _next_question_s(self, at: int) -> float:
        """When to ask next whether waiting pays, if ever."""
        watch, arrival_s = self.state.watch, self.coming.told_s[self.order[at:]]
        if not watch.asks or not arrival_s.size:
            return np.inf
        known = np.searchsorted(self.coming.told_s, arrival_s, side="right")
        due = np.flatnonzero((known >= watch.enough) | (arrival_s >= watch.next_s))
        return float(arrival_s[due[0]]) if due.size else np.inf

    def _play_until(self, at: int, until_s: float) -> int:
        """Play moments before ``until_s``; return the next task to come."""
        from downclock.planners.cluster.kernels.moment import is_full, run
        from downclock.planners.cluster.kernels.shared_moment import run_shared

        if self._rests_until(at, until_s):
            return at
        play = run_shared if self.state.board.tally["shared"][0] else run
        while True:
            cluster = self._chunk(self.order.size - at)
            at += play(
                cluster, self.coming.work, self.policy.reserve, self.ends, self.order[at:], until_s
            )
            self._collect(cluster)
            if not is_full(cluster):
                return at

    def _rests_until(self, at: int, until_s: float) -> bool:
        """Tell whether nothing can happen before then."""
        first = self.state.board.tasks["arrival_s"][self.order[at : at + 1]].min(initial=np.inf)
        return until_s < np.inf and until_s <= min(first, _next_s(self.state), self.ends[0, 1])

    def _chunk(self, left: int) -> Cluster:
        queued = int(self.state.board.tally["queued"][0])
        rows = min(CHUNK, 2 * left + queued + 64)
        return self.policy.cluster(self.state, self.view, left, rows)

    def _collect(self, cluster: Cluster) -> None:
        """Keep what was decided."""
        none = np.empty(0, np.int64)
        self.parts.append(self.policy._decisions(self.state, self.view, cluster, none))


def _joined(parts: list[Decisions]) -> Decisions:
    """All decisions of a run in one."""
    from downclock.engine.decisions import joined_segments

    power = [part.power for part in parts]
    none = np.empty(0, np.int64)
    return Decisions(
        place=joined_segments([part.place for part in parts]),
        rejected=np.concatenate([none, *(part.rejected for part in parts)]),
        reason=np.concatenate([np.array([], dtype=object), *(part.reason for part in parts)]),
        power=Switches(
            np.concatenate([none, *(part.server for part in power)]),
            np.concatenate([np.empty(0, bool), *(part.on for part in power)]),
            np.concatenate([np.empty(0), *(part.at_s for part in power)]),
        ),
    )  # fmt: skip


def _is_shared(board: Board, tasks: Ints) -> Bools:
    """Tell which tasks need reservations: gangs, and those that follow others (m,)."""
    return np.asarray((board.tasks["gang"][tasks] > 1) | (board.tasks["follows"][tasks] >= 0))


def _edges_in_order(edges: Edges, known: int, tasks: Ints, told_s: Floats) -> Edges:
    """Edges that were not known, in the order in which they are told with the later task."""
    when_s = np.zeros(int(tasks.max()) + 1)
    when_s[tasks] = told_s
    before, after = edges.before[known:], edges.after[known:]
    order = np.argsort(when_s[after], kind="stable")
    return Edges(before[order], after[order])


def _find_out(state: State, new: Ints, now_s: float) -> None:
    """Say of tasks that came before there were edges which are open and which are done."""
    board = state.board
    told = np.flatnonzero(board.tasks["arrival_s"][: state.seen] <= now_s)
    old = np.setdiff1d(told, new)
    old = old[board.tasks["status"][old] == UNTOLD]
    board.tasks["status"][old] = np.where(board.tasks["place"][old] >= 0, OPEN, DONE)
    running = board.processors["running"]
    board.tasks["status"][running[running >= 0]] = OPEN
    board.tasks["status"][state.homeless] = OPEN


def _attention(on: Bools) -> Floats:
    """Servers that are awake where prices count are looked at from time 0 on."""
    return new_trees(np.where(on, 0.0, np.inf)[None, :])


def _no_prices(problem: Problem, objective: Objective) -> str | None:
    """Say which prices are missing, or None: they must be known up to the last deadline."""
    try:
        tariff_of(problem, objective)
    except InvalidInput as error:
        return error.rule if error.source is None else f"{error.source}: {error.rule}"
    return None


def _next_s(state: State) -> float:
    """When something happens by itself: what runs should end, or a server needs attention."""
    return float(min(state.board.busy[0, 1], state.board.attend[0, 1]))


def _by_deadline(state: State, tasks: Ints) -> Ints:
    if tasks.size < 2:
        return tasks
    return tasks[np.lexsort((tasks, state.board.tasks["deadline_s"][tasks]))]


def _load(cluster: Cluster, packed: Packing, now_s: float, tasks: Ints) -> None:
    """Plan a batch as it was packed; what has no room is refused."""
    from downclock.planners.cluster.kernels.moment import load, refuse_all

    load(cluster, packed.task, packed.processor, packed.length_s, now_s)
    left = np.setdiff1d(tasks, packed.task)
    if left.size:
        refuse_all(cluster, left, now_s)


def _told(state: State, facts: Facts, unbegun: Ints) -> Ints:
    """Facts as the kernel takes them: what fails first, what is cut, then ends, by processor."""
    from downclock.planners.cluster.kernels import moment as kernel

    cut = {fact.task for fact in facts.rows if fact.code == CANCELLED}
    shared = bool(state.board.tally["shared"][0])
    rows = [(kernel.AGAIN, task, -1) for task in sorted(set(unbegun.tolist()) - cut)]
    for fact in facts.rows:
        if fact.code in (FINISHED, FAILED, LOST, CANCELLED):
            at = fact.place if fact.place >= 0 else _where(state, fact.task)
            if fact.code in (CANCELLED, FAILED) and not shared:
                state.board.tasks["status"][fact.task] = GONE
            if fact.code == CANCELLED or (fact.code == FAILED and shared):
                rows.append((kernel.CUT, fact.task, at))
            elif at >= 0 and not (fact.code == LOST and shared):
                rows.append((kernel.FREED, fact.task, at))
        if fact.code == LOST:
            rows.append((kernel.AGAIN, fact.task, -1))
        if fact.code == AMENDED and fact.task not in cut:
            rows.append((kernel.CHANGED, fact.task, -1))
        if fact.code in _MACHINES:
            rows.append((getattr(kernel, _MACHINES[fact.code]), -1, fact.place))
    if state.homeless.size:
        state.homeless = np.array([task for task in state.homeless if task not in cut], np.int64)
        if any(row[0] in (kernel.RETURNED, kernel.SERVER_BACK) for row in rows):
            rows += [(kernel.AGAIN, int(task), -1) for task in state.homeless]
            state.homeless = state.homeless[:0]
    rank = {kernel.GONE: 0, kernel.SERVER_GONE: 0, kernel.CUT: 1, kernel.FREED: 2}
    rows.sort(key=lambda row: (rank.get(row[0], 3), row[2], row[1]))
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


_MACHINES = {DOWN: "GONE", UP: "RETURNED", SERVER_DOWN: "SERVER_GONE", SERVER_UP: "SERVER_BACK"}


def _unbegun(state: State, facts: Facts) -> Ints:
    """Tasks that were to begin on a processor that fails now, when its server would be awake."""
    down, servers = facts.places(DOWN), facts.places(SERVER_DOWN)
    if not down.size and not servers.size:
        return down
    processors = state.board.processors
    hit = np.isin(processors["server"], servers)
    hit[down] = True
    ahead = hit & (processors["running"] >= 0) & (processors["begun_s"] > facts.now_s)
    return np.unique(processors["running"][ahead])


def _where(state: State, task: int) -> int:
    """Processor that a task runs on, or -1."""
    found = np.flatnonzero(state.board.processors["running"] == task)
    return int(found[0]) if found.size else -1
