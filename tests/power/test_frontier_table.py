"""Frontiers on enumerated clocks: ladders, limits, and mixing two clocks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from downclock.power.frontier import Frontier, frontier
from downclock.power.points import FIXED_VOLTAGE, MEI_LAW, ClockRange, ClockTable
from downclock.power.profiles import GpuProfiles, MeasuredProfiles
from downclock.power.settings import MixedSettings
from tests.power.random_tasks import clock_table, gpu_profiles, measured_profiles, one_library

LEVELS = ClockTable(
    np.array([500.0, 600.0, 800.0, 1000.0]), np.full(4, 900.0), 1000.0, 900.0, FIXED_VOLTAGE
)


def _measured(time_s: list[float], energy_j: list[float]) -> Frontier:
    """One application measured at the four levels, in any order of time and energy."""
    time, energy = np.array(time_s), np.array(energy_j)
    core = np.array([0.5, 0.6, 0.8, 1.0])
    profile = MeasuredProfiles(np.array([0, 4]), core, np.ones(4), time, energy / time)
    return frontier(one_library(profile), "gpu", LEVELS, np.array([0]), np.array([1.0]))


@pytest.fixture(name="line")
def _line() -> Frontier:
    """Times 8, 4, 2, 1 and energies 9, 6, 12, 10: the third level is worse than the fourth."""
    return _measured([8.0, 4.0, 2.0, 1.0], [9.0, 6.0, 12.0, 10.0])


def test_the_ends_and_the_optimum(line: Frontier) -> None:
    assert (line.t_min_s[0], line.t_opt_s[0], line.t_max_s[0]) == (1.0, 4.0, 8.0)
    np.testing.assert_allclose(
        [line.e_min_time_j[0], line.e_opt_j[0], line.e_max_time_j[0]], [10.0, 6.0, 9.0]
    )


def test_a_limit_takes_the_cheapest_clock_that_is_fast_enough(line: Frontier) -> None:
    limit = np.array([0.9, 1.0, 2.0, 3.99, 4.0, 8.0, 99.0])
    best = line.within(limit, np.zeros(7, dtype=np.int64))
    np.testing.assert_allclose(best.energy_j, [np.inf, 10, 10, 10, 6, 6, 6])
    np.testing.assert_array_equal(best.time_s, [np.nan, 1, 1, 1, 4, 4, 4])
    np.testing.assert_allclose(best.points[[1, 4], 0], [1.0, 0.6])


def test_a_limit_that_misses_by_rounding_is_met(line: Frontier) -> None:
    limit = 4.0 * (1.0 - 1e-14)
    best = line.within(limit)
    assert best.energy_j[0] == pytest.approx(6.0)
    assert best.time_s[0] == limit


def test_only_the_times_of_clocks_can_be_met_exactly(line: Frontier) -> None:
    asked = np.array([1.0, 2.0, 2.0 + 1e-9, 2.1, 8.0, 9.0])
    exact = line.at(asked, np.zeros(6, dtype=np.int64))
    np.testing.assert_allclose(exact.energy_j, [10, 12, 12, np.inf, 9, np.inf])


def test_the_ladder_lists_every_time_once_with_its_least_energy() -> None:
    line = _measured([4.0, 4.0, 2.0, 1.0], [9.0, 6.0, 12.0, 10.0])
    offset, time, energy = line.ladder()
    np.testing.assert_array_equal(offset, [0, 3])
    np.testing.assert_array_equal(time, [1.0, 2.0, 4.0])
    np.testing.assert_allclose(energy, [10.0, 12.0, 6.0])


def test_ladders_follow_the_tasks_and_skip_continuous_ones() -> None:
    rng = np.random.default_rng(0)
    table = clock_table(rng)
    library = one_library(measured_profiles(rng, 5, table))
    application, scale = np.array([3, 0, 3]), np.array([1.0, 2.0, 10.0])
    offset, time, energy = frontier(library, "gpu", table, application, scale).ladder()
    assert offset[-1] == time.size == energy.size
    first, last = slice(offset[0], offset[1]), slice(offset[2], offset[3])
    np.testing.assert_allclose(time[last], 10.0 * time[first])
    np.testing.assert_allclose(energy[last], 10.0 * energy[first])
    gpu = one_library(gpu_profiles(rng, 3))
    smooth = frontier(gpu, "gpu", ClockRange(0.5, 1.0), np.arange(3), np.ones(3))
    np.testing.assert_array_equal(smooth.ladder()[0], [0, 0, 0, 0])


def test_a_price_of_time_takes_a_corner_of_the_hull(line: Frontier) -> None:
    """Slopes: -4/3 from time 1 to 4, then 3/4 to 8; the level with time 2 never wins."""
    price = np.array([2.0, 1.4, 1.3, 0.0, -0.7, -0.8])
    best = line.cheapest(price, np.zeros(6, dtype=np.int64))
    np.testing.assert_array_equal(best.time_s, [1, 1, 4, 4, 4, 8])


def test_mixing_halves_the_work_of_two_levels(line: Frontier) -> None:
    mixed = line.mixed().at(2.5)
    assert mixed.energy_j[0] == pytest.approx(8.0)
    assert mixed.share[0] == pytest.approx(0.5)
    assert mixed.first[0, 0] == 1.0
    assert mixed.second[0, 0] == 0.6
    assert mixed.time_s[0] == 2.5


def test_mixing_reaches_any_time_between_the_ends_and_none_beyond(line: Frontier) -> None:
    rows = np.zeros(5, dtype=np.int64)
    mixed = line.mixed().at(np.array([0.99, 1.0, 6.0, 8.0, 8.01]), rows)
    np.testing.assert_allclose(mixed.energy_j, [np.inf, 10.0, 7.5, 9.0, np.inf])
    np.testing.assert_array_equal(mixed.feasible, [False, True, True, True, False])
    np.testing.assert_allclose(mixed.share[1:4], [1.0, 0.5, 1.0])


def test_mixing_within_a_limit_meets_it_exactly_or_takes_the_optimum(line: Frontier) -> None:
    rows = np.zeros(4, dtype=np.int64)
    mixed = line.mixed().within(np.array([0.5, 2.5, 4.0, 100.0]), rows)
    np.testing.assert_allclose(mixed.energy_j, [np.inf, 8.0, 6.0, 6.0])
    np.testing.assert_array_equal(mixed.time_s, [np.nan, 2.5, 4.0, 4.0])


def test_mixing_is_the_best_division_of_the_work() -> None:
    """Against the linear program over shares of all clocks."""
    rng = np.random.default_rng(11)
    table, n = clock_table(rng), 40
    profiles = gpu_profiles(rng, n)
    library = one_library(profiles)
    line = frontier(library, "gpu", table, np.arange(n), np.ones(n))
    asked = line.t_min_s + rng.random(n) * (line.t_max_s - line.t_min_s)
    mixed = line.mixed().at(asked)
    for i in range(n):
        time, power = profiles.at(np.full(len(table.points), i), table.points)
        energy = time * power
        best = linprog(
            energy / energy.max(),
            A_eq=[np.ones(time.size), time / asked[i]],
            b_eq=[1.0, 1.0],
            bounds=(0, 1),
        )
        assert mixed.energy_j[i] == pytest.approx(best.fun * energy.max(), rel=1e-7)
    _assert_divides(mixed, profiles)


def _assert_divides(mixed: MixedSettings, profiles: GpuProfiles) -> None:
    """The totals are those of the two points and the share."""
    rows = np.arange(len(profiles))
    share = mixed.share
    first = profiles.at(rows, mixed.first)
    second = profiles.at(rows, mixed.second)
    time = share * first[0] + (1.0 - share) * second[0]
    energy = share * np.prod(first, axis=0) + (1.0 - share) * np.prod(second, axis=0)
    np.testing.assert_allclose(mixed.time_s, time, rtol=1e-12)
    np.testing.assert_allclose(mixed.energy_j, energy, rtol=1e-12)


def test_measurements_outside_the_allowed_clocks_do_not_count() -> None:
    core = np.array([0.55, 0.8, 1.0])
    profile = MeasuredProfiles(
        np.array([0, 3]), core, np.ones(3), np.array([1.0, 2.0, 3.0]), np.ones(3)
    )
    library, one = one_library(profile), np.ones(1)
    assert frontier(library, "gpu", LEVELS, np.array([0]), one).t_min_s[0] == 2.0
    box = ClockRange(0.5, 0.9, 1.0, 1.0, 0.5, 1.2, MEI_LAW)
    inside = frontier(library, "gpu", box, np.array([0]), one)
    assert (inside.t_min_s[0], inside.t_max_s[0]) == (1.0, 2.0)
    beyond = frontier(library, "gpu", ClockRange(0.1, 0.2), np.array([0]), one)
    assert beyond.t_min_s[0] == np.inf
    assert not beyond.within(100.0).feasible[0]
    assert not beyond.mixed().within(100.0).feasible[0]
    assert not beyond.mixed().at(2.0).feasible[0]
    assert not beyond.cheapest(3.0).feasible[0]
