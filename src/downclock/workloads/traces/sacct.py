"""Slurm's accounting: ``sacct -P`` with a header, and ``sacct --json`` of 22.05 up to 24.11.

Steps are left out. JSON writes a number as such, or (since 23.02) as whether it is set and what.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from downclock.workloads.traces.cells import NAN, duration, known, quantity, text
from downclock.workloads.traces.json_jobs import json_jobs
from downclock.workloads.traces.ledger import NEVER_STARTED, STEP, Ledger
from downclock.workloads.traces.rows import Rows, Sheet
from downclock.workloads.traces.trace import Column, Format, Job

_GPUS = re.compile(r"(?:^|,)(?:gres/)?gpu[=:](?:[^=:,()]+:)?(\d+)(?:\(|,|$)")

_TYPED = re.compile(r"(?:^|,)gres/gpu:[^=,]+=(\d+)")


def gpus_of(cell: Any) -> float:
    """Return the GPUs of a list such as ``cpu=8,gres/gpu=2,gres/gpu:v100=2``."""
    listed = text(cell)
    found = _GPUS.search(listed)
    if found is not None:
        return float(found[1])
    return float(sum(map(int, _TYPED.findall(listed))))


def _elapsed(cell: Any, unit_s: float = 1.0) -> float:
    """Return a length of time: a number of its unit, or days, hours, minutes and seconds."""
    spelt = isinstance(cell, str) and ":" in cell
    return duration(cell) if spelt else quantity(cell, factor=unit_s)


def _limit(cell: Any) -> float:
    """Return a time limit: minutes, where it is a number."""
    return _elapsed(cell, unit_s=60.0)


def _amend(job: Job) -> str | None:
    """Array tasks are jobs, steps are not; a job that never started has a start of 0 in JSON."""
    if "." in job["name"]:
        return STEP
    for field in ("start", "end"):
        job[field] = NAN if job[field] == 0.0 else job[field]
    if job["start"] != job["start"]:
        return NEVER_STARTED
    if job["end"] != job["end"]:
        return "still runs"
    job["submit"] = min(job["submit"], job["start"])  # a requeued job's submission is its last
    return None


SACCT = Format(
    "sacct",
    {
        "name": Column(("JobID", "JobIDRaw")),
        "submit": Column(("Submit",), "stamp"),
        "start": Column(("Start",), "stamp"),
        "end": Column(("End",), "stamp"),
        "run": Column(("ElapsedRaw", "Elapsed"), _elapsed),
        "limit": Column(("TimelimitRaw", "Timelimit"), _limit),
        "gpus": Column(("AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES"), gpus_of),
        "nodes": Column(("NNodes", "AllocNodes"), "count"),
        "cpus": Column(("AllocCPUS", "NCPUS"), "count"),
        "queue": Column(("Partition",)),
        "hosts": Column(("NodeList",)),
    },
    signature=("JobID", "Start", "End"),
    requeues=True,
    notes=("every job that ran counts, whatever its state at the end",),
    amend=_amend,
)

HEADER = (
    *("JobID", "Submit", "Start", "End", "ElapsedRaw", "TimelimitRaw", "AllocTRES", "NNodes"),
    *("AllocCPUS", "Partition", "NodeList"),
)

_UNIX = {name: Column((name.title(),), "unix") for name in ("submit", "start", "end")}

SACCT_JSON = replace(SACCT, name="sacct-json", columns={**SACCT.columns, **_UNIX}, signature=())


def sacct_sheet(path: str | Path, ledger: Ledger) -> Sheet:
    """Return the jobs of ``sacct --json`` as the rows that ``sacct -P`` would print."""
    return Sheet(HEADER, _rows(path, ledger), unit="job")


def _rows(path: str | Path, ledger: Ledger) -> Rows:
    for number, said in json_jobs(path, ledger):
        time, tres = _table(said, "time"), _tres(_table(said, "tres").get("allocated"))
        times = (
            number_of(time.get(name)) for name in ("submission", "start", "end", "elapsed", "limit")
        )
        typed = sum(n for name, n in tres.items() if name.startswith("gres/gpu:"))
        gpus, nodes = tres.get("gres/gpu", typed), tres.get("node", said.get("allocation_nodes"))
        counts = f"gres/gpu={gpus:.0f}", nodes, tres.get("cpu")
        where = said.get("partition"), said.get("nodes")
        yield number, (text(said.get("job_id")), *times, *counts, *where)


def _table(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def number_of(value: Any) -> Any:
    """A number, or what an object with ``set``, ``infinite`` and ``number`` says."""
    if isinstance(value, dict):
        return value.get("number") if value.get("set") and not value.get("infinite") else None
    return value


def _tres(listed: Any) -> dict[str, float]:
    """What was allocated, by name: ``cpu``, ``node``, ``gres/gpu``."""
    found: dict[str, float] = {}
    for each in listed if isinstance(listed, list) else []:
        if isinstance(each, dict) and known(each.get("type")):
            name = each.get("name")
            key = f"{each['type']}/{name}" if name else str(each["type"])
            count = each.get("count")
            if isinstance(count, int | float) and not isinstance(count, bool) and abs(count) < 1e7:
                found[key] = float(count)
    return found
