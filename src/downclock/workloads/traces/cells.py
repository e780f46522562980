"""Cells of traces: how a text or a number of a file becomes seconds, a count or a name."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import partial
from typing import Any, TypeAlias

from downclock.errors import InvalidInput
from downclock.problem.calendar import epoch_of, seconds_of
from downclock.quantities import MOST

Read: TypeAlias = Callable[[Any], Any]

NAN = float("nan")

UNKNOWN = frozenset({"", "unknown", "none", "null", "n/a", "nan", "unlimited", "partition_limit"})
"""Words for "not known" that schedulers write, in small letters."""

UNITS = {"milliseconds": 1e-3, "seconds": 1.0, "minutes": 60.0, "hours": 3600.0}
"""Ways to write a length of time as a number."""

CALENDAR = ("stamp", "unix", "unix-milliseconds")
"""Ways to write an instant of the calendar; as a number of seconds it has none."""

LONGEST_TEXT = 10_000
"""Letters of a cell; lists of nodes are long, a longer cell is a slip."""


def readers(zone: tzinfo | None) -> dict[str, Read]:
    """Return how cells are read, by the word that a mapping file uses for it.

    Args:
        zone: of stamps without an offset; UTC where it is None.
    """
    return {
        **{unit: partial(quantity, factor=factor) for unit, factor in UNITS.items()},
        "duration": duration,
        "stamp": partial(instant, zone=zone or UTC),
        "unix": quantity,
        "unix-milliseconds": partial(quantity, factor=1e-3),
        "count": quantity,
        "text": text,
    }


def known(cell: Any) -> bool:
    """Tell whether a cell says anything."""
    if isinstance(cell, str):
        return cell.strip().lower() not in UNKNOWN
    return cell is not None and not (isinstance(cell, float) and math.isnan(cell))


def quantity(cell: Any, factor: float = 1.0) -> float:
    """Return a number times a factor, a length of time in seconds; NaN where it says nothing."""
    if isinstance(cell, timedelta):
        cell, factor = cell.total_seconds(), 1.0
    try:
        value = factor * float(cell)
    except (TypeError, ValueError, OverflowError):
        if known(cell):
            raise ValueError("must be a number") from None
        return NAN
    if isinstance(cell, bool):
        raise ValueError("must be a number")
    if not abs(value) <= MOST["s"] and known(cell):
        raise ValueError(f"must be between -{MOST['s']:g} and {MOST['s']:g}")
    return value


def duration(cell: Any) -> float:
    """Return a length of time as schedulers write it: ``1-02:03:04``, ``05:00``, ``2h``, 300."""
    if not known(cell):
        return NAN
    if not isinstance(cell, str):
        return quantity(cell)
    said = cell.strip().partition(".")[0] if ":" in cell else cell
    return quantity(seconds_of(f"00:{said}" if said.count(":") == 1 else said))


def instant(cell: Any, zone: tzinfo) -> float:
    """Return an ISO 8601 stamp as seconds since 1970; NaN where the cell says nothing."""
    if not known(cell):
        return NAN
    if isinstance(cell, date) and not isinstance(cell, datetime):
        cell = datetime(cell.year, cell.month, cell.day)
    if not isinstance(cell, str | datetime):
        raise ValueError("must be an ISO 8601 date and time")
    try:
        return epoch_of(cell.strip() if isinstance(cell, str) else cell, zone).timestamp()
    except InvalidInput as error:
        raise ValueError(error.rule) from None
    except OverflowError:
        raise ValueError("is out of range") from None


def text(cell: Any) -> str:
    """Return a name; blanks inside count as one, and what cannot be written in a file is marked."""
    if cell is None:
        return ""
    said = " ".join(str(cell).encode("utf-8", "replace").decode().split())
    if len(said) > LONGEST_TEXT:
        raise ValueError(f"is longer than {LONGEST_TEXT} letters")
    return said
