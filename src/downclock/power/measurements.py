"""Measurements: run time and power of applications at the clocks somebody ran them at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from downclock.errors import InvalidInput
from downclock.tabular import Table, read_csv
from downclock.units import Floats, Ints, Names

FIELDS = ("application", "core_mhz", "memory_mhz", "time_s", "time_ms", "power_w")
"""Columns of a measurements file; the time is in ``time_s`` or in ``time_ms``."""


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Runs of applications, one row each.

    Attributes:
        application: names (m,).
        core_mhz, memory_mhz: clocks (m,); memory NaN where it was not recorded.
        time_s: run time of one unit of work (m,).
        power_w: mean power during the run (m,).
        sources: the files the rows came from.
        file: index into ``sources`` (m,).
    """

    application: Names
    core_mhz: Floats
    memory_mhz: Floats
    time_s: Floats
    power_w: Floats
    sources: tuple[str, ...] = ("measurements",)
    file: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        application = np.asarray(self.application, dtype=object)
        object.__setattr__(self, "application", application)
        for name in ("core_mhz", "memory_mhz", "time_s", "power_w"):
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

    def _check(self) -> None:
        for name in ("core_mhz", "memory_mhz", "time_s", "power_w"):
            column = getattr(self, name)
            bad = ~(np.isfinite(column) & (column > 0.0))
            if name == "memory_mhz":
                bad &= ~np.isnan(column)
            if bad.any():
                row = int(np.argmax(bad))
                raise InvalidInput(
                    "must be positive and finite",
                    item=f"application '{self.application[row]}'",
                    field=name,
                    value=float(column[row]),
                    row=row,
                    source=self.sources[self.file[row]],
                )


def read_measurements(
    paths: str | Path | Sequence[str | Path], columns: Mapping[str, str] | None = None
) -> Measurements:
    """Read measurements from one or more CSV files.

    Args:
        paths: the files; an application may be spread over several.
        columns: their name of each of our `FIELDS` where it differs, for instance
            ``{"core_mhz": "sm_app_clock"}``. Without a memory column the memory clock is taken
            as fixed.
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
    application, core, memory, time, power = map(np.concatenate, zip(*parts, strict=True))
    return Measurements(
        application,
        core,
        memory,
        time,
        power,
        sources=tuple(str(path) for path in paths),
        file=np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts]),
    )


def _of_table(
    table: Table, names: Mapping[str, str]
) -> tuple[Names, Floats, Floats, Floats, Floats]:
    """Return (application, core_mhz, memory_mhz, time_s, power_w) of one file."""
    if not len(table):
        raise InvalidInput("holds no measurement, only a header", source=table.source)
    application = table.text(names.get("application", "application"))
    core = _positive(table, application, names.get("core_mhz", "core_mhz"))
    memory_name = names.get("memory_mhz", "memory_mhz")
    if "memory_mhz" in names or memory_name in table.columns:
        memory = _positive(table, application, memory_name)
    else:
        memory = np.full(len(table), np.nan)
    power = _positive(table, application, names.get("power_w", "power_w"))
    return application, core, memory, _time_s(table, application, names), power


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
    bad = ~(np.isfinite(values) & (values > 0.0))
    if bad.any():
        row = int(np.argmax(bad))
        raise table.complaint(
            "must be positive and finite",
            row=row,
            field=name,
            value=float(values[row]),
            item=f"application '{application[row]}'",
        )
    return values
