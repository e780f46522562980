"""Maximum flow and minimum cut with whole capacities: push-relabel, highest node first."""

from __future__ import annotations

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.units import Array


@compiled
def grouped(
    nodes: int, count: int, tail: Array, head: Array, cap: Array, back: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Return (first, to, residual, twin, place): both directions of each arc, grouped by node.

    ``place[a]`` is where arc ``a`` and its reverse went, ``twin`` where each one's other is.
    """
    first = np.zeros(nodes + 1, np.int64)
    for a in range(count):
        first[tail[a] + 1] += 1
        first[head[a] + 1] += 1
    for v in range(nodes):
        first[v + 1] += first[v]
    at = first[:-1].copy()
    to, residual = np.empty(2 * count, np.int64), np.empty(2 * count, np.int64)
    twin = np.empty(2 * count, np.int64)
    place = np.empty((count, 2), np.int64)
    for a in range(count):
        forth, reverse = at[tail[a]], at[head[a]]
        at[tail[a]] += 1
        at[head[a]] += 1
        to[forth], residual[forth], twin[forth] = head[a], cap[a], reverse
        to[reverse], residual[reverse], twin[reverse] = tail[a], back[a], forth
        place[a, 0], place[a, 1] = forth, reverse
    return first, to, residual, twin, place


@inner
def _heights(
    first: Array, to: Array, residual: Array, twin: Array, source: int, sink: int,
    height: Array, count: Array, queue: Array,
) -> None:  # fmt: skip
    """Fill ``height`` with residual distances to the sink, ``nodes`` where there is none.

    ``count`` becomes the number of nodes of each height.
    """
    nodes = height.size
    height[:] = nodes
    count[:] = 0
    height[sink] = 0
    queue[0] = sink
    begin, end = 0, 1
    while begin < end:
        v = queue[begin]
        begin += 1
        count[height[v]] += 1
        for a in range(first[v], first[v + 1]):
            u = to[a]
            if height[u] == nodes and u != source and residual[twin[a]] > 0:
                height[u] = height[v] + 1
                queue[end] = u
                end += 1


@inner
def _activate(
    height: Array, excess: Array, source: int, sink: int, bucket: Array, link: Array
) -> int:
    """Put every node that can still push into the bucket of its height; return the highest."""
    nodes, top = height.size, 0
    bucket[:] = -1
    for v in range(nodes):
        if excess[v] > 0 and height[v] < nodes and v not in (sink, source):
            link[v] = bucket[height[v]]
            bucket[height[v]] = v
            top = max(top, height[v])
    return top


@inner
def _lift(
    v: int, first: Array, to: Array, residual: Array, height: Array, count: Array, cursor: Array
) -> None:
    """Raise a node just above its lowest neighbour; out of the game where that leaves a gap."""
    nodes = height.size
    old, least = height[v], nodes
    for a in range(first[v], first[v + 1]):
        if residual[a] > 0 and height[to[a]] < least:
            least = height[to[a]]
            cursor[v] = a
    count[old] -= 1
    height[v] = least + 1 if least + 1 < nodes and count[old] > 0 else nodes
    if height[v] < nodes:
        count[height[v]] += 1


@inner
def _drain(
    first: Array, to: Array, residual: Array, twin: Array, excess: Array, source: int, sink: int
) -> Array:
    """Push what nodes have too much towards the sink, from the highest node.

    It stops when no more can reach the sink. Return the nodes that cannot reach it, the source
    among them.
    """
    nodes = first.size - 1
    height, count = np.empty(nodes, np.int64), np.zeros(nodes + 1, np.int64)
    queue, cursor = np.empty(nodes, np.int64), first[:-1].copy()
    bucket, link = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    work, top = to.size + 1, 0
    while True:
        if work > to.size:
            _heights(first, to, residual, twin, source, sink, height, count, queue)
            cursor[:] = first[:-1]
            top = _activate(height, excess, source, sink, bucket, link)
            work = 0
        while top > 0 and bucket[top] < 0:
            top -= 1
        if top == 0:
            break
        v = bucket[top]
        bucket[top] = link[v]
        while excess[v] > 0 and height[v] < nodes:
            a = cursor[v]
            if a == first[v + 1]:
                work += 12 + first[v + 1] - first[v]
                _lift(v, first, to, residual, height, count, cursor)
                continue
            u = to[a]
            if residual[a] > 0 and height[v] == height[u] + 1:
                amount = min(excess[v], residual[a])
                if excess[u] == 0 and u != sink:
                    link[u] = bucket[height[u]]
                    bucket[height[u]] = u
                excess[u] += amount
                excess[v] -= amount
                residual[a] -= amount
                residual[twin[a]] += amount
            else:
                cursor[v] += 1
        top = min(max(top, height[v]), nodes - 1)
    _heights(first, to, residual, twin, source, sink, height, count, queue)
    return height == nodes


@inner
def max_flow(
    first: Array, to: Array, residual: Array, twin: Array, source: int, sink: int, whole: bool
) -> tuple[int, Array]:
    """Return (flow, source side); ``residual`` is changed.

    All a minimum cut needs is a preflow: what cannot reach the sink stays where it is. For the
    ``whole`` flow it is pushed back to the source.
    """
    excess = np.zeros(first.size - 1, np.int64)
    for a in range(first[source], first[source + 1]):
        excess[to[a]] += residual[a]
        residual[twin[a]] += residual[a]
        residual[a] = 0
    side = _drain(first, to, residual, twin, excess, source, sink)
    flow = excess[sink]
    if whole:
        _drain(first, to, residual, twin, excess, sink, source)
    return flow, side
