"""Equalising one server: against brute force over ends and run times."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.engine.view import View
from downclock.planners.cluster.board import make_room, new_board
from downclock.planners.cluster.columns import CurveTables
from downclock.planners.cluster.kernels.curves import energy_j
from downclock.planners.cluster.kernels.equalise import equalise
from downclock.planners.cluster.search import BELOW_W, Batch
from downclock.workloads import mei

IDLE_W = 37.0


def two_tasks(seed: int) -> Batch:
    problem = mei.offline(seed, utilisation=0.002, cluster=mei.Cluster(pairs=16))
    view, tables = View(problem), CurveTables.of(problem.platform)
    every = view.tasks.add(problem.tasks, np.arange(len(problem.tasks)))
    due_s = problem.tasks.deadline_s
    tables.learn(view, every, due_s, 1.0, dvfs=True, priced=False)
    board = new_board(problem.platform, late=True)
    make_room(board, every.size)
    board.tasks["deadline_s"][every] = due_s
    return Batch.of(tables, board, every, 0.0)


def equalised(
    batch: Batch,
    due_s: np.ndarray,
    first: tuple[int, ...],
    *,
    awake_w: float,
    starts_s: tuple[float, ...] | None = None,
    least_s: float = 0.0,
) -> tuple[float, np.ndarray]:
    """Cost and run times of the first two tasks, on chains that begin at some times."""
    times = np.zeros(2)
    starts = np.array(starts_s or (0.0,) * (len(first) - 1))
    cost = equalise(
        batch.curves, batch.table[:2, 0], BELOW_W, np.arange(2), due_s, np.array(first), starts,
        least_s, awake_w, times,
    )  # fmt: skip
    return cost, times


# One processor may be free later than the other, and the server be awake for a while anyway.
@pytest.mark.parametrize(("later_s", "least_s"), [(0.0, 0.0), (4000.0, 0.0), (4000.0, 9000.0)])
@pytest.mark.parametrize("seed", range(8))
def test_two_processors_end_where_the_sum_of_their_energies_is_least(
    seed: int, later_s: float, least_s: float
) -> None:
    batch = two_tasks(seed)
    curves, due_s, starts = batch.curves, batch.due_s[:2], (0.0, later_s)
    cost, times = equalised(
        batch, due_s, (0, 1, 2), awake_w=2 * IDLE_W, starts_s=starts, least_s=least_s
    )

    def alone_j(i: int, end_s: float) -> float:
        reach = min(end_s - starts[i], curves.rows["long_s"][i], due_s[i] - starts[i])
        if reach < curves.rows["short_s"][i]:
            return np.inf
        return energy_j(curves, i, reach) - IDLE_W * reach

    if later_s + curves.rows["short_s"][1] > due_s[1]:
        assert cost == np.inf
        return
    ends = np.linspace(least_s, later_s + curves.rows["long_s"][:2].max() + least_s, 8001)
    brute = min(2 * IDLE_W * (end - least_s) + alone_j(0, end) + alone_j(1, end) for end in ends)
    # The grid steps by 0.02 % of the range and cost is flat to second order at the best end.
    assert cost == pytest.approx(brute, rel=2e-5, abs=2e-5 * curves.rows["free_j"][:2].sum())
    assert np.all(np.array(starts) + times <= due_s * (1 + 1e-9))


def test_a_chain_shares_one_slope_unless_a_deadline_splits_it() -> None:
    batch, far = two_tasks(1), np.full(2, 1e9)
    times = equalised(batch, far, (0, 2), awake_w=20 * IDLE_W)[1]
    step = 1e-3 * times
    rise = [
        (
            energy_j(batch.curves, i, times[i] + step[i])
            - energy_j(batch.curves, i, times[i] - step[i])
        )
        / (2 * step[i])
        for i in range(2)
    ]
    # Both run where a second less costs what the awake server draws: 20 - 1 idle powers.
    assert rise == pytest.approx([-19 * IDLE_W] * 2, rel=0.02)


def test_impossible_deadlines_cost_infinity() -> None:
    batch = two_tasks(2)
    tight = batch.curves.rows["short_s"][:2] * 1.1
    assert equalised(batch, tight, (0, 2), awake_w=74.0)[0] == np.inf
    assert equalised(batch, tight, (0, 1, 2), awake_w=74.0, starts_s=(0.0, 1e6))[0] == np.inf
    assert np.isfinite(equalised(batch, tight, (0, 1, 2), awake_w=74.0)[0])
