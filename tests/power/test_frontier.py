"""Energy-time frontiers: published optima, the three questions, and their odd corners."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.kernels.compiling import compiled
from downclock.power.frontier import Frontier, frontier
from downclock.power.frontier_gpu import gpu_box
from downclock.power.kernels.gpu_clock import gpu_cheapest, gpu_energy_at, gpu_time, gpu_time_range
from downclock.power.library import Library
from downclock.power.points import (
    MEI_LAW,
    NARROW_2017,
    PROPORTIONAL_LAW,
    WIDE,
    ClockRange,
    Clocks,
)
from downclock.power.profiles import CpuProfiles, GpuProfiles, MeasuredProfiles, Profiles
from downclock.power.settings import Settings
from tests.power.random_tasks import RANGES, clock_table, cpu_profiles, gpu_profiles, one_library


def _frontier(profiles: Profiles, clocks: Clocks, scale: float = 1.0) -> Frontier:
    n = len(profiles)
    return frontier(one_library(profiles), "gpu", clocks, np.arange(n), np.full(n, scale))


def _gpu(**changes: float) -> GpuProfiles:
    usual = {"p0_w": 60.0, "gamma_w": 30.0, "c_w": 100.0, "d_s": 100.0, "delta": 0.5, "t0_s": 5.0}
    return GpuProfiles(**{name: np.array([value]) for name, value in (usual | changes).items()})


@pytest.fixture(name="table3")
def _table3() -> GpuProfiles:
    """J1 to J5 of mei2021 Table 3: P0=100 W, P*=300 W, t0=5, t*=30, and delta as printed."""
    delta = np.array([0.0, 1.0, 0.5, 0.8, 0.2])
    p0, gamma, c, d, t0 = (np.full(5, x) for x in (100.0, 0.0, 200.0, 25.0, 5.0))
    return GpuProfiles(p0, gamma, c, d, delta, t0)


TABLE3_DEADLINE = np.array([50.0, 36.0, 60.0, 100.0, 300.0])


def test_table_3_of_mei2021_is_reproduced(table3: GpuProfiles) -> None:
    best = _frontier(table3, WIDE).within(TABLE3_DEADLINE)
    np.testing.assert_allclose(best.time_s, [25.83, 36.0, 35.44, 39.10, 30.86], atol=5e-3)
    np.testing.assert_allclose(best.power_w, [125.00, 176.31, 135.20, 141.39, 127.60], atol=5e-3)


def test_table_3_as_printed_is_within_its_grid(table3: GpuProfiles) -> None:
    """The paper searched voltages on a grid: its J1 runs at 125.23 W, not at 125."""
    printed_w = np.array([125.23, 176.31, 135.20, 141.39, 127.60])
    best = _frontier(table3, WIDE).within(TABLE3_DEADLINE)
    np.testing.assert_allclose(best.power_w, printed_w, rtol=0.003)


def test_only_the_second_task_of_table_3_feels_its_deadline(table3: GpuProfiles) -> None:
    line = _frontier(table3, WIDE)
    assert list(line.t_opt_s > TABLE3_DEADLINE) == [False, True, False, False, False]
    assert line.within(TABLE3_DEADLINE).time_s[1] == 36.0


def test_shortest_time_of_the_third_task_is_not_the_papers(table3: GpuProfiles) -> None:
    """The text of mei2021 says 25.83; with V <= 1.2 it is 26.87."""
    assert _frontier(table3, WIDE).t_min_s[2] == pytest.approx(26.87, abs=5e-3)


def test_a_free_memory_clock_runs_at_full_speed(table3: GpuProfiles) -> None:
    best = _frontier(table3, WIDE).cheapest(0.0)
    np.testing.assert_allclose(best.points[[0, 2, 3, 4], 1], 1.2)


@pytest.mark.parametrize(
    ("clocks", "energy_j", "theorem_1_j"),
    [
        (NARROW_2017, 15222.4, 15569.6),
        (ClockRange(0.5, np.inf, 0.5, 1.2, 0.8, 1.2, MEI_LAW), 12800.0, 13944.9),
    ],
    ids=["narrow-2017", "floor-0.8"],
)
def test_theorem_1_is_not_assumed(clocks: ClockRange, energy_j: float, theorem_1_j: float) -> None:
    """At the lowest voltage a clock below g1(V) can win: core = g1(V) would cost more."""
    profiles = _gpu(delta=0.1)
    best = _frontier(profiles, clocks).cheapest(0.0)
    assert best.energy_j[0] == pytest.approx(energy_j, abs=0.05)
    assert best.points[0, 0] < MEI_LAW.max_core(best.points[0, 2]) - 0.05
    volt = np.linspace(clocks.volt_min, clocks.volt_max, 801)
    core, memory = np.meshgrid(
        [MEI_LAW.max_core(v) for v in volt], np.linspace(clocks.memory_min, clocks.memory_max, 801)
    )
    points = np.column_stack([core.ravel(), memory.ravel(), clocks.volt(core.ravel())])
    time, power = profiles.at(np.zeros(core.size, dtype=np.int64), points)
    assert np.min(time * power) == pytest.approx(theorem_1_j, abs=0.05)


def test_a_limit_longer_than_the_optimum_changes_nothing() -> None:
    line = _frontier(gpu_profiles(np.random.default_rng(1), 50), WIDE)
    _assert_same(line.within(np.inf), line.cheapest(0.0))
    _assert_same(line.within(line.t_max_s), line.cheapest(0.0))


def test_a_limit_below_the_shortest_time_is_infeasible() -> None:
    line = _frontier(_gpu(), WIDE)
    for limit in (line.t_min_s[0] * (1.0 - 1e-9), 0.0, -1.0, -np.inf):
        none = line.within(limit)
        assert not none.feasible[0]
        assert np.isnan(none.time_s[0])
        assert none.energy_j[0] == np.inf
    assert line.within(line.t_min_s).feasible[0]


def test_exactly_a_time_is_infeasible_out_of_reach() -> None:
    line = _frontier(_gpu(), WIDE)
    asked = np.array([line.t_min_s[0] * 0.999, line.t_max_s[0] * 1.001, np.inf, -np.inf])
    none = line.at(asked, rows=np.zeros(4, dtype=np.int64))
    assert not np.any(none.feasible)
    assert np.all(np.isnan(none.power_w))


def test_scale_multiplies_time_and_energy() -> None:
    profiles = gpu_profiles(np.random.default_rng(2), 40)
    one, seven = _frontier(profiles, WIDE), _frontier(profiles, WIDE, scale=7.0)
    for name in ("t_min_s", "t_opt_s", "t_max_s", "e_min_time_j", "e_opt_j", "e_max_time_j"):
        np.testing.assert_allclose(getattr(seven, name), 7.0 * getattr(one, name), rtol=1e-14)
    limit = 0.5 * (one.t_min_s + one.t_opt_s)
    np.testing.assert_allclose(
        seven.within(7.0 * limit).energy_j, 7.0 * one.within(limit).energy_j, rtol=1e-9
    )


def test_a_task_without_work_takes_no_time_and_no_energy() -> None:
    line = _frontier(_gpu(), WIDE, scale=0.0)
    for answer in (line.within(0.0), line.at(0.0), line.cheapest(-20.0), line.mixed().at(0.0)):
        assert answer.time_s[0] == 0.0
        assert answer.energy_j[0] == 0.0
    assert not line.within(-1.0).feasible[0]
    assert not line.at(1.0).feasible[0]


def test_rows_select_and_repeat_tasks() -> None:
    line = _frontier(gpu_profiles(np.random.default_rng(3), 20), NARROW_2017)
    rows = np.array([7, 7, 0, 19])
    limit = 0.5 * (line.t_min_s + line.t_opt_s)
    _assert_same(line.within(limit[rows], rows), line.within(limit).take(rows))
    _assert_same(line.at(limit[rows], rows), line.at(limit).take(rows))
    _assert_same(line.cheapest(-30.0, rows), line.cheapest(-30.0).take(rows))


def test_a_higher_price_of_time_never_means_a_longer_time() -> None:
    line = _frontier(gpu_profiles(np.random.default_rng(4), 100), RANGES["floor"])
    times = [line.cheapest(price).time_s for price in (-np.inf, -300, -50, 0, 50, 300, np.inf)]
    for longer, shorter in pairwise(times):
        assert np.all(shorter <= longer * (1.0 + 1e-9))
    np.testing.assert_allclose(times[-1], line.t_min_s, rtol=1e-9)
    np.testing.assert_allclose(times[0], line.t_max_s, rtol=1e-9)


def test_one_price_for_all_equals_a_price_per_row() -> None:
    line = _frontier(gpu_profiles(np.random.default_rng(5), 30), WIDE)
    many = frontier(
        one_library(gpu_profiles(np.random.default_rng(5), 30)),
        "gpu",
        WIDE,
        np.tile(np.arange(30), 3),
        np.ones(90),
    )
    _assert_same(many.cheapest(25.0).take(np.arange(30)), line.cheapest(25.0))
    mixed_prices = np.where(np.arange(30) % 2 == 0, 25.0, -25.0)
    _assert_same(
        line.cheapest(mixed_prices).take(np.arange(0, 30, 2)),
        line.cheapest(25.0).take(np.arange(0, 30, 2)),
    )


@pytest.mark.parametrize(
    ("changes", "point"),
    [
        ({"d_s": 0.0}, (0.5, 0.5)),
        ({"delta": 0.0, "gamma_w": 0.0}, (0.5, 1.2)),
        ({"delta": 1.0, "c_w": 0.0}, (1.0916079783099617, 0.5)),
        ({"gamma_w": 0.0, "c_w": 0.0}, (1.0916079783099617, 1.2)),
        ({"p0_w": 0.0, "t0_s": 0.0, "delta": 1.0, "gamma_w": 0.0}, (0.5, 0.5)),
    ],
    ids=["clocks-do-nothing", "free-memory", "free-core", "free-clocks", "only-core"],
)
def test_clocks_go_to_the_end_where_nothing_is_traded(
    changes: dict[str, float], point: tuple[float, float]
) -> None:
    line = _frontier(_gpu(**changes), WIDE)
    np.testing.assert_allclose(line.cheapest(0.0).points[0, :2], point)
    at_ends = line.at(np.array([line.t_min_s[0], line.t_max_s[0]]), np.array([0, 0]))
    np.testing.assert_allclose(
        at_ends.energy_j, [line.e_min_time_j[0], line.e_max_time_j[0]], rtol=1e-12
    )


def test_a_time_no_clock_changes_is_the_only_time() -> None:
    line = _frontier(_gpu(d_s=0.0), WIDE)
    assert line.t_min_s[0] == line.t_opt_s[0] == line.t_max_s[0] == 5.0
    assert line.e_min_time_j[0] == line.e_opt_j[0] == line.e_max_time_j[0]
    assert line.at(5.0).feasible[0]
    assert not line.at(5.1).feasible[0]


def test_the_critical_clock_of_a_core() -> None:
    """Static 0.2 W, dynamic f^3: the textbook's (0.2 / 2)^(1/3)."""
    core = CpuProfiles(10.0, 1.0, 3.0, 0.2)
    best = _frontier(core, ClockRange(0.1, 1.0)).cheapest(0.0)
    assert best.points[0, 0] == pytest.approx(0.1 ** (1 / 3), rel=1e-14)
    hurried = _frontier(core, ClockRange(0.1, 1.0)).cheapest(1.6)
    assert hurried.points[0, 0] == pytest.approx(0.9 ** (1 / 3), rel=1e-14)
    assert _frontier(core, ClockRange(0.1, 1.0)).cheapest(-0.2).points[0, 0] == 0.1


