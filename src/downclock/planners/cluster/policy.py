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
    CHANGES,
    Facts,
)
from downclock.engine.policy import Columns, Coming, Folded
from downclock.engine.saved import flat, rebuilt
from downclock.engine.view import View
from downclock.errors import InvalidInput
from downclock.kernels.refusals import NOWHERE
from downclock.planners.cluster.batch import (
    FREE_MOVES,
    MOVES_PER_S,
    SMALL,
    alike_chips,
    joined,
    packing,
)
from downclock.planners.cluster.board import (
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
from downclock.planners.cluster.price_choice import (
    SCARCE,
    PriceWatch,
    latest_s,
    must_be_busy,
    pays,
    tariff_for,
)
from downclock.planners.cluster.refused import why_not
from downclock.planners.cluster.search import Batch, Packing
from downclock.planners.cluster.state import State, is_shared, next_event_s
from downclock.planners.cluster.told import told_rows, unbegun
from downclock.planners.cluster.whole_run import WholeRun
from downclock.planners.lists.lengths import OneClock
from downclock.planners.objections import not_continuous
from downclock.planners.portfolio import best_of
from downclock.problem.graph import Edges
from downclock.problem.objective import Objective
from downclock.problem.problem import Problem
from downclock.schedule.schedule import Segments
from downclock.units import Floats, Ints, slack

if TYPE_CHECKING:
    from downclock.planners.cluster.kernels.board import Cluster

PLACED_PER_S = 25.0
"""Tasks placed anew at each event that a second of effort stands for: counted, so that results
repeat; about a second in all where a thousand tasks come."""

MOST_RESERVE = 1000.0
"""A task that may need more than this beyond its estimate has none."""


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

    heeds: ClassVar[frozenset[int]] = CHANGES

    def __post_init__(self) -> None:
        if not 0.0 <= self.effort < float("inf"):
            raise InvalidInput("must be finite and not negative", field="effort", value=self.effort)
        if not 0.0 <= self.reserve <= MOST_RESERVE:
            rule = f"must be between 0 and {MOST_RESERVE:g}"
            raise InvalidInput(rule, field="reserve", value=self.reserve)

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
        watch = PriceWatch(asks=not flat_rate and self.dvfs and self.waits is None)
        return State(board, CurveTables.of(view.platform), watch, np.empty(0, np.int64))

    def decide(self, state: State, view: View, facts: Facts) -> tuple[State, Decisions]:
        """Follow what happened and plan what arrived."""
        new = self._learn(state, view, facts)
        first, state.began = not state.began, True
        if first and facts.closed:
            self.choose_waiting(state, view)
        self.ask_waiting(state, view, new.size, facts.now_s)
        self.begin_reservations(state, view, new, facts.now_s)
        cluster = self.cluster(state, view, new.size)
        revoked = unbegun(state, facts)
        told = told_rows(state, facts, revoked)
        if new.size or told.size or facts.now_s >= next_event_s(state):
            batch = first and facts.closed
            self.happen(state, view, cluster, told, new, facts.now_s, batch=batch)
        decided = self.decisions(state, view, cluster, new)
        return state, replace(decided, revoke=revoked) if revoked.size else decided

    def fold(self, state: State, view: View, coming: Coming) -> tuple[State, Folded] | None:
        """Play a whole run in one loop."""
        new = self.tell(state, view, np.arange(len(coming.tasks)), coming.told_s)
        state.began = True
        return state, WholeRun(self, state, view, coming, new).play()

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
            self.fill(state, view, amended, view.tasks.arrival_s[amended])
        arrived = facts.tasks(ARRIVED)
        return self.tell(state, view, arrived, np.full(arrived.size, facts.now_s))

    def tell(self, state: State, view: View, tasks: Ints, told_s: Floats) -> Ints:
        """Take note of new tasks, told at these times; return those with work, or with edges."""
        if not tasks.size:
            return tasks
        board, heeded = state.board, view.tasks.scale[tasks] > 0.0
        arrival_s = view.tasks.arrival_s[tasks]
        state.seen += tasks.size
        if len(view.edges) > board.edge_count:
            follows = np.isin(tasks, view.edges.after[board.edge_count :])
            self.fill(state, view, tasks, np.where(follows, told_s, arrival_s))
            link(board, _edges_in_order(view.edges, board.edge_count, tasks, told_s))
            heeded |= follows
        else:
            self.fill(state, view, tasks, arrival_s)
        if heeded.all():
            return tasks
        board.tasks["status"][tasks[~heeded]] = DONE
        return tasks[heeded]

    def begin_reservations(self, state: State, view: View, new: Ints, now_s: float) -> None:
        """Keep reservations from the first gang, edge or wait on, or where few tasks come."""
        from downclock.planners.cluster.kernels.shared_moment import share

        board = state.board
        shared = bool(board.tally["shared"][0])
        if not new.size or not (
            shared or is_shared(board, new).any() or self._is_sparse(state, view, new.size, now_s)
        ):
            return
        gang = board.tasks["gang"][new]
        queued = np.ones(0 if shared else int(board.tally["queued"][0]), np.int64)
        running = np.ones(0 if shared else board.processors.size, np.int64)
        make_room_for_gangs(board, np.concatenate([gang, queued, running]))
        if not shared:
            make_queues(board)
            _find_out(state, new, now_s)
            share(self.cluster(state, view, 0), now_s)

    def _is_sparse(self, state: State, view: View, arrived: int, now_s: float) -> bool:
        """Tell whether so few tasks come that they had better wait for each other from now on."""
        from downclock.planners.cluster.kernels.outlook import is_sparse

        if not self.late or state.board.tally["queued"][0]:
            return False
        return bool(is_sparse(self.cluster(state, view, 0), arrived, now_s))

    def fill(self, state: State, view: View, tasks: Ints, arrival_s: Floats) -> None:
        """Take note of tasks that may start from these times on, what precedes them apart."""
        latest, state.work_s = latest_s(view, self.objective, tasks, arrival_s, state.work_s)
        state.curves.learn(
            view, tasks, latest - arrival_s, 1.0 + self.reserve, dvfs=self.dvfs,
            priced=self.objective is not None,
        )  # fmt: skip
        make_room(state.board, int(tasks.max()) + 1)
        table = state.board.tasks
        table["arrival_s"][tasks] = arrival_s
        table["deadline_s"][tasks] = table["due_s"][tasks] = table["latest_s"][tasks] = latest
        all_and_one = view.platform.processor_count + 1  # so many are never there
        table["gang"][tasks] = np.minimum(view.tasks.processors[tasks], all_and_one)
        gang = table["gang"][tasks]
        state.board.kinds[tasks] = state.curves.preferred(view.platform, tasks, gang)

    def cluster(self, state: State, view: View, arrived: int, starts: int = 0) -> Cluster:
        """Everything that a moment works on, with room for decisions."""
        from downclock.planners.cluster.kernels.board import Cluster, Rules

        board = state.board
        processors, servers = board.processors.size, board.servers.size
        board.tally["starts"] = board.tally["switches"] = board.tally["refusals"] = 0
        refusals = arrived + int(board.tally["queued"][0]) + state.homeless.size + processors
        room = room_for(starts + processors, starts + 4 * servers + 4, refusals)
        tables = {name: getattr(board, name) for name in Cluster._fields if hasattr(board, name)}
        return Cluster(
            rules=Rules(self.late, round(self.effort * PLACED_PER_S)),
            curves=state.curves.for_kernels(),
            tariff=tariff_for(view, self.objective).tariff,
            starts=room[0],
            switches=room[1],
            refusals=room[2],
            **tables,
        )

    def choose_waiting(self, state: State, view: View) -> None:
        """All is known: wait for cheap hours if the plan that does is the better one."""
        if state.watch.asks:
            both = [replace(self, waits=waits) for waits in (False, True)]
            best = best_of(view.problem(), both, self.objective)
            state.watch = PriceWatch(asks=False)
            state.board.tally["priced"] = best is both[1]

    def ask_waiting(self, state: State, view: View, arrived: int, now_s: float) -> None:
        """Wait for cheap hours as soon as that pays, by what is known, until room is scarce."""
        if not arrived or not state.watch.is_due(state.seen, now_s):
            return
        assert self.objective is not None
        board, known = state.board, np.arange(state.seen)
        if board.tally["priced"][0]:
            waits = must_be_busy(view, state.curves, board, known, now_s) <= SCARCE
        else:
            waits = pays(view, self.objective, state.curves, board, known, now_s)
        board.tally["priced"] = waits
        state.watch = state.watch.after(state.seen, now_s, waits=waits)

    def happen(
        self, state: State, view: View, cluster: Cluster, told: Ints, new: Ints, now_s: float, *,
        batch: bool,
    ) -> None:  # fmt: skip
        """Play one moment; all that waits is planned together where many tasks come at once.

        ``batch``: these are all tasks that there are.
        """
        from downclock.planners.cluster.kernels.moment import follow, load
        from downclock.planners.cluster.kernels.play import MANY, is_crowd, moment

        tally = state.board.tally
        tally["closed"] |= batch and tally["shared"] > 0
        batch = batch and self.late and not tally["shared"][0]
        worth = new.size >= MANY or bool(new.size and tally["settled"][0])
        if batch or (worth and is_crowd(cluster, new.size)):
            follow(cluster, told, now_s)
            told, packed = told[:0], self._packed(state, view, new, now_s, batch=batch)
            if packed is not None:
                columns = (packed.task, packed.processor, packed.length_s)
                load(cluster, *columns, np.intersect1d(new, packed.task), batch, now_s)
                new = np.setdiff1d(new, packed.task)
        moment(cluster, told, _by_deadline(state, new), now_s)

    def _packed(
        self, state: State, view: View, new: Ints, now_s: float, *, batch: bool
    ) -> Packing | None:
        """Pack what has come with all that waits; None: not all of that would have room."""
        board = state.board
        waits = np.flatnonzero(board.tasks["place"][: board.known] >= 0)
        task = np.sort(np.concatenate([waits, new[board.kinds[new, 0] >= 0]]))
        if not task.size or not alike_chips(view.platform):
            return None
        given = Batch.of(state.curves, board, task, now_s)
        if board.tally["settled"][0]:
            found = joined(given, board.tasks["place"][task])
        else:
            free = FREE_MOVES if batch and task.size <= SMALL else 0
            more = not batch and board.tally["closed"][0] == 0
            found = packing(given, int(MOVES_PER_S * self.effort) + free, more=more)
        return found if found is not None and np.all(np.isin(waits, found.task)) else None

    def decisions(self, state: State, view: View, cluster: Cluster, new: Ints) -> Decisions:
        """What a moment, or a run of them, has decided on tasks that are ``new``, and others."""
        tally, tasks = state.board.tally[0], state.board.tasks
        starts, switches, refusals = (int(tally[n]) for n in ("starts", "switches", "refusals"))
        kept = (tasks["place"][new] >= 0) | (tasks["booked"][new] >= 0)
        accept = new if kept.all() else new[kept]
        if not (starts or switches or refusals):
            return Decisions(accept=accept, call_me_s=next_event_s(state))
        rejected, reasons = self._refused(state, view, cluster, refusals)
        server, on, at_s = _rows(cluster.switches, switches)
        return Decisions(
            place=self._segments(view, state, *_rows(cluster.starts, starts)),
            accept=accept,
            rejected=rejected,
            reason=np.array(reasons, dtype=object),
            power=Switches(server, on > 0, at_s),
            call_me_s=next_event_s(state),
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


def _no_prices(problem: Problem, objective: Objective) -> str | None:
    """Say which prices are missing, or None: they must be known up to the last deadline."""
    try:
        tariff_of(problem, objective)
    except InvalidInput as error:
        return error.rule if error.source is None else f"{error.source}: {error.rule}"
    return None


def _by_deadline(state: State, tasks: Ints) -> Ints:
    if tasks.size < 2:
        return tasks
    return tasks[np.lexsort((tasks, state.board.tasks["deadline_s"][tasks]))]
