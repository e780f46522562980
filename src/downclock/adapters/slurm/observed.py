"""What Slurm says at one moment: its jobs and nodes, whatever version and format says it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

PENDING = "PENDING"
ACTIVE = frozenset(
    ("RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "STOPPED", "SIGNALING", "STAGE_OUT",
     "RESIZING")
)  # fmt: skip
"""A job in one of these states has its GPUs; a job that is COMPLETING has them until its Epilog
has ended."""

WAITING = frozenset((PENDING, "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"))
"""States of jobs that are still to run; all others are those of jobs that have ended."""

UNUSABLE = frozenset(
    ("DOWN", "DRAIN", "DRAINED", "DRAINING", "ERROR", "FAIL", "FAILING", "FAILED", "FUTURE",
     "UNKNOWN", "MAINT", "MAINTENANCE", "RESERVED", "NOT_RESPONDING", "INVALID_REG", "INVAL",
     "REBOOT_REQUESTED", "REBOOT_ISSUED", "BLOCKED", "PLANNED_DOWN")
)  # fmt: skip
"""States in which a node takes no job."""

ASLEEP = frozenset(("POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "POWER_DRAIN"))

_GPU = re.compile(r"(?:gres[:/])?gpu(?::(?P<kind>[A-Za-z][\w.-]*))?(?:[:=](?P<count>\d+))?")
_MARKS = {"~": "POWERED_DOWN", "#": "POWERING_UP", "%": "POWERING_DOWN", "!": "POWER_DOWN",
          "*": "NOT_RESPONDING", "$": "MAINT", "@": "REBOOT_REQUESTED", "^": "REBOOT_ISSUED",
          "-": "PLANNED"}  # fmt: skip
"""Signs behind a node's state in tables of sinfo."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job. Text in it is its owner's, and may be anything.

    Attributes:
        number: its id in Slurm; an array's waiting tasks share one.
        name, user, partition, comment: as submitted.
        states: words of its state, in capitals.
        reason: why it waits.
        held: nobody starts it before it is released.
        submit_s, eligible_s, start_s, end_s: seconds since 1970; 0: not known.
        deadline_s: latest end as Slurm knows it; infinite: none.
        limit_s: most run time; infinite: none.
        gpus: of all its nodes together; ``gpu_type`` where it asks for one; ``gpus_by_node``: it
            says how many on each.
        node_count: nodes that it asks for.
        nodes: where it runs, and how many GPUs it has there.
        required_nodes: where it must run, as Slurm writes it.
        gpu_freq: clocks that its owner asks for, as Slurm writes them; told of jobs that wait for
            a plan and have none.
        restarts: how often it was requeued.
        odd: why it cannot be planned, whatever anybody wants; empty: it can.
    """

    number: int
    name: str = ""
    user: str = ""
    partition: str = ""
    comment: str = ""
    states: frozenset[str] = frozenset()
    reason: str = ""
    held: bool = False
    submit_s: float = 0.0
    eligible_s: float = 0.0
    start_s: float = 0.0
    end_s: float = 0.0
    deadline_s: float = float("inf")
    limit_s: float = float("inf")
    gpus: int = 0
    gpu_type: str = ""
    gpus_by_node: bool = False
    node_count: int = 1
    nodes: Mapping[str, int] = field(default_factory=dict)
    required_nodes: str = ""
    gpu_freq: str = ""
    restarts: int = 0
    odd: str = ""

    @property
    def key(self) -> str:
        """What no other job is called, even when Slurm counts from 1 again.

        A job that is requeued is submitted again: `Tracked.is_of` knows it.
        """
        return f"{self.number}.{self.submit_s:.0f}"

    @property
    def launch_failed(self) -> bool:
        """Slurm holds it because it could not be launched."""
        return self.reason.replace("_", " ").startswith("launch failed")

    @property
    def active(self) -> bool:
        """It has its GPUs."""
        return bool(self.states & ACTIVE)

    @property
    def waits(self) -> bool:
        """It is still to run."""
        return not self.active and bool(self.states & WAITING)


@dataclass(frozen=True, slots=True)
class Node:
    """One node: its GPUs by type, and words of its state in capitals."""

    name: str
    states: frozenset[str]
    gpus: Mapping[str, int] = field(default_factory=dict)

    @property
    def asleep(self) -> bool:
        """Slurm put it to sleep, or is about to."""
        return bool(self.states & ASLEEP)

    @property
    def wakes(self) -> bool:
        """Slurm wakes it already."""
        return bool(self.states & {"POWERING_UP", "POWER_UP"})

    @property
    def usable(self) -> bool:
        """Slurm would start a job there, if it has to wake it first."""
        if self.states & {"POWERING_DOWN", "POWER_DRAIN", "POWER_DOWN", "POWERED_DOWN"}:
            return not self.states & (UNUSABLE - {"DRAIN", "NOT_RESPONDING", "DRAINED"})
        return not self.states & UNUSABLE


@dataclass(frozen=True, slots=True)
class Observed:
    """All of it at one moment; ``boot_s`` is when the controller was started. Since 1970."""

    now_s: float
    jobs: Mapping[int, Job]
    nodes: Mapping[str, Node]
    boot_s: float = 0.0


def state_words(text: str) -> frozenset[str]:
    """Words of a state such as ``idle+powered_down``, ``down*`` or ``MIXED~``."""
    words: set[str] = set()
    for word in text.upper().split("+"):
        base = word.rstrip("".join(_MARKS))
        words |= {base, *(_MARKS[sign] for sign in word[len(base) :])}
    return frozenset(words - {""})


def gpu_counts(text: str) -> dict[str, int]:
    """GPUs of a request or an inventory such as ``gpu:a100:4(S:0-1),gpu:2``, by type."""
    found: dict[str, int] = {}
    for part in re.sub(r"\([^)]*\)", "", text).split(","):
        match = _GPU.fullmatch(part.strip())
        if match is not None:
            kind = match["kind"] or ""
            found[kind] = found.get(kind, 0) + int(match["count"] or 1)
    return found
