"""Our policies: plan every known task on awake servers by what it adds to the energy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from downclock.engine.policy import Decisions, View
from downclock.planners.cluster.batch import packing
from downclock.planners.cluster.columns import curves_of, up_w
from downclock.planners.cluster.reserve import set_ratio, with_reserve
from downclock.planners.cluster.search import Packing
from downclock.problem.platform import Platform
from downclock.problem.problem import Problem
from downclock.schedule.schedule import ON, WAKING, PowerSpans, Segments
from downclock.units import Floats, Ints, slack

if TYPE_CHECKING:
    from downclock.planners.cluster.kernels import plan as kernel


PLACED_PER_S = 50_000.0
"""Tasks placed anew that a second of effort stands for: counted, so that results repeat."""


@dataclass(frozen=True, slots=True)
class PlanPolicy:
    """Append each task to the processor where it adds least to the energy of the plan.

    Attributes:
        name: name in the catalogue.
        late: what has not started may be planned anew (late binding); else an arrival is
            answered at once and for good.
        effort: seconds of search, for a batch or spread evenly over the events online.
        reserve: accepted tasks are on time while no task needs more than ``1 + reserve`` of its
            estimate and nothing fails.
    """

    name: str = "late"
    late: bool = True
    effort: float = 0.0
    reserve: float = 0.0

    def objection(self, problem: Problem) -> str | None:
        """Independent tasks in continuous time on processors with clocks of their own."""
        if len(problem.edges):
            return "the tasks form a graph; this policy plans independent tasks"
        if problem.platform.slot_s is not None:
            return "the platform is slotted; this policy plans in continuous time"
        if np.any(np.bincount(problem.platform.chip) > 1):
            return "processors share a clock; this policy sets each clock by itself"
        return None

    def start(self, view: View) -> kernel.Plan:
        """An empty plan."""
        from downclock.planners.cluster.kernels.plan import new_plan

        platform = view.problem.platform
        state = new_plan(
            platform.kind,
            platform.first_processor,
            len(platform.kinds),
            platform.wake_s,
            platform.wake_j,
            up_w(platform),
            platform.sleep_w,
            platform.initially_on.astype(np.int64),
            len(view.problem.tasks),
            self.late,
        )
        set_ratio(state, 1.0, self.reserve)
        state.tally[8] = round(self.effort * PLACED_PER_S / max(2 * len(view.problem.tasks), 1))
        return state

    def run(
        self, state: kernel.Plan, view: View, arrived: Ints, until_s: float
    ) -> tuple[kernel.Plan, Decisions]:
        """Plan ``arrived``; the state is updated in place."""
        from downclock.planners.cluster.kernels.events import run_plan

        asked = with_reserve(view, self.reserve)
        tasks, trace = asked.problem.tasks, trace_of(asked)
        able, gangs = self._able(asked, arrived)
        if self.late and able.size and not np.any(tasks.arrival_s):
            packed = packing(asked, trace.kinds[:, 0] >= 0, self.effort)
            if packed is not None:
                decided = _batch(asked, trace, packed, gangs)
                return state, carried_out(state, asked, decided)
        order = able[np.lexsort((able, tasks.deadline_s[able], tasks.arrival_s[able]))]
        out = _room(state, able.size)
        run_plan(state, trace, curves_of(asked), self.late, out, order, until_s)
        return state, decisions(asked, trace, _written(state, out), gangs, state.ratio)

    def roll(self, view: View, work: Floats) -> Decisions:
        """Decide on everything while tasks end as they really do."""
        state = self.start(view)
        set_ratio(state, work, self.reserve)
        arrival_s = view.problem.tasks.arrival_s
        return self.run(state, view, np.argsort(arrival_s, kind="stable"), np.inf)[1]

    def _able(self, view: View, arrived: Ints) -> tuple[Ints, Ints]:
        """Split what arrived into tasks to place and gangs; what has no work needs no place."""
        tasks = view.problem.tasks
        work = arrived[tasks.scale[arrived] > 0.0]
        return work[tasks.processors[work] == 1], work[tasks.processors[work] > 1]


def trace_of(view: View) -> kernel.Trace:
    """The tasks as the kernels see them; nothing is decided yet."""
    from downclock.planners.cluster.kernels import plan as kernel

    tasks, n = view.problem.tasks, len(view.problem.tasks)
    return kernel.Trace(
        tasks.arrival_s, tasks.deadline_s, kinds_of(view), np.zeros(n, np.int64), np.zeros(n)
    )


def _room(state: kernel.Plan, more: int) -> kernel.Written:
    """Room for what a run decides on ``more`` tasks and those that are planned."""
    from downclock.planners.cluster.kernels import plan as kernel

    m = int((state.place >= 0).sum()) + more
    counts, times = np.zeros((2, m), np.int64), np.zeros((2, m))
    spans = np.zeros((2 * m + int(state.tally[0]) + 1, 3))
    state.tally[1:3] = 0
    return kernel.Written(counts[0], counts[1], times[0], times[1], spans)


def _written(state: kernel.Plan, out: kernel.Written) -> kernel.Written:
    """What was written of the room."""
    m, rows = int(state.tally[1]), int(state.tally[2])
    return out._replace(
        task=out.task[:m],
        processor=out.processor[:m],
        start_s=out.start_s[:m],
        length_s=out.length_s[:m],
        span=out.span[:rows],
    )


def carried_out(state: kernel.Plan, asked: View, decided: Decisions) -> Decisions:
    """What becomes of a plan of everything: itself, or what follows from tasks' real ends.

    The state is done after that: nothing is left to decide.
    """
    from downclock.planners.cluster.kernels.events import run_plan

    if np.all(state.ratio[decided.place.task] == 1.0):
        _close(state)
        return decided
    place, trace, curves = decided.place, trace_of(asked), curves_of(asked)
    rank = np.lexsort((place.start_s, place.processor))
    task, processor = place.task[rank], place.processor[rank]
    kind = asked.problem.platform.kind[processor]
    length_s, _ = asked.problem.at(task, kind, place.points[rank])
    out = _room(state, task.size)
    _load(state, task, processor, length_s)
    run_plan(state, trace, curves, True, out, np.empty(0, np.int64), np.inf)
    none = np.empty(0, np.int64)
    followed = decisions(asked, trace, _written(state, out), none, state.ratio)
    return replace(followed, rejected=decided.rejected, reason=decided.reason)


def _load(state: kernel.Plan, task: Ints, processor: Ints, length_s: Floats) -> None:
    """Put rows (m,), by processor and in running order, into an empty plan; nothing more comes.

    A processor begins its first task when its server is awake, which is an event like an end.
    """
    from downclock.kernels.least_tree import new_trees

    used = np.unique(state.server[processor])
    fresh = used[state.awake[used] == 0]
    ready_s = np.zeros(state.wake_s.size)
    ready_s[fresh] = state.wake_s[fresh]
    at = int(state.tally[0])
    state.up[at : at + fresh.size], state.seat[fresh] = fresh, at + np.arange(fresh.size)
    state.awake[fresh] = 1
    leaves = state.asleep[:, state.asleep.shape[1] // 2 :].copy()
    leaves[:, fresh] = np.inf
    state.asleep[:] = new_trees(leaves)
    state.tally[0] += fresh.size
    state.tally[6] += int(np.diff(state.first)[fresh].sum())
    state.ready_s[:] = state.real_s[:] = state.end_s[:] = ready_s[state.server]
    np.add.at(state.end_s, processor, length_s)
    np.maximum.at(state.last_s, state.server, state.end_s)
    begins = np.append(True, processor[1:] != processor[:-1])[: task.size]
    ends = np.append(processor[1:] != processor[:-1], True)[: task.size]
    state.length_s[task], state.place[task] = length_s, processor
    state.after[task[~ends]] = task[~begins]
    state.head[processor[begins]], state.tail[processor[ends]] = task[begins], task[ends]
    keys = np.full((1, state.ready_s.size), np.inf)
    keys[0, processor] = state.ready_s[processor]
    state.busy[:] = new_trees(keys)
    state.ending[:] = new_trees(
        np.where(state.awake == 1, state.last_s + state.linger_s, np.inf)[None, :]
    )
    state.tally[7] = 1


def _close(state: kernel.Plan) -> None:
    """Mark a plan as done: nothing runs, and no server is awake that is to be put to sleep."""
    state.awake[:], state.seat[:] = 0, -1
    state.tally[0] = state.tally[6] = 0
    state.busy[:] = state.ending[:] = np.inf


def kinds_of(view: View) -> Ints:
    """Kinds each task can run on in time, the cheapest first (n, k); -1: no more."""

    def compute() -> Ints:
        curves = curves_of(view)
        kinds = len(view.problem.platform.kinds)
        price_w = np.repeat(curves.price_w, curves.model.size // kinds)
        there = np.bincount(view.problem.platform.kind, minlength=kinds) > 0
        able = np.isfinite(curves.free_j) & np.isfinite(curves.free_s)
        able &= np.repeat(there, curves.model.size // kinds)
        cost = np.where(able, curves.free_j, np.inf)
        cost[able] += price_w[able] * curves.free_s[able]
        table = cost.reshape(kinds, -1).T
        order = np.argsort(table, axis=1, kind="stable")
        possible = np.isfinite(np.take_along_axis(table, order, axis=1))
        return np.ascontiguousarray(np.where(possible, order, -1))

    return view.once("pack kinds", compute)


def decisions(
    view: View, trace: kernel.Trace, out: kernel.Written, gangs: Ints, ratio: Floats
) -> Decisions:
    """Turn what a kernel wrote into decisions; ``ratio`` is real / planned run time (n,)."""
    platform, tasks = view.problem.platform, view.problem.tasks
    points, kind = np.ones((out.task.size, 3)), platform.kind[out.processor]
    for k in range(len(platform.kinds)):
        mine = np.flatnonzero(kind == k)
        if mine.size:
            points[mine] = view.frontier(k).at(out.length_s[mine], out.task[mine]).points
    end_s, due_s = out.start_s + out.length_s * ratio[out.task], tasks.deadline_s[out.task]
    end_s = np.where(end_s <= due_s + slack(due_s), np.minimum(end_s, due_s), end_s)
    place = Segments.of(out.task, out.processor, out.start_s, end_s, points)
    late = np.flatnonzero(trace.status)
    earliest_s = np.where(
        np.isfinite(trace.earliest_s[late]), trace.earliest_s[late], _soonest_s(view, late)
    )
    reasons = [
        _reason(tasks.deadline_s[i], int(trace.status[i]), end_s)
        for i, end_s in zip(late, earliest_s, strict=True)
    ]
    reasons += [
        f"needs {count} processors at once; this policy plans single processors"
        for count in tasks.processors[gangs]
    ]
    power, rejected = power_spans(platform, out.span), np.concatenate([late, gangs])
    return Decisions(place, power, rejected, np.array(reasons, dtype=object))


def _soonest_s(view: View, tasks: Ints) -> Floats:
    """Earliest end of tasks on an empty platform; infinite where they have no profile."""
    platform = view.problem.platform
    ready_s = float(np.where(platform.initially_on, 0.0, platform.wake_s).min())
    shortest = [view.frontier(k).t_min_s[tasks] for k in range(len(platform.kinds))]
    return np.asarray(view.problem.tasks.arrival_s[tasks] + ready_s + np.min(shortest, axis=0))


def _batch(view: View, trace: kernel.Trace, packed: Packing, gangs: Ints) -> Decisions:
    """Turn a packing of everything into decisions; all servers wake at time 0."""
    from downclock.planners.cluster.kernels import plan as kernel

    platform, tasks = view.problem.platform, view.problem.tasks
    server = platform.server[packed.processor]
    ready_s = np.where(platform.initially_on[server], 0.0, platform.wake_s[server])
    before = np.cumsum(packed.length_s) - packed.length_s
    first = np.searchsorted(packed.processor, packed.processor)
    start_s = ready_s + before - before[first]
    ends = np.zeros(platform.server_count)
    np.maximum.at(ends, server, start_s + packed.length_s)
    used = np.flatnonzero((ends > 0.0) | platform.initially_on)
    span = np.column_stack([used, np.zeros(used.size), ends[used]])
    single = (tasks.scale > 0.0) & (tasks.processors == 1)
    hopeless, crowded = single & (trace.kinds[:, 0] < 0), single & (trace.kinds[:, 0] >= 0)
    crowded[packed.task] = False
    trace.status[hopeless], trace.earliest_s[hopeless] = kernel.NO_TIME, np.inf
    free_s = np.where(platform.initially_on, 0.0, platform.wake_s)[platform.server]
    np.maximum.at(free_s, packed.processor, start_s + packed.length_s)
    short_s = view.frontier(int(platform.kind[0])).t_min_s
    trace.status[crowded] = kernel.NO_ROOM
    trace.earliest_s[crowded] = free_s.min() + short_s[crowded]
    out = kernel.Written(packed.task, packed.processor, start_s, packed.length_s, span)
    return decisions(view, trace, out, gangs, np.ones(len(tasks)))


def power_spans(platform: Platform, rows: Floats) -> PowerSpans:
    """Turn (server, on, off) rows into waking and on spans."""
    server = rows[:, 0].astype(np.int64)
    already = (rows[:, 1] == 0.0) & platform.initially_on[server]
    wake_s = np.where(already, 0.0, platform.wake_s[server])
    ready_s, slow = rows[:, 1] + wake_s, wake_s > 0.0
    return PowerSpans(
        np.concatenate([server[slow], server]),
        np.concatenate([np.full(int(slow.sum()), WAKING), np.full(server.size, ON)]),
        np.concatenate([rows[slow, 1], ready_s]),
        np.concatenate([ready_s[slow], np.maximum(ready_s, rows[:, 2])]),
    )


def _reason(deadline_s: float, code: int, earliest_s: float) -> str:
    from downclock.planners.cluster.kernels.plan import NO_TIME

    if not np.isfinite(earliest_s):
        return "no processor of this platform has a profile for it"
    why = "even at full speed" if code == NO_TIME else "as every processor is taken"
    return f"cannot end by its deadline {deadline_s:g} s {why}: earliest {earliest_s:g} s"
