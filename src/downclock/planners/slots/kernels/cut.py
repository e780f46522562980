"""First and last slots of all tasks by one minimum cut.

Every task has two variables, its first slot (2i) and its last slot (2i+1), each with a rising
list of labels: those of variable ``v`` are ``lab[lab_at[v]:lab_at[v + 1]]``. A node stands for
"the variable is above its k-th label"; cutting the k-th arc of a variable's chain gives it the
k-th label. What a pair (first, last) costs beyond two single terms is a sum of second differences
of the cost table, which are not negative for convex power: each is an arc.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.planners.slots.kernels.flow import grouped, max_flow
from downclock.units import Array

NEVER = 1 << 46
"""Capacity of an arc that must not be cut."""


class Arcs(NamedTuple):
    """Ends of arcs, and their capacities there and back."""

    tail: Array
    head: Array
    cap: Array
    back: Array


@inner
def interval_cost(table: Array, row: int, first: int, last: int) -> float:
    """Return the cost of slots first..last; longer than the table, the rest is not used."""
    length = min(last - first + 1, table.shape[2])
    return np.inf if length < 1 else table[row, first, length - 1]


@compiled
def _node(base: int, k: int, size: int, source: int) -> int:
    """Return the node of "above label k"; the source below the first, the sink at the last."""
    if k < 0:
        return source
    return base + k if k < size - 1 else source + 1


@inner
def _surplus(table: Array, row: int, firsts: Array, lasts: Array) -> Array:
    """Return by how much arcs and terms exceed the cost of each pair of labels.

    Negative second differences have no arcs: it is the sum of what they would have taken off.
    """
    surplus = np.zeros((firsts.size, lasts.size))
    for k in range(1, firsts.size):
        beyond = 0.0
        upper = interval_cost(table, row, firsts[k - 1], lasts[-1])
        upper -= interval_cost(table, row, firsts[k], lasts[-1])
        for j in range(lasts.size - 2, -1, -1):
            lower = interval_cost(table, row, firsts[k - 1], lasts[j])
            lower -= interval_cost(table, row, firsts[k], lasts[j])
            if lower == -np.inf:
                break
            beyond += max(0.0, lower - upper)
            surplus[k, j] = surplus[k - 1, j] + beyond
            upper = lower
    return surplus


@inner
def _match(
    table: Array, row: int, firsts: Array, lasts: Array, k0: int, j0: int,
    first_term: Array, last_term: Array,
) -> None:  # fmt: skip
    """Change both variables' terms so that the cost is exact at labels k0, j0, never too low else.

    So no cut is worse than the plan of these labels, whatever the table.
    """
    if interval_cost(table, row, firsts[k0], lasts[j0]) == np.inf:
        return
    surplus = _surplus(table, row, firsts, lasts)
    for k in range(firsts.size):
        first_term[k] -= surplus[min(k, k0), j0]
    for j in range(j0 + 1, lasts.size):
        last_term[j] += surplus[k0, j0] - surplus[k0, j]


@inner
def _least_taken(term: Array) -> float:
    """Bring the least term to 0; return what was taken."""
    least = term.min()
    term -= least
    return least


@inner
def _single_terms(
    table: Array, row: int, firsts: Array, lasts: Array, toll: Array, anchor: Array,
    first_term: Array, last_term: Array,
) -> float:  # fmt: skip
    """Fill both variables' own terms, least value 0; return the constant taken out."""
    whole = interval_cost(table, row, firsts[0], lasts[-1])
    for k in range(firsts.size):
        first_term[k] = interval_cost(table, row, firsts[k], lasts[-1]) - toll[firsts[k]]
    for j in range(lasts.size):
        value = interval_cost(table, row, firsts[0], lasts[j]) - whole
        last_term[j] = value + toll[lasts[j] + 1]
    if anchor.size:
        _match(table, row, firsts, lasts, anchor[0], anchor[1], first_term, last_term)
    return _least_taken(first_term) + _least_taken(last_term)


@compiled
def _put(arcs: Arcs, at: int, u: int, v: int, c: int) -> int:
    """Write a one-way arc; return the next free place."""
    arcs.tail[at], arcs.head[at], arcs.cap[at], arcs.back[at] = u, v, c, 0
    return at + 1


@inner
def _chain(lab_at: Array, var: int, source: int, term: Array, scale: float, arcs: Arcs) -> None:
    """Write the arcs of one variable at the places of its labels."""
    size, base = lab_at[var + 1] - lab_at[var], lab_at[var] - var
    for k in range(size):
        a = lab_at[var] + k
        arcs.tail[a] = _node(base, k - 1, size, source)
        arcs.head[a] = _node(base, k, size, source)
        arcs.cap[a] = NEVER if term[k] == np.inf else int(term[k] * scale)
        arcs.back[a] = NEVER if 0 < k < size - 1 else 0


