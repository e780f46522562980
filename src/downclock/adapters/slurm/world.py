"""The world of Slurm: what it shows becomes facts; a scheduler answers; its memory is the log.

A step compares what Slurm shows with what the book believes and tells the differences. Whatever
the plan did not foresee (a job that was started by hand, moved, requeued, cancelled; a node that
is gone; GPUs that others use) is a fact like any other: jobs that no longer follow the plan are
left to Slurm, and their GPUs count as down until they are free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from downclock.adapters.slurm.jobs import MINUTE_S, JobReader, Task
from downclock.adapters.slurm.log import BEGUN, CARRIED, DECIDED, MOMENT, Log
from downclock.adapters.slurm.observed import Job, Observed
from downclock.adapters.slurm.site import SlurmSite
from downclock.adapters.slurm.words import (
    MARK,
    is_ours,
    owners_part,
    restored,
    told_start_s,
    wish_of,
)
from downclock.engine.book import Row
from downclock.engine.decisions import Decisions
from downclock.engine.facts import (
    AMENDED,
    ARRIVED,
    CANCELLED,
    DOWN,
    FINISHED,
    LOST,
    UP,
    Fact,
    Facts,
)
from downclock.engine.scheduler import Scheduler
from downclock.errors import DownclockError, InvalidInput
from downclock.problem.files.read_prices import prices_of
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.schedule import PENDING

RELEASE, RESTORE = "release", "restore"
"""How a job is left to Slurm: let go, with the reason; or put back as its owner had it."""

FIELDS = frozenset(("StartTime", "ReqNodeList", "NumNodes", "TresFreq", "TimeLimit"))
"""What we change of a job's record, beside its comment."""

FORGETS_S = 60.0
"""A controller that is killed may forget what it was told so long before it was started again."""

MOST_MOMENTS = 100
"""Moments in a row in which nothing happens but what the scheduler asked for."""

RETRIES = 20
"""Further attempts of a job: nodes that are gone before it starts count too."""

LATER, LATEST = 1.25, 1000.0
"""A job that cannot end by its deadline is planned for so much more time, until that will do; where
even so many times its run time will not, it is left to Slurm."""

ANEW_S = 30.0
"""Jobs that will be late or wait for GPUs are planned anew when some are back, at most so often."""

MOST_TASKS = 20_000
"""A plan with more tasks is begun anew, so that replaying the log stays quick."""


@dataclass(slots=True)
class Tracked:
    """A job that was told to the scheduler, and what became of it.

    Attributes:
        task, number: as it was told, and its number there.
        deadline_s, told_s: the one that counts, and when it was told, in seconds since 1970.
        restarts, submit_s: requeues that are known; each submits the job again.
        left, how: why it is left to Slurm, and how; empty: it is not.
        refused: the plan gave it up, and nobody else.
        ended: its last state in Slurm; empty: not yet.
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
    """

    released_s: float = math.inf
    changed: set[str] = field(default_factory=set)

    def note(self, entry: dict[str, Any]) -> None:
        """Take note of commands; those that failed may have been heard all the same."""
        if entry["ok"] and entry.get("released"):
            self.released_s = entry["at_s"]
        for _, verb, _, *words in (each for each in entry["commands"] if len(each) > 3):
            told = dict(word.partition("=")[::2] for word in words if verb == "update")
            for name, value in told.items():
                (self.changed.discard if value in ("", "now") else self.changed.add)(name)
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
        facts = [
            [fact.code, fact.task, fact.place, _plain(fact.value), _plain(fact.at_s)]
            for fact in self.facts
        ]
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


