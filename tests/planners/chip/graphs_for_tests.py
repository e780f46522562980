"""Small graphs and plain twins for the tests of task graphs."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from downclock.planners.chip.clocks import ChipPower
from downclock.planners.chip.model import WorkGraph
from downclock.planners.chip.segments import ClockedRows
from downclock.problem.graph import Edges
from downclock.workloads.task_graph import TaskGraph


def graph_of(work: list[float], *edges: tuple[int, int]) -> WorkGraph:
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return WorkGraph.of(np.array(work, dtype=float), Edges(pairs[:, 0], pairs[:, 1]))


EXAMPLE1 = graph_of(
    [10, 20, 15, 40, 15, 10],
    *[(0, i) for i in range(1, 5)],
    *[(i, 5) for i in range(1, 5)],
)
"""gerards Example 1."""


def energy_of(graph: WorkGraph, rows: ClockedRows, power: ChipPower) -> float:
    """Energy of rows with a clock per core."""
    return float(graph.work[rows.task] * rows.share @ power.per_cycle(rows.clock))


def named(graph: WorkGraph) -> TaskGraph:
    names = np.array([f"t{i}" for i in range(len(graph))], dtype=object)
    return TaskGraph("graph", names, graph.work, Edges(graph.before, graph.succ))


@st.composite
def random_graphs(draw: st.DrawFn, most: int = 12, whole: bool = True) -> WorkGraph:
    n = draw(st.integers(1, most))
    sizes = st.integers(0, 9) if whole else st.floats(0.0, 9.0, allow_subnormal=False)
    work = draw(st.lists(sizes, min_size=n, max_size=n))
    work[0] = max(work[0], 1)
    pairs = [(i, j) for j in range(n) for i in range(j)]
    kept = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=2 * n)) if pairs else []
    shuffled = draw(st.permutations(range(n)))
    edges = [(shuffled[i], shuffled[j]) for i, j in kept]
    return graph_of([float(round(w, 3)) for w in work], *edges)


def plain_greedy(graph: WorkGraph, cores: int, queue: list[int]) -> tuple[list[float], list[int]]:
    """The list rule in a few plain lines: at each end, release, then fill free cores."""
    preds = {
        i: set(graph.pred[graph.pred_at[i] : graph.pred_at[i + 1]].tolist())
        for i in range(len(graph))
    }
    done: set[int] = set()
    start, core = [0.0] * len(graph), [-1] * len(graph)
    started: set[int] = set()
    running: dict[int, tuple[float, int]] = {}
    now = 0.0
    while len(done) < len(graph):
        ready = [i for i in queue if i not in started and preds[i] <= done]
        empty = [i for i in ready if graph.work[i] == 0.0]
        if empty:
            for i in empty:
                start[i] = now
            started |= set(empty)
            done |= set(empty)
            continue
        for i in ready:
            free = [c for c in range(cores) if c not in running]
            if not free:
                break
            running[free[0]] = (now + graph.work[i], i)
            start[i], core[i] = now, free[0]
            started.add(i)
        now = min(end for end, _ in running.values())
        for c in [c for c, (end, _) in running.items() if end <= now]:
            done.add(running.pop(c)[1])
    return start, core


def least_weighted_makespan(graph: WorkGraph, cores: int, alpha: float = 3.0) -> float:
    """Try every whole start time; for a handful of tasks with whole work."""
    horizon = int(graph.total_work)
    work = graph.work.astype(int)
    choices = [range(horizon - w + 1) for w in work]
    best = np.inf
    for start in itertools.product(*choices):
        if any(
            start[i] + work[i] > start[j] for i, j in zip(graph.before, graph.succ, strict=True)
        ):
            continue
        active = np.zeros(horizon, dtype=int)
        for s, w in zip(start, work, strict=True):
            active[s : s + w] += 1
        if active.max() <= cores:
            best = min(best, float((active ** (1.0 / alpha))[active > 0].sum()))
    return best


def assert_valid(graph: WorkGraph, start: np.ndarray, core: np.ndarray, cores: int) -> None:
    """Edges hold, no core runs two tasks at once, and every task with work has a core."""
    end = start + graph.work
    assert np.all(end[graph.before] <= start[graph.succ] + 1e-9)
    assert np.all((core >= 0) == (graph.work > 0.0))
    assert core.max() < cores
    for c in range(cores):
        mine = np.flatnonzero(core == c)
        queue = mine[np.argsort(start[mine])]
        assert np.all(end[queue[:-1]] <= start[queue[1:]] + 1e-9)