def test_a_core_at_a_fixed_time_runs_at_the_average_clock() -> None:
    """Work 10 in 20 s: f = 1/2, energy 20 (0.2 + 1/8)."""
    line = _frontier(CpuProfiles(10.0, 1.0, 3.0, 0.2), ClockRange(0.1, 1.0))
    at = line.at(20.0)
    assert at.points[0, 0] == 0.5
    assert at.energy_j[0] == pytest.approx(6.5, rel=1e-14)
    assert not line.at(9.0).feasible[0]


def test_a_core_whose_power_grows_like_its_clock_races_when_anything_else_draws() -> None:
    linear = CpuProfiles(np.full(2, 10.0), np.ones(2), np.ones(2), np.array([0.0, 1.0]))
    best = _frontier(linear, ClockRange(0.25, 1.0)).cheapest(0.0)
    np.testing.assert_array_equal(best.points[:, 0], [1.0, 1.0])


def test_the_voltage_returned_is_the_least_for_the_clock() -> None:
    box = ClockRange(0.2, 1.0, 1.0, 1.0, 0.4, 1.0, PROPORTIONAL_LAW)
    line = _frontier(cpu_profiles(np.random.default_rng(6), 30), box)
    points = line.cheapest(0.0).points
    np.testing.assert_array_equal(points[:, 2], np.maximum(0.4, points[:, 0]))


