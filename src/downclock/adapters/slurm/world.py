"""The world of Slurm: what it shows becomes facts; a scheduler answers; its memory is the log.

A step compares what Slurm shows with what the book believes and tells the differences. Whatever
the plan did not foresee (a job that was started by hand, moved, requeued, cancelled; a node that
is gone; GPUs that others use) is a fact like any other: jobs that no longer follow the plan are
left to Slurm, and their GPUs count as down until they are free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from downclock.adapters.slurm.compare import differences, owners_deadline_s
from downclock.adapters.slurm.jobs import MINUTE_S, JobReader, Task
from downclock.adapters.slurm.log import BEGUN, CARRIED, DECIDED, MOMENT, Log
from downclock.adapters.slurm.moments import Moment, Tracked
from downclock.adapters.slurm.observed import Job, Observed
from downclock.adapters.slurm.records import Records
from downclock.adapters.slurm.site import SlurmSite
from downclock.adapters.slurm.words import owners_part, told_start_s, wish_of
from downclock.engine.book import Book
from downclock.engine.decisions import Decisions
from downclock.engine.facts import AMENDED, ARRIVED, CANCELLED, UP, Fact, Facts
from downclock.engine.pages import Row
from downclock.engine.scheduler import Scheduler
from downclock.errors import DownclockError, InvalidInput
from downclock.problem.files.read_prices import prices_of
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.schedule import PENDING

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


class SlurmWorld:
    """One cluster under one policy; ``step`` follows what happened there.

    Attributes:
        scheduler, epoch_s: who decides, and the second (since 1970) that its times count from.
        tracked: jobs that it was told of, by key.
        records: jobs as their owners submitted them, and what we changed.
        notes: what people should hear of, in sentences, since somebody looked.
    """

    def __init__(self, site: SlurmSite, log: Log, script_of: Callable[[int], str]) -> None:
        self.site, self.log = site, log
        self.reader = JobReader(site, script_of)
        self.scheduler: Scheduler | None = None
        self.epoch_s = 0.0
        self.tracked: dict[str, Tracked] = {}
        self.records = Records()
        self.notes: list[str] = []
        self._freed, self._anew_s = False, -math.inf
        self.server_of = {node: server for server, node in enumerate(site.nodes)}
        self.first = site.cluster.platform.first_processor.tolist()
        self._replay()

    @property
    def epoch(self) -> datetime:
        """The instant that times count from."""
        return datetime.fromtimestamp(self.epoch_s, UTC)

    @property
    def book(self) -> Book:
        """What the plan believes."""
        assert self.scheduler is not None
        return self.scheduler.book

    # --- memory --------------------------------------------------------------------------------

    def _replay(self) -> None:
        """Go through the log: a plan made with the same files is gone on with."""
        before, begun = self.log.last_two(BEGUN)
        for number, _, kind, entry in self.log.rows(before - 1):
            if kind == MOMENT:
                self.records.note_told(entry["told"])
            elif kind == CARRIED:
                self.records.note_carried(entry)
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
        asleep = {name for name, node in seen.nodes.items() if node.asleep}
        awake = [not (self.site.sleep and name in asleep) for name in self.site.nodes]
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
        now_s = max(seen.now_s - self.epoch_s, self.book.now_s)
        self._forget_gone(seen)
        self._catch_up(seen, now_s)  # what was promised a start by now has it
        moment = differences(self, seen, now_s)
        self._tell_anew(moment, seen)
        while moment:
            self._tell_all(moment, seen)
            self._catch_up(seen, now_s)
            moment = Moment(now_s, told=self._later(seen))

    def _forget_gone(self, seen: Observed) -> None:
        """Forget jobs that were only let go and that Slurm shows no more: they would add up."""
        for key, each in list(self.tracked.items()):
            if each.number < 0 and each.task.job not in seen.jobs:
                del self.tracked[key]
                self.records.forget(key)

    def _tell_anew(self, moment: Moment, seen: Observed) -> None:
        """Have jobs planned anew that will be late or wait for GPUs, where GPUs have come back."""
        self._freed = self._freed or any(fact.code == UP for fact in moment.facts)
        if not self._freed or seen.now_s < self._anew_s + ANEW_S:
            moment.told += self._later(seen)
            return
        self._freed, self._anew_s = False, seen.now_s
        named = {fact.task for fact in moment.facts}
        for each, job in self._waiting(seen):
            due_s = owners_deadline_s(self, each, job)
            task = replace(each.task, deadline_s=due_s, granted_s=None, missed="")
            task = self.in_time(task, seen.now_s)
            begun = self.book.tasks[each.number].running is not None
            planned = not (each.left or each.number in named or begun)
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
        by_number = {each.number: each for each in self.tracked.values()}
        for fact in moment.facts:
            if fact.code == AMENDED:
                by_number[fact.task].deadline_s = self.epoch_s + fact.value
        for key, why, how in moment.left:
            self.tracked[key].left, self.tracked[key].how = why, how
        for key, state in moment.ended:
            self.tracked[key].ended = state
            self.tracked[key].ended_s = self.epoch_s + moment.now_s
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

    def open_jobs(self) -> list[Tracked]:
        """Jobs that the plan still counts with."""
        return [each for each in self.tracked.values() if not (each.left or each.ended)]

    def note_carried(self, entry: dict[str, Any]) -> None:
        """Remember what was carried out."""
        self.records.note_carried(entry)
        self._count(entry)

    def _count(self, entry: dict[str, Any]) -> None:
        """Count what Slurm refused."""
        tracked = self.tracked.get(entry["key"])
        if tracked is not None:
            tracked.refusals = 0 if entry["ok"] else tracked.refusals + 1

    def _later(self, seen: Observed) -> list[Task]:
        """Jobs that the plan gave up, due later: those that will be late may harm no promise.

        Left to Slurm they would be started on GPUs that others were promised.
        """
        found, up = [], sum(self.book.up)
        for each, job in self._waiting(seen):
            left_s = LATER * max(each.deadline_s - seen.now_s, self.least_s(each.task))
            due_s = seen.now_s + left_s
            soon = left_s < LATEST * self.least_s(each.task) and due_s < job.deadline_s - MINUTE_S
            if each.refused and each.task.gpus <= up and soon:
                why = each.task.missed or each.left
                found.append(replace(each.task, granted_s=due_s, missed=why))
        return found

    def in_time(self, task: Task, now_s: float) -> Task:
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
        return tracked.refused and self.scheduler is not None and not all(self.book.up)

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

    def _is_owners(self, tracked: Tracked, job: Job, seen: Observed) -> bool:
        """Tell whether a job's owner wants it back."""
        return wish_of(job.comment).off or self.records.owner_holds(tracked.task, job, seen)

    # --- what Slurm shows ----------------------------------------------------------------------

    @staticmethod
    def job_of(tracked: Tracked, seen: Observed) -> Job | None:
        """The job as Slurm shows it; None: it does not."""
        job = seen.jobs.get(tracked.task.job)
        return job if job is not None and tracked.is_of(job) else None

    def knows(self, job: Job) -> bool:
        """Tell whether a job was told to the scheduler, or refused."""
        return any(each.is_of(job) for each in self.tracked.values())

    def as_submitted(self, job: Job) -> Task:
        """A job as its owner submitted it; where nobody remembers, as far as its record says."""
        for each in self.tracked.values():
            if each.is_of(job):
                return each.task
        told = self.records.originals.get(job.key)
        if told is not None:
            return Task(**told)
        unknown = replace(self.reader.unplanned(job), limit_s=None, held=False)
        return replace(unknown, comment=owners_part(job.comment))

    # --- what the plan says --------------------------------------------------------------------

    def row_of(self, tracked: Tracked, job: Job | None, now_s: float) -> Row | None:
        """What a job runs by: begun, or promised and begun by Slurm when the book was not looking.

        The book begins a row when it is told that the one before it has ended: perhaps only now,
        perhaps later than we told Slurm.
        """
        page = self.book.tasks[tracked.number]
        if page.running is not None or not page.rows or job is None or not job.active:
            return page.running
        row = page.rows[0]
        there = set(job.nodes) == set(self.nodes_of(row.processors))
        start_s = min(row.start_s, told_start_s(job.comment) - self.epoch_s)
        return row if there and start_s <= now_s + 1.0 else None

    def nodes_of(self, processors: Iterable[int]) -> list[str]:
        """Slurm's names of the servers of processors."""
        servers = {self.book.server[p] for p in processors}
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
