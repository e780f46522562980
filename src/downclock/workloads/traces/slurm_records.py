"""Slurm's own records of jobs, for clusters without accounting: a job a line, ``Key=value`` each.

``scontrol show job -od`` prints those of jobs that wait, run or ended lately (``MinJobAge``);
``jobcomp/filetxt`` writes such a line when a job ends, with GPUs where they are accounted for.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from downclock.workloads.traces.cells import known
from downclock.workloads.traces.ledger import Ledger
from downclock.workloads.traces.rows import Rows, Sheet, lines
from downclock.workloads.traces.sacct import SACCT
from downclock.workloads.traces.trace import Column

KEYS = {
    "name": ("JobId",),
    "submit": ("SubmitTime",),
    "start": ("StartTime",),
    "end": ("EndTime",),
    "limit": ("TimeLimit",),
    "gpus": ("JOB_GRES", "AllocTRES", "TRES"),
    "nodes": ("NumNodes", "NodeCnt"),
    "cpus": ("NumCPUs", "ProcCnt"),
    "queue": ("Partition",),
    "hosts": ("NodeList",),
}
"""The keys of each of our fields; the first that says anything counts."""

_COLUMNS = {ours: Column((ours,), SACCT.columns[ours].read) for ours in KEYS}

RECORDS = replace(SACCT, name="slurm-records", columns=_COLUMNS, signature=("JobId=",))

ESTIMATED = {"PENDING": ("start", "end"), "RUNNING": ("end",), "SUSPENDED": ("end",)}
"""What a job's state makes a guess of Slurm's."""

_PAIR = re.compile(
    rf"(?<!\S)({'|'.join(('JobState', *sum(KEYS.values(), ())))})=(\S*)", re.IGNORECASE
)


def are_records(sheet: Sheet) -> bool:
    """Tell whether what was taken for a header is the first of such lines."""
    return any(cell.startswith(RECORDS.signature) for cell in sheet.header)


def records_sheet(path: str | Path, ledger: Ledger) -> Sheet:
    """Open a file of records."""
    return Sheet(tuple(KEYS), _rows(path, ledger))


def _rows(path: str | Path, ledger: Ledger) -> Rows:
    for number, line in enumerate(lines(path, ledger), start=1):
        pairs = {(key.lower(), value) for key, value in _PAIR.findall(line)}
        said = dict(pairs)
        if len(said) < len(pairs):  # a name of its owner's may say anything
            ledger.malformed(number, "says two things of one key")
        elif said.get("jobid"):
            guessed = ESTIMATED.get(said.get("jobstate", ""), ())
            yield number, [None if ours in guessed else _first(said, ours) for ours in KEYS]
        elif line.strip():
            ledger.malformed(number, "has no JobId=")


def _first(said: dict[str, str], ours: str) -> str | None:
    values = (said.get(key.lower()) for key in KEYS[ours])
    return next((value for value in values if known(value) and value != "(null)"), None)
