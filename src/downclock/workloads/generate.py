"""The papers' task sets by name, each with its cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from downclock.errors import InvalidInput, suggestion
from downclock.problem.problem import Problem
from downclock.workloads import mei

WORKLOADS = ("mei2021-offline", "mei2021-online", "mei2017-offline", "mei2017-online")
"""Offline: all tasks are there at time 0; online: a batch at time 0, then arrivals over days."""


def generate(
    workload: str,
    *,
    seed: int = 0,
    utilisation: float = 1.6,
    task_utilisation: str | tuple[float, float] | None = None,
    days: int | None = None,
    pairs: int = 2048,
    per_server: int = 16,
) -> Problem:
    """Draw a task set of the papers, with its cluster.

    Args:
        workload: one of `WORKLOADS`.
        seed: of the draw; the same seed gives the same tasks.
        utilisation: of the task set; 1 is 2048 tasks.
        task_utilisation: run time / time to the deadline: text, offline, online, or (low, high);
            as published when not given.
        days: length of an online set; 1 when not given.
        pairs: processors in all.
        per_server: pairs in a server (the papers' l).

    Raises:
        InvalidInput: an unknown workload, unequal servers, or days of an offline set.
    """
    if workload not in WORKLOADS:
        rule = f"is no workload{suggestion(workload, WORKLOADS)}"
        raise InvalidInput(rule, field="workload", value=workload)
    paper, _, when = workload.partition("-")
    if pairs % per_server:
        rule = f"must be a multiple of per_server={per_server}: servers are equal"
        raise InvalidInput(rule, field="pairs", value=pairs)
    if when == "offline" and days is not None:
        rule = "is for online sets: all tasks of this one are there at 0"
        raise InvalidInput(rule, field="days", value=days)
    base = mei.MEI2017 if paper == "mei2017" else mei.Cluster()
    cluster = replace(base, pairs=pairs, per_server=per_server)
    given: Any = {} if task_utilisation is None else {"task_utilisation": task_utilisation}
    if when == "offline":
        return mei.offline(seed, utilisation=utilisation, cluster=cluster, **given)
    return mei.online(seed, utilisation=utilisation, days=days or 1, cluster=cluster, **given)
