"""When processes of this node began, as its kernel says, and which a job has."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

LONGEST_S = 30
"""A worker that needs longer is stuck and ends itself."""


def own_start_s() -> float:
    """When this process was started, in seconds since 1970: a job's run ends where Epilog begins.

    Starting Python may take a second on a busy node.
    """
    now_s = time.time()
    with suppress(OSError, ValueError, IndexError):
        age_s = age_of_s(stat_of("self"))
        return now_s - age_s if 0.0 <= age_s < LONGEST_S else now_s
    return now_s


def slurmd_start_s() -> float:
    """When the slurmd was started whose Prolog or Epilog this is; 0: it is gone, or not known."""
    process = str(os.getppid())
    with suppress(OSError, ValueError, IndexError):
        for _ in range(10):
            if Path(f"/proc/{process}/comm").read_text().strip() == "slurmd":
                return time.time() - age_of_s(stat_of(process))
            process = stat_of(process)[1]
    return 0.0


def stat_of(process: str) -> list[str]:
    """What the kernel says of a process: its state, its parent and so on."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def age_of_s(fields: Sequence[str]) -> float:
    """How long ago a process began, by what the kernel says of it."""
    since_boot_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot_s


def has_processes(job: str) -> bool:
    """Tell whether a slurmstepd of a job is on this node."""
    title = b"slurmstepd: [%s." % job.encode()
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if process.read_bytes().startswith(title):
                return True
    return False
