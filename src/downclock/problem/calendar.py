"""Calendar time in files: ISO 8601 stamps to seconds after the epoch."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import numpy as np

from downclock.errors import InvalidInput
from downclock.tabular import Table
from downclock.units import Floats, Names


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


def instants(table: Table, field: str, texts: Names, zone: tzinfo | None) -> Floats:
    """Return seconds since 1970 in UTC for a column of stamps; NaN where a cell is empty.

    A stamp without an offset is local time of ``zone``. An hour that daylight saving skips or
    repeats is refused, since its instant is not known.
    """
    seconds = np.full(len(texts), np.nan)
    for row, text in enumerate(texts):
        if text:
            try:
                seconds[row] = _aware(_parsed(text), zone).timestamp()
            except (ValueError, OverflowError) as error:
                raise table.complaint(str(error), row=row, field=field, value=text) from None
    return seconds


def _parsed(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("must be an ISO 8601 date and time") from None


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
