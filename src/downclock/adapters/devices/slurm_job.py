"""A Slurm job as its Prolog and Epilog see it.

Who it is comes from the environment that slurmd makes. What is asked for its clocks stands in the
job record, which holds text of the job's owner: every byte of it is taken for hostile. Whatever it
says, the agent sets supported clocks of this job's own GPUs, or a lower power limit, and resets.
"""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from downclock.adapters.devices.device import Setting
from downclock.errors import InvalidInput

ASK_S = 10.0
"""Slurm's controller is waited for so long; the job does not wait for it."""

RUNNING = {b"RUNNING", b"SUSPENDED", b"CONFIGURING", b"COMPLETING", b"STOPPED", b"SIGNALING"}
"""States in which a job's Epilog is still to come."""

_COMMENT = re.compile(rb" Comment=downclock(?=\s|$)((?: [a-z_]+=[^\s|]{1,40})*)")
_NUMBER = re.compile(rb"[0-9]{1,6}(?:\.[0-9]{1,6})?")
_STATE = re.compile(rb" JobState=([A-Z_]{1,40}) Reason=")
_RESTARTS = re.compile(rb" Requeue=[0-9]+ Restarts=([0-9]{1,6}) BatchFlag=")
_EXIT = re.compile(rb" Reboot=[0-9] ExitCode=([0-9]{1,5}:[0-9]{1,5}) RunTime=")
_NAME = re.compile(rb" JobName=(.*?) UserId=", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """Who a job is: from slurmd's environment only.

    Attributes:
        job: its id, digits.
        node: this node.
        user: its owner.
        gpus: its GPUs here, as numbers of device files or UUIDs.
    """

    job: str
    node: str
    user: str
    gpus: tuple[str, ...]


def job_of(environment: Mapping[str, str]) -> SlurmJob:
    """Return the job whose Prolog or Epilog this is."""
    job = environment.get("SLURM_JOB_ID", "")
    if not re.fullmatch(r"[0-9]{1,12}", job):
        rule = "is not a job: this command is for Slurm's Prolog and Epilog"
        raise InvalidInput(rule, field="SLURM_JOB_ID", value=job)
    node = environment.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]
    user = environment.get("SLURM_JOB_USER") or environment.get("SLURM_JOB_UID", "")
    listed = environment.get("SLURM_JOB_GPUS") or environment.get("CUDA_VISIBLE_DEVICES", "")
    return SlurmJob(job, re.sub(r"[^\w.-]", "_", node)[:200], _shown(user), _gpus(listed))


@dataclass(frozen=True, slots=True)
class JobRecord:
    """What Slurm knows of a job; empty where ``trouble`` says why not.

    Attributes:
        text: the record as ``scontrol show job -o`` prints it.
        trouble: why there is none, or empty.
        gone: Slurm answered that there is no such job (any more).
    """

    text: bytes = b""
    trouble: str = ""
    gone: bool = False

    @property
    def name(self) -> str:
        """The job's name, or the beginning of one that pretends to be more."""
        found = _NAME.search(self.text)
        return "" if found is None else _shown(found[1].decode("utf-8", "replace"))

    @property
    def attempt(self) -> int:
        """How often it was requeued; 0 where text of its owner makes that ambiguous."""
        found = set(_RESTARTS.findall(self.text))
        return int(found.pop()) if len(found) == 1 else 0

    def completed(self, attempt: int) -> bool | None:
        """Whether this attempt has ended well, asked from its Epilog.

        None where nobody says: a controller that takes it for running has forgotten its end. A job
        that is requeued is shown as one that ends, but for its `attempt`.
        """
        states, exits = set(_STATE.findall(self.text)), set(_EXIT.findall(self.text))
        if not self.text or (states == {b"RUNNING"} and self.attempt == attempt):
            return None
        ends = len(states) == 1 and states <= {b"COMPLETING", b"COMPLETED"}
        return ends and exits == {b"0:0"} and self.attempt == attempt

    @property
    def running(self) -> bool | None:
        """Whether its Epilog is still to come; None where nobody can say."""
        states = set(_STATE.findall(self.text))
        if self.gone or len(states) != 1:
            return False if self.gone else None
        return bool(states & RUNNING)

    def asked(self) -> tuple[Setting, str]:
        """Return what is asked for its GPUs, and why nothing is where that is so."""
        if self.trouble:
            return Setting(), self.trouble
        found = set(_COMMENT.findall(self.text))
        if len(found) != 1:
            return Setting(), "two plans in one job record" if found else "not planned"
        words = dict(word.split(b"=", 1) for word in found.pop().split())
        values = {
            key: float(words[key.encode()])
            for key in ("core_mhz", "memory_mhz", "power_limit_w")
            if _NUMBER.fullmatch(words.get(key.encode(), b""))
        }
        core, memory = (values.get(key) for key in ("core_mhz", "memory_mhz"))
        setting = Setting(
            None if core is None else round(core),
            None if memory is None else round(memory),
            values.get("power_limit_w"),
        )
        return setting, "" if setting else "the plan names no clock"


def job_record(scontrol: str, job: str) -> JobRecord:
    """Ask Slurm for a job's record."""
    words = [scontrol, "show", "job", "-o", job]
    try:
        ran = subprocess.run(
            words, capture_output=True, stdin=subprocess.DEVNULL, timeout=ASK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return JobRecord(trouble=f"the job record cannot be read: {error}")
    if ran.returncode:
        said = _shown(ran.stderr.decode("utf-8", "replace"))
        gone = b"Invalid job id" in ran.stderr
        return JobRecord(trouble=f"the job record cannot be read: {said}", gone=gone)
    return JobRecord(b" " + ran.stdout)


def _gpus(listed: str) -> tuple[str, ...]:
    """Return what a list names: numbers, ranges of numbers, UUIDs."""
    named: list[str] = []
    for word in listed.split(",")[:256]:
        low, dash, high = word.strip().partition("-")
        if dash and low.isdecimal() and high.isdecimal() and int(high) - int(low) < 256:
            named += map(str, range(int(low), int(high) + 1))
        elif re.fullmatch(r"[0-9]{1,4}|GPU-[0-9A-Za-z-]{1,80}", word.strip()):
            named.append(word.strip())
    return tuple(named)


def _shown(text: str) -> str:
    """One line that can be printed, of a length that can be read."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))[:256]
