"""Jobs as their owners submitted them, and what was changed of them for the plan."""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from downclock.adapters.slurm.jobs import Task
from downclock.adapters.slurm.moments import Carried
from downclock.adapters.slurm.observed import Job, Observed
from downclock.adapters.slurm.words import FREE, is_ours, our_part, restored, wish_of

FIELDS = frozenset(("StartTime", "ReqNodeList", "NumNodes", "TresFreq", "TimeLimit"))
"""What we change of a job's record, beside its comment."""

FORGETS_S = 60.0
"""A controller that is killed may forget what it was told so long before it was started again."""

ADMIN = "JobHeldAdmin"
"""Slurm's reason for holds of administrators, and for others when it has forgotten theirs."""

LAUNCHES = 3
"""A job that Slurm holds because it could not be launched is let go until it was requeued so often:
a controller that has forgotten a start launches a job where it runs already."""


@dataclass(slots=True)
class Records:
    """What this plan and the one before know of jobs, by their keys.

    Attributes:
        originals: as they were first told.
        carried: what was carried out on them.
    """

    originals: dict[str, dict[str, Any]] = field(default_factory=dict)
    carried: dict[str, Carried] = field(default_factory=dict)

    def note_told(self, told: list[dict[str, Any]]) -> None:
        """Remember jobs as they are told for the first time."""
        for task in told:
            self.originals.setdefault(task["key"], task)

    def note_carried(self, entry: dict[str, Any]) -> None:
        """Remember what was carried out."""
        if entry["key"]:
            self.carried.setdefault(entry["key"], Carried()).note(entry)

    def forget(self, key: str) -> None:
        """Forget a job that is gone."""
        self.originals.pop(key, None)
        self.carried.pop(key, None)

    def kept(self, key: str) -> bool:
        """Tell whether we hold a job because it ran already."""
        return key in self.carried and self.carried[key].kept

    def changed(self, task: Task, job: Job) -> Set[str]:
        """Fields of a job's record that are as we set them; all, where nobody remembers."""
        if task.key in self.carried:
            return self.carried[task.key].changed
        return FIELDS if is_ours(job.comment) else frozenset()

    def owner_holds(self, task: Task, job: Job, seen: Observed) -> bool:
        """Tell whether a job is held by its owner or an administrator, and not for us.

        A hold is for us where the job was submitted so and not yet let go, or where a controller
        that was killed since has forgotten that it was, or has launched the job twice.
        """
        if not job.held or not task.held or wish_of(job.comment).off:
            return job.held
        if job.launch_failed and job.restarts <= LAUNCHES:
            return False
        if f"{FREE}{job.restarts}" in our_part(job.comment).split() or _by_administrator(task, job):
            return True
        released_s = self.carried.get(task.key, Carried()).released_s
        return released_s < math.inf and not _is_slurms(released_s, job, seen)

    def before(self, job: Job) -> Job:
        """A job without what an earlier plan changed of what estimates are made of."""
        told, carried = self.originals.get(job.key), self.carried.get(job.key)
        if told is None or carried is None:
            return job
        if "TimeLimit" in carried.changed:
            limit_s = told["limit_s"]
            job = replace(job, limit_s=math.inf if limit_s is None else limit_s)
        if "NumNodes" in carried.changed:
            job = replace(job, node_count=told.get("node_count", 1))
        return job

    def as_submitted(self, task: Task) -> Task:
        """A task with the comment and the hold that its owner gave it, also in an earlier plan."""
        told = self.originals.setdefault(task.key, asdict(task))
        comment = restored(task.comment, told["comment"])
        held, hold = told.get("held", True), told.get("hold", "")
        return replace(task, comment=comment, held=held, hold=hold)


def _by_administrator(task: Task, job: Job) -> bool:
    """Tell whether Slurm calls the hold an administrator's that was its owner's at first."""
    return not job.restarts and job.reason == ADMIN and task.hold not in ("", ADMIN)


def _is_slurms(released_s: float, job: Job, seen: Observed) -> bool:
    """Tell whether a hold is that of a controller which has forgotten our release.

    Or of one that had just been started and launched the job twice: it requeues and holds it, and
    soon calls that an administrator's hold, whatever the reason was.
    """
    requeued = 0 < job.restarts <= LAUNCHES and job.reason == ADMIN
    if requeued and abs(job.submit_s - seen.boot_s) <= FORGETS_S:
        return True
    soon = seen.boot_s <= released_s + FORGETS_S or not is_ours(job.comment)
    return released_s <= seen.boot_s and soon
