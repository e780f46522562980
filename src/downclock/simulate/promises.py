"""Carry out a plan: what its promises become when run times vary and machines fail.

Policies that promise segments ahead do not react: their order per processor is kept, and the
kernel `simulate_promises` finds when everything really happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from downclock.errors import InvalidInput
from downclock.problem.problem import Problem
from downclock.schedule.schedule import DONE, FAILED, REJECTED, Outcomes, Schedule, Segments
from downclock.simulate.chances import Fate
from downclock.simulate.power import Downtimes, realised_spans
from downclock.units import Floats, Ints, Names

if TYPE_CHECKING:
    from downclock.kernels.simulate_promises import Log, Machines, Promises
    from downclock.kernels.simulate_promises import Tasks as TaskBook


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
    from downclock.kernels import simulate_promises as kernel

    _refuse_shared_clocks(problem, promised, fate)
    order, promises = _promises(problem, promised.segments)
    tasks = _tasks(problem, promised, fate)
    downtimes = Downtimes.of(problem.platform, fate)
    machines = _machines(problem, downtimes)
    log = _log(promises, fate, problem)
    slot_s = problem.platform.slot_s or 0.0
    count = kernel.carry_out(promises, tasks, machines, log, slot_s, retries)
    segments = _segments(promised.segments, order, log, count)
    row_end_s = np.full(len(promised.segments), -np.inf)
    row_end_s[order] = log.row_end_s
    spans = realised_spans(problem.platform, promised, row_end_s, downtimes)
    outcomes = _outcomes(problem, promised.outcomes, tasks, segments)
    events = len(problem.tasks) + 2 * count + 2 * (downtimes.server.size + len(fate.processor_down))
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
    from downclock.kernels.simulate_promises import Promises

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


def _tasks(problem: Problem, promised: Schedule, fate: Fate) -> TaskBook:
    from downclock.kernels import simulate_promises as kernel

    n = len(problem.tasks)
    first, before = _predecessors(problem)
    state, flags = np.zeros((3, n)), np.zeros((4, n), dtype=np.int64)
    state[kernel.LEFT] = 1.0
    flags[kernel.STATUS, promised.outcomes.status != DONE] = kernel.ORPHAN
    return kernel.Tasks(
        problem.tasks.deadline_s, fate.work, fate.breaks, first, before, state, flags
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


def _machines(problem: Problem, downtimes: Downtimes) -> Machines:
    from downclock.kernels.simulate_promises import Machines

    p = problem.platform.processor_count
    first, start_s, ready_s = downtimes.of_processors(problem.platform)
    return Machines(np.zeros(p), first, np.array([start_s, ready_s]).reshape(2, -1))


def _log(promises: Promises, fate: Fate, problem: Problem) -> Log:
    """Room for every promise, and for every attempt that may be lost."""
    from downclock.kernels.simulate_promises import Log

    gang = int(problem.tasks.processors.max())
    downs = fate.server_down.size * problem.platform.processor_count + fate.processor_down.size
    lost = int(np.sum(fate.breaks < 1.0)) + min(downs, promises.task.size * 4)
    room = promises.task.size + gang * lost
    return Log(
        np.zeros((4, room), dtype=np.int64),
        np.zeros((3, room)),
        np.full(promises.task.size, -np.inf),
    )


def _segments(promised: Segments, order: Ints, log: Log, count: int) -> Segments:
    """The log as segments, in the order of the promises they come from."""
    from downclock.kernels import simulate_promises as kernel

    source = order[log.numbers[kernel.ROW, :count]]
    rank = np.argsort(source, kind="stable")
    numbers, times, source = (
        log.numbers[:, :count][:, rank],
        log.times[:, :count][:, rank],
        source[rank],
    )
    return Segments(
        numbers[kernel.TASK],
        numbers[kernel.ATTEMPT],
        numbers[kernel.PROCESSOR],
        times[kernel.START_S],
        times[kernel.END_S],
        promised.core[source],
        promised.memory[source],
        promised.volt[source],
        times[kernel.SHARE],
    )


def _outcomes(
    problem: Problem, promised: Outcomes, tasks: TaskBook, segments: Segments
) -> Outcomes:
    from downclock.kernels import simulate_promises as kernel

    status, reason = promised.status.copy(), promised.reason.copy()
    ends = tasks.flags[kernel.STATUS]
    was_done = promised.status == DONE
    failed = was_done & ((ends == kernel.LATE) | (ends == kernel.LOST))
    orphan = was_done & (ends == kernel.ORPHAN)
    status[failed], status[orphan] = FAILED, REJECTED
    for i in np.flatnonzero(failed & (ends == kernel.LATE)):
        reason[i] = late_text(tasks.state[kernel.FINISH_S, i], problem.tasks.deadline_s[i])
    lost = np.flatnonzero(failed & (ends == kernel.LOST))
    for task, told in histories(lost, segments).items():
        reason[task] = told
    reason[orphan] = "a task before it did not finish"
    _settle_milestones(problem, status, reason)
    return Outcomes(status, reason, np.where(status == REJECTED, 1.0, tasks.work))


def late_text(end_s: float, deadline_s: float) -> str:
    """Say how late a task was done."""
    return f"done at {end_s:.9g} s, after its deadline {deadline_s:.9g} s"


def histories(tasks: Ints, segments: Segments) -> dict[int, str]:
    """Say when each attempt of the given tasks was lost."""
    wanted = np.isin(segments.task, tasks)
    told: dict[int, dict[int, float]] = {int(i): {} for i in tasks}
    rows = zip(segments.task[wanted], segments.attempt[wanted], segments.end_s[wanted], strict=True)
    for task, attempt, end_s in rows:
        ends = told[int(task)]
        ends[int(attempt)] = max(ends.get(int(attempt), 0.0), float(end_s))
    return {
        task: f"lost {len(ends)} attempts, at " + ", ".join(f"{e:.6g} s" for e in ends.values())
        for task, ends in told.items()
    }


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
