"""A Slurm job as its Prolog and Epilog see it.

Who it is comes from the environment that slurmd makes. What is asked for its clocks stands in the
job record, which holds text of the job's owner: every byte of it is taken for hostile. Whatever it
says, the agent sets supported clocks of this job's own GPUs, or a lower power limit, and resets.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from downclock.adapters.devices.device import KNOBS, Setting
from downclock.errors import InvalidInput

ASK_S = 10.0
"""Slurm's controller is waited for so long; the job does not wait for it."""

RUNNING = {b"RUNNING", b"SUSPENDED", b"CONFIGURING", b"COMPLETING", b"STOPPED", b"SIGNALING"}
"""States in which a job's Epilog is still to come."""

_COMMENT = re.compile(rb" Comment=downclock(?=\s|$)((?: [a-z_]+=[^\s|]{1,40})*)")
_NUMBER = re.compile(rb"[0-9]{1,6}(?:\.[0-9]{1,6})?")
_STATE = re.compile(rb" JobState=([A-Z_]{1,40}) Reason=")
_RESTARTS = re.compile(rb" Requeue=[0-9]+ Restarts=([0-9]{1,6}) BatchFlag=")
_EXIT = re.compile(rb" Reboot=[0-9] ExitCode=([0-9]{1,5}:[0-9]{1,5}) RunTime=([0-9:-]{1,20})")
_HOST = re.compile(rb" BatchHost=(\S+)")
_START = re.compile(rb" StartTime=([0-9]{1,12}) ")
_NAME = re.compile(rb" JobName=(.*?) UserId=", re.DOTALL)


class Begun(NamedTuple):
    """A job's run as its Prolog left it; not `sure`: that was killed before it could say which.

    No two runs of a job begin at once (``begun_s``, since 1970), though they may be one attempt.
    """

    attempt: int
    begun_s: float
    sure: bool

    @property
    def known(self) -> int | None:
        """The attempt, None where nobody knows."""
        return self.attempt if self.sure else None


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """Who a job is: from slurmd's environment only.

    Attributes:
        job: its id, digits.
        node: this node.
        user: its owner.
        gpus: its GPUs here, as numbers of device files or UUIDs.
        attempt: how often it was requeued; None: this Slurm does not say.
        exit: its exit code and signal, to an Epilog; empty: this Slurm does not say.
        allocated: the controller knows that it ran here.
    """

    job: str
    node: str
    user: str
    gpus: tuple[str, ...]
    attempt: int | None = None
    exit: str = ""
    allocated: bool = False

    def completed(self, attempt: int | None) -> bool | None:
        """Whether an attempt ended well, by what the controller told the node with its end.

        None where this Slurm does not say. A controller that ends a run whose start it has
        forgotten names no allocation, if perhaps GPUs of an earlier one; one that requeues a job
        counts the next attempt, so that of a job that was requeued before the `attempt` must be
        known. A job that is cancelled shows like one that ended well: neither is to run again.
        """
        if not self.exit:
            return None
        well = self.allocated and self.exit == "0:0"
        if attempt is None:
            return (None if self.attempt else True) if well else False
        return well and self.attempt in (None, attempt)


def job_of(environment: Mapping[str, str]) -> SlurmJob:
    """Return the job whose Prolog or Epilog this is."""
    job = environment.get("SLURM_JOB_ID", "")
    if not re.fullmatch(r"[0-9]{1,12}", job):
        rule = "is not a job: this command is for Slurm's Prolog and Epilog"
        raise InvalidInput(rule, field="SLURM_JOB_ID", value=job)
    user = environment.get("SLURM_JOB_USER") or environment.get("SLURM_JOB_UID", "")
    listed = environment.get("SLURM_JOB_GPUS") or environment.get("CUDA_VISIBLE_DEVICES", "")
    restarts = environment.get("SLURM_JOB_RESTART_COUNT", "")
    return SlurmJob(
        job,
        node_of(environment),
        _shown(user),
        _gpus(listed),
        int(restarts) if re.fullmatch(r"[0-9]{1,6}", restarts) else None,
        environment.get("SLURM_JOB_EXIT_CODE2", ""),
        bool(environment.get("SLURM_JOB_NUM_NODES")),
    )


