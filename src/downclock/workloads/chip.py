"""The problem a task graph makes on one chip of equal cores."""

from __future__ import annotations

import numpy as np

from downclock.errors import InvalidInput
from downclock.power.library import Library
from downclock.power.points import ClockRange, Clocks
from downclock.power.profiles import CpuProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.workloads.task_graph import TaskGraph

ANY_CLOCK = ClockRange(1e-9, 1e9)
"""Clocks without a limit that matters, as the paper assumes."""


def chip_problem(
    graph: TaskGraph,
    cores: int,
    deadline_s: float,
    *,
    c1: float = 1.0,
    c2: float = 0.0,
    c3: float = 0.0,
    alpha: float = 3.0,
    chip_wide: bool = True,
    islands: int = 1,
    clocks: Clocks = ANY_CLOCK,
) -> Problem:
    """Ask for a graph on one chip of equal cores by one deadline (gerards section 3).

    Clock 1 is one cycle a second. ``chip_wide``: one clock for all cores (global DVFS), or for
    each of several ``islands`` of ``cores / islands``; else each core is its own chip (local DVFS).
    Every chip draws c3 + c2 f by itself.

    Raises:
        InvalidInput: islands of equal size do not make up all cores.
    """
    if islands < 1 or cores % islands:
        rule = f"must divide the {cores} cores"
        raise InvalidInput(rule, field="islands", value=islands)
    one = np.ones(1)
    profile = CpuProfiles(one, c1 * one, alpha * one, 0.0 * one)
    library = Library.of_one_kind(np.array(["cycles"], dtype=object), "core", profile)
    kind = Kind("core", clocks, clock="free")
    chips = (("core", cores // islands),) * islands
    server = ServerSpec("chip", chips, chip_wide=chip_wide, shared_w=c3, shared_w_per_clock=c2)
    platform = Platform.build((kind,), (server,))
    return Problem(graph.tasks(deadline_s), library, platform, graph.edges, name=graph.name)
