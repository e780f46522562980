"""Read the work of tasks: an application and how much of it, or how long it ran and where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.errors import InvalidInput, suggestion
from downclock.power.library import Library
from downclock.problem.calendar import durations
from downclock.problem.files.run_jobs import Applications, Wanted
from downclock.problem.files.site import Site, refuse_odd
from downclock.quantities import MOST
from downclock.tabular import Table
from downclock.units import Floats, Ints, Names

RUN_COLUMNS = ("run", "power_w", "kind", "deadline_factor")
"""Columns that need the cluster to be understood."""


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What tasks have to do.

    Attributes:
        library: the applications, those made for single jobs among them.
        application, scale: what and how much of it (n,).
        run_s: how long it takes at default clocks (n,); None where nobody asked.
        assumptions: what was assumed on the way, a sentence each.
    """

    library: Library
    application: Ints
    scale: Floats
    run_s: Floats | None = None
    assumptions: tuple[str, ...] = ()


def read_work(
    table: Table, names: Names, library: Library, site: Site | None, *, timed: bool
) -> Work:
    """Read columns application, scale, run, power_w and kind.

    Args:
        table: the file.
        names: the tasks' names, for complaints.
        library: where applications are looked up.
        site: the cluster's kinds; without it tasks have an application and a scale.
        timed: somebody asks for the run times at default clocks.
    """
    given = [name for name in RUN_COLUMNS if name in table.columns]
    if site is None and given:
        rule = "needs the cluster that runs it: read both with load_problem"
        raise table.column_complaint(rule, given[0])
    if site is None or not (given or timed):
        require_work(table, runs=site is not None)
        scale = table.floats("scale", 1.0)
        return Work(library, _looked_up(table, names, library), scale)
    run_s = durations(table, "run", table.text("run", ""))
    table.refuse(run_s > MOST["s"], f"must be at most {MOST['s']:g} s", "run", tasks=names)
    scale = numbers_or_nan(table, "scale")
    both = ~np.isnan(run_s) & ~np.isnan(scale)
    table.refuse(both, "cannot be given together with scale", "run", tasks=names)
    empty = np.isnan(run_s) & (table.text("application", "") == "")
    rule = "is empty: give how long it runs, or an application of the library"
    table.refuse(empty, rule, "run", ..., tasks=names)
    applications = Applications(library, site)
    place, unit_s = _found(table, names, applications)
    units = np.where(np.isnan(scale), 1.0, scale)
    scale = np.where(np.isnan(run_s), units, run_s / unit_s)
    with np.errstate(over="ignore"):
        whole_s = scale * unit_s
    endless = np.isfinite(unit_s) & ~np.isfinite(whole_s)
    table.refuse(endless, "makes its run time too long to be told", "scale", tasks=names)
    return Work(applications.all(), place, scale, whole_s, applications.assumptions())


def require_work(table: Table, *, runs: bool) -> None:
    """Refuse a file that does not say what its tasks do; ``runs``: it may say how long."""
    if table.columns and not {"application", *RUN_COLUMNS} & {*table.columns}:
        run = "'run' (how long a job takes) or " if runs else ""
        rule = f"no column {run}'application'{suggestion('application', table.columns)}"
        raise InvalidInput(rule, source=table.source)


def numbers_or_nan(table: Table, name: str) -> Floats:
    """Return a column of numbers, NaN where a cell is empty; "nan" itself is refused."""
    values = table.floats(name, np.nan)
    given = np.isnan(values) & (table.text(name, "") != "")
    table.refuse(given, "must be a number", name, "nan")
    return values


def _looked_up(table: Table, names: Names, library: Library) -> Ints:
    """Return the library's index of each row's application."""
    distinct, code = table.codes("application")
    place = {name: a for a, name in enumerate(library.names)}
    index = np.array([place.get(word, -1) for word in distinct], dtype=np.int64)[code]
    if np.any(index < 0):
        word = str(distinct[code[int(np.argmax(index < 0))]])
        rule = f"is not in the library{suggestion(word, [str(name) for name in library.names])}"
        if not len(library):
            rule = "is not in the library: the cluster names none (key 'applications')"
        table.refuse(index < 0, rule, "application", word, tasks=names)
    return index


def _found(table: Table, names: Names, applications: Applications) -> tuple[Ints, Floats]:
    """Return each row's application and how long a unit of it takes."""
    application, kind = table.text("application", ""), table.text("kind", "")
    power_w = numbers_or_nan(table, "power_w")
    place, unit_s = np.empty(len(table), dtype=np.int64), np.empty(len(table))
    timed = table.text("run", "") != ""
    for row in range(len(table)):
        power = None if np.isnan(power_w[row]) else float(power_w[row])
        wanted = Wanted(application[row], power, tuple(kind[row].replace(";", " ").split()))
        try:
            if power is not None:
                refuse_odd("power_w", power)
            place[row], unit_s[row] = applications.of(wanted, timed=bool(timed[row]))
        except InvalidInput as error:
            field, item = error.field or "run", f"task '{names[row]}'"
            raise table.complaint(
                error.rule, row=row, field=field, value=error.value, item=item
            ) from None
    return place, unit_s
