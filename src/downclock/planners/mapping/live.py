"""The engine for policies that react: facts in, orders out, no clock and no I/O.

Whoever knows the time (simulator, service) calls `Live.handle` with what happened; the answer says
what every processor does from then on. `Live` also keeps the book: facts are append-only, running
work is cut at the last moment told. How much work a task really was is known when it is done, so
its shares and its work ratio follow from the times themselves.
"""

from __future__ import annotations

import numpy as np

from downclock.engine.policy import Policy, View
from downclock.errors import InvalidInput
from downclock.planners.mapping.reacting import (
    IDLE,
    Facts,
    Orders,
    Reactive,
    no_segments,
    on_from_the_start,
    segments_of,
)
from downclock.problem.problem import Problem
from downclock.schedule.schedule import (
    DONE,
    FAILED,
    PENDING,
    REJECTED,
    Outcomes,
    Schedule,
    Segments,
)
from downclock.units import Floats


class Live:
    """One reactive policy at work on one problem."""

    def __init__(self, problem: Problem, policy: Policy) -> None:
        objection = policy.objection(problem)
        if objection is None and not isinstance(policy, Reactive):
            objection = "it promises ahead and does not react; use `engine.Engine`"
        if objection is not None:
            raise InvalidInput(objection, item=f"policy '{policy.name}'")
        assert isinstance(policy, Reactive)
        self.problem, self.policy, self.view = problem, policy, View(problem)
        self.state = policy.begin(self.view)
        self.now_s = 0.0
        n, p = len(problem.tasks), problem.platform.processor_count
        self._running: list[tuple[int, int, float]] = [(IDLE, 0, 0.0)] * p
        self._attempt = [0] * n
        self._log: list[tuple[int, int, int, float, float, int, float]] = []
        self._status = np.full(n, PENDING)
        self._status[problem.tasks.scale == 0.0] = DONE
        self._reason = np.full(n, "", dtype=object)

    def handle(self, facts: Facts) -> Orders:
        """Take note of facts, ask the policy, and keep what it orders."""
        if facts.now_s < self.now_s:
            raise InvalidInput(
                f"is before the last facts at {self.now_s} s", field="now_s", value=facts.now_s
            )
        self.now_s = facts.now_s
        stopped = {*facts.finished, *facts.lost, *facts.failed}
        for p, (task, _, _) in enumerate(self._running):
            if task in stopped or p in facts.down:
                self._set(p, IDLE, 0)
        self._status[list(facts.finished)] = DONE
        self._status[list(facts.failed)] = FAILED
        self._reason[list(facts.failed)] = "all its attempts were lost"
        for task in (*facts.lost, *facts.failed):
            self._attempt[task] += 1
        orders = self.policy.react(self.state, self.view, facts)
        for p, task, level in orders.run:
            if self._running[p][:2] != (task, level):
                self._set(p, task, level)
        for task, why in orders.rejected:
            self._status[task], self._reason[task] = REJECTED, why
        return orders

    def schedule(self) -> Schedule:
        """Everything that has happened, cut at the last moment told."""
        for p, (task, level, _) in enumerate(self._running):
            self._set(p, task, level)
        segments = segments_of(self.view, self._log) if self._log else no_segments()
        shares, work = self._shares(segments)
        segments = Segments.of(
            segments.task,
            segments.processor,
            segments.start_s,
            segments.end_s,
            segments.points,
            shares,
            segments.attempt,
        )
        outcomes = Outcomes(self._status.copy(), self._reason.copy(), work)
        return Schedule(segments, on_from_the_start(self.view), outcomes, self.policy.name)

    def _set(self, p: int, task: int, level: int) -> None:
        """Close what a processor does, if it took any time, and begin something."""
        old, old_level, since_s = self._running[p]
        if old != IDLE and self.now_s > since_s:
            attempt = self._attempt[old]
            self._log.append((old, attempt, p, since_s, self.now_s, old_level, 0.0))
        self._running[p] = (task, level, self.now_s)

    def _shares(self, segments: Segments) -> tuple[Floats, Floats]:
        """Share of each segment, and work ratio of each task: 1 where it is not known yet."""
        n = len(self.problem.tasks)
        kind = self.problem.platform.kind[segments.processor]
        whole_s, _ = self.problem.at(segments.task, kind, segments.points)
        part = (segments.end_s - segments.start_s) / whole_s
        last = segments.attempt == np.array(self._attempt)[segments.task]
        total = np.bincount(segments.task[last], part[last], n)
        known = (self._status == DONE) & (total > 0.0)
        work = np.where(known, total, 1.0)
        return part / work[segments.task], work
