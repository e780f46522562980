"""What Slurm shows beside what the book believes: the differences are what a moment tells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from downclock.adapters.slurm.jobs import Task
from downclock.adapters.slurm.moments import RELEASE, RESTORE, Moment, Tracked
from downclock.adapters.slurm.observed import Job, Observed
from downclock.adapters.slurm.records import LAUNCHES
from downclock.adapters.slurm.spool import ran_already, ran_once, script_began, spooled_jobs
from downclock.adapters.slurm.words import wish_of
from downclock.engine.facts import AMENDED, CANCELLED, DOWN, FINISHED, LOST, UP, Fact
from downclock.engine.pages import Row

if TYPE_CHECKING:
    from downclock.adapters.slurm.world import SlurmWorld

COMPLETED, FORGOTTEN = "COMPLETED", "FORGOTTEN"
"""How a job ended; the second word where a node says so and Slurm has forgotten it."""

UNLAUNCHED = frozenset(("FAILED", "NODE_FAIL", "BOOT_FAIL"))
"""States in which Slurm ends a job that it could not launch, as it ends those that failed."""

RELAUNCHES, REFUSALS = 10, 20
"""A job whose script never began is requeued until it was so often. Slurm is asked so often to
requeue a job: it refuses while one ends."""

FINDS_S = 300.0
"""A controller finds out so soon after its start which jobs it takes for running that are not."""

SETTLES_S = 5.0
"""A controller has heard so soon after its start what nodes run. What it has forgotten is started
again only then: Slurm drains a node where a job is launched twice."""


def differences(world: SlurmWorld, seen: Observed, now_s: float) -> Moment:
    """What has happened since the book was written."""
    moment = Moment(now_s)
    forgets = seen.boot_s <= seen.now_s < seen.boot_s + FINDS_S
    look = _Look(world, seen, moment, spooled_jobs(world.site.spool) if forgets else frozenset())
    for tracked in world.tracked.values():
        job = world.job_of(tracked, seen)
        if tracked.ended or never_began(world, tracked, job, seen):
            continue
        if not tracked.left:
            look.compare(tracked, job)
        elif tracked.number >= 0:
            look.note_end(tracked, job)
    look.arrivals()
    look.places()
    return moment


def owners_deadline_s(world: SlurmWorld, tracked: Tracked, job: Job) -> float:
    """What the owner of a job asks for now; limits of ours do not count."""
    limit_s = math.inf if tracked.task.limit_s is None else tracked.task.limit_s
    told = replace(job, submit_s=tracked.task.submit_s, limit_s=limit_s)
    return world.reader.deadline_s(told, wish_of(job.comment))


def has_run(world: SlurmWorld, tracked: Tracked, job: Job, seen: Observed) -> bool:
    """Tell whether a job ran already and a controller that was killed would run it again.

    Such a one shows the job as it was before its end, or has requeued it by now because no node
    runs it. An owner who requeues a job at any other time wants it run again.
    """
    known = tracked.ended.split("+")
    if COMPLETED not in known or not (job.active or job.waits):
        return False
    if ran_once(world.site.spool, job, seen.boot_s, seen.now_s):
        return "COMPLETING" not in job.states
    if (job.restarts, job.submit_s) == (tracked.restarts, tracked.submit_s):
        return "COMPLETING" not in job.states
    if job.held and world.records.kept(tracked.task.key):
        return True
    since = FORGOTTEN in known or tracked.ended_s <= seen.boot_s
    return job.waits and since and seen.boot_s <= job.submit_s + 1.0 <= seen.boot_s + FINDS_S


def forgotten(world: SlurmWorld, row: Row | None, seen: Observed) -> bool:
    """Tell whether the controller was started since a job was: it may not know of it."""
    return row is not None and world.epoch_s + row.began_s < seen.boot_s


def settles(world: SlurmWorld, tracked: Tracked, seen: Observed) -> bool:
    """Tell whether a node may still run a job whose start a killed controller has forgotten."""
    row = None if tracked.number < 0 else world.book.tasks[tracked.number].running
    return forgotten(world, row, seen) and seen.now_s < seen.boot_s + SETTLES_S


def never_began(world: SlurmWorld, tracked: Tracked, job: Job | None, seen: Observed) -> bool:
    """Tell whether Slurm failed a job before its script began: it is to be requeued.

    `once.sh` knows. Without it that is taken for granted where the controller was started since the
    job first was, and the run ended in its first second: a node whose slurmd has just ended a run
    of which the controller knows nothing refuses the next one (``Job credential revoked``).
    """
    if job is None or not job.states & UNLAUNCHED or wish_of(job.comment).off:
        return False
    if tracked.ended or tracked.refusals >= REFUSALS or job.active:
        return False
    began = script_began(world.site.spool, job)
    if began is not None:
        return not began and job.restarts < RELAUNCHES
    row = None if tracked.number < 0 else world.book.tasks[tracked.number].running
    again = row is not None and (row.attempt > 0 or forgotten(world, row, seen))
    short = seen.boot_s <= job.start_s and job.end_s - job.start_s <= 1.0
    return again and short and job.restarts < LAUNCHES


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at a cluster, and the moment that it fills.

    Attributes:
        spooled: jobs that nodes have a word of, if Slurm may have forgotten what it knew of them.
    """

    world: SlurmWorld
    seen: Observed
    moment: Moment
    spooled: Set[int] = frozenset()

    # --- jobs ----------------------------------------------------------------------------------

    def arrivals(self) -> None:
        """Tell jobs that wait and that nobody was told of."""
        world, now_s = self.world, self.seen.now_s
        known = {each.task.job: each for each in world.tracked.values()}
        for job in self.seen.jobs.values():
            if job.waits and not (job.number in known and known[job.number].is_of(job)):
                before = world.records.before(job)
                task = world.reader.task_of(before, now_s)
                if isinstance(task, Task):
                    self.moment.told.append(world.in_time(world.records.as_submitted(task), now_s))
                elif world.reader.asked(job, now_s):
                    nobody = world.records.as_submitted(world.reader.unplanned(before))
                    self.moment.refused.append((nobody, task))

    def compare(self, tracked: Tracked, job: Job | None) -> None:
        """Tell what became of a job that the plan counts with."""
        row = self.world.row_of(tracked, job, self.moment.now_s)
        ended = self._ended(job)
        if ended:
            self._tell_end(tracked, job, row, ended)
        elif job is not None and job.active:
            if row is None or set(job.nodes) != set(self.world.nodes_of(row.processors)):
                self._leave(tracked, "Slurm started it outside the plan")
        elif job is not None:
            self._compare_waiting(tracked, job)

    def note_end(self, tracked: Tracked, job: Job | None) -> None:
        """Tell that a job ended which is left to Slurm."""
        if job is not None and (ended := self._ended(job)):
            self.moment.ended.append((tracked.task.key, ended))

    def _ended(self, job: Job | None) -> str:
        """How a job ended, by Slurm or by its node where Slurm has forgotten; empty: not yet."""
        if job is None:
            return "gone"
        if not (job.active or job.waits):
            return "+".join(sorted(job.states))
        boot_s, sure_s = self.seen.boot_s, self.seen.now_s - SETTLES_S
        spool = self.world.site.spool
        since = job.start_s < boot_s if job.active else job.number in self.spooled
        known = since and ran_already(spool, job, boot_s, sure_s)
        known = known or ran_once(spool, job, boot_s, self.seen.now_s)
        return f"{COMPLETED}+{FORGOTTEN}" if known and "COMPLETING" not in job.states else ""

    def _tell_end(self, tracked: Tracked, job: Job | None, row: Row | None, ended: str) -> None:
        now_s = self.moment.now_s
        self.moment.ended.append((tracked.task.key, ended))
        began = row is not None and row.began_s < math.inf
        done = began and bool({"gone", COMPLETED} & {*ended.split("+")})
        known = job is not None and not (job.active or job.waits)
        end_s = job.end_s - self.world.epoch_s if known and job is not None else now_s
        at_s = np.nan if row is None else float(np.clip(end_s, row.began_s, now_s))
        self.moment.facts.append(Fact(FINISHED if done else CANCELLED, tracked.number, at_s=at_s))

    def _compare_waiting(self, tracked: Tracked, job: Job) -> None:
        world, number = self.world, tracked.number
        row = world.book.tasks[number].running
        deadline_s = owners_deadline_s(world, tracked, job)
        if wish_of(job.comment).off:
            self._leave(tracked, "its owner opted out", RESTORE)
        elif world.records.owner_holds(tracked.task, job, self.seen):
            self._leave(tracked, "its owner holds it", RESTORE)
        elif tracked.refusals >= 5:
            self._leave(tracked, "Slurm refuses what the plan wants of it")
        elif job.restarts > tracked.restarts:
            self.moment.restarts.append((tracked.task.key, job.restarts, job.submit_s))
            if row is not None:
                self.moment.facts.append(Fact(LOST, number))
        elif settles(world, tracked, self.seen):
            return
        elif row is not None and (
            forgotten(world, row, self.seen) or not self._usable(row.processors)
        ):
            self.moment.facts.append(Fact(LOST, number))
        elif row is not None and self.moment.now_s - row.began_s > world.site.grace_s:
            if row.attempt:
                self._leave(tracked, f"Slurm did not start it for {world.site.grace_s:g} s")
            else:  # once more, perhaps elsewhere
                self.moment.facts.append(Fact(LOST, number))
        elif _amended(tracked, deadline_s):
            after_s = max(deadline_s - world.epoch_s, self.moment.now_s)
            self.moment.facts.append(Fact(AMENDED, number, value=after_s))

    def _leave(self, tracked: Tracked, why: str, how: str = RELEASE) -> None:
        self.moment.left.append((tracked.task.key, why, how))
        self.moment.facts.append(Fact(CANCELLED, tracked.number))
        self.world.notes.append(f"job {tracked.task.job} is left to Slurm: {why}")

    # --- places --------------------------------------------------------------------------------

    def _usable(self, processors: Iterable[int]) -> bool:
        """Tell whether Slurm could start a job there."""
        nodes = [self.seen.nodes.get(name) for name in self.world.nodes_of(processors)]
        return all(node is not None and node.usable for node in nodes)

    def places(self) -> None:
        """GPUs that others use, and nodes that take no job, are down as far as the plan goes."""
        world, planned = self.world, self._planned()
        book, others = world.book, self._others(planned)
        taken = {p for row in planned.values() for p in row.processors}
        for name, server in world.server_of.items():
            mine = range(world.first[server], world.first[server + 1])
            node = self.seen.nodes.get(name)
            wanted = len(mine) if node is None or not node.usable else others.get(name, 0)
            down = [p for p in mine if not book.up[p]]
            free = [p for p in mine if book.up[p] and p not in taken]
            more = wanted - len(down)
            self.moment.facts += [Fact(DOWN, place=p) for p in reversed(free)][: max(more, 0)]
            self.moment.facts += [Fact(UP, place=p) for p in down[: max(-more, 0)]]

    def _planned(self) -> dict[int, Row]:
        """Rows of the jobs that are where the plan has them, by the jobs' numbers."""
        gone = {fact.task for fact in self.moment.facts}
        found = {}
        for each in self.world.open_jobs():
            row = self.world.row_of(each, self.world.job_of(each, self.seen), self.moment.now_s)
            if row is not None and each.number not in gone:
                found[each.task.job] = row
        return found

    def _others(self, planned: Mapping[int, Row]) -> dict[str, int]:
        """GPUs on each node of jobs that are not where the plan has them."""
        used: dict[str, int] = {}
        for job in self.seen.jobs.values():
            if job.active and job.number not in planned:
                for name, count in job.nodes.items():
                    used[name] = used.get(name, 0) + count
        return used


def _amended(tracked: Tracked, deadline_s: float) -> bool:
    """Tell whether a deadline was changed; one that cannot be met may only be put off."""
    later_s = deadline_s - tracked.deadline_s
    return math.isfinite(later_s) and (later_s if tracked.task.missed else abs(later_s)) > 1.0
