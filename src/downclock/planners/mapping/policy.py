"""liu's schemes as policies: Static, Dynamic, Aggressive and ERF on any enumerated clocks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from downclock.engine.decisions import Decisions
from downclock.engine.facts import AMENDED, CHANGES, Facts
from downclock.engine.policy import Columns, MomentByMoment
from downclock.engine.view import View
from downclock.planners.mapping.levels import (
    TaskLevels,
    learn,
    levels_of,
    objection_to_levels,
    task_levels,
)
from downclock.planners.mapping.mapping import Mapping, Rules
from downclock.planners.mapping.queue import Queue
from downclock.planners.mapping.rules import Job
from downclock.planners.mapping.running import decided, still_running, told_of
from downclock.problem.problem import Problem


@dataclass(slots=True)
class State:
    """The queues, tasks at their levels, what each processor runs, and whether anything began."""

    mapping: Mapping
    levels: list[TaskLevels]
    runs: list[tuple[int, int]]
    began: bool = False


@dataclass(frozen=True, slots=True)
class LiuPolicy(MomentByMoment):
    """Mapping of time-sensitive jobs to CPUs and GPUs (liu sections 4 to 6).

    Types are the platform's kinds, speeds those of the worst application at each clock. A kind
    whose ``interrupt`` is preempt or migrate is preemptive; where any kind locks its clock the
    rules for locked clocks apply.
    """

    name: str
    rules: Rules = field(default_factory=Rules)

    heeds: ClassVar[frozenset[int]] = CHANGES

    def objection(self, problem: Problem) -> str | None:
        """Independent tasks on enumerated clocks."""
        return objection_to_levels(problem)

    def start(self, view: View) -> State:
        """Empty queues."""
        platform = view.platform
        rules, reading = self.rules, self.rules.reading
        if not reading.locked and any(kind.clock == "locked" for kind in platform.kinds):
            accept = "theorem3-current" if reading.level == "blocking" else reading.accept
            rules = replace(rules, reading=replace(reading, locked=True, accept=accept))
        preemptive = [kind.interrupt in ("preempt", "migrate") for kind in platform.kinds]
        queues = [
            Queue(int(k), preemptive[k], levels_of(view, int(k)).speed.tolist())
            for k in platform.kind
        ]
        runs = [(-1, 0)] * platform.processor_count
        return State(Mapping(rules, queues, now=0.0), task_levels(view), runs)

    def decide(self, state: State, view: View, facts: Facts) -> tuple[State, Decisions]:
        """Follow what happened, then say what every processor runs."""
        told, mapping = told_of(view, facts), state.mapping
        learn(state.levels, view, np.array(told.arrived, dtype=np.int64))
        mapping.advance(told.now_s)
        for job in (*told.finished, *told.ended):
            mapping.finish(job)
        for job in told.lost:
            mapping.restart(job)
        for job in facts.tasks(AMENDED).tolist():
            mapping.amend(job_of(state, view, job))
        mapping.change(told.down, told.up)
        jobs = [job_of(state, view, task) for task in told.arrived]
        if not state.began and told.now_s == 0.0:
            refused = mapping.begin(jobs)
        else:
            refused = [job.id for job in jobs if mapping.arrive(job) < 0]
        before, state.runs = still_running(state.runs, told), _runs(mapping)
        return state, decided(view, state, told, before, refused, left=mapping.left)

    def saved(self, state: State) -> Columns:
        """Queues as columns: a row for every job that waits or runs."""
        queues = state.mapping.queues
        jobs = [
            (p, job, float(left), queue.locked_at.get(job, -1))
            for p, queue in enumerate(queues)
            for job, left in queue.remaining.items()
        ]
        processors = [
            (queue.running, queue.level, up, *run)
            for queue, up, run in zip(queues, state.mapping.up, state.runs, strict=True)
        ]
        return {
            "jobs": np.array(jobs, dtype=np.float64).reshape(-1, 4),
            "processors": np.array(processors, dtype=np.int64).reshape(-1, 5),
            "moment": np.array([state.mapping.now, state.began], dtype=np.float64),
        }

    def restored(self, view: View, columns: Columns) -> State:
        """Fill the queues again."""
        state = self.start(view)
        mapping = state.mapping
        for p, job, left, locked in columns["jobs"].tolist():
            mapping.queues[int(p)].add(job_of(state, view, int(job)), left)
            if locked >= 0:
                mapping.queues[int(p)].locked_at[int(job)] = int(locked)
        for p, (running, level, up, *run) in enumerate(columns["processors"].tolist()):
            mapping.queues[p].running, mapping.queues[p].level = running, level
            mapping.up[p], state.runs[p] = bool(up), (run[0], run[1])
        mapping.now, state.began = float(columns["moment"][0]), bool(columns["moment"][1])
        return state


def _runs(mapping: Mapping) -> list[tuple[int, int]]:
    """What every processor runs, and at which level."""
    runs = [(q.running, q.locked_at.get(q.running, q.level)) for q in mapping.queues]
    return [(job, level if job >= 0 else 0) for job, level in runs]


def job_of(state: State, view: View, task: int) -> Job:
    """A task as liu's job: worst-case times at the top level of each kind."""
    return Job(
        task,
        float(view.tasks.arrival_s[task]),
        float(view.tasks.deadline_s[task]),
        tuple(float(level.time_s[task, -1]) for level in state.levels),
    )
