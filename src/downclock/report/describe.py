"""Problems, clusters, libraries, schedules, verdicts, bills and fits as pages to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from downclock.power.archetypes import CARDS
from downclock.power.fit import Fit, FitReport
from downclock.power.library import Basis, Library
from downclock.power.points import VoltageLaw, law_data
from downclock.problem.files.read_cluster import Cluster
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.price import Prices
from downclock.problem.problem import Problem
from downclock.quantities import count, duration, energy, percent
from downclock.report.gantt import BLOCKS, gantt
from downclock.report.tables import Page, Table
from downclock.schedule.account.bill import Bill
from downclock.schedule.schedule import Schedule
from downclock.schedule.verify.verdict import Verdict
from downclock.units import TOLERANCE, Floats

FIT_ERRORS = ("mape", "worst", "held_out")
"""Parts of a fit report on time and on power."""

VIOLATION = ("rule", "message", "task", "processor", "server")
"""Columns of a list of violations."""


def problem_page(problem: Problem) -> Page:
    """What is asked, in a screen."""
    tasks = problem.tasks
    unlimited = int(np.sum(np.isinf(tasks.deadline_s)))
    facts = {
        "tasks": f"{len(tasks):,}",
        "applications used": f"{np.unique(tasks.application).size} of {len(problem.library)}",
        "edges": f"{len(problem.edges):,}",
        "arrivals": f"{duration(tasks.arrival_s.min())} to {duration(tasks.arrival_s.max())}",
        "deadlines": _deadlines(tasks.deadline_s),
        "tasks without a deadline": f"{unlimited:,}",
        "largest gang": count(int(tasks.processors.max()), "processor"),
        "epoch": "none" if problem.epoch is None else problem.epoch.isoformat(),
    }
    cluster = platform_page(problem.platform)
    data = {
        "problem": problem.name,
        "tasks": len(tasks),
        "applications": len(problem.library),
        "edges": len(problem.edges),
        "first_arrival_s": tasks.arrival_s.min(),
        "last_arrival_s": tasks.arrival_s.max(),
        "tasks_without_deadline": unlimited,
        "epoch": None if problem.epoch is None else problem.epoch.isoformat(),
        "zones_with_prices": [name for name, _ in problem.prices.zones],
        **cluster.data,
    }
    title = (f"Problem {problem.name}",)
    warnings = [*_gaps(problem), *extrapolated(problem)]
    notes = (*_price_lines(problem.prices), *warnings)
    told = Table(("", ""), tuple(facts.items()), text=(0, 1))
    whole = {**data, "warnings": warnings}
    return Page(title, (told, *cluster.tables), notes, whole, [_flat(data)])


def cluster_page(cluster: Cluster) -> Page:
    """A cluster file: its servers and kinds, and what is missing to plan on them."""
    page = platform_page(cluster.platform, cluster.name)
    notes = []
    for kind in cluster.site.kinds:
        why = (
            "no application of the library was measured on it; jobs given by their run time use the"
            f" archetypes of {kind.card}"
        )
        if kind.card not in CARDS:
            why = (
                "no profile of it is known, so nothing runs there; measure your jobs (downclock"
                f" fit), or name a card like it (card = {', '.join(CARDS)})"
            )
        if kind.name not in cluster.library.kinds:
            notes.append(f"kind {kind.name}: {why}")
    notes += extrapolated(cluster)
    return replace(page, notes=tuple(notes), data={**page.data, "warnings": notes})


def _gaps(problem: Problem) -> list[str]:
    """Say which kinds have no profile for some jobs, and which of them."""
    notes = []
    names, runnable = problem.tasks.name, problem.runnable()
    for k, kind in enumerate(problem.platform.kinds):
        lost = np.flatnonzero(~runnable[:, k])
        if lost.size:
            some = ", ".join(names[lost[:3]]) + (", ..." if lost.size > 3 else "")
            of = f"{lost.size:,} of {len(names):,}"
            notes.append(f"kind {kind.name}: no profile for {of} tasks ({some}): not run there")
    return notes


def extrapolated(source: Problem | Cluster) -> list[str]:
    """Say which kinds have clocks beyond those at which their profiles were fitted."""
    notes = []
    for kind in source.platform.kinds:
        basis, clocks = source.library.basis_of(kind.name), kind.clocks
        if not basis.core_mhz or basis.default_core_mhz is None:
            continue
        low, high = (float(end[0]) * basis.default_core_mhz for end in (clocks.low, clocks.high))
        least, greatest = min(basis.core_mhz), max(basis.core_mhz)
        if low < least * (1.0 - TOLERANCE) or high > greatest * (1.0 + TOLERANCE):
            notes.append(
                f"kind {kind.name}: core clocks {low:.0f} to {high:.0f} MHz, its profiles were"
                f" fitted at {least:g} to {greatest:g} MHz and are extrapolated beyond"
            )
    return notes


def platform_page(platform: Platform, name: str = "cluster") -> Page:
    """The servers and the kinds of processors in them."""
    kinds: list[tuple[str, Callable[[Kind], str]]] = [
        ("kind", lambda kind: kind.name),
        ("clocks", lambda kind: kind.clocks.describe()),
        ("voltage law", lambda kind: _law(kind.clocks.law)),
        ("idle", lambda kind: f"{kind.idle_w:g} W"),
        ("interrupt", lambda kind: kind.interrupt),
        ("clock", lambda kind: kind.clock),
    ]
    servers: list[tuple[str, Callable[[ServerSpec], str]]] = [
        ("server", lambda spec: spec.name),
        ("count", lambda spec: f"{spec.count:,}"),
        ("processors", lambda spec: ", ".join(f"{n} x {kind}" for kind, n in spec.processors)),
        ("host", lambda spec: f"{spec.host_w:g} W"),
        ("asleep", lambda spec: f"{spec.sleep_w:g} W"),
        ("wake", lambda spec: f"{energy(spec.wake_j)}, {spec.wake_s:g} s"),
    ]
    processors, many = (platform.processor_count, "processor"), (platform.server_count, "server")
    tables = (
        Table.of(platform.kinds, kinds, count(*processors), text=(0, 1, 2, 4, 5)),
        Table.of(platform.specs, servers, count(*many), text=(0, 2)),
    )
    data = {
        "servers": platform.server_count,
        "processors": platform.processor_count,
        "kinds": [kind.name for kind in platform.kinds],
        "laws": [_law(kind.clocks.law) for kind in platform.kinds],
        "zones": list(platform.zones),
        "slot_s": platform.slot_s,
    }
    return Page((f"Cluster {name}",), tables, (), data, [_flat(data)])


def library_page(library: Library, name: str = "library") -> Page:
    """Every application on every kind: its model, and time and power of a unit of work."""
    records: list[dict[str, Any]] = []
    rows = []
    for a, k in np.argwhere(library.group >= 0).tolist():
        model, time_s, power_w = library.describe(a, k)
        names = (str(library.names[a]), library.kinds[k], model)
        said = dict(zip(("application", "kind", "model"), names, strict=True))
        records.append({**said, "time_s": time_s, "power_w": power_w})
        rows.append((*names, duration(time_s), f"{power_w:.5g} W"))
    head = ("application", "kind", "model", "time of a unit", "power")
    line = f"Library {name}: {count(len(library), 'application')}; times and powers at the"
    return Page(
        (f"{line} default clocks (a table: at its fastest point)",),
        (Table(head, tuple(rows), text=(0, 1, 2)),),
        (
            *(f"kind {kind}: {_basis(basis)}" for kind, basis in library.basis.items()),
            *([f"source: {library.source}"] if library.source else []),
        ),
        {"library": name, "source": library.source, "applications": records},
        records,
    )


def schedule_page(
    problem: Problem, schedule: Schedule, *, width: int = 100, letters: str = BLOCKS
) -> Page:
    """How tasks end, and a chart of who runs when."""
    ends = schedule.outcomes.counts()
    said = ", ".join(f"{number:,} {name}" for name, number in ends.items() if number)
    line = (
        f"Schedule of {problem.name} by {schedule.policy or 'an unnamed policy'}: {said};"
        f" {count(len(schedule.segments), 'segment')}, makespan {duration(schedule.makespan_s)}"
    )
    data = {
        "problem": problem.name,
        "policy": schedule.policy,
        "segments": len(schedule.segments),
        "spans": len(schedule.spans),
        **ends,
        "makespan_s": schedule.makespan_s,
    }
    chart = gantt(problem, schedule, width=width, letters=letters)
    return Page((line, "", *chart), data=data, records=[_flat(data)])


def verdict_page(problem: Problem, verdict: Verdict) -> Page:
    """Every broken rule."""
    tasks, servers = problem.tasks.name, problem.platform.server_name
    processors = problem.platform.processor_names()
    records = []
    for v in verdict.violations:
        where = _named(tasks, v.task), _named(processors, v.processor), _named(servers, v.server)
        records.append(dict(zip(VIOLATION, (v.rule, v.message, *where), strict=True)))
    data = {
        "valid": verdict.ok,
        "checked": verdict.checked,
        "violations": verdict.total,
        "by_rule": dict(verdict.counts),
        "listed": records,
    }
    if verdict.ok:
        return Page((str(verdict),), data=data, names=VIOLATION)
    rows = tuple((v.rule, v.message) for v in verdict.violations)
    table = Table(("rule", "what is wrong"), rows, text=(0, 1))
    return Page((str(verdict).splitlines()[0],), (table,), data=data, records=records)


def bill_page(bill: Bill) -> Page:
    """A bill, with a row per server for CSV and all details for JSON."""
    data = bill.as_dict(details=True)
    records = []
    for row in data["servers"]:
        parts = {f"{part}_j": joules for part, joules in row["energy_j"].items()}
        rest = {name: row[name] for name in ("total_j", "money", "carbon_kg")}
        records.append({"server": row["server"], **parts, **rest})
    return Page(tuple(str(bill).splitlines()), data=data, records=records)


def fit_page(fit: Fit) -> Page:
    """The errors of every fitted application; what there is to say about them below."""
    notes = list(dict.fromkeys(report.note for report in fit.reports if report.note))
    rows = tuple(
        (
            report.application,
            report.model,
            f"{report.points}",
            *_errors(report),
            f"[{notes.index(report.note) + 1}]" if report.note else "",
        )
        for report in fit.reports
    )
    head = (
        *("application", "model", "points", "time %", "worst", "held out"),
        *("power %", "worst", "held out", "note"),
    )
    records = [asdict(report) for report in fit.reports]
    return Page(
        (_fit_line(fit), *fit.notes),
        (Table(head, rows, text=(0, 1, 9)),),
        tuple(f"[{k + 1}] {note}" for k, note in enumerate(notes)),
        {"applications": records, "notes": list(fit.notes)},
        records,
    )


def _fit_line(fit: Fit) -> str:
    """Say how many were fitted and how well; a measured table has no error of a fit."""
    curves = [report for report in fit.reports if report.model != "table"]
    known = [report for report in curves if np.isfinite(report.time_mape)]
    tables = len(fit.reports) - len(curves)
    said = [f"{count(len(curves), 'application')} fitted"]
    said += [f"{count(tables, 'measured table')} kept"] if tables else []
    line = ", ".join(said)
    if not known:
        return line
    said = []
    for what in ("time", "power"):
        mean = np.mean([getattr(report, f"{what}_mape") for report in known])
        left_out = np.mean([getattr(report, f"{what}_held_out") for report in known])
        held = f" ({percent(left_out)} held out)" if np.isfinite(left_out) else ""
        said.append(f"{percent(float(mean))} of {what}{held}")
    return f"{line}; mean absolute error {', '.join(said)}"


def _errors(report: FitReport) -> tuple[str, ...]:
    names = [f"{what}_{part}" for what in ("time", "power") for part in FIT_ERRORS]
    errors = [float(getattr(report, name)) for name in names]
    if report.model == "table":
        return ("-",) * len(errors)
    return tuple(f"{100.0 * error:.2f}" if np.isfinite(error) else "unknown" for error in errors)


def _deadlines(deadline_s: Floats) -> str:
    finite = deadline_s[np.isfinite(deadline_s)]
    return f"{duration(finite.min())} to {duration(finite.max())}" if finite.size else "none"


def _basis(basis: Basis) -> str:
    """Say what a kind's profiles refer to."""
    if basis.default_power_limit_w is not None:
        limits = " ".join(f"{limit:g}" for limit in basis.power_limit_w)
        return f"power limits {limits} W, default {basis.default_power_limit_w:g} W"
    clocks = {"core": basis.default_core_mhz, "memory": basis.default_memory_mhz}
    said = [f"{name} {mhz:g} MHz" for name, mhz in clocks.items() if mhz is not None]
    law = "not known" if basis.law is None else _law(basis.law)
    line = f"voltage law {law}; default clocks {', '.join(said) or 'not known'}"
    for name, measured in (("core", basis.core_mhz), ("memory", basis.memory_mhz)):
        if measured:
            line += f"; {name} clocks {' '.join(f'{mhz:g}' for mhz in measured)} MHz"
    return line


def _law(law: VoltageLaw) -> str:
    """Name a law, or write it as a formula of the core clock f."""
    known = law_data(law)
    return known if isinstance(known, str) else f"{law.a0:g} + {law.a1:g} f + {law.a2:g} f²"


def _price_lines(prices: Prices) -> tuple[str, ...]:
    lines = []
    for zone, curves in prices.zones:
        for what, unit, curve in (
            ("price", prices.currency, curves.price),
            ("CO2 intensity", "g", curves.carbon),
        ):
            if curve is not None:
                values = f"{curve.value.min():g} to {curve.value.max():g} {unit}/kWh"
                lines.append(f"zone {zone}: {what} {values} until {duration(curve.end_s)}")
    return tuple(lines)


def _named(names: Any, index: int | None) -> str | None:
    return None if index is None or not 0 <= index < len(names) else str(names[index])


def _flat(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: " ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in data.items()
    }
