"""A bound for graphs with barriers and near-barriers: joins with some tasks beside them.

The Lagrangian bound cannot see that machines idle at a barrier: it mixes plans whose barriers lie
in different slots. Here the stages between barriers share out the slots by dynamic programming,
so every choice of barrier slots is looked at by itself. A stage's work is a fluid between its two
barriers; in the arcs that a cheaper plan may use, every task chooses an interval (`stage_arcs`).

Tasks beside a barrier need machines too. A stage has room for them on as many machines as there
are such tasks and as its own work leaves; a multiplier for each stage and slot is what that room
is worth. A task beside a stage knows where the stage lies, and so what it pays before, in and
after it. A task that may run in many stages has a copy at every second one; another multiplier
says what it is worth to run it once. Any multipliers give a bound; they climb by subgradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from downclock.planners.slots.barriers import Barrier, Stages
from downclock.planners.slots.fluid import SAFE, Fluid
from downclock.planners.slots.kernels.stages import (
    WORTHS,
    Multipliers,
    Room,
    Steps,
    beside_costs,
    cheapest,
    fluid_arcs,
)
from downclock.planners.slots.model import SlotGraphIndex, SlotPlan
from downclock.planners.slots.stage import Copy, Stage, copies_of
from downclock.planners.slots.stage_arcs import FIRST_TRIES, TRIES, StageArcs, operations
from downclock.planners.slots.stage_paths import Box, Relaxed, shortest
from downclock.planners.slots.windows import capacity_windows
from downclock.units import Bools, Floats, Ints

SHARES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
"""Parts of all work that may be beside barriers, one after another."""

LARGEST = 4_000_000
"""Arcs of all stages, and entries of the tables of tasks beside them, that are still computed."""

STEPS = 60
"""Steps of the multipliers: of fluid stages, and again where tasks choose. The more is beside
barriers the later it is seen how good they are."""

WORK = 1_000_000_000
"""Operations that climbing may take, about."""

PATIENCE, SHRINK = 3, 0.6
"""After so many steps without gain steps become that much shorter."""


def best_stages(
    index: SlotGraphIndex,
    fluid: Fluid,
    plan: SlotPlan,
    found: list[Barrier],
    late: Callable[[], bool] = lambda: False,
) -> StageBound | None:
    """Return the best bound of some chains of barriers that were ``found``; None without any.

    ``plan`` gives the first multipliers, and its cost is never exceeded; the table may be cut at a
    length. It ends soon where it is ``late``.
    """
    tried, known = set[int](), list[StageBound]()
    for share in SHARES:
        stages = Stages.of(found, fluid.work, share)
        if stages is not None and len(stages) not in tried and not late():
            tried.add(len(stages))
            bound = StageBound.of(index, fluid, stages, plan)
            if bound is not None:
                bound.climb(STEPS, late)
                known.append(bound)
    best = sorted(known, key=lambda bound: -bound.value)[:2]
    for bound in best:
        if not late():
            bound.sharpen(late)
    return max(best, key=lambda bound: bound.value, default=None)


@dataclass(slots=True, eq=False)
class StageBound:
    """The bound of one chain of barriers, as far as its multipliers have climbed.

    Attributes:
        index, fluid: the graph, and its work as a fluid.
        upper: cost of a plan that is known.
        barriers: the chain, and what is beside it.
        stages: what lies between.
        low, high: first and last slot of each barrier, start and end of all among them (k + 2,).
        early, late: window of each task beside (d,).
        table, row: cost of the tasks beside in every interval (rows, slots, lengths); row of each.
        room: multiplier of a machine for tasks beside (stages, slots).
        once: what it is worth to run each task beside (d,).
        alive: arcs of each stage that a plan cheaper than ``upper`` may use.
        sharp: those of each stage in which tasks choose; none where all is fluid.
        value: the bound.
    """

    index: SlotGraphIndex
    fluid: Fluid
    upper: float
    barriers: Stages
    stages: tuple[Stage, ...]
    low: Ints
    high: Ints
    early: Ints
    late: Ints
    table: Floats
    row: Ints
    room: Floats
    once: Floats
    alive: list[Bools]
    sharp: tuple[StageArcs, ...] = ()
    value: float = 0.0
    _scale: float = 1.0
    _best: Relaxed | None = None

    @classmethod
    def of(
        cls, index: SlotGraphIndex, fluid: Fluid, barriers: Stages, plan: SlotPlan
    ) -> StageBound | None:
        """Make tables and first multipliers; None where tables would be too large."""
        early, late = capacity_windows(index)
        low, high = _barrier_windows(index, barriers, early, late)
        ends, beside = high - low + 1, barriers.beside
        longest = int((late - early + 1)[beside].max(initial=1))
        rows = np.unique(index.row[beside])
        entries = max(int(ends[:-1] @ ends[1:]), rows.size * index.graph.slots * longest)
        if np.any(ends < 1) or entries > LARGEST:
            return None
        some = replace(index, row_curve=index.row_curve[rows], row_work=index.row_work[rows])
        stages = tuple(
            Stage.of(index, fluid, tasks, int(crowd))
            for tasks, crowd in zip(barriers.tasks, barriers.crowd, strict=True)
        )
        table = some.priced(longest, envelope=not index.monge).table
        row = np.searchsorted(rows, index.row[beside])
        room, once = _first_multipliers(index, fluid, barriers, plan), np.zeros(beside.size)
        alive = [np.ones((a, b), dtype=bool) for a, b in pairwise(ends)]
        asked = index, fluid, plan.cost, barriers, stages, low, high, early[beside], late[beside]
        return cls(*asked, table, row, room, once, alive)

    @property
    def safe(self) -> float:
        """The bound less what rounding may have added."""
        return max(0.0, self.value - SAFE * (self.value + self.upper))

    def joins(self) -> Iterator[tuple[float, Ints]]:
        """Return what plans with barriers in some slots cost at least, and these; least first."""
        relaxed = self._best
        if relaxed is not None:
            for cost, places in relaxed.paths():
                yield relaxed.constant + cost, (self.low + places)[1:-1]

    @property
    def everywhere(self) -> Box:
        """All slots that barriers may lie in."""
        return Box(self.value, self.low[1:-1], self.high[1:-1])

    def within(self, box: Box, upper: float) -> Box | None:
        """Narrow a box to slots of plans that cost at most ``upper``; None where there are none."""
        if self._best is None:
            return None
        low, high = (np.array([0, *each - self.low[1:-1], 0]) for each in (box.low, box.high))
        spans = [slice(a, b + 1) for a, b in zip(low, high, strict=True)]
        arcs = [each[a, b] for each, (a, b) in zip(self._best.arcs, pairwise(spans), strict=True)]
        fore, back = shortest(arcs)
        least = [self._best.constant + a + b for a, b in zip(fore, back, strict=True)]
        good = [np.flatnonzero(each <= upper * (1.0 + SAFE)) for each in least]
        if not good[0].size:
            return None
        first, last = ([int(each[k]) for each in good[1:-1]] for k in (0, -1))
        cost = max(box.cost, float(least[0][0]))
        return Box(cost, box.low + first, box.low + last, box.multiplier)

    def climb(self, steps: int, late: Callable[[], bool] = lambda: False) -> None:
        """Move the multipliers by subgradients, with steps that would reach ``upper`` (Polyak)."""
        if self._best is None:
            self._begin()
        room, once, relaxed, failed = self.room, self.once, self._best, 0
        for _ in range(min(steps, WORK // self._work())):
            if relaxed is None or self.value >= self.upper or late():
                return
            room, once = self._moved(room, once, relaxed)
            relaxed = self.relaxed_at(room, once)
            failed += 1
            if relaxed.value > self.value:
                self.room, self.once, failed = room, once, 0
                self._took(relaxed)
            elif failed == PATIENCE:
                room, once, relaxed, failed = self.room, self.once, self._best, 0
                self._scale *= SHRINK

    def climb_below(self, upper: float, late: Callable[[], bool] = lambda: False) -> None:
        """Climb on where a cheaper plan is known: fewer arcs may be used by one cheaper still."""
        if self._best is not None and upper < self.upper:
            self.upper, self._scale = upper, 1.0
            self._took(self._best)
            self.climb(STEPS, late)

    def _begin(self) -> None:
        """Solve at the first multipliers, where running a task is worth what it costs at least."""
        toll = np.concatenate([[0.0], np.cumsum(self.room.min(axis=0))])
        for task, (early, late) in enumerate(zip(self.early, self.late, strict=True)):
            self.once[task], _, _ = cheapest(self.table[self.row[task]], toll, early, late, late)
        self._took(self.relaxed_at(self.room, self.once))

    def _work(self) -> int:
        """Operations of one step, about; many where there is nothing to climb."""
        if not self.barriers.beside.size and not self.sharp:
            return WORK + 1
        begins, span = (self.high - self.low + 1)[:-1], self.high[1:] - self.low[:-1]
        fluid = 2 * self.fluid.width.size * int(begins @ span)
        tried = 8 * (self.late - self.early + 1)
        around = copies_of(self.barriers)
        beside = sum(int(self.alive[c.stage].sum()) * int(tried[c.task]) for c in around)
        return 1 + fluid + beside + TRIES * sum(each.work for each in self.sharp)

    def _moved(self, room: Floats, once: Floats, relaxed: Relaxed) -> tuple[Floats, Floats]:
        """Return multipliers a step along the subgradient of a relaxed solution at others."""
        load = np.where((room <= 0.0) & (relaxed.load < 0.0), 0.0, relaxed.load)
        # What it is worth to run a task weighs as much as the multipliers of some of its slots.
        slots = 2.0 * self.index.length[self.barriers.beside]
        missing = slots * (1.0 - relaxed.times)
        steep = float((load * load).sum() + missing @ missing)
        step = self._scale * (self.upper - relaxed.value) / max(steep, 1e-300)
        return np.maximum(room + step * load, 0.0), once + step * slots * missing

    def _took(self, relaxed: Relaxed) -> None:
        """Remember the best solution, and which arcs a cheaper plan may use."""
        self._best, self.value = relaxed, min(relaxed.value, self.upper)
        most = self.upper * (1.0 + SAFE) - relaxed.constant
        for stage in range(len(self.stages)):
            self.alive[stage] &= relaxed.through(stage) <= most
            if self.sharp:
                self.sharp[stage].keep(self.alive[stage])

    def relaxed_at(self, room: Floats, once: Floats) -> Relaxed:
        """Let stages and tasks beside choose at some multipliers."""
        steps = [self._steps(stage, room[stage]) for stage in range(len(self.stages))]
        fluid = [self._fluid_arcs(k, each, room[k]) for k, (each, _) in enumerate(steps)]
        arcs = [self._raised(stage, each, room[stage]) for stage, each in enumerate(fluid)]
        beside = [np.zeros(each.shape) for each in arcs]
        chosen, several = list[tuple[Copy, Floats, Ints]](), np.zeros(once.size, dtype=bool)
        for copy in copies_of(self.barriers):
            task, stage = copy.task, copy.stage
            cost, interval = beside_costs(
                self.table[self.row[task]], int(self.early[task]), int(self.late[task]),
                self._paid(copy, room), copy.rule, self.alive[stage], int(self.low[stage]),
                int(self.low[stage + 1]),
            )  # fmt: skip
            several[task] |= not copy.only
            gain = cost if copy.only else np.minimum(cost - once[task], 0.0)
            beside[stage] += gain
            chosen.append((copy, gain, interval))
        arcs = [each + more for each, more in zip(arcs, beside, strict=True)]
        load, times = np.zeros(room.shape), np.zeros(once.size)
        relaxed = Relaxed(float(once[several].sum()), arcs, beside, *shortest(arcs), load, times)
        if np.isfinite(relaxed.value):
            self._count_stages(relaxed, steps, fluid)
            self._count_beside(relaxed, room, chosen)
        return relaxed

    def _fluid_arcs(self, stage: int, steps: Steps, room: Floats) -> Floats:
        """Cost of a stage's own work in its arcs, less what its spare machines are worth."""
        mine = self.stages[stage]
        refund = mine.rented * np.concatenate([[0.0], np.cumsum(room)])
        low, high = self.low[stage : stage + 2], self.high[stage : stage + 2]
        window = (int(low[0]), int(high[0]), int(low[1]), int(high[1]))
        arcs = fluid_arcs(steps, mine.need, mine.least, refund, window)
        return np.where(self.alive[stage], arcs, np.inf)

    def _steps(self, stage: int, room: Floats) -> tuple[Steps, Floats]:
        """Return steps of a stage's fluid work, and what a rented machine does first (slots,).

        Machines that only the stage may use cost nothing to hold, the others their multiplier.
        """
        mine, machines = self.stages[stage], self.index.graph.machines
        own = min(machines - mine.rented, mine.wide)
        first, amount, cost = _rented_steps(self.fluid, self.index.graph.price, room)
        own_amount = np.broadcast_to(own * self.fluid.width, cost.shape)
        amount = np.hstack([own_amount, (mine.wide - own) * amount])
        cost = np.hstack([self.fluid.marginals(self.index.graph.price), cost])
        order = np.argsort(cost, axis=None, kind="stable")
        return Steps(amount, cost, order, np.argsort(order).reshape(cost.shape)), first

    def _paid(self, copy: Copy, room: Floats) -> Multipliers:
        """What a copy pays for machines before, in and after its stage."""
        stage, last = copy.stage, int(self.barriers.last[copy.task])
        after = min(stage + 1, last)
        lengths = self._lengths(after) if after < last else self.index.graph.slots
        return Multipliers(
            room[max(stage - 1, 0)], room[stage], room[after], room[after : last + 1].min(axis=0),
            lengths,
        )  # fmt: skip

    def _lengths(self, stage: int) -> int:
        """Fewest slots of a stage in any arc that is left."""
        begin, end = np.nonzero(self.alive[stage])
        if not begin.size:
            return self.stages[stage].least
        return int((end - begin).min() + self.low[stage + 1] - self.low[stage])

    def _count_stages(
        self, relaxed: Relaxed, steps: list[tuple[Steps, Floats]], fluid: list[Floats]
    ) -> None:
        """Take the machines that stages leave to tasks beside from the load."""
        for stage, (begin, end) in enumerate(relaxed.path()):
            a, b = int(self.low[stage]) + begin, int(self.low[stage + 1]) + end
            mine, (every, first) = self.stages[stage], steps[stage]
            if self.sharp:
                spare = self.sharp[stage].spare_in(begin, end, fluid[stage][begin, end])
                if spare is not None:
                    relaxed.load[stage] -= spare
                    continue
            amount, cost = every.amount[a:b].ravel(), every.cost[a:b]
            order = np.argsort(cost, axis=None, kind="stable")
            taken = np.empty(order.size)
            before = np.cumsum(amount[order]) - amount[order]
            taken[order] = np.clip(mine.need - before, 0.0, amount[order])
            used = taken.reshape(cost.shape)[:, self.fluid.width.size] / first[a:b]
            relaxed.load[stage, a:b] -= mine.rented - used

    def _count_beside(
        self, relaxed: Relaxed, room: Floats, chosen: list[tuple[Copy, Floats, Ints]]
    ) -> None:
        """Add what tasks beside hold to the load, and count how often they run."""
        path = relaxed.path()
        for copy, gain, interval in chosen:
            begin, end = path[copy.stage]
            if copy.only or gain[begin, end] < 0.0:
                relaxed.times[copy.task] += 1.0
                first, last = interval[begin, end]
                slot = np.arange(first, last + 1)
                a, b = int(self.low[copy.stage]) + begin, int(self.low[copy.stage + 1]) + end
                np.add.at(relaxed.load, (self._labels(copy, room, slot, a, b), slot), 1.0)

    def _labels(self, copy: Copy, room: Floats, slot: Ints, a: int, b: int) -> Ints:
        """Return the stage whose multiplier a copy pays in each slot where its stage is a..b-1."""
        stage, last = copy.stage, int(self.barriers.last[copy.task])
        after = min(stage + 1, last)
        beyond = after + room[after : last + 1, slot].argmin(axis=0)
        far = slot >= b + self._paid(copy, room).least
        return np.select([slot < a, slot < b, ~far], [stage - 1, stage, after], beyond)

    def sharpen(self, late: Callable[[], bool] = lambda: False) -> None:
        """Let tasks choose in the arcs that are left, cheapest paths first, and climb on."""
        relaxed = self._best
        if relaxed is None or self.value >= self.upper:
            return
        count = len(self.stages)
        self.sharp = tuple(self._sharp(k, relaxed, WORK // count) for k in range(count))
        self._scale = 1.0
        self._took(self.relaxed_at(self.room, self.once))
        self.climb(STEPS, late)

    def _sharp(self, stage: int, relaxed: Relaxed, budget: int) -> StageArcs:
        """Arcs of a stage whose tasks can choose with so many operations."""
        mine, table, through = self.stages[stage], self.index.table, relaxed.through(stage)
        at = np.argwhere(self.alive[stage] & np.isfinite(through))
        at = at[np.argsort(through[tuple(at.T)], kind="stable")]
        arcs = at + self.low[stage : stage + 2]
        cost = np.cumsum((WORTHS + FIRST_TRIES) * operations(mine.tasks, arcs))
        good = (arcs[:, 1] - arcs[:, 0] <= table.shape[2]) & (cost <= budget)
        return StageArcs.of(
            table, (self.fluid.marginals(self.index.graph.price), self.fluid.width), mine.tasks,
            Room(self.index.graph.machines, mine.rented, self.room[stage]),
            at[good], np.ascontiguousarray(arcs[good]),
        )  # fmt: skip

    def _raised(self, stage: int, arcs: Floats, room: Floats) -> Floats:
        """Costs of arcs as fluids, raised where tasks choose; those of too dear paths need not."""
        if not self.sharp or self._best is None:
            return arcs
        best = self._best
        other = best.fore[stage][:, None] + best.back[stage + 1] + best.beside[stage]
        return self.sharp[stage].raise_to(arcs, room, self.upper - best.constant - other)


def _barrier_windows(
    index: SlotGraphIndex, barriers: Stages, early: Ints, late: Ints
) -> tuple[Ints, Ints]:
    """First and last slot in which each barrier may lie, both ends included (k + 2,).

    It lies where the last task before it ends: no task after it starts sooner.
    """
    end, start, slots = early + index.length, late - index.length + 1, index.graph.slots
    low = [int(end[each.before].max()) for each in barriers.chain]
    high = [int(start[each.after].min()) for each in barriers.chain]
    return np.array([0, *low, slots]), np.array([0, *high, slots])


def _first_multipliers(
    index: SlotGraphIndex, fluid: Fluid, barriers: Stages, plan: SlotPlan
) -> Floats:
    """Multipliers of machines in each stage (stages, slots), from what work costs in a plan.

    In the slots that a stage has in the plan, on the machines that tasks beside leave it, the last
    of its fluid work has a cost; it is what that work is worth in all slots. Where the stage leaves
    machines idle they are worth nothing.
    """
    graph = index.graph
    held = np.zeros(graph.slots)
    for i in barriers.beside:
        held[plan.first[i] : plan.last[i] + 1] += 1.0
    ends = [int(plan.last[each.before].max()) + 1 for each in barriers.chain]
    room, cost = np.zeros((len(barriers), graph.slots)), fluid.marginals(graph.price)
    for stage, (a, b) in enumerate(zip([0, *ends], [*ends, graph.slots], strict=True)):
        tasks = barriers.tasks[stage]
        left = np.maximum(graph.machines - held[a:b], 0.0)
        if tasks.size < left.min(initial=np.inf):
            continue
        amount = np.multiply.outer(np.minimum(left, tasks.size), fluid.width).ravel()
        order = np.argsort(cost[a:b], axis=None, kind="stable")
        taken = np.cumsum(amount[order])
        last = min(np.searchsorted(taken, fluid.work[tasks].sum() * (1.0 - SAFE)), order.size - 1)
        room[stage] = fluid.machine_multipliers(graph.price, cost[a:b].ravel()[order[last]])
    return room


def _rented_steps(fluid: Fluid, price: Floats, room: Floats) -> tuple[Floats, Floats, Floats]:
    """Steps of a machine that costs ``room`` (slots,) to hold: what it does first, amounts, costs.

    A machine that runs at all runs at least up to the step where work costs the least, its holding
    included; the steps beyond cost what they cost anyway. Shapes (slots,), (slots, steps) twice.
    """
    done = np.cumsum(fluid.width)
    cost = fluid.marginals(price)
    each = (np.cumsum(cost * fluid.width, axis=1) + room[:, None]) / done
    best = each.argmin(axis=1)
    first = done[best]
    amount = np.where(np.arange(done.size) > best[:, None], fluid.width, 0.0)
    amount[:, 0] = first
    cost = np.where(np.arange(done.size) > best[:, None], cost, np.inf)
    cost[:, 0] = each[np.arange(best.size), best]
    return first, amount, cost
