"""Time in files: ISO 8601 stamps, clock times, offsets and durations, as seconds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import numpy as np

from downclock.errors import InvalidInput
from downclock.tabular import Table
from downclock.units import Floats, Names

DAY_S = 86400.0
_ISO = "an ISO 8601 date and time"
STAMP = f"must be {_ISO}"
MOMENT = f"must be a clock time such as 18:30, an offset such as +6h, or {_ISO}"
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")
_SPAN = re.compile(r"(?:(\d+)-)?(\d+):([0-5]\d):([0-5]\d)")
_PARTS = re.compile(r"([\d.]+)\s*(d|h|min|m|s)\s*")
_SECONDS = {"d": DAY_S, "h": 3600.0, "min": 60.0, "m": 60.0, "s": 1.0}


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """A column of times, each given one of three ways; NaN in the other two (n,).

    Attributes:
        instant_s: seconds since 1970 of an ISO 8601 stamp.
        after_s: seconds of an offset such as ``+6h``.
        clock_s: seconds after midnight of a clock time such as ``18:30``.
    """

    instant_s: Floats
    after_s: Floats
    clock_s: Floats


def zone_of(name: str | tzinfo) -> tzinfo:
    """Return the time zone of a name like ``Europe/Berlin``."""
    if isinstance(name, tzinfo):
        return name
    try:
        return UTC if name.upper() in ("UTC", "Z") else ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        rule = "is not a time zone of the IANA database (such as 'Europe/Berlin')"
        raise InvalidInput(rule, field="timezone", value=name) from None


def epoch_of(stamp: str | datetime, zone: tzinfo | None = None) -> datetime:
    """Return the epoch a user gave; one without an offset is local time of ``zone``."""
    try:
        return _aware(stamp if isinstance(stamp, datetime) else _parsed(stamp), zone)
    except ValueError as error:
        raise InvalidInput(str(error), field="epoch", value=str(stamp)) from None


def moment(unix_s: float, zone: tzinfo | None) -> datetime:
    """Return seconds since 1970 as a date and time of the zone; UTC where it is None."""
    # timedelta and not fromtimestamp: the latter refuses instants before 1970 on some systems.
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=unix_s)).astimezone(zone or UTC)


def instants(
    table: Table, field: str, texts: Names, zone: tzinfo | None, rule: str = STAMP
) -> Floats:
    """Return seconds since 1970 in UTC for a column of stamps; NaN where a cell is empty.

    A stamp without an offset is local time of ``zone``. An hour that daylight saving skips or
    repeats is refused, since its instant is not known.
    """
    return _read(table, field, texts, lambda text: _aware(_parsed(text, rule), zone).timestamp())


def durations(table: Table, field: str, texts: Names) -> Floats:
    """Return seconds for a column of durations such as ``2h``; NaN where a cell is empty."""
    return _read(table, field, texts, seconds_of)


def moments(table: Table, field: str, texts: Names, zone: tzinfo | None) -> Moments:
    """Read a column of stamps, offsets and clock times."""
    offset = np.array([text.startswith("+") for text in texts], dtype=bool)
    clock = np.array([_CLOCK.fullmatch(text) is not None for text in texts], dtype=bool)
    return Moments(
        instants(table, field, np.where(offset | clock, "", texts), zone, MOMENT),
        _read(table, field, np.where(offset, texts, ""), lambda text: seconds_of(text[1:])),
        _read(table, field, np.where(clock, texts, ""), _seconds_after_midnight),
    )


def seconds_of(text: str) -> float:
    """Return a duration in seconds: ``2h``, ``1h30m``, ``90m``, ``01:30:00``, ``2-00:00:00``, 5400.

    >>> seconds_of("1h30m"), seconds_of("01:30:00"), seconds_of("5400")
    (5400.0, 5400.0, 5400.0)
    """
    text = text.strip().lower()
    span = _SPAN.fullmatch(text)
    if span is not None:
        days, hours, minutes, rest = (int(part or 0) for part in span.groups())
        return days * DAY_S + hours * 3600.0 + minutes * 60.0 + rest
    parts = _PARTS.findall(text)
    try:
        if parts and _PARTS.sub("", text) == "":
            return sum(float(number) * _SECONDS[unit] for number, unit in parts)
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds < float("inf"):
        raise ValueError("must be a duration such as 2h, 90m, 01:30:00 or seconds")
    return seconds


def at_clock(clock_s: float, after_s: float, epoch: datetime | None, zone: tzinfo | None) -> float:
    """Return the first time at or after ``after_s`` when clocks show ``clock_s``.

    Both are seconds after the epoch; where there is none, after midnight.
    """
    if epoch is None:
        return clock_s + DAY_S * max(0, math.ceil((after_s - clock_s) / DAY_S))
    # In UTC: differences of local times leave out the hour that daylight saving shifts.
    start = epoch.astimezone(UTC) + timedelta(seconds=after_s)
    day = start.astimezone(zone or epoch.tzinfo).date()
    shown = (datetime.min + timedelta(seconds=clock_s)).time()
    while True:
        found = _aware(datetime.combine(day, shown), zone or epoch.tzinfo).astimezone(UTC)
        if found >= start:
            return (found - epoch.astimezone(UTC)).total_seconds()
        day += timedelta(days=1)


def _seconds_after_midnight(text: str) -> float:
    found = _CLOCK.fullmatch(text)
    hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0)
    return hours * 3600.0 + minutes * 60.0 + seconds


def _read(table: Table, field: str, texts: Names, read: Callable[[str], float]) -> Floats:
    """Read the cells of a column that are not empty; NaN elsewhere."""
    seconds = np.full(len(texts), np.nan)
    for row, text in enumerate(texts):
        if text:
            try:
                seconds[row] = read(text)
            except (ValueError, OverflowError) as error:
                raise table.complaint(str(error), row=row, field=field, value=text) from None
    return seconds


def _parsed(text: str, rule: str = STAMP) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(rule) from None


def _aware(stamp: datetime, zone: tzinfo | None) -> datetime:
    if stamp.tzinfo is not None:
        return stamp
    if zone is None:
        raise ValueError("has no UTC offset, and no time zone is given")
    local = stamp.replace(tzinfo=zone)
    if local.utcoffset() == local.replace(fold=1).utcoffset():
        return local
    there_and_back = local.astimezone(UTC).astimezone(zone).replace(tzinfo=None)
    if there_and_back != stamp:
        raise ValueError(f"does not exist in {zone}: the clocks go forward over it")
    raise ValueError(f"happens twice in {zone}: the clocks go back; write it with its UTC offset")
