"""Tiny slot graphs and the plainest way to solve them: try everything."""

from __future__ import annotations

from itertools import product

import numpy as np

from downclock.planners.slots.model import SlotGraph
from downclock.problem.graph import Edges


def tiny_graph(
    seed: int, *, tasks: int = 4, levels: int = 2, slots: tuple[int, int] = (4, 7)
) -> SlotGraph:
    """Up to ``tasks`` tasks on one or two machines; may be infeasible."""
    random = np.random.default_rng(seed)
    n = int(random.integers(1, tasks + 1))
    pairs = [(i, j) for j in range(n) for i in range(j) if random.random() < 0.4]
    before, after = np.array([p[0] for p in pairs], int), np.array([p[1] for p in pairs], int)
    units = np.arange(1, levels + 1)
    price = random.choice([0.0, 0.2, 0.5, 1.0, float(random.random())], random.integers(*slots) + 1)
    return SlotGraph(
        random.integers(1, 2 * levels + 2, n),
        Edges(before, after),
        int(random.integers(1, 3)),
        price,
        units,
        (units / levels) ** 2,
    )


def interval_costs(graph: SlotGraph, task: int) -> dict[tuple[int, int], float]:
    """Least cost of a task in every interval, by trying every level in every slot."""
    choices = [(0, 0.0)] if graph.pause else []
    choices += list(
        zip(
            graph.units[graph.curve[task]].tolist(),
            graph.power[graph.curve[task]].tolist(),
            strict=True,
        )
    )
    found: dict[tuple[int, int], float] = {}
    for first in range(int(graph.release[task]), int(graph.due[task]) + 1):
        for last in range(first, int(graph.due[task]) + 1):
            best = np.inf
            rates = graph.price[first : last + 1]
            for levels in product(choices, repeat=rates.size):
                if sum(u for u, _ in levels) >= graph.work[task]:
                    cost = sum(r * p for r, (_, p) in zip(rates, levels, strict=True))
                    best = min(best, float(cost))
            if np.isfinite(best):
                found[first, last] = best
    return found


def brute_force(graph: SlotGraph) -> float:
    """Least cost of any schedule; infinite where there is none."""
    options = [list(interval_costs(graph, i).items()) for i in range(len(graph))]
    before, after = graph.edges.before.tolist(), graph.edges.after.tolist()
    least = [min((c for _, c in row), default=np.inf) for row in options]
    best = np.inf

    def extend(chosen: list[tuple[int, int]], load: np.ndarray, cost: float) -> None:
        nonlocal best
        i = len(chosen)
        if cost + sum(least[i:]) >= best:
            return
        if i == len(graph):
            best = cost
            return
        preds = [chosen[b][1] for b, a in zip(before, after, strict=True) if a == i]
        for (first, last), price in options[i]:
            if any(first <= end for end in preds):
                continue
            busy = load.copy()
            busy[first : last + 1] += 1
            if busy.max() <= graph.machines:
                extend([*chosen, (first, last)], busy, cost + price)

    extend([], np.zeros(graph.slots, dtype=int), 0.0)
    return best
