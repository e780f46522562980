"""A slow, trusted way to the least energy: try points everywhere, then closer to the best."""

from __future__ import annotations

import numpy as np

from downclock.power.points import ClockRange
from downclock.power.profiles import CpuProfiles, GpuProfiles
from downclock.units import Floats, Ints

CORES, MEMORIES, ROUNDS, BLOCK = 25, 13, 14, 64


def least_cost(
    profiles: GpuProfiles | CpuProfiles,
    clocks: ClockRange,
    limit_s: Floats,
    price_w: Floats,
) -> Floats:
    """Return the least energy + price × time within the limit, one per profile; inf if none."""
    best = np.full(len(profiles), np.inf)
    for start in range(0, len(profiles), BLOCK):
        rows = np.arange(start, min(start + BLOCK, len(profiles)))
        best[rows] = _block(profiles, rows, clocks, limit_s[rows], price_w[rows])
    return best


def _block(
    profiles: GpuProfiles | CpuProfiles,
    rows: Ints,
    clocks: ClockRange,
    limit_s: Floats,
    price_w: Floats,
) -> Floats:
    every = np.arange(rows.size)
    ends = [(clocks.core_min, clocks.core_max), (clocks.memory_min, clocks.memory_max)]
    boxes = [np.tile(np.array(end), (rows.size, 1)) for end in ends]
    best = np.full(rows.size, np.inf)
    for _ in range(ROUNDS):
        core, memory = _grid(profiles, rows, clocks, boxes, limit_s)
        points = np.stack([core, memory, clocks.volt(core)], axis=-1)
        time, power = profiles.at(np.repeat(rows, core[0].size), points.reshape(-1, 3))
        late = time > np.repeat(limit_s, core[0].size)
        cost = (power + np.repeat(price_w, core[0].size)) * time
        cost = np.where(late, np.inf, cost).reshape(rows.size, -1)
        winner = np.argmin(cost, axis=1)
        best = np.minimum(best, cost[every, winner])
        found = np.isfinite(cost[every, winner])[:, None]
        for d, grid in enumerate((core, memory)):
            centre = grid.reshape(rows.size, -1)[every, winner][:, None]
            reach = (boxes[d][:, 1:] - boxes[d][:, :1]) * np.array([-0.15, 0.15])
            closer = np.clip(centre + reach, *ends[d])
            boxes[d] = np.where(found, closer, boxes[d])
    return best


def _grid(
    profiles: GpuProfiles | CpuProfiles,
    rows: Ints,
    clocks: ClockRange,
    boxes: list[Floats],
    limit_s: Floats,
) -> tuple[Floats, Floats]:
    """Return clocks (rows, cores, memories); the last memory clock just meets the limit."""
    core = boxes[0][:, :1] + np.linspace(0, 1, CORES) * (boxes[0][:, 1:] - boxes[0][:, :1])
    memory = boxes[1][:, :1] + np.linspace(0, 1, MEMORIES) * (boxes[1][:, 1:] - boxes[1][:, :1])
    core, memory = np.broadcast_arrays(core[:, :, None], memory[:, None, :])
    if not isinstance(profiles, GpuProfiles):
        needed = profiles.time_s[rows] / limit_s
        core = core.copy()
        core[:, -1, :] = np.clip(needed, clocks.core_min, clocks.core_max)[:, None]
        return core, np.ones_like(memory)
    just = meeting_memory(profiles, rows, core[:, :, 0], limit_s[:, None], clocks)
    memory = np.concatenate([memory, just[:, :, None]], axis=2)
    return np.concatenate([core, core[:, :, :1]], axis=2), memory


def meeting_memory(
    profiles: GpuProfiles, rows: Ints, core: Floats, time_s: Floats, clocks: ClockRange
) -> Floats:
    """Return the memory clock that makes ``time_s`` with each core clock (rows, cores), clipped."""
    delta, d, t0 = (x[rows][:, None] for x in (profiles.delta, profiles.d_s, profiles.t0_s))
    left = time_s - t0 - d * delta / core
    ratio = np.full(core.shape, np.inf)
    np.divide(np.broadcast_to(d * (1.0 - delta), core.shape), left, out=ratio, where=left > 0.0)
    return np.clip(ratio, clocks.memory_min, clocks.memory_max)
