"""What is set now, kept on disk so that whoever comes after a crash can undo it.

A folder that only its owner may write holds one record a device, written before the device is set
and deleted after it was reset. `State.held` keeps two agents from working at once.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from downclock.errors import AdapterError, InvalidInput
from downclock.files import write_text_atomically

MEASURE = "measure"
"""The job of records that `downclock measure` writes."""


@dataclass(frozen=True, slots=True)
class Record:
    """One device that was set, or is only measured.

    Attributes:
        uuid, index: the device.
        job, node, attempt, user, job_name: for whom.
        begun_s, started_s: when its Prolog began, which tells runs apart, and when its counter was
            read (seconds since 1970).
        counter_j: its energy counter then; None where it has none that can be read.
        boot: which start of the machine that was: counters begin again at 0.
        core_mhz, memory_mhz, power_limit_w: what it was set to, or is about to be.
        before_w: power limit to go back to; None where it was not changed.
        ranges: of clocks to go back to, as the device writes them; empty: its driver's.
        why: why nothing was set, or empty.
        spooled: its energy was reported; only the reset failed and is still to be done.
    """

    uuid: str
    index: int
    job: str
    node: str = ""
    attempt: int = 0
    user: str = ""
    job_name: str = ""
    begun_s: float = 0.0
    started_s: float = 0.0
    counter_j: float | None = None
    boot: str = ""
    core_mhz: int | None = None
    memory_mhz: int | None = None
    power_limit_w: float | None = None
    before_w: float | None = None
    ranges: str = ""
    why: str = ""
    spooled: bool = False

    @property
    def locked(self) -> bool:
        """It was set, or is about to be."""
        return (self.core_mhz, self.memory_mhz, self.power_limit_w) != (None, None, None)


@dataclass(frozen=True, slots=True)
class State:
    """The folder."""

    folder: Path

    @classmethod
    def opened(cls, folder: str | Path) -> State:
        """Make the folder where it is not there; refuse one that others may write."""
        path = Path(folder)
        try:
            path.mkdir(mode=0o755, parents=True, exist_ok=True)
            found = path.stat()
        except OSError as error:
            raise InvalidInput(f"cannot be made: {error.strerror}", source=path) from None
        if found.st_uid not in (0, os.geteuid()) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            rule = "others may write it: what it says is done as root (chown root, chmod 755)"
            raise InvalidInput(rule, source=path)
        if not os.access(path, os.W_OK):
            raise InvalidInput("may not be written (no permission)", source=path)
        return cls(path)

    @contextmanager
    def held(self, name: str = "agent", *, wait: bool = True) -> Iterator[int]:
        """Be the only one who works here; the lock goes with the process, however it ends."""
        held = os.open(self.folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            yield held
        except BlockingIOError:
            rule = f"another {name} is at work on these devices"
            raise AdapterError(f"{self.folder}: {rule}") from None
        finally:
            os.close(held)

    def keep(self, record: Record) -> None:
        """Write a record before its device is set."""
        text = json.dumps(asdict(record), allow_nan=False)
        write_text_atomically(self._path(record.uuid), text + "\n")

    def forget(self, record: Record) -> None:
        """Delete a record after its device was reset."""
        self._path(record.uuid).unlink(missing_ok=True)
        self.samples(record.uuid).unlink(missing_ok=True)

    def records(self) -> list[Record]:
        """Return all records; of one that cannot be read the device alone is known."""
        return [_read(path) for path in sorted(self.folder.glob("gpu-*.json"))]

    def unasked(self, record: Record, for_s: float) -> bool:
        """Tell whether nobody asked after this record's job for so long, and remember this time."""
        import time

        path = self._path(record.uuid)
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > for_s:
                os.utime(path)
                return True
        return False

    def samples(self, uuid: str) -> Path:
        """The file of sampled power of a device without a counter."""
        return self._path(uuid).with_suffix(".samples")

    def announced(self, job: str, begun_s: float) -> Path:
        """The file that says that the epilog of a job's run has not been here yet."""
        return self.folder / f"job-{job}-{begun_s!r}"

    def announcements(self, job: str) -> list[tuple[Path, float]]:
        """Such files of all runs of a job, and when those began; the latest last."""
        found = [(path, path.name.split("-", 2)[2]) for path in self.folder.glob(f"job-{job}-*")]
        return sorted(((path, float(text)) for path, text in found), key=lambda each: each[1])

    def announced_jobs(self) -> dict[str, float]:
        """Jobs of such files, and when their latest runs began."""
        jobs = {path.name.split("-", 2)[1] for path in self.folder.glob("job-*-*")}
        return {job: self.announcements(job)[-1][1] for job in jobs}

    def _path(self, uuid: str) -> Path:
        return self.folder / f"gpu-{re.sub(r'[^A-Za-z0-9-]', '_', uuid)}.json"


def this_boot() -> str:
    """Return what tells this start of the machine from others."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _read(path: Path) -> Record:
    """Return a record; a broken one still says which device may be set."""
    try:
        data: dict[str, Any] = json.loads(path.read_text())
        known = {field.name for field in fields(Record)}
        data.setdefault("begun_s", data.get("started_s", 0.0))  # those of old do not say
        record = Record(**{key: value for key, value in data.items() if key in known})
        if _sound(record):
            return record
    except (OSError, ValueError, TypeError, AttributeError):
        pass
    why = "its record cannot be read"
    return Record(path.stem.removeprefix("gpu-"), -1, "", core_mhz=0, why=why, spooled=True)


def _sound(record: Record) -> bool:
    """Tell whether every field is of its type."""
    texts = (record.uuid, record.job, record.node, record.user, record.job_name, record.why)
    maybe = (record.counter_j, record.core_mhz, record.memory_mhz, record.power_limit_w)
    times = (record.begun_s, record.started_s)
    numbers = [each for each in (*maybe, record.before_w) if each is not None]
    return (
        all(isinstance(text, str) for text in (*texts, record.boot, record.ranges))
        and all(isinstance(number, int) for number in (record.index, record.attempt))
        and all(isinstance(number, int | float) for number in (*numbers, *times))
    )
