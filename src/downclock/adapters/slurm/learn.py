"""Learn from jobs that ended: how long their applications run, and on which energy.

Where jobs of an application ran at three clocks or more, its profile is fitted to them; else the
one it was planned with is scaled to what was measured. What estimates missed widens the next ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from downclock.adapters.slurm.jobs import JobReader, Task
from downclock.adapters.slurm.log import MOMENT, Log
from downclock.adapters.slurm.site import SlurmSite
from downclock.adapters.slurm.spool import Measured
from downclock.errors import AdapterError, InvalidInput
from downclock.power.fit import LEAST_CLOCKS, fit
from downclock.power.library import Library
from downclock.power.library_file import library_document, library_of_document, write_library
from downclock.power.measurements import Measurements
from downclock.power.points import Clocks, ClockTable, PowerLimits
from downclock.problem.platform import Kind
from downclock.tabular import write_columns
from downclock.units import Floats

LEAST_RUNS = 3
"""Fewer runs of an application say nothing."""

WIDEST = 0.95
"""So many of the jobs took no longer than the widened estimate."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """What was learnt of one application on one kind.

    Attributes:
        runs, clocks: jobs, and different settings they ran at.
        how: fitted, or scaled.
        time_error, energy_error: mean relative errors of the new profile.
        widen: what estimates of run times are multiplied with.
        profile: as library files hold it.
    """

    application: str
    kind: str
    runs: int
    clocks: int
    how: str
    time_error: float
    energy_error: float
    widen: float
    profile: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Runs of one application: settings, time of a unit, mean power of a GPU, energy in all (n,).

    Where limits are set, and no clocks, ``core_mhz`` holds the limits in watts.
    """

    core_mhz: Floats
    memory_mhz: Floats
    time_s: Floats
    power_w: Floats
    energy_j: Floats


def learn(site: SlurmSite, log: Log, measured: Sequence[Measured]) -> tuple[Library, list[Learnt]]:
    """Return the site's library with what was measured, and what is known of each change.

    Raises:
        AdapterError: no planned job was measured.
    """
    reader = JobReader(site, lambda job: "")
    found = []
    for (name, planned, kind), runs in _grouped(site, log, measured).items():
        if runs.time_s.size >= LEAST_RUNS:
            found.append(_learnt(site, reader, name, planned, kind, runs))
    if not found:
        raise AdapterError(
            f"{site.spool}: fewer than {LEAST_RUNS} planned jobs of any application were measured"
        )
    return _library(site, found), found


def against_default_clocks(
    site: SlurmSite, log: Log, measured: Iterable[Measured]
) -> tuple[float, float]:
    """Joules of planned jobs as measured, and what they would be at default clocks.

    The second is the first times what their profiles say of both clocks.
    """
    library = JobReader(site, lambda job: "").library
    measured_j = default_j = 0.0
    for (_, planned, kind), runs in _grouped(site, log, measured).items():
        if planned in map(str, library.names):
            clocks = _defaults(_kind(site, kind).clocks)
            core, memory = (np.full(runs.core_mhz.size, each) for each in clocks)
            default = replace(runs, core_mhz=core, memory_mhz=memory)
            time_s, power_w = _at(site, library, planned, kind, runs)
            fast_s, fast_w = _at(site, library, planned, kind, default)
            measured_j += float(runs.energy_j.sum())
            default_j += float(np.sum(runs.energy_j * fast_s * fast_w / (time_s * power_w)))
    return measured_j, default_j


def write_learnt(library: Library, learnt: Sequence[Learnt], path: str | Path) -> None:
    """Write the library, and beside it (.csv) the errors of what was learnt."""
    names = ("application", "kind", "runs", "clocks", "how", "time_error", "energy_error", "widen")
    columns = {name: [getattr(each, name) for each in learnt] for name in names}
    write_columns(columns, Path(path).with_suffix(".csv"))
    write_library(library, path)


def _grouped(
    site: SlurmSite, log: Log, measured: Iterable[Measured]
) -> dict[tuple[str, str, str], _Runs]:
    """Runs by what the application is called, what it was planned as, and kind."""
    rows: dict[tuple[str, str, str], list[tuple[float, ...]]] = {}
    for task, each in _whole_runs(log, measured):
        known = each.node in site.nodes and each.gpus and task.identity
        if not (known and each.timed and each.run_s > 0.0):
            continue
        platform = site.cluster.platform
        kind = platform.kinds[platform.kind[platform.first_processor[site.nodes.index(each.node)]]]
        core, memory = _defaults(kind.clocks)
        limited = isinstance(kind.clocks, PowerLimits)
        chosen = each.power_limit_w if limited else each.core_mhz
        power_w = (each.energy_j / each.gpus - kind.idle_w * each.waited_s) / each.run_s
        if power_w <= 0.0:
            continue  # less than an idle GPU takes: nobody knows what it ran at
        row = (chosen or core, each.memory_mhz or memory, each.run_s / task.units, power_w,
               each.energy_j)  # fmt: skip
        key = (task.identity, task.application_name, kind.name)
        rows.setdefault(key, []).append(row)
    return {key: _Runs(*np.array(group, dtype=np.float64).T) for key, group in rows.items()}


