"""Plan, apply, watch, uninstall: one step after the other against a real Slurm."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from downclock.adapters.slurm.carry import Action, actions, carry_out, put_back
from downclock.adapters.slurm.commands import run as run_command
from downclock.adapters.slurm.log import Log
from downclock.adapters.slurm.observed import Job, Observed
from downclock.adapters.slurm.read import Run, observe
from downclock.adapters.slurm.site import SlurmSite
from downclock.adapters.slurm.words import RAN, is_ours, our_part
from downclock.adapters.slurm.world import SlurmWorld
from downclock.errors import AdapterError

SHORTEST_S = 0.2
"""Slurm is left alone for so long between two questions."""


@dataclass(slots=True)
class Step:
    """What one step saw, wants and could not do."""

    seen: Observed
    todo: list[Action]
    trouble: list[str]


class Planner:
    """A world and its Slurm; closes the log at its end."""

    def __init__(self, site: SlurmSite, *, dry: bool = False, run: Run = run_command) -> None:
        self.site, self.run, self.dry = site, run, dry
        self.log = Log(site.log, dry=dry)
        self.world = SlurmWorld(site, self.log, self._script)
        self._seen: Observed | None = None

    def __enter__(self) -> Planner:
        return self

    def __exit__(self, *_: object) -> None:
        self.log.close()

    def _script(self, job: int) -> str:
        return self.run(["scontrol", "write", "batch_script", str(job), "-"])

    def step(self) -> Step:
        """Look, tell, and carry out what follows; a dry one only says what would be done.

        Raises:
            AdapterError: Slurm does not answer.
        """
        seen = self._seen = observe(self.run, before=self._seen)
        self.world.step(seen)
        todo = list(actions(self.world, seen))
        trouble = [] if self.dry else carry_out(self.world, todo, self.run, seen.now_s)
        return Step(seen, todo, trouble)

    def untouched(self, seen: Observed) -> list[tuple[Job, str]]:
        """Waiting jobs that are not planned, and why."""
        found = []
        for job in seen.jobs.values():
            if job.waits and not self.world.knows(job):
                why = self.world.reader.task_of(job, seen.now_s)
                found.append((job, why if isinstance(why, str) else ""))
        return found

    def watch(self, heard: Callable[[Step], None], *, until_s: float = math.inf) -> None:
        """Step until the end of time; a Slurm that does not answer is asked again."""
        ends_s = time.monotonic() + until_s
        while time.monotonic() < ends_s:
            began_s = time.monotonic()
            try:
                heard(self.step())
            except AdapterError as error:
                heard(Step(Observed(time.time(), {}, {}), [], [str(error)]))
            time.sleep(self._pause_s(began_s))

    def _pause_s(self, began_s: float) -> float:
        """Until Slurm is asked next: the interval, or when the plan has something to do."""
        left_s = self.site.interval_s - (time.monotonic() - began_s)
        if self.world.scheduler is not None:
            due_s = self.world.scheduler.next_s + self.world.epoch_s - time.time()
            left_s = min(left_s, due_s)
        return max(left_s, SHORTEST_S)

    def uninstall(self, on_node: Sequence[str] = ()) -> Step:
        """Put every waiting job back as its owner had it, let go what is held, forget all.

        ``on_node`` is a command that resets the clocks of ``{node}``, run for each.
        """
        seen = observe(self.run)
        waiting = [job for job in seen.jobs.values() if job.waits]
        ours = [job for job in waiting if is_ours(job.comment) or self.world.knows(job)]
        todo = [self._put_back(job, seen) for job in ours]
        for node in self.site.nodes if on_node else ():
            words = tuple(word.replace("{node}", node) for word in on_node)
            todo.append(Action(node, "", "reset its clocks", (words,)))
        trouble = [] if self.dry else carry_out(self.world, todo, self.run, seen.now_s)
        if not (self.dry or trouble):
            self.log.delete()
        return Step(seen, todo, trouble)

    def _put_back(self, job: Job, seen: Observed) -> Action:
        task = self.world.as_submitted(job)
        ran = RAN in our_part(job.comment).split()  # only its owner may have it run again
        for_us = job.held and not (ran or self.world.records.owner_holds(task, job, seen))
        return put_back(self.world, task, replace(job, held=for_us), seen.now_s)
