"""The columns our packing kernels work on: energy-time curves and the platform, as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from downclock.engine.policy import View
from downclock.power.frontier import Frontier
from downclock.problem.platform import Platform
from downclock.units import Floats, Ints

if TYPE_CHECKING:
    from downclock.planners.cluster.kernels.curves import Curves


def curves_of(view: View) -> Curves:
    """Return the curves of every task on every kind, computed once per problem."""
    return view.once("pack curves", lambda: _curves(view))


def server_sizes(platform: Platform) -> Ints:
    """Processors of each server (s,)."""
    return np.diff(platform.first_processor)


def up_w(platform: Platform) -> Floats:
    """What an awake server draws more than a sleeping one while nothing runs (s,)."""
    idle_w = np.bincount(platform.server, platform.idle_w, platform.server_count)
    return np.asarray(idle_w + np.maximum(platform.host_w - platform.sleep_w, 0.0))


def _per_kind(platform: Platform, per_server: Floats) -> Floats:
    """Least value of a column of servers over the processors of each kind (k,)."""
    values = per_server[platform.server]
    return np.array(
        [values[platform.kind == k].min(initial=np.inf) for k in range(len(platform.kinds))]
    )


def _prices_w(platform: Platform) -> Floats:
    """Power of host and chip that a running processor must carry besides its own (k,)."""
    host = np.maximum(platform.host_w - platform.sleep_w, 0.0) / server_sizes(platform)
    shared = platform.shared_w[platform.chip]
    each = [shared[platform.kind == k].min(initial=np.inf) for k in range(len(platform.kinds))]
    price = _per_kind(platform, host) + np.array(each)
    return np.where(np.isfinite(price), price, 0.0)


def _curves(view: View) -> Curves:
    from downclock.planners.cluster.kernels import curves as kernel
    from downclock.power.kernel_columns import kernel_columns

    platform, n = view.problem.platform, len(view.problem.tasks)
    kinds = len(platform.kinds)
    price_w = _prices_w(platform)
    idle_w = np.array([kind.idle_w for kind in platform.kinds])
    model, shape, box = (
        np.zeros((kinds, n), np.int64),
        np.zeros((kinds, n, 6)),
        np.zeros((kinds, 8)),
    )
    times = np.full((4, kinds, n), np.inf)
    ladders = []
    for k in range(kinds):
        frontier = view.frontier(k)
        model[k], shape[k], box[k] = kernel_columns(frontier)
        ladders.append(frontier.ladder())
        times[:, k] = _lengths(frontier, view.window_s, price_w[k], idle_w[k])
    sizes = np.concatenate([np.diff(offset) for offset, _, _ in ladders])
    first = np.concatenate([[0], np.cumsum(sizes)])
    rung_s = np.concatenate([time for _, time, _ in ladders])
    rung_j = np.concatenate([energy for _, _, energy in ladders])
    short, free, energy, long = times.reshape(4, kinds * n)
    curves = kernel.Curves(
        model.ravel(), shape.reshape(-1, 6), box, idle_w, price_w, first, rung_s, rung_j,
        np.zeros(rung_s.size, np.int64), short, free, energy, long,
    )  # fmt: skip
    kernel.calm_rungs(curves)
    return curves


def _lengths(
    frontier: Frontier, window_s: Floats, price_w: float, idle_w: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the shortest, wanted (with energy) and longest run times of one kind, each (n,)."""
    free = frontier.cheapest(price_w)
    late = np.flatnonzero(~(free.time_s <= window_s))
    inside = frontier.within(window_s[late], late)
    free.time_s[late], free.energy_j[late] = inside.time_s, inside.energy_j
    wanted = np.where(free.feasible, free.time_s, np.inf)
    long_s = frontier.cheapest(-idle_w).time_s
    return frontier.t_min_s, wanted, free.energy_j, np.where(np.isfinite(long_s), long_s, np.inf)
