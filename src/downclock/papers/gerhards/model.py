"""Fig. 1 (static power) and the program of section 4, printed and corrected."""

from __future__ import annotations

import numpy as np

from downclock.papers.gerhards import PAPER, published
from downclock.papers.rows import Item, Row, Settings, judged
from downclock.planners.slots.model import SlotGraph
from downclock.planners.slots.printed import solve_program
from downclock.planners.slots.solve import solve_slots
from downclock.workloads.gerhards import random_graph


def best_clock(static: float) -> float:
    """Clock of least energy per work, s/f + (1-s) f²: the cube root of s / (2 (1-s))."""
    return float(np.cbrt(static / (2.0 * (1.0 - static))))


def fig1(_: Settings) -> list[Row]:
    """The clock of least energy with half the power static."""
    why = "the printed formula has its minimum at (1/2)^(1/3); 0.825 costs 0.2 % more energy"
    value = published.BEST_CLOCK_HALF_STATIC
    return [
        judged(PAPER, "fig1", "best clock, s=0.5", value, best_clock(0.5), "ratio", digits=3,
               because=why)
    ]  # fmt: skip


def tiny_case(seed: int) -> SlotGraph:
    """Three or four tasks of one or two slots on two machines, with little slack."""
    drawn = random_graph(3 + seed % 2, meshing="middle", reach="short", seed=seed)
    work = 1 + (drawn.work.astype(np.int64) - 1) % 4
    units = np.array([1, 2])
    random = np.random.default_rng(seed)
    slots = int(-(-work // 2).sum()) + seed % 2
    return SlotGraph(work, drawn.edges, 2, random.uniform(0.2, 1.0, slots), units, (units / 2) ** 2)


def program(settings: Settings) -> list[Row]:
    """Share of tiny cases on which the printed program fails, and the corrected one agrees."""
    infeasible = broken = cheaper = agree = 0
    for seed in settings.seeds:
        graph = tiny_case(seed)
        ours = solve_slots(graph, rounds=100, proof_s=5.0)
        corrected, printed = solve_program(graph, "corrected"), solve_program(graph, "printed")
        agree += abs(corrected.cost - ours.cost) <= 1e-6 * ours.cost
        infeasible += printed.status == "infeasible"
        broken += printed.broken_edges(graph) > 0
        cheaper += printed.cost < corrected.cost - 1e-9
    share = 100.0 / settings.sets
    why = "the paper prints no such count; equations (7), (9) and (10) are off by one"
    named = {
        "corrected program equals ours": agree,
        "printed program infeasible": infeasible,
        "printed program breaks an edge": broken,
        "printed program below the optimum": cheaper,
    }
    return [
        judged(PAPER, "program", name, None, share * count, "% of cases", because=why)
        for name, count in named.items()
    ]


ITEMS = (
    Item("fig1", "Fig. 1: energy per work with static power", fig1),
    Item("program", "Section 4: the printed and the corrected program", program),
)
