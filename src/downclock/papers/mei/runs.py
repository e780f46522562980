"""One task set, one policy: the numbers the papers plot. Every schedule is verified."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from downclock.engine.play import plan
from downclock.planners.catalog import policy
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.schedule import ON, Schedule
from downclock.schedule.verify.verify import require_valid
from downclock.units import Floats
from downclock.workloads import mei

PAIRS = 4096
"""Pairs on offer: some published rows need more than the 2,048 the papers say (2,192)."""

RHO = 120
"""The papers' rho of two slots, in seconds."""

MW_MIN = 60e6
"""Joules in the journal's "MJ": a million watt-minutes."""

GRID = "grid=0.05,slack=on"
"""Lengths as in the authors' code: a voltage step of 0.05, deadlines kept, nothing stretched."""

STRETCHED = "grid=0.05"
"""The same where a task whose deadline binds is stretched to it, as the text says."""

Accounting: TypeAlias = Literal["exact", "slotted"]
"""How idle energy is counted: by the second; or by the minute, as the authors' code does: the rest
of a minute in which a task ends is not idle, and a server is on until its minute ends."""


@dataclass(frozen=True, slots=True)
class Case:
    """A task set of the papers on one of their clusters.

    Attributes:
        mode: ``offline`` or ``online``.
        seed: of the set.
        utilisation: task set utilisation (of the online tasks).
        per_server: pairs in a server (l).
        cluster: ``mei2021`` or ``mei2017``.
        task_utilisation: a name of `mei.TASK_UTILISATION`; empty: the one that reproduces.
    """

    mode: str
    seed: int
    utilisation: float = 1.6
    per_server: int = 16
    cluster: str = "mei2021"
    task_utilisation: str = ""

    def problem(self) -> Problem:
        """Generate it; turn-on is charged per server, as the published numbers have it."""
        base = mei.MEI2017 if self.cluster == "mei2017" else mei.MEI2021
        cluster = replace(base, pairs=PAIRS, per_server=self.per_server, turn_on_per="server")
        generate = mei.offline if self.mode == "offline" else mei.online
        used = self.task_utilisation or self.mode
        return generate(
            self.seed, utilisation=self.utilisation, task_utilisation=used, cluster=cluster
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """Energies in joules; servers turned on."""

    run_j: float
    idle_j: float
    wake_j: float
    servers: int

    @property
    def total_j(self) -> float:
        """All energy."""
        return self.run_j + self.idle_j + self.wake_j


@lru_cache(maxsize=20_000)
def outcome(case: Case, spec: str, accounting: Accounting = "slotted") -> Outcome:
    """Plan, verify and bill one case."""
    return outcome_of(_problem(case), spec, accounting)


@lru_cache(maxsize=2)
def _problem(case: Case) -> Problem:
    """The latest problems: policies are tried on one after the other."""
    return case.problem()


def outcome_of(problem: Problem, spec: str, accounting: Accounting = "exact") -> Outcome:
    """Plan, verify and bill a problem."""
    schedule = plan(problem, policy(spec))
    require_valid(problem, schedule)
    bill = account(problem, schedule)
    parts = bill.energy_j
    idle_j = parts["idle"] if accounting == "exact" else slotted_idle_j(problem, schedule)
    return Outcome(parts["run"], idle_j, parts["wake"], bill.wakes)


def slotted_idle_j(problem: Problem, schedule: Schedule, slot_s: float = 60.0) -> float:
    """Idle energy where only whole slots count, on servers that wake on slot boundaries.

    A server is on until the slot ends in which it falls asleep; a processor is idle in the slots
    in which nothing runs on it, so the rest of a slot in which a task ends is free.
    """
    segments, spans, platform = schedule.segments, schedule.spans, problem.platform
    order = np.lexsort((segments.start_s, segments.processor))
    processor = segments.processor[order]
    start = np.floor(_slots(segments.start_s[order], slot_s))
    end = np.ceil(_slots(segments.end_s[order], slot_s))
    begun = np.where(np.diff(processor, prepend=-1) == 0, np.roll(end, 1), -np.inf)
    busy_w = float(np.sum((end - np.maximum(start, begun)) * platform.idle_w[processor]))
    on = spans.state == ON
    awake = np.ceil(_slots(spans.end_s[on], slot_s)) - _slots(spans.start_s[on], slot_s)
    server_w = np.bincount(platform.server, platform.idle_w)[spans.server[on]]
    return slot_s * (float(np.sum(awake * server_w)) - busy_w)


def _slots(time_s: Floats, slot_s: float) -> Floats:
    """A time in slots; one that should be on a boundary is."""
    return np.round(time_s / slot_s, 9)
