"""Task graphs of known shapes, to strain the search over slots."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from downclock.workloads.gerhards import graph_of
from downclock.workloads.task_graph import TaskGraph

Family: TypeAlias = Literal["fork-join", "layered", "out-tree", "chains", "independent"]


def structured_graph(family: Family, tasks: int, *, width: int = 8, seed: int = 0) -> TaskGraph:
    """Draw a graph of a known shape; ``width`` tasks side by side where that has a meaning."""
    random = np.random.default_rng(seed)
    work = random.integers(1, 11, tasks).astype(np.float64)
    pairs: list[tuple[int, int]] = []
    if family == "fork-join":
        pairs = _fork_join(tasks, width)
    elif family == "layered":
        layers = [range(a, min(a + width, tasks)) for a in range(0, tasks, width)]
        for upper, lower in pairwise(layers):
            pairs += [(i, j) for j in lower for i in upper if random.random() < 0.4]
    elif family == "out-tree":
        pairs = [
            (int(random.integers(max(0, (j - 1) // 3), (j + 1) // 2)), j) for j in range(1, tasks)
        ]
    elif family == "chains":
        pairs = [(j - width, j) for j in range(width, tasks)]
    return graph_of(f"{family}-{tasks}-{seed}", work, pairs)


def _fork_join(tasks: int, width: int) -> list[tuple[int, int]]:
    """Return edges: every (width + 1)-th task is a barrier between ``width`` parallel ones."""
    pairs: list[tuple[int, int]] = []
    for j in range(1, tasks):
        barrier = j - j % (width + 1)
        if j == barrier:
            pairs += [(i, j) for i in range(j - width, j)]
        else:
            pairs.append((barrier, j))
    return pairs


def near_barrier_graph(
    *, stages: int = 4, width: int = 10, beside: int = 4, seed: int = 0
) -> TaskGraph:
    """Draw stages of up to ``width`` parallel tasks, each ended by a join, and tasks beside joins.

    Real workflows look so: almost all waits for a join, but some tasks do not. A task beside the
    join of a stage waits for one task of the stage, or for the join before it; two of three are
    waited for by the join after the next stage, the others by nobody.
    """
    random = np.random.default_rng(seed)
    pairs: list[tuple[int, int]] = []
    members: list[list[int]] = []
    tasks = 0
    for _ in range(stages):
        count = int(random.integers(max(2, width // 2), width + 1))
        members.append(list(range(tasks, tasks + count)))
        pairs += [(tasks - 1, i) for i in members[-1] if tasks]
        tasks += count + 1
        pairs += [(i, tasks - 1) for i in members[-1]]
    for i in range(tasks, tasks + beside if stages > 1 else tasks):
        stage = int(random.integers(0, stages - 1))
        if random.random() < 0.5:
            pairs.append((int(random.choice(members[stage])), i))
        elif stage:
            pairs.append((members[stage][0] - 1, i))
        if random.random() < 2.0 / 3.0:
            pairs.append((i, members[stage + 1][-1] + 1))
    work = random.integers(1, 11, tasks + (beside if stages > 1 else 0)).astype(np.float64)
    return graph_of(f"near-barriers-{work.size}-{seed}", work, pairs)
