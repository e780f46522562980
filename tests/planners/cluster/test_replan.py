"""The order in which planned tasks are placed anew."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from downclock.planners.cluster.kernels import replan as pack_replan

in_turn = getattr(pack_replan._in_turn, "py_func", pack_replan._in_turn)


def in_order(run_s: np.ndarray, deadline_s: np.ndarray, now_s: float) -> list[int]:
    n = run_s.size
    cluster = SimpleNamespace(
        processors=SimpleNamespace(kind=np.zeros(1, np.int64)),
        tasks=SimpleNamespace(deadline_s=deadline_s),
        kinds=np.zeros((n, 1), np.int64),
        curves=SimpleNamespace(rows=SimpleNamespace(free_s=run_s)),
    )
    return in_turn(cluster, np.arange(n), np.zeros(n, np.int64), now_s).tolist()


def test_urgent_tasks_come_by_slack_to_the_last_digit_then_the_longest(monkeypatch) -> None:
    monkeypatch.setattr(pack_replan, "row_of", lambda c, i, k: i)
    run_s = np.array([100.0, 100.0, 500.0, 100.0, 300.0])
    slack_s = np.array([9.00002, 9.0, 1e4, 9.00001, 1e4])  # urgent: less than a fifth of the run
    assert in_order(run_s, 50.0 + run_s + slack_s, 50.0) == [1, 3, 0, 2, 4]


def test_tasks_that_are_alike_keep_their_order(monkeypatch) -> None:
    monkeypatch.setattr(pack_replan, "row_of", lambda c, i, k: i)
    assert in_order(np.full(3, 10.0), np.full(3, 1e3), 0.0) == [0, 1, 2]
