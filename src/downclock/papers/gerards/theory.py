"""Examples 1 and 2, Figs. 5 and 6, and what the theory says about two cores."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np

from downclock.papers.gerards import PAPER, published
from downclock.papers.gerards.readings import CORRECTED, PUBLISHED
from downclock.papers.rows import (
    Item,
    Row,
    Settings,
    against_itself,
    claimed,
    not_run,
    ours_only,
    printed,
)
from downclock.planners.chip.clocks import ChipPower, global_clocks, single_clock
from downclock.planners.chip.lists import by_most, greedy
from downclock.planners.chip.model import WorkGraph
from downclock.units import Floats
from downclock.workloads.gerhards import random_graph


def example1(_: Settings) -> list[Row]:
    """Six tasks on three cores: 30, 10 and 20 cycles with 1, 2 and 3 active cores, d = 100."""
    omega = np.array([0.0, 30.0, 10.0, 20.0])
    best = global_clocks(omega, 100.0, ChipPower())
    single = single_clock(omega, 100.0, ChipPower(), static_aware=False)
    ours = {"energy": (best.energy, "J", 2), "one clock": (single.energy, "J", 2)}
    ours |= {f"f{m}": (float(best.clock[m]), "", 3) for m in (1, 2, 3)}
    return [
        printed((PAPER, "example1"), name, value, ours[name][0], ours[name][1],
                digits=ours[name][2])
        for name, value in published.EXAMPLE1.items()
    ]  # fmt: skip


def example2(_: Settings) -> list[Row]:
    """The least makespan is not the least energy; d = 10."""
    where = (PAPER, "example2")
    least, slip, alternative = (
        global_clocks(np.array([0.0, *omega]), 10.0, ChipPower()).energy
        for omega in ((0.0, 10.25, 5.0), PUBLISHED.example2, CORRECTED.example2)
    )
    text = published.EXAMPLE2
    note = f"the printed cycles, which give {slip:.3f}, add up to 36 units of work; the tasks have"
    return [
        printed(where, "least makespan", text["least makespan"], least, "J", digits=3),
        against_itself(where, "alternative", text["alternative"], alternative, "J", digits=3,
                       note=f"{note} 35.5"),
        claimed(where, "alternative less the least makespan", "<", 0.0, alternative - least, "J"),
    ]  # fmt: skip


def fig5(_: Settings) -> list[Row]:
    """Theorem 2: weighted makespan of a schedule of least makespan, at worst."""
    where, far = (PAPER, "fig5"), 2**60
    growth = np.log2(approximation_ratio(2 * far) / approximation_ratio(far))
    return [
        claimed(where, "ratio, M=6", "<", published.FIG5_SIX_CORES, approximation_ratio(6), ""),
        ours_only(where, "ratio, M=10", approximation_ratio(10), ""),
        against_itself(where, "exponent of M in Theorem 2's O()", published.THEOREM2_EXPONENT,
                       float(growth), "", digits=3, note="the bound printed just above it grows"),
        claimed(where, "the proof's ratio is strictly concave in S*, M=6: greatest curvature",
                "<", 0.0, _curvature(6), "", "only quasi-concave, which is enough for the proof"),
    ]  # fmt: skip


def _curvature(cores: int) -> float:
    """Greatest second difference of Theorem 2's ratio over S* in [W/M, W], W = 1, alpha = 3."""
    s = np.linspace(1.0 / cores, 1.0, 1001)
    g = np.cbrt(cores)
    ratio = s ** (2.0 / 3.0) * (cores - 1.0) / ((g - 1.0) + s * (cores - g))
    return float(np.max(np.diff(ratio, 2)) / (s[1] - s[0]) ** 2)


def fig6(_: Settings) -> list[Row]:
    """Greatest saving of clocks that follow the active cores."""
    where, limit = (PAPER, "fig6"), published.FIG6_SIXTEEN_CORES
    rows = [ours_only(where, f"saving, M={m}", 100.0 * largest_saving(m), "%") for m in (2, 4, 8)]
    most = claimed(where, "saving, M=16, 'up to'", ">", limit, 100.0 * largest_saving(16), "%")
    return [most, *rows]


def two_cores(settings: Settings) -> list[Row]:
    """Lemma 6 and Proposition 1."""
    where = (PAPER, "two-cores")
    graphs = 30 if settings.sets >= 10 else 3 * settings.sets
    missed = 0
    for seed in range(settings.seed, settings.seed + graphs):
        graph = unit_graph(seed)
        missed += coffman_graham(graph) != shortest(graph)
    swapped = 3.0 * (2.0 - np.cbrt(2.0)) + 2.0 * (np.cbrt(2.0) - 1.0)
    correct = two_core_weighted_makespan(3.0, 2.0)
    return [
        against_itself(where, "Lemma 6, W=3, S=2", float(swapped), correct, "", digits=3,
                       note="the coefficients of W and S are exchanged; omega = (1, 1)"),
        claimed(where, f"Proposition 1 (i): of {graphs} graphs of unit tasks, those where"
                " Coffman-Graham misses the least makespan", "<", 0.5, float(missed), "graphs"),
        not_run(where, "Proposition 1 (ii): a PTAS for independent tasks", None, "",
                "no such scheme is built here"),
    ]  # fmt: skip


