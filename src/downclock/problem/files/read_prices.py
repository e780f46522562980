"""Read prices and carbon intensity: a CSV (or Parquet) table, one row a step.

When a value starts to hold is one of the columns ``timestamp`` (ISO 8601), ``time_s`` (seconds
after the epoch) or ``slot`` (0, 1, 2, ... of a given length). A value holds until the next row;
the last one for the usual (median) step, or until a given end; a single row holds for ever.

Value columns carry their unit: ``price_per_kwh``, ``price_eur_per_mwh`` (any three-letter
currency, kWh or MWh), ``carbon_g_per_kwh`` or ``carbon_kg_per_mwh``; each may end in
``_forecast``. A ``zone`` column tells zones apart. Prices may be negative.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from downclock.errors import InvalidInput
from downclock.problem.calendar import instants
from downclock.problem.files.columns import read_table, refuse_both, refuse_unknown_columns
from downclock.problem.files.read_cluster import PriceSources
from downclock.problem.price import Curve, Prices, ZonePrices
from downclock.tabular import Table
from downclock.units import Floats, Ints

Gaps: TypeAlias = Literal["refuse", "hold"]
"""What to do where rows are missing: refuse the file, or let the value before hold."""

FirstRow: TypeAlias = Literal["first row"]

TIME_COLUMNS = ("timestamp", "time_s", "slot")

_VALUE = re.compile(
    r"(?P<what>price|carbon)_((?P<unit>[a-z]{1,3})_)?per_(?P<per>kwh|mwh)(?P<forecast>_forecast)?"
)
_PER_KWH = {"kwh": 1.0, "mwh": 1e-3}
_GRAMS = {"g": 1.0, "kg": 1e3}

_Values: TypeAlias = dict[str, tuple[str, str | None, float]]
"""Columns of values by the curve they are: name, currency, and the factor to our unit per kWh."""


def read_prices(
    path: str | Path,
    *,
    epoch: datetime | FirstRow | None = None,
    timezone: tzinfo | None = None,
    slot_s: float | None = None,
    end_s: float | None = None,
    zones: Sequence[str] = ("default",),
    columns: Mapping[str, str] | None = None,
    gaps: Gaps = "refuse",
    currency: str | None = None,
) -> Prices:
    """Read prices; columns as in the module's text.

    Args:
        path: ``.csv`` or ``.parquet``.
        epoch: instant that times count from; needed for time stamps. ``first row``: that of the
            file's first row, for problems that have no epoch.
        timezone: of stamps without an offset; the epoch's by default.
        slot_s: length of a slot; needed for slots.
        end_s: end of the last value.
        zones: the zones a file without a zone column is for.
        columns: our column names to the file's, for files of others. Where it names no column of
            times, of zones or of values, those with names of ours are read; others are not.
        gaps: what to do where rows are missing between otherwise regular steps.
        currency: overrides what the column names say.

    Raises:
        InvalidInput: with file, line, column, value and rule.
    """
    table = _renamed(read_table(path), columns)
    values = _value_columns(table)
    if not values:
        rule = "has no column of values such as 'price_eur_per_mwh' or 'carbon_g_per_kwh'"
        raise InvalidInput(rule, source=path, line=1)
    if not len(table):
        raise InvalidInput("has no rows", source=path)
    field, start_s = _starts(table, epoch, timezone, slot_s)
    zone_names, zone = table.codes("zone", "")
    found: list[tuple[str, ZonePrices]] = []
    for k, name in enumerate(zone_names):
        rows = np.flatnonzero(zone == k)
        _check_steps(table, field, start_s, rows, gaps)
        prices = _zone(table, values, start_s, rows, end_s)
        found += [(each, prices) for each in ([name] if name else zones)]
    named = [currency for _, currency, _ in values.values() if currency]
    return Prices(tuple(found), currency or (named[0] if named else "EUR"))


def prices_of(sources: PriceSources, zones: Sequence[str], **times: Any) -> Prices:
    """Read the prices a cluster file names, for the zones of its platform.

    ``times`` are the epoch, the timezone and slot_s of `read_prices`.
    """
    how = {"currency": sources.currency, **times}
    if sources.file is not None:
        return zone_prices(sources.file, zones, **how)
    found: list[tuple[str, ZonePrices]] = []
    currency = sources.currency
    for zone, curves in sources.zones.items():
        prices = ZonePrices()
        for curve, source in curves.items():
            if isinstance(source, float):
                prices = replace(prices, **{curve: Curve.constant(source)})
                continue
            file = zone_prices(source, [zone], **how)
            currency = currency or file.currency
            prices = replace(prices, **_taken(file.of(zone), curve, source))
        found.append((zone, prices))
    return Prices(tuple(found), currency or "EUR")


def zone_prices(path: str | Path, zones: Sequence[str], **how: Any) -> Prices:
    """Read prices of these zones; refuse a file without one of them: it is probably misspelt."""
    prices = read_prices(path, zones=zones, **how)
    known = [name for name, _ in prices.zones]
    for zone in zones:
        if zone not in known:
            rule = f"has no rows; the file's zones are: {', '.join(known[:30])}"
            raise InvalidInput(rule, item=f"zone '{zone}'", source=path)
    return prices


def _taken(prices: ZonePrices, curve: str, source: Path) -> dict[str, Curve]:
    """Return the curve a cluster file asks a price file for, and its forecast where it has one."""
    wanted = {curve: getattr(prices, curve)}
    base = curve.removesuffix("_forecast")
    if wanted[curve] is None:
        wanted[curve] = getattr(prices, base)
    elif curve == base:
        wanted[f"{base}_forecast"] = getattr(prices, f"{base}_forecast")
    if wanted[curve] is None:
        raise InvalidInput(f"has no column of {base} values", source=source, line=1)
    return {key: value for key, value in wanted.items() if value is not None}


def _renamed(table: Table, columns: Mapping[str, str] | None) -> Table:
    if columns is None:
        own = [name for name in table.columns if _VALUE.fullmatch(name)]
        examples = ("price_per_kwh", "price_eur_per_mwh", "carbon_g_per_kwh")
        known = list(dict.fromkeys([*TIME_COLUMNS, "zone", *own, *examples]))
        told = "; `convert` and `whatif` take names of others: --columns timestamp=..."
        refuse_unknown_columns(table, known, told)
        return table
    named = {_kind(ours) for ours in columns}
    for ours in columns:
        if not _kind(ours):
            rule = "is no column of prices, such as timestamp or price_eur_per_mwh"
            raise InvalidInput(rule, item=f"column '{ours}'", source=table.source)
    table.require(list(columns.values()))
    same = {name: name for name in table.columns if _kind(name) and _kind(name) not in named}
    data = {ours: table.data[theirs] for ours, theirs in {**same, **columns}.items()}
    return Table(table.source, data, len(table), table.line)


def _kind(name: str) -> str:
    """Say what a column of ours holds; empty where it is none."""
    if name in TIME_COLUMNS:
        return "time"
    return "zone" if name == "zone" else "value" if _VALUE.fullmatch(name) else ""


def _value_columns(table: Table) -> _Values:
    found: _Values = {}
    for name in table.columns:
        match = _VALUE.fullmatch(name)
        if match is None:
            continue
        unit, curve = _unit(table, name, match), match["what"] + (match["forecast"] or "")
        if curve in found:
            rule = f"is a second curve beside column '{found[curve][0]}'"
            raise table.column_complaint(rule, name)
        found[curve] = (name, *unit)
    return found


def _unit(table: Table, name: str, match: re.Match[str]) -> tuple[str | None, float]:
    """Return a column's currency and the factor to our unit per kWh."""
    unit, per = match["unit"], _PER_KWH[match["per"]]
    if match["what"] == "price" and (unit is None or len(unit) == 3):
        return unit.upper() if unit else None, per
    if match["what"] == "carbon" and unit in _GRAMS:
        return None, _GRAMS[unit] * per
    needed = "a three-letter currency" if match["what"] == "price" else "g or kg"
    raise table.column_complaint(f"needs {needed} as its unit", name)


