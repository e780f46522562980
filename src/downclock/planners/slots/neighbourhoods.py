"""Destroy and repair for large graphs: some machines in some slots are a small graph of their own.

What a plan costs above the separable bound is the sum of what each task and each idle machine loses
(`SeparableBound.losses`), so it is known when it is lost: mostly at both ends, where tasks must
begin and end together. Neighbourhoods are taken from there. All tasks outside keep their slots;
those that cross the border of a neighbourhood are pinned in it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from downclock.planners.slots.cost_quantum import CostQuantum
from downclock.planners.slots.model import SlotGraphIndex, SlotPlan
from downclock.planners.slots.order import machines_of
from downclock.planners.slots.search import CostSearch
from downclock.problem.graph import Edges
from downclock.units import Bools, Floats, Ints

TASKS = 64
"""Tasks of a neighbourhood, about."""

MACHINES = 8
"""Machines of a neighbourhood at most."""

TURNS = 12
"""Orders that are tried in a neighbourhood."""

EVENLY = 0.5
"""Part of the mean loss of a slot that is added to every slot's, so that all have their turn."""


def improve_neighbourhood(search: CostSearch) -> None:
    """Improve the best plan of a search where it loses most.

    A neighbourhood is cut out of it, improved, and put back if it is better.
    """
    plan, separable = search.best, search.separable
    assert plan is not None
    assert separable is not None
    by_task, by_slot = separable.losses(search.index, plan)
    begin, end = _slots(search, plan, by_slot, by_task)
    search.rounds += 1
    machine = machines_of(search.index, plan)
    busy = np.unique(machine[(plan.first < end) & (plan.last >= begin)])
    if busy.size == 0:
        return
    held = np.isin(machine, search.random.permutation(busy)[:MACHINES])
    part = _Neighbourhood.of(search, plan, held, begin, end)
    if np.any(part.free):
        lost = float(by_task[part.tasks[part.free]].sum() + by_slot[begin:end].sum())
        part.improve(search, lost)


def _slots(search: CostSearch, plan: SlotPlan, by_slot: Floats, by_task: Floats) -> tuple[int, int]:
    """Draw the first slot of a neighbourhood and its end: as likely as what is lost there."""
    graph, random = search.graph, search.random
    length = float(np.mean(plan.last - plan.first + 1))
    span = min(graph.slots, int(np.ceil(TASKS * length / min(MACHINES, graph.machines))))
    middle = (plan.first + plan.last) // 2
    lost = by_slot + np.bincount(middle, np.maximum(by_task, 0.0), graph.slots)
    lost += EVENLY * lost.mean() + 1e-300
    about = int(random.choice(graph.slots, p=lost / lost.sum()))
    begin = int(np.clip(about - random.integers(0, span + 1), 0, graph.slots - span))
    return begin, begin + span


@dataclass(frozen=True, slots=True, eq=False)
class _Neighbourhood:
    """A small graph of some of the tasks.

    Attributes:
        plan: what it is cut out of.
        begin: its first slot.
        tasks: those that hold its machines in its slots.
        free: which of them lie inside; the others are pinned (of zero cost).
        index: the small graph.
    """

    plan: SlotPlan
    begin: int
    tasks: Ints
    free: Bools
    index: SlotGraphIndex

    @classmethod
    def of(
        cls, search: CostSearch, plan: SlotPlan, held: Bools, begin: int, end: int
    ) -> _Neighbourhood:
        """Cut out the tasks that are ``held`` (n,) by some machines between two slots."""
        index, graph = search.index, search.graph
        tasks = np.flatnonzero(held & (plan.first < end) & (plan.last >= begin))
        free = (plan.first[tasks] >= begin) & (plan.last[tasks] < end)
        inside = np.zeros(len(graph), dtype=bool)
        inside[tasks[free]] = True
        first, last = np.maximum(plan.first, begin), np.minimum(plan.last, end - 1)
        release, due = np.where(inside, graph.release, first), np.where(inside, graph.due, last)
        before, after = index.before, index.after
        entering, leaving = inside[after] & ~inside[before], inside[before] & ~inside[after]
        np.maximum.at(release, after[entering], plan.last[before[entering]] + 1)
        np.minimum.at(due, before[leaving], plan.first[after[leaving]] - 1)
        own = np.full(len(graph), -1, dtype=np.int64)
        own[tasks] = np.arange(tasks.size)
        within = inside[before] & inside[after]
        pinned = graph.units[graph.curve, -1] * (last - first + 1)
        small = replace(
            graph,
            work=np.where(inside, graph.work, pinned)[tasks],
            edges=Edges(own[before[within]], own[after[within]]),
            machines=min(MACHINES, graph.machines),  # idle ones make up for what is not busy
            price=graph.price[begin:end],
            release=np.maximum(release, begin)[tasks] - begin,
            due=np.minimum(due, end - 1)[tasks] - begin,
            curve=graph.curve[tasks],
        )
        table = _table_of_part(index.table, begin, end)
        row = np.where(free, index.row[tasks], table.shape[0] - 1)
        own_index = replace(SlotGraphIndex.of(small), row=row, table=table)
        return cls(plan, begin, tasks, free, own_index)

    def improve(self, parent: CostSearch, lost: float) -> None:
        """Search for a cheaper plan, and let the whole graph's search keep it."""
        end = self.begin + self.index.graph.slots - 1
        first = np.maximum(self.plan.first[self.tasks], self.begin) - self.begin
        last = np.minimum(self.plan.last[self.tasks], end) - self.begin
        cost, left_s = self.index.plan(first, last).cost, parent.limit_s - parent.elapsed_s
        nothing = CostQuantum(0.0, 0.0)
        search = CostSearch(
            self.index, nothing, cost - lost, parent.random, clock=parent.clock, limit_s=left_s
        )
        present = search.improve(first, last, most=2)
        for _ in range(TURNS):
            if present is None or search.late or search.closed:
                break
            present = search.disturb(present)
        found = search.best
        if found is not None and found.cost < cost * (1.0 - 1e-12):
            first, last = self.plan.first.copy(), self.plan.last.copy()
            first[self.tasks[self.free]] = found.first[self.free] + self.begin
            last[self.tasks[self.free]] = found.last[self.free] + self.begin
            parent.keep(parent.index.plan(first, last))


def _table_of_part(table: Floats, begin: int, end: int) -> Floats:
    """Return the table of some slots, with a row of zeros for pinned tasks."""
    span = end - begin
    longest = min(span, table.shape[2])
    part = np.zeros((table.shape[0] + 1, span, longest))
    part[:-1] = table[:, begin:end, :longest]
    part[:, np.arange(span)[:, None] + np.arange(longest) >= span] = np.inf
    return part
