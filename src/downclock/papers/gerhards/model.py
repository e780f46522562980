"""Fig. 1 (static power) and the program of section 4, printed and corrected."""

from __future__ import annotations

import numpy as np

from downclock.papers.gerhards import PAPER, published
from downclock.papers.rows import Item, Row, Settings, against_itself, claimed, ours_only
from downclock.planners.slots.model import SlotGraph
from downclock.planners.slots.printed import solve_program
from downclock.planners.slots.solve import solve_slots
from downclock.workloads.gerhards import random_graph


def best_clock(static: float) -> float:
    """Clock of least energy per work, s/f + (1-s) f²: the cube root of s / (2 (1-s))."""
    return float(np.cbrt(static / (2.0 * (1.0 - static))))


def fig1(_: Settings) -> list[Row]:
    """The clock of least energy with half the power static."""
    return [
        against_itself((PAPER, "fig1"), "best clock, s=0.5", published.BEST_CLOCK_HALF_STATIC,
                       best_clock(0.5), "ratio", digits=3,
                       note="the minimum of the printed formula, (1/2)^(1/3)")
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
    """Share of tiny cases that the printed program gets wrong, and the corrected one right."""
    infeasible = broken = cheaper = apart = 0
    for seed in settings.seeds:
        graph = tiny_case(seed)
        ours = solve_slots(graph, rounds=100, proof_s=5.0)
        corrected, literal = solve_program(graph, "corrected"), solve_program(graph, "printed")
        apart += abs(corrected.cost - ours.cost) > 1e-6 * ours.cost
        infeasible += literal.status == "infeasible"
        broken += literal.broken_edges(graph) > 0
        cheaper += literal.cost < corrected.cost - 1e-9
    where, unit, share = (PAPER, "program"), "% of cases", 100.0 / settings.sets
    why = f"{settings.sets} tiny cases; equations (7), (9) and (10) are off by one"
    return [
        claimed(where, "printed program finds no schedule though there is one", "<", 0.1,
                share * infeasible, unit, why),
        claimed(where, "printed program breaks an edge", "<", 0.1, share * broken, unit, why),
        ours_only(where, "printed program below the optimum", share * cheaper, unit, why),
        ours_only(where, "corrected program differs from ours", share * apart, unit, why),
    ]  # fmt: skip


ITEMS = (
    Item("fig1", "Fig. 1: energy per work with static power", fig1),
    Item("program", "Section 4: the printed and the corrected program", program),
)
