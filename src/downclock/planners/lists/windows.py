"""Windows of tasks in graphs: when each may run so that what precedes and follows it can, too."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.columns import taken
from downclock.engine.tasks import TaskTable
from downclock.engine.view import View
from downclock.problem.graph import Edges
from downclock.units import Floats, Ints


class Windows(NamedTuple):
    """Of tasks (m,): the shares of their paths' time, and when each has to end at the latest."""

    start_s: Floats
    end_s: Floats
    latest_s: Floats


def windows(edges: Edges, told_s: Floats, deadline_s: Floats, fastest_s: Floats) -> Windows:
    """Share the time of paths in proportion to the tasks' fastest run times.

    A task has to end so early that what follows it can be on time at its fastest. Its share is
    that part of the time until the tightest deadline behind it which its run time is of the
    longest path there. Only edges between tasks that are told together count: nothing is known of
    those to come. Cost m + edges.
    """
    together = told_s[edges.before] == told_s[edges.after]
    along = list(taken(edges, together).in_order(told_s.size))
    path_s = fastest_s.copy()
    for before, after in along:
        path_s[after] = max(path_s[after], path_s[before] + fastest_s[after])
    latest_s = deadline_s.copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        stretch = np.where(path_s > 0.0, (deadline_s - told_s) / path_s, np.inf)
        for before, after in reversed(along):
            latest_s[before] = min(latest_s[before], latest_s[after] - fastest_s[after])
            stretch[before] = min(stretch[before], stretch[after])
    bound = np.isfinite(stretch) & np.isfinite(path_s)  # what can never run has no window
    part, whole_s = np.where(bound, stretch, 0.0), np.where(bound, path_s, 0.0)
    start_s = told_s + part * (whole_s - np.where(bound, fastest_s, 0.0))
    return Windows(start_s, np.where(bound, told_s + part * whole_s, np.inf), latest_s)


def with_windows(view: View, tasks: Ints, found: Windows) -> View:
    """A view of these tasks alone, by their place in the list, that arrive and end as found."""
    table = TaskTable()
    table.add(view.tasks, tasks)
    table.arrival_s[:], table.deadline_s[:] = found.start_s, found.end_s
    return view.over(table)
