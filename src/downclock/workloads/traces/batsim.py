"""Batsim's JSON workloads: jobs that name profiles; a profile with a delay says the run time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from downclock.workloads.traces.ledger import Ledger
from downclock.workloads.traces.rows import Rows, Sheet, objects
from downclock.workloads.traces.trace import Column, Format

HEADER = ("id", "subtime", "walltime", "res", "run")

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
)


def batsim_sheet(document: Mapping[str, Any], ledger: Ledger) -> Sheet:
    """Return the jobs as rows; one whose profile has no delay has no run time."""
    profiles = document.get("profiles")
    known = profiles if isinstance(profiles, dict) else {}
    return Sheet(HEADER, _rows(document["jobs"], known, ledger), unit="job")


def _rows(jobs: list[Any], profiles: Mapping[str, Any], ledger: Ledger) -> Rows:
    for number, said in objects(jobs, ledger):
        profile = profiles.get(str(said.get("profile")))
        delay = profile.get("delay") if isinstance(profile, dict) else None
        walltime = said.get("walltime")
        limit = None if walltime == -1 else walltime
        name = str(said.get("id", "")).rpartition("!")[2]  # workload!job
        yield (
            number,
            (name, said.get("subtime"), limit, said.get("res"), delay, said.get("profile")),
        )
