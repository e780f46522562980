"""The problem a task graph makes on a cluster: its tasks are jobs that follow each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from downclock.problem.files.files import load_problem
from downclock.problem.files.read_cluster import Cluster, read_cluster
from downclock.problem.problem import Problem
from downclock.tabular import Table
from downclock.workloads.task_graph import TaskGraph


def workflow_problem(
    graph: TaskGraph,
    cluster: str | Path | Cluster,
    *,
    deadline_s: float | None = None,
    deadline_factor: float = 2.0,
    **how: Any,
) -> Problem:
    """Ask for a graph on a cluster; a unit of its work is a second at default clocks.

    Args:
        graph: the tasks, each on one processor.
        cluster: its file, or what was read from one.
        deadline_s: of all tasks. By default the longest wake, and ``deadline_factor`` times the
            longest path, or all work spread over all processors, whichever is longer.
        deadline_factor: see there.
        how: prices and others as `load_problem` takes them.
    """
    where = cluster if isinstance(cluster, Cluster) else read_cluster(cluster)
    if deadline_s is None:
        platform = where.platform
        wake_s = np.where(platform.initially_on, 0.0, platform.wake_s).max()
        busy_s = max(graph.critical_path, graph.total_work / platform.processor_count)
        deadline_s = float(wake_s + deadline_factor * busy_s)
    return load_problem(where, _jobs(graph, deadline_s), **how)


def _jobs(graph: TaskGraph, deadline_s: float) -> Table:
    """The tasks as a file of jobs would have them."""
    after: list[list[str]] = [[] for _ in range(len(graph))]
    for i, j in zip(graph.edges.before, graph.edges.after, strict=True):
        after[j].append(str(graph.task[i]))
    columns = {
        "name": [str(name) for name in graph.task],
        "run": [repr(float(seconds)) for seconds in graph.work],
        "deadline_s": np.full(len(graph), deadline_s),
        "after": after,
    }
    return Table.of(graph.name, columns)
