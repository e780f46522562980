"""Profiles and libraries: time and power of applications at operating points."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.power.library import Library
from downclock.power.profiles import CpuProfiles, GpuProfiles, MeasuredProfiles, Profiles

FIRST = np.zeros(1, dtype=np.int64)
DEFAULT = np.ones((1, 3))
GPU = {"p0_w": 100.0, "gamma_w": 50.0, "c_w": 150.0, "d_s": 20.0, "delta": 0.25, "t0_s": 5.0}


def _gpu(**changes: float) -> GpuProfiles:
    return GpuProfiles(**{name: np.array([value]) for name, value in (GPU | changes).items()})


def _measured(**changes: list[float]) -> MeasuredProfiles:
    columns = {
        "offset": [0, 2, 3],
        "core": [1.0, 0.5, 1.0],
        "memory": [1.0, 1.0, 0.8],
        "time_s": [2.0, 3.5, 7.0],
        "power_w": [200.0, 120.0, 90.0],
    }
    return MeasuredProfiles(**{key: np.array(value) for key, value in (columns | changes).items()})


def test_the_gpu_model_at_its_default_clocks() -> None:
    """All ratios 1: time D + t0, power P0 + gamma + c (mei2021 Eq. 1-2)."""
    time, power = _gpu().at(FIRST, DEFAULT)
    assert time[0] == 25.0
    assert power[0] == 300.0


def test_the_gpu_model_away_from_its_default_clocks() -> None:
    """20 (0.25 / 0.5 + 0.75 / 0.8) + 5 = 33.75 s; 100 + 50 0.8 + 150 0.6² 0.5 = 167 W."""
    time, power = _gpu().at(FIRST, np.array([(0.5, 0.8, 0.6)]))
    assert time[0] == pytest.approx(33.75)
    assert power[0] == pytest.approx(167.0)


def test_the_core_model_halves_its_speed_at_half_its_clock() -> None:
    """10 / 0.5 = 20 s; 0.2 + 2 / 2³ = 0.45 W."""
    core = CpuProfiles(np.array([10.0]), np.array([2.0]), np.array([3.0]), np.array([0.2]))
    time, power = core.at(FIRST, np.array([(0.5, 1.0, 1.0)]))
    assert time[0] == 20.0
    assert power[0] == pytest.approx(0.45)


def test_measurements_answer_where_somebody_measured_and_nowhere_else() -> None:
    rows = np.array([0, 0, 1, 1])
    points = np.array([(0.5, 1.0, 1.0), (1.0, 0.8, 1.0), (1.0, 0.8, 0.3), (0.5, 1.0, 1.0)])
    time, power = _measured().at(rows, points)
    np.testing.assert_array_equal(time, [3.5, np.nan, 7.0, np.nan])
    np.testing.assert_array_equal(power, [120.0, np.nan, 90.0, np.nan])


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("p0_w", -1.0, "p0_w=-1.0 must be finite and not negative"),
        ("c_w", np.nan, "c_w=nan must be finite and not negative"),
        ("t0_s", np.inf, "t0_s=inf must be finite and not negative"),
        ("delta", 1.5, "delta=1.5 must be at most 1"),
    ],
)
def test_a_gpu_profile_that_cannot_be_is_refused(field: str, value: float, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        _gpu(**{field: value})


def test_a_profile_that_takes_no_time_is_refused() -> None:
    with pytest.raises(InvalidInput, match="d_s \\+ t0_s must be positive"):
        _gpu(d_s=0.0, t0_s=0.0)


def test_the_row_at_fault_is_named() -> None:
    with pytest.raises(InvalidInput) as caught:
        CpuProfiles(np.ones(3), np.ones(3), np.array([3.0, 2.0, 0.5]), np.zeros(3))
    assert caught.value.field == "alpha"
    assert caught.value.row == 2


def test_measurements_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"time_s=0.0 must be positive and finite") as caught:
        _measured(time_s=[2.0, 3.5, 0.0])
    assert caught.value.row == 1
    with pytest.raises(InvalidInput, match="has no measured point"):
        _measured(offset=[0, 3, 3])


def test_a_library_finds_the_profile_of_each_application_and_kind() -> None:
    core = CpuProfiles(np.array([10.0]), np.array([2.0]), np.array([3.0]), np.array([0.0]))
    groups: tuple[Profiles, ...] = (_gpu(), core)
    group, row = np.array([[0, 1], [-1, 1]]), np.zeros((2, 2), dtype=np.int64)
    library = Library(np.array(["train", "solve"]), ("gpu", "cpu"), groups, group, row)
    points = np.ones((2, 3))
    np.testing.assert_array_equal(library.at(np.array([0, 1]), "gpu", points)[0], [25.0, np.nan])
    np.testing.assert_array_equal(library.at(np.array([0, 1]), "cpu", points)[1], [2.0, 2.0])
    assert np.all(np.isnan(library.at(np.array([0, 1]), "tpu", points)[0]))
    assert len(library) == 2


def test_two_applications_of_one_name_are_refused() -> None:
    profiles = GpuProfiles(*(np.full(2, value) for value in GPU.values()))
    with pytest.raises(InvalidInput, match="application 'train': is defined twice"):
        Library.of_one_kind(np.array(["train", "train"]), "gpu", profiles)


def test_columns_of_different_length_are_refused() -> None:
    columns = {name: np.array([value]) for name, value in GPU.items()}
    with pytest.raises(InvalidInput, match="delta has 2 rows, the first column 1"):
        GpuProfiles(**{**columns, "delta": np.array([0.2, 0.3])})