def node_of(environment: Mapping[str, str]) -> str:
    """Slurm's name of this node."""
    node = environment.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]
    return re.sub(r"[^\w.-]", "_", node)[:200]


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

    def completed(self, attempt: int | None) -> bool | None:
        """Whether this attempt has ended well, asked from its Epilog; None: nobody knows which.

        None where nobody says: a controller that takes it for running has forgotten its end. A job
        that is requeued is shown as one that ends, but for its `attempt` and its run time.
        """
        if not self.text or self._is(b"RUNNING", attempt):
            return None
        exits = set(_EXIT.findall(self.text))
        requeued = attempt is None and any(run == b"00:00:00" for _, run in exits)
        ends = self._is(b"COMPLETING", attempt) or self._is(b"COMPLETED", attempt)
        return ends and not requeued and {code for code, _ in exits} == {b"0:0"}

    def forgets(self, attempt: int | None) -> bool:
        """Whether a controller that was killed since this attempt ended knows nothing of that."""
        return not self.text or self._is(b"RUNNING", attempt) or self._is(b"PENDING", attempt)

    def _is(self, state: bytes, attempt: int | None) -> bool:
        return set(_STATE.findall(self.text)) == {state} and attempt in (None, self.attempt)

    @property
    def running(self) -> bool | None:
        """Whether its Epilog is still to come; None where nobody can say."""
        states = set(_STATE.findall(self.text))
        if self.gone or len(states) != 1:
            return False if self.gone else None
        return bool(states & RUNNING)

    @property
    def is_planned(self) -> bool:
        """Whether its record has a plan of ours, and but one."""
        return len(set(_COMMENT.findall(self.text))) == 1

    def launched(self, node: str, begun_s: float) -> bool:
        """Whether Slurm takes its script for running here, since its Prolog began then."""
        hosts, starts = set(_HOST.findall(self.text)), set(_START.findall(self.text))
        here = hosts == {node.encode()} and self._is(b"RUNNING", None)
        return here and len(starts) == 1 and float(starts.pop()) <= begun_s + 1.0

    def asked(self) -> tuple[Setting, str]:
        """Return what is asked for its GPUs, and why nothing is where that is so."""
        if self.trouble:
            return Setting(), self.trouble
        found = set(_COMMENT.findall(self.text))
        if len(found) != 1:
            return Setting(), "two plans in one job record" if found else "not planned"
        words = dict(word.split(b"=", 1) for word in found.pop().split())
        given: dict[str, Any] = {}
        for knob in KNOBS:
            if _NUMBER.fullmatch(words.get(knob.encode(), b"")):
                value = float(words[knob.encode()])
                given[knob] = round(value) if knob.endswith("_mhz") else value
        setting = Setting(**given)
        return setting, "" if setting else "the plan names no clock"


def ended_well(job: SlurmJob, record: JobRecord, attempt: int | None) -> bool | None:
    """Whether an attempt ran to its end, asked from its Epilog; None: nobody says.

    The record knows best: it tells a job that was cancelled. What the node was told counts where
    the controller was killed since and has forgotten the end, or the whole run.
    """
    said, told = record.completed(attempt), job.completed(attempt)
    if said or told is None:
        return said
    return told and record.forgets(attempt)


def started_here(scontrol: str, node: str) -> dict[str, float]:
    """Return the jobs that Slurm takes for running on a node, and by when they began.

    Raises:
        OSError: there is no squeue beside scontrol.
        subprocess.TimeoutExpired: nobody answers.
    """
    squeue = os.path.join(os.path.dirname(scontrol), "squeue")
    ran = _asked([squeue, "-h", "-t", "R", "-w", node, "-o", "%A %S"])
    found = re.findall(rb"^([0-9]{1,12}) ([0-9]{1,12})$", ran.stdout, re.MULTILINE)
    return {job.decode(): float(start) + 1.0 for job, start in found}  # in whole seconds


def _asked(words: list[str]) -> subprocess.CompletedProcess[bytes]:
    """Run a command of Slurm that shows times in seconds."""
    return subprocess.run(
        words, capture_output=True, stdin=subprocess.DEVNULL, timeout=ASK_S, check=False,
        env={**os.environ, "SLURM_TIME_FORMAT": "%s"},
    )  # fmt: skip


def job_record(scontrol: str, job: str) -> JobRecord:
    """Ask Slurm for a job's record."""
    try:
        ran = _asked([scontrol, "show", "job", "-o", job])
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
