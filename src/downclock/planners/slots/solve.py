"""The cheapest plan of a slot graph within a time, with its bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from downclock.planners.result import Status
from downclock.planners.slots.held_joins import hold_elsewhere, hold_here
from downclock.planners.slots.model import SlotGraph, SlotPlan
from downclock.planners.slots.neighbourhoods import improve_neighbourhood
from downclock.planners.slots.search import RELAXED, CostSearch
from downclock.units import Ints

ROUNDS = 400
"""Orders that are tried where nobody says how many."""

WHOLE = 400
"""Tasks up to which the whole order is disturbed too: few machines alone cannot move a join."""

UNTIL_PROOF, UNTIL_STAGES = 0.25, 0.5
"""Part of a search after which HiGHS is asked, and the bound of barriers."""

HARDLY = 0.1
"""Part of the mean price by which prices differ at most where a level price is tried first."""

VAIN = 3
"""So many times the rounds are tried where most orders miss the deadline and do not count."""


@dataclass(frozen=True, slots=True, eq=False)
class SlotResult:
    """The best plan found, a lower bound and what is known of it.

    Attributes:
        plan: None where no schedule meets the deadline (or none was found).
        bound: no schedule costs less.
        status: "optimal" where the gap is rounding.
        first_s: when the first valid plan was there.
        rounds: orders tried.
    """

    plan: SlotPlan | None
    bound: float
    status: Status
    seconds: float
    first_s: float
    rounds: int

    @property
    def cost(self) -> float:
        """Cost of the plan; infinite where there is none."""
        return np.inf if self.plan is None else self.plan.cost

    @property
    def gap(self) -> float:
        """Cost above the bound, as a fraction of the bound."""
        return self.cost / self.bound - 1.0 if self.bound > 0.0 else float(self.cost > 0.0)


def solve_slots(
    graph: SlotGraph,
    *,
    seconds: float = np.inf,
    proof_s: float = 0.0,
    rounds: int = ROUNDS,
    seed: int = 0,
    start: Ints | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> SlotResult:
    """Search until the gap is closed, the time is over or enough orders were tried.

    Args:
        graph: what is asked.
        seconds: time to search, where the clock and not ``rounds`` should end it; the answer then
            depends on how fast the computer is.
        proof_s: time for HiGHS to close the gap afterwards; 0: no proof is tried.
        rounds: orders to try; the answer depends on them and the seed only, but where HiGHS takes
            longer than `search.PROOF_S`.
        seed: of the disturbances.
        start: first slots (n,) of a schedule at full speed, where one is known.
        clock: what seconds are measured with; `time.process_time` on a busy computer.
    """
    search = CostSearch.of(graph, seed=seed, clock=clock, limit_s=seconds)
    if search.open(start):
        _start_level(search, rounds)
        _search_on(search, rounds)
        if proof_s > 0.0 and not search.closed and search.can_relax_capacity:
            search.prove(proof_s)
    status: Status = "infeasible" if search.best is None else "feasible"
    status = "optimal" if search.closed else status
    known = search.best, search.bound, status
    return SlotResult(*known, search.elapsed_s, search.first_s, search.rounds)


def _start_level(search: CostSearch, rounds: int) -> None:
    """Where prices hardly change, go on from the best plan at a level price, and from its bound."""
    graph, mean = search.graph, float(search.graph.price.mean())
    least, most = float(graph.price.min(initial=mean)), float(graph.price.max(initial=mean))
    if search.closed or search.late or not 0.0 < most - least <= HARDLY * mean:
        return
    level = solve_slots(
        replace(graph, price=np.full(graph.slots, mean)),
        seconds=0.5 * (search.limit_s - search.elapsed_s),
        rounds=rounds,
        clock=search.clock,
    )
    if level.plan is not None:
        search.improve(level.plan.first, level.plan.last)
        search.raise_bound(level.bound * least / mean)


def _search_on(search: CostSearch, rounds: int) -> None:
    """Improve plan and bound until they meet, the time is over or enough orders were tried."""
    present, turn, part = search.best, 0, rounds / ROUNDS
    while not search.closed and not search.late and max(search.rounds, turn / VAIN) < rounds:
        present = search.best if turn % 80 == 0 else present
        assert present is not None
        relax = search.can_relax_capacity and search.steps * search.step_work <= part * RELAXED
        if turn % (1 + search.turns_per_multiplier_step) == 0 and relax:
            search.multiplier_step()
            search.decode()
        elif not search.small and (turn % 2 or len(search.graph) > WHOLE):
            improve_neighbourhood(search)
        else:
            present = search.disturb(present)
        turn += 1
        spent = max(search.spent(rounds), turn / VAIN / rounds)
        if spent > UNTIL_PROOF and search.worth_a_proof:
            search.prove_briefly()
        if spent > UNTIL_STAGES and search.barriers is None and not search.closed:
            _look_at_joins(search, part)
    if search.barriers is None and not search.closed and not search.late:
        _look_at_joins(search, part)


def _look_at_joins(search: CostSearch, part: float) -> None:
    """Plan with joins held where they are, bound stages between them, and hold them elsewhere."""
    search.find_joins()
    left = hold_here(search, min(part, 1.0))
    if not search.closed and not search.late:
        search.bound_stages()
        hold_elsewhere(search, left)
