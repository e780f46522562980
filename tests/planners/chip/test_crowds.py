"""Counting tasks beside cores: never above what an enumeration of all schedules gives."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from downclock.planners.chip.length import behind_joins, least_length
from downclock.planners.chip.model import WorkGraph
from downclock.planners.crowds import busiest, crowded
from downclock.problem.graph import Edges
from downclock.units import Floats


def loads(work: Floats, cores: int) -> list[Floats]:
    """Loads of the cores, the busiest first, of every assignment."""
    found = []
    for chosen in product(range(cores), repeat=work.size):
        load = np.bincount(np.array(chosen), weights=work, minlength=cores)
        found.append(np.sort(load)[::-1])
    return found


def least_end(head: Floats, work: Floats, tail: Floats, cores: int) -> float:
    """Least end of independent tasks with heads and tails, over all orders and assignments."""
    best = np.inf
    for order in permutations(range(work.size)):
        free, end = [0.0] * cores, 0.0
        for i in order:  # the soonest free core: every semi-active schedule is some order
            core = int(np.argmin(free))
            free[core] = max(free[core], head[i]) + work[i]
            end = max(end, free[core] + tail[i])
        best = min(best, end)
    return best


@pytest.mark.parametrize("seed", range(20))
def test_the_busiest_cores_have_no_less_in_any_assignment(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cores, work = int(rng.integers(2, 4)), rng.integers(1, 30, int(rng.integers(3, 8))) + 0.0
    least = np.min([np.cumsum(load) for load in loads(work, cores)], axis=0)
    assert np.all(busiest(work, cores) <= least + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_a_crowd_ends_no_later_than_its_best_schedule(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    cores, n = int(rng.integers(2, 4)), int(rng.integers(3, 7))
    head, tail = rng.integers(0, 12, n) + 0.0, rng.integers(0, 12, n) + 0.0
    work = rng.integers(5, 20, n) + 0.0
    assert crowded(head, work, tail, cores) <= least_end(head, work, tail, cores) + 1e-9


def test_one_task_more_than_cores_takes_two_rounds() -> None:
    none = np.zeros(10)
    assert crowded(none, np.full(10, 5.0), none, 9) == 10.0
    np.testing.assert_array_equal(busiest(np.full(11, 5.0), 9)[:3], [10.0, 20.0, 15.0])


def test_the_shortest_goes_with_the_longest() -> None:
    """Six of eight tasks share three of five cores: 4 + 9, 5 + 8, 6 + 7; three would take 15."""
    work, none = np.array([12.0, 12.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0]), np.zeros(8)
    assert crowded(none, work, none, 5) == 13.0
    assert busiest(work, 5)[0] == 13.0  # 7 + 6, of the six longest


def test_a_join_starts_after_two_rounds_of_what_precedes_it() -> None:
    """Ten tasks of 5 on nine cores, a join of 2, ten tasks of 5 again: 10 + 2 + 10."""
    before = np.concatenate([np.arange(10), np.full(10, 10)])
    after = np.concatenate([np.full(10, 10), np.arange(11, 21)])
    work = np.full(21, 5.0)
    work[10] = 2.0
    graph = WorkGraph.of(work, Edges(before, after))
    head = behind_joins(graph, 9, graph.top_levels())
    assert head[10] == 10.0
    assert np.all(head[11:] == 12.0)
    assert least_length(graph, 9) == pytest.approx(22.0)


def test_two_workflows_side_by_side_wait_for_their_joins() -> None:
    """No pivot cuts both, but each join waits for ten tasks on nine cores."""
    one = np.concatenate([np.arange(10), np.full(10, 10)])
    two = np.concatenate([np.full(10, 10), np.arange(11, 21)])
    work = np.tile(np.append(np.full(10, 5.0), np.full(11, 10.0)), 2)
    graph = WorkGraph.of(work, Edges(np.append(one, one + 21), np.append(two, two + 21)))
    # twenty tasks of 10 on nine cores, three on some core, none before 10 + 10
    assert least_length(graph, 9) == pytest.approx(50.0)
    assert least_length(graph, 9) > work.sum() / 9
