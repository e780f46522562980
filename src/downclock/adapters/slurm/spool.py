"""The spool: energy that the agent measured, one file for each attempt of a job on a node."""

from __future__ import annotations

import json
import os
import pwd
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from downclock.adapters.slurm.observed import Job

MOST_BYTES = 1 << 20
"""A larger file is none of the agent's."""

MOST_WORDS = 4096
"""A word of `once.sh` and when it was written are shorter."""

CLOCKS_S = 2.0
"""Clocks of nodes and of the controller differ by less."""

BEGINS_S = 5.0
"""`once.sh` lets a script begin later than that after its job."""

TELLS_S = 20.0
"""A node that found no controller to tell of an end has told the next one after so long."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One attempt of one job on one node.

    Attributes:
        job: its number in Slurm.
        user, job_name, node: whose, what and where.
        started_s, ended_s: seconds since 1970.
        energy_j: of its GPUs there, ``gpus`` of them.
        core_mhz, memory_mhz: clocks that were set; None: the default ones.
        source: how it was measured: counter or trapezoid.
        power_limit_w: limit that was set; None: the default one.
        timed: it ended then, by itself; else it was cut, or its Epilog was lost, and that is when
            somebody found out.
        waited_s: of that time its script waited to begin (`once.sh`).
    """

    job: int
    node: str
    user: str
    job_name: str
    started_s: float
    ended_s: float
    energy_j: float
    gpus: int
    core_mhz: float | None
    memory_mhz: float | None
    source: str
    power_limit_w: float | None = None
    timed: bool = True
    waited_s: float = 0.0

    @property
    def run_s(self) -> float:
        """How long its script ran."""
        return self.ended_s - self.started_s - self.waited_s


def read_spool(folder: Path) -> list[Measured]:
    """All that was measured, by job; files that cannot be read are passed over."""
    found = []
    for file in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        try:
            if file.stat().st_size <= MOST_BYTES:
                row = _measured(json.loads(file.read_text("utf-8", "replace")))
                found.append(replace(row, waited_s=_waited_s(folder, row)))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return sorted(found, key=lambda each: (each.ended_s, each.job))


def _waited_s(folder: Path, row: Measured) -> float:
    """How long a script waited to begin, by its word; 0 where that is of no or another run."""
    try:
        began_s = float(_plain_file(folder / "once" / f"{row.job}.ended")[1].split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0
    return began_s - row.started_s if row.started_s < began_s < row.ended_s else 0.0


def spooled_jobs(folder: Path) -> set[int]:
    """Numbers of the jobs of which the spool has a word."""
    names = (path.name.partition("-")[0] for path in folder.glob("*.json"))
    return {int(name) for name in names if name.isdecimal()}


def ran_once(folder: Path, job: Job, boot_s: float, now_s: float) -> bool:
    """Tell whether a job's script ran to its end, by the word that `once.sh` wrote then.

    It counts where a controller that was started since still takes the job for one that runs, or
    has requeued it; and where the job was held for it. A word of somebody else counts nothing.
    """
    ended = _word(folder, job, "ended")
    if ended is None:
        return False
    at_s, text = ended
    told = now_s > boot_s + TELLS_S
    since = told and job.start_s <= at_s if job.active else job.restarts > 0
    return since and ("held" in text or at_s < boot_s + CLOCKS_S)


def script_began(folder: Path, job: Job) -> bool | None:
    """Tell whether the script of a job that ended had begun, by `once.sh`; None: it says nothing.

    A script begins later than `BEGINS_S` after its job: where one that was launched before still
    waits, a shorter run has not begun either.
    """
    waits = _word(folder, job, "waits")
    if waits is None:
        return any(_word(folder, job, name) for name in ("begun", "ended")) or None
    short = job.end_s - job.start_s < BEGINS_S
    return None if waits[0] < job.start_s - CLOCKS_S and not short else False


def _word(folder: Path, job: Job, name: str) -> tuple[float, str] | None:
    """When a job's owner wrote a word by `once.sh`, and what it says; None: there is none."""
    try:
        found, text = _plain_file(folder / "once" / f"{job.number}.{name}")
        return (found.st_mtime, text) if found.st_uid == pwd.getpwnam(job.user).pw_uid else None
    except (OSError, KeyError):
        return None


def _plain_file(path: Path) -> tuple[os.stat_result, str]:
    """A file that anybody may have made: no link is followed, no pipe waited for, little read.

    Raises:
        OSError: it is not there, or no plain file.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path} is no plain file")
        return found, os.read(file, MOST_WORDS).decode("ascii", "replace")
    finally:
        os.close(file)


def ran_already(folder: Path, job: Job, boot_s: float, sure_s: float) -> bool:
    """Tell whether this run of a job has ended, of which Slurm's controller knows nothing.

    Either its node was told since it started that it ended well, before `sure_s`: a controller that
    lived would know. Or its Epilog ran before the controller was started, and no word is against
    it; not where the job waits, as one whose start was forgotten is ended too. Earlier runs that
    were cut, and those of another job of the number, started before this one.
    """
    since_s = (job.submit_s if job.waits else job.start_s) - 1.0
    for file in _of_job(folder, job):
        try:
            row = json.loads(file.read_text("utf-8", "replace"))
            if row["attempt"] != job.restarts:
                continue
            unsaid = row["completed"] is None and row["by"] == "epilog" and not job.waits
            if row["completed"] is True and since_s <= row["ended_s"] < sure_s:
                return True
            if unsaid and since_s <= row["started_s"] and row["ended_s"] < boot_s:
                return True
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return False


def _of_job(folder: Path, job: Job) -> list[Path]:
    """Files of this attempt of a job: where it runs, or wherever it ran."""
    if job.waits:
        return list(folder.glob(f"{job.number}-*-{job.restarts}*.json"))
    names = [f"{job.number}-{node}-{job.restarts}" for node in job.nodes]
    known = [name for name in names if (folder / f"{name}.json").exists()]
    return [file for name in known for file in (folder / f"{name}.json",
                                                *folder.glob(f"{name}-*.json"))]  # fmt: skip


def _measured(row: dict[str, Any]) -> Measured:
    gpus = row["gpus"]
    set_ = [gpu for gpu in gpus if gpu.get("set")]
    first = set_[0] if set_ else {}
    return Measured(
        int(row["job"]),
        str(row["node"]),
        str(row["user"]),
        str(row["job_name"]),
        float(row["started_s"]),
        float(row["ended_s"]),
        float(row["energy_j"]),
        len(gpus),
        first.get("core_mhz"),
        first.get("memory_mhz"),
        str(row["source"]),
        first.get("power_limit_w"),
        row.get("by") != "recover" and row.get("completed") is not False,
    )
