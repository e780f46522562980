"""The spool: a file for each run of a job on this node, with the energy it used."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from downclock.adapters.devices.meter import Source
from downclock.adapters.devices.slurm_job import Begun, SlurmJob
from downclock.adapters.devices.state import Record
from downclock.errors import DownclockError
from downclock.files import write_text_atomically

NOT_SPOOLED = (DownclockError, OSError, ValueError)
"""What a spool raises that is full, gone, or holds something else."""


def run_file(spool: str, job: SlurmJob | Record, attempt: int, begun_s: float) -> Path:
    """The file of a run on this node; a forgotten start and the next are one attempt."""
    path = Path(spool) / f"{job.job}-{job.node}-{attempt}.json"
    if path.exists() and f'"begun_s": {begun_s!r},' not in path.read_text():
        return path.with_name(f"{path.stem}-{begun_s:.0f}.json")
    return path


def note_end(spool: str, job: SlurmJob, begun: Begun, ended_s: float) -> str:
    """Spool that a run has ended before anything is asked: whoever is killed now, it is known.

    Return what stands in the way, which keeps no GPU from being reset.
    """
    told = {
        **_run(job, begun, begun.begun_s, ended_s),
        "by": "epilog",
        "gpus": [],
        "energy_j": None,
        "source": "counter",
        "completed": job.completed(begun.known),
    }
    try:
        path = run_file(spool, job, begun.attempt, begun.begun_s)
        if not path.exists():
            write(path, told)
    except NOT_SPOOLED as error:
        return f"downclock agent: job {job.job}: its end could not be spooled: {error}\n"
    return ""


def write(path: Path, told: dict[str, Any]) -> None:
    """Write the file of a run, whole or not at all."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    write_text_atomically(path, json.dumps(told, allow_nan=False) + "\n")


def _run(
    job: SlurmJob | Record, run: Begun | Record, started_s: float, ended_s: float, name: str = ""
) -> dict[str, Any]:
    """Whose run it was, where, and when."""
    return {
        "job": job.job,
        "node": job.node,
        "attempt": run.attempt,
        "user": job.user,
        "job_name": name,
        "begun_s": run.begun_s,
        "started_s": started_s,
        "ended_s": max(ended_s, started_s),
    }


def write_energy(
    spool: str, rows: Sequence[tuple[Record, tuple[float | None, str]]], ended_s: float | None
) -> None:
    """Write what a job attempt used on this node, unless that was written before."""
    first = rows[0][0]
    path = run_file(spool, first, first.attempt, first.begun_s)
    noted = json.loads(path.read_text()) if path.exists() else {"gpus": []}
    if noted.get("gpus") != []:
        return
    joules = [energy_j for _, (energy_j, _) in rows]
    trapezoid = any(record.counter_j is None for record, _ in rows)
    source: Source = "trapezoid" if trapezoid else "counter"
    end_s = time.time() if ended_s is None else ended_s
    told = {
        **_run(first, first, first.started_s, end_s, first.job_name),
        "by": "recover" if ended_s is None else "epilog",
        "gpus": [_told(record, *energy) for record, energy in rows],
        "energy_j": None if None in joules else sum(joule or 0.0 for joule in joules),
        "source": source,
        "completed": noted.get("completed"),
    }
    write(path, told)


def _told(record: Record, energy_j: float | None, about: str) -> dict[str, Any]:
    names = ("index", "uuid", "core_mhz", "memory_mhz", "power_limit_w")
    row: dict[str, Any] = {name: getattr(record, name) for name in names}
    why = "; ".join(text for text in (record.why, about) if text)
    return {**row, "energy_j": energy_j, "set": record.locked, "why": why}
