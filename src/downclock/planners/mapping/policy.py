"""liu's schemes as policies: Static, Dynamic, Aggressive and ERF on any enumerated clocks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from downclock.engine.policy import Decisions, View
from downclock.planners.mapping.levels import Levels, levels_of, objection_to_levels
from downclock.planners.mapping.mapping import Mapping, Rules
from downclock.planners.mapping.queue import Queue
from downclock.planners.mapping.reacting import (
    Facts,
    Orders,
    Planning,
    run_planning,
    start_planning,
)
from downclock.planners.mapping.rules import Job
from downclock.problem.problem import Problem
from downclock.units import Ints


class State(NamedTuple):
    """The queues, and whether time 0 is still to come."""

    mapping: Mapping
    fresh: list[bool]


@dataclass(frozen=True, slots=True)
class LiuPolicy:
    """Mapping of time-sensitive jobs to CPUs and GPUs (liu sections 4 to 6).

    Types are the platform's kinds, speeds those of the worst task at each clock. A kind whose
    ``interrupt`` is preempt or migrate is preemptive; where any kind locks its clock the rules
    for locked clocks apply.
    """

    name: str
    rules: Rules = field(default_factory=Rules)

    def objection(self, problem: Problem) -> str | None:
        """Independent tasks on enumerated clocks."""
        return objection_to_levels(problem)

    def begin(self, view: View) -> State:
        """Empty queues."""
        platform = view.problem.platform
        locked = any(kind.clock == "locked" for kind in platform.kinds)
        rules = self.rules
        if locked and not rules.reading.locked:
            accept = rules.reading.accept
            safe = rules.reading.level == "blocking"
            accept = "theorem3-current" if safe else accept
            rules = replace(rules, reading=replace(rules.reading, locked=True, accept=accept))
        preemptive = [kind.interrupt in ("preempt", "migrate") for kind in platform.kinds]
        queues = [
            Queue(int(k), preemptive[k], levels_of(view, int(k)).speed.tolist())
            for k in platform.kind
        ]
        return State(Mapping(rules, queues, now=0.0), [True])

    def react(self, state: State, view: View, facts: Facts) -> Orders:
        """Follow what happened; orders are given for every processor."""
        mapping = state.mapping
        mapping.advance(facts.now_s)
        for job in facts.finished:
            mapping.finish(job)
        for job in facts.failed:
            mapping.finish(job)
        for job in facts.lost:
            mapping.restart(job)
        mapping.change(facts.down, facts.up)
        jobs = [job_of(view, task) for task in facts.arrived]
        if state.fresh[0] and facts.now_s == 0.0:
            refused = mapping.begin(jobs)
        else:
            refused = [job.id for job in jobs if mapping.arrive(job) < 0]
        state.fresh[0] = False
        run = [
            (p, queue.running, queue.locked_at.get(queue.running, queue.level))
            for p, queue in enumerate(mapping.queues)
        ]
        return Orders(run, [(job, refusal(view, job)) for job in refused])

    def start(self, view: View) -> Planning:
        """State of a plan at time 0."""
        return start_planning(self, view)

    def run(
        self, state: Planning, view: View, arrived: Ints, until_s: float
    ) -> tuple[Planning, Decisions]:
        """Plan with run times as estimated."""
        return run_planning(self, state, view, arrived, until_s)


def job_of(view: View, task: int) -> Job:
    """A task as liu's job: worst-case times at the top level of each kind."""
    levels: list[Levels] = [levels_of(view, k) for k in range(len(view.problem.platform.kinds))]
    tasks = view.problem.tasks
    return Job(
        task,
        float(tasks.arrival_s[task]),
        float(tasks.deadline_s[task]),
        tuple(float(level.time_s[task, -1]) for level in levels),
    )


def refusal(view: View, task: int) -> str:
    """Why a job was turned away."""
    times = job_of(view, task).times
    if min(times) == float("inf"):
        return "no processor of this platform has a profile for it"
    return (
        f"no processor can promise its deadline {view.problem.tasks.deadline_s[task]:g} s"
        " beside what it has accepted"
    )