def _starts(
    table: Table, epoch: datetime | FirstRow | None, zone: tzinfo | None, slot_s: float | None
) -> tuple[str, Floats]:
    """Return the time column's name and the start of each row in seconds after the epoch."""
    field = refuse_both(table, TIME_COLUMNS)
    if field is None:
        rule = f"has no column of times; it must be one of {', '.join(TIME_COLUMNS)}"
        raise InvalidInput(rule, source=table.source, line=1)
    if field == "time_s":
        return field, _finite(table, field)
    if field == "slot":
        if slot_s is None:
            raise table.column_complaint("needs the length of a slot (slot_s)", field)
        return field, table.ints("slot").astype(np.float64) * slot_s
    if epoch is None:
        raise table.column_complaint("needs the problem's epoch", field)
    if epoch == "first row":
        seconds = instants(table, field, table.text(field), zone or UTC)
        return field, seconds - np.nanmin(seconds)
    seconds = instants(table, field, table.text(field), zone or epoch.tzinfo)
    return field, seconds - epoch.timestamp()


def _finite(table: Table, field: str) -> Floats:
    values = table.floats(field)
    if not np.all(np.isfinite(values)):
        row = int(np.argmin(np.isfinite(values)))
        raise table.complaint("must be finite", row=row, field=field, value=values[row])
    return values


