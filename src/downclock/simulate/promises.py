"""Carry out a plan: what its promises become when run times vary and machines fail.

Policies that promise segments ahead do not react: their order per processor is kept, a task moves
only where its processor is down, and the kernel `simulate_promises` finds when everything really
happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from downclock.errors import InvalidInput
from downclock.problem.problem import Problem
from downclock.quantities import count
from downclock.schedule.schedule import DONE, FAILED, REJECTED, Outcomes, Schedule, Segments
from downclock.simulate.chances import Fate
from downclock.simulate.power import Downtimes, Guests, realised_spans
from downclock.units import Bools, Floats, Ints, Names

if TYPE_CHECKING:
    from downclock.simulate.kernels.tables import Log, Machines, Promises
    from downclock.simulate.kernels.tables import Tasks as TaskBook


@dataclass(frozen=True, slots=True, eq=False)
class CarriedOut:
    """A realised schedule and how many events it took."""

    schedule: Schedule
    events: int


def carry_out(problem: Problem, promised: Schedule, fate: Fate, retries: int) -> CarriedOut:
    """Carry out a promised schedule. Cost: a sort and a pass over the segments.

    Raises:
        InvalidInput: processors share a clock and run times vary: their common clock would have
            to be decided anew, which a plan cannot say.
    """
    from downclock.simulate.kernels import promises as kernel
    from downclock.simulate.kernels.tables import Queue

    _refuse_shared_clocks(problem, promised, fate)
    order, promises = _promises(problem, promised.segments)
    downtimes = Downtimes.of(fate)
    fast = _fastest(problem, bool(downtimes.count))
    tasks = _tasks(problem, promised, fate, fast)
    machines = _machines(problem, downtimes, promises)
    log = _log(promises, fate, machines, problem, retries)
    slot_s = problem.platform.slot_s or 0.0
    n = len(problem.tasks)
    queue = Queue(np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros(1, dtype=np.int64))
    made = kernel.carry_out(promises, tasks, machines, queue, log, slot_s, retries)
    segments, guest = _segments(problem, promised.segments, order, log, made, fast)
    row_end_s = np.full(len(promised.segments), -np.inf)
    row_end_s[order] = log.row_end_s
    guests = Guests(
        problem.platform.server[segments.processor[guest]],
        segments.start_s[guest],
        segments.end_s[guest],
    )
    spans = realised_spans(problem.platform, promised, row_end_s, downtimes, guests)
    outcomes = _outcomes(problem, promised.outcomes, tasks, segments)
    events = len(problem.tasks) + 2 * made + 2 * downtimes.count
    return CarriedOut(Schedule(segments, spans, outcomes, promised.policy), events + len(spans))


def _refuse_shared_clocks(problem: Problem, promised: Schedule, fate: Fate) -> None:
    crowded = np.bincount(problem.platform.chip) > 1
    if fate.calm or not crowded.any():
        return
    segments = promised.segments
    mine = crowded[problem.platform.chip[segments.processor]]
    if np.any(mine) and np.ptp(segments.points[mine], axis=0).max() > 0.0:
        rule = "its processors share a clock: what varies cannot be carried out as planned"
        raise InvalidInput(rule, item=f"problem '{problem.name}'")


def _promises(problem: Problem, segments: Segments) -> tuple[Ints, Promises]:
    """Rows by start, bundles side by side; and the order they come from."""
    from downclock.simulate.kernels.tables import Promises

    order = np.lexsort((segments.task, segments.start_s))
    task, start_s = segments.task[order], segments.start_s[order]
    kind = problem.platform.kind[segments.processor[order]]
    whole_s, _ = problem.at(task, kind, segments.points[order])
    m = task.size
    joins = np.zeros(m, dtype=bool)
    gang = problem.tasks.processors[task] > 1
    joins[1:] = gang[1:] & (task[1:] == task[:-1]) & (start_s[1:] == start_s[:-1])
    begins = np.flatnonzero(~joins)
    size = np.zeros(m, dtype=np.int64)
    size[begins] = np.diff(np.append(begins, m))
    last = np.zeros(m, dtype=np.int64)
    final = np.full(len(problem.tasks), -1)
    final[task[begins]] = begins
    last[final[final >= 0]] = 1
    times = np.array([start_s, segments.end_s[order], segments.share[order], whole_s])
    return order, Promises(task, segments.processor[order], size, last, times)


@dataclass(frozen=True, slots=True, eq=False)
class Fastest:
    """Every task at the fastest clock of every kind: time (n, kinds), points (n, kinds, 3)."""

    time_s: Floats
    points: Floats


def _fastest(problem: Problem, wanted: bool) -> Fastest:
    """How fast tasks could run elsewhere; nothing can where this is not ``wanted``."""
    n, kinds = len(problem.tasks), len(problem.platform.kinds)
    time_s, points = np.full((n, kinds), np.inf), np.ones((n, kinds, 3))
    for k in range(kinds) if wanted else ():
        points[:, k] = problem.frontier(k).cheapest(np.inf).points
        whole_s, _ = problem.at(np.arange(n), np.full(n, k), points[:, k])
        time_s[:, k] = np.where(np.isfinite(whole_s), whole_s, np.inf)
    return Fastest(time_s, points)


def _tasks(problem: Problem, promised: Schedule, fate: Fate, fast: Fastest) -> TaskBook:
    from downclock.simulate.kernels import tables as kernel

    n = len(problem.tasks)
    first, before = _predecessors(problem)
    state, flags = np.zeros((4, n)), np.zeros((5, n), dtype=np.int64)
    state[kernel.LEFT] = 1.0
    flags[kernel.STATUS, promised.outcomes.status != DONE] = kernel.ORPHAN
    single = (problem.tasks.processors == 1) & np.isfinite(fast.time_s).any(axis=1)
    return kernel.Tasks(
        problem.tasks.deadline_s,
        fate.work,
        fate.breaks,
        first,
        before,
        fast.time_s,
        single.astype(np.int64),
        state,
        flags,
    )


def _predecessors(problem: Problem) -> tuple[Ints, Ints]:
    """Predecessors with work of each task, milestones between them left out."""
    n, edges = len(problem.tasks), problem.edges
    before, after = edges.before, edges.after
    if len(edges) and np.any(problem.tasks.scale == 0.0):
        before, after = _without_milestones(problem)
    by_task = np.argsort(after, kind="stable")
    first = np.searchsorted(after[by_task], np.arange(n + 1)).astype(np.int64)
    return first, np.asarray(before[by_task], dtype=np.int64)


def _without_milestones(problem: Problem) -> tuple[Ints, Ints]:
    edges, zero = problem.edges, problem.tasks.scale == 0.0
    sources: list[set[int]] = [set() for _ in range(len(problem.tasks))]
    into: list[list[int]] = [[] for _ in range(len(problem.tasks))]
    for a, b in zip(edges.before, edges.after, strict=True):
        into[b].append(int(a))
    for b in edges.order(len(problem.tasks)):
        for a in into[b]:
            sources[b] |= sources[a] if zero[a] else {a}
    pairs = [(a, b) for b, held in enumerate(sources) for a in sorted(held)]
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _machines(problem: Problem, downtimes: Downtimes, promises: Promises) -> Machines:
    from downclock.simulate.kernels.tables import Machines

    platform = problem.platform
    p = platform.processor_count
    first, start_s, ready_s = downtimes.of_processors(platform)
    rows = np.argsort(promises.processor, kind="stable")
    ends = np.searchsorted(promises.processor[rows], np.arange(p + 1)).astype(np.int64)
    alone = np.bincount(platform.chip)[platform.chip] == 1
    return Machines(
        np.zeros(p),
        first,
        np.array([start_s, ready_s]).reshape(2, -1),
        platform.kind,
        platform.wake_s[platform.server],
        alone.astype(np.int64),
        np.column_stack([ends[:-1], ends[1:]]),
        rows,
        np.full(p, -1),
    )


def _log(promises: Promises, fate: Fate, machines: Machines, problem: Problem, retries: int) -> Log:
    """Room for every promise, and for every attempt that may be lost."""
    from downclock.simulate.kernels.tables import Log

    gang = int(problem.tasks.processors.max())
    # Tasks in several segments may lose them all while they do not run; no incident stands for it.
    several = np.unique(promises.task[(promises.size > 0) & (promises.last == 0)]).size
    lost = int(np.sum(fate.breaks < 1.0)) + machines.down_s.shape[1]
    lost += several * (retries + 2) if machines.down_s.shape[1] else 0
    room = promises.task.size + gang * lost
    return Log(
        np.zeros((6, room), dtype=np.int64),
        np.zeros((4, room)),
        np.full(promises.task.size, -np.inf),
    )


def _segments(
    problem: Problem, promised: Segments, order: Ints, log: Log, made: int, fast: Fastest
) -> tuple[Segments, Ints]:
    """The log as segments, in the order of the promises they come from; and which are guests."""
    from downclock.simulate.kernels import tables as kernel

    source = order[log.numbers[kernel.ROW, :made]]
    rank = np.argsort(source, kind="stable")
    numbers, times, source = (
        log.numbers[:, :made][:, rank],
        log.times[:, :made][:, rank],
        source[rank],
    )
    task, processor = numbers[kernel.TASK], numbers[kernel.PROCESSOR]
    points = promised.points[source]
    guest = np.flatnonzero(numbers[kernel.GUEST])
    points[guest] = fast.points[task[guest], problem.platform.kind[processor[guest]]]
    attempt, share = numbers[kernel.ATTEMPT], times[kernel.SHARE]
    start_s, end_s = times[kernel.START_S], times[kernel.END_S]
    return Segments.of(task, processor, start_s, end_s, points, share, attempt), guest


def _outcomes(
    problem: Problem, promised: Outcomes, tasks: TaskBook, segments: Segments
) -> Outcomes:
    from downclock.simulate.kernels import tables as kernel

    status, reason = promised.status.copy(), promised.reason.copy()
    ends = tasks.flags[kernel.STATUS]
    was_done = promised.status == DONE
    failed = was_done & ((ends == kernel.LATE) | (ends == kernel.LOST))
    orphan = was_done & (ends == kernel.ORPHAN)
    status[failed], status[orphan] = FAILED, REJECTED
    for task, told in histories(np.flatnonzero(failed), segments, ends == kernel.LATE).items():
        reason[task] = told
    for i in np.flatnonzero(failed & (ends == kernel.LATE)):
        told = late_text(tasks.state[kernel.FINISH_S, i], problem.tasks.deadline_s[i])
        reason[i] = f"{told}; {reason[i]}" if reason[i] else told
    reason[orphan] = "a task before it did not finish"
    _settle_milestones(problem, status, reason)
    return Outcomes(status, reason, np.where(status == REJECTED, 1.0, tasks.work))


def late_text(end_s: float, deadline_s: float) -> str:
    """Say how late a task was done."""
    return f"done at {end_s:.9g} s, after its deadline {deadline_s:.9g} s"


def histories(tasks: Ints, segments: Segments, ended: Bools) -> dict[int, str]:
    """Say when each attempt of the given tasks was lost; the last was not where one ``ended``."""
    wanted = np.isin(segments.task, tasks)
    told: dict[int, dict[int, float]] = {int(i): {} for i in tasks}
    rows = zip(segments.task[wanted], segments.attempt[wanted], segments.end_s[wanted], strict=True)
    for task, attempt, end_s in rows:
        ends = told[int(task)]
        ends[int(attempt)] = max(ends.get(int(attempt), 0.0), float(end_s))
    for task, ends in told.items():
        if ended[task] and ends:
            del ends[max(ends)]
    return {task: _history(sorted(ends.values())) for task, ends in told.items()}


def _history(ends: list[float]) -> str:
    if not ends:
        return ""
    return f"lost {count(len(ends), 'attempt')}, at " + ", ".join(f"{e:.6g} s" for e in ends)


def _settle_milestones(problem: Problem, status: Ints, reason: Names) -> None:
    """A milestone, and any task that never began, is not done behind one that is not."""
    edges = problem.edges
    if not len(edges):
        return
    into: list[list[int]] = [[] for _ in range(len(problem.tasks))]
    for a, b in zip(edges.before, edges.after, strict=True):
        into[b].append(int(a))
    for b in edges.order(len(problem.tasks)):
        if status[b] == DONE and any(status[a] != DONE for a in into[b]):
            status[b], reason[b] = REJECTED, "a task before it did not finish"


def finish_s(segments: Segments, n: int) -> Floats:
    """End of the last segment of each task (n,); NaN where it never ran."""
    ends = np.full(n, -np.inf)
    np.maximum.at(ends, segments.task, segments.end_s)
    return np.where(np.isfinite(ends), ends, np.nan)
