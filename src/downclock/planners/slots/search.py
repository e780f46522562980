"""Cheapest schedules of task graphs under a price per slot: an answer at once, then better ones.

Start with a path-stretched list schedule. Place it on machines so that ancestry costs nothing,
find the best intervals for that order by one minimum cut, let tasks exchange intervals by an
assignment, and repeat: no step makes it worse.
Multipliers of the machine limit (`CapacityMultipliers`) give the lower bound and new orders; small
disturbances of the order give the rest. Every answer carries its bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from downclock.planners.slots.assign import reassigned
from downclock.planners.slots.barriers import Barrier, Stages, barriers
from downclock.planners.slots.cost_quantum import CostQuantum
from downclock.planners.slots.fluid import Fluid, fluid_bound
from downclock.planners.slots.model import SlotGraph, SlotGraphIndex, SlotPlan, is_valid
from downclock.planners.slots.multipliers import CapacityMultipliers
from downclock.planners.slots.order import best_intervals, machines_of, order_edges
from downclock.planners.slots.program import ANY_NODES
from downclock.planners.slots.proof import prove
from downclock.planners.slots.separable_bound import SeparableBound
from downclock.planners.slots.stage_bound import StageBound, best_stages
from downclock.planners.slots.start import (
    fluid_paced_list,
    latest_starts,
    list_schedule,
    path_stretched,
    shortest_schedule,
)
from downclock.planners.slots.windows import capacity_windows
from downclock.problem.graph import Edges
from downclock.units import Floats, Ints

SMALL = 100
"""Up to this many tasks cuts see every slot; above, a window around the present plan."""

MIDDLE = 3000
"""Above this many tasks the window is one stride to each side: more cuts, each much smaller."""

LARGEST_CUT, LARGEST_SMALL_CUT = 5_000_000, 15_000_000
"""Tasks times slots squared up to which cuts may see every slot; and up to which the machine limit
of few tasks is relaxed with all slots as labels."""

RELAXED = 30_000_000
"""Tasks times slots squared of all steps of the multipliers in a search of usual length."""

NEAR = 8
"""Slots on each side of a plan that a disturbed order may use at first."""

STARTS = 6
"""List schedules of small graphs that are improved before the search goes on from the best."""

SHAKE = 12
"""Every so many orders all tasks are moved at once, and all slots are tried."""

FEW_COLUMNS, FEW_NODES = 1500, 300
"""Columns up to which HiGHS is asked within a search, and nodes that it may look at."""

PROOF_S = 60.0
"""Seconds after which HiGHS is not waited for: most answers take tenths, some take minutes."""

ENOUGH = 3e-7
"""Relative gap at which cost and bound are equal."""


@dataclass(slots=True)
class CostSearch:
    """One search: tables, the best plan, the bound, and the clock."""

    index: SlotGraphIndex
    quantum: CostQuantum
    bound: float
    random: np.random.Generator
    clock: Callable[[], float] = time.perf_counter
    limit_s: float = np.inf
    best: SlotPlan | None = None
    fluid: Fluid = field(init=False)
    separable: SeparableBound | None = None
    multipliers: CapacityMultipliers | None = None
    rounds: int = 0
    steps: int = 0
    proof_tried: bool = False
    barriers: list[Barrier] | None = None
    stages: StageBound | None = None
    joins: Stages | None = None
    first_s: float = np.inf
    begun: float = field(init=False)

    def __post_init__(self) -> None:
        self.begun = self.clock()

    @classmethod
    def of(
        cls,
        graph: SlotGraph,
        *,
        seed: int = 0,
        clock: Callable[[], float] = time.perf_counter,
        limit_s: float = np.inf,
    ) -> CostSearch:
        """Index a graph and make its table; the time runs from here."""
        begun = clock()
        index = SlotGraphIndex.of(graph)
        index = index.priced(_longest(index))
        quantum, fluid = CostQuantum.of(graph), Fluid.of(graph)
        separable = SeparableBound.of(index, fluid)
        bound = quantum.least_from(max(separable.bound, fluid_bound(graph, fluid)))
        random = np.random.default_rng(seed)
        search = cls(index, quantum, bound, random, clock, limit_s)
        search.begun, search.fluid, search.separable = begun, fluid, separable
        return search

    @property
    def graph(self) -> SlotGraph:
        """What is asked."""
        return self.index.graph

    @property
    def small(self) -> bool:
        """Cuts may see every slot."""
        return len(self.graph) <= SMALL and self.step_work <= LARGEST_CUT

    @property
    def step_work(self) -> int:
        """What a step of the multipliers costs, about: tasks times slots squared."""
        return len(self.graph) * self.graph.slots**2

    @property
    def elapsed_s(self) -> float:
        """Seconds since the search began."""
        return self.clock() - self.begun

    @property
    def late(self) -> bool:
        """The time is over."""
        return self.elapsed_s > self.limit_s

    def spent(self, rounds: int) -> float:
        """Part of the rounds or of the time, whichever is more, that is over."""
        return max(self.rounds / rounds, self.elapsed_s / self.limit_s)

    @property
    def closed(self) -> bool:
        """Cost and bound are equal but for rounding."""
        return self.best is not None and self.best.cost <= self.bound * (1.0 + ENOUGH)

    @property
    def gap(self) -> float:
        """What the best plan costs above the bound, as a part of it."""
        if self.best is None or self.bound <= 0.0:
            return np.inf
        return self.best.cost / self.bound - 1.0

    def open(self, start: Ints | None = None) -> bool:
        """Find a first plan, from ``start`` (first slots at full speed) too; tell whether."""
        found = [fluid_paced_list(self.index, self.fluid), path_stretched(self.index)]
        starts = [
            self.index.plan(first, first + length - 1) for first, length in filter(None, found)
        ]
        starts.sort(key=lambda plan: plan.cost)
        for plan in starts if self.small else starts[:1]:
            self.improve(plan.first, plan.last, most=12 if self.small else 2)
        if start is not None and (self.best is None or self.small):
            self.improve(start, start + self.index.length - 1)
        if self.best is None:
            first, end = shortest_schedule(self.graph)
            if end <= self.graph.slots:
                self.improve(first, first + self.index.length - 1)
        if self.best is not None and self.small:
            tried = self.rounds
            for _ in range(STARTS):
                self.begin_elsewhere()
            self.rounds = tried
        return self.best is not None

    def begin_elsewhere(self) -> None:
        """Improve a list schedule at full speed whose latest starts go first, but for noise."""
        if self.late:
            return
        length, key = self.index.length, latest_starts(self.index)
        spread = 0.1 * float(np.mean(self.graph.slots - key))
        noise = self.random.normal(0.0, spread, key.size)
        first, _, end = list_schedule(self.index, key - noise, length)
        if end <= self.graph.slots:
            self.improve(first, first + length - 1, most=3)

    def improve(self, first: Ints, last: Ints, most: int = 12) -> SlotPlan | None:
        """Alternate exchanges, machines and cuts until nothing changes; keep the best."""
        plan = self.index.plan(first, last)
        if not is_valid(self.graph, plan):
            return None
        for _ in range(most):
            self.keep(plan)
            if self.late:
                break
            before = plan.cost
            plan = reassigned(self.index, plan, self.random)
            edges = order_edges(self.index, machines_of(self.index, plan), plan.first)
            better = self._cut(plan, *edges)
            if better is not None and better.cost < plan.cost:
                plan = better
            if plan.cost >= before * (1.0 - 1e-9):
                break
        self.keep(plan)
        return plan

    def _cut(self, plan: SlotPlan, before: Ints, after: Ints) -> SlotPlan | None:
        if self.small:
            return best_intervals(self.index, plan, before, after)
        for stride in (16, 8, 4, 2, 1):
            if self.late:
                break
            reach = 3 if len(self.graph) <= MIDDLE else 1
            found = best_intervals(self.index, plan, before, after, reach=reach, stride=stride)
            if found is not None and found.cost < plan.cost:
                plan = found
        return plan

    def keep(self, plan: SlotPlan) -> None:
        """Remember a valid plan if it is the best."""
        self.rounds += 1
        if self.best is None or plan.cost < self.best.cost:
            self.first_s = min(self.first_s, self.elapsed_s)
            self.best = plan

    def raise_bound(self, bound: float) -> None:
        """Remember a better lower bound."""
        bound = self.quantum.least_from(bound)
        if self.best is not None:
            bound = min(bound, self.best.cost)
        self.bound = max(self.bound, bound)

    def multiplier_step(self, end_s: float | None = None) -> None:
        """Move the machine multipliers some steps, until ``end_s`` at most."""
        assert self.best is not None
        multipliers = self._relax_capacity()
        self.steps += 1
        end_s = self.limit_s if end_s is None else end_s
        multipliers.step(
            self.best, self.quantum.below(self.best.cost), late=lambda: self.elapsed_s > end_s
        )
        self.raise_bound(multipliers.bound)

    def _relax_capacity(self) -> CapacityMultipliers:
        """Return the multipliers of machines; the first ones are those of the separable bound."""
        if self.multipliers is None:
            assert self.separable is not None
            index = self.index
            if not index.monge:
                index = index.priced(self.graph.slots, envelope=True)
            self.multipliers = CapacityMultipliers(index, self.separable.multiplier)
        return self.multipliers

    def restricted(
        self, release: Ints, due: Ints, multiplier: Floats | None = None
    ) -> CostSearch | None:
        """Search where tasks have narrower windows (n,); None where nothing fits in them.

        The best plan is the one to beat; ``multiplier`` (slots,) is where multipliers begin. Edges
        that the windows imply are left out: what they do not tie together has multipliers' models
        of its own, which are much quicker.
        """
        index, known = self.index, self._relax_capacity()
        early, late = capacity_windows(
            replace(index, graph=replace(self.graph, release=release, due=due))
        )
        if np.any(early + index.length - 1 > late):
            return None
        tied = late[index.before] >= early[index.after]
        edges = Edges(index.before[tied], index.after[tied])
        narrow = SlotGraphIndex.of(replace(self.graph, edges=edges, release=early, due=late))
        part = CostSearch(
            replace(narrow, table=index.table), self.quantum, 0.0, self.random, self.clock,
            self.limit_s - self.elapsed_s, self.best,
        )  # fmt: skip
        part.multipliers = CapacityMultipliers(
            replace(narrow, table=known.index.table),
            (known.multiplier if multiplier is None else multiplier).copy(),
        )
        return part

    def decode(self) -> None:
        """Make plans of the order of the relaxation's intervals, as they are and disturbed."""
        if self.multipliers is None:
            return
        bundle = self.multipliers.bundle
        average, sample = bundle.average(), bundle.sample(self.random)
        spread = 0.25 * float(np.mean(average[:, 1] - average[:, 0] + 1))
        noise = self.random.normal(0.0, spread, len(self.graph))
        whole = np.rint(average).astype(np.int64)
        near = SlotPlan(whole[:, 0].copy(), whole[:, 1].copy(), np.nan)
        middle = average.mean(axis=1)
        for key in (middle, average[:, 0].copy(), middle + noise, sample.mean(axis=1)):
            found = self.reorder(key, near)
            if found is not None and self.best is not None and found.cost < 1.02 * self.best.cost:
                self.improve(found.first, found.last, most=4)

    def reorder(self, key: Floats, near: SlotPlan, reach: int = -1) -> SlotPlan | None:
        """Cut for the machine orders of a list schedule; None where they miss the deadline.

        Lengths are those of the plan ``near``, and only slots near it are tried (see
        `best_intervals`).
        """
        length = np.maximum(near.last - near.first + 1, self.index.length)
        first, machine, _ = list_schedule(self.index, key, length)
        edges = order_edges(self.index, machine, first)
        last = first + length - 1
        if not self.index.monge and np.all(last <= self.graph.due):
            # Such a cut is never worse than a plan it starts from, which must be one of this order.
            near = self.index.plan(first, last)
        found = best_intervals(self.index, near, *edges, reach=reach)
        if found is not None:
            found = reassigned(self.index, found, self.random)
            self.keep(found)
        return found

    def disturb(self, present: SlotPlan) -> SlotPlan:
        """Move one to three tasks in the order and cut again; return what to go on from."""
        key = self._key(present)
        spread = 1.0 + 0.5 * float(np.mean(present.last - present.first + 1))
        if self.rounds % SHAKE == 0:
            key += self.random.normal(0.0, spread, key.size)
            found = self.reorder(key, present, -1 if self.small else self._near)
        else:
            some = self.random.integers(0, key.size, self.random.integers(1, 4))
            key[some] += self.random.normal(0.0, spread, some.size)
            found = self.reorder(key, present, self._near)
        if found is None:
            return present
        if found.cost < present.cost:
            found = self.improve(found.first, found.last, most=3) or found
        assert self.best is not None
        warm = 2e-4 * self.best.cost + 0.04 * max(0.0, self.best.cost - self.bound)
        worse = found.cost - present.cost
        return found if worse <= 0.0 or self.random.random() < np.exp(-worse / warm) else present

    @property
    def can_relax_capacity(self) -> bool:
        """Cuts over all slots are small enough for multipliers."""
        most = LARGEST_SMALL_CUT if len(self.graph) <= SMALL else LARGEST_CUT
        return self.step_work <= most

    @property
    def turns_per_multiplier_step(self) -> int:
        """Disturbances that take about as long as one step of the multipliers."""
        if self.multipliers is None or self.settled:
            return 3
        each = (2 * self._near + 1) ** 2 * len(self.graph)
        return int(np.clip(self.multipliers.pairs / each, 1, 20))

    @property
    def _near(self) -> int:
        return NEAR if self.small else 3

    @property
    def settled(self) -> bool:
        """No multipliers are better than those in hand."""
        return self.multipliers is not None and self.multipliers.settled

    @property
    def worth_a_proof(self) -> bool:
        """No better multipliers are known and HiGHS was not asked yet."""
        return self.settled and not self.proof_tried

    def prove_briefly(self) -> None:
        """Ask HiGHS where few intervals are left, for a few nodes."""
        left = 0.7 * (self.limit_s - self.elapsed_s)
        self.prove(min(left, PROOF_S), FEW_NODES, FEW_COLUMNS)

    def prove(self, seconds: float, nodes: int = ANY_NODES, largest: int = 200_000) -> None:
        """Let HiGHS choose among the intervals that the multipliers leave, if not too many."""
        assert self.best is not None
        self.proof_tried = True
        end = self.elapsed_s + seconds
        while self.multipliers is None or not (self.multipliers.settled or self.closed):
            self.multiplier_step(end)
            if self.elapsed_s > end:
                return
        seconds, below = end - self.elapsed_s, self.quantum.below(self.best.cost)
        known = self.multipliers, self.index.table, self.best, self.bound
        plan, bound = prove(*known, below, seconds=seconds, nodes=nodes, largest=largest)
        self.keep(plan)
        self.raise_bound(bound)

    def find_joins(self) -> None:
        """Chain barriers and near-barriers, whatever is beside them."""
        self.barriers = barriers(self.index, self.fluid.work)
        self.joins = Stages.of(self.barriers, self.fluid.work, 1.0)

    def bound_stages(self) -> None:
        """Raise the bound by that of the stages between barriers."""
        assert self.best is not None
        assert self.barriers is not None
        self.stages = best_stages(
            self.index, self.fluid, self.best, self.barriers, lambda: self.late
        )
        self.raise_bound(0.0 if self.stages is None else self.stages.safe)

    def _key(self, plan: SlotPlan) -> Floats:
        """Order tasks by the first slot or the middle of their interval, at random."""
        by_first = self.random.random() < 0.5
        return np.asarray(1.0 * plan.first if by_first else 0.5 * (plan.first + plan.last))


def _longest(index: SlotGraphIndex) -> int:
    """Longest interval in the table: every one for small graphs, else what fits memory."""
    slots = index.graph.slots
    room = int(3e7 / (slots * index.row_work.size))
    if len(index.graph) <= SMALL and slots <= max(room, 1_000):
        return slots
    return min(slots, max(int(4 * index.length.max()), min(room, 256)))