def _whole_runs(log: Log, measured: Iterable[Measured]) -> Iterator[tuple[Task, Measured]]:
    """What was measured of jobs that completed: their last attempts, on all of their nodes."""
    told: dict[str, Task] = {}
    completed: set[str] = set()
    for _, _, kind, entry in log.rows():
        if kind == MOMENT:
            told |= {task["key"]: Task(**task) for task in entry["told"]}
            completed |= {key for key, state in entry["ended"] if "COMPLETED" in state.split("+")}
    by_number: dict[int, list[Task]] = {}
    for task in sorted(told.values(), key=lambda task: task.submit_s):
        by_number.setdefault(task.job, []).append(task)
    attempts: dict[str, list[Measured]] = {}
    for each in measured:  # numbers come again where a controller counts from 1 again
        of = [task for task in by_number.get(each.job, ()) if task.submit_s <= each.started_s + 1.0]
        if of and of[-1].key in completed:
            attempts.setdefault(of[-1].key, []).append(each)
    for key, runs in attempts.items():
        last_s = max(each.started_s for each in runs)
        yield from ((told[key], each) for each in runs if each.ended_s > last_s)


def _kind(site: SlurmSite, name: str) -> Kind:
    return next(kind for kind in site.cluster.platform.kinds if kind.name == name)


def _defaults(clocks: Clocks) -> tuple[float, float]:
    """Settings that ratios refer to: core (or limit) and memory."""
    if isinstance(clocks, PowerLimits):
        return clocks.default_limit_w, 1.0
    return clocks.default_mhz or (np.nan, np.nan)


def _learnt(
    site: SlurmSite, reader: JobReader, name: str, planned: str, kind: str, runs: _Runs
) -> Learnt:
    profile, how = _fitted(site, name, kind, runs), "fitted"
    if profile is None:
        profile, how = _scaled(site, reader, planned, kind, runs), "scaled"
    made = _one(reader.library, name, kind, profile)
    time_s, power_w = _at(site, made, name, kind, runs)
    settings = set(zip(runs.core_mhz.tolist(), runs.memory_mhz.tolist(), strict=True))
    longer, more = runs.time_s / time_s, runs.time_s * runs.power_w / (time_s * power_w)
    time_error, energy_error = (float(np.mean(np.abs(each - 1.0))) for each in (longer, more))
    widen, many = max(1.0, float(np.quantile(longer, WIDEST))), int(longer.size)
    return Learnt(name, kind, many, len(settings), how, time_error, energy_error, widen, profile)


def _fitted(site: SlurmSite, name: str, kind: str, runs: _Runs) -> Any:
    """The profile that fits runs at several clocks; None: there are too few."""
    clocks = _kind(site, kind).clocks
    if not isinstance(clocks, ClockTable) or np.unique(runs.core_mhz).size < LEAST_CLOCKS:
        return None
    names = np.full(runs.time_s.size, name, dtype=object)
    memory = runs.memory_mhz if clocks.scales_memory else np.full(runs.time_s.size, np.nan)
    told = Measurements(names, runs.core_mhz, memory, runs.time_s, runs.power_w)
    core_mhz, memory_mhz = clocks.default_mhz
    try:
        made = fit(
            told, kind=kind, default_core_mhz=core_mhz, model="gpu", law=clocks.law,
            default_memory_mhz=memory_mhz if clocks.scales_memory else None,
        )  # fmt: skip
    except InvalidInput:
        return None
    return library_document(made.library)["applications"][0]["profiles"][kind]


def _scaled(site: SlurmSite, reader: JobReader, planned: str, kind: str, runs: _Runs) -> Any:
    """The profile that was planned with, as slow and as hungry as was measured in the middle."""
    time_s, power_w = _at(site, reader.library, planned, kind, runs)
    time, power = float(np.median(runs.time_s / time_s)), float(np.median(runs.power_w / power_w))
    entries = library_document(reader.library)["applications"]
    profile = next(entry for entry in entries if entry["name"] == planned)["profiles"][kind]
    return _times(profile, time, power)


def _times(profile: Mapping[str, Any], time: float, power: float) -> dict[str, Any]:
    """A profile with its times and powers multiplied."""
    made: dict[str, Any] = {}
    for key, value in profile.items():
        if key == "points":
            made[key] = [_times(point, time, power) for point in value]
        elif key == "power_limit_w" or not isinstance(value, int | float):
            made[key] = value
        else:
            made[key] = value * {"s": time, "w": power}.get(key.rpartition("_")[2], 1.0)
    return made


def _at(
    site: SlurmSite, library: Library, name: str, kind: str, runs: _Runs
) -> tuple[Floats, Floats]:
    """Time of a unit and power that a library says for the settings of runs."""
    spec = _kind(site, kind)
    defaults = _defaults(spec.clocks)
    ratios = zip(runs.core_mhz / defaults[0], runs.memory_mhz / defaults[1], strict=True)
    points = np.array([spec.clocks.nearest(core, memory) for core, memory in ratios])
    rows = np.full(runs.time_s.size, [str(each) for each in library.names].index(name))
    return library.at(rows, kind, points)


def _one(library: Library, name: str, kind: str, profile: Mapping[str, Any]) -> Library:
    """A library of one application, with what the kind's profiles refer to."""
    document = library_document(library)
    return library_of_document(
        {**document, "applications": [{"name": name, "profiles": {kind: profile}}]}, "learnt"
    )


def _library(site: SlurmSite, found: Sequence[Learnt]) -> Library:
    """The site's library, with learnt profiles in place of its own."""
    document = library_document(site.cluster.library)
    entries = {entry["name"]: entry for entry in document["applications"]}
    for each in found:
        entry = entries.setdefault(each.application, {"name": each.application, "profiles": {}})
        entry["profiles"][each.kind] = dict(each.profile)
    source = f"{document['source']} Learnt from jobs of {site.source.name}.".strip()
    told = {**document, "source": source, "applications": list(entries.values())}
    return library_of_document(told, "learnt")
