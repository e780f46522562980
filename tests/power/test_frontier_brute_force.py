"""Frontiers against brute force: 10,000 tasks of all models, ordinary and extreme."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.power.frontier import frontier
from downclock.power.library import Library
from downclock.power.points import Clocks
from downclock.power.settings import Settings
from downclock.units import Floats
from tests.power.brute_force import least_cost, meeting_memory
from tests.power.random_tasks import (
    RANGES,
    clock_table,
    cpu_profiles,
    gpu_profiles,
    measured_profiles,
    one_library,
    spread_limits,
)

GPU_TASKS, CPU_TASKS, TABLE_TASKS = 780, 180, 500
"""Per interval (9 of them), and per model on enumerated clocks (3): 10,140 tasks in all."""

EXCESS = 1e-6


def _assert_real(settings: Settings, clocks: Clocks, library: Library, scale: Floats) -> None:
    """Time and energy are those of the returned points, which the clocks allow."""
    good = settings.feasible
    rows = np.flatnonzero(good)
    time, power = library.at(rows, "gpu", settings.points[good])
    np.testing.assert_allclose(settings.time_s[good], time * scale[good], rtol=1e-12)
    np.testing.assert_allclose(
        settings.energy_j[good], power * time * scale[good], rtol=1e-12, atol=0.0
    )
    assert np.all(clocks.allows(settings.points[good]))
    assert np.all(np.isnan(settings.time_s[~good]))


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("model", ["gpu", "cpu"])
def test_within_a_limit_is_never_worse_than_brute_force(name: str, model: str) -> None:
    rng = np.random.default_rng([len(name), ord(name[0]), len(model)])
    clocks = RANGES[name]
    profiles = gpu_profiles(rng, GPU_TASKS) if model == "gpu" else cpu_profiles(rng, CPU_TASKS)
    library, n = one_library(profiles), len(profiles)
    scale = rng.integers(1, 50, n) * 1.0
    line = frontier(library, "gpu", clocks, np.arange(n), scale)
    limit = spread_limits(rng, line.t_min_s, line.t_max_s)
    ours = line.within(limit)
    brute = least_cost(profiles, clocks, limit / scale, np.zeros(n)) * scale
    assert np.all(ours.feasible | np.isinf(brute))
    assert np.any(ours.feasible)
    assert np.all(ours.feasible == (limit >= line.t_min_s))
    assert np.all(ours.energy_j <= brute * (1.0 + EXCESS))
    assert np.all(ours.time_s[ours.feasible] <= limit[ours.feasible])
    _assert_real(ours, clocks, library, scale)


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("model", ["gpu", "cpu"])
def test_cheapest_is_never_worse_than_brute_force_at_any_price(name: str, model: str) -> None:
    rng = np.random.default_rng([len(name), ord(name[0]), len(model), 7])
    clocks, n = RANGES[name], 150
    profiles = gpu_profiles(rng, n) if model == "gpu" else cpu_profiles(rng, n)
    library, scale = one_library(profiles), np.full(n, 2.0)
    line = frontier(library, "gpu", clocks, np.arange(n), scale)
    price = rng.choice([-1.0, 0.0, 1.0], n) * line.e_opt_j / line.t_opt_s * rng.uniform(0, 2, n)
    ours = line.cheapest(price)
    cost = ours.energy_j + price * ours.time_s
    brute = least_cost(profiles, clocks, np.full(n, np.inf), price) * scale
    assert np.all(cost <= brute + EXCESS * ours.energy_j)
    _assert_real(ours, clocks, library, scale)


@pytest.mark.parametrize("name", RANGES)
def test_exactly_a_time_is_never_worse_than_any_clocks_with_that_time(name: str) -> None:
    rng = np.random.default_rng([len(name), ord(name[0])])
    clocks, n = RANGES[name], 400
    profiles = gpu_profiles(rng, n)
    library, scale = one_library(profiles), np.ones(n)
    line = frontier(library, "gpu", clocks, np.arange(n), scale)
    time = line.t_min_s + rng.random(n) * (line.t_max_s - line.t_min_s)
    ours = line.at(time)
    assert np.all(ours.feasible)
    assert np.all(ours.time_s == time)
    _assert_real(ours, clocks, library, scale)
    core = np.tile(np.linspace(clocks.core_min, clocks.core_max, 501), (n, 1))
    memory = meeting_memory(profiles, np.arange(n), core, time[:, None], clocks)
    points = np.stack([core, memory, clocks.volt(core)], axis=-1).reshape(-1, 3)
    rival, power = profiles.at(np.repeat(np.arange(n), 501), points)
    exact = np.abs(rival.reshape(n, -1) - time[:, None]) <= 1e-12 * time[:, None]
    energy = np.where(exact, (rival * power).reshape(n, -1), np.inf).min(axis=1)
    assert np.all(ours.energy_j <= energy * (1.0 + EXCESS))


@pytest.mark.parametrize("name", RANGES)
def test_the_continuous_frontier_is_convex_from_end_to_end(name: str) -> None:
    """Proved in kernels/gpu_clock.py; so mixing two clocks saves nothing."""
    rng = np.random.default_rng([len(name), ord(name[0]), 3])
    n, steps = 300, 41
    line = frontier(
        one_library(gpu_profiles(rng, n)), "gpu", RANGES[name], np.arange(n), np.ones(n)
    )
    share = np.linspace(0.0, 1.0, steps)
    energy = np.array(
        [line.at(line.t_min_s + s * (line.t_max_s - line.t_min_s)).energy_j for s in share]
    )
    chord = 0.5 * (energy[:-2] + energy[2:])
    assert np.all(energy[1:-1] <= chord * (1.0 + 1e-10))
    np.testing.assert_allclose(energy[0], line.e_min_time_j, rtol=1e-6)
    np.testing.assert_allclose(energy[-1], line.e_max_time_j, rtol=1e-6)


@pytest.mark.parametrize("model", ["gpu", "cpu", "measured"])
def test_enumerated_clocks_answer_as_trying_every_clock_does(model: str) -> None:
    rng = np.random.default_rng([17, len(model)])
    table, n = clock_table(rng), TABLE_TASKS
    profiles = {
        "gpu": lambda: gpu_profiles(rng, n),
        "cpu": lambda: cpu_profiles(rng, n),
        "measured": lambda: measured_profiles(rng, n, table),
    }[model]()
    library, scale = one_library(profiles), rng.uniform(0.5, 20.0, n)
    line = frontier(library, "gpu", table, np.arange(n), scale)
    shape = (n, len(table.points))
    points = np.tile(table.points, (n, 1))
    time, power = library.at(np.repeat(np.arange(n), shape[1]), "gpu", points)
    time = np.where(np.isnan(time), np.inf, time).reshape(shape) * scale[:, None]
    power = np.where(np.isnan(power), 1.0, power).reshape(shape)
    energy = power * time
    limit = spread_limits(rng, line.t_min_s, line.t_max_s)
    late = time > limit[:, None] * (1.0 + 1e-12)
    ours = line.within(limit)
    np.testing.assert_allclose(
        ours.energy_j, np.where(late, np.inf, energy).min(axis=1), rtol=1e-12
    )
    _assert_real(ours, table, library, scale)
    price = rng.uniform(-1.5, 1.5, n) * line.e_opt_j / line.t_opt_s
    ours = line.cheapest(price)
    with np.errstate(invalid="ignore"):
        cost = np.where(np.isfinite(time), energy + price[:, None] * time, np.inf).min(axis=1)
    excess = ours.energy_j + price * ours.time_s - cost
    assert np.all(np.abs(excess) <= 1e-12 * ours.energy_j)
    pick = np.argmin(np.where(np.isfinite(time), rng.random(shape), np.inf), axis=1)
    asked = time[np.arange(n), pick]
    same = np.abs(time - asked[:, None]) <= 1e-9 * np.maximum(1.0, asked[:, None])
    np.testing.assert_allclose(
        line.at(asked).energy_j, np.where(same, energy, np.inf).min(axis=1), rtol=1e-12
    )
