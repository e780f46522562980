"""Which jobs are planned, and as which tasks: by what the site and their owners say."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from downclock.adapters.slurm.observed import Job
from downclock.adapters.slurm.site import SlurmSite
from downclock.adapters.slurm.words import LEFT, Wish, is_ours, one_line, our_part, wish_of
from downclock.errors import AdapterError, InvalidInput
from downclock.power.archetypes import CLASSES
from downclock.power.library import Library
from downclock.problem.files.run_jobs import Applications, Wanted

MINUTE_S = 60.0
"""Slurm counts limits in minutes: plans end so much before a deadline that Slurm enforces."""

LONGEST = 200
"""Letters of what an application is called that is learnt from jobs."""

Script = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Task:
    """A job as the scheduler is told of it.

    Attributes:
        job, key: its number in Slurm, and what no other job is called.
        submit_s: when it was first submitted, in seconds since 1970.
        application: row of the library, and its name.
        scale: units of work, with what it takes to start and end a job.
        whole_s: how long it takes at default clocks, with that and all that is held in reserve
            but what the policy reserves.
        deadline_s: latest end that its owner asks for, in seconds since 1970.
        gpus: that it needs at once.
        comment, limit_s, held, node_count: as its owner submitted it, and ``hold`` what Slurm then
            gave for the reason that it is held.
        identity: what its application is called when it is learnt, and ``units`` its work: runs of
            it, or what its owner says of its run time.
        granted_s, missed: the end it is planned for where it cannot end by its own deadline, and
            why it cannot; None and empty: it can.
    """

    job: int
    key: str
    name: str
    application: int
    application_name: str
    scale: float
    whole_s: float
    deadline_s: float
    gpus: int
    comment: str
    limit_s: float | None
    submit_s: float
    identity: str = ""
    units: float = 1.0
    held: bool = True
    node_count: int = 1
    granted_s: float | None = None
    missed: str = ""
    hold: str = ""

    @property
    def planned_s(self) -> float:
        """Latest end that is planned for."""
        return self.deadline_s if self.granted_s is None else self.granted_s


@dataclass(slots=True)
class JobReader:
    """Turns jobs into tasks; applications are made once."""

    site: SlurmSite
    script_of: Script
    library: Library = field(init=False)
    _place: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cluster = self.site.cluster
        assert cluster.site is not None, "clusters that were read have one"
        made = Applications(cluster.library, cluster.site)
        kinds = [kind.name for kind in cluster.platform.kinds]
        for name in [*map(str, cluster.library.names), *CLASSES]:
            for kind in ["", *(kinds if len(kinds) > 1 else [])]:
                try:
                    wanted = Wanted(name, None, (kind,) if kind else ())
                    self._place[name, kind] = made.of(wanted)
                except InvalidInput:
                    continue  # it cannot run there: jobs that ask for it are left to Slurm
        self.library = made.all()

    def refusal(self, job: Job, now_s: float) -> str:
        """Say why a waiting job is not for us; empty: it is."""
        site, wish, ours = self.site, wish_of(job.comment), is_ours(job.comment)
        asked = ours or wish.tagged or (site.take == "held" and job.held)
        not_asked = "it is not held" if site.take == "held" else "its comment does not ask for it"
        rules = (
            (wish.off, "its owner opted out"),
            (not job.gpus, job.odd or "it asks for no GPU"),
            (site.partitions and job.partition not in site.partitions, "its partition is not ours"),
            (ours and LEFT in our_part(job.comment).split(), "it was left to Slurm before"),
            (not asked, not_asked),
            (self._later(job, now_s), "its owner lets it start later"),
            (not ours and job.required_nodes, "its owner chose its nodes"),
            (job.gpu_freq, "its owner chose its clocks"),
            (wish.wrong, f"its comment says {wish.wrong!r}, which cannot be read"),
            (job.odd, job.odd),
        )
        return next((why for broken, why in rules if broken), "")

    def task_of(self, job: Job, now_s: float) -> Task | str:
        """The task of a job, or why there is none."""
        why = self.refusal(job, now_s)
        if why:
            return why
        wish, kind = wish_of(job.comment), self._kind(job)
        wish = wish if self.site.stated_runs else replace(wish, run_s=None)
        name = self._application(job, wish)
        place = None if kind is None else self._place.get((name, kind))
        run_s = None if place is None else self._run_s(job, wish, name, place[1])
        deadline_s = self.deadline_s(job, wish)
        rules = (
            (kind is None, "it asks for GPUs of a type that the cluster does not have"),
            (place is None, f"application {name[:60]!r} cannot run there, or nobody knows it"),
            (run_s is None, "it has no time limit, and nobody says how long it runs"),
            (math.isinf(deadline_s), "it has no deadline"),
            (deadline_s <= now_s and math.isfinite(job.deadline_s), "its deadline has passed"),
            (
                job.gpus_by_node and job.gpus > self._most_gpus * job.node_count,
                "it asks for more GPUs of a node than any has",
            ),
            (not self._fits(job), "GPUs on part of several nodes are not planned"),
        )
        why = next((words for broken, words in rules if broken), "")
        if why or place is None or run_s is None:
            return why
        row, unit_s = place
        longest_s = run_s * self.site.spread.get(name, 1.0) * self.site.widening
        whole_s = longest_s + self.site.overhead_s
        limit_s = job.limit_s if math.isfinite(job.limit_s) else None
        learnt_as = self._learnt_as(job, wish, name, unit_s)
        return Task(job.number, job.key, job.name, row, name, whole_s / unit_s, whole_s, deadline_s,
                    job.gpus, job.comment, limit_s, job.submit_s, *learnt_as, job.held,
                    job.node_count, hold=job.reason if job.held else "")  # fmt: skip

    @staticmethod
    def _later(job: Job, now_s: float) -> bool:
        """Tell whether the owner chose a start that is still to come."""
        ours = is_ours(job.comment) or wish_of(job.comment).waits
        return job.eligible_s > now_s and not ours

    def asked(self, job: Job, now_s: float) -> bool:
        """Tell whether a job waits for us only, so that it must be let go if it is not planned."""
        wish, words = wish_of(job.comment), our_part(job.comment).split()
        waits = (job.held and (wish.tagged or bool(words))) or wish.waits
        return waits and not (wish.off or LEFT in words or self._later(job, now_s))

    def unplanned(self, job: Job) -> Task:
        """A job that is not told, only let go."""
        limit_s = job.limit_s if math.isfinite(job.limit_s) else None
        return Task(job.number, job.key, job.name, -1, "", 0.0, 0.0, 0.0, job.gpus, job.comment,
                    limit_s, job.submit_s, held=job.held, node_count=job.node_count)  # fmt: skip

    def _learnt_as(self, job: Job, wish: Wish, name: str, unit_s: float) -> tuple[str, float]:
        """What a job's runs are learnt as, and how many units of that it is."""
        known = name not in CLASSES
        script = self._script(job.number) if self.site.identify == "script" else ""
        called = name if known else identity(self.site.identify, job.user, job.name, script)
        timed = known and wish.run_s is not None
        return called, (wish.run_s or unit_s) / unit_s if timed else 1.0

    def _kind(self, job: Job) -> str | None:
        if not job.gpu_type:
            return ""
        kind = self.site.kind_of.get(job.gpu_type)
        return "" if kind and len(self.site.cluster.platform.kinds) == 1 else kind

    def _application(self, job: Job, wish: Wish) -> str:
        """What the owner says, what a rule says, what was learnt, or what is typical."""
        if wish.application:
            return wish.application
        wants = self.site.identify == "script" or any(r.script != "*" for r in self.site.rules)
        script = self._script(job.number) if wants else ""
        for rule in self.site.rules:
            if rule.fits(job, script):
                return rule.application
        learnt = identity(self.site.identify, job.user, job.name, script)
        assert self.site.cluster.site is not None
        return learnt if learnt in self.site.spread else self.site.cluster.site.archetype

    def _script(self, number: int) -> str:
        try:
            return hashlib.sha256(self.script_of(number).encode()).hexdigest()[:16]
        except AdapterError:
            return ""

    def _run_s(self, job: Job, wish: Wish, name: str, unit_s: float) -> float | None:
        """The owner's word, what was learnt, or the time limit."""
        if wish.run_s is not None:
            return wish.run_s
        if name in self.site.spread:
            return unit_s
        return job.limit_s * self.site.run_factor if math.isfinite(job.limit_s) else None

    def deadline_s(self, job: Job, wish: Wish) -> float:
        """The first of what the owner says to us and to Slurm; else the site's rule."""
        told = [job.deadline_s - MINUTE_S]
        if wish.deadline_s is not None:
            told.append(job.submit_s + wish.deadline_s)
        if math.isinf(min(told)) and self.site.deadline == "factor":
            told.append(job.submit_s + self.site.deadline_factor * job.limit_s)
        return min(told)

    def _fits(self, job: Job) -> bool:
        """One node, or whole nodes."""
        return job.node_count == 1 or job.gpus // job.node_count == self._most_gpus

    @property
    def _most_gpus(self) -> int:
        """Of one node."""
        specs = self.site.cluster.platform.specs
        return max(sum(count for _, count in each.processors) for each in specs)


def identity(rule: str, user: str, name: str, script: str) -> str:
    """What an application that is learnt from jobs is called; empty: nobody can say.

    No job can be called as an application of the library or an archetype is.
    """
    parts = {"name": ("job", name), "user+name": ("job", user, name), "script": ("script", script)}
    kind, *words = (one_line(part) for part in parts[rule])
    return f"{kind}:{'/'.join(words)}"[:LONGEST] if words[-1] else ""
