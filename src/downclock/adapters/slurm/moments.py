"""What is told and remembered of jobs: a job in the plan, what was carried out on it, a moment."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from downclock.adapters.slurm.jobs import Task
from downclock.adapters.slurm.observed import Job
from downclock.adapters.slurm.words import MARK, is_ours
from downclock.engine.facts import Fact

RELEASE, RESTORE = "release", "restore"
"""How a job is left to Slurm: let go, with the reason; or put back as its owner had it."""


@dataclass(slots=True)
class Tracked:
    """A job that was told to the scheduler, and what became of it.

    Attributes:
        task, number: as it was told, and its number there.
        deadline_s, told_s: the one that counts, and when it was told, in seconds since 1970.
        restarts, submit_s: requeues that are known; each submits the job again.
        left, how: why it is left to Slurm, and how; empty: it is not.
        refused: the plan gave it up, and nobody else.
        ended, ended_s: its last state in Slurm (empty: not yet), and when we were told.
        refusals: how often Slurm refused what we wanted of it.
    """

    task: Task
    number: int
    deadline_s: float
    submit_s: float
    told_s: float = 0.0
    restarts: int = 0
    left: str = ""
    how: str = RELEASE
    refused: bool = False
    ended: str = ""
    ended_s: float = 0.0
    refusals: int = 0

    def is_of(self, job: Job) -> bool:
        """Tell whether this is that job, and not another one of its number."""
        again = job.restarts > self.restarts
        return job.number == self.task.job and (job.submit_s == self.submit_s or again)


@dataclass(slots=True)
class Carried:
    """What was carried out on a job, by this plan and the one before.

    Attributes:
        released_s: when we last let it go, in seconds since 1970; infinite: not yet.
        changed: fields of its record that are as we set them.
        kept: it is held because it ran already.
    """

    released_s: float = math.inf
    changed: set[str] = field(default_factory=set)
    kept: bool = False

    def note(self, entry: dict[str, Any]) -> None:
        """Take note of commands; those that failed may have been heard all the same."""
        if entry["ok"] and entry.get("released"):
            self.released_s = entry["at_s"]
        verbs = {each[1] for each in entry["commands"]}
        self.kept = self.kept or (entry["ok"] and bool(verbs & {"requeuehold", "uhold"}))
        for _, verb, _, *words in (each for each in entry["commands"] if len(each) > 3):
            told = dict(word.partition("=")[::2] for word in words if verb == "update")
            for name, value in told.items():
                if value not in ("", "now"):
                    self.changed.add(name)
                elif entry["ok"]:
                    self.changed.discard(name)
            if entry["ok"] and not is_ours(told.get("Comment", MARK + " ")):
                self.changed.clear()  # it was put back


@dataclass(slots=True)
class Moment:
    """What is told at one moment; all of it is logged."""

    now_s: float
    told: list[Task] = field(default_factory=list)
    refused: list[tuple[Task, str]] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    left: list[tuple[str, str, str]] = field(default_factory=list)
    ended: list[tuple[str, str]] = field(default_factory=list)
    restarts: list[tuple[str, int, float]] = field(default_factory=list)

    def __bool__(self) -> bool:
        lists = (self.told, self.refused, self.facts, self.left, self.ended, self.restarts)
        return any(lists)

    def entry(self) -> dict[str, Any]:
        """As the log holds it."""
        facts = [[f.code, f.task, f.place, _plain(f.value), _plain(f.at_s)] for f in self.facts]
        told = [asdict(task) for task in self.told]
        refused = [(asdict(task), why) for task, why in self.refused]
        return {"now_s": self.now_s, "told": told, "refused": refused, "facts": facts,
                "left": self.left, "ended": self.ended, "restarts": self.restarts}  # fmt: skip

    @classmethod
    def of(cls, entry: dict[str, Any]) -> Moment:
        """Read what the log holds."""
        facts = [
            Fact(code, task, place, _number(value), at_s=_number(at_s))
            for code, task, place, value, at_s in entry["facts"]
        ]
        lists = {key: [tuple(row) for row in entry[key]] for key in ("left", "ended", "restarts")}
        told = [Task(**task) for task in entry["told"]]
        refused = [(Task(**task), why) for task, why in entry["refused"]]
        return cls(entry["now_s"], told, refused, facts, **lists)


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _number(value: float | None) -> float:
    return math.nan if value is None else value
