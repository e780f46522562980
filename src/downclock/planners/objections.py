"""Why a policy cannot plan a problem, where several say it alike."""

from __future__ import annotations

import numpy as np

from downclock.problem.problem import Problem


def not_independent(problem: Problem) -> str | None:
    """Of policies for independent tasks in continuous time, each processor with its own clock."""
    if len(problem.edges):
        return "the tasks form a graph; this policy plans independent tasks"
    return not_continuous(problem)


def not_continuous(problem: Problem) -> str | None:
    """Of policies for tasks in continuous time, each processor with its own clock."""
    if problem.platform.slot_s is not None:
        return "the platform is slotted; this policy plans in continuous time"
    if np.any(np.bincount(problem.platform.chip) > 1):
        return "processors share a clock; this policy sets each clock by itself"
    return not_limited(problem)


def not_limited(problem: Problem) -> str | None:
    """Of policies that heed no limits of the site."""
    limits = problem.platform.limits
    if limits.has_cap:
        return "the site has a power cap, which this policy does not keep"
    if limits.server.size:
        return "servers are down at known times, which this policy does not plan round"
    return None
