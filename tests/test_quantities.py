from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downclock.quantities import count, duration, energy, instant, money, percent, prefixed


@pytest.mark.parametrize(
    ("joules", "text"),
    [
        (0.0, "0 J"),
        (12.5, "12.5 J"),
        (999.994, "999.99 J"),
        (999.9999, "1.0000 kJ"),
        (85_968_000.0, "85.968 MJ"),
        (-2_500.0, "-2.5000 kJ"),
        (5.2e15, "5200.0 TJ"),
        (math.inf, "inf J"),
    ],
)
def test_energy(joules, text):
    assert energy(joules) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 s"), (0.0125, "0.0125 s"), (599.0, "599 s"), (3600.0, "1 h"), (259200.0, "3 days")],
)
def test_duration(seconds, text):
    assert duration(seconds) == text


def test_per_cent_money_and_counts():
    assert percent(0.0304) == "3.04 %"
    assert percent(0.123) == "12.3 %"
    assert percent(math.inf) == "none"
    assert money(1.23456, "EUR") == "1.2346 EUR"
    assert money(1234.5, "EUR") == "1234.50 EUR"
    assert money(0.0000123456, "EUR") == "1.23e-05 EUR"
    assert money(0.0123456, "EUR") == "0.0123 EUR"
    assert money(0.0, "EUR") == "0.0000 EUR"
    assert [count(n, "task") for n in (0, 1, 2048)] == ["no tasks", "1 task", "2,048 tasks"]


@given(st.floats(-1e14, 1e14, allow_nan=False))
def test_five_digits_are_kept_whatever_the_size(value):
    number, unit = prefixed(value, "J").split()
    factor = {"J": 1.0, "kJ": 1e3, "MJ": 1e6, "GJ": 1e9, "TJ": 1e12}[unit]
    assert float(number) * factor == pytest.approx(value, rel=1.01e-4, abs=1e-4)


def test_moments_are_said_by_the_calendar_where_there_is_one():
    start = datetime(2026, 6, 1, tzinfo=UTC)
    assert instant(50_700.0, start) == "Mon 14:05"
    assert instant(50_701.0, start) == "Mon 14:05:01"
    assert instant(50_700.0 + 14 * 86_400.0, start) == "2026-06-15 14:05"
    assert instant(50_700.0, None) == "50700 s"
    assert instant(1e12, start) == "1e+12 s"  # no calendar goes that far
