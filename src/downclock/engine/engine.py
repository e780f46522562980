"""The engine: hands a policy runs of events and keeps what it decides.

It has no clock and does no I/O. ``feed`` takes everything that no outside fact can interrupt; a
noiseless plan is one call with the whole trace, a live cluster one call per event. The engine
merges the decisions into a schedule; `downclock.engine.events` lists what happens in it.
"""

from __future__ import annotations

import numpy as np

from downclock.engine.policy import Decisions, Policy, View, merged
from downclock.errors import InvalidInput
from downclock.problem.problem import Problem
from downclock.schedule.schedule import Schedule
from downclock.units import Floats, Ints


class Engine:
    """One policy at work on one problem."""

    def __init__(self, problem: Problem, policy: Policy) -> None:
        objection = policy.objection(problem)
        if objection is not None:
            raise InvalidInput(objection, item=f"policy '{policy.name}'")
        self.problem, self.policy = problem, policy
        self.view = View(problem)
        self.state = policy.start(self.view)
        self.decisions: list[Decisions] = []

    def feed(self, arrived: Ints, until_s: float) -> Decisions:
        """Tell the policy which tasks arrived and that nothing else happens before ``until_s``."""
        self.state, decided = self.policy.run(self.state, self.view, arrived, until_s)
        self.decisions.append(decided)
        return decided

    @property
    def call_me_s(self) -> float:
        """When the policy wants to be asked again at the latest."""
        return self.decisions[-1].call_me_s if self.decisions else 0.0

    def schedule(self) -> Schedule:
        """Everything decided so far, as a schedule."""
        return merged(self.problem, self.decisions, self.policy.name)


def plan(problem: Problem, policy: Policy, *, cuts: Floats | None = None) -> Schedule:
    """Plan the whole trace: offline and online alike, as nothing unforeseen happens.

    Args:
        problem: what is asked.
        policy: how to decide.
        cuts: times at which to interrupt the run and hand over the rest afresh; it changes
            nothing, and a law checks that.
    """
    engine = Engine(problem, policy)
    arrival_s = problem.tasks.arrival_s
    order = np.argsort(arrival_s, kind="stable")
    edges = np.unique(np.asarray(() if cuts is None else cuts, dtype=np.float64))
    bounds = np.concatenate([[0], np.searchsorted(arrival_s[order], edges), [order.size]])
    until = np.concatenate([edges, [np.inf]])
    for first, last, until_s in zip(bounds[:-1], bounds[1:], until, strict=True):
        engine.feed(order[first:last], float(until_s))
    return engine.schedule()
