"""The judge against a plain reading of the rules: every pair of rows, one at a time.

Valid schedules are spoiled at random (times shifted, processors and clocks swapped, spans cut), so
that rules break together and in odd places; both must then name the same tasks.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from downclock.problem.problem import Problem
from downclock.schedule.schedule import ASLEEP, DONE, ON, Schedule
from downclock.schedule.verify.verify import Verdict, verify
from tests.generated import random_problem, random_schedule

NEAR = 1e-6
"""Random shifts are never this small, so the tolerance plays no part."""


def spoiled(schedule: Schedule, problem: Problem, rng: np.random.Generator) -> Schedule:
    """Change a few rows in a few ways."""
    s, spans = schedule.segments, schedule.spans
    columns = {name: getattr(s, name).copy() for name in ("start_s", "end_s", "processor", "core")}
    for row in rng.integers(len(s), size=3):
        shift = rng.uniform(-20.0, 20.0)
        columns["start_s"][row] = max(0.0, columns["start_s"][row] + shift)
        columns["end_s"][row] = max(columns["start_s"][row] + 0.1, columns["end_s"][row] + shift)
    for row in rng.integers(len(s), size=2):
        columns["processor"][row] = rng.integers(problem.platform.processor_count)
        columns["core"][row] = columns["core"][rng.integers(len(s))]
    changed = replace(schedule, segments=replace(s, **columns))
    if len(spans):
        cut = rng.integers(len(spans))
        start = spans.start_s.copy()
        start[cut] = min(start[cut] + rng.uniform(0.0, 5.0), spans.end_s[cut])
        changed = replace(changed, spans=replace(spans, start_s=start))
    return changed


def tasks_that_break(verdict: Verdict, *rules: str) -> set[int | None]:
    return {violation.task for violation in verdict.violations if violation.rule in rules}


def overlapping(schedule: Schedule) -> bool:
    s = schedule.segments
    return any(
        s.processor[a] == s.processor[b] and s.start_s[a] <= s.start_s[b] < s.end_s[a] - NEAR
        for a, b in permutations(range(len(s)), 2)
    )


def clashing_on_a_chip(problem: Problem, schedule: Schedule) -> bool:
    s, chip = schedule.segments, problem.platform.chip
    return any(
        chip[s.processor[a]] == chip[s.processor[b]]
        and s.processor[a] != s.processor[b]
        and s.start_s[a] <= s.start_s[b] < s.end_s[a] - NEAR
        and bool(np.any(np.abs(s.points[a] - s.points[b]) > NEAR))
        for a, b in permutations(range(len(s)), 2)
    )


def state_at(problem: Problem, schedule: Schedule, server: int, time_s: float) -> int:
    spans = schedule.spans
    mine = [row for row in range(len(spans)) if spans.server[row] == server]
    for row in mine:
        if spans.start_s[row] <= time_s < spans.end_s[row]:
            return int(spans.state[row])
    begins = problem.platform.initially_on[server] and all(time_s < spans.start_s[r] for r in mine)
    return ON if begins else ASLEEP


def running_without_power(problem: Problem, schedule: Schedule) -> set[int]:
    """Tasks with a segment during which, just after some change of state, the server is not on."""
    s, found = schedule.segments, set()
    times = np.concatenate([schedule.spans.start_s, schedule.spans.end_s])
    for row in range(len(s)):
        server = int(problem.platform.server[s.processor[row]])
        inside = times[(times > s.start_s[row]) & (times < s.end_s[row] - NEAR)]
        moments = [s.start_s[row] + NEAR / 2.0, *(inside + NEAR / 2.0)]
        if any(state_at(problem, schedule, server, float(t)) != ON for t in moments):
            found.add(int(s.task[row]))
    return found


def early(problem: Problem, schedule: Schedule) -> set[int]:
    s = schedule.segments
    rows = range(len(s))
    arrival_s = problem.tasks.arrival_s
    return {int(s.task[r]) for r in rows if s.start_s[r] < arrival_s[s.task[r]] - NEAR}


def done_at(problem: Problem, schedule: Schedule, task: int) -> float:
    """Return when a done task is done; a milestone with the last of its predecessors."""
    s, edges = schedule.segments, problem.edges
    if problem.tasks.scale[task] > 0.0:
        last = s.attempt[s.task == task].max()
        return float(s.end_s[(s.task == task) & (s.attempt == last)].max())
    before = edges.before[edges.after == task]
    times = [
        done_at(problem, schedule, int(b)) for b in before if schedule.outcomes.status[b] == DONE
    ]
    return max([float(problem.tasks.arrival_s[task]), *times])


def late(problem: Problem, schedule: Schedule) -> set[int]:
    done = np.flatnonzero(schedule.outcomes.status == DONE)
    deadline_s = problem.tasks.deadline_s
    return {int(t) for t in done if done_at(problem, schedule, int(t)) > deadline_s[t] + NEAR}


def out_of_order(problem: Problem, schedule: Schedule) -> set[int]:
    s, status, found = schedule.segments, schedule.outcomes.status, set()
    for before, after in zip(problem.edges.before, problem.edges.after, strict=True):
        starts = s.start_s[s.task == after]
        if status[before] != DONE:
            wrong = status[after] == DONE or starts.size > 0
        else:
            done_s = done_at(problem, schedule, int(before))
            wrong = starts.size > 0 and starts.min() < done_s - NEAR
        if wrong:
            found.add(int(after))
    return found


@pytest.mark.parametrize("block", range(5))
def test_both_readings_of_the_rules_agree(block: int) -> None:
    broken = 0
    for seed in range(1000 + block * 30, 1030 + block * 30):
        rng = np.random.default_rng(seed)
        problem = random_problem(seed)
        schedule = random_schedule(problem, seed)
        if len(schedule.segments) == 0:
            continue
        schedule = spoiled(schedule, problem, rng)
        verdict = verify(problem, schedule, most=None)
        broken += not verdict.ok
        assert ("overlap" in verdict.rules) == overlapping(schedule), seed
        if "overlap" not in verdict.rules:
            assert ("chip-clock" in verdict.rules) == clashing_on_a_chip(problem, schedule), seed
        off = tasks_that_break(verdict, "asleep", "waking", "down")
        if "span-overlap" not in verdict.rules:
            assert off == running_without_power(problem, schedule), seed
        assert tasks_that_break(verdict, "arrival") == early(problem, schedule), seed
        assert tasks_that_break(verdict, "deadline") == late(problem, schedule), seed
        crossed = tasks_that_break(verdict, "precedence", "orphan")
        assert crossed == out_of_order(problem, schedule), seed
    assert broken > 20
