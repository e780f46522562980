"""Which tasks of a graph crowd between two others, for bounds on M cores.

All tasks that follow u and precede v run between the end of u and the start of v, so their run
times add up to at most M times that gap: a row of the convex program that knows no placement.
In the flow of marginal power such a row is an edge from u to v; what flows over it, divided by M,
is a rent that every task between pays for its time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from downclock.planners.chip.model import WorkGraph
from downclock.problem.graph import Edges
from downclock.units import Floats, Ints

_MOST_TASKS = 1500
"""Tasks up to which pairs are looked at: memory and time grow with their square and cube."""


def with_pairs(graph: WorkGraph, cores: float) -> tuple[WorkGraph, Any]:
    """Return the graph with pairs as edges, and who is between (m, n + 2), sparse.

    The graph gets two tasks without work, its start and its end; they are a pair. Others are
    those where the work between, shared by all cores, is longer than any path.
    """
    from scipy import sparse

    whole, n = _with_ends(graph), len(graph) + 2
    ends = np.array([[len(graph), len(graph) + 1]])
    inside = np.ones((1, n))
    inside[0, -2:] = 0.0
    if len(graph) <= _MOST_TASKS:
        bits = np.unpackbits(whole.reach().view(np.uint8), axis=1, bitorder="little", count=n)
        follows = bits.astype(np.float64)  # 1 where the second task comes after the first (n, n)
        pairs = np.concatenate([ends, _crowded(whole, follows, cores)])
        inside = follows[pairs[:, 0]] * follows[:, pairs[:, 1]].T
    else:
        pairs = ends
    before = np.concatenate([whole.before, pairs[:, 0]])
    after = np.concatenate([whole.succ, pairs[:, 1]])
    plain = sparse.csr_matrix((whole.succ.size, n))
    between = sparse.csr_matrix(sparse.vstack([plain, sparse.csr_matrix(inside)]))
    by_first = np.argsort(before, kind="stable")  # as the graph sorts its edges
    return WorkGraph.of(whole.work, Edges(before, after)), between[by_first]


def _with_ends(graph: WorkGraph) -> WorkGraph:
    n = len(graph)
    sources = np.flatnonzero(np.diff(graph.pred_at) == 0)
    sinks = np.flatnonzero(np.diff(graph.succ_at) == 0)
    before = np.concatenate([graph.before, np.full(sources.size, n), sinks])
    after = np.concatenate([graph.succ, sources, np.full(sinks.size, n + 1)])
    return WorkGraph.of(np.append(graph.work, [0.0, 0.0]), Edges(before, after))


def _crowded(graph: WorkGraph, follows: Floats, cores: float) -> Ints:
    """The most crowded pairs (k, 2), but for the whole graph: half by ratio, half by excess."""
    work, path = (follows * graph.work) @ follows / cores, _longest_between(graph, follows)
    work[-2, -1] = 0.0
    first, last = np.nonzero(work > np.maximum(path, 0.0) * (1.0 + 1e-9))
    work, path = work[first, last], path[first, last]
    by_ratio, by_excess = np.argsort(-work / path), np.argsort(path - work)
    kept = np.union1d(by_ratio[: len(graph)], by_excess[: len(graph)])
    return np.column_stack([first, last])[kept]


def _longest_between(graph: WorkGraph, follows: Floats) -> Floats:
    """Longest path strictly between two tasks (n, n), in cycles; minus infinity without one."""
    longest = np.full(follows.shape, -np.inf)
    for j in graph.order:
        for i in graph.pred[graph.pred_at[j] : graph.pred_at[j + 1]]:
            longest[:, j] = np.maximum(longest[:, j], longest[:, i] + graph.work[i])
            longest[i, j] = max(longest[i, j], 0.0)
    return longest
