"""One task set, one policy: the numbers the papers plot. Every schedule is verified."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from downclock.engine.engine import plan
from downclock.papers.rows import Row, Settings, estimate, judged
from downclock.planners.catalog import policy
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.verify.verify import require_valid
from downclock.workloads import mei

PAIRS = 4096
"""Pairs on offer: some published rows need more than the 2,048 the papers say (2,192)."""

RHO = 120
"""The papers' rho of two slots, in seconds."""

MW_MIN = 60e6
"""Joules in the journal's "MJ": a million watt-minutes."""


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
        cluster = mei.Cluster(
            PAIRS, self.per_server, base.idle_w, base.turn_on_j, turn_on_per="server"
        )
        generate = mei.offline if self.mode == "offline" else mei.online
        return generate(
            self.seed,
            utilisation=self.utilisation,
            task_utilisation=self.task_utilisation or self.mode,
            cluster=cluster,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """Energies in joules; servers turned on; pairs used."""

    run_j: float
    idle_j: float
    wake_j: float
    servers: int
    pairs: int

    @property
    def total_j(self) -> float:
        """All energy."""
        return self.run_j + self.idle_j + self.wake_j


@lru_cache(maxsize=20_000)
def outcome(case: Case, spec: str) -> Outcome:
    """Plan, verify and bill one case."""
    return outcome_of(case.problem(), spec)


def outcome_of(problem: Problem, spec: str) -> Outcome:
    """Plan, verify and bill a problem."""
    schedule = plan(problem, policy(spec))
    require_valid(problem, schedule)
    bill = account(problem, schedule)
    parts = bill.energy_j
    pairs = int(np.unique(schedule.segments.processor).size)
    return Outcome(parts["run"], parts["idle"], parts["wake"], bill.wakes, pairs)


Quantity = Callable[[Outcome], float]


def compared(
    settings: Settings,
    where: tuple[str, str],
    quantity: str,
    published: float | None,
    values: Iterable[float],
    unit: str,
    because: str = "",
) -> Row:
    """Return a row of a mean over sets; ``where`` is (paper, item)."""
    found = estimate(list(values))
    return judged(*where, quantity, published, found, unit, because=because)
