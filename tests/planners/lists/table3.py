"""The example of mei2021 Table 3: five tasks, servers of two pairs, 30 W idle."""

from __future__ import annotations

import numpy as np

from downclock.engine.view import View
from downclock.power.library import Library
from downclock.power.points import WIDE
from downclock.power.profiles import GpuProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.units import Ints

NAMES = np.array(["J1", "J2", "J3", "J4", "J5"], dtype=object)
DELTA = np.array([0.0, 1.0, 0.5, 0.8, 0.2])
DEADLINE_S = np.array([50.0, 36.0, 60.0, 100.0, 300.0])


def table3(per_server: int = 2, servers: int = 4, deadline_s: np.ndarray = DEADLINE_S) -> Problem:
    """P0 = 100, P* = 300, gamma = 0, t = 5 + 25 (delta / core + (1 - delta) / memory)."""
    n = DELTA.size
    profiles = GpuProfiles(
        np.full(n, 100.0),
        np.zeros(n),
        np.full(n, 200.0),
        np.full(n, 25.0),
        DELTA,
        np.full(n, 5.0),
    )
    platform = Platform.build(
        (Kind("pair", WIDE, idle_w=30.0, clock="locked"),),
        (ServerSpec("s", (("pair", per_server),), count=servers),),
    )
    tasks = Tasks.of(np.arange(n), deadline_s=deadline_s, name=NAMES)
    return Problem(tasks, Library.of_one_kind(NAMES, "pair", profiles), platform, name="table3")


def mapping(problem: Problem, schedule: object) -> dict[str, tuple[str, ...]]:
    """Tasks of each processor in the order they run, by name."""
    segments = schedule.segments  # type: ignore[attr-defined]
    found: dict[str, tuple[str, ...]] = {}
    for row in np.argsort(segments.start_s, kind="stable"):
        place = problem.platform.processor_name(int(segments.processor[row]))
        found[place] = (*found.get(place, ()), str(problem.tasks.name[segments.task[row]]))
    return dict(sorted(found.items()))


def told(problem: Problem) -> tuple[View, Ints]:
    """A view of all tasks of a problem, and their numbers."""
    view = View(problem)
    return view, view.tasks.add(problem.tasks, np.arange(len(problem.tasks)))
