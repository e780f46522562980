"""Measurements: run time and power of applications at the clocks somebody ran them at.

What was set may be clocks or a power limit (``nvidia-smi -pl``), one of the two in a file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from downclock.errors import InvalidInput
from downclock.power.library import KNOBS
from downclock.quantities import require_quantity
from downclock.tabular import Table, read_csv
from downclock.units import Bools, Floats, Ints, Names

FIELDS = ("application", "core_mhz", "memory_mhz", "power_limit_w", "time_s", "time_ms", "power_w")
"""Columns of a measurements file; the time is in ``time_s`` or in ``time_ms``."""


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Runs of applications, one row each.

    Attributes:
        application: names (m,).
        core_mhz, memory_mhz: clocks (m,); NaN where not recorded (core: where a limit was set).
        time_s: run time of one unit of work (m,).
        power_w: mean power during the run (m,).
        sources: the files the rows came from.
        file: index into ``sources`` (m,).
        power_limit_w: power limit (m,); NaN where clocks were set.
    """

    application: Names
    core_mhz: Floats
    memory_mhz: Floats
    time_s: Floats
    power_w: Floats
    sources: tuple[str, ...] = ("measurements",)
    file: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    power_limit_w: Floats | float = np.nan

    def __post_init__(self) -> None:
        application = np.asarray(self.application, dtype=object)
        object.__setattr__(self, "application", application)
        for name in (*KNOBS, "time_s", "power_w"):
            column = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, np.broadcast_to(column, application.shape))
        file = self.file if len(self.file) else np.zeros(len(application), dtype=np.int64)
        object.__setattr__(self, "file", np.asarray(file, dtype=np.int64))
        self._check()

    def __len__(self) -> int:
        return self.application.size

    def source_of(self, rows: Ints) -> str:
        """Return the name of the file (or files) these rows came from."""
        return ", ".join(self.sources[k] for k in np.unique(self.file[rows]))

    def take(self, rows: Bools) -> Measurements:
        """Return these rows."""
        columns = {name: getattr(self, name)[rows] for name in (*KNOBS, "time_s", "power_w")}
        return replace(self, application=self.application[rows], file=self.file[rows], **columns)

    def _check(self) -> None:
        for name in (*KNOBS, "time_s", "power_w"):
            column = getattr(self, name)
            unknown = np.isnan(column) & (name in KNOBS)
            if name == "core_mhz":
                unknown &= ~np.isnan(self.power_limit_w)
            try:
                require_quantity(name, np.where(unknown, 1.0, column), positive=True)
            except InvalidInput as error:
                row = error.row or 0
                item = f"application '{self.application[row]}'"
                raise error.located(self.sources[self.file[row]], item=item) from None


def read_measurements(
    paths: str | Path | Sequence[str | Path], columns: Mapping[str, str] | None = None
) -> Measurements:
    """Read measurements from one or more CSV files.

    Args:
        paths: the files; an application may be spread over several.
        columns: their name of each of our `FIELDS` where it differs, for instance
            ``{"core_mhz": "sm_app_clock"}``. An application told apart by several columns is
            ``"benchmark+argument"``: it is called by their values with a slash between. Without
            a memory column the memory clock is taken as fixed.
    """
    names = dict(columns or {})
    unknown = sorted(set(names) - set(FIELDS))
    if unknown:
        rule = f"is not a measured field; they are: {', '.join(FIELDS)}"
        raise InvalidInput(rule, item=f"column mapping '{unknown[0]}'")
    if isinstance(paths, str | Path):
        paths = [paths]
    parts = [_of_table(read_csv(path), names) for path in paths]
    if not parts:
        raise InvalidInput("no measurements file given")
    columns_of = zip(*parts, strict=True)
    application, core, memory, limit, time, power = map(np.concatenate, columns_of)
    file = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    sources = tuple(str(path) for path in paths)
    return Measurements(application, core, memory, time, power, sources, file, limit)


def _of_table(table: Table, names: Mapping[str, str]) -> tuple[Names | Floats, ...]:
    """Return (application, core_mhz, memory_mhz, power_limit_w, time_s, power_w) of one file."""
    if not len(table):
        raise InvalidInput("holds no measurement, only a header", source=table.source)
    application = _joined(table, names.get("application", "application"))
    knobs = {knob: names.get(knob, knob) for knob in KNOBS}
    given = [knob for knob, column in knobs.items() if knob in names or column in table.columns]
    if "power_limit_w" not in given and "core_mhz" not in given:
        given.append("core_mhz")
    _refuse_two_knobs(table, knobs, given)
    set_to = [
        _positive(table, application, column) if knob in given else np.full(len(table), np.nan)
        for knob, column in knobs.items()
    ]
    power = _positive(table, application, names.get("power_w", "power_w"))
    return application, *set_to, _time_s(table, application, names), power


def _refuse_two_knobs(table: Table, knobs: Mapping[str, str], given: Sequence[str]) -> None:
    """A power limit is not a clock, and not set together with one."""
    for knob in KNOBS[:2]:
        column = knobs[knob]
        if knob in given and column != knob and re.search("power|limit|watt", column.lower()):
            rule = f"is a power limit by its name, not a clock: write power_limit_w={column}"
            raise table.column_complaint(rule, column)
    if {"power_limit_w", "core_mhz"} <= set(given):
        rule = f"cannot be fitted together with the clocks of column '{knobs['core_mhz']}'"
        raise table.column_complaint(rule, knobs["power_limit_w"])
    if "core_mhz" in given and knobs["core_mhz"] not in table.columns:
        limits = [name for name in table.columns if "power_limit" in name.lower()]
        if limits:
            rule = f"has no column of clocks; for power limits write power_limit_w={limits[0]}"
            raise InvalidInput(rule, source=table.source, line=1)


def _joined(table: Table, name: str) -> Names:
    """Return a column of names, or several columns joined: ``benchmark+argument``."""
    if name in table.columns or "+" not in name:
        return table.text(name)
    parts = [table.text(part.strip()) for part in name.split("+")]
    return np.array(["/".join(row) for row in zip(*parts, strict=True)], dtype=object)


def _time_s(table: Table, application: Names, names: Mapping[str, str]) -> Floats:
    if "time_s" in names and "time_ms" in names:
        raise InvalidInput("give time_s or time_ms, not both", item="column mapping")
    in_ms = "time_ms" in names or ("time_s" not in names and "time_s" not in table.columns)
    if in_ms and ("time_ms" in names or "time_ms" in table.columns):
        return _positive(table, application, names.get("time_ms", "time_ms")) / 1000.0
    return _positive(table, application, names.get("time_s", "time_s"))


def _positive(table: Table, application: Names, name: str) -> Floats:
    """Return a column whose every value is positive and finite, or name the first that is not."""
    values = table.floats(name)
    try:
        require_quantity(name, values, positive=True)
    except InvalidInput as error:
        row = error.row or 0
        item = f"application '{application[row]}'"
        raise error.located(table.source, table.line(row), item=item) from None
    return values
