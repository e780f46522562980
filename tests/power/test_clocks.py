"""Clocks answer alike whether they are continuous or enumerated."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.power.points import MEI_LAW, WIDE, ClockRange, Clocks, ClockTable, PowerLimits

CARD = ClockTable(
    np.array([750.0, 1200.0, 1500.0, 1500.0]),
    np.array([5000.0, 4000.0, 4000.0, 5000.0]),
    1500.0,
    5000.0,
    MEI_LAW,
)
CORE_ONLY = ClockRange(0.5, 1.5)
LIMITS = PowerLimits(np.array([300.0, 150.0, 225.0]), 300.0)


@pytest.mark.parametrize("clocks", [WIDE, CARD, CORE_ONLY, LIMITS])
def test_every_point_that_clocks_offer_is_allowed(clocks: Clocks) -> None:
    offered = [
        clocks.default,
        clocks.nearest(0.1, 9.0),
        *clocks.grid(5, 3),
        *clocks.at_cores(np.array([clocks.low[0], 1.0, clocks.high[0]])),
        *(point for way in (-1, 1) if (point := clocks.step(clocks.default, way)) is not None),
    ]
    assert np.all(clocks.allows(np.array(offered)))


def test_a_range_is_sampled_and_a_table_is_listed() -> None:
    assert not WIDE.listed
    assert len(WIDE.points) == 0
    assert WIDE.grid(5, 3).shape == (15, 3)
    assert CORE_ONLY.grid(5, 3).shape == (5, 3)
    assert CARD.listed
    assert CARD.grid(5, 3) is CARD.points


def test_the_ends_are_those_of_core_and_memory() -> None:
    assert WIDE.low.tolist() == [0.5, 0.5]
    assert WIDE.high == pytest.approx([1.0916, 1.2], abs=1e-4)
    assert (CARD.low.tolist(), CARD.high.tolist()) == ([0.5, 0.8], [1.0, 1.0])
    assert (WIDE.scales_memory, CARD.scales_memory, CORE_ONLY.scales_memory) == (True, True, False)


def test_the_nearest_point_is_clipped_or_looked_up() -> None:
    assert WIDE.nearest(0.7, 2.0).tolist() == [0.7, 1.2, float(WIDE.volt(0.7))]
    assert CARD.nearest(0.85, 0.75).tolist() == pytest.approx([0.8, 0.8, 0.68])


def test_a_step_is_five_per_cent_or_the_next_clock_at_the_same_memory() -> None:
    assert WIDE.step(WIDE.default, -1)[0] == pytest.approx(0.95)  # type: ignore[index]
    assert WIDE.step(WIDE.nearest(9.0, 1.0), 1) is None
    assert CARD.step(CARD.points[2], -1).tolist() == CARD.points[1].tolist()  # type: ignore[union-attr]
    assert CARD.step(CARD.points[1], -1) is None


def test_a_voltage_comes_with_the_fastest_core_it_allows() -> None:
    settings = WIDE.voltages(0.1)
    assert [round(volt, 1) for _, volt in settings] == [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2]
    for core, volt in settings[1:]:
        assert MEI_LAW.min_volt(core) == pytest.approx(volt)
    assert CARD.voltages(0.1) == []


def test_people_read_ratios_of_a_range_and_megahertz_of_a_table() -> None:
    assert WIDE.words(WIDE.default) == "core 1, memory 1"
    assert CORE_ONLY.words(np.array([0.75, 1.0, 1.0])) == "core 0.75"
    assert CARD.words(CARD.points[1]) == "1200 MHz, memory 4000 MHz"
    assert WIDE.describe() == "core 0.5 to 1.09, memory 0.5 to 1.2 of default"
    assert CARD.describe() == "4 pairs, core 750 to 1500 MHz"
    assert CARD.default_mhz == (1500.0, 5000.0)
    assert WIDE.default_mhz is LIMITS.default_mhz is None
    assert LIMITS.words(LIMITS.points[1]) == "limit 225 W"
    assert LIMITS.describe() == "3 power limits, 150 to 300 W"


def test_what_is_set_has_a_name() -> None:
    assert (WIDE.knob, CARD.knob, LIMITS.knob) == ("clock", "clock", "power limit")


def test_a_table_has_one_voltage_a_clock() -> None:
    asked = np.array([(0.8, 0.8, 0.68), (0.8, 0.8, 0.7), (0.8, 1.0, 0.68)])
    assert CARD.allows(asked).tolist() == [True, False, False]
