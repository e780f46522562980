"""Rules for the graph: what must be done before what."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from downclock.problem.problem import Problem
from downclock.schedule.schedule import DONE, FAILED, STATUSES
from downclock.schedule.verify.parsed_schedule import ParsedSchedule, seconds
from downclock.schedule.verify.rules_tasks import attempt_shares
from downclock.schedule.verify.verdict import Finding
from downclock.units import Bools, Floats, slack


def milestone_times(problem: Problem, finish_s: Floats, reached: Bools) -> Floats:
    """Return ``finish_s`` with zero-work tasks done as soon as they arrived and may be (n,).

    A milestone behind a task that is not done has no time either (NaN).
    """
    finish_s = finish_s.copy()
    zero = (problem.tasks.scale == 0.0) & reached
    finish_s[zero] = problem.tasks.arrival_s[zero]
    for before, after in _edges_into(problem, zero):
        finish_s[after] = np.fmax(finish_s[after], finish_s[before])
    return finish_s


def _edges_into(problem: Problem, tasks: Bools) -> Iterator[tuple[int, int]]:
    """Edges (before, after) into some tasks, those into a task before those out of it."""
    if np.any(tasks):
        edges = problem.edges.in_order(len(problem.tasks))
        yield from (edge for edge in edges if tasks[edge[1]])


def precedence(parsed: ParsedSchedule) -> Iterator[Finding]:
    """A task starts after its predecessors are done, and is not done where one never is.

    A predecessor that was done too late has failed, but it was done.
    """
    before, after = parsed.problem.edges.before, parsed.problem.edges.after
    judged = parsed.clear[before] & parsed.clear[after]
    unfinished = judged & (parsed.status[before] != DONE) & ~_did_all(parsed)[before]
    done_s, start_s = parsed.finish_s[before], parsed.start_s[after]
    early = judged & ~unfinished & (start_s < done_s - slack(done_s))
    orphan = unfinished & ((parsed.status[after] == DONE) | np.isfinite(start_s))

    def say_early(edge: int) -> str:
        name = parsed.task_name(int(before[edge]))
        return (
            f"starts at {seconds(start_s[edge])}, before {name} is done at {seconds(done_s[edge])}"
        )

    def say_orphan(edge: int) -> str:
        name, status = parsed.task_name(int(before[edge])), STATUSES[parsed.status[before[edge]]]
        ran = "" if np.isnan(start_s[edge]) else f" and starts at {seconds(start_s[edge])}"
        own = STATUSES[parsed.status[after[edge]]]
        return f"is {own}{ran}, but {name} before it is {status}, not done"

    yield parsed.bad_tasks("precedence", early, say_early, after)
    yield parsed.bad_tasks("orphan", orphan, say_orphan, after)


def _did_all(parsed: ParsedSchedule) -> Bools:
    """Whether the last attempt of each task did all of it (n,); milestones, what is before them."""
    runs = parsed.runs
    found = np.zeros(len(parsed.problem.tasks), dtype=bool)
    last = runs.rows.task[runs.attempt_row[runs.last]]
    found[last] = attempt_shares(parsed)[runs.last] >= 1.0 - slack(1.0)
    late = (parsed.problem.tasks.scale == 0.0) & (parsed.status == FAILED)
    found[late] = True
    for before, after in _edges_into(parsed.problem, late):
        found[after] &= found[before] | (parsed.status[before] == DONE)
    return found