def _check_steps(table: Table, field: str, start_s: Floats, rows: Ints, gaps: Gaps) -> None:
    """Refuse times that repeat or go back, and missing rows between regular steps."""
    step_s = np.diff(start_s[rows])
    if np.any(step_s <= 0.0):
        at = int(np.argmax(step_s <= 0.0)) + 1
        earlier = int(np.argmax(start_s[rows] == start_s[rows[at]]))
        if earlier < at:
            first = table.line(int(rows[earlier]))
            rule = "is given twice" + ("" if first is None else f" (first on line {first})")
        else:
            rule = "is before the row above"
    else:
        gap = _first_gap(step_s, consecutive=field == "slot") if gaps == "refuse" else None
        if gap is None:
            return
        at, usual = gap + 1, float(np.median(step_s))
        rule = f"is {step_s[gap]:g} s after the row above, where steps are {usual:g} s:"
        rule += " rows are missing. Add them, with the value before where it holds on"
        rule += " (in Python, `read_prices(..., gaps='hold')` does that)"
    row = int(rows[at])
    raise table.complaint(rule, row=row, field=field, value=table.cell(field, row))


def _first_gap(step_s: Floats, *, consecutive: bool) -> int | None:
    """Return the first step that skips rows.

    A table of (nearly) equal steps is regular, and a longer step in it a gap; a table of many
    different steps is a tariff whose values hold as long as they do. Slots must follow each other.
    """
    if step_s.size == 0:
        return None
    usual = float(step_s.min() if consecutive else np.median(step_s))
    regular = np.abs(step_s - usual) <= 1e-6 * usual
    long = step_s > 1.5 * usual
    is_table = consecutive or (step_s.size >= 8 and np.mean(regular) >= 0.8)
    return int(np.argmax(long)) if is_table and np.any(long) else None


def _zone(
    table: Table, values: _Values, start_s: Floats, rows: Ints, end_s: float | None
) -> ZonePrices:
    start = start_s[rows]
    if end_s is None:
        end_s = float(start[-1] + np.median(np.diff(start))) if len(start) > 1 else np.inf
    scaled = {
        curve: _finite(table, name)[rows] * factor for curve, (name, _, factor) in values.items()
    }
    curves: dict[str, Curve] = {}
    curve = ""
    try:
        for curve, value in scaled.items():
            curves[curve] = Curve(start, value, end_s, str(table.source))
        return ZonePrices(**curves)
    except InvalidInput as error:
        if error.row is None:
            raise error.located(table.source) from None
        row = int(rows[error.row])
        field = values[error.field if error.field in values else curve][0]
        if error.field == "start_s":
            field = refuse_both(table, TIME_COLUMNS) or ""
        told = table.cell(field, row)
        raise table.complaint(error.rule, row=row, field=field, value=told) from None
