"""Batsim's JSON workloads: jobs that name profiles; a profile with a delay says the run time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from downclock.workloads.traces.json_jobs import JsonText, json_jobs
from downclock.workloads.traces.ledger import Ledger
from downclock.workloads.traces.rows import Rows, Sheet, opened
from downclock.workloads.traces.trace import Column, Format, Job

HEADER = ("id", "subtime", "walltime", "res", "run")


def _amend(job: Job) -> str | None:
    """A computation or a transfer takes as long as the machine that it is simulated on."""
    return "has a profile without a delay" if math.isnan(job["run"]) else None


BATSIM = Format(
    "batsim",
    {
        "name": Column(("id",)),
        "submit": Column(("subtime",), "seconds"),
        "run": Column(("run",), "seconds"),
        "limit": Column(("walltime",), "seconds"),
        "cpus": Column(("res",), "count"),
    },
    notes=("only profiles of type delay say how long a job runs",),
    amend=_amend,
)


def batsim_sheet(path: str | Path, ledger: Ledger) -> Sheet:
    """Return the jobs as rows; one whose profile has no delay has no run time.

    Raises:
        InvalidInput: the profiles are no JSON.
    """
    return Sheet(HEADER, _rows(path, _profiles(path), ledger), unit="job")


def _profiles(path: str | Path) -> dict[str, Any]:
    """The profiles of a file, which may stand behind its jobs."""
    with opened(path) as (stream, _):
        text = JsonText(stream)
        for name in text.members():
            if name == "profiles":
                found = text.value()
                return found if isinstance(found, dict) else {}
    return {}


def _rows(path: str | Path, profiles: Mapping[str, Any], ledger: Ledger) -> Rows:
    for number, said in json_jobs(path, ledger):
        profile = profiles.get(str(said.get("profile")))
        delay = profile.get("delay") if isinstance(profile, dict) else None
        walltime = said.get("walltime")
        limit = None if walltime == -1 else walltime
        name = str(said.get("id", "")).rpartition("!")[2]  # workload!job
        yield number, (name, said.get("subtime"), limit, said.get("res"), delay)
