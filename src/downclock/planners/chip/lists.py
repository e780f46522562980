"""List schedules of a task graph on equal cores, in cycles.

- ``lpt``: ready tasks by most work, ties by smallest number, lowest free core. This is the rule
  behind every number of gerards Tables 1 and 2.
- ``hlf``: highest level first: ready tasks by the longest path to the end.
- ``heft``: tasks by level, each into the earliest gap on any core (Topcuoglu et al. 2002).
"""

from __future__ import annotations

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.chip.kernels.lists import greedy_schedule, insertion_schedule
from downclock.planners.chip.model import Placement, WorkGraph
from downclock.units import Floats, Ints


def list_schedule(graph: WorkGraph, cores: int, rule: str = "hlf") -> Placement:
    """Place a graph by a named rule: ``lpt``, ``hlf`` or ``heft``."""
    if rule == "lpt":
        return greedy(graph, cores, by_most(graph.work))
    if rule == "hlf":
        return greedy(graph, cores, by_most(graph.bottom_levels()))
    if rule == "heft":
        # By falling level, ties in topological order.
        queue = np.lexsort((np.argsort(graph.order), -graph.bottom_levels())).astype(np.int64)
        return Placement(*insertion_schedule(graph.columns(), queue, cores), cores)
    raise InvalidInput("is not one of lpt, hlf, heft", field="rule", value=rule)


def by_most(priority: Floats) -> Ints:
    """Return tasks by falling priority, ties by smallest number."""
    return np.argsort(-priority, kind="stable").astype(np.int64)


def greedy(graph: WorkGraph, cores: int, queue: Ints) -> Placement:
    """No core idles while a task is ready; ready tasks in the order of ``queue`` (n,)."""
    return Placement(*greedy_schedule(graph.columns(), queue, cores), cores)
