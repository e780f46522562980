"""Quantities: which are possible; and as text: five digits at most, always with a unit."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from downclock.errors import InvalidInput
from downclock.units import Bools, Floats

MOST = {"s": 1e12, "w": 1e9, "j": 1e15, "mhz": 1e9, "kwh": 1e9, "volt": 100.0}
"""What is larger in its unit (30,000 years, a gigawatt) is taken for a mistake.

Beside it nothing else could be told apart, and sums would no longer be numbers.
"""

MOST_RATIO = 1e15
"""The same for numbers without a unit, such as clocks relative to the default one."""

WEEK_S = 7 * 86400.0

LEAST = 1.0 / MOST_RATIO
"""What must be above 0 and is less than this is a mistake too."""


def refuse_rows(
    bad: Bools,
    rule: str | Callable[[int], str],
    *,
    field: str,
    values: NDArray[Any],
    item: Callable[[int], str] | None = None,
) -> None:
    """Refuse a column with bad rows (n,); the first one is named."""
    if np.any(bad):
        row = int(np.argmax(bad))
        said = rule if isinstance(rule, str) else rule(row)
        whose = None if item is None else item(row)
        raise InvalidInput(said, item=whose, field=field, value=values[row], row=row)


def require_quantity(
    field: str, values: Floats | float, *, item: str | None = None, positive: bool = False
) -> None:
    """Refuse what no quantity can be: NaN, negative, above `MOST` of its unit.

    Where it must be ``positive``, also 0 and what is below `LEAST`.
    """
    column = np.atleast_1d(np.asarray(values, dtype=np.float64))
    most = next((MOST[unit] for unit in field.split("_") if unit in MOST), MOST_RATIO)
    good = np.isfinite(column) & ((column > 0.0) if positive else (column >= 0.0))
    rule = "must be positive and finite" if positive else "must be finite and not negative"
    if np.all(good):
        least = LEAST if positive else 0.0
        good = (column <= most) & (column >= least)
        rule = f"must be between {least:g} and {most:g}"
    whose = None if item is None else lambda row: item
    refuse_rows(~good, rule, field=field, values=column, item=whose)


def energy(joules: float) -> str:
    """Joules with the prefix that suits them.

    >>> energy(83.82e6)
    '83.820 MJ'
    """
    return prefixed(joules, "J")


def prefixed(value: float, unit: str) -> str:
    """Write a quantity with a metric prefix: 12300000 J is ``12.3 MJ``."""
    if not math.isfinite(value):
        return f"{value} {unit}"
    prefix, size = metric(value, 0.999995)
    return f"{_digits(value / size)} {prefix}{unit}" if prefix else f"{_short(value)} {unit}"


def metric(value: float, nearly: float = 1.0) -> tuple[str, float]:
    """The metric prefix for a value and what it stands for; none, and 1, for small ones.

    ``nearly`` is the part of a prefix from which on a value is rounded up to it.
    """
    known = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))
    return next((each for each in known if abs(value) >= nearly * each[1]), ("", 1.0))


def duration(seconds: float) -> str:
    """Seconds, and hours or days where that is how people say it."""
    if not math.isfinite(seconds):
        return f"{seconds} s"
    if abs(seconds) < 600.0:
        return f"{_short(seconds)} s"
    if abs(seconds) < 2 * 86400.0:
        return f"{_short(seconds / 3600.0)} h"
    return f"{_short(seconds / 86400.0)} days"


def instant(at_s: float, epoch: datetime | None, digits: int = 6) -> str:
    """A moment by the calendar, where there is one: ``Mon 14:05``; else ``50700 s``.

    A week and more from the beginning it has its date: ``2026-01-19 14:05``.
    """
    try:
        at = None if epoch is None else epoch + timedelta(seconds=at_s)
    except (OverflowError, ValueError):  # past the calendar's end
        at = None
    if at is None:
        return f"{at_s:.{digits}g} s"
    day = "%a" if abs(at_s) < WEEK_S else "%Y-%m-%d"
    return at.strftime(f"{day} %H:%M:%S" if round(at_s) % 60 else f"{day} %H:%M")


def percent(fraction: float) -> str:
    """A fraction as per cent, with more digits where it is small.

    >>> percent(0.1025)
    '10.2 %'
    """
    if not math.isfinite(fraction):
        return "none"
    value = 100.0 * fraction
    return f"{value:.2f} %" if abs(value) < 10.0 else f"{value:.1f} %"


def money(amount: float, currency: str) -> str:
    """An amount of money; more decimals where it is small."""
    if abs(amount) >= 100.0:
        return f"{amount:.2f} {currency}"
    small = 0.0 < abs(amount) < 0.1
    return f"{amount:.3g} {currency}" if small else f"{amount:.4f} {currency}"


def count(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``, ``no tasks``."""
    if number == 0:
        return f"no {noun}s"
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _digits(value: float) -> str:
    """Five significant digits, without an exponent where a person would not write one."""
    if value != 0.0 and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.4g}"
    whole = len(str(int(abs(value))))
    return f"{value:.{max(0, 5 - whole)}f}"


def _short(value: float) -> str:
    """The same without zeros at the end."""
    text = _digits(value)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text
