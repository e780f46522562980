"""Problems and schedules for reports: a day on GPUs, and awkward ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.problem.problem import Problem
from downclock.schedule.schedule import REJECTED, Outcomes, PowerSpans, Schedule, Segments
from tests.generated import random_problem
from tests.generated_schedule import random_schedule

Case = tuple[Problem, Schedule]

NASTY = (
    "</script><script>alert(1)</script>",
    "\"quoted\" & 'single' <b>bold</b>",
    "日本語 🚀 ünï",
    "two\nlines\tand a tab",
    "{{data}} ${x} `tick`",
    "\u202eright to left",
)


def nothing_runs(problem: Problem) -> Schedule:
    """A schedule that rejects every task."""
    n, none = len(problem.tasks), np.empty(0)
    reason = np.array([f"no room for {name}" for name in problem.tasks.name], dtype=object)
    return Schedule(
        Segments.of(none.astype(int), none.astype(int), none, none, np.empty((0, 3))),
        PowerSpans(none.astype(int), none.astype(int), none, none),
        Outcomes(np.full(n, REJECTED), reason, np.ones(n)),
        policy="none",
    )


def renamed(problem: Problem) -> Problem:
    """The problem with names that try to break out of the page."""
    names = [f"{NASTY[i % len(NASTY)]} {i}" for i in range(len(problem.tasks))]
    tasks = replace(problem.tasks, name=np.array(names, dtype=object))
    return replace(problem, tasks=tasks, name=NASTY[0])


def awkward() -> dict[str, Case]:
    """Small problems, each odd in its own way, with valid schedules."""
    cases: dict[str, Problem] = {
        "one task": random_problem(3, tasks=1, edges=False, milestones=False),
        "no deadlines": random_problem(5, deadlines=False),
        "gangs": random_problem(8, gangs=True, tasks=14),
        "waking takes time": random_problem(11, wake_s=11.25, initially_on=False),
        "negative prices": random_problem(13, prices=True),
        "slots": random_problem(17, slot_s=7.5),
        "milestones": random_problem(19, milestones=True, tasks=14),
        "shared clocks": random_problem(23, chip_wide=True, flavours=("cpu", "gpu-table")),
        "measured clocks": random_problem(29, flavours=("measured",)),
        "hostile names": renamed(random_problem(31, tasks=12)),
    }
    made = {name: (problem, random_schedule(problem, 1)) for name, problem in cases.items()}
    only = random_problem(37, tasks=6)
    made["rejected only"] = only, nothing_runs(only)
    made["nothing fits one"] = cases["one task"], nothing_runs(cases["one task"])
    made["retries"] = _with_retries()
    return made


def _with_retries() -> Case:
    """The first generated schedule in which a task was tried more than once."""
    for seed in range(40):
        problem = random_problem(seed, tasks=12)
        schedule = random_schedule(problem, 2)
        if schedule.segments.attempt.max(initial=0) > 0:
            return problem, schedule
    raise AssertionError("no generated schedule retries a task")


@pytest.fixture(params=sorted(awkward()))
def odd(request: pytest.FixtureRequest) -> Case:
    """Every awkward case in turn."""
    return awkward()[request.param]
