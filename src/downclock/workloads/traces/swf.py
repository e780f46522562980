"""The Standard Workload Format of the Parallel Workloads Archive: 18 numbers a line, -1 unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from downclock.workloads.traces.cells import NAN, quantity, text
from downclock.workloads.traces.ledger import Ledger
from downclock.workloads.traces.rows import Rows, Sheet, lines
from downclock.workloads.traces.trace import Column, Format, Job

HEADER = (
    *("job", "submit", "wait", "run", "allocated", "cpu", "memory", "requested", "limit"),
    *("requested_memory", "status", "user", "group", "executable", "queue", "partition"),
    *("preceding", "think"),
)
"""What the 18 fields are."""

_ALLOCATED, _REQUESTED = HEADER.index("allocated"), HEADER.index("requested")
"""What was allocated counts, and where it is not known what was asked for."""


def _known(cell: Any) -> float:
    value = quantity(cell)
    return NAN if value == -1.0 else value


def _amend(job: Job) -> str | None:
    """The wait is no instant."""
    job["start"] = job["submit"] + job["start"]
    return None


def _queue(cell: Any) -> str:
    return "" if text(cell) == "-1" else f"queue {text(cell)}"


SWF = Format(
    "swf",
    {
        "name": Column(("job",)),
        "submit": Column(("submit",), _known),
        "start": Column(("wait",), _known),
        "run": Column(("run",), _known),
        "cpus": Column(("allocated",), _known),
        "limit": Column(("limit",), _known),
        "queue": Column(("queue",), _queue),
    },
    amend=_amend,
)


def swf_sheet(path: str | Path, ledger: Ledger) -> Sheet:
    """Open a log; it began at its ``UnixStartTime``, where the header says one."""
    text = enumerate(lines(path, ledger), start=1)
    began: float | None = None
    first: list[tuple[int, str]] = []
    for number, line in text:
        if line.strip() and not line.lstrip().startswith(";"):
            first = [(number, line)]
            break
        found = re.match(r";\s*UnixStartTime:\s*(\d{1,12})\b", line)
        began = float(found[1]) if found else began
    return Sheet(HEADER, _rows(chain(first, text), ledger), began)


def _rows(text: Iterator[tuple[int, str]], ledger: Ledger) -> Rows:
    for number, line in text:
        cells = line.split()
        if not cells or cells[0].startswith(";"):
            continue
        if len(cells) != len(HEADER):
            ledger.malformed(number, f"has {len(cells)} fields, SWF has {len(HEADER)}")
            continue
        if cells[_ALLOCATED] == "-1":
            cells[_ALLOCATED] = cells[_REQUESTED]
        yield number, cells