def _mixed_library() -> Library:
    """Three applications on two kinds: GPU model, CPU model, measured; the last not on 'b'."""
    groups: tuple[Profiles, ...] = (
        _gpu(),
        CpuProfiles(10.0, 50.0, 3.0, 20.0),
        MeasuredProfiles(
            np.array([0, 3]),
            np.array([0.6, 0.8, 1.0]),
            np.ones(3),
            np.array([16.0, 12.0, 10.0]),
            np.array([50.0, 60.0, 90.0]),
        ),
    )
    group = np.array([[0, 0], [1, 1], [2, -1]])
    names = np.array(["render", "solve", "train"], dtype=object)
    return Library(names, ("a", "b"), groups, group, np.zeros((3, 2), dtype=np.int64))


def test_one_frontier_holds_tasks_of_every_model() -> None:
    library = _mixed_library()
    application, scale = np.array([2, 0, 1, 0, 2]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    line = frontier(library, "a", WIDE, application, scale)
    best = line.cheapest(0.0)
    time, power = library.at(application, "a", best.points)
    np.testing.assert_allclose(best.time_s, time * scale, rtol=1e-12)
    np.testing.assert_allclose(best.energy_j, time * power * scale, rtol=1e-12)
    assert best.energy_j[0] == 12.0 * 60.0
    for row in range(5):
        alone = frontier(library, "a", WIDE, application[[row]], scale[[row]])
        _assert_same(
            alone.within(1.3 * alone.t_min_s), line.within(1.3 * line.t_min_s).take(np.array([row]))
        )
        _assert_same(alone.cheapest(-40.0), line.cheapest(-40.0).take(np.array([row])))


def test_a_task_without_a_profile_cannot_run() -> None:
    line = frontier(_mixed_library(), "b", WIDE, np.array([2, 1]), np.array([1.0, 0.0]))
    assert line.t_min_s[0] == line.t_opt_s[0] == line.e_opt_j[0] == np.inf
    for answer in (line.within(1e9), line.at(12.0), line.cheapest(0.0), line.mixed().within(1e9)):
        assert not answer.feasible[0]
        assert np.isnan(answer.time_s[0])
    unknown = frontier(_mixed_library(), "c", WIDE, np.array([0, 1]), np.ones(2))
    assert not np.any(unknown.cheapest(0.0).feasible)
    np.testing.assert_array_equal(unknown.ladder()[0], [0, 0, 0])


def test_a_frontier_of_no_tasks_answers_nothing() -> None:
    line = frontier(_mixed_library(), "a", WIDE, np.empty(0, dtype=np.int64), np.empty(0))
    assert len(line) == len(line.within(1.0)) == len(line.mixed().at(1.0)) == 0


def test_questions_that_are_not_numbers_are_refused() -> None:
    line = _frontier(_gpu(), WIDE)
    with pytest.raises(InvalidInput, match="limit_s is not a number"):
        line.within(np.nan)
    with pytest.raises(InvalidInput, match=r"time_price_w=\(2,\) must have 1 rows"):
        line.cheapest(np.zeros(2))


def test_continuous_clocks_need_no_mixing() -> None:
    line = _frontier(gpu_profiles(np.random.default_rng(8), 30), WIDE)
    time = 0.3 * line.t_min_s + 0.7 * line.t_max_s
    one, mixed = line.at(time), line.mixed().at(time)
    np.testing.assert_array_equal(one.energy_j, mixed.energy_j)
    np.testing.assert_array_equal(mixed.share, 1.0)
    np.testing.assert_array_equal(mixed.first, mixed.second)


def energies() -> list[float]:
    """Answers of every kernel, for a comparison with and without numba."""
    rng = np.random.default_rng(9)
    profiles = gpu_profiles(rng, 40)
    line, table = _frontier(profiles, RANGES["floor"]), _frontier(profiles, clock_table(rng))
    limit = 0.5 * (line.t_min_s + line.t_opt_s)
    middle = 0.5 * (table.t_min_s + table.t_opt_s)
    answers = (
        line.cheapest(-30.0),
        line.within(limit),
        table.cheapest(-30.0),
        table.within(middle),
        table.at(table.t_max_s),
        table.mixed().within(middle),
    )
    return [float(np.sum(answer.energy_j)) for answer in answers]


def test_plain_python_gives_the_same_numbers() -> None:
    plain = (
        "import sys; sys.modules['numba'] = None;"
        "from tests.power.test_frontier import energies; print(*energies())"
    )
    done = subprocess.run(
        [sys.executable, "-c", plain],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    np.testing.assert_allclose([float(x) for x in done.stdout.split()], energies(), rtol=1e-12)


@pytest.mark.parametrize("name", ["wide", "floor"])
def test_the_scalar_kernels_answer_as_the_frontier_does(name: str) -> None:
    """Scheduling kernels call these inside their own loops."""
    profiles, box = _gpu(delta=0.4), gpu_box(RANGES[name])
    task = (60.0, 30.0, 100.0, 100.0, 0.4, 5.0)
    line = _frontier(profiles, RANGES[name])
    time, energy, core, memory, shortest, longest, at, back = _inside_a_kernel(*task, box)
    stretched = line.cheapest(-20.0)
    assert (time, energy) == (stretched.time_s[0], stretched.energy_j[0])
    assert (core, memory) == tuple(stretched.points[0, :2])
    assert (shortest, longest) == (line.t_min_s[0], line.t_max_s[0])
    assert at == line.at(110.0).energy_j[0]
    assert back == pytest.approx(110.0, rel=1e-14)


@compiled
def _inside_a_kernel(p0, gamma, c, d, delta, t0, box):
    """Cheapest at -20 W (time, energy, core, memory), time range, energy and time of 110 s."""
    time, energy, core, memory = gpu_cheapest(p0, gamma, c, d, delta, t0, box, -20.0)
    shortest, longest = gpu_time_range(d, delta, t0, box)
    at, core_at, memory_at = gpu_energy_at(p0, gamma, c, d, delta, t0, box, 110.0)
    back = gpu_time(d, delta, t0, core_at, memory_at)
    return time, energy, core, memory, shortest, longest, at, back


def _assert_same(one: Settings, other: Settings) -> None:
    np.testing.assert_array_equal(one.time_s, other.time_s)
    np.testing.assert_array_equal(one.energy_j, other.energy_j)
    np.testing.assert_array_equal(one.points, other.points)
