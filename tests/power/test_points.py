"""Operating points: voltage laws, continuous boxes and enumerated clocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from downclock.errors import InvalidInput
from downclock.power.points import (
    FIXED_VOLTAGE,
    INTERVALS,
    MEI_LAW,
    NARROW,
    NARROW_2017,
    PROPORTIONAL_LAW,
    WIDE,
    ClockRange,
    ClockTable,
    VoltageLaw,
)


@given(st.floats(0.5, 2.0))
def test_the_law_of_mei_is_g1_solved_for_the_voltage(volt: float) -> None:
    """g1(V) = sqrt((V - 0.5) / 2) + 0.5, mei2021 section 5.1.1."""
    core = np.sqrt((volt - 0.5) / 2.0) + 0.5
    assert MEI_LAW.max_core(volt) == pytest.approx(core, rel=1e-12)
    assert float(MEI_LAW.min_volt(core)) == pytest.approx(volt, rel=1e-12)


def test_other_laws_invert_too() -> None:
    assert PROPORTIONAL_LAW.max_core(0.7) == 0.7
    assert FIXED_VOLTAGE.max_core(1.0) == np.inf
    concave = VoltageLaw(0.0, 1.5, -0.25)
    assert concave.max_core(float(concave.min_volt(0.8))) == pytest.approx(0.8)


def test_a_voltage_below_the_law_has_no_clock() -> None:
    with pytest.raises(InvalidInput, match=r"volt=0.4 is below every voltage of the law"):
        MEI_LAW.max_core(0.4)


@pytest.mark.parametrize(
    ("clocks", "core_max"),
    [(WIDE, 1.0916), (NARROW, 1.1083), (NARROW_2017, 1.0244)],
    ids=["wide", "narrow", "narrow-2017"],
)
def test_the_highest_voltage_limits_the_clock(clocks: ClockRange, core_max: float) -> None:
    """g1 at 1.2, 1.24 and 1.05: mei2021 section 5.1.1, mei2017 section V-A."""
    assert clocks.core_max == pytest.approx(core_max, abs=5e-5)


def test_the_lowest_voltage_is_kept_at_slow_clocks() -> None:
    volt = NARROW_2017.volt(np.array([0.85, 0.9, 1.0]))
    np.testing.assert_allclose(volt, [0.85, 0.85, 1.0])


@pytest.mark.parametrize("name", INTERVALS)
def test_an_interval_allows_its_default_and_its_corners(name: str) -> None:
    clocks = INTERVALS[name]
    corners = [
        (core, memory, float(clocks.volt(core)))
        for core in (clocks.core_min, clocks.core_max)
        for memory in (clocks.memory_min, clocks.memory_max)
    ]
    assert np.all(clocks.allows(np.array([clocks.default, *corners])))
    np.testing.assert_allclose(clocks.default, 1.0)


def test_an_interval_refuses_what_is_outside_or_unstable() -> None:
    points = np.array(
        [
            (0.49, 1.0, 1.0),
            (1.1, 1.0, 1.2),
            (1.0, 0.4, 1.0),
            (1.0, 1.3, 1.0),
            (1.0, 1.0, 0.99),
            (1.0, 1.0, 1.21),
            (np.nan, 1.0, 1.0),
        ]
    )
    assert not np.any(WIDE.allows(points))
    assert WIDE.allows(np.array([(1.0, 1.0, 1.1)]))[0]


def test_the_default_is_the_nearest_allowed() -> None:
    slow = ClockRange(0.5, 0.6, 0.3, 0.5, 0.5, 1.0, MEI_LAW)
    assert slow.default[0] == 0.6
    assert slow.default[1] == 0.5
    assert slow.allows(slow.default[None, :])[0]


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"core_min": 0.0}, "core_min=0.0 must be positive"),
        ({"core_min": 2.0, "core_max": 1.0}, "core_max=1.0 must be finite and at least core_min"),
        ({"core_min": 0.5}, "core_max=inf must be finite"),
        ({"core_min": 0.5, "core_max": 1.0, "memory_max": 0.5}, "memory_max=0.5 must be"),
        ({"core_min": np.nan, "core_max": 1.0}, "core_min=nan must be positive"),
    ],
)
def test_an_impossible_box_is_refused(bounds: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ClockRange(**bounds)


def test_a_law_that_falls_with_the_clock_is_refused() -> None:
    with pytest.raises(InvalidInput, match="must be positive and rise with the clock"):
        ClockRange(0.5, 1.0, volt_min=0.1, volt_max=2.0, law=VoltageLaw(2.0, -1.0, 0.0))


@pytest.fixture(name="table")
def _table() -> ClockTable:
    """Four pairs of a card whose default is 1500 / 5000 MHz."""
    core, memory = [750.0, 1500.0, 1200.0, 1500.0], [5000.0, 5000.0, 4000.0, 4000.0]
    return ClockTable(np.array(core), np.array(memory), 1500.0, 5000.0, MEI_LAW)


def test_a_table_gives_ratios_to_the_default_pair_and_the_laws_voltage(table: ClockTable) -> None:
    np.testing.assert_allclose(
        table.points, [(0.5, 1.0, 0.5), (1.0, 1.0, 1.0), (0.8, 0.8, 0.68), (1.0, 0.8, 1.0)]
    )
    np.testing.assert_array_equal(table.default, [1.0, 1.0, 1.0])


def test_below_the_laws_least_voltage_a_table_keeps_it() -> None:
    slow = ClockTable(np.array([300.0]), np.array([1.0]), 1500.0, 1.0, MEI_LAW)
    assert slow.points[0, 2] == 0.5
    np.testing.assert_array_equal(slow.default, slow.points[0])


def test_a_table_allows_its_pairs_and_no_other_combination(table: ClockTable) -> None:
    asked = np.array([(0.5, 1.0, 0.5), (0.5, 0.8, 0.5), (0.9, 1.0, 1.0), (np.nan, 1.0, 1.0)])
    np.testing.assert_array_equal(table.allows(asked), [True, False, False, False])
    assert table.allows(np.empty((0, 3))).shape == (0,)


def test_a_table_allows_up_to_the_tolerance() -> None:
    table = ClockTable(np.array([0.1234567894]), np.array([1.0]), 1.0, 1.0)
    asked = np.array([(0.1234567896, 1.0, 1.0), (0.123456792, 1.0, 1.0)])
    np.testing.assert_array_equal(table.allows(asked), [True, False])


@pytest.mark.parametrize(
    ("core", "default", "message"),
    [
        ([], 1.0, "clock table: needs at least one clock"),
        ([0.0, 1.0], 1.0, "core_mhz=0.0 must be positive"),
        ([1.0], 0.0, "default_core_mhz=0.0 must be positive"),
        ([1.0], np.nan, "default_core_mhz=nan must be positive"),
        # A run at such a clock would take longer than any time there is.
        ([1e-12], 1e6, "core=1e-18 must be between 1e-15 and 1e.15"),
    ],
)
def test_an_impossible_table_is_refused(core: list[float], default: float, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ClockTable(np.array(core), np.ones(len(core)), default, 1.0)