class SlurmWorld:
    """One cluster under one policy; ``step`` follows what happened there.

    Attributes:
        scheduler, epoch_s: who decides, and the second (since 1970) that its times count from.
        tracked: jobs that it was told of, by key.
        carried: what was carried out on jobs, by key.
        notes: what people should hear of, in sentences, since somebody looked.
    """

    def __init__(self, site: SlurmSite, log: Log, script_of: Callable[[int], str]) -> None:
        self.site, self.log = site, log
        self.reader = JobReader(site, script_of)
        self.scheduler: Scheduler | None = None
        self.epoch_s = 0.0
        self.tracked: dict[str, Tracked] = {}
        self.carried: dict[str, Carried] = {}
        self.notes: list[str] = []
        self._originals: dict[str, dict[str, Any]] = {}
        self._freed, self._anew_s = False, -math.inf
        self.server_of = {node: server for server, node in enumerate(site.nodes)}
        self.first = site.cluster.platform.first_processor.tolist()
        self._replay()

    @property
    def epoch(self) -> datetime:
        """The instant that times count from."""
        return datetime.fromtimestamp(self.epoch_s, UTC)

    # --- memory --------------------------------------------------------------------------------

    def _replay(self) -> None:
        """Go through the log: a plan made with the same files is gone on with."""
        before, begun = self.log.last_two(BEGUN)
        for number, _, kind, entry in self.log.rows(before - 1):
            if kind == MOMENT:
                self._originals |= {
                    task["key"]: task
                    for task in entry["told"]
                    if task["key"] not in self._originals
                }
            elif kind == CARRIED:
                self._remember(entry)
            try:
                if number >= begun:
                    self._replay_row(kind, entry)
            except DownclockError as error:  # a log of another time: what waits is told anew
                self.notes.append(f"the log cannot be gone on with: {error}")
                self.scheduler, self.tracked = None, {}

    def _replay_row(self, kind: str, entry: dict[str, Any]) -> None:
        if kind == BEGUN and entry["fingerprint"] == self.site.fingerprint:
            self._start(entry)
        elif kind == MOMENT and self.scheduler is not None:
            self._follow(Moment.of(entry))
        elif kind == CARRIED and self.scheduler is not None:
            self._count(entry)

    def _start(self, entry: dict[str, Any]) -> None:
        """Make an empty scheduler."""
        cluster, site = self.site.cluster, self.site
        platform = replace(cluster.platform, initially_on=np.array(entry["awake"], dtype=bool))
        if not site.sleep:
            platform = replace(platform, wake_s=np.zeros(platform.server_count))
        self.epoch_s = entry["epoch_s"]
        epoch = self.epoch
        times = {"epoch": epoch, "timezone": cluster.timezone, "slot_s": platform.slot_s}
        nobody = Tasks.of([0], deadline_s=[np.inf], scale=0.0, name=["nobody"])
        prices = prices_of(cluster.prices, platform.zones, **times) if cluster.prices else None
        problem = Problem(nobody, self.reader.library, platform, epoch=epoch, name="slurm")
        problem = problem if prices is None else replace(problem, prices=prices)
        policy = site.make_policy()
        objection = policy.objection(problem)
        if objection is not None:
            raise InvalidInput(objection, item=f"policy '{policy.name}'", source=site.source)
        self.scheduler = Scheduler(problem, policy, retries=RETRIES)
        self.tracked = {}

    def _begin(self, seen: Observed) -> None:
        """Begin a plan: what runs is adopted as it is, what waits is told anew."""
        self._check_nodes(seen)
        awake = [
            not self.site.sleep or not (name in seen.nodes and seen.nodes[name].asleep)
            for name in self.site.nodes
        ]
        entry = {"epoch_s": math.floor(seen.now_s), "fingerprint": self.site.fingerprint,
                 "policy": self.site.policy, "awake": awake}  # fmt: skip
        self._start(entry)
        self.log.append(seen.now_s, [(BEGUN, entry)])

    def _check_nodes(self, seen: Observed) -> None:
        """Refuse a cluster file that is not of this cluster."""
        for name, server in self.server_of.items():
            ours = self.first[server + 1] - self.first[server]
            if name not in seen.nodes:
                rule = "is a server of the cluster file, and no node of Slurm (key nodes)"
                raise InvalidInput(rule, value=name, field="node", source=self.site.source)
            theirs = sum(seen.nodes[name].gpus.values())
            if theirs != ours:
                rule = f"has {theirs} GPUs in Slurm and {ours} in the cluster file"
                raise InvalidInput(rule, value=name, field="node", source=self.site.source)

    # --- steps ---------------------------------------------------------------------------------

    def step(self, seen: Observed) -> None:
        """Tell what has happened; everything is in the log before anything is carried out."""
        if self.scheduler is None or len(self.scheduler.view.tasks) > MOST_TASKS:
            self._begin(seen)
        try:
            self._step(seen)
        except InvalidInput as error:  # the plan and Slurm disagree beyond repair
            self.notes.append(f"the plan is begun anew: {error}")
            self._begin(seen)
            self._step(seen)

    def _step(self, seen: Observed) -> None:
        assert self.scheduler is not None
        now_s = max(seen.now_s - self.epoch_s, self.scheduler.book.now_s)
        self._catch_up(seen, now_s)  # what was promised a start by now has it
        moment = self._differences(seen, now_s)
        self._tell_anew(moment, seen)
        while moment:
            self._tell_all(moment, seen)
            self._catch_up(seen, now_s)
            moment = Moment(now_s, told=self._later(seen))

    def _tell_anew(self, moment: Moment, seen: Observed) -> None:
        """Have jobs planned anew that will be late or wait for GPUs, where GPUs have come back."""
        self._freed = self._freed or any(fact.code == UP for fact in moment.facts)
        if not self._freed or seen.now_s < self._anew_s + ANEW_S:
            moment.told += self._later(seen)
            return
        self._freed, self._anew_s = False, seen.now_s
        named = {fact.task for fact in moment.facts}
        for each, job in self._waiting(seen):
            due_s = self._owners_deadline_s(each, job)
            task = replace(each.task, deadline_s=due_s, granted_s=None, missed="")
            task = self._in_time(task, seen.now_s)
            planned = not (each.left or each.number in named or self._begun(each))
            if (planned or each.refused) and task.planned_s <= job.deadline_s - MINUTE_S:
                moment.facts += [Fact(CANCELLED, each.number)] if planned else []
                moment.told.append(task)

    def _catch_up(self, seen: Observed, now_s: float) -> None:
        """Let the scheduler do what it wanted to do by now."""
        assert self.scheduler is not None
        for _ in range(MOST_MOMENTS):
            if self.scheduler.next_s > now_s:
                return
            self._tell_all(Moment(now_s), seen)

    def _tell_all(self, moment: Moment, seen: Observed) -> None:
        """Tell one moment, and write it down with what was decided."""
        entry = self._decided(self._follow(moment))
        rows = [(MOMENT, moment.entry())] + ([(DECIDED, entry)] if entry else [])
        self.log.append(seen.now_s, rows)

    def _follow(self, moment: Moment) -> Decisions:
        """Tell the scheduler, live or from the log: both must do the same."""
        scheduler = self.scheduler
        assert scheduler is not None
        arrived = [Fact(ARRIVED, number) for number in self._tell(moment.told, moment.now_s)]
        due = moment.now_s >= scheduler.call_me_s
        facts = Facts(moment.now_s, [*moment.facts, *arrived], due=due)
        decisions, _ = scheduler.handle(facts)
        for task, why in moment.refused:
            self.tracked[task.key] = Tracked(task, -1, task.deadline_s, task.submit_s, left=why)
        for fact in moment.facts:
            if fact.code == AMENDED:
                self._by_number(fact.task).deadline_s = self.epoch_s + fact.value
        for key, why, how in moment.left:
            self.tracked[key].left, self.tracked[key].how = why, how
        for key, state in moment.ended:
            self.tracked[key].ended = state
        for key, count, submit_s in moment.restarts:
            self.tracked[key].restarts, self.tracked[key].submit_s = count, submit_s
        for tracked in self.open_jobs():
            page = scheduler.book.tasks[tracked.number]
            if page.status != PENDING:
                tracked.left, tracked.refused = page.reason or "the plan gave it up", True
        return decisions

    def _tell(self, told: list[Task], now_s: float) -> list[int]:
        if not told:
            return []
        assert self.scheduler is not None
        tasks = Tasks.of(
            [task.application for task in told],
            deadline_s=[task.planned_s - self.epoch_s for task in told],
            arrival_s=now_s,
            scale=[task.scale for task in told],
            processors=[task.gpus for task in told],
            name=[task.key for task in told],
        )
        numbers: list[int] = self.scheduler.tell(tasks, np.arange(len(told))).tolist()
        for task, number in zip(told, numbers, strict=True):
            new = Tracked(task, number, task.planned_s, task.submit_s, self.epoch_s + now_s)
            was = self.tracked.get(task.key, new)
            new.submit_s, new.restarts, new.refusals = was.submit_s, was.restarts, was.refusals
            self.tracked[task.key] = new
        return numbers

    def _by_number(self, number: int) -> Tracked:
        return next(each for each in self.tracked.values() if each.number == number)

    def open_jobs(self) -> list[Tracked]:
        """Jobs that the plan still counts with."""
        return [each for each in self.tracked.values() if not (each.left or each.ended)]

    def note_carried(self, entry: dict[str, Any]) -> None:
        """Remember what was carried out."""
        self._remember(entry)
        self._count(entry)

    def _remember(self, entry: dict[str, Any]) -> None:
        if entry["key"]:
            self.carried.setdefault(entry["key"], Carried()).note(entry)

    def _count(self, entry: dict[str, Any]) -> None:
        """Count what Slurm refused."""
        tracked = self.tracked.get(entry["key"])
        if tracked is not None:
            tracked.refusals = 0 if entry["ok"] else tracked.refusals + 1

    def changed(self, task: Task, job: Job) -> Set[str]:
        """Fields of a job's record that are as we set them; all, where nobody remembers."""
        if task.key in self.carried:
            return self.carried[task.key].changed
        return FIELDS if is_ours(job.comment) else frozenset()

    def owner_holds(self, task: Task, job: Job, seen: Observed) -> bool:
        """Tell whether a job is held by its owner or an administrator, and not for us.

        A hold is for us where the job was submitted so and not yet let go, or where a controller
        that was killed since has forgotten that it was.
        """
        if not job.held or not task.held or wish_of(job.comment).off:
            return job.held
        released_s = self.carried[task.key].released_s if task.key in self.carried else math.inf
        soon = seen.boot_s <= released_s + FORGETS_S or not is_ours(job.comment)
        return released_s < math.inf and not (seen.boot_s >= released_s and soon)

    def _later(self, seen: Observed) -> list[Task]:
        """Jobs that the plan gave up, due later: those that will be late may harm no promise.

        Left to Slurm they would be started on GPUs that others were promised.
        """
        assert self.scheduler is not None
        found, up = [], sum(self.scheduler.book.up)
        for each, job in self._waiting(seen):
            left_s = LATER * max(each.deadline_s - seen.now_s, self.least_s(each.task))
            due_s = seen.now_s + left_s
            soon = left_s < LATEST * self.least_s(each.task) and due_s < job.deadline_s - MINUTE_S
            if each.refused and each.task.gpus <= up and soon:
                why = each.task.missed or each.left
                found.append(replace(each.task, granted_s=due_s, missed=why))
        return found

    def _in_time(self, task: Task, now_s: float) -> Task:
        """A task as it is told: one whose deadline is over has a later one."""
        if task.deadline_s > now_s:
            return task
        due_s = now_s + LATER * self.least_s(task)
        return replace(task, granted_s=due_s, missed="its deadline has passed")

    def least_s(self, task: Task) -> float:
        """How long a job takes at least, with all that is held in reserve."""
        return task.whole_s * self.site.unreserved

    def waits_for_gpus(self, tracked: Tracked) -> bool:
        """Tell whether a job has no place while GPUs are used by others, or gone."""
        return tracked.refused and self.scheduler is not None and not all(self.scheduler.book.up)

    def _waiting(self, seen: Observed) -> list[tuple[Tracked, Job]]:
        """Waiting jobs that were told and that their owners have not taken back."""
        pairs = [(each, self.job_of(each, seen)) for each in self.tracked.values()]
        return [
            (each, job)
            for each, job in pairs
            if job is not None
            and job.waits
            and each.number >= 0
            and (each.refused or each.task.missed)
            and not self._is_owners(each, job, seen)
        ]

    def _begun(self, tracked: Tracked) -> bool:
        assert self.scheduler is not None
        return self.scheduler.book.tasks[tracked.number].running is not None

    def _is_owners(self, tracked: Tracked, job: Job, seen: Observed) -> bool:
        """Tell whether a job's owner wants it back."""
        return wish_of(job.comment).off or self.owner_holds(tracked.task, job, seen)

    # --- what Slurm shows ----------------------------------------------------------------------

    def _differences(self, seen: Observed, now_s: float) -> Moment:
        """What has happened since the book was written."""
        moment = Moment(now_s)
        for tracked in self.open_jobs():
            self._compare(moment, tracked, self.job_of(tracked, seen), seen)
        known = {each.task.job: each for each in self.tracked.values()}
        for job in seen.jobs.values():
            if job.waits and not (job.number in known and known[job.number].is_of(job)):
                before = self._before(job)
                task = self.reader.task_of(before, seen.now_s)
                if isinstance(task, Task):
                    task = self._in_time(self._as_submitted(task), seen.now_s)
                    moment.told.append(task)
                elif self.reader.asked(job, seen.now_s):
                    nobody = self.reader.unplanned(before)
                    moment.refused.append((self._as_submitted(nobody), task))
        self._places(moment, seen)
        return moment

    @staticmethod
    def job_of(tracked: Tracked, seen: Observed) -> Job | None:
        """The job as Slurm shows it; None: it does not."""
        job = seen.jobs.get(tracked.task.job)
        return job if job is not None and tracked.is_of(job) else None

    def knows(self, job: Job) -> bool:
        """Tell whether a job was told to the scheduler, or refused."""
        return any(each.is_of(job) for each in self.tracked.values())

    def _before(self, job: Job) -> Job:
        """A job without what an earlier plan changed of what estimates are made of."""
        told, carried = self._originals.get(job.key), self.carried.get(job.key)
        if told is None or carried is None:
            return job
        if "TimeLimit" in carried.changed:
            limit_s = told["limit_s"]
            job = replace(job, limit_s=math.inf if limit_s is None else limit_s)
        if "NumNodes" in carried.changed:
            job = replace(job, node_count=told.get("node_count", 1))
        return job

    def _as_submitted(self, task: Task) -> Task:
        """A task with the comment and the hold that its owner gave it, also in an earlier plan."""
        told = self._originals.setdefault(task.key, asdict(task))
        comment = restored(task.comment, told["comment"])
        return replace(task, comment=comment, held=told.get("held", True))

    def as_submitted(self, job: Job) -> Task:
        """A job as its owner submitted it; where nobody remembers, as far as its record says."""
        for each in self.tracked.values():
            if each.is_of(job):
                return each.task
        told = self._originals.get(job.key)
        if told is not None:
            return Task(**told)
        unknown = replace(self.reader.unplanned(job), limit_s=None, held=False)
        return replace(unknown, comment=owners_part(job.comment))

    def _compare(self, moment: Moment, tracked: Tracked, job: Job | None, seen: Observed) -> None:
        """Tell what became of a job that the plan counts with."""
        assert self.scheduler is not None
        key, number = tracked.task.key, tracked.number
        row = self.row_of(tracked, job, moment.now_s)
        if job is None or not (job.active or job.waits):
            state = "gone" if job is None else "+".join(sorted(job.states))
            moment.ended.append((key, state))
            done = (
                row is not None
                and row.began_s < math.inf
                and (job is None or "COMPLETED" in job.states)
            )
            end_s = moment.now_s if job is None else job.end_s - self.epoch_s
            at_s = np.nan if row is None else float(np.clip(end_s, row.began_s, moment.now_s))
            moment.facts.append(Fact(FINISHED if done else CANCELLED, number, at_s=at_s))
        elif job.active:
            if row is None or set(job.nodes) != set(self.nodes_of(row.processors)):
                self._leave(moment, tracked, "Slurm started it outside the plan")
        else:
            self._compare_waiting(moment, tracked, job, seen)

    def _compare_waiting(self, moment: Moment, tracked: Tracked, job: Job, seen: Observed) -> None:
        assert self.scheduler is not None
        key, number = tracked.task.key, tracked.number
        row = self.scheduler.book.tasks[number].running
        deadline_s = self._owners_deadline_s(tracked, job)
        if wish_of(job.comment).off:
            self._leave(moment, tracked, "its owner opted out", RESTORE)
        elif self.owner_holds(tracked.task, job, seen):
            self._leave(moment, tracked, "its owner holds it", RESTORE)
        elif tracked.refusals >= 5:
            self._leave(moment, tracked, "Slurm refuses what the plan wants of it")
        elif job.restarts > tracked.restarts:
            moment.restarts.append((key, job.restarts, job.submit_s))
            if row is not None:
                moment.facts.append(Fact(LOST, number))
        elif row is not None and not self._usable(row.processors, seen):
            moment.facts.append(Fact(LOST, number))
        elif row is not None and moment.now_s - row.began_s > self.site.grace_s:
            if row.attempt:
                self._leave(moment, tracked, f"Slurm did not start it for {self.site.grace_s:g} s")
            else:  # once more, perhaps elsewhere
                moment.facts.append(Fact(LOST, number))
        elif self._amended(tracked, deadline_s):
            after_s = max(deadline_s - self.epoch_s, moment.now_s)
            moment.facts.append(Fact(AMENDED, number, value=after_s))

    def _owners_deadline_s(self, tracked: Tracked, job: Job) -> float:
        """What the owner of a job asks for now; limits of ours do not count."""
        limit_s = math.inf if tracked.task.limit_s is None else tracked.task.limit_s
        told = replace(job, submit_s=tracked.task.submit_s, limit_s=limit_s)
        return self.reader.deadline_s(told, wish_of(job.comment))

    @staticmethod
    def _amended(tracked: Tracked, deadline_s: float) -> bool:
        """Tell whether a deadline was changed; one that cannot be met may only be put off."""
        later_s = deadline_s - tracked.deadline_s
        return math.isfinite(later_s) and (later_s if tracked.task.missed else abs(later_s)) > 1.0

    def _usable(self, processors: Iterable[int], seen: Observed) -> bool:
        """Tell whether Slurm could start a job there."""
        nodes = [seen.nodes.get(name) for name in self.nodes_of(processors)]
        return all(node is not None and node.usable for node in nodes)

    def _leave(self, moment: Moment, tracked: Tracked, why: str, how: str = RELEASE) -> None:
        moment.left.append((tracked.task.key, why, how))
        moment.facts.append(Fact(CANCELLED, tracked.number))
        self.notes.append(f"job {tracked.task.job} is left to Slurm: {why}")

    def _places(self, moment: Moment, seen: Observed) -> None:
        """GPUs that others use, and nodes that take no job, are down as far as the plan goes."""
        assert self.scheduler is not None
        book, planned = self.scheduler.book, self._planned(moment, seen)
        others = self._others(planned, seen)
        taken = {p for row in planned.values() for p in row.processors}
        for name, server in self.server_of.items():
            mine = range(self.first[server], self.first[server + 1])
            node = seen.nodes.get(name)
            wanted = len(mine) if node is None or not node.usable else others.get(name, 0)
            down = [p for p in mine if not book.up[p]]
            free = [p for p in mine if book.up[p] and p not in taken]
            more = wanted - len(down)
            facts = [Fact(DOWN, place=p) for p in reversed(free)][: max(more, 0)]
            facts += [Fact(UP, place=p) for p in down[: max(-more, 0)]]
            moment.facts += facts

    def _planned(self, moment: Moment, seen: Observed) -> dict[int, Row]:
        """Rows of the jobs that are where the plan has them, by the jobs' numbers."""
        gone = {fact.task for fact in moment.facts}
        found = {}
        for each in self.open_jobs():
            row = self.row_of(each, self.job_of(each, seen), moment.now_s)
            if row is not None and each.number not in gone:
                found[each.task.job] = row
        return found

    @staticmethod
    def _others(planned: Mapping[int, Row], seen: Observed) -> dict[str, int]:
        """GPUs on each node of jobs that are not where the plan has them."""
        used: dict[str, int] = {}
        for job in seen.jobs.values():
            if job.active and job.number not in planned:
                for name, count in job.nodes.items():
                    used[name] = used.get(name, 0) + count
        return used

    # --- what the plan says --------------------------------------------------------------------

    def row_of(self, tracked: Tracked, job: Job | None, now_s: float) -> Row | None:
        """What a job runs by: begun, or promised and begun by Slurm when the book was not looking.

        The book begins a row when it is told that the one before it has ended: perhaps only now,
        perhaps later than we told Slurm.
        """
        assert self.scheduler is not None
        page = self.scheduler.book.tasks[tracked.number]
        if page.running is not None or not page.rows or job is None or not job.active:
            return page.running
        row = page.rows[0]
        there = set(job.nodes) == set(self.nodes_of(row.processors))
        start_s = min(row.start_s, told_start_s(job.comment) - self.epoch_s)
        return row if there and start_s <= now_s + 1.0 else None

    def nodes_of(self, processors: Iterable[int]) -> list[str]:
        """Slurm's names of the servers of processors."""
        assert self.scheduler is not None
        servers = {self.scheduler.book.server[p] for p in processors}
        return [self.site.nodes[server] for server in sorted(servers)]

    def _decided(self, decisions: Decisions) -> dict[str, Any]:
        """Decisions in words, for people who read the log."""
        keys = {each.number: each.task.key for each in self.tracked.values()}
        place, power = decisions.place, decisions.power
        rows = zip(place.task.tolist(), place.processor.tolist(), place.start_s.tolist(),
                   place.end_s.tolist(), place.points.tolist(), strict=True)  # fmt: skip
        switched = zip(power.server.tolist(), power.on.tolist(), power.at_s.tolist(), strict=True)
        rejected = zip(decisions.rejected.tolist(), decisions.reason, strict=True)
        told = {
            "place": [[keys[t], self.nodes_of([p])[0], a, b, point] for t, p, a, b, point in rows],
            "accept": [keys[task] for task in decisions.accept.tolist()],
            "reject": [[keys[task], why] for task, why in rejected],
            "power": [[self.site.nodes[s], on, at_s] for s, on, at_s in switched],
        }
        return {key: value for key, value in told.items() if value}