@inner
def _pair_terms(
    table: Array, row: int, lab_at: Array, lab: Array, task: int, scale: float, arcs: Arcs, at: int
) -> int:
    """Write an arc for every positive second difference of one task; return the next place."""
    a, b, c = lab_at[2 * task], lab_at[2 * task + 1], lab_at[2 * task + 2]
    for k in range(b - a - 1):
        u = a - 2 * task + k
        here, there = lab[a + k], lab[a + k + 1]
        upper = interval_cost(table, row, here, lab[c - 1]) - interval_cost(
            table, row, there, lab[c - 1]
        )
        for j in range(c - b - 2, -1, -1):
            v = b - 2 * task - 1 + j
            late = interval_cost(table, row, there, lab[b + j])
            if late == np.inf:
                at = _put(arcs, at, u, v, NEVER)
                break
            lower = interval_cost(table, row, here, lab[b + j]) - late
            if upper == -np.inf:
                upper = lower
            amount = int((upper - lower) * scale)
            if amount > 0:
                at = _put(arcs, at, u, v, amount)
            upper = lower
    return at


@inner
def _edge(
    lab_at: Array, lab: Array, before: int, after: int, source: int, arcs: Arcs, at: int
) -> int:
    """Write arcs so that ``after`` starts in a later slot than ``before`` ends."""
    last, first = 2 * before + 1, 2 * after
    size, wide = lab_at[last + 1] - lab_at[last], lab_at[first + 1] - lab_at[first]
    reached = 0
    for k in range(size):
        t = reached
        while t < wide and lab[lab_at[first] + t] <= lab[lab_at[last] + k]:
            t += 1
        if t > reached:
            u = _node(lab_at[last] - last, k - 1, size, source)
            v = _node(lab_at[first] - first, t - 1, wide, source)
            at = _put(arcs, at, u, v, NEVER)
            reached = t
    return at


@inner
def _labels_of(lab_at: Array, side: Array) -> Array:
    """Return the label of each variable: how many of its nodes are on the source side."""
    label = np.zeros(lab_at.size - 1, np.int64)
    for v in range(label.size):
        for k in range(lab_at[v + 1] - lab_at[v] - 1):
            if side[lab_at[v] - v + k]:
                label[v] += 1
    return label


@inner
def _edge_flows(
    lab_at: Array, lab: Array, before: Array, edge_at: Array, tail: Array, source: int,
    place: Array, residual: Array, scale: float, flow: Array,
) -> None:  # fmt: skip
    """Fill ``flow[e, t]`` with what goes from "ends in slot t or later" over the edge e."""
    for e in range(before.size):
        last = 2 * before[e] + 1
        for a in range(edge_at[e], edge_at[e + 1]):
            k = 0 if tail[a] == source else tail[a] - (lab_at[last] - last) + 1
            flow[e, lab[lab_at[last] + k]] += residual[place[a, 1]] / scale


@compiled
def cut(
    table: Array, row: Array, lab_at: Array, lab: Array, toll: Array, anchor: Array,
    before: Array, after: Array, scale: float, edge_flow: Array,
) -> tuple[float, Array, Array]:  # fmt: skip
    """Return (value, labels, residual terms) of the minimum cut.

    ``toll`` (slots + 1,) is the running sum of what holding a machine costs in each slot;
    ``anchor`` (2n,) the labels near which a table that is not Monge is matched, or empty. The
    value never exceeds the least cost, as capacities are rounded down; it is at least
    ``NEVER / scale`` where no labels are allowed together. ``labels[v]`` is an index into the
    labels of variable ``v``. Where ``edge_flow`` (edges, slots) has rows it is filled with the
    flow over the edges: what it is worth that ``before`` does not end in a slot or later while
    ``after`` has started by then.
    """
    n = row.size
    source, size = lab_at[2 * n] - 2 * n, lab_at[1:] - lab_at[:-1]
    most = lab_at[2 * n] + (size[0::2] * size[1::2]).sum() + size[2 * before + 1].sum()
    arcs = Arcs(
        np.empty(most, np.int64), np.empty(most, np.int64),
        np.empty(most, np.int64), np.empty(most, np.int64),
    )  # fmt: skip
    first_term, last_term = np.empty(size.max()), np.empty(size.max())
    constant, at = 0.0, lab_at[2 * n]
    for i in range(n):
        a, b, c = lab_at[2 * i], lab_at[2 * i + 1], lab_at[2 * i + 2]
        constant += _single_terms(
            table, row[i], lab[a:b], lab[b:c], toll, anchor[2 * i : 2 * i + 2],
            first_term[: b - a], last_term[: c - b],
        )  # fmt: skip
        _chain(lab_at, 2 * i, source, first_term, scale, arcs)
        _chain(lab_at, 2 * i + 1, source, last_term, scale, arcs)
        at = _pair_terms(table, row[i], lab_at, lab, i, scale, arcs, at)
    edge_at = np.empty(before.size + 1, np.int64)
    for e in range(before.size):
        edge_at[e] = at
        at = _edge(lab_at, lab, before[e], after[e], source, arcs, at)
    edge_at[before.size] = at
    first, to, residual, twin, place = grouped(
        source + 2, at, arcs.tail, arcs.head, arcs.cap, arcs.back
    )
    whole = edge_flow.shape[0] > 0
    flow, side = max_flow(first, to, residual, twin, source, source + 1, whole)
    if whole:
        _edge_flows(
            lab_at, lab, before, edge_at, arcs.tail, source, place, residual, scale, edge_flow
        )  # fmt: skip
    left = residual[place[: lab_at[2 * n], 0]] / scale
    return constant + flow / scale, _labels_of(lab_at, side), left
