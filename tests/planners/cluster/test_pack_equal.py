"""Equalising one server: against brute force over ends and run times."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.engine.view import View
from downclock.planners.cluster.columns import CurveTables
from downclock.planners.cluster.kernels.curves import energy_j
from downclock.planners.cluster.kernels.equalise import equalise
from downclock.planners.cluster.search import Batch
from downclock.workloads import mei

IDLE_W = 37.0


def two_tasks(seed: int) -> Batch:
    problem = mei.offline(seed, utilisation=0.002, cluster=mei.Cluster(pairs=16))
    view, tables = View(problem), CurveTables.of(problem.platform)
    every = view.tasks.add(problem.tasks, np.arange(len(problem.tasks)))
    due_s = problem.tasks.deadline_s.copy()
    tables.learn(view, every, due_s, 1.0, dvfs=True, priced=False)
    return Batch.of(problem.platform, tables, due_s, every)


@pytest.mark.parametrize("seed", range(8))
def test_two_processors_end_where_the_sum_of_their_energies_is_least(seed: int) -> None:
    batch = two_tasks(seed)
    curves, slopes, table = batch.curves, batch.slopes, batch.table
    rows, deadline_s = np.array([0, 1]), batch.deadline_s[:2]
    times = np.zeros(2)
    cost = equalise(
        curves, table[:2], slopes, rows, deadline_s, np.array([0, 1, 2]), 2 * IDLE_W, times
    )

    def alone_j(i: int, end_s: float) -> float:
        reach = min(end_s, curves.rows["long_s"][i], deadline_s[i])
        if reach < curves.rows["short_s"][i]:
            return np.inf
        return energy_j(curves, i, reach) - IDLE_W * reach

    short_s, long_s = (curves.rows[name][:2].max() for name in ("short_s", "long_s"))
    ends = np.linspace(short_s, long_s, 4001)
    brute = min(2 * IDLE_W * end + alone_j(0, end) + alone_j(1, end) for end in ends)
    # The grid steps by 0.1 % of the range and cost is flat to second order at the best end.
    assert cost == pytest.approx(brute, rel=2e-5)
    assert np.all(times <= deadline_s * (1 + 1e-9))


def test_a_chain_shares_one_slope_unless_a_deadline_splits_it() -> None:
    batch = two_tasks(1)
    curves, slopes, table = batch.curves, batch.slopes, batch.table
    times, far = np.zeros(2), np.full(2, 1e9)
    equalise(curves, table[:2], slopes, np.arange(2), far, np.array([0, 2]), 20 * IDLE_W, times)
    step = 1e-3 * times
    rise = [
        (energy_j(curves, i, times[i] + step[i]) - energy_j(curves, i, times[i] - step[i]))
        / (2 * step[i])
        for i in range(2)
    ]
    # Both run where a second less costs what the awake server draws: 20 - 1 idle powers.
    assert rise == pytest.approx([-19 * IDLE_W] * 2, rel=0.02)


def test_impossible_deadlines_cost_infinity() -> None:
    batch = two_tasks(2)
    curves, slopes, table = batch.curves, batch.slopes, batch.table
    times, tight = np.zeros(2), curves.rows["short_s"][:2] * 1.1
    first = np.array([0, 2])
    assert equalise(curves, table[:2], slopes, np.arange(2), tight, first, 74.0, times) == np.inf
