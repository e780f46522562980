"""Where the machine multipliers should go next: the model that past cuts make of the bound.

Without edges between them, groups of tasks choose their intervals separately. Every choice a cut
made for a group (an atom) has a cost and a load per slot, so at ``p`` the group costs at most
``cost + load @ p``: the least over its atoms is a model of the bound that is never too low.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from downclock.kernels.compiling import compiled, inner
from downclock.planners.slots.kernels.cut import interval_cost
from downclock.units import Array


class Atoms(NamedTuple):
    """Choices of intervals by past cuts; those of group g are ``cost[g, :size[g]]`` and so on.

    Attributes:
        cost, weight: of each choice (groups, room).
        load: machines held in each slot (groups, room, slots).
        chosen: first and last slot of each task in the choices of its group (room, n, 2).
        size: how many there are (groups,).
    """

    cost: Array
    weight: Array
    load: Array
    chosen: Array
    size: Array


@compiled
def add_atoms(
    table: Array, row: Array, group: Array, first: Array, last: Array, atoms: Atoms
) -> int:
    """Add the choice of every group; count new ones.

    Where there is no room the atom of least weight makes place; its weight goes to the new one.
    """
    cost, weight, load, chosen, size = atoms
    groups, room, slots = load.shape
    new_cost, new_load = np.zeros(groups), np.zeros((groups, slots))
    for i in range(row.size):
        new_cost[group[i]] += interval_cost(table, row[i], first[i], last[i])
        for t in range(first[i], last[i] + 1):
            new_load[group[i], t] += 1.0
    added = 0
    place = np.full(groups, -1, np.int64)
    for g in range(groups):
        known, least = False, 0
        for j in range(size[g]):
            known = bool(np.all(load[g, j] == new_load[g]))
            if known:
                if new_cost[g] < cost[g, j]:
                    cost[g, j], place[g] = new_cost[g], j
                    added += 1
                break
            if weight[g, j] < weight[g, least]:
                least = j
        if known:
            continue
        if size[g] < room:
            least = size[g]
            size[g] += 1
            weight[g, least] = 1.0 if least == 0 else 0.0
        cost[g, least] = new_cost[g]
        load[g, least] = new_load[g]
        place[g] = least
        added += 1
    for i in range(row.size):
        if place[group[i]] >= 0:
            chosen[place[group[i]], i, 0] = first[i]
            chosen[place[group[i]], i, 1] = last[i]
    return added


@inner
def _exchange(
    g: int, atoms: Atoms, multiplier: Array, pace: float
) -> tuple[int, int, float, float]:
    """Return (dearest atom in use, cheapest atom, what they differ by, weight to move)."""
    cost, weight, load, _, size = atoms
    high, low, dear, cheap = 0, 0, -np.inf, np.inf
    for j in range(size[g]):
        value = cost[g, j]
        for t in range(multiplier.size):
            value += load[g, j, t] * multiplier[t]
        if value < cheap:
            cheap, low = value, j
        if weight[g, j] > 0.0 and value > dear:
            dear, high = value, j
    far = 0.0
    for t in range(multiplier.size):
        far += (load[g, low, t] - load[g, high, t]) ** 2
    move = weight[g, high]
    if far > 0.0:
        move = min(move, (dear - cheap) / (pace * far))
    return high, low, dear - cheap, move


@compiled
def next_multipliers(
    atoms: Atoms, centre: Array, machines: int, pace: float, close: float, sweeps: int
) -> tuple[Array, float]:
    """Return the multipliers (slots,) that are best in the model but not far from ``centre``.

    They maximise model - |multipliers - centre|² / (2 pace); also returned is the model there. The
    dual of that is solved by moving weight between two atoms of a group at a time, until no
    exchange of a group is worth more than ``close``.
    """
    cost, weight, load, _, size = atoms
    groups, _, slots = load.shape
    pull, multiplier = np.full(slots, -float(machines)), np.empty(slots)
    for g in range(groups):
        for j in range(size[g]):
            if weight[g, j] > 0.0:
                pull += weight[g, j] * load[g, j]
    multiplier[:] = np.maximum(centre + pace * pull, 0.0)
    for _ in range(sweeps):
        most = 0.0
        for g in range(groups):
            high, low, worth, move = _exchange(g, atoms, multiplier, pace)
            if worth <= close:
                continue
            most = max(most, worth)
            weight[g, high] -= move
            weight[g, low] += move
            for t in range(slots):
                pull[t] += move * (load[g, low, t] - load[g, high, t])
                multiplier[t] = max(centre[t] + pace * pull[t], 0.0)
        if most == 0.0:
            break
    model = -machines * multiplier.sum()
    for g in range(groups):
        cheap = np.inf
        for j in range(size[g]):
            cheap = min(cheap, cost[g, j] + np.sum(load[g, j] * multiplier))
        model += cheap
    return multiplier, model
