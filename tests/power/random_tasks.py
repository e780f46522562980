"""Random profiles and clocks, ordinary and extreme, for tests of frontiers."""

from __future__ import annotations

import numpy as np

from downclock.power.library import Library
from downclock.power.points import (
    FIXED_VOLTAGE,
    MEI_LAW,
    NARROW,
    NARROW_2017,
    PROPORTIONAL_LAW,
    WIDE,
    ClockRange,
    ClockTable,
)
from downclock.power.profiles import CpuProfiles, GpuProfiles, MeasuredProfiles, Profiles
from downclock.units import Floats

RANGES = {
    "wide": WIDE,
    "narrow": NARROW,
    "narrow-2017": NARROW_2017,
    "floor": ClockRange(0.5, np.inf, 0.5, 1.2, 0.8, 1.2, MEI_LAW),
    "one-memory": ClockRange(0.5, np.inf, 1.0, 1.0, 0.7, 1.2, MEI_LAW),
    "one-core": ClockRange(0.9, 0.9, 0.4, 1.5, 0.5, 1.2, MEI_LAW),
    "one-point": ClockRange(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, FIXED_VOLTAGE),
    "fixed-volt": ClockRange(0.2, 1.0, 0.2, 1.0, 1.0, 1.0, FIXED_VOLTAGE),
    "proportional": ClockRange(0.1, 3.0, 0.1, 3.0, 0.3, 3.0, PROPORTIONAL_LAW),
}


def gpu_profiles(rng: np.random.Generator, n: int) -> GpuProfiles:
    """Half like mei2021's library, half of any size with parts that are zero."""
    peak = rng.uniform(175, 206, n) * np.where(
        rng.random(n) < 0.5, 1.0, 10 ** rng.uniform(-3, 3, n)
    )
    split = rng.dirichlet([1.0, 0.5, 1.5], n).T
    wild = rng.random(n) < 0.5
    p0, gamma, c = (peak * np.where(wild & (rng.random(n) < 0.2), 0.0, share) for share in split)
    delta = np.where(wild, rng.choice([0.0, 1.0, 0.5, 1e-6, 1.0 - 1e-6], n), rng.random(n))
    d = np.where(wild, 10 ** rng.uniform(-3, 4, n), rng.uniform(1.66, 7.61, n))
    t0 = np.where(wild & (rng.random(n) < 0.3), 0.0, rng.uniform(0.0, 0.95, n))
    still = wild & (rng.random(n) < 0.05)
    return GpuProfiles(p0, gamma, c, np.where(still, 0.0, d), delta, t0 + still)


def cpu_profiles(rng: np.random.Generator, n: int) -> CpuProfiles:
    """Cores with and without static power, from linear to steep."""
    alpha = rng.choice([1.0, 1.3, 2.0, 2.5, 3.0, 5.0], n)
    c1 = np.where(rng.random(n) < 0.1, 0.0, rng.uniform(0.1, 50.0, n))
    static = np.where(rng.random(n) < 0.3, 0.0, rng.uniform(0.0, 100.0, n))
    return CpuProfiles(10 ** rng.uniform(-2, 3, n), c1, alpha, static)


def clock_table(rng: np.random.Generator, pairs: int = 12) -> ClockTable:
    """Pairs of MHz around 1500 and 5000, distinct."""
    core, memory = np.meshgrid(rng.permutation(20)[:6] * 45 + 700, [3000.0, 4000.0, 5000.0])
    chosen = rng.permutation(core.size)[:pairs]
    return ClockTable(core.ravel()[chosen] * 1.0, memory.ravel()[chosen], 1500.0, 5000.0, MEI_LAW)


def measured_profiles(rng: np.random.Generator, n: int, table: ClockTable) -> MeasuredProfiles:
    """Noisy tables at some of the pairs and one clock the table does not have."""
    sizes = rng.integers(1, len(table.points), n)
    picks = [rng.permutation(len(table.points))[:size] for size in sizes]
    points = np.concatenate([np.vstack([table.points[p], [0.123, 0.5, 1.0]]) for p in picks])
    entries = len(points)
    time = rng.uniform(1.0, 5.0, entries) / points[:, 0]
    power = rng.uniform(50.0, 250.0, entries)
    offset = np.concatenate([[0], np.cumsum(sizes + 1)])
    return MeasuredProfiles(offset, points[:, 0], points[:, 1], time, power)


def one_library(profiles: Profiles, kind: str = "gpu") -> Library:
    """Return a library of these profiles, named by their row."""
    names = np.array([f"app{i}" for i in range(len(profiles))], dtype=object)
    return Library.of_one_kind(names, kind, profiles)


def spread_limits(rng: np.random.Generator, t_min: Floats, t_max: Floats) -> Floats:
    """Limits from a little too short to longer than the slowest clocks, ends included."""
    where = rng.choice([0.0, 1.0, 2.0], t_min.size) * (rng.random(t_min.size) < 0.2)
    where = np.where(where > 0.0, where - 1.0, rng.uniform(-0.05, 1.1, t_min.size))
    return t_min + where * (t_max - t_min)