def unit_graph(seed: int) -> WorkGraph:
    """Twelve tasks of one cycle each."""
    meshing = ("low", "middle", "high")[seed % 3]
    drawn = random_graph(12, meshing=meshing, reach="random", seed=seed)  # type: ignore[arg-type]
    return WorkGraph.of(np.ones(len(drawn)), drawn.edges)


def coffman_graham(graph: WorkGraph) -> float:
    """Makespan on two cores of the list by Coffman and Graham's labels."""
    after = [set(graph.succ[a:b].tolist()) for a, b in pairwise(graph.succ_at)]
    follow = [_all_after(after, task) for task in range(len(graph))]
    direct = [each - set().union(*(follow[x] for x in each)) for each in after]
    label: dict[int, int] = {}
    while len(label) < len(graph):
        ready = [t for t in range(len(graph)) if t not in label and direct[t] <= label.keys()]
        chosen = min(ready, key=lambda t: sorted((label[x] for x in direct[t]), reverse=True))
        label[chosen] = len(label)
    priority = np.array([label[task] for task in range(len(graph))], dtype=np.float64)
    placed = greedy(graph, 2, by_most(priority))
    return float((placed.start + graph.work).max())


def _all_after(after: list[set[int]], task: int) -> set[int]:
    """Every task that comes after one."""
    found: set[int] = set()
    left = list(after[task])
    while left:
        found.add(left.pop())
        left = list(set().union(*(after[t] for t in found)) - found)
    return found


def shortest(graph: WorkGraph) -> float:
    """Least makespan of unit tasks on two cores, by trying every choice."""
    before = [set(graph.pred[a:b].tolist()) for a, b in pairwise(graph.pred_at)]
    front, steps = {frozenset[int]()}, 0
    while not any(len(done) == len(graph) for done in front):
        reached = set()
        for done in front:
            ready = [t for t in range(len(graph)) if t not in done and before[t] <= done]
            for pair in combinations(ready, min(2, len(ready))):
                reached.add(done | set(pair))
        front, steps = reached, steps + 1
    return float(steps)


ITEMS = (
    Item("example1", "Example 1: optimal clocks of six tasks", example1),
    Item("example2", "Example 2: least makespan is not least energy", example2),
    Item("fig5", "Fig. 5, Theorem 2: how far makespan schedules can be off", fig5),
    Item("fig6", "Fig. 6: what clocks that follow the active cores can save", fig6),
    Item("two-cores", "Lemma 6, Proposition 1: two cores", two_cores),
)


def approximation_ratio(cores: int, alpha: float = 3.0) -> float:
    """Theorem 2: weighted makespan / least one, where the makespan is the least.

    The worst total work is taken without asking whether M cores can do it, as in the paper.
    """
    g = cores ** (1.0 / alpha)
    if cores == 1:
        return 1.0
    length = (alpha - 1.0) * (g - 1.0) / (cores - g)
    return float((cores - 1.0) * length ** (1.0 - 1.0 / alpha) / (alpha * (g - 1.0)))


def best_to_single(length: Floats | float, cores: int, alpha: float = 3.0) -> Floats:
    """Energy of the best parallelism over that of one clock, for makespan / work (Fig. 6).

    ``length`` lies in [1 / cores, 1]; no static power.
    """
    s = np.asarray(length, dtype=np.float64)
    g = cores ** (1.0 / alpha)
    weighted = ((g - 1.0) + s * (cores - g)) / (cores - 1.0)
    return np.asarray(weighted**alpha / s ** (alpha - 1.0))


def largest_saving(cores: int, alpha: float = 3.0) -> float:
    """Greatest fraction saved by clocks that follow the active cores (the peak of Fig. 6).

    The ratio is least where its derivative is zero: ``s (M - g) = (alpha - 1) (g - 1)``.
    """
    g = cores ** (1.0 / alpha)
    s = np.clip((alpha - 1.0) * (g - 1.0) / (cores - g), 1.0 / cores, 1.0)
    return float(1.0 - best_to_single(s, cores, alpha))


def two_core_weighted_makespan(work: float, length: float, alpha: float = 3.0) -> float:
    """S̄ on two cores: it grows with the makespan alone (Lemma 6).

    The paper prints the two coefficients exchanged.
    """
    g = 2.0 ** (1.0 / alpha)
    return float(work * (g - 1.0) + length * (2.0 - g))
